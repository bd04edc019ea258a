// SPDX-License-Identifier: Apache-2.0
// The SM clock while a stretch of a stream ran, by the GPU's own counters: stamps of each
// SM's cycle counter and of the global timer before and after it. NVML's reading, which is
// refreshed several times a second only, says nothing of one sample (reports/decisions/0006).
//
// The idea is nvbench's, which does the same to find throttled samples.
//
//   ClockProbe probe = …Create();
//   probe.Begin(stream); …; probe.End(stream);  // and wait for the stream
//   double mhz = probe.Mhz();

#ifndef WARPLEDGER_MICRO_HARNESS_CLOCK_PROBE_H_
#define WARPLEDGER_MICRO_HARNESS_CLOCK_PROBE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::harness {

struct ClockStamp {
  uint32_t sm = 0;
  uint64_t cycles = 0;
  uint64_t ns = 0;
};

// The median over the SMs that stamped both; 0 where none did or no time passed.
double MhzBetween(absl::Span<const ClockStamp> begin, absl::Span<const ClockStamp> end);

class ClockProbe {
 public:
  static absl::StatusOr<ClockProbe> Create();
  ClockProbe(ClockProbe&&) noexcept;
  ClockProbe& operator=(ClockProbe&&) noexcept;
  ~ClockProbe();

  absl::Status Begin(cudaStream_t stream);
  absl::Status End(cudaStream_t stream);
  // Once the stream has passed End().
  double Mhz() const;

 private:
  ClockProbe() = default;
  ClockStamp* stamps_ = nullptr;  // pinned; of Begin(), then of End()
  int sms_ = 0;
};

// `count` stamps, each of one CTA; as many CTAs as SMs find one each on an idle GPU.
cudaError_t LaunchClockStamps(ClockStamp* stamps, int count, cudaStream_t stream);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_CLOCK_PROBE_H_
