// SPDX-License-Identifier: Apache-2.0
// What the library's tests on a GPU share: device memory, and what the library says of a problem.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "kernels/common/device.h"
#include "kernels/sdpa/library/warpledger_sdpa.h"
#include "kernels/sdpa/problem/problem.h"

namespace warpledger::sdpa {

inline constexpr size_t kAmple = size_t{64} << 20;  // more than any workspace

inline constexpr const char* kKernelsVariable = "WARPLEDGER_SDPA_KERNELS";
// Whether the library takes its kernels for compute capability 9.0.
inline bool HasWgmma() {
  int device = 0;
  int major = 0;
  return std::getenv(kKernelsVariable) == nullptr && cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major == 9;
}

inline warpledger_sdpa_problem Given(const Problem& p) {
  return {sizeof(warpledger_sdpa_problem),
          p.dtype == Dtype::kBf16 ? WARPLEDGER_SDPA_BF16 : WARPLEDGER_SDPA_FP16,
          p.batch,
          p.heads_q,
          p.heads_kv,
          p.seq_q,
          p.seq_kv,
          p.head_dim,
          p.causal ? 1 : 0,
          0,
          {},
          {},
          {},
          {},
          0,
          0,
          0,
          0,
          0,
          0};
}

// What the library says of a problem.
inline warpledger_sdpa_choice Described(const warpledger_sdpa_problem& given) {
  warpledger_sdpa_choice choice = {};
  choice.size = sizeof choice;
  EXPECT_EQ(warpledger_sdpa_describe(&given, &choice), WARPLEDGER_SDPA_OK)
      << warpledger_sdpa_last_error();
  return choice;
}

// Device memory of zeros, which is what a workspace begins as.
inline DeviceBuffer Zeros(size_t bytes) {
  DeviceBuffer buffer = DeviceBuffer::Allocate(bytes).value();
  EXPECT_TRUE(buffer.Fill(0).ok());
  return buffer;
}

inline void ExpectZeros(const DeviceBuffer& buffer, size_t from, size_t bytes) {
  std::vector<std::byte> found(bytes);
  ASSERT_TRUE(buffer.CopyToHost(absl::MakeSpan(found), from).ok());
  EXPECT_THAT(found, ::testing::Each(std::byte{0}));
}

template <typename T>
DeviceBuffer OnGpu(const std::vector<T>& values) {
  DeviceBuffer buffer = DeviceBuffer::Allocate(values.size() * sizeof(T)).value();
  EXPECT_TRUE(buffer
                  .CopyFromHost(absl::MakeConstSpan(
                      reinterpret_cast<const std::byte*>(values.data()), buffer.bytes()))
                  .ok());
  return buffer;
}

template <typename T>
std::vector<T> OnHost(const DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  EXPECT_TRUE(
      buffer.CopyToHost(absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), buffer.bytes()))
          .ok());
  return values;
}

}  // namespace warpledger::sdpa
