// SPDX-License-Identifier: Apache-2.0
// From a problem to a launch of the mma family.

#include "kernels/sdpa/geometry.h"
#include "kernels/sdpa/kernel_instance.h"
#include "kernels/sdpa/mma/plan.h"
#include "kernels/sdpa/mma/workspace.h"

namespace warpledger::sdpa {
namespace {

// Fills in `params`, but for the instance's own memory, and the number of CTAs, for the current
// device.
cudaError_t Prepare(const ForwardParams& forward, const MmaShape& shape, MmaParams* params,
                    unsigned* ctas) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  MmaDevice facts;
  int l2_bytes = 0;
  error = cudaDeviceGetAttribute(&facts.sms, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&facts.smem_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                 device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device);
  if (error != cudaSuccess) return error;
  facts.l2_bytes = l2_bytes;
  *ctas = PlanMma(forward, shape, facts, params);
  return cudaSuccess;
}

}  // namespace

cudaError_t LaunchMma(const KernelInstance& instance, const ForwardParams& forward, unsigned,
                      cudaStream_t stream) {
  const MmaShape shape = MmaShapeOf(instance.config);
  const void* kernel = nullptr;
  std::byte* workspace = nullptr;
  cudaError_t error = instance.code->GetKernel(&kernel);
  if (error != cudaSuccess) return error;
  error = instance.code->GetWorkspace(&workspace);
  if (error != cudaSuccess) return error;
  MmaParams params;
  unsigned ctas = 0;
  error = Prepare(forward, shape, &params, &ctas);
  if (error != cudaSuccess) return error;
  AddWorkspace(shape, workspace, &params);

  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  if (shape.dependent_launch) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
    ++config.numAttrs;
  }
  if (shape.input == MmaInput::kClusterProjected) {
    // The CTAs of a head.
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = static_cast<unsigned>(params.query_tiles);
    attributes[config.numAttrs].val.clusterDim.y = 1;
    attributes[config.numAttrs].val.clusterDim.z = 1;
    ++config.numAttrs;
  }
  config.gridDim = dim3(ctas);
  config.blockDim = dim3(static_cast<unsigned>(Threads(shape)));
  config.dynamicSmemBytes = static_cast<size_t>(MakeSmem(shape).bytes);
  config.stream = stream;
  config.attrs = attributes;
  void* arguments[] = {&params};
  return cudaLaunchKernelExC(&config, kernel, arguments);
}

}  // namespace warpledger::sdpa
