// SPDX-License-Identifier: Apache-2.0
#include "reports/sections/published.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"
#include "tests/reports/from_json.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;

// The synthetic record as a leave-one-out of the Hopper kernel: `mission_b` becomes a problem of
// head_dim 128, where the last step is judged as softmax_overlap.
ordered_json LeaveOneOut() {
  std::ifstream file("tests/reports/testdata/summary.json");
  EXPECT_TRUE(file) << "run the test from the repository's root";
  ordered_json json = ordered_json::parse(file);
  json["design"] = "hopper_leave_one_out";
  for (ordered_json& shape : json["shapes"]) {
    if (shape["name"] == "mission_b" || shape["name"] == "long") shape["head_dim"] = 128;
  }
  for (ordered_json& verdict : json["verdicts"]) {
    if (verdict["toggle"] == "wmma_pv") verdict["toggle"] = "softmax_overlap";
  }
  return json;
}

std::string PublishedSection(const ordered_json& json) {
  return PublishedSection(ViewOf(json).value());
}

TEST(PublishedSectionTest, StandsInThatDesignsReportAlone) {
  ordered_json json = LeaveOneOut();
  EXPECT_NE(PublishedSection(json), "");
  json["design"] = "leave_one_out";
  EXPECT_EQ(PublishedSection(json), "");
}

TEST(PublishedSectionTest, SetsOursAtTheNearestLengthBesideTheirs) {
  const std::string text = PublishedSection(LeaveOneOut());
  EXPECT_THAT(text, HasSubstr("Ours: `long`"));
  EXPECT_THAT(text, HasSubstr("| overlap of GEMM and softmax within a warpgroup | 582 → 661 | "
                              "1.136× | `softmax_overlap` | "));
  const absl::StatusOr<Summary> summary = ViewOf(LeaveOneOut());
  const Verdict* verdict = nullptr;
  for (const Verdict& v : summary->verdicts) {
    if (v.toggle == "softmax_overlap" && v.shape == "long") verdict = &v;
  }
  ASSERT_NE(verdict, nullptr);
  EXPECT_THAT(text, HasSubstr("| 2.55× [2.54, 2.56] | **" + verdict->verdict + "** |"));
}

TEST(PublishedSectionTest, NamesTheDesignThatJudgesWhatThisOneDoesNot) {
  EXPECT_THAT(
      PublishedSection(LeaveOneOut()),
      HasSubstr("| warp specialisation | 570 → 661 | 1.160× | without `wgmma_inline_loads` | "
                "– | – | – | on our static schedule; judged by the design `hopper_plus` |"));
}

TEST(PublishedSectionTest, TurnsAToggleRoundThatLeavesOut) {
  ordered_json json = LeaveOneOut();
  json["design"] = "hopper_plus";
  for (ordered_json& verdict : json["verdicts"]) {
    if (verdict["toggle"] == "softmax_overlap") verdict["toggle"] = "wgmma_inline_loads";
  }
  const Summary summary = ViewOf(json).value();
  const Verdict* verdict = FindToggleVerdict(summary, "wgmma_inline_loads", "long");
  ASSERT_NE(verdict, nullptr);
  const auto tflops = [&](const std::string& variant) {
    return FormatTflops(summary.FindCell(variant, "long")->tflops);
  };
  const std::string text = PublishedSection(json);
  EXPECT_THAT(text, HasSubstr("| warp specialisation | 570 → 661 | 1.160× | without "
                              "`wgmma_inline_loads` | " +
                              tflops(verdict->candidate) + " → " + tflops(verdict->base) +
                              " | 0.392× [0.390, 0.394] | **" + verdict->verdict + "** |"));
  EXPECT_THAT(text, HasSubstr("judged by the design `hopper_leave_one_out`"));
}

TEST(PublishedSectionTest, SaysSoWithoutAShapeOfThatHeadDimension) {
  ordered_json json = LeaveOneOut();
  for (ordered_json& shape : json["shapes"]) shape["head_dim"] = 64;
  EXPECT_THAT(PublishedSection(json),
              HasSubstr("This record has no shape of that head dimension and mask"));
}

TEST(PublishedTest, LeavingOutMakesEachArmSlower) {
  for (const PublishedArm& arm : kFlashAttention3.arms) {
    EXPECT_TRUE(arm.toggle != nullptr && !arm.design.empty()) << arm.without;
    EXPECT_GT(kFlashAttention3.whole_tflops, arm.tflops) << arm.without;
  }
}

}  // namespace
}  // namespace warpledger::report
