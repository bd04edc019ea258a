// SPDX-License-Identifier: Apache-2.0
// The report reads what the judge writes: a record made in memory goes through
// Summarize() into the renderer, so that the two can't drift apart.

#include <gmock/gmock.h>

#include <fstream>

#include "ablations/judge/summarize.h"
#include "ablations/subjects/sdpa/subject.h"
#include "reports/pages/pages.h"
#include "tests/ablations/record/record_fixture.h"
#include "tests/reports/from_json.h"

namespace warpledger::report {
namespace {

using ::testing::HasSubstr;

TEST(SummaryContractTest, TheReportRendersWhatTheJudgeWrites) {
  const nlohmann::ordered_json summary = ablations::ToJson(
      ablations::Summarize(ablations::JudgeableRecord(), ablations::SdpaSubject()).value());
  const absl::StatusOr<std::string> report = RenderReport(summary, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(*report, HasSubstr("### `b1_h8_s512_d64`"));
  EXPECT_THAT(*report, HasSubstr("### K/V tiling, serial reductions (`kv_tiling`)"));
  EXPECT_TRUE(RenderReadmeSection(summary, {}).ok());
}

// The fixture of the other tests must have the judge's fields, or they would
// test a schema of their own.
TEST(SummaryContractTest, TheSyntheticSummaryHasEveryFieldThatTheJudgeWrites) {
  const nlohmann::ordered_json judged = ablations::ToJson(
      ablations::Summarize(ablations::JudgeableRecord(), ablations::SdpaSubject()).value());
  std::ifstream file("tests/reports/testdata/summary.json");
  const nlohmann::ordered_json synthetic = nlohmann::ordered_json::parse(file);
  for (const auto& [key, value] : judged.items()) {
    ASSERT_TRUE(synthetic.contains(key)) << key;
    if (!value.is_array() || value.empty()) continue;
    ASSERT_FALSE(synthetic[key].empty()) << key;
    for (const auto& [field, ignored] : value[0].items()) {
      EXPECT_TRUE(synthetic[key][0].contains(field)) << key << "[]." << field;
    }
  }
  for (const char* key : {"provenance", "statistics", "controls_summary"}) {
    for (const auto& [field, ignored] : judged[key].items()) {
      EXPECT_TRUE(synthetic[key].contains(field)) << key << "." << field;
    }
  }
}

}  // namespace
}  // namespace warpledger::report
