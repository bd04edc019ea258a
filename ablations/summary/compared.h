// SPDX-License-Identifier: Apache-2.0
// What records say of each other. First two held against each other (judge/compare/compare.h), as
// `warpledger compare --format=json` writes it. As summary.h.
//
//   nlohmann::ordered_json json = ablations::ToJson(Compare(a, b));

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablations/record/record.h"
#include "ablations/summary/parts.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpledger::summary {

struct ComparedRun {
  std::string run_id;
  std::string gpu;
  std::string created_utc;
  std::string git_sha;
  std::string kernel_source_sha256;

  DESCRIBE_FIELDS(run_id, gpu, created_utc, git_sha, kernel_source_sha256)
};

// What else differs between the two runs: GPU, driver, compiler, sources, ….
struct Difference {
  std::string what;
  std::string a;
  std::string b;

  DESCRIBE_FIELDS(what, a, b)
};

struct ComparisonStatistics {
  double confidence = 0;
  int64_t family_size = 0;
  std::string correction;
  double neutral_delta = 0;
  std::string interval;  // how intervals are made

  DESCRIBE_FIELDS(confidence, family_size, correction, neutral_delta, interval)
};

// Empty where a side does not know it.
struct BothSides {
  std::optional<int64_t> a;
  std::optional<int64_t> b;

  DESCRIBE_FIELDS(a, b)
};

struct ComparedCell {
  std::string variant;  // A's name of the arm, or B's where A has no such cell
  std::optional<std::string> variant_b;
  std::string config;
  std::string shape;
  int64_t n_processes_a = 0;
  int64_t n_processes_b = 0;
  std::optional<double> p50_us_a;
  std::optional<double> p50_us_b;
  Estimate ratio;  // without bounds where a side has one process
  std::optional<double> adjusted_confidence;
  // FASTER, SLOWER, SAME (within neutral_delta, by two one-sided tests), CANNOT_TELL, or
  // NOT_COMPARED.
  std::string outcome;
  std::string reason;
  BothSides registers;
  BothSides smem_bytes;
  BothSides spill_bytes;
  BothSides stack_bytes;
  std::string code;  // same, changed or unknown

  bool Differs() const { return outcome == "FASTER" || outcome == "SLOWER"; }
  bool HasNoAnswer() const { return outcome == "NOT_COMPARED" || outcome == "CANNOT_TELL"; }

  void Visit(auto& f) {
    FIELDS(variant, variant_b, config, shape, n_processes_a, n_processes_b, p50_us_a, p50_us_b);
    ratio.Visit(f);
    FIELDS(adjusted_confidence, outcome, reason, registers, smem_bytes, spill_bytes, stack_bytes,
           code);
  }
};

// What neither side's kernels can change: the empty kernel, and peers of the same version.
struct ComparedReference {
  std::string name;
  std::string shape;
  Estimate ratio;      // time(A) / time(B)
  bool moved = false;  // surely by more than neutral_delta

  void Visit(auto& f) {
    FIELDS(name, shape);
    ratio.Visit(f);
    f("moved", moved);
  }
};

struct ChangedVerdict {
  std::string toggle;
  std::string shape;
  std::string base;
  std::string candidate;
  std::string verdict_a;
  std::optional<double> ratio_a;
  std::string verdict_b;
  std::optional<double> ratio_b;
  bool sign_flip = false;

  DESCRIBE_FIELDS(toggle, shape, base, candidate, verdict_a, ratio_a, verdict_b, ratio_b, sign_flip)
};

// Of the one-sided bound on the share of verdicts that agree.
inline constexpr double kAgreementConfidence = 0.95;

// Of the verdicts that are `compared`, those count as `decided` that both records answer with
// ADOPT, REAL_BELOW_GATE, NEUTRAL or REGRESSION; `unanswered` are those that one of them leaves
// INVALID, BROKEN or NOT_APPLICABLE.
struct VerdictsCompared {
  int64_t compared = 0;
  int64_t unanswered = 0;
  int64_t decided = 0;
  int64_t agreed = 0;
  std::optional<double> agreed_at_least;
  int64_t only_a = 0;
  int64_t only_b = 0;
  int64_t sign_flips = 0;
  std::vector<ChangedVerdict> changed;

  DESCRIBE_FIELDS(compared, unanswered, decided, agreed, agreed_at_least, only_a, only_b,
                  sign_flips, changed)
};

struct Comparison {
  ComparedRun a;
  ComparedRun b;
  std::vector<Difference> differences;
  ComparisonStatistics statistics;
  std::vector<ComparedCell> cells;
  std::vector<ComparedReference> references;
  VerdictsCompared verdicts;

  void Visit(auto& f) {
    ablations::VisitSchema(f, ablations::kSchemaVersion);
    FIELDS(a, b, differences, statistics, cells, references, verdicts);
  }
};

// What the regression gate (judge/compare/gate.h) says of a record: a value that pages print.
struct GateOptions {
  double tolerance = 0.02;  // largest slow-down that is let through, as a fraction
  bool allow_other_gpu = false;
  double confidence = 0.95;
  int bootstrap_resamples = 20000;
  uint64_t bootstrap_seed = 20240601;
};

enum class GateOutcome { kPass, kRegression, kCannotTell, kBroken, kMissing, kNew };

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
  // time(record) / time(baseline) - 1, where both have samples; no bounds where a side has one
  // process.
  std::optional<double> change;
  std::optional<double> low;
  std::optional<double> high;
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

  int64_t Count(GateOutcome outcome) const {
    return std::count_if(cells.begin(), cells.end(),
                         [&](const GateCell& cell) { return cell.outcome == outcome; });
  }
};

// "+0.52%" or "+12.3%": two decimals below 1%, where a tolerance of a few per mille is decided.
inline std::string ChangePercent(double fraction) {
  return absl::StrFormat("%+.*f%%", std::fabs(fraction) < 0.00995 ? 2 : 1, 100 * fraction);
}
// "[+0.52%, +12.3%]"
inline std::string ChangeInterval(double low, double high) {
  return absl::StrCat("[", ChangePercent(low), ", ", ChangePercent(high), "]");
}

// What records of several boards say together (judge/compare/pool.h), as `warpledger pool --out`
// writes it. As summary.h.
//
//   nlohmann::ordered_json json = ablations::ToJson(*Pool(summaries, {}));

inline constexpr char kSameBoard[] = "same";
inline constexpr char kAnotherBoard[] = "another";
// Stands for every design, or both regimes, in a table.
inline constexpr char kAll[] = "all";

// What the records of one board say of a comparison.
struct PooledBoard {
  std::string gpu_uuid;
  std::vector<std::string> run_ids;
  Estimate ratio;  // on this board

  void Visit(auto& f) {
    FIELDS(gpu_uuid, run_ids);
    ratio.Visit(f);
  }
};

// A claim's candidate against its base on a shape, as the same machine code on all boards.
struct PooledComparison {
  std::string gpu;  // its kind
  std::string cache;
  std::string toggle;
  std::string base;  // the arms, as the newest record names them
  std::string candidate;
  std::string shape;
  std::string base_code_sha256;
  std::string candidate_code_sha256;
  std::string estimand = kTime;
  std::string regime;
  int64_t n_records = 0;
  std::vector<PooledBoard> boards;
  Estimate same_board;  // the effect in one record's conditions; another record differs by more
  Estimate mean_of_boards;
  Estimate another_board;  // reproducibility: what a record of another board of the kind would say
  Estimate another_board_adjusted;  // the same at adjusted_confidence: the verdict rests on it
  double repeatability_sd = 0;
  double between_boards_sd = 0;
  double df = 0;
  double gate = 0;
  double adjusted_confidence = 0;
  std::string verdict;
  std::string reason;
  std::optional<int64_t> boards_to_decide;

  void Visit(auto& f) {
    FIELDS(gpu, cache, toggle, base, candidate, shape, base_code_sha256, candidate_code_sha256);
    f("estimand", estimand, kIsEstimand);
    f("regime", regime, kIsRegime);
    FIELDS(n_records, boards, same_board, mean_of_boards, another_board, another_board_adjusted);
    f("repeatability_sd", repeatability_sd, "of log-ratios, as the next one");
    FIELDS(between_boards_sd, df, gate);
    f("adjusted_confidence", adjusted_confidence,
      "of the verdict, by the false coverage rate within the claim");
    f("verdict", verdict, kIsVerdict, "on another_board_adjusted");
    f("reason", reason);
    f("boards_to_decide", boards_to_decide, kOnlyWhereSet,
      "of an INCONCLUSIVE one: so many boards that say the same would decide");
  }
};

// A name that stands for other machine code in other records, which are not pooled.
struct CodesOfName {
  std::string gpu;
  std::string cache;
  std::string toggle;
  std::string base;
  std::string candidate;
  std::string shape;
  std::vector<std::vector<std::string>> run_ids;  // of the same code together

  DESCRIBE_FIELDS(gpu, cache, toggle, base, candidate, shape, run_ids)
};

struct Pooled {
  double confidence = 0;  // of the three intervals
  double neutral_delta = 0;
  int64_t n_records = 0;
  std::vector<BoardSpread> spreads;
  std::vector<PooledComparison> comparisons;
  std::vector<CodesOfName> other_code;
  std::map<std::string, int64_t> left_out;  // verdicts of the records that say nothing, by why

  void Visit(auto& f) {
    ablations::VisitSchema(f, ablations::kSchemaVersion);
    FIELDS(confidence, neutral_delta, n_records, spreads, comparisons, other_code, left_out);
  }
};

// How often the interval for another board contained what that board's record says, where spreads
// and interval knew nothing of the board.
struct CoverageRow {
  std::string design;  // of the record that was left out; all
  std::string regime;  // all
  std::string boards;  // that the interval rests on: 1, 2, 3 or 4+; all
  std::string effect;  // how large their mean is; all
  int64_t records = 0;
  int64_t trials = 0;
  int64_t covered = 0;
  double half_width_percent_p50 = 0;

  DESCRIBE_FIELDS(design, regime, boards, effect, records, trials, covered, half_width_percent_p50)
};

// Misses of one record come together.
struct RecordCoverage {
  std::string run_id;
  std::string design;
  int64_t trials = 0;
  int64_t covered = 0;

  DESCRIBE_FIELDS(run_id, design, trials, covered)
};

// How far two records' effects of one comparison lie apart.
struct RecordDifferences {
  std::string board;  // same or another
  std::string regime;
  int64_t pairs = 0;
  double percent_p50 = 0;
  double percent_rms = 0;
  double expected_percent_p50 = 0;  // by the standard errors of the records alone

  void Visit(auto& f) {
    f("board", board, OneOf(kSameBoard, kAnotherBoard));
    f("regime", regime, kIsRegime);
    FIELDS(pairs, percent_p50, percent_rms, expected_percent_p50);
  }
};

struct Coverage {
  double confidence = 0;
  int64_t n_records = 0;
  int64_t n_boards = 0;
  std::vector<BoardSpread> spreads;  // of all boards
  std::vector<CoverageRow> rows;
  std::vector<RecordCoverage> records;
  std::vector<RecordDifferences> differences;

  void Visit(auto& f) {
    ablations::VisitSchema(f, ablations::kSchemaVersion);
    FIELDS(confidence, n_records, n_boards, spreads, rows, records, differences);
  }
};

}  // namespace warpledger::summary
