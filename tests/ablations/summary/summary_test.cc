// SPDX-License-Identifier: Apache-2.0
#include "ablations/summary/summary.h"

#include <gmock/gmock.h>

#include <functional>

#include "ablations/base/json_text.h"
#include "ablations/judge/summarize.h"
#include "ablations/subjects/sdpa/subject.h"
#include "tests/ablations/record/record_fixture.h"
#include "tests/reports/synthetic_summary.h"

namespace warpledger::summary {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;

TEST(SummaryTest, WhatTheJudgeWroteIsReadAndWrittenWithTheSameBytes) {
  const ordered_json judged = ablations::ToJson(
      ablations::Summarize(ablations::JudgeableRecord(), ablations::SdpaSubject()).value());
  const absl::StatusOr<Summary> summary = ablations::FromJson<Summary>(judged);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(ablations::DumpFile(ablations::ToJson(*summary)), ablations::DumpFile(judged));
}

TEST(SummaryTest, ASummaryOfTheFirstSchemaIsReadAsOneOfTimes) {
  ordered_json older = report::Synthetic();
  older["schema_version"] = 1;
  older["statistics"].erase("spreads");
  for (const char* field :
       {"estimand", "this_board_low", "this_board_high", "standard_error", "error_df"}) {
    for (ordered_json& verdict : older["verdicts"]) verdict.erase(field);
  }
  for (ordered_json& control : older["controls"]) control.erase("estimand");
  const absl::StatusOr<Summary> summary = ablations::FromJson<Summary>(older);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->verdicts[0].estimand, kTime);
  EXPECT_FALSE(summary->verdicts[0].standard_error.has_value());
}

TEST(SummaryTest, AnErrorNamesThePathOfADamagedField) {
  using Damage = std::function<void(ordered_json&)>;
  const ordered_json errors = {{"inputs", "normal"},   {"mean_err", {1, 2}},
                               {"mean_share", {1, 2}}, {"max_share", {1, 2}},
                               {"lse_share", {1, 2}},  {"correct", {true, true}}};
  const auto with_errors = [&](const char* field, const ordered_json& value) {
    return [=](ordered_json& j) {
      j["verdicts"][0]["errors"] = ordered_json::array({errors});
      j["verdicts"][0]["errors"][0][field] = value;
    };
  };
  const std::pair<Damage, const char*> damages[] = {
      {[](ordered_json& j) { j["cells"][3].erase("p50_us"); }, "cells[3].p50_us: missing"},
      {[](ordered_json& j) { j["cells"][0]["registers"] = "many"; },
       "cells[0].registers: expected an integer, found \"many\""},
      {[](ordered_json& j) { j["cells"][0]["registers"] = 1.5; },
       "cells[0].registers: expected an integer, found 1.5"},
      {[](ordered_json& j) { j["provenance"]["n_samples"] = INT64_MIN; },
       "provenance.n_samples: expected a number from 0 to 9007199254740992"},
      {[](ordered_json& j) { j["provenance"]["n_samples"] = UINT64_MAX; },
       "provenance.n_samples: expected an integer, found 18446744073709551615"},
      {[](ordered_json& j) { j["cells"][1]["speedup_over_first"].erase("ci_low"); },
       "cells[1].speedup_over_first.ci_low: missing"},
      {[](ordered_json& j) { j["peers"][2] = 7; }, "peers[2]: expected an object, found 7"},
      {[](ordered_json& j) { j.erase("verdicts"); }, "verdicts: missing"},
      {[](ordered_json& j) { j = ordered_json::array(); }, "expected an object, found a list of 0"},
      {[](ordered_json& j) { j["provenance"]["gpu"].erase("name"); },
       "provenance.gpu.name: missing"},
      {[](ordered_json& j) { j["cells"][0]["p50_us"] = 0; },
       "cells[0].p50_us: expected a number above 0, found 0"},
      {[](ordered_json& j) { j["verdicts"][4]["verdict"] = "GREAT"; },
       "verdicts[4].verdict: expected a verdict that this program knows, found \"GREAT\""},
      {[](ordered_json& j) { j["verdicts"][0]["change"]["registers"] = {40}; },
       "verdicts[0].change.registers: expected a list of two, found a list of 1"},
      {[](ordered_json& j) {
         j["verdicts"][0]["change"]["registers"] = {40, INT64_MAX};
       },
       "verdicts[0].change.registers: expected two counts"},
      {[](ordered_json& j) { j["statistics"]["confidence"] = 95; },
       "statistics.confidence: expected a number between 0 and 1, found 95"},
      {[](ordered_json& j) { j["statistics"]["error_ratio"] = 1; },
       "statistics.error_ratio: expected a number above 1, found 1"},
      {[](ordered_json& j) { j["schema_version"] = 3; }, "this record has schema 3"},
      {with_errors("mean_err", 3), "verdicts[0].errors[0].mean_err: expected a list of two"},
      {with_errors("correct", {true}), "verdicts[0].errors[0].correct: expected a list of two"},
  };
  for (const auto& [damage, message] : damages) {
    ordered_json json = report::Synthetic();
    damage(json);
    EXPECT_THAT(std::string(ablations::FromJson<Summary>(json).status().message()),
                HasSubstr(message));
  }
}

}  // namespace
}  // namespace warpledger::summary
