// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <vector>

#include "absl/strings/str_split.h"
#include "reports/pages/pages.h"
#include "tests/ablations/judge/summarize_fixture.h"

namespace warpledger::report {
namespace {

using ::testing::HasSubstr;

summary::Summary Judged() {
  return Summarize(ablations::ExampleRecord(), ablations::SdpaSubject()).value();
}

TEST(VerdictTableTest, ShowsEveryVerdictAlignedWithin110Columns) {
  const std::string table = VerdictTable(Judged());
  const std::vector<std::string> lines = absl::StrSplit(table, '\n', absl::SkipEmpty());
  const size_t column = lines[0].find("verdict");
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 110u) << line;
  }
  EXPECT_THAT(table, HasSubstr("wmma_qk"));
  EXPECT_EQ(lines[1].substr(column), "REGRESSION") << lines[1];
  EXPECT_THAT(table, HasSubstr("(control) null"));
  EXPECT_THAT(table, HasSubstr("by its times alone: NEUTRAL"));
}

TEST(VerdictTableTest, LongNamesAndMissingFiguresKeepTheColumns) {
  summary::Summary summary = Judged();
  summary::Verdict& verdict = summary.verdicts[0];
  verdict.toggle = std::string(60, 't');
  verdict.shape = std::string(60, 's');
  verdict.ratio = {};
  verdict.verdict = "REAL_BELOW_GATE";
  const std::vector<std::string> lines =
      absl::StrSplit(VerdictTable(summary), '\n', absl::SkipEmpty());
  EXPECT_LE(lines[1].size(), 110u);
  EXPECT_EQ(lines[1].substr(lines[0].find("verdict")), "REAL_BELOW_GATE");
}

}  // namespace
}  // namespace warpledger::report
