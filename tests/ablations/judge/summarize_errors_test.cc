// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "tests/ablations/judge/summarize_fixture.h"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {
namespace {

void ForChecks(Record& record, const std::string& arm, const std::string& shape,
               const std::function<void(Check&)>& change) {
  for (Check& check : record.checks) {
    if (check.arm == arm && check.shape == shape) change(check);
  }
}

TEST(SummarizeErrors, AreListedWhereMeanErrorsLieFurtherApartThanTheFactor) {
  EXPECT_EQ(SummaryOf(ExampleRecord())["statistics"]["error_ratio"], 1.25);
  const auto listed = [](double ratio) {
    Record record = ExampleRecord();
    ForChecks(record, "ladder:wmma_qk", "mission_b", [&](Check& c) { c.mean_err *= ratio; });
    const Json summary = SummaryOf(record);
    EXPECT_FALSE(VerdictOn(summary, "wmma_qk", "small").contains("errors"));
    EXPECT_FALSE(VerdictOn(summary, "kv_tiling", "mission_b").contains("errors"));
    return VerdictOn(summary, "wmma_qk", "mission_b").contains("errors");
  };
  EXPECT_FALSE(listed(1));
  EXPECT_FALSE(listed(1.24));
  EXPECT_TRUE(listed(1.26));
  EXPECT_FALSE(listed(1 / 1.24));
  EXPECT_TRUE(listed(1 / 1.26));
}

TEST(SummarizeErrors, AreThoseOfBothArmsWithTheLargestSharesOfTheirLimits) {
  Record record = ExampleRecord();
  ForChecks(record, "ladder:wmma_qk", "mission_b", [](Check& check) { check.mean_err = 1.5e-06; });
  // Another process; what only one of the two has is in no mean, and in the shares.
  for (const auto& [arm, error] :
       {std::pair("ladder:kv_tiling", 2e-06), std::pair("ladder:wmma_qk", 1.7e-06)}) {
    Check check = ExampleCheck(arm, "mission_b");
    check.process = 1;
    check.mean_err = error;
    record.checks.push_back(check);
  }
  Check alone = ExampleCheck("ladder:wmma_qk", "mission_b");
  alone.process = 2;
  alone.mean_err = 1.9e-06;
  alone.max_err = 1.08e-04;
  alone.lse_err = std::nan("");
  record.checks.push_back(alone);
  // Not against the reference, and so not in any figure.
  Check timed = alone;
  timed.inputs = "timed_graph";
  timed.max_err = 1;
  record.checks.push_back(timed);
  EXPECT_FALSE(VerdictOn(SummaryOf(record), "wmma_qk", "mission_b").contains("errors"));
  ForChecks(record, "ladder:wmma_qk", "mission_b", [](Check& check) {
    if (check.process == 1) check.mean_err = 4.5e-06;
  });
  const Json errors = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b")["errors"];
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0], Json({{"inputs", "normal"},
                             {"mean_err", {1.5e-06, 3e-06}},
                             {"mean_share", {1.0, 2.25}},
                             {"max_share", {0.258333, 0.9}},
                             {"lse_share", {0.1, 0.1}},
                             {"correct", {true, true}}}));
}

TEST(SummarizeErrors, AFailedCheckListsTheErrorsOnAllInputsEvenOfNoLimit) {
  Record record = ExampleRecord();
  for (const char* arm : {"ladder:kv_tiling", "ladder:wmma_qk"}) {
    Check check = ExampleCheck(arm, "mission_b");
    check.inputs = "constant";
    check.mean_err = check.mean_err_limit = 0;
    check.lse_err = std::nan("");
    record.checks.push_back(check);
  }
  // From no error to one that passes is no finding of its own: it has no ratio.
  const auto set = [&](double mean_err, bool correct) {
    ForChecks(record, "ladder:wmma_qk", "mission_b", [&](Check& check) {
      if (check.inputs != "constant") return;
      check.mean_err = mean_err;
      check.correct = correct;
    });
    return VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  };
  EXPECT_FALSE(set(1e-09, true).contains("errors"));
  const Json errors = set(1e-03, false)["errors"];
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0]["inputs"], "normal");
  EXPECT_EQ(errors[0]["correct"], Json({true, true}));
  EXPECT_EQ(errors[1]["inputs"], "constant");
  EXPECT_EQ(errors[1]["correct"], Json({true, false}));
  EXPECT_EQ(errors[1]["mean_err"], Json({0.0, 1e-03}));
  EXPECT_EQ(errors[1]["mean_share"], Json({0.0, nullptr}));
  EXPECT_EQ(errors[1]["lse_share"], Json({nullptr, nullptr}));
}

}  // namespace
}  // namespace warpledger::ablations
