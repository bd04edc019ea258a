// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's product for the projection in front of attention.
//
// The library is loaded when it is first asked for, so that the program needs it neither
// to start nor to be installed. Where the build had no cublasLt.h, or there is no
// library, Get says so: Unimplemented and NotFound.
//
//   absl::StatusOr<const CublasLt*> library = CublasLt::Get();
//   RETURN_IF_ERROR((*library)->Project(params, rows, stream));  // qkv = x W^T

#ifndef WARPLEDGER_KERNELS_SDPA_LAUNCH_CUBLASLT_H_
#define WARPLEDGER_KERNELS_SDPA_LAUNCH_CUBLASLT_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/sdpa/shared/forward_params.h"

namespace warpledger::sdpa {

class CublasLt {
 public:
  // One for the process; it lives as long.
  static absl::StatusOr<const CublasLt*> Get();

  // p.qkv = p.x W^T over `rows` rows, fp32 sums, by the algorithm that the library
  // thinks best. The first call for a size chooses it and allocates a workspace, so it
  // must not be captured; later ones may be.
  absl::Status Project(const ProjectionParams& p, int rows, cudaStream_t stream) const;

 private:
  struct Library;
  explicit CublasLt(Library* library) : library_(library) {}
  Library* const library_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LAUNCH_CUBLASLT_H_
