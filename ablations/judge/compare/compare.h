// SPDX-License-Identifier: Apache-2.0
// Two records side by side: which cells are the same thing measured twice, how
// their times and resources differ, and which verdicts changed.
//
// Contract
// - Side A is the base: a ratio is time(A) / time(B), above 1 B is faster.
// - A cell is one arm on one shape; controls, peers and floors are none. Cells
//   are matched by printed configuration and shape, because an arm's name may
//   stand for another configuration in another version; where several arms of B
//   have it, the one of the same name goes first.
// - Samples of two records are never paired (stats/log_ratios.h). Levels are
//   Holm's over all matched cells.
// - A visit in which the GPU waited for the host counts for nothing, as in the
//   judge. A cell that lost more than half of its visits tells nothing.
// - A run that a stopping rule could end early is compared up to the look that it
//   reached, and its intervals have the share of alpha of that look, where both
//   runs have a rule the product of both (stopping.h).
// - References are what neither side's kernels can change: the empty kernel, and
//   peers of the same version. When they moved, something else than the kernels
//   differs between the runs.
// - Deterministic: equal records and options give equal bytes.
//
// Errors: those of LoadRecord and Summarize; a toggle that this program's
// registry does not know is FailedPrecondition.
//
//   absl::StatusOr<JudgedRecord> a = LoadJudged("out/before", subject_of, {});
//   absl::StatusOr<JudgedRecord> b = LoadJudged("out/after", subject_of, {});
//   const summary::Comparison comparison = Compare(*a, *b);
//   std::cout << report::ComparisonText(comparison);  // reports/compared/compared.h

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ablations/judge/summarize.h"
#include "ablations/record/store.h"
#include "ablations/stats/family.h"
#include "ablations/stats/log_ratios.h"
#include "ablations/summary/compared.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// A record with what `Summarize` says of it.
struct JudgedRecord {
  Record record;
  summary::Summary summary;
};

// The subject of a record that was loaded.
using FindSubjectOf = std::function<absl::StatusOr<const Subject*>(const RunInfo& run)>;

absl::StatusOr<JudgedRecord> LoadJudged(const std::string& dir, const FindSubjectOf& subject_of,
                                        const SummarizeOptions& options);

// One side of a cell. Empty figures do not exist in that record.
struct CellFacts {
  std::string arm;
  std::string why_broken;   // failed or missing check on this shape; empty: correct
  std::string why_starved;  // not enough visits are left; empty: they are
  int n_processes = 0;
  int64_t n_samples = 0;    // that count
  int64_t n_throttled = 0;  // by anything but the power limit
  int64_t n_power_capped = 0;
  std::optional<double> p50_us;
  std::optional<double> sm_mhz;
  std::optional<int64_t> registers;
  std::optional<int64_t> smem_bytes;  // static and dynamic
  std::optional<int64_t> spill_bytes;
  std::optional<int64_t> stack_bytes;
  std::string code_sha256;  // empty: unknown
};

struct MatchedCell {
  std::string variant;  // A's name of the arm, or B's where A has no such cell
  std::string config;
  std::string shape;
  std::optional<CellFacts> a;
  std::optional<CellFacts> b;
  // Reasons, empty where they do not apply. `missing`: one side has no such cell,
  // or another problem under the shape's name. `broken`: a side failed its check
  // or had none. `unusable`: the times can't speak of the kernels, because of
  // a slow host, throttling, too few processes, or other clocks on a GPU of the
  // same kind.
  std::string missing;
  std::string broken;
  std::string unusable;
  double alpha_share = 1;  // what the looks of both runs leave of alpha
  // Of ln(time(A) / time(B)); empty when a side has no samples that count.
  std::optional<analysis::UnpairedLogRatio> log_ratio;

  bool SameCode() const {
    return a && b && !a->code_sha256.empty() && a->code_sha256 == b->code_sha256;
  }
};

// In A's order, then what only B has. `confidence` sizes the bootstrap: its
// resamples are enough to see Holm's smallest level.
struct MatchOptions {
  double confidence = 0.95;
  int bootstrap_resamples = 20000;
  uint64_t bootstrap_seed = 20240601;
};
std::vector<MatchedCell> MatchCells(const JudgedRecord& a, const JudgedRecord& b,
                                    const MatchOptions& options);

// Holm's levels for testing each cell against `null`, a log-ratio; one for each
// cell. Cells without usable times are members with p = 1, so that what is counted
// does not depend on the outcome; missing cells are none, and their level is 0.
std::vector<analysis::HolmLevel> LevelsAgainst(const std::vector<MatchedCell>& cells, double null,
                                               double confidence);

struct Reference {
  std::string name;
  std::string shape;
  double ratio = 1;  // time(A) / time(B)
  analysis::Interval interval;
  bool moved = false;  // surely by more than `neutral_delta`
};
std::vector<Reference> MatchReferences(const JudgedRecord& a, const JudgedRecord& b,
                                       const MatchOptions& options, double neutral_delta);

// What else differs between the two runs: GPU, driver, compiler, sources, ….
std::vector<summary::Difference> Differences(const RunInfo& a, const RunInfo& b);
bool SameGpu(const RunInfo& a, const RunInfo& b);  // the very same board

summary::Comparison Compare(const JudgedRecord& a, const JudgedRecord& b,
                            const SummarizeOptions& options = {});

}  // namespace warpledger::ablations
