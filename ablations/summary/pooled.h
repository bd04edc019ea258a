// SPDX-License-Identifier: Apache-2.0
// What records of several boards say together (judge/compare/pool.h), as `warpledger pool --out`
// writes it. As summary.h.
//
//   nlohmann::ordered_json json = ablations::ToJson(*Pool(summaries, {}));

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ablations/record/record.h"
#include "ablations/summary/parts.h"

namespace warpledger::summary {

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
  Estimate same_board;  // repeatability: what another record of such a board would say
  Estimate mean_of_boards;
  Estimate another_board;  // reproducibility: what a record of another board of the kind would say
  double repeatability_sd = 0;
  double between_boards_sd = 0;
  double df = 0;
  double gate = 0;
  double adjusted_confidence = 0;
  std::string verdict;
  std::string reason;

  void Visit(auto& f) {
    FIELDS(gpu, cache, toggle, base, candidate, shape, base_code_sha256, candidate_code_sha256);
    f("estimand", estimand, kIsEstimand);
    f("regime", regime, kIsRegime);
    FIELDS(n_records, boards, same_board, mean_of_boards, another_board);
    f("repeatability_sd", repeatability_sd, "of log-ratios, as the next one");
    FIELDS(between_boards_sd, df, gate);
    f("adjusted_confidence", adjusted_confidence,
      "of the verdict, by the false coverage rate within the claim");
    f("verdict", verdict, kIsVerdict, "on another_board");
    f("reason", reason);
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
