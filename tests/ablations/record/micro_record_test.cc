// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/micro_record.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "ablations/base/files.h"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;

class MicroRecordTest : public ::testing::Test {
 protected:
  void Write(const std::string& folder, const std::string& text) {
    std::filesystem::create_directories(dir_ / folder);
    std::ofstream(dir_ / folder / "micro.json") << text;
  }
  static std::string Text(const std::string& slug, double value) {
    return R"({"schema_version": 1, "gpu": {"slug": ")" + slug + R"(", "uuid": "GPU-1"},
      "provenance": {"started": "2026-11-21T01:00:00", "processes": 3, "n_samples": 27},
      "micro": [{"name": "a/b/c", "unit": "cycles", "value": )" +
           std::to_string(value) + R"(, "percent_of_limit": null, "kind": "cycles"},
        {"name": "a/b/d", "unit": "GB/s", "value": 2, "percent_of_limit": 33.33333333}]})";
  }

  const ScratchFolder folder_ = ScratchFolder::Make().value();
  const std::filesystem::path dir_ = folder_.path();
};

TEST_F(MicroRecordTest, QuotesTheNewestOfTheGpu) {
  Write("micro-20260101T000000Z", Text("h200", 1));
  Write("micro-20260202T000000Z", Text("h200", 2.00000049));
  Write("micro-20260303T000000Z", Text("l4", 3));
  Write("ladder-20260404T000000Z", Text("h200", 4));
  const auto found = NewestMicroRecord(dir_.string(), "h200").value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->provenance["run_id"], "micro-20260202T000000Z");
  EXPECT_EQ(found->provenance["gpu_uuid"], "GPU-1");
  EXPECT_EQ(found->dir, (dir_ / "micro-20260202T000000Z").string());
  ASSERT_EQ(found->entries.size(), 2);
  EXPECT_EQ(found->entries[0].dump(),
            R"({"name":"a/b/c","unit":"cycles","value":2.0,"percent_of_limit":null})");
  EXPECT_EQ(found->entries[1]["percent_of_limit"], 33.3333);
}

TEST_F(MicroRecordTest, HasNothingToSayWhereNothingWasMeasured) {
  Write("micro-20260303T000000Z", Text("l4", 3));
  std::filesystem::create_directories(dir_ / "micro-20260505T000000Z");  // still running
  for (const std::string& dir : {dir_.string(), (dir_ / "gone").string()}) {
    const auto found = NewestMicroRecord(dir, "h200").value();
    EXPECT_FALSE(found.has_value());
  }
}

TEST_F(MicroRecordTest, SaysWhichFileIsDamaged) {
  for (const char* text : {"{", R"({"gpu": {"slug": "h200"}})"}) {
    Write("micro-20260101T000000Z", text);
    const auto found = NewestMicroRecord(dir_.string(), "h200");
    EXPECT_EQ(found.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(found.status().message()), HasSubstr("micro-20260101T000000Z"));
  }
}

}  // namespace
}  // namespace warpledger::ablations
