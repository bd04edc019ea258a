// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/shared/kernel_instance.h"

namespace warpledger::sdpa {

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

}  // namespace warpledger::sdpa
