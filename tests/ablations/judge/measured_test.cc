// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/measured.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace warpledger::ablations {
namespace {

using analysis::Pair;

// Processes of three blocks, whose log-ratios of times are given; the candidate's clock is 1.25
// times the base's.
std::vector<Pair> Pairs(const std::vector<double>& log_ratios, bool capped) {
  std::vector<Pair> pairs;
  for (int process = 0; process < static_cast<int>(log_ratios.size()); ++process) {
    for (int block = 0; block < 3; ++block) {
      const double us = 10 * std::exp(-log_ratios[static_cast<size_t>(process)]);
      pairs.push_back({{.process = process, .block = block, .us = 10, .sm_mhz = 1200.5},
                       {.process = process, .block = block, .us = us, .sm_mhz = 1.25 * 1200.5}});
      pairs.back().base.power_capped = pairs.back().candidate.power_capped = capped;
    }
  }
  return pairs;
}

TEST(MeasuredTest, TimeIsComparedButCyclesWhereThePowerLimitActsAndSamplesHaveClocks) {
  const MeasuredEffect free = MeasuredOf(Pairs({0.1, 0.1}, false), true);
  EXPECT_EQ(free.regime, &kNotCapped);
  EXPECT_NEAR(free.log_ratio, 0.1, 1e-12);
  const MeasuredEffect capped = MeasuredOf(Pairs({0.1, 0.1}, true), true);
  EXPECT_EQ(capped.regime, &kCapped);
  EXPECT_NEAR(capped.log_ratio, 0.1 - std::log(1.25), 1e-12);
  const MeasuredEffect without_clocks = MeasuredOf(Pairs({0.1, 0.1}, true), false);
  EXPECT_EQ(without_clocks.regime, &kCappedTime);
  EXPECT_NEAR(without_clocks.log_ratio, 0.1, 1e-12);
  std::vector<Pair> one_unread = Pairs({0.1, 0.1}, true);
  one_unread[3].base.sm_mhz = 0;
  EXPECT_EQ(MeasuredOf(one_unread, true).regime, &kCappedTime);
  std::vector<Pair> half = Pairs({0.1, 0.1}, true);
  for (Pair& pair : half) pair.base.power_capped = false;
  EXPECT_EQ(MeasuredOf(half, true).regime, &kNotCapped) << "most samples, not half";
}

TEST(MeasuredTest, AFurtherBoardIsLessCertainThanThisOneAndThisOneThanItsProcesses) {
  const MeasuredEffect measured = MeasuredOf(Pairs({0.1, 0.101, 0.102}, false), true);
  EXPECT_NEAR(measured.Within().error, 0.001 / std::sqrt(3), 1e-12);
  EXPECT_EQ(measured.Within().df, 2);
  EXPECT_NEAR(measured.OnThisBoard().error, std::hypot(measured.Within().error, 0.0002), 1e-12);
  EXPECT_NEAR(measured.OnTheKind().error,
              std::sqrt(2 * kNotCapped.spread.Variance(measured.Within().error, 0.101)), 1e-12);
  EXPECT_DOUBLE_EQ(measured.OnTheKind().df, kNotCapped.spread.df);
}

TEST(MeasuredTest, WhereTheLedgerDoesNotKnowHowBoardsDifferThereIsThisBoardAlone) {
  MeasuredEffect measured = MeasuredOf(Pairs({0.010, 0.013, 0.016}, false), true);
  measured.boards_known = false;
  EXPECT_EQ(measured.OnTheKind().error, measured.OnThisBoard().error);
  EXPECT_EQ(measured.OnTheKind().df, 2);
  const Enough enough = EnoughToDecide(measured, 0.01, 0.01);
  EXPECT_FALSE(enough.boards.has_value());
  EXPECT_GT(enough.processes.value_or(0), 3);
}

TEST(MeasuredTest, OneProcessSaysNothingOfOthers) {
  const MeasuredEffect measured = MeasuredOf(Pairs({0.1}, false), true);
  EXPECT_TRUE(std::isinf(measured.Within().error));
  EXPECT_EQ(measured.OnTheKind().PValue(0), 1);
  EXPECT_FALSE(EnoughToDecide(measured, 0.05, 0.01).boards.has_value());
}

// Of 12 comparisons of 3 processes that scatter alike: 24 degrees of freedom, and with one base
// 4 · 12 · 2 / (12 + 3).
TEST(MeasuredTest, ComparisonsThatShareABaseKnowLessOfTheirVariances) {
  const auto df = [](bool one_base, bool one_shape) {
    std::vector<MeasuredEffect> record;
    for (int i = 0; i < 12; ++i) {
      record.push_back(MeasuredOf(Pairs({0, 0.001, 0.002}, false), true));
      const std::string number = std::to_string(i);
      SetSides(one_base ? "base" : "base " + number, "candidate " + number,
               one_shape ? "shape" : "shape " + number, &record.back());
    }
    std::vector<MeasuredEffect*> of_record;
    for (MeasuredEffect& measured : record) of_record.push_back(&measured);
    ShareVariances(of_record);
    return record[0].Within().df;
  };
  EXPECT_NEAR(df(true, true), 6.4, 1e-9);
  EXPECT_EQ(df(false, true), 24);
  EXPECT_EQ(df(true, false), 24) << "a base is timed anew on each shape";
}

TEST(MeasuredTest, TheEffectIsTheMeanOfTheProcessesMedians) {
  // The median of all pairs is 0.011.
  EXPECT_NEAR(MeasuredOf(Pairs({0.010, 0.011, 0.018}, false), true).log_ratio, 0.013, 1e-12);
}

TEST(MeasuredTest, VariancesAreSharedWithinARegimeAlone) {
  std::vector<MeasuredEffect> record;
  for (int i = 0; i < 12; ++i) {
    const double apart = 0.001 * (1 + i % 3);
    record.push_back(MeasuredOf(Pairs({0, apart, 2 * apart}, false), true));
  }
  record.push_back(MeasuredOf(Pairs({0, 0.05, 0.1}, true), true));
  record.push_back(MeasuredOf(Pairs({0.1}, false), true));
  std::vector<MeasuredEffect*> of_record;
  for (MeasuredEffect& measured : record) of_record.push_back(&measured);
  ShareVariances(of_record);
  EXPECT_GT(record[0].variance.variance, 1e-6);
  EXPECT_LT(record[2].variance.variance, 9e-6);
  EXPECT_GT(record[0].variance.df, 2);
  EXPECT_NEAR(record[12].variance.variance, 0.0025, 1e-12) << "of a regime of its own";
  EXPECT_EQ(record[13].variance.df, 0);
}

// So many processes of the effect 0.02, whose medians have the deviation 0.0045.
std::vector<double> Alike(int processes) {
  const double apart =
      processes % 2 == 1 ? 0.0045 : 0.0045 * std::sqrt((processes - 1.0) / processes);
  std::vector<double> log_ratios(static_cast<size_t>(processes % 2), 0.02);
  while (static_cast<int>(log_ratios.size()) < processes) {
    log_ratios.insert(log_ratios.end(), {0.02 - apart, 0.02 + apart});
  }
  return log_ratios;
}

TEST(MeasuredTest, SoManyProcessesDecideAndOneFewerDoesNot) {
  for (const bool boards_known : {true, false}) {
    for (const double alpha : {0.05, 0.025, 0.01, 0.002}) {
      const auto decides = [&](int processes) {
        MeasuredEffect measured = MeasuredOf(Pairs(Alike(processes), false), true);
        measured.boards_known = boards_known;
        return measured.OnTheKind().DecisionPValue(0.01) <= alpha;
      };
      MeasuredEffect measured = MeasuredOf(Pairs(Alike(3), false), true);
      measured.boards_known = boards_known;
      if (decides(3)) continue;
      const std::optional<int> enough = EnoughToDecide(measured, alpha, 0.01).processes;
      if (!enough) {
        EXPECT_FALSE(decides(Enough::kMostProcesses)) << alpha;
        continue;
      }
      EXPECT_TRUE(decides(*enough)) << *enough << " at " << alpha;
      EXPECT_FALSE(decides(*enough - 1)) << *enough << " at " << alpha;
    }
  }
}

TEST(MeasuredTest, SoManyBoardsThatSayTheSameDecideAndOneFewerDoesNot) {
  const MeasuredEffect measured = MeasuredOf(Pairs({0.0155, 0.02, 0.0245}, false), true);
  int told = 0;
  for (const double alpha : {0.04, 0.03, 0.02, 0.01, 0.005}) {
    const auto decides = [&](int boards) {
      const analysis::BoardEffect board = {measured.log_ratio, measured.Within().error};
      const std::vector<analysis::BoardEffect> all(static_cast<size_t>(boards), board);
      return analysis::PoolEffects(all, kNotCapped.spread).Further().DecisionPValue(0.01) <= alpha;
    };
    const std::optional<int> enough = EnoughToDecide(measured, alpha, 0.01).boards;
    if (!enough || decides(1)) continue;
    ++told;
    EXPECT_TRUE(decides(*enough)) << *enough << " at " << alpha;
    EXPECT_TRUE(*enough == 2 || !decides(*enough - 1)) << *enough << " at " << alpha;
  }
  EXPECT_GE(told, 2);
}

TEST(MeasuredTest, ProcessesOfAModeratedRecordAddToItsPrior) {
  const auto moderated = [](int processes) {
    std::vector<MeasuredEffect> record = {MeasuredOf(Pairs(Alike(processes), false), true)};
    for (int i = 0; i < 12; ++i) {
      const double apart = 0.001 * (1 + i % 6);
      record.push_back(MeasuredOf(Pairs({0, apart, 2 * apart}, false), true));
    }
    std::vector<MeasuredEffect*> of_record;
    for (MeasuredEffect& measured : record) {
      measured.boards_known = false;
      of_record.push_back(&measured);
    }
    ShareVariances(of_record);
    return record[0];
  };
  const MeasuredEffect three = moderated(3);
  ASSERT_GT(three.variance.df, 4);
  for (const double share : {0.1, 1e-3, 1e-5}) {
    const double alpha = share * three.OnTheKind().DecisionPValue(0.01);
    const std::optional<int> enough = EnoughToDecide(three, alpha, 0.01).processes;
    ASSERT_TRUE(enough) << alpha;
    // What the others share hardly changes by one comparison that has more processes.
    EXPECT_LE(moderated(*enough + 1).OnTheKind().DecisionPValue(0.01), alpha);
    EXPECT_GT(moderated(*enough - 2).OnTheKind().DecisionPValue(0.01), alpha);
  }
}

TEST(MeasuredTest, WhatWouldDecideIsNoMoreThanNeeded) {
  const MeasuredEffect measured = MeasuredOf(Pairs({0.0155, 0.02, 0.0245}, false), true);
  const Enough enough = EnoughToDecide(measured, 0.025, 0.01);
  ASSERT_TRUE(enough.boards.has_value());
  ASSERT_TRUE(enough.processes.has_value());
  EXPECT_GT(*enough.processes, 3);
  // At a stricter level it takes more, and beyond the most it is not said.
  const Enough stricter = EnoughToDecide(measured, 0.005, 0.01);
  EXPECT_GT(stricter.boards.value_or(100), *enough.boards);
  EXPECT_GT(stricter.processes.value_or(100), *enough.processes);
  EXPECT_FALSE(EnoughToDecide(MeasuredOf(Pairs({-0.08, 0.01, 0.10}, false), true), 0.05, 0.01)
                   .boards.has_value());
}

}  // namespace
}  // namespace warpledger::ablations
