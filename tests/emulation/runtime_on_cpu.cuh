// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime whose only device is the CPU (cuda_on_cpu.h), for host code that launches kernels
// by KernelLaunch. It defines the runtime's functions, so that one source of a program includes it,
// and the program links no other runtime.
//
//   OnCpu kernel{[](const void* params) { Kernel(*static_cast<const Params*>(params)); }};
//   KernelCode code("kernel", &kernel);

#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "kernels/common/tma.cuh"
#include "tests/emulation/cuda_on_cpu.h"

// A member of cudaLaunchConfig_t too.
#pragma push_macro("gridDim")
#undef gridDim

namespace warpledger::emulation {

// Memory in the alignment that kernels ask of tensors; 0 where nothing is written.
struct alignas(16) Memory16 {
  unsigned char bytes[16];
};
inline std::vector<Memory16> Memory(size_t bytes) {
  return std::vector<Memory16>((bytes + 15) / 16);
}

// What stands for the image of a kernel.
struct OnCpu {
  std::function<void(const void* params)> body;  // of each thread
  std::vector<Memory16> workspace = {};
};

struct Device {
  int sm_count = 3;
  CopiesLand copies = CopiesLand::kLate;
  bool reversed = false;
};
inline Device device;

}  // namespace warpledger::emulation

extern "C" {
cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = warpledger::emulation::device.sm_count;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = 228 << 10;
      return cudaSuccess;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = 5120;
      return cudaSuccess;
    case cudaDevAttrL2CacheSize:
      *value = 50 << 20;
      return cudaSuccess;
    default:
      return cudaErrorNotSupported;
  }
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* ctas, const void*, int, size_t) {
  *ctas = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
                                             unsigned long long,  // NOLINT(google-runtime-int)
                                             cudaDriverEntryPointQueryResult* result) {
  *function = reinterpret_cast<void*>(&warpledger::ptx::EncodeTensorMapOnCpu);
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
// As many clusters as the SMs would have room for if each had one CTA.
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void*,
                                           const cudaLaunchConfig_t* config) {
  *clusters =
      warpledger::emulation::device.sm_count / static_cast<int>(config->attrs[0].val.clusterDim.x);
  return cudaSuccess;
}
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* image, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  *library = reinterpret_cast<cudaLibrary_t>(const_cast<void*>(image));
  return cudaSuccess;
}
cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned, cudaLibrary_t library) {
  *kernels = reinterpret_cast<cudaKernel_t>(library);
  return cudaSuccess;
}
cudaError_t cudaLibraryGetGlobal(void** memory, size_t*, cudaLibrary_t library, const char*) {
  *memory = reinterpret_cast<warpledger::emulation::OnCpu*>(library)->workspace.data();
  return cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) { return cudaSuccess; }
// Clusters run one after another, and so do all CTAs where there are more than a few. Those that
// wait for no other but compete for tiles of a counter run side by side.
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                void** arguments) {
  namespace emulation = warpledger::emulation;
  const dim3& grid = config->gridDim;
  const unsigned ctas = grid.x * grid.y * grid.z;
  constexpr unsigned kSideBySide = 16;
  unsigned cluster = ctas <= kSideBySide ? ctas : 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
      cluster = config->attrs[i].val.clusterDim.x;
    }
  }
  emulation::RunCtas({.ctas = ctas,
                      .grid_x = grid.x,
                      .grid_y = grid.y,
                      .cluster = cluster,
                      .threads = static_cast<int>(config->blockDim.x),
                      .smem_bytes = config->dynamicSmemBytes,
                      .copies = emulation::device.copies,
                      .reversed = emulation::device.reversed},
                     [&] { static_cast<const emulation::OnCpu*>(kernel)->body(arguments[0]); });
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             size_t smem_bytes, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = smem_bytes;
  config.stream = stream;
  return cudaLaunchKernelExC(&config, kernel, arguments);
}
}

#pragma pop_macro("gridDim")
