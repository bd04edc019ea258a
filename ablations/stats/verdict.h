// SPDX-License-Identifier: Apache-2.0
// The rules that turn evidence into a verdict.
//
// The first rule that applies decides:
//   NOT_APPLICABLE   the caller gives a reason
//   BROKEN           base or candidate failed a check on this shape, or had none
//   INVALID          same machine code, none known, or none of the toggle's
//                    instructions in it; throttled by heat, the supply or what is
//                    unknown; clocks or power capping unequal; clocks drifting
//   INCONCLUSIVE     no pairs, or fewer than two processes
//   NEUTRAL          inside 1 ± delta by two one-sided tests
//   ADOPT            lower bound >= gate
//   REAL_BELOW_GATE  lower bound > 1
//   REGRESSION       upper bound < 1
//   INCONCLUSIVE     otherwise, with the minimum detectable effect
// NEUTRAL stands before REAL_BELOW_GATE and REGRESSION because an effect that is
// surely under 1% is not worth anybody's line of code, however surely it is not
// zero.
//
//   Judgement j = Judge({.effect = Effect{0.2, 0.01, 4}, .processes = 5, .gate = 1.10});

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablations/stats/effects/effect.h"
#include "ablations/stats/log_ratios.h"
#include "ablations/stats/opcodes.h"
#include "absl/types/span.h"

namespace warpledger::analysis {

enum class Verdict {
  kAdopt,
  kRealBelowGate,
  kNeutral,
  kRegression,
  kInconclusive,
  kBroken,
  kInvalid,
  kNotApplicable,
};

const char* VerdictName(Verdict verdict);

// Between the first and the last third of a process's blocks; and beyond which clocks are
// said to differ.
inline constexpr double kMaxClockDifference = 0.02;
inline constexpr int kMinProcesses = 2;
// Between the shares of their samples in which base and candidate ran under the
// power limit, unless their clocks show that it did the same to both.
inline constexpr double kMaxPowerCapDifference = 0.25;

// What codegen.json says of the two instances, and the registry of the toggle.
struct CodeEvidence {
  std::string base;  // hashes; empty: unknown
  std::string candidate;
  // Histograms; null or empty without a disassembler.
  const Opcodes* base_opcodes = nullptr;
  const Opcodes* candidate_opcodes = nullptr;
  std::string sass = "";  // regex of the opcodes that the toggle brings; empty: none named
  bool fewer = false;     // it takes them away instead
};

// Why timings can't speak for the toggle; empty when they can. An instruction
// that appears and one that grows are judged alike, by more of it in the
// candidate: outside the ladder, other toggles may have brought it already. So are one
// that vanishes and one that shrinks, by less of it.
std::string WhyCodeInvalid(const CodeEvidence& code);
// What calls.jsonl says of the two arms, a description per distinct call of theirs, and
// the registry of the toggle.
struct LaunchEvidence {
  std::vector<std::vector<std::string>> base;  // lines; empty: unknown
  std::vector<std::vector<std::string>> candidate;
  // Regex of the lines that the toggle brings, or takes away; empty: only that the calls
  // differ, as between two levels.
  std::string pattern;
  bool vanishes = false;
};

// Why timings can't speak for a toggle that changes what is launched, or how; empty when
// they can: each of the candidate's calls has more lines that match than any of the
// base's, or, where they vanish, has none while all of the base's have some.
std::string WhyLaunchInvalid(const LaunchEvidence& launch);
// By anything but the power limit, in more than half of the pairs.
std::string WhyThrottled(absl::Span<const Pair> pairs);
// `pairs` are ordered by process, then block, as PairUp gives them.
std::string WhyConditionsInvalid(absl::Span<const Pair> pairs);

// Pairs of which an arm, or both, ran under the board's power limit. Their ratio is
// a comparison at that limit: kernels that draw less than it may differ otherwise.
struct PowerCap {
  int64_t base = 0;  // samples under the limit
  int64_t candidate = 0;
  int64_t pairs = 0;               // all there are
  std::optional<double> base_mhz;  // medians of the SM clock; nullopt: not read
  std::optional<double> candidate_mhz;

  bool Any() const { return base > 0 || candidate > 0; }
  // Further apart than kMaxClockDifference. Both arms are in every block, in random order, so
  // the kernels themselves make it so: tensor cores lower the clock (decisions/0019).
  bool ClocksDiffer() const;
  // Both were read, and are no further apart than that.
  bool ClocksAgree() const;
  // "at 1978 MHz (base) and 1802 MHz (candidate)".
  std::string ClocksText() const;
  // "power-capped in 70 (base) and 71 (candidate) of 72 pairs, " and ClocksText().
  std::string Text() const;
};
PowerCap FindPowerCap(absl::Span<const Pair> pairs);

struct Evidence {
  std::string not_applicable = "";  // reasons; empty: the rule does not apply
  std::string broken = "";
  std::string invalid = "";
  std::optional<Effect> effect = {};  // ln(base / candidate); nullopt: no pairs
  int processes = 0;                  // that the effect rests on
  double alpha = 0.05;                // adjusted for the family
  double gate = 1.10;
  double neutral_delta = 0.01;
  const char* whose = "this run";  // that would find an effect of the least size
};

struct Judgement {
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;
  // Ratios base / candidate, where there are pairs, at 1 - alpha; given for BROKEN and INVALID too,
  // for the record. No interval and no least ratio where one process alone says nothing of others.
  std::optional<double> ratio;
  std::optional<Interval> interval;
  std::optional<double> mde_ratio;
};

Judgement Judge(const Evidence& evidence);

}  // namespace warpledger::analysis
