// SPDX-License-Identifier: Apache-2.0
// Lines that tell a waiting person how far a run is.
//
//   Progress progress(/*runs=*/1758);
//   if (auto line = progress.Started("exp_cost/expf/latency", seconds)) Print(*line);
//
// A line is given at most every kSecondsBetweenLines, and for the first and the
// last run. The time left is that of the runs so far, so it is a guess until
// short and long cases have both come by.

#ifndef WARPLEDGER_MICRO_HARNESS_PROGRESS_H_
#define WARPLEDGER_MICRO_HARNESS_PROGRESS_H_

#include <optional>
#include <string>
#include <vector>

namespace warpledger::harness {

class Progress {
 public:
  static constexpr double kSecondsBetweenLines = 2;

  // `runs`: of all cases, each repetition counted; 0: unknown.
  explicit Progress(int runs) : runs_(runs) {}

  // Call before each run with the seconds since the first. "12 of 30 runs, 8 s,
  // about 13 s left: exp_cost/expf/latency".
  std::optional<std::string> Started(const std::string& name, double seconds);

 private:
  int runs_ = 0;
  int started_ = 0;
  double last_line_s_ = 0;
};

// Google Benchmark's heading with its warning of a debug build replaced: Debian's
// library is one, and the warning would be wrong here, where the library's clock
// times nothing.
std::string ExplainDebugLibrary(std::string heading);

// How many of `names` Google Benchmark's --benchmark_filter lets through: a regular
// expression that is searched for, or with a '-' in front one that must not be found.
// -1 when it is none.
int CountMatches(const std::string& filter, const std::vector<std::string>& names);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_PROGRESS_H_
