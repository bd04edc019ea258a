// SPDX-License-Identifier: Apache-2.0
// A regression gate: is any cell of a record slower than in a baseline, by more
// than a declared tolerance?
//
// Contract
// - The change of a cell is time(record) / time(baseline) - 1: above 0 is slower.
//   Its interval, at the level that Holm gives it over all cells compared,
//   decides: wholly above the tolerance is a REGRESSION, wholly at or below it a
//   PASS, anything else is CANNOT_TELL. So neither a pass nor a failure is ever
//   given for want of evidence.
// - BROKEN (failed its check, or had none) and MISSING cells are never timed
//   against each other. Cells that only the record has are NEW: listed, not held
//   against anything.
// - Records of different boards, cache modes or both are refused as a whole,
//   with the reason: boards of one model differ by more than small tolerances.
// - Cells, conditions and references are compare.h's.
//
// The exit code is the gravest that applies, in the order of the constants below.
//
//   absl::StatusOr<GateResult> gate = Gate(baseline, record, {.tolerance = 0.02});
//   WriteFileAtomically("gate.xml", GateJUnit(*gate));
//   return gate->exit;

#ifndef WARPLEDGER_ABLATIONS_JUDGE_COMPARE_GATE_H_
#define WARPLEDGER_ABLATIONS_JUDGE_COMPARE_GATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablations/judge/compare/compare.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

struct GateOptions {
  double tolerance = 0.02;  // largest slow-down that is let through, as a fraction
  bool allow_other_gpu = false;
  double confidence = 0.95;
  int bootstrap_resamples = 20000;
  uint64_t bootstrap_seed = 20240601;
};

enum class GateOutcome { kPass, kRegression, kCannotTell, kBroken, kMissing, kNew };
const char* GateOutcomeName(GateOutcome outcome);

// A regression that was shown stays shown, whatever else could not be compared;
// hence it goes first.
inline constexpr int kGateRegression = 1;
inline constexpr int kGateNotCompared = 3;
inline constexpr int kGateCannotTell = 2;
inline constexpr int kGatePass = 0;

struct GateCell {
  std::string variant;
  std::string config;
  std::string shape;
  GateOutcome outcome = GateOutcome::kPass;
  std::string reason;
  std::optional<double> baseline_us;
  std::optional<double> record_us;
  // time(record) / time(baseline) - 1, where both have samples.
  std::optional<double> change;
  analysis::Interval interval;
  double adjusted_confidence = 0;
};

struct GateResult {
  GateOptions options;
  std::string baseline;  // run ids
  std::string record;
  std::string gpu;          // the record's
  std::string why_refused;  // the records as a whole; then there are no cells
  std::vector<GateCell> cells;
  std::vector<std::string> notes;  // references that moved, conditions that differ
  int exit = kGatePass;

  int Count(GateOutcome outcome) const;
};

// InvalidArgument for a tolerance outside (0, 1].
absl::StatusOr<GateResult> Gate(const JudgedRecord& baseline, const JudgedRecord& record,
                                const GateOptions& options);

// What there is to write where the records could not even be read: exit 3, no cells,
// and `why`. `baseline` and `record` are their folders.
GateResult RefusedGate(const std::string& baseline, const std::string& record,
                       const std::string& why, const GateOptions& options);

nlohmann::ordered_json GateJson(const GateResult& result);
std::string GateText(const GateResult& result);
// For a pull request: the sentence, then what is not a PASS, then the rest folded.
std::string GateMarkdown(const GateResult& result);
// One test case per cell, `classname` the shape and `name` the variant. A
// REGRESSION is a failure; BROKEN, MISSING and refused records are errors;
// CANNOT_TELL and NEW are skipped, because they gave no answer (the exit code
// still tells CANNOT_TELL from a pass).
std::string GateJUnit(const GateResult& result);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_JUDGE_COMPARE_GATE_H_
