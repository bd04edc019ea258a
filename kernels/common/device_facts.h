// SPDX-License-Identifier: Apache-2.0
// What the suite needs to know of a GPU, read off the device.

#ifndef WARPLEDGER_KERNELS_COMMON_DEVICE_FACTS_H_
#define WARPLEDGER_KERNELS_COMMON_DEVICE_FACTS_H_

#include <cstdint>
#include <string>

namespace warpledger {

struct DeviceFacts {
  std::string name;  // "NVIDIA H200"
  std::string slug;  // "h200": folder and figure names
  std::string uuid;  // "GPU-…", as NVML writes it
  int compute_major = 0;
  int compute_minor = 0;
  int sm_count = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
  int max_smem_optin_bytes = 0;  // dynamic shared memory that one CTA may have
  int driver_version = 0;        // CUDA version of the driver, as CUDA encodes it
  int runtime_version = 0;
};

// "NVIDIA H200" -> "h200", "NVIDIA H100 80GB HBM3" -> "h100_80gb_hbm3".
std::string DeviceSlug(const std::string& name);

}  // namespace warpledger

#endif  // WARPLEDGER_KERNELS_COMMON_DEVICE_FACTS_H_
