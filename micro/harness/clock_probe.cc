// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/clock_probe.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "kernels/common/cuda_status.h"

namespace warpledger::harness {

double MhzBetween(absl::Span<const ClockStamp> begin, absl::Span<const ClockStamp> end) {
  std::map<uint32_t, ClockStamp> began;
  for (const ClockStamp& stamp : begin) began[stamp.sm] = stamp;
  std::vector<double> mhz;
  for (const ClockStamp& stamp : end) {
    const auto it = began.find(stamp.sm);
    if (it == began.end() || stamp.ns <= it->second.ns) continue;
    mhz.push_back(1000.0 * static_cast<double>(stamp.cycles - it->second.cycles) /
                  static_cast<double>(stamp.ns - it->second.ns));
  }
  if (mhz.empty()) return 0;
  const auto middle = mhz.begin() + static_cast<std::ptrdiff_t>(mhz.size() / 2);
  std::nth_element(mhz.begin(), middle, mhz.end());
  return *middle;
}

absl::StatusOr<ClockProbe> ClockProbe::Create() {
  ClockProbe probe;
  int device = 0;
  RETURN_IF_CUDA_ERROR(cudaGetDevice(&device), "asking for the device");
  RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&probe.sms_, cudaDevAttrMultiProcessorCount, device),
                       "counting the SMs");
  const size_t count = 2 * static_cast<size_t>(probe.sms_);
  RETURN_IF_CUDA_ERROR(
      cudaMallocHost(reinterpret_cast<void**>(&probe.stamps_), count * sizeof(ClockStamp)),
      "allocating stamps of the clock");
  std::fill_n(probe.stamps_, count, ClockStamp{});
  return probe;
}

ClockProbe::ClockProbe(ClockProbe&& other) noexcept
    : stamps_(std::exchange(other.stamps_, nullptr)), sms_(other.sms_) {}

ClockProbe& ClockProbe::operator=(ClockProbe&& other) noexcept {
  std::swap(stamps_, other.stamps_);
  std::swap(sms_, other.sms_);
  return *this;
}

ClockProbe::~ClockProbe() {
  if (stamps_ == nullptr) return;
  if (const cudaError_t error = cudaFreeHost(stamps_); error != cudaSuccess) {
    std::fprintf(stderr, "warpledger: freeing stamps of the clock: %s\n",
                 cudaGetErrorString(error));
  }
}

absl::Status ClockProbe::Begin(cudaStream_t stream) {
  return CudaStatus(LaunchClockStamps(stamps_, sms_, stream), "stamping the clock");
}

absl::Status ClockProbe::End(cudaStream_t stream) {
  return CudaStatus(LaunchClockStamps(stamps_ + sms_, sms_, stream), "stamping the clock");
}

double ClockProbe::Mhz() const {
  const size_t count = static_cast<size_t>(sms_);
  return MhzBetween({stamps_, count}, {stamps_ + sms_, count});
}

}  // namespace warpledger::harness
