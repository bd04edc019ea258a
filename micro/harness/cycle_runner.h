// SPDX-License-Identifier: Apache-2.0
// Runs a CycleCase: one launch per length, then the slope.
//
//   CycleRunner runner = …Create(micro_case, device);
//   CycleSample sample = *runner.Run(random);   // sample.value in the case's unit

#ifndef WARPLEDGER_MICRO_HARNESS_CYCLE_RUNNER_H_
#define WARPLEDGER_MICRO_HARNESS_CYCLE_RUNNER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/common/device.h"
#include "kernels/common/random.h"
#include "micro/harness/line_fit.h"
#include "micro/harness/microbenchmark.h"

namespace warpledger::harness {

// Cycles of each SM from its first start to its last stop, rising by SM number.
// With `ctas_per_sm` above 0, SMs that held another number of CTAs are left out:
// FailedPrecondition when none remains. Internal when a clock ran backwards.
absl::StatusOr<std::vector<double>> CyclesBySm(const std::vector<WarpStamp>& stamps,
                                               int ctas_per_sm);

// The threads and CTAs that a case is launched with on a GPU of `sm_count` SMs.
int ThreadsOf(const CycleCase& micro_case);
int CtasOf(const CycleCase& micro_case, int sm_count);

// Units behind `iterations` of the timed loop: the length of a chain for a latency,
// all units of one SM for a throughput.
double UnitsOf(const CycleCase& micro_case, int iterations);

// The case's value of a slope in cycles per unit.
double ValueOf(Measure measure, double slope);

// One point of the fit per length, in the order of the case's lengths.
struct CycleSample {
  std::vector<double> units;
  std::vector<double> cycles;  // median over the SMs
  LineFit fit;                 // slope: cycles per unit
  double value = 0;            // in the case's unit
  int sms = 0;                 // whose cycles counted, the fewest over the lengths
};

class CycleRunner {
 public:
  // Makes the data and the buffers and runs the kernel until clocks are up.
  // FailedPrecondition when the kernel doesn't fit an SM as often as asked.
  static absl::StatusOr<CycleRunner> Create(const CycleCase& micro_case, const MicroDevice& device);

  // Every length once, in random order.
  absl::StatusOr<CycleSample> Run(SplitMix64& random);

 private:
  CycleRunner() = default;
  absl::StatusOr<std::vector<double>> Launch(int iterations, SplitMix64& random);

  const CycleCase* case_ = nullptr;
  int threads_ = 0;
  int ctas_ = 0;
  CycleArgs args_;
  DeviceBuffer data_;
  DeviceBuffer stamps_;
  DeviceBuffer sink_;
};

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_CYCLE_RUNNER_H_
