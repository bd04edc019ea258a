// SPDX-License-Identifier: Apache-2.0
// The search for the driver's encoder, with a driver that is not there at first; no GPU needed.

#include "kernels/sdpa/shared/tensor_maps.h"

#include <cuda.h>

#include "gtest/gtest.h"

namespace {

bool found = false;
int searches = 0;
int encoded = 0;

CUresult EncodeNothing(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                       const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                       CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                       CUtensorMapFloatOOBfill) {
  ++encoded;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(
    const char*, void** function, unsigned,
    unsigned long long,  // NOLINT(google-runtime-int)
    cudaDriverEntryPointQueryResult* result) {
  ++searches;
  if (!found) return cudaErrorInsufficientDriver;
  *function = reinterpret_cast<void*>(&EncodeNothing);
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

namespace warpledger::sdpa {
namespace {

TEST(EncodeTensorMap, LooksAgainForAnEncoderThatWasNotThere) {
  const MappedTensor tensor = {.head_dim = 64, .seq = 8, .head_stride = 512, .row_stride = 64};
  CUtensorMap map;
  EXPECT_EQ(EncodeTensorMap(tensor, 8, &map), cudaErrorNotSupported);
  found = true;
  EXPECT_EQ(EncodeTensorMap(tensor, 8, &map), cudaSuccess);
  EXPECT_EQ(EncodeTensorMap(tensor, 8, &map), cudaSuccess);
  EXPECT_EQ(searches, 2);
  EXPECT_EQ(encoded, 2);
}

}  // namespace
}  // namespace warpledger::sdpa
