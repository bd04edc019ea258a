// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ablations/base/json_text.h"
#include "ablations/judge/measured.h"
#include "ablations/stats/family.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/parallel.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

using analysis::BoardEffect;
using analysis::Interval;
using analysis::PooledEffect;
using analysis::SpreadPrior;
using summary::Summary;
using summary::Verdict;

// One record's word on a comparison.
struct Effect {
  const Summary* record;
  const Verdict* verdict;
  double log_ratio;
  double standard_error;
  double capped_samples;  // of both arms
  double samples;

  const std::string& board() const { return record->provenance.gpu.uuid; }
};

// gpu, cache, toggle, the shape with its fields, machine code of base and candidate, estimand, and
// the configurations of both: levels of a launch-side toggle share their machine code.
using CodeKey = std::array<std::string, 9>;
// gpu, cache, toggle, base, candidate, shape
using ClaimName = std::array<std::string, 6>;

struct Effects {
  std::vector<CodeKey> order;
  std::map<CodeKey, std::vector<Effect>> of;
  std::map<std::string, int64_t> left_out;
};

absl::Status CheckRecords(absl::Span<const Summary> records) {
  if (records.empty()) return absl::InvalidArgumentError("there is no record to pool");
  std::set<std::string> seen;
  for (const Summary& record : records) {
    if (record.provenance.gpu.uuid.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          record.run_id, ": its run.json has no gpu.uuid, so which board it measured is unknown"));
    }
    if (!seen.insert(absl::StrCat(record.provenance.gpu.uuid, " ", record.run_id)).second) {
      return absl::InvalidArgumentError(absl::StrCat(record.run_id, " is given twice"));
    }
  }
  return absl::OkStatus();
}

// Why a verdict says nothing of the effect; empty where it does.
std::string WhyLeftOut(const Verdict& verdict, const std::string& base_code,
                       const std::string& candidate_code) {
  for (const auto unsound : {analysis::Verdict::kBroken, analysis::Verdict::kInvalid,
                             analysis::Verdict::kNotApplicable}) {
    if (verdict.verdict == analysis::VerdictName(unsound)) return verdict.verdict;
  }
  // How these differ between boards, no ledger has shown yet.
  if (verdict.estimand == summary::kOwnPower) return "each arm alone";
  if (base_code.empty() || candidate_code.empty()) return "no hash of the machine code";
  if (!verdict.ratio.value || !verdict.standard_error || !verdict.error_df) {
    return "fewer than two processes";
  }
  return "";
}

Effects EffectsOf(absl::Span<const Summary> records) {
  Effects effects;
  for (const Summary& record : records) {
    std::map<std::pair<std::string, std::string>, std::string> codes;
    std::map<std::string, std::string> configs;
    for (const summary::Cell& cell : record.cells) {
      codes[{cell.variant, cell.shape}] = cell.code_sha256.value_or("");
      configs[cell.variant] = cell.config;
    }
    std::map<std::string, std::string> problems;
    for (const ShapeInfo& problem : record.problems) {
      problems[problem.name] = absl::StrCat(problem.name, DumpLine(problem.fields));
    }
    for (const Verdict& verdict : record.verdicts) {
      const std::string base = codes[{verdict.base, verdict.shape}];
      const std::string candidate = codes[{verdict.candidate, verdict.shape}];
      if (const std::string why = WhyLeftOut(verdict, base, candidate); !why.empty()) {
        ++effects.left_out[why];
        continue;
      }
      const summary::PowerCapped capped = verdict.power_capped.value_or(summary::PowerCapped{});
      const CodeKey key = {record.provenance.gpu.name,
                           record.provenance.cache,
                           verdict.toggle,
                           problems[verdict.shape],
                           base,
                           candidate,
                           verdict.estimand,
                           configs[verdict.base],
                           configs[verdict.candidate]};
      std::vector<Effect>& of = effects.of[key];
      if (of.empty()) effects.order.push_back(key);
      if (!of.empty() && of.back().record == &record) {
        ++effects.left_out["a record's second pair of arms for one comparison"];
        continue;
      }
      of.push_back(
          {.record = &record,
           .verdict = &verdict,
           .log_ratio = std::log(*verdict.ratio.value),
           .standard_error = *verdict.standard_error,
           .capped_samples = static_cast<double>(capped.base_pairs + capped.candidate_pairs),
           .samples = 2 * static_cast<double>(verdict.n_pairs)});
    }
  }
  return effects;
}

const Regime& RegimeOfAll(const std::vector<Effect>& effects) {
  double capped = 0;
  double samples = 0;
  for (const Effect& effect : effects) {
    capped += effect.capped_samples;
    samples += effect.samples;
  }
  const bool in_cycles = effects[0].verdict->estimand == summary::kCycles;
  return RegimeOf(in_cycles || 2 * capped > samples, in_cycles);
}

// In the order of their boards' UUIDs. The error is one record's, whatever their number.
std::map<std::string, std::vector<Effect>> ByBoard(const std::vector<Effect>& effects) {
  std::map<std::string, std::vector<Effect>> by_board;
  for (const Effect& effect : effects) by_board[effect.board()].push_back(effect);
  return by_board;
}

BoardEffect OfBoard(const std::vector<Effect>& effects) {
  BoardEffect board;
  const double n = static_cast<double>(effects.size());
  for (const Effect& effect : effects) {
    board.effect += effect.log_ratio / n;
    board.standard_error += effect.standard_error * effect.standard_error / n;
  }
  board.standard_error = std::sqrt(board.standard_error);
  return board;
}

std::vector<BoardEffect> BoardEffects(const std::vector<Effect>& effects) {
  std::vector<BoardEffect> boards;
  for (const auto& [board, of_board] : ByBoard(effects)) boards.push_back(OfBoard(of_board));
  return boards;
}

// Without the board, for which nullptr stands for none.
std::vector<Effect> Without(const std::vector<Effect>& effects, const std::string* board) {
  std::vector<Effect> others;
  std::copy_if(effects.begin(), effects.end(), std::back_inserter(others),
               [&](const Effect& effect) { return board == nullptr || effect.board() != *board; });
  return others;
}

std::map<std::string, SpreadPrior> FitSpreads(const Effects& effects, const std::string* without) {
  std::map<std::string, std::vector<std::vector<BoardEffect>>> comparisons;
  for (const CodeKey& key : effects.order) {
    const std::vector<Effect> others = Without(effects.of.at(key), without);
    if (others.empty()) continue;
    comparisons[RegimeOfAll(others).name].push_back(BoardEffects(others));
  }
  std::map<std::string, SpreadPrior> spreads;
  for (const Regime* regime : kRegimes) {
    spreads[regime->name] = analysis::FitPrior(comparisons[regime->name], regime->spread);
  }
  return spreads;
}

// Of the error that is the mean over boards of the mean over their records.
double DegreesOfFreedom(const std::vector<Effect>& effects) {
  std::vector<analysis::VarianceEstimate> terms;
  for (const auto& [board, of_board] : ByBoard(effects)) {
    for (const Effect& effect : of_board) {
      const double share = 1 / static_cast<double>(of_board.size());
      terms.push_back(
          {share * effect.standard_error * effect.standard_error, *effect.verdict->error_df});
    }
  }
  return analysis::SumDegreesOfFreedom(terms);
}

summary::Estimate RatioOf(double log_ratio, const Interval& interval) {
  return summary::RatioOfLogs(log_ratio, interval.low, interval.high);
}

// With a standard error that its records' processes give.
summary::Estimate RatioWithin(double log_ratio, double error, const std::vector<Effect>& effects,
                              double confidence) {
  const analysis::Effect on_board =
      OnBoard(RegimeOfAll(effects), {log_ratio, error, DegreesOfFreedom(effects)});
  return RatioOf(log_ratio, on_board.At(confidence));
}

const Effect& Newest(const std::vector<Effect>& effects) {
  return *std::max_element(effects.begin(), effects.end(), [](const Effect& a, const Effect& b) {
    return a.record->provenance.created_utc < b.record->provenance.created_utc;
  });
}

summary::PooledBoard BoardOf(const std::string& uuid, const std::vector<Effect>& effects,
                             double confidence) {
  summary::PooledBoard board;
  board.gpu_uuid = uuid;
  for (const Effect& effect : effects) board.run_ids.push_back(effect.record->run_id);
  const BoardEffect of_board = OfBoard(effects);
  const double error = of_board.standard_error / std::sqrt(static_cast<double>(effects.size()));
  board.ratio = RatioWithin(of_board.effect, error, effects, confidence);
  return board;
}

summary::PooledComparison ComparisonOf(const CodeKey& key, const std::vector<Effect>& effects,
                                       const PooledEffect& pooled, double alpha,
                                       const PoolOptions& options) {
  const Verdict& newest = *Newest(effects).verdict;
  const analysis::Judgement judgement = analysis::Judge({.effect = pooled.Further(),
                                                         .processes = analysis::kMinProcesses,
                                                         .alpha = alpha,
                                                         .gate = newest.gate,
                                                         .neutral_delta = options.neutral_delta,
                                                         .whose = "these records"});
  summary::PooledComparison out;
  out.gpu = key[0];
  out.cache = key[1];
  out.toggle = key[2];
  out.base = newest.base;
  out.candidate = newest.candidate;
  out.shape = newest.shape;
  out.base_code_sha256 = key[4];
  out.candidate_code_sha256 = key[5];
  out.estimand = newest.estimand;
  out.regime = RegimeOfAll(effects).name;
  out.n_records = std::ssize(effects);
  for (const auto& [uuid, of_board] : ByBoard(effects)) {
    out.boards.push_back(BoardOf(uuid, of_board, options.confidence));
  }
  out.same_board = RatioWithin(pooled.mean, pooled.repeatability_sd, effects, options.confidence);
  out.mean_of_boards = RatioOf(pooled.mean, pooled.Mean().At(options.confidence));
  out.another_board = RatioOf(pooled.mean, pooled.Further().At(options.confidence));
  out.another_board_adjusted = RatioOf(pooled.mean, pooled.Further().At(1 - alpha));
  out.repeatability_sd = *SixDigits(pooled.repeatability_sd);
  out.between_boards_sd = *SixDigits(pooled.BetweenBoardsSd());
  out.df = *SixDigits(pooled.df);
  out.gate = newest.gate;
  out.adjusted_confidence = *SixDigits(1 - alpha);
  out.verdict = analysis::VerdictName(judgement.verdict);
  out.reason = judgement.reason;
  if (judgement.verdict == analysis::Verdict::kInconclusive) {
    out.boards_to_decide = BoardsToDecide(BoardEffects(effects), RegimeOfAll(effects).spread, alpha,
                                          options.neutral_delta);
    absl::StrAppend(&out.reason, "; ",
                    out.boards_to_decide ? absl::StrCat(*out.boards_to_decide)
                                         : absl::StrCat("not even ", Enough::kMostBoards),
                    " boards that say the same would decide");
  }
  return out;
}

// A family is the comparisons of each claim on a kind of GPU.
std::vector<double> AlphasOf(const Effects& effects, const std::vector<PooledEffect>& pooled,
                             const PoolOptions& options) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<size_t>> claims;
  for (size_t i = 0; i < pooled.size(); ++i) {
    const CodeKey& key = effects.order[i];
    claims[{key[0], key[1], key[2]}].push_back(i);
  }
  std::vector<double> alphas(pooled.size());
  for (const auto& [claim, members] : claims) {
    std::vector<double> p_values;
    for (const size_t member : members) {
      p_values.push_back(pooled[member].Further().DecisionPValue(options.neutral_delta));
    }
    const double alpha = analysis::FalseCoverageLevel(p_values, 1 - options.confidence);
    for (const size_t member : members) alphas[member] = alpha;
  }
  return alphas;
}

std::vector<summary::CodesOfName> OtherCode(const Effects& effects) {
  std::map<ClaimName, std::vector<std::vector<std::string>>> codes;
  for (const CodeKey& key : effects.order) {
    std::map<ClaimName, std::vector<std::string>> runs;
    for (const Effect& effect : effects.of.at(key)) {
      const Verdict& verdict = *effect.verdict;
      runs[{key[0], key[1], key[2], verdict.base, verdict.candidate, verdict.shape}].push_back(
          effect.record->run_id);
    }
    for (const auto& [name, run_ids] : runs) codes[name].push_back(run_ids);
  }
  std::vector<summary::CodesOfName> out;
  for (const auto& [name, run_ids] : codes) {
    if (run_ids.size() < 2) continue;
    out.push_back({name[0], name[1], name[2], name[3], name[4], name[5], run_ids});
  }
  return out;
}

// --- Leaving out boards ----------------------------------------------------------

struct Trial {
  const Summary* record;
  std::string regime;
  std::string boards;
  std::string effect;
  bool covered;
  double half_width;
};

// The spread between boards grows with the effect.
std::string SizeOf(double log_ratio) {
  const double size = std::expm1(std::fabs(log_ratio));
  return size < 0.02 ? "under 2%" : size < 0.08 ? "2 to 8%" : size < 0.32 ? "8 to 32%" : "32%+";
}

std::vector<Trial> TrialsWithout(const Effects& effects, const std::string& board,
                                 double confidence) {
  const std::map<std::string, SpreadPrior> spreads = FitSpreads(effects, &board);
  std::vector<Trial> trials;
  for (const CodeKey& key : effects.order) {
    const std::vector<Effect>& all = effects.of.at(key);
    const std::vector<Effect> others = Without(all, &board);
    if (others.empty() || others.size() == all.size()) continue;
    const std::string regime = RegimeOfAll(others).name;
    const std::vector<BoardEffect> boards = BoardEffects(others);
    const PooledEffect pooled = analysis::PoolEffects(boards, spreads.at(regime));
    const Interval interval = pooled.Further().At(confidence);
    for (const Effect& effect : all) {
      if (effect.board() != board) continue;
      trials.push_back(
          {.record = effect.record,
           .regime = regime,
           .boards = boards.size() < 4 ? absl::StrCat(boards.size()) : "4+",
           .effect = SizeOf(pooled.mean),
           .covered = interval.low <= effect.log_ratio && effect.log_ratio <= interval.high,
           .half_width = (interval.high - interval.low) / 2});
    }
  }
  return trials;
}

std::vector<summary::RecordDifferences> DifferencesOf(const Effects& effects) {
  struct Distances {
    std::vector<double> percent;
    std::vector<double> expected;
  };
  std::map<std::pair<std::string, std::string>, Distances> found;
  for (const CodeKey& key : effects.order) {
    const std::vector<Effect>& of = effects.of.at(key);
    const std::string regime = RegimeOfAll(of).name;
    for (size_t i = 0; i < of.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        const bool same = of[i].board() == of[k].board();
        Distances& distances = found[{same ? summary::kSameBoard : summary::kAnotherBoard, regime}];
        distances.percent.push_back(100 * std::fabs(of[i].log_ratio - of[k].log_ratio));
        // The median distance of a normal variate from its mean.
        distances.expected.push_back(67.45 *
                                     std::hypot(of[i].standard_error, of[k].standard_error));
      }
    }
  }
  std::vector<summary::RecordDifferences> differences;
  for (auto& [where, distances] : found) {
    double squares = 0;
    for (const double percent : distances.percent) squares += percent * percent;
    const int64_t pairs = std::ssize(distances.percent);
    differences.push_back(
        {.board = where.first,
         .regime = where.second,
         .pairs = pairs,
         .percent_p50 = *SixDigits(analysis::Median(std::move(distances.percent))),
         .percent_rms = *SixDigits(std::sqrt(squares / static_cast<double>(pairs))),
         .expected_percent_p50 = *SixDigits(analysis::Median(std::move(distances.expected)))});
  }
  return differences;
}

}  // namespace

absl::StatusOr<summary::Pooled> Pool(absl::Span<const Summary> records,
                                     const PoolOptions& options) {
  RETURN_IF_ERROR(CheckRecords(records));
  const Effects effects = EffectsOf(records);
  std::vector<PooledEffect> pooled;
  for (const CodeKey& key : effects.order) {
    const std::vector<Effect>& of = effects.of.at(key);
    pooled.push_back(analysis::PoolEffects(BoardEffects(of), RegimeOfAll(of).spread));
  }
  const std::vector<double> alphas = AlphasOf(effects, pooled, options);
  summary::Pooled out;
  out.confidence = options.confidence;
  out.neutral_delta = options.neutral_delta;
  out.n_records = std::ssize(records);
  for (const Regime* regime : kRegimes) {
    out.spreads.push_back(SpreadOf(regime->name, regime->spread));
  }
  for (size_t i = 0; i < pooled.size(); ++i) {
    const CodeKey& key = effects.order[i];
    out.comparisons.push_back(ComparisonOf(key, effects.of.at(key), pooled[i], alphas[i], options));
  }
  out.other_code = OtherCode(effects);
  out.left_out = effects.left_out;
  return out;
}

absl::StatusOr<summary::Coverage> LeaveOneBoardOut(absl::Span<const Summary> records,
                                                   const PoolOptions& options) {
  RETURN_IF_ERROR(CheckRecords(records));
  const Effects effects = EffectsOf(records);
  std::set<std::string> uuids;
  for (const Summary& record : records) uuids.insert(record.provenance.gpu.uuid);
  const std::vector<std::string> boards(uuids.begin(), uuids.end());
  std::vector<std::vector<Trial>> trials(boards.size());
  ParallelFor(std::ssize(boards), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    trials[at] = TrialsWithout(effects, boards[at], options.confidence);
  });
  summary::Coverage out;
  out.confidence = options.confidence;
  out.n_records = std::ssize(records);
  out.n_boards = std::ssize(boards);
  for (const auto& [regime, spread] : FitSpreads(effects, nullptr)) {
    out.spreads.push_back(SpreadOf(regime.c_str(), spread));
  }
  out.differences = DifferencesOf(effects);
  const std::string all = summary::kAll;
  std::map<std::array<std::string, 4>, std::vector<Trial>> rows;
  for (const std::vector<Trial>& of_board : trials) {
    for (const Trial& trial : of_board) {
      for (const std::string& regime : {all, trial.regime}) {
        rows[{all, regime, all, all}].push_back(trial);
        rows[{all, regime, trial.boards, all}].push_back(trial);
        rows[{all, regime, all, trial.effect}].push_back(trial);
        rows[{trial.record->design, regime, all, all}].push_back(trial);
      }
    }
  }
  for (const Summary& record : records) {
    summary::RecordCoverage of_record = {.run_id = record.run_id, .design = record.design};
    for (const std::vector<Trial>& of_board : trials) {
      for (const Trial& trial : of_board) {
        if (trial.record != &record) continue;
        ++of_record.trials;
        of_record.covered += trial.covered ? 1 : 0;
      }
    }
    if (of_record.trials > 0) out.records.push_back(std::move(of_record));
  }
  for (const auto& [row, of_row] : rows) {
    std::vector<double> half_widths;
    std::set<const Summary*> of_records;
    for (const Trial& trial : of_row) {
      half_widths.push_back(100 * trial.half_width);
      of_records.insert(trial.record);
    }
    out.rows.push_back(
        {.design = row[0],
         .regime = row[1],
         .boards = row[2],
         .effect = row[3],
         .records = std::ssize(of_records),
         .trials = std::ssize(of_row),
         .covered = std::count_if(of_row.begin(), of_row.end(),
                                  [](const Trial& trial) { return trial.covered; }),
         .half_width_percent_p50 = *SixDigits(analysis::Median(std::move(half_widths)))});
  }
  return out;
}

}  // namespace warpledger::ablations
