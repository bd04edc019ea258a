// SPDX-License-Identifier: Apache-2.0
// The tables of fields in reports/RECORD.md are what the descriptions say. With WARPLEDGER_RENEW
// set, the test writes them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/plan/calibration.h"
#include "ablations/record/field_table.h"
#include "ablations/record/profile.h"
#include "ablations/record/record.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

constexpr char kPage[] = "reports/RECORD.md";

std::vector<std::pair<std::string, std::string>> Tables() {
  return {{"run.json", FieldTable<RunInfo>()},
          {"samples.jsonl", FieldTable<Sample>()},
          {"correctness.jsonl", FieldTable<Check>()},
          {"broken.jsonl", FieldTable<BrokenArm>()},
          {"calls.jsonl", FieldTable<LaunchedCall>()},
          {"resources.json", FieldTable<ResourcesFile>()},
          {"codegen.json", FieldTable<Codegen>()},
          {"launch.json", FieldTable<LaunchFile>()},
          {"peers.json", FieldTable<PeersFile>()},
          {"pilot", FieldTable<DelayPilot>()},
          {"blocks.jsonl", FieldTable<CalibrationBlock>()},
          {"checks", FieldTable<CalibrationChecks>()},
          {"profile.json", FieldTable<ProfileInfo>()},
          {"profiles.jsonl", FieldTable<Profile>()}};
}

TEST(RecordSchema, OfThePageIsThatOfTheDescriptions) {
  const std::string page = ReadFile(kPage).value();
  std::string renewed = page;
  for (const auto& [file, table] : Tables()) {
    const std::string begin = absl::StrCat("<!-- fields:", file, " begin -->\n");
    const std::string end = absl::StrCat("<!-- fields:", file, " end -->\n");
    const size_t from = renewed.find(begin);
    const size_t to = renewed.find(end);
    ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to)
        << kPage << " lacks the lines around the table of " << file;
    renewed.replace(from + begin.size(), to - from - begin.size(), table);
  }
  if (std::getenv("WARPLEDGER_RENEW") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(kPage, renewed).ok());
  }
  EXPECT_EQ(*ReadFile(kPage), renewed) << "WARPLEDGER_RENEW=1 renews the page";
}

}  // namespace
}  // namespace warpledger::ablations
