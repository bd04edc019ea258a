// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/paired.h"

#include <cmath>
#include <map>
#include <utility>

namespace warpledger::analysis {
namespace {

std::vector<std::vector<double>> Lists(std::map<int, std::vector<double>> by_process) {
  std::vector<std::vector<double>> lists;
  for (auto& [process, values] : by_process) lists.push_back(std::move(values));
  return lists;
}

}  // namespace

std::vector<Pair> PairUp(absl::Span<const Timing> base, absl::Span<const Timing> candidate) {
  std::map<std::pair<int, int>, const Timing*> bases;
  for (const Timing& timing : base) bases[{timing.process, timing.block}] = &timing;
  std::map<std::pair<int, int>, Pair> pairs;
  for (const Timing& timing : candidate) {
    const std::pair<int, int> key = {timing.process, timing.block};
    const auto it = bases.find(key);
    if (it != bases.end()) pairs[key] = {.base = *it->second, .candidate = timing};
  }
  std::vector<Pair> ordered;
  for (const auto& [key, pair] : pairs) ordered.push_back(pair);
  return ordered;
}

std::vector<std::vector<double>> LogRatiosByProcess(absl::Span<const Pair> pairs) {
  std::map<int, std::vector<double>> by_process;
  for (const Pair& pair : pairs) {
    by_process[pair.base.process].push_back(std::log(pair.base.us / pair.candidate.us));
  }
  return Lists(std::move(by_process));
}

std::vector<std::vector<double>> LogCycleRatiosByProcess(absl::Span<const Pair> pairs) {
  std::map<int, std::vector<double>> by_process;
  for (const Pair& pair : pairs) {
    by_process[pair.base.process].push_back(
        std::log(pair.base.us * pair.base.sm_mhz / (pair.candidate.us * pair.candidate.sm_mhz)));
  }
  return Lists(std::move(by_process));
}

std::vector<std::vector<double>> LogTimesByProcess(absl::Span<const Timing> timings) {
  std::map<int, std::vector<double>> by_process;
  for (const Timing& timing : timings) by_process[timing.process].push_back(std::log(timing.us));
  return Lists(std::move(by_process));
}

}  // namespace warpledger::analysis
