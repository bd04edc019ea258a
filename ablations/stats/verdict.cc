// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "ablations/stats/medians.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpledger::analysis {

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAdopt:
      return "ADOPT";
    case Verdict::kRealBelowGate:
      return "REAL_BELOW_GATE";
    case Verdict::kNeutral:
      return "NEUTRAL";
    case Verdict::kRegression:
      return "REGRESSION";
    case Verdict::kInconclusive:
      return "INCONCLUSIVE";
    case Verdict::kBroken:
      return "BROKEN";
    case Verdict::kInvalid:
      return "INVALID";
    case Verdict::kNotApplicable:
      return "NOT_APPLICABLE";
  }
  return "";
}

namespace {

bool Differ(double a, double b) { return std::fabs(a - b) > kMaxClockDifference * std::min(a, b); }

// Of one process: `mhz` holds its clocks in the order of the blocks.
std::string WhyDrifting(int process, absl::Span<const double> mhz) {
  const size_t third = mhz.size() / 3;
  if (third == 0) return "";
  const double first = Median({mhz.begin(), mhz.begin() + static_cast<int64_t>(third)});
  const double last = Median({mhz.end() - static_cast<int64_t>(third), mhz.end()});
  if (!Differ(first, last)) return "";
  return absl::StrFormat(
      "the clocks drift: process %d began at %.0f MHz and ended at %.0f MHz (medians of the first "
      "and the last third of its blocks)",
      process, first, last);
}

}  // namespace

std::string WhyCodeInvalid(const CodeEvidence& code) {
  // Without a hash nothing shows that the toggle got into the binary.
  if (code.base.empty() || code.candidate.empty()) {
    return absl::StrFormat("no machine-code evidence: codegen.json has no hash of the %s",
                           code.base.empty() ? "base" : "candidate");
  }
  if (code.base == code.candidate) {
    return "the toggle reaches no code: base and candidate are the same machine code";
  }
  // Other code is not yet the toggle's code.
  const auto known = [](const Opcodes* opcodes) { return opcodes != nullptr && !opcodes->empty(); };
  if (code.sass.empty() || !known(code.base_opcodes) || !known(code.candidate_opcodes)) return "";
  const int64_t base = CountMatching(*code.base_opcodes, code.sass);
  const int64_t candidate = CountMatching(*code.candidate_opcodes, code.sass);
  if (code.fewer ? candidate < base : candidate > base) return "";
  return absl::StrFormat(
      "the toggle's instructions are %s the machine code: %d that match /%s/ in the base, %d in "
      "the candidate",
      code.fewer ? "still in" : "not in", base, code.sass, candidate);
}

std::string WhyLaunchInvalid(const LaunchEvidence& launch) {
  if (launch.base.empty() || launch.candidate.empty()) {
    return absl::StrFormat("no evidence of what was launched: calls.jsonl has no call of the %s",
                           launch.base.empty() ? "base" : "candidate");
  }
  const std::regex pattern(launch.pattern);
  const auto count = [&](const std::vector<std::string>& lines) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return std::regex_search(line, pattern); });
  };
  for (const std::vector<std::string>& base : launch.base) {
    for (const std::vector<std::string>& candidate : launch.candidate) {
      if (base == candidate) {
        return "the toggle did not reach the launches: base and candidate launch the same";
      }
      if (launch.pattern.empty()) continue;
      const auto before = count(base);
      const auto after = count(candidate);
      if (launch.vanishes ? before > 0 && after == 0 : after > before) continue;
      return absl::StrFormat(
          "the toggle did not reach the launches: %d lines of a call match /%s/ in the base, %d in "
          "the candidate",
          before, launch.pattern, after);
    }
  }
  return "";
}

std::string WhyThrottled(absl::Span<const Pair> pairs) {
  size_t throttled = 0;
  for (const Pair& pair : pairs) throttled += pair.base.throttled || pair.candidate.throttled;
  if (2 * throttled <= pairs.size()) return "";
  return absl::StrFormat("throttled in %d of %d pairs", throttled, pairs.size());
}

std::string WhyConditionsInvalid(absl::Span<const Pair> pairs) {
  if (std::string why = WhyThrottled(pairs); !why.empty()) return why;
  std::map<int, std::vector<double>> by_process;
  std::set<int> capped;  // processes that met the power limit
  for (const Pair& pair : pairs) {
    if (pair.base.power_capped || pair.candidate.power_capped) capped.insert(pair.base.process);
    if (pair.base.sm_mhz > 0 && pair.candidate.sm_mhz > 0) {
      by_process[pair.base.process].push_back((pair.base.sm_mhz + pair.candidate.sm_mhz) / 2);
    }
  }
  const PowerCap cap = FindPowerCap(pairs);
  if (!cap.ClocksAgree() && static_cast<double>(std::abs(cap.base - cap.candidate)) >
                                kMaxPowerCapDifference * static_cast<double>(cap.pairs)) {
    return absl::StrFormat(
        "the power limit held one arm more than the other: base in %d, candidate in %d of %d pairs",
        cap.base, cap.candidate, cap.pairs);
  }
  for (const auto& [process, mhz] : by_process) {
    // At the power limit the clock goes up and down all the time, for both arms of a pair.
    if (capped.contains(process)) continue;
    if (std::string why = WhyDrifting(process, mhz); !why.empty()) return why;
  }
  return "";
}

PowerCap FindPowerCap(absl::Span<const Pair> pairs) {
  PowerCap cap;
  std::vector<double> base_mhz;
  std::vector<double> candidate_mhz;
  for (const Pair& pair : pairs) {
    ++cap.pairs;
    cap.base += pair.base.power_capped ? 1 : 0;
    cap.candidate += pair.candidate.power_capped ? 1 : 0;
    if (pair.base.sm_mhz > 0) base_mhz.push_back(pair.base.sm_mhz);
    if (pair.candidate.sm_mhz > 0) candidate_mhz.push_back(pair.candidate.sm_mhz);
  }
  if (!base_mhz.empty()) cap.base_mhz = Median(std::move(base_mhz));
  if (!candidate_mhz.empty()) cap.candidate_mhz = Median(std::move(candidate_mhz));
  return cap;
}

bool PowerCap::ClocksDiffer() const {
  return base_mhz && candidate_mhz && Differ(*base_mhz, *candidate_mhz);
}

bool PowerCap::ClocksAgree() const {
  return base_mhz && candidate_mhz && !Differ(*base_mhz, *candidate_mhz);
}

std::string PowerCap::ClocksText() const {
  if (!base_mhz || !candidate_mhz) return "";
  return absl::StrFormat("at %.0f MHz (base) and %.0f MHz (candidate)", *base_mhz, *candidate_mhz);
}

std::string PowerCap::Text() const {
  std::string text = absl::StrFormat("power-capped in %d (base) and %d (candidate) of %d pairs",
                                     base, candidate, pairs);
  if (base_mhz && candidate_mhz) absl::StrAppend(&text, ", ", ClocksText());
  return text;
}

namespace {

// The rules from NEUTRAL on.
void DecideByEffect(const Evidence& evidence, Judgement* j) {
  const auto decide = [j](Verdict verdict, std::string reason) {
    j->verdict = verdict;
    j->reason = std::move(reason);
  };
  const double low = j->interval->low;
  const double high = j->interval->high;
  const double percent = 100 * (1 - evidence.alpha);
  if (evidence.effect->IsEquivalent(evidence.alpha, evidence.neutral_delta)) {
    decide(Verdict::kNeutral,
           absl::StrFormat("the effect is under %.2g%% either way", 100 * evidence.neutral_delta));
  } else if (low >= evidence.gate) {
    decide(Verdict::kAdopt, absl::StrFormat("at least %.3fx at %.2f%% confidence, gate %.2fx", low,
                                            percent, evidence.gate));
  } else if (low > 1) {
    decide(Verdict::kRealBelowGate,
           absl::StrFormat("at least %.3fx at %.2f%% confidence, short of the gate %.2fx", low,
                           percent, evidence.gate));
  } else if (high < 1) {
    decide(Verdict::kRegression,
           absl::StrFormat("at most %.3fx at %.2f%% confidence", high, percent));
  } else {
    decide(Verdict::kInconclusive,
           absl::StrFormat("the %.2f%% interval contains 1; %s would find %.3fx", percent,
                           evidence.whose, *j->mde_ratio));
  }
}

}  // namespace

Judgement Judge(const Evidence& evidence) {
  Judgement j;
  if (evidence.effect) {
    j.ratio = std::exp(evidence.effect->log_ratio);
    if (evidence.processes >= kMinProcesses) {
      j.interval = evidence.effect->RatioAt(1 - evidence.alpha);
      j.mde_ratio = std::exp(evidence.effect->Least(evidence.alpha));
    }
  }
  if (!evidence.not_applicable.empty()) {
    j.verdict = Verdict::kNotApplicable;
    j.reason = evidence.not_applicable;
  } else if (!evidence.broken.empty()) {
    j.verdict = Verdict::kBroken;
    j.reason = evidence.broken;
  } else if (!evidence.invalid.empty()) {
    j.verdict = Verdict::kInvalid;
    j.reason = evidence.invalid;
  } else if (!evidence.effect) {
    j.reason = "no paired samples on this shape";
  } else if (!j.interval) {
    j.reason =
        "one process only: whether the effect recurs in another is unknown, and two at least "
        "are needed";
  } else {
    DecideByEffect(evidence, &j);
  }
  return j;
}

}  // namespace warpledger::analysis
