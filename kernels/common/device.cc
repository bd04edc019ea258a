// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/device.h"

#include <cuda_runtime_api.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/cuda_status.h"

namespace warpledger {
namespace {

std::string UuidString(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

absl::StatusOr<DeviceFacts> QueryDevice() {
  int device = 0;
  RETURN_IF_CUDA_ERROR(cudaGetDevice(&device), "looking for a GPU");
  cudaDeviceProp prop;
  RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&prop, device), "reading the GPU's properties");
  DeviceFacts facts;
  facts.name = prop.name;
  facts.slug = DeviceSlug(prop.name);
  facts.uuid = UuidString(prop.uuid);
  facts.compute_major = prop.major;
  facts.compute_minor = prop.minor;
  facts.sm_count = prop.multiProcessorCount;
  facts.l2_bytes = prop.l2CacheSize;
  facts.memory_bytes = static_cast<int64_t>(prop.totalGlobalMem);
  facts.max_smem_optin_bytes = static_cast<int>(prop.sharedMemPerBlockOptin);
  RETURN_IF_CUDA_ERROR(cudaDriverGetVersion(&facts.driver_version), "reading the driver version");
  RETURN_IF_CUDA_ERROR(cudaRuntimeGetVersion(&facts.runtime_version),
                       "reading the runtime version");
  return facts;
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Allocate(size_t bytes) {
  DeviceBuffer buffer;
  RETURN_IF_CUDA_ERROR(cudaMalloc(&buffer.data_, bytes),
                       absl::StrCat("allocating ", bytes, " bytes on the GPU"));
  buffer.bytes_ = bytes;
  return buffer;
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ == nullptr) return;
  if (const cudaError_t error = cudaFree(data_); error != cudaSuccess) {
    std::fprintf(stderr, "warpledger: freeing GPU memory: %s\n", cudaGetErrorString(error));
  }
}

absl::Status DeviceBuffer::CopyFromHost(absl::Span<const std::byte> from, size_t offset) {
  if (offset + from.size() > bytes_) return absl::OutOfRangeError("copy past a device buffer");
  return CudaStatus(cudaMemcpy(static_cast<char*>(data_) + offset, from.data(), from.size(),
                               cudaMemcpyHostToDevice),
                    "copying to the GPU");
}

absl::Status DeviceBuffer::CopyToHost(absl::Span<std::byte> to, size_t offset) const {
  if (offset + to.size() > bytes_) return absl::OutOfRangeError("copy past a device buffer");
  return CudaStatus(cudaMemcpy(to.data(), static_cast<const char*>(data_) + offset, to.size(),
                               cudaMemcpyDeviceToHost),
                    "copying from the GPU");
}

absl::Status DeviceBuffer::Fill(unsigned char value) {
  return CudaStatus(cudaMemset(data_, value, bytes_), "filling GPU memory");
}

}  // namespace warpledger
