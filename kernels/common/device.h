// SPDX-License-Identifier: Apache-2.0
// The GPU that this process works on, and memory there.

#ifndef WARPLEDGER_KERNELS_COMMON_DEVICE_H_
#define WARPLEDGER_KERNELS_COMMON_DEVICE_H_

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/common/device_facts.h"

namespace warpledger {

// Facts of the current device (CUDA_VISIBLE_DEVICES chooses it). Unavailable
// without a driver or a GPU.
absl::StatusOr<DeviceFacts> QueryDevice();

// Device memory that is freed with the object. Movable.
class DeviceBuffer {
 public:
  // ResourceExhausted when the GPU has not enough free memory.
  static absl::StatusOr<DeviceBuffer> Allocate(size_t bytes);

  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Blocking copies of the whole span, which must fit at `offset`.
  absl::Status CopyFromHost(absl::Span<const std::byte> from, size_t offset = 0);
  absl::Status CopyToHost(absl::Span<std::byte> to, size_t offset = 0) const;
  // Sets every byte.
  absl::Status Fill(unsigned char value);

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace warpledger

#endif  // WARPLEDGER_KERNELS_COMMON_DEVICE_H_
