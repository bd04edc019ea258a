// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/kernel_instance.h"

#include "kernels/sdpa/geometry.h"
#include "kernels/sdpa/smem_layout.h"

namespace warpledger::sdpa {
namespace {

// Lowers `ctas` to as many as the device holds at once.
cudaError_t LimitToResident(const Config& config, const void* kernel, unsigned* ctas) {
  int device = 0;
  int sms = 0;
  int ctas_per_sm = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas_per_sm, kernel, Threads(config),
                                                        SmemBytes(config));
  if (error != cudaSuccess) return error;
  const auto resident = static_cast<unsigned>(sms * ctas_per_sm);
  if (*ctas > resident) *ctas = resident;
  return cudaSuccess;
}

}  // namespace

cudaError_t KernelCode::GetKernel(const void** kernel) {
  std::call_once(once_, [this] {
    error_ = cudaLibraryLoadData(&library_, image_, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (error_ != cudaSuccess) return;
    unsigned count = 0;
    error_ = cudaLibraryGetKernelCount(&count, library_);
    if (error_ != cudaSuccess) return;
    error_ = count == 1 ? cudaLibraryEnumerateKernels(&kernel_, 1, library_)
                        : cudaErrorNoKernelImageForDevice;
  });
  *kernel = reinterpret_cast<const void*>(kernel_);
  return error_;
}

cudaError_t KernelCode::GetWorkspace(std::byte** workspace) {
  const void* kernel = nullptr;
  if (const cudaError_t error = GetKernel(&kernel); error != cudaSuccess) return error;
  size_t bytes = 0;
  return cudaLibraryGetGlobal(reinterpret_cast<void**>(workspace), &bytes, library_,
                              (std::string(symbol_) + "_workspace").c_str());
}

cudaError_t LaunchSmem(const KernelInstance& instance, const ForwardParams& params, unsigned ctas,
                       cudaStream_t stream) {
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
  return cudaLaunchKernel(kernel, dim3(ctas), dim3(static_cast<unsigned>(Threads(config))),
                          arguments, static_cast<size_t>(SmemBytes(config)), stream);
}

}  // namespace warpledger::sdpa
