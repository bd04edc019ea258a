// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/shared/kernel_instance.h"

#include <atomic>
#include <mutex>

namespace warpledger::sdpa {
namespace {

// Of all kernels, for a load is rare. std::call_once would keep a failure, or has to be left by an
// exception, which ends a program that links libgcc statically.
std::mutex loading;

// An image that does not have one kernel, or whose kernel can't be read, is unloaded again.
cudaError_t Load(const void* image, cudaLibrary_t* library, cudaKernel_t* kernel) {
  cudaLibrary_t loaded = nullptr;
  cudaError_t error = cudaLibraryLoadData(&loaded, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error != cudaSuccess) return error;
  unsigned count = 0;
  error = cudaLibraryGetKernelCount(&count, loaded);
  if (error == cudaSuccess) {
    error = count == 1 ? cudaLibraryEnumerateKernels(kernel, 1, loaded)
                       : cudaErrorNoKernelImageForDevice;
  }
  if (error == cudaSuccess) {
    *library = loaded;
  } else {
    cudaLibraryUnload(loaded);
  }
  return error;
}

}  // namespace

// Success alone is kept: a load may fail for a while, under another thread's capture or while
// memory is short.
cudaError_t KernelCode::GetKernel(const void** kernel) {
  const std::atomic_ref<cudaKernel_t> kept(kernel_);
  cudaKernel_t loaded = kept.load(std::memory_order_acquire);
  if (loaded == nullptr) {
    const std::lock_guard<std::mutex> lock(loading);
    loaded = kept.load(std::memory_order_relaxed);
    if (loaded == nullptr) {
      const cudaError_t error = Load(image_, &library_, &loaded);
      if (error != cudaSuccess) return error;
      kept.store(loaded, std::memory_order_release);
    }
  }
  *kernel = reinterpret_cast<const void*>(loaded);
  return cudaSuccess;
}

cudaError_t KernelCode::GetWorkspace(std::byte** workspace) {
  const void* kernel = nullptr;
  if (const cudaError_t error = GetKernel(&kernel); error != cudaSuccess) return error;
  size_t bytes = 0;
  return cudaLibraryGetGlobal(reinterpret_cast<void**>(workspace), &bytes, library_,
                              (std::string(symbol_) + "_workspace").c_str());
}

}  // namespace warpledger::sdpa
