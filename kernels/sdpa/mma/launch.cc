// SPDX-License-Identifier: Apache-2.0
// From a problem to a launch of the mma family.

#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/mma/plan.h"
#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/shared/kernel_launch.h"

namespace warpledger::sdpa {
namespace {

// Fills in `params`, but for the instance's own memory, and the number of CTAs, for the current
// device.
cudaError_t Prepare(const ForwardParams& forward, const MmaShape& shape, MmaParams* params,
                    unsigned* ctas) {
  MmaDevice facts;
  int l2_bytes = 0;
  cudaError_t error = GetDeviceAttribute(cudaDevAttrMultiProcessorCount, &facts.sms);
  if (error != cudaSuccess) return error;
  error = GetDeviceAttribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &facts.smem_per_sm);
  if (error != cudaSuccess) return error;
  error = GetDeviceAttribute(cudaDevAttrL2CacheSize, &l2_bytes);
  if (error != cudaSuccess) return error;
  facts.l2_bytes = l2_bytes;
  *ctas = PlanMma(forward, shape, facts, params);
  return cudaSuccess;
}

// Counters apart from partial results, and the same bytes are counters for every instance.
void AddMemory(const MmaShape& shape, const LaunchMemory& memory, MmaParams* params) {
  static_assert((kMaxPartials + 1) * sizeof(int) <= kCounterBytes);
  AddWorkspace(shape, memory.partials, params);
  params->next_tile = reinterpret_cast<int*>(memory.counters);
  params->arrivals = params->next_tile + 1;
}

}  // namespace

cudaError_t LaunchMma(const KernelInstance& instance, const LaunchParams& forward, unsigned,
                      const LaunchMemory* memory, cudaStream_t stream) {
  const MmaShape shape = MmaShapeOf(instance.config);
  const void* kernel = nullptr;
  cudaError_t error = instance.code->GetKernel(&kernel);
  if (error != cudaSuccess) return error;
  MmaParams params;
  unsigned ctas = 0;
  error = Prepare(forward, shape, &params, &ctas);
  if (error != cudaSuccess) return error;
  if (memory != nullptr) {
    AddMemory(shape, *memory, &params);
  } else {
    std::byte* workspace = nullptr;
    error = instance.code->GetWorkspace(&workspace);
    if (error != cudaSuccess) return error;
    AddWorkspace(shape, workspace, &params);
  }

  KernelLaunch launch(dim3(ctas), Threads(shape), MakeSmem(shape).bytes, stream);
  if (shape.dependent_launch) launch.BesidePriorKernel();
  // The CTAs of a head.
  if (shape.input == MmaInput::kClusterProjected) launch.InClusters(params.query_tiles);
  return launch.Run(kernel, &params);
}

}  // namespace warpledger::sdpa
