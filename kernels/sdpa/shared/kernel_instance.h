// SPDX-License-Identifier: Apache-2.0
// One compiled kernel instance, as the generated table lists it.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_KERNEL_INSTANCE_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_KERNEL_INSTANCE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/shared/forward_params.h"
#include "kernels/sdpa/shared/kernel_layout.h"

namespace warpledger::sdpa {

// The device code of one instance: an embedded fat binary that holds one kernel. The runtime
// loads it on the first use in a process, into each device that uses it, and never unloads it.
// Thread-safe.
class KernelCode {
 public:
  // `symbol` names the instance; `image` is the fat binary. Both outlive this.
  constexpr KernelCode(const char* symbol, const void* image) : symbol_(symbol), image_(image) {}

  // The kernel, for launches, attributes and occupancy.
  cudaError_t GetKernel(const void** kernel);

  // The instance's own global memory on the current device: its variable `<symbol>_workspace`.
  cudaError_t GetWorkspace(std::byte** workspace);

 private:
  const char* symbol_;
  const void* image_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
};

// Device memory of the caller's for what outlives a CTA, in place of the instance's own, so that
// launches with different memory may overlap; both parts are 16-byte aligned. And how the caller's
// tensors lie: what an instance takes, the library's WhyNot says.
struct LaunchMemory {
  std::byte* counters = nullptr;  // kCounterBytes, 0 before and after each launch of any instance
  std::byte* partials = nullptr;  // PartialBytes of the configuration; nobody minds what is there
  TensorLayouts layouts;
  // Of packed sequences, (batch + 1) int32 each.
  const int* cu_seqlens_q = nullptr;
  const int* cu_seqlens_kv = nullptr;
};
inline constexpr size_t kCounterBytes = 4096;

struct KernelInstance {
  Config config;  // specialised: see Specialise
  KernelCode* code = nullptr;
  // Puts one call on the stream. `ctas` is Ctas() of the problem; only the smem family uses it.
  // `memory`: null for the instance's own, and contiguous tensors.
  cudaError_t (*launch)(const KernelInstance& instance, const LaunchParams& params, unsigned ctas,
                        const LaunchMemory* memory, cudaStream_t stream) = nullptr;
};

// What launches an instance, by family. Nothing is allocated, so that a launch may be captured.
cudaError_t LaunchSmem(const KernelInstance& instance, const LaunchParams& params, unsigned ctas,
                       const LaunchMemory* memory, cudaStream_t stream);
cudaError_t LaunchMma(const KernelInstance& instance, const LaunchParams& params, unsigned ctas,
                      const LaunchMemory* memory, cudaStream_t stream);
cudaError_t LaunchWgmma(const KernelInstance& instance, const LaunchParams& params, unsigned ctas,
                        const LaunchMemory* memory, cudaStream_t stream);
cudaError_t LaunchWgmmaVarlen(const KernelInstance& instance, const LaunchParams& params,
                              const LaunchMemory& memory, cudaStream_t stream);
cudaError_t LaunchResident(const KernelInstance& instance, const LaunchParams& params,
                           unsigned ctas, const LaunchMemory* memory, cudaStream_t stream);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_KERNEL_INSTANCE_H_
