// SPDX-License-Identifier: Apache-2.0
// Reads a GPU's clocks, temperature, power and clock event reasons through
// NVML, so that each sample says in what state the GPU was.
//
// Contract: reads only, never changes a setting. The driver's
// libnvidia-ml.so.1 is loaded when a device is opened, so that binaries link
// and start on machines without a driver. A sensor that the GPU or the
// container doesn't offer is nullopt. One NvmlDevice may be used by one thread
// at a time.
//
// Errors: Unavailable when the library or the driver is missing, NotFound for a
// GPU that NVML doesn't see, InvalidArgument for an identifier that is neither
// a UUID nor a PCI bus id, Internal for any other NVML error.
//
//   absl::StatusOr<NvmlDevice> gpu = NvmlDevice::Open("GPU-5e3c…");
//   if (!gpu.ok()) return gpu.status();
//   absl::StatusOr<NvmlSample> now = gpu->Sample();

#ifndef WARPLEDGER_KERNELS_COMMON_NVML_H_
#define WARPLEDGER_KERNELS_COMMON_NVML_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger {

// Why clocks are below their maximum: the bits of `NvmlSample::throttle`.
struct ThrottleReason {
  uint64_t bit;
  std::string_view name;
  bool slows;  // the GPU is held back; false: idle, or clocks that someone chose
};

// From "Clocks event reasons" in NVIDIA's NVML API reference.
inline constexpr ThrottleReason kThrottleReasons[] = {
    {0x001, "gpu_idle", false},
    {0x002, "applications_clocks_setting", false},
    {0x004, "sw_power_cap", true},
    {0x008, "hw_slowdown", true},
    {0x010, "sync_boost", true},
    {0x020, "sw_thermal_slowdown", true},
    {0x040, "hw_thermal_slowdown", true},
    {0x080, "hw_power_brake_slowdown", true},
    {0x100, "display_clock_setting", false},
};

// Whether the mask holds a reason that slows the GPU. A bit that this list
// doesn't know counts: better one flag too many than a throttled sample unseen.
constexpr bool IsThrottled(uint64_t mask) {
  for (const ThrottleReason& reason : kThrottleReasons) {
    if (!reason.slows) mask &= ~reason.bit;
  }
  return mask != 0;
}

// The board's own power limit. What it costs a kernel belongs to the kernel: both
// arms of a pair run under it, unlike heat or a fault of the supply.
inline constexpr uint64_t kPowerCap = 0x004;

// Whether the power limit holds the clocks down.
constexpr bool IsPowerCapped(uint64_t mask) { return (mask & kPowerCap) != 0; }

// Whether anything but the power limit slows the GPU.
constexpr bool IsThrottledBesidesPowerCap(uint64_t mask) { return IsThrottled(mask & ~kPowerCap); }

struct NvmlSample {
  std::optional<int> sm_clock_mhz;
  std::optional<int> memory_clock_mhz;
  std::optional<int> temperature_c;
  std::optional<double> power_w;
  std::optional<uint64_t> throttle_reasons;  // bits of kThrottleReasons
};

struct NvmlFacts {
  std::string name;
  std::string uuid;
  std::string driver_version;
  std::optional<int> max_sm_clock_mhz;
  std::optional<int> max_memory_clock_mhz;
  std::optional<double> power_limit_w;  // the limit in force
  std::optional<bool> ecc;              // current mode; nullopt: no ECC here
};

// The address of an NVML function by its exported name, or null.
using NvmlLookup = std::function<void*(const char* symbol)>;

class NvmlDevice {
 public:
  // `gpu` is a UUID ("GPU-…") or a PCI bus id ("0000:1b:00.0").
  static absl::StatusOr<NvmlDevice> Open(std::string_view gpu);
  // The same over another table of functions; tests bring their own.
  static absl::StatusOr<NvmlDevice> OpenWith(std::string_view gpu, const NvmlLookup& lookup);

  NvmlDevice(NvmlDevice&& other) noexcept;
  NvmlDevice& operator=(NvmlDevice&& other) noexcept;
  NvmlDevice(const NvmlDevice&) = delete;
  NvmlDevice& operator=(const NvmlDevice&) = delete;
  ~NvmlDevice();

  absl::StatusOr<NvmlSample> Sample() const;
  absl::StatusOr<NvmlFacts> Facts() const;
  // Joules since the driver was loaded. It counts in steps: on an H200 every 100 ms.
  std::optional<double> EnergyJ() const;

 private:
  class Session;
  NvmlDevice(std::unique_ptr<Session> session, void* handle);

  std::unique_ptr<Session> session_;
  void* handle_ = nullptr;
};

}  // namespace warpledger

#endif  // WARPLEDGER_KERNELS_COMMON_NVML_H_
