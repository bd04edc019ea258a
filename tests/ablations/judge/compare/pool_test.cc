// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/pool.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "ablations/stats/distributions.h"
#include "absl/strings/str_cat.h"
#include "reports/compared/compared.h"
#include "reports/model/text.h"
#include "tests/ablations/judge/compare/compared_records.h"

namespace warpledger::ablations {
namespace {

using summary::Summary;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kMeasured[] = "ladder:kv_tiling";

// Of one board; `shift` multiplies the time of kv_tiling on `small`.
Summary Of(const std::string& board, uint64_t seed, double shift = 1,
           const ExampleNoise& noise = {}) {
  Record record = ExampleRecord(seed, noise);
  record.run.gpu.uuid = board;
  ScaleTimes(record, kMeasured, "small", shift);
  return Judged(std::move(record)).summary;
}

summary::Pooled PoolOf(const std::vector<Summary>& records) {
  absl::StatusOr<summary::Pooled> pooled = Pool(records, {});
  EXPECT_TRUE(pooled.ok()) << pooled.status();
  return pooled.ok() ? *std::move(pooled) : summary::Pooled();
}

const summary::PooledComparison& TilingOnSmall(const summary::Pooled& pooled) {
  static const summary::PooledComparison kNone;
  for (const summary::PooledComparison& comparison : pooled.comparisons) {
    if (comparison.candidate == kMeasured && comparison.shape == "small") return comparison;
  }
  ADD_FAILURE() << "no such comparison";
  return kNone;
}

double Width(const summary::Estimate& ratio) { return std::log(*ratio.high / *ratio.low); }

TEST(PoolTest, OneRecordHasTheLedgersSpreadBetweenBoards) {
  const summary::Pooled pooled = PoolOf({Of("GPU-1", 1)});
  const summary::PooledComparison& tiling = TilingOnSmall(pooled);
  ASSERT_EQ(tiling.boards.size(), 1u);
  EXPECT_EQ(tiling.n_records, 1);
  EXPECT_NEAR(*tiling.another_board.value, 0.8, 0.001);
  EXPECT_EQ(tiling.same_board, tiling.boards[0].ratio);
  EXPECT_LT(Width(tiling.same_board), Width(tiling.mean_of_boards));
  EXPECT_LT(Width(tiling.mean_of_boards), Width(tiling.another_board));
  EXPECT_EQ(tiling.regime, summary::kNotCapped);
  EXPECT_NEAR(tiling.df, pooled.spreads[0].df, 1e-9);
}

TEST(PoolTest, OneRecordHasItsOwnVerdicts) {
  const Summary record = Of("GPU-1", 1);
  const summary::Pooled pooled = PoolOf({record});
  ASSERT_EQ(pooled.comparisons.size(), record.verdicts.size());
  for (size_t i = 0; i < record.verdicts.size(); ++i) {
    EXPECT_EQ(pooled.comparisons[i].verdict, record.verdicts[i].verdict);
    EXPECT_EQ(pooled.comparisons[i].adjusted_confidence, record.verdicts[i].adjusted_confidence);
  }
}

TEST(PoolTest, BoardsThatAgreeNarrowTheIntervalForAnother) {
  const summary::PooledComparison one = TilingOnSmall(PoolOf({Of("GPU-1", 1)}));
  const summary::PooledComparison four =
      TilingOnSmall(PoolOf({Of("GPU-1", 1), Of("GPU-2", 2), Of("GPU-3", 3), Of("GPU-4", 4)}));
  EXPECT_EQ(four.boards.size(), 4u);
  EXPECT_LT(Width(four.another_board), Width(one.another_board) / 2);
  EXPECT_EQ(four.verdict, "REGRESSION");
}

TEST(PoolTest, BoardsThatDifferWidenIt) {
  const summary::PooledComparison alike =
      TilingOnSmall(PoolOf({Of("GPU-1", 1), Of("GPU-2", 2), Of("GPU-3", 3)}));
  const summary::PooledComparison apart =
      TilingOnSmall(PoolOf({Of("GPU-1", 1), Of("GPU-2", 2, 0.97), Of("GPU-3", 3, 1.03)}));
  EXPECT_GT(Width(apart.another_board), 5 * Width(alike.another_board));
  EXPECT_GT(apart.between_boards_sd, 0.02);
  // Within a board nothing changed.
  EXPECT_NEAR(Width(apart.same_board), Width(alike.same_board), 1e-4);
}

TEST(PoolTest, AnInconclusiveVerdictSaysHowManyBoardsWouldDecide) {
  const auto of_boards = [](int64_t count, double shift, double noise = 0.03) {
    std::vector<Summary> records;
    for (int64_t i = 0; i < count; ++i) {
      records.push_back(Of(absl::StrCat("GPU-", i), 1, shift, {.block = noise}));
    }
    return PoolOf(records);
  };
  constexpr double kTwoPercentFaster = 0.8 / 1.02;
  const summary::Pooled one = of_boards(1, kTwoPercentFaster);
  const summary::PooledComparison& tiling = TilingOnSmall(one);
  ASSERT_EQ(tiling.verdict, "INCONCLUSIVE") << tiling.reason;
  ASSERT_TRUE(tiling.boards_to_decide) << tiling.reason;
  const int64_t enough = *tiling.boards_to_decide;
  const std::string says = absl::StrCat(enough, " boards that say the same would decide");
  EXPECT_THAT(tiling.reason, HasSubstr(says));
  EXPECT_THAT(report::PooledText(one), HasSubstr(says));
  EXPECT_EQ(TilingOnSmall(of_boards(enough - 1, kTwoPercentFaster)).verdict, "INCONCLUSIVE");
  EXPECT_NE(TilingOnSmall(of_boards(enough, kTwoPercentFaster)).verdict, "INCONCLUSIVE");
  // Of an effect that is far smaller than the noise, no number does.
  const summary::PooledComparison noisy = TilingOnSmall(of_boards(1, 0.8 / 1.005, 0.5));
  EXPECT_EQ(noisy.verdict, "INCONCLUSIVE");
  EXPECT_FALSE(noisy.boards_to_decide);
  EXPECT_THAT(noisy.reason, HasSubstr("not even 20 boards that say the same would decide"));
}

TEST(PoolTest, TheTextShowsTheIntervalThatTheVerdictRestsOn) {
  // Of a claim on two shapes one is decided, so that the level of both is 97.5%.
  const summary::Pooled pooled = PoolOf({Of("GPU-1", 1, 0.8 / 1.02, {.block = 0.03})});
  const summary::PooledComparison& tiling = TilingOnSmall(pooled);
  ASSERT_EQ(tiling.verdict, "INCONCLUSIVE") << tiling.reason;
  ASSERT_EQ(tiling.adjusted_confidence, 0.975);
  EXPECT_GT(Width(tiling.another_board_adjusted), 1.3 * Width(tiling.another_board));
  EXPECT_THAT(report::PooledText(pooled),
              HasSubstr(report::FormatRatioInterval(tiling.another_board_adjusted.low,
                                                    tiling.another_board_adjusted.high)));
}

TEST(PoolTest, RecordsOfOneBoardAreOneBoard) {
  const summary::PooledComparison once = TilingOnSmall(PoolOf({Of("GPU-1", 1)}));
  const summary::PooledComparison twice = TilingOnSmall(PoolOf({Of("GPU-1", 1), Of("GPU-1", 2)}));
  ASSERT_EQ(twice.boards.size(), 1u);
  EXPECT_EQ(twice.n_records, 2);
  EXPECT_THAT(twice.boards[0].run_ids, ElementsAre("example-1", "example-2"));
  EXPECT_EQ(twice.df, once.df);
  EXPECT_GT(Width(twice.another_board), 0.5 * Width(once.another_board));
}

// The record with one more level of kv_tiling on `small`, of the same machine code.
Summary WithAnotherLevel(Summary record, const std::string& arm, const std::string& config,
                         double ratio) {
  const auto is_tiling = [](const auto& of, const std::string& name) {
    return name == kMeasured && of.shape == "small";
  };
  const auto cell =
      std::find_if(record.cells.begin(), record.cells.end(),
                   [&](const summary::Cell& of) { return is_tiling(of, of.variant); });
  const auto verdict =
      std::find_if(record.verdicts.begin(), record.verdicts.end(),
                   [&](const summary::Verdict& of) { return is_tiling(of, of.candidate); });
  summary::Cell other_cell = *cell;
  other_cell.variant = arm;
  other_cell.config = config;
  summary::Verdict other = *verdict;
  other.candidate = arm;
  other.ratio.value = ratio;
  record.cells.push_back(other_cell);
  record.verdicts.push_back(other);
  return record;
}

TEST(PoolTest, LevelsThatShareMachineCodeAreTwoComparisons) {
  const auto of = [](const std::string& board, uint64_t seed) {
    return WithAnotherLevel(Of(board, seed), "sweep:kv_tiling=2", "kv_tiling=2", 0.9);
  };
  const summary::Pooled pooled = PoolOf({of("GPU-1", 1), of("GPU-2", 2)});
  EXPECT_EQ(pooled.comparisons.size(), 5u);
  for (const summary::PooledComparison& comparison : pooled.comparisons) {
    EXPECT_EQ(comparison.n_records, 2) << comparison.candidate;
    if (comparison.shape != "small" || comparison.toggle != "kv_tiling") continue;
    EXPECT_NEAR(*comparison.another_board.value, comparison.candidate == kMeasured ? 0.8 : 0.9,
                0.001);
  }
  EXPECT_TRUE(pooled.other_code.empty());
  EXPECT_TRUE(pooled.left_out.empty());
}

TEST(PoolTest, ARecordStandsOnceUnderAComparison) {
  const Summary twice = WithAnotherLevel(Of("GPU-1", 1), "again:kv_tiling", "kv_tiling", 0.9);
  const summary::Pooled pooled = PoolOf({twice, Of("GPU-2", 2)});
  EXPECT_EQ(pooled.comparisons.size(), 4u);
  EXPECT_EQ(TilingOnSmall(pooled).n_records, 2);
  EXPECT_NEAR(*TilingOnSmall(pooled).another_board.value, 0.8, 0.001);
  EXPECT_EQ(pooled.left_out.at("a record's second pair of arms for one comparison"), 1);
}

TEST(PoolTest, ARecordAloneSaysAsItsPageHowManyBoardsWouldDecide) {
  int undecided = 0;
  for (const double faster : {1.01, 1.015, 1.02, 1.025}) {
    const Summary record = Of("GPU-1", 1, 0.8 / faster, {.block = 0.03});
    const summary::Pooled pooled = PoolOf({record});
    for (size_t i = 0; i < record.verdicts.size(); ++i) {
      if (record.verdicts[i].verdict != "INCONCLUSIVE") continue;
      ++undecided;
      EXPECT_EQ(pooled.comparisons[i].boards_to_decide, record.verdicts[i].boards_to_decide)
          << record.verdicts[i].reason;
    }
  }
  EXPECT_GE(undecided, 3);
}

TEST(PoolTest, RecordsOfUnequalErrorsHaveFewerDegreesOfFreedomThanTheirSum) {
  Summary loud = Of("GPU-1", 1);
  Summary quiet = Of("GPU-1", 2);
  for (auto [record, error, df] : {std::tuple(&loud, 0.01, 4.0), {&quiet, 0.001, 40.0}}) {
    for (summary::Verdict& verdict : record->verdicts) {
      verdict.standard_error = error;
      verdict.error_df = df;
    }
  }
  const summary::PooledComparison tiling = TilingOnSmall(PoolOf({loud, quiet}));
  // By hand: (1e-4 + 1e-6)^2 / (1e-8 / 4 + 1e-12 / 40).
  const double t = analysis::StudentCritical(0.05, 4.08036);
  const double of_mean = std::hypot(std::sqrt(1e-4 + 1e-6) / 2, 0.0002);
  EXPECT_NEAR(Width(tiling.boards[0].ratio), 2 * t * of_mean, 2e-5);
  const double of_one = std::hypot(std::sqrt((1e-4 + 1e-6) / 2), 0.0002);
  EXPECT_NEAR(Width(tiling.same_board), 2 * t * of_one, 2e-5);
}

TEST(PoolTest, OtherMachineCodeIsNamedAndNotPooled) {
  Record other = ExampleRecord(2);
  other.run.gpu.uuid = "GPU-2";
  for (auto& instance : other.codegen->instances) {
    if (instance.variant == "kv_tiling") instance.code_sha256 = "another";
  }
  const summary::Pooled pooled = PoolOf({Of("GPU-1", 1), Judged(std::move(other)).summary});
  EXPECT_EQ(TilingOnSmall(pooled).boards.size(), 1u);
  ASSERT_FALSE(pooled.other_code.empty());
  EXPECT_EQ(pooled.other_code[0].run_ids.size(), 2u);
  EXPECT_THAT(report::PooledText(pooled), HasSubstr("Not pooled, because the machine code"));
}

TEST(PoolTest, KindsOfGpuAreNotPooled) {
  Record other = ExampleRecord(2);
  other.run.gpu.uuid = "GPU-2";
  other.run.gpu.name = "NVIDIA H100";
  const summary::Pooled pooled = PoolOf({Of("GPU-1", 1), Judged(std::move(other)).summary});
  for (const summary::PooledComparison& comparison : pooled.comparisons) {
    EXPECT_EQ(comparison.boards.size(), 1u);
  }
  EXPECT_TRUE(pooled.other_code.empty());
  EXPECT_THAT(report::PooledText(pooled), HasSubstr("NVIDIA H100"));
}

TEST(PoolTest, WhatSaysNothingIsCounted) {
  Record broken = ExampleRecord(1);
  for (Check& check : broken.checks) {
    if (check.arm == kMeasured) check.correct = false;
  }
  const summary::Pooled pooled = PoolOf({Judged(std::move(broken)).summary});
  EXPECT_EQ(pooled.left_out.at("BROKEN"), 4);  // each step on two shapes has it as an arm
  Record alone = ExampleRecord(1, {.processes = 1});
  EXPECT_EQ(PoolOf({Judged(std::move(alone)).summary}).left_out.at("fewer than two processes"), 4);
}

TEST(PoolTest, RefusesWhatItCanNotPool) {
  EXPECT_THAT(Pool({}, {}).status().message(), HasSubstr("no record"));
  EXPECT_THAT(Pool({Of("GPU-1", 1), Of("GPU-1", 1)}, {}).status().message(),
              HasSubstr("example-1 is given twice"));
  EXPECT_THAT(Pool({Of("", 1)}, {}).status().message(), HasSubstr("gpu.uuid"));
  EXPECT_THAT(LeaveOneBoardOut({}, {}).status().message(), HasSubstr("no record"));
}

TEST(PoolTest, ReadsBackWhatItWrites) {
  const summary::Pooled pooled = PoolOf({Of("GPU-1", 1), Of("GPU-2", 2)});
  const auto json = ToJson(pooled);
  EXPECT_EQ(ToJson(*FromJson<summary::Pooled>(json)), json);
}

TEST(LeaveOneBoardOutTest, CountsEachRecordOfABoardThatOthersShare) {
  const std::vector<Summary> records = {Of("GPU-1", 1), Of("GPU-2", 2), Of("GPU-3", 3, 1.5)};
  const absl::StatusOr<summary::Coverage> coverage = LeaveOneBoardOut(records, {});
  ASSERT_TRUE(coverage.ok()) << coverage.status();
  EXPECT_EQ(coverage->n_boards, 3);
  const auto& rows = coverage->rows;
  const auto total = std::find_if(rows.begin(), rows.end(), [](const summary::CoverageRow& row) {
    return row.design == summary::kAll && row.regime == summary::kAll && row.boards == "2";
  });
  ASSERT_NE(total, rows.end());
  EXPECT_EQ(total->trials, 12);  // four comparisons on three boards
  EXPECT_EQ(total->records, 3);
  ASSERT_EQ(coverage->records.size(), 3u);
  EXPECT_EQ(coverage->records[2].run_id, "example-3");
  EXPECT_EQ(coverage->records[2].trials, 4);
  int64_t by_effect = 0;
  for (const summary::CoverageRow& row : rows) {
    if (row.regime == summary::kAll && row.effect != summary::kAll) by_effect += row.trials;
  }
  EXPECT_EQ(by_effect, 12);
  // kv_tiling on `small` is half as slow again on the third, which the first two can't foresee.
  EXPECT_EQ(total->covered, 10);
  EXPECT_THAT(report::CoverageText(*coverage), HasSubstr("3 boards, 3 records"));
  ASSERT_EQ(coverage->differences.size(), 1u);
  EXPECT_EQ(coverage->differences[0].board, summary::kAnotherBoard);
  EXPECT_EQ(coverage->differences[0].pairs, 12);
  EXPECT_GT(coverage->differences[0].percent_rms, 10);
  EXPECT_LT(coverage->differences[0].percent_p50, 0.5);
}

TEST(LeaveOneBoardOutTest, OneBoardHasNoTrial) {
  const absl::StatusOr<summary::Coverage> coverage = LeaveOneBoardOut({Of("GPU-1", 1)}, {});
  ASSERT_TRUE(coverage.ok());
  EXPECT_TRUE(coverage->rows.empty());
}

}  // namespace
}  // namespace warpledger::ablations
