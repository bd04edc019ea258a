// SPDX-License-Identifier: Apache-2.0
// From a problem to a launch of the smem family.

#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/shared/kernel_launch.h"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/smem_layout.h"

namespace warpledger::sdpa {
namespace {

// Lowers `ctas` to as many as the device holds at once.
cudaError_t LimitToResident(const Config& config, const void* kernel, unsigned* ctas) {
  int sms = 0;
  int ctas_per_sm = 0;
  cudaError_t error = GetDeviceAttribute(cudaDevAttrMultiProcessorCount, &sms);
  if (error != cudaSuccess) return error;
  error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas_per_sm, kernel, smem::Threads(config),
                                                        smem::MakeSmemLayout(config).bytes);
  if (error != cudaSuccess) return error;
  const auto resident = static_cast<unsigned>(sms * ctas_per_sm);
  if (*ctas > resident) *ctas = resident;
  return cudaSuccess;
}

}  // namespace

cudaError_t LaunchSmem(const KernelInstance& instance, const LaunchParams& params, unsigned ctas,
                       const LaunchMemory*, cudaStream_t stream) {
  const Config& config = instance.config;
  const void* kernel = nullptr;
  cudaError_t error = instance.code->GetKernel(&kernel);
  if (error != cudaSuccess) return error;
  if (config.persistent > 0) {
    error = LimitToResident(config, kernel, &ctas);
    if (error != cudaSuccess) return error;
  }
  ForwardParams copy = params;
  void* arguments[] = {&copy};
  return cudaLaunchKernel(kernel, dim3(ctas), dim3(static_cast<unsigned>(smem::Threads(config))),
                          arguments, static_cast<size_t>(smem::MakeSmemLayout(config).bytes),
                          stream);
}

}  // namespace warpledger::sdpa
