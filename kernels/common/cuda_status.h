// SPDX-License-Identifier: Apache-2.0
// CUDA error codes as absl::Status.
//
//   RETURN_IF_CUDA_ERROR(cudaMemcpy(...), "copying Q to the GPU");

#ifndef WARPLEDGER_KERNELS_COMMON_CUDA_STATUS_H_
#define WARPLEDGER_KERNELS_COMMON_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"
#include "kernels/common/text.h"

namespace warpledger {

// OK, or what was being done and CUDA's name and text for the error: Unavailable
// where there is no driver or device, ResourceExhausted for memory, else Internal.
inline absl::Status CudaStatus(cudaError_t error, std::string_view doing) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string text = absl::StrCat(Text(doing), ": ", cudaGetErrorString(error), " (",
                                        cudaGetErrorName(error), ")");
  switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemNotReady:
      return absl::UnavailableError(
          absl::StrCat(text,
                       ". This command needs an NVIDIA GPU and its driver; list, judge and "
                       "report work without."));
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace warpledger

#define RETURN_IF_CUDA_ERROR(expression, doing) \
  RETURN_IF_ERROR(::warpledger::CudaStatus((expression), (doing)))

#endif  // WARPLEDGER_KERNELS_COMMON_CUDA_STATUS_H_
