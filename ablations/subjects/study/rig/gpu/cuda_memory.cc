// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/rig/gpu/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

class CudaBlock final : public MemoryBlock {
 public:
  explicit CudaBlock(DeviceBuffer buffer) : buffer_(std::move(buffer)) {}
  std::byte* data() const override { return static_cast<std::byte*>(buffer_.data()); }
  absl::Status CopyIn(absl::Span<const std::byte> from, size_t offset) override {
    return buffer_.CopyFromHost(from, offset);
  }
  absl::Status CopyOut(absl::Span<std::byte> to, size_t offset) const override {
    return buffer_.CopyToHost(to, offset);
  }

 private:
  DeviceBuffer buffer_;
};

class CudaMemoryImpl final : public Memory {
 public:
  absl::StatusOr<std::unique_ptr<MemoryBlock>> Allocate(size_t bytes) const override {
    ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::Allocate(bytes));
    return std::make_unique<CudaBlock>(std::move(buffer));
  }
  absl::Status WaitForWork() const override {
    return CudaStatus(cudaDeviceSynchronize(), "running the kernel");
  }
};

}  // namespace

std::shared_ptr<const Memory> CudaMemory() { return std::make_shared<CudaMemoryImpl>(); }

}  // namespace warpledger::ablations
