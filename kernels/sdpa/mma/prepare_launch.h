// From a problem to a launch of the mma family.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_PREPARE_LAUNCH_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_PREPARE_LAUNCH_H_

#include <cuda_runtime_api.h>

#include "kernels/sdpa/forward_params.h"
#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/mma/shape.h"

namespace warpledger::sdpa {

// Fills in `params`, but for the instance's own memory, and the number of CTAs, for
// the current device. Allocates nothing: a launch may be captured into a graph.
cudaError_t PrepareMmaLaunch(const ForwardParams& forward, const MmaShape& shape, MmaParams* params,
                             unsigned* ctas);

// Launches `kernel`, with the attributes that the shape asks for.
cudaError_t LaunchMma(const MmaParams& params, const MmaShape& shape, unsigned ctas,
                      const void* kernel, cudaStream_t stream);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_PREPARE_LAUNCH_H_
