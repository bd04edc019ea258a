// SPDX-License-Identifier: Apache-2.0
// One launch of a kernel with the attributes of a Hopper GPU. Nothing is allocated, so that it may
// be captured.
//
//   KernelLaunch launch(dim3(ctas), Threads(shape), MakeSmem(shape).bytes, stream);
//   launch.InClusters(2);
//   return launch.Run(kernel, &params);

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_KERNEL_LAUNCH_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_KERNEL_LAUNCH_H_

#include <cuda_runtime_api.h>

#include <cstddef>

namespace warpledger::sdpa {

class KernelLaunch {
 public:
  KernelLaunch(dim3 grid, int threads, int smem_bytes, cudaStream_t stream = nullptr) {
    config_.gridDim = grid;
    config_.blockDim = dim3(static_cast<unsigned>(threads));
    config_.dynamicSmemBytes = static_cast<size_t>(smem_bytes);
    config_.stream = stream;
    config_.attrs = attributes_;
  }
  KernelLaunch(const KernelLaunch&) = delete;
  KernelLaunch& operator=(const KernelLaunch&) = delete;

  // Of `ctas` neighbours along x.
  void InClusters(int ctas) {
    cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(ctas);
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
  }
  // As a programmatic dependent of the kernel before it in the stream.
  void BesidePriorKernel() {
    cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }

  // Clusters that the current device holds at once.
  cudaError_t MaxActiveClusters(const void* kernel, int* clusters) const {
    return cudaOccupancyMaxActiveClusters(clusters, kernel, &config_);
  }
  //   params: the kernel's one argument
  cudaError_t Run(const void* kernel, void* params) const {
    void* arguments[] = {params};
    return cudaLaunchKernelExC(&config_, kernel, arguments);
  }

 private:
  cudaLaunchAttribute attributes_[2] = {};
  cudaLaunchConfig_t config_ = {};
};

// An attribute of the current device.
inline cudaError_t GetDeviceAttribute(cudaDeviceAttr attribute, int* value) {
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  return error == cudaSuccess ? cudaDeviceGetAttribute(value, attribute, device) : error;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_KERNEL_LAUNCH_H_
