// SPDX-License-Identifier: Apache-2.0
// From a problem to a launch of the mma family.

#include <algorithm>

#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/mma/plan.h"
#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/shared/kernel_launch.h"
#include "kernels/sdpa/shared/sequences/sequence_launch.h"

namespace warpledger::sdpa {
namespace {

// What a plan must know of the current device.
cudaError_t ReadDevice(MmaDevice* facts) {
  int l2_bytes = 0;
  cudaError_t error = GetDeviceAttribute(cudaDevAttrMultiProcessorCount, &facts->sms);
  if (error != cudaSuccess) return error;
  error = GetDeviceAttribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &facts->smem_per_sm);
  if (error != cudaSuccess) return error;
  error = GetDeviceAttribute(cudaDevAttrL2CacheSize, &l2_bytes);
  facts->l2_bytes = l2_bytes;
  return error;
}

// Counters apart from partial results, and the same bytes are counters for every instance.
void AddMemory(const MmaShape& shape, const LaunchMemory& memory, MmaParams* params) {
  static_assert((kMaxPartials + 1) * sizeof(int) <= kCounterBytes);
  AddWorkspace(shape, memory.partials, params);
  params->next_tile = reinterpret_cast<int*>(memory.counters);
  params->arrivals = params->next_tile + 1;
}

// Packed sequences: the plan, and CTAs that take its blocks one after another.
cudaError_t LaunchPacked(const void* kernel, const LaunchParams& forward, const MmaShape& shape,
                         const MmaDevice& device, const LaunchMemory& memory, cudaStream_t stream) {
  constexpr int kElementBytes = 2;
  const SequencePlanParams plan =
      SequencePlanOf(forward, memory, TileM(shape), int64_t{shape.head_dim} * 2 * kElementBytes);
  const TensorLayouts& layouts = memory.layouts;
  MmaVarlenParams params = {
      {MmaParams{.forward = forward, .group_size = plan.group_size, .heads = forward.heads_q},
       layouts.q, layouts.k, layouts.v, layouts.o},
      plan.blocks,
      plan.block_count,
      layouts.total_q};
  const cudaError_t error = LaunchSequencePlan(plan, stream);
  if (error != cudaSuccess) return error;
  const int64_t ctas = std::clamp<int64_t>(int64_t{plan.capacity} * forward.heads_q, 1,
                                           int64_t{device.sms} * CtasPerSm(shape, device));
  const KernelLaunch launch(dim3(static_cast<unsigned>(ctas)), Threads(shape),
                            MakeSmem(shape).bytes, stream);
  return launch.Run(kernel, &params);
}

}  // namespace

cudaError_t LaunchMma(const KernelInstance& instance, const LaunchParams& forward, unsigned,
                      const LaunchMemory* memory, cudaStream_t stream) {
  const MmaShape shape = MmaShapeOf(instance.config);
  if (shape.strided && memory == nullptr) return cudaErrorInvalidValue;
  const void* kernel = nullptr;
  cudaError_t error = instance.code->GetKernel(&kernel);
  if (error != cudaSuccess) return error;
  MmaDevice device;
  error = ReadDevice(&device);
  if (error != cudaSuccess) return error;
  if (shape.varlen) return LaunchPacked(kernel, forward, shape, device, *memory, stream);
  MmaParams params;
  const unsigned ctas = PlanMma(forward, shape, device, &params);
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
  if (!shape.strided) return launch.Run(kernel, &params);
  const TensorLayouts& layouts = memory->layouts;
  MmaStridedParams strided = {params, layouts.q, layouts.k, layouts.v, layouts.o};
  return launch.Run(kernel, &strided);
}

}  // namespace warpledger::sdpa
