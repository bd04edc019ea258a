// SPDX-License-Identifier: Apache-2.0
// Tensor maps of Q, K, V and O. cudaErrorInvalidValue where the driver refuses a
// tensor (a pointer that is not 16-byte aligned), cudaErrorNotSupported where it has no tensor
// maps.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_TENSOR_MAPS_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_TENSOR_MAPS_H_

#include <cuda_runtime_api.h>

#include "kernels/sdpa/shared/forward_params.h"
#include "kernels/sdpa/shared/kernel_layout.h"
#include "kernels/sdpa/shared/warpgroup.h"
#include "kernels/sdpa/shared/wgmma_params.h"

namespace warpledger::sdpa {

// (heads, seq, head_dim), heads numbered over the whole batch.
struct MappedTensor {
  const void* data = nullptr;
  int head_dim = 1;
  int seq = 1;
  int64_t heads = 1;
  int64_t head_stride = 1;  // elements; a multiple of 16 bytes, as row_stride
  int64_t row_stride = 1;
};
// `strides` fold into a stride of heads (FoldedHeadStride).
MappedTensor MappedWith(const TensorStrides& strides, const void* data, int head_dim, int seq,
                        int batch, int heads);

// The tensor map with boxes of 128 bytes of a row by `rows`, 128-byte swizzle; of 64 bytes and with
// the 64-byte swizzle where a row has no more. Of 16-bit elements, or of bytes. What L2 fetches of
// a miss is `promotion`.
cudaError_t EncodeTensorMap(const MappedTensor& tensor, int rows, CUtensorMap* map,
                            CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                            CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B);

// The tensor map of Q where the heads of a group are packed: boxes of `positions` of all of the
// group's heads, the heads of one position side by side.
cudaError_t EncodePackedQueries(const ForwardParams& forward, const TensorStrides& strides,
                                int head_dim, int positions, CUtensorMap* map,
                                CUtensorMapDataType type);

// What the maps of K and V in a launch's parameters (WgmmaParams, or what derives from it) have L2
// fetch from DRAM at a time: "no L2 promotion", "L2 promotion 64 B", "… 128 B", "… 256 B", or that
// the two differ. Read from the maps' own bits, of which the driver's encoder shows which they are;
// "L2 promotion unknown" where it doesn't.
const char* DescribePromotion(const void* params);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_TENSOR_MAPS_H_
