// SPDX-License-Identifier: Apache-2.0
// The search for the driver's encoder, with a driver that is not there at first; no GPU needed.

#include "kernels/sdpa/shared/tensor_maps.h"

#include <cuda.h>

#include "gtest/gtest.h"

namespace {

bool found = false;
int searches = 0;
int encoded = 0;
cuuint32_t columns_of_box = 0;
CUtensorMapSwizzle swizzle_asked = CU_TENSOR_MAP_SWIZZLE_NONE;

CUresult EncodeNothing(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                       const cuuint64_t*, const cuuint32_t* box, const cuuint32_t*,
                       CUtensorMapInterleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                       CUtensorMapFloatOOBfill) {
  ++encoded;
  columns_of_box = box[0];
  swizzle_asked = swizzle;
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

// Bytes of head_dim 64 are half a swizzled row of 128 bytes, and have rows of 64.
TEST(EncodeTensorMap, HasBoxesOfWholeSwizzledRows) {
  found = true;
  struct Case {
    int head_dim;
    CUtensorMapDataType type;
    cuuint32_t columns;
    CUtensorMapSwizzle swizzle;
  };
  for (const Case& c :
       {Case{64, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 64, CU_TENSOR_MAP_SWIZZLE_128B},
        Case{256, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 64, CU_TENSOR_MAP_SWIZZLE_128B},
        Case{64, CU_TENSOR_MAP_DATA_TYPE_UINT8, 64, CU_TENSOR_MAP_SWIZZLE_64B},
        Case{128, CU_TENSOR_MAP_DATA_TYPE_UINT8, 128, CU_TENSOR_MAP_SWIZZLE_128B},
        Case{256, CU_TENSOR_MAP_DATA_TYPE_UINT8, 128, CU_TENSOR_MAP_SWIZZLE_128B}}) {
    const MappedTensor tensor = {
        .head_dim = c.head_dim, .seq = 8, .head_stride = 8 * c.head_dim, .row_stride = c.head_dim};
    CUtensorMap map;
    ASSERT_EQ(EncodeTensorMap(tensor, 8, &map, c.type), cudaSuccess);
    EXPECT_EQ(columns_of_box, c.columns) << c.head_dim;
    EXPECT_EQ(swizzle_asked, c.swizzle) << c.head_dim;
  }
}

}  // namespace
}  // namespace warpledger::sdpa
