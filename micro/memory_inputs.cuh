// SPDX-License-Identifier: Apache-2.0
// Device memory for the microbenchmarks of memory: random contents and the
// addresses of a warp's lanes.
//
// Random, never zeros: buses and registers that don't toggle draw less power, and
// under a power limit that is speed.
//
//   harness::MakeData data = LaneBytes(bank_model::Strided(128));
//   absl::StatusOr<DeviceBuffer> words = RandomWords(64 << 20);
//
// Errors: ResourceExhausted where the GPU's memory doesn't suffice, Internal for
// other CUDA errors.

#ifndef WARPLEDGER_MICRO_MEMORY_INPUTS_CUH_
#define WARPLEDGER_MICRO_MEMORY_INPUTS_CUH_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/common/bank_model.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger::memory_inputs {

// A template only so that each file that includes this has the one definition.
// `floats`: words are floats in [1, 2), so that arithmetic on them stays finite;
// otherwise all 32 bits are random.
template <int kUnused = 0>
__global__ void FillRandom(uint4* data, int64_t vectors, uint32_t seed, bool floats) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < vectors; i += step) {
    uint32_t words[4];
    for (int w = 0; w < 4; ++w) {
      const uint32_t bits = harness::RandomBits(seed + w, static_cast<uint32_t>(i));
      words[w] = floats ? __float_as_uint(harness::RandomFloat(bits)) : bits;
    }
    data[i] = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

// `bytes`, a multiple of 16, of random words.
inline absl::StatusOr<DeviceBuffer> RandomWords(int64_t bytes, bool floats = false) {
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Allocate(bytes);
  if (!buffer.ok()) return buffer.status();
  constexpr uint32_t kSeed = 0x6d656d6f;
  FillRandom<><<<4096, 256>>>(static_cast<uint4*>(buffer->data()), bytes / 16, kSeed, floats);
  RETURN_IF_CUDA_ERROR(cudaGetLastError(), "filling memory with random words");
  RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize(), "filling memory with random words");
  return buffer;
}

// The same, owned by a launch function, which std::function wants copyable.
inline absl::StatusOr<std::shared_ptr<DeviceBuffer>> SharedRandomWords(int64_t bytes,
                                                                       bool floats = false) {
  absl::StatusOr<DeviceBuffer> buffer = RandomWords(bytes, floats);
  if (!buffer.ok()) return buffer.status();
  return std::make_shared<DeviceBuffer>(*std::move(buffer));
}

// A case's data: each lane's byte address in the tile, (32) uint32. The benchmark
// and the bank model thus speak of the same addresses.
inline harness::MakeData LaneBytes(const bank_model::LaneAddresses& lanes) {
  return [lanes](const harness::MicroDevice&) -> absl::StatusOr<DeviceBuffer> {
    absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Allocate(sizeof(lanes));
    if (!buffer.ok()) return buffer.status();
    const absl::Status copied = buffer->CopyFromHost(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(lanes.bytes), sizeof(lanes)));
    if (!copied.ok()) return copied;
    return buffer;
  };
}

}  // namespace warpledger::memory_inputs

#endif  // WARPLEDGER_MICRO_MEMORY_INPUTS_CUH_
