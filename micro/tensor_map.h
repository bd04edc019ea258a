// SPDX-License-Identifier: Apache-2.0
// A tensor map of rows of 128 bytes with the 128-byte swizzle, boxes of whole rows: what
// TMA needs for the tiles of an attention kernel.
//
//   absl::StatusOr<CUtensorMap> map = EncodeRows(data, /*rows=*/1 << 17, /*box_rows=*/64);
//
// Errors: Unimplemented where the driver has no encoder, InvalidArgument where it
// refuses the shape (box_rows above 256, data not 16-byte aligned).

#ifndef WARPLEDGER_MICRO_TENSOR_MAP_H_
#define WARPLEDGER_MICRO_TENSOR_MAP_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace warpledger::micro {

inline constexpr int kTensorRowBytes = 128;  // 64 fp16

inline absl::StatusOr<CUtensorMap> EncodeRows(void* data, int64_t rows, int box_rows) {
  // Looked up, so that the program needs no libcuda to start.
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    return absl::UnimplementedError("the driver has no cuTensorMapEncodeTiled");
  }
  constexpr int kColumns = kTensorRowBytes / 2;
  const cuuint64_t sizes[] = {kColumns, static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {kTensorRowBytes};
  const cuuint32_t box[] = {kColumns, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t element_strides[] = {1, 1};
  CUtensorMap map;
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, data, sizes, strides, box, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    return absl::InvalidArgumentError(absl::StrCat("the driver refuses a tensor map of ", rows,
                                                   " rows in boxes of ", box_rows, ": error ",
                                                   static_cast<int>(result)));
  }
  return map;
}

}  // namespace warpledger::micro

#endif  // WARPLEDGER_MICRO_TENSOR_MAP_H_
