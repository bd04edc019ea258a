// SPDX-License-Identifier: Apache-2.0
// The kernels in front of attention where nothing is fused into it.
//
// Contract: as ProjectionParams says; embed_dim a multiple of 64, at most kMaxEmbedDim;
// columns a multiple of 64. Launches are asynchronous and can be captured.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_PROJECTION_KERNELS_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_PROJECTION_KERNELS_H_

#include <cuda_runtime_api.h>

#include "kernels/sdpa/shared/forward_params.h"

namespace warpledger::sdpa {

// out = layernorm(p.x), (rows, embed_dim) fp16.
cudaError_t LaunchLayernorm(const ProjectionParams& p, int rows, void* out, cudaStream_t stream);

// p.qkv = p.x W^T, or layernorm(p.x) W^T, over `rows` rows.
cudaError_t LaunchProjection(const ProjectionParams& p, int rows, bool layernorm,
                             cudaStream_t stream);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_PROJECTION_KERNELS_H_
