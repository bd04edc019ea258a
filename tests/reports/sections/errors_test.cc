// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "reports/sections/sections.h"
#include "tests/reports/from_json.h"
#include "tests/reports/synthetic_summary.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

ordered_json Errors(const std::string& inputs, double before, double after) {
  return {{"inputs", inputs},        {"mean_err", {before, after}}, {"mean_share", {0.3, 0.6}},
          {"max_share", {0.2, 0.4}}, {"lse_share", {0.01, 0.02}},   {"correct", {true, true}}};
}

std::string ErrorsSection(const ordered_json& json) { return ErrorSection(ViewOf(json).value()); }

TEST(ErrorSectionTest, IsOneSentenceWhereNothingDiffers) {
  EXPECT_EQ(
      ErrorsSection(Synthetic()),
      "## Errors\n\nEvery check passed, and no toggle changes the mean error of O by more than "
      "a factor of 1.25, on any inputs where neither error is 0 "
      "(`ablations/judge/summarize.h` says "
      "why this factor).\n");
}

TEST(ErrorSectionTest, IsLeftOutWhereTheSummaryDoesNotSayOrNothingIsJudged) {
  ordered_json older = Synthetic();
  older["statistics"].erase("error_ratio");
  EXPECT_EQ(ErrorsSection(older), "");
  ordered_json without = Synthetic();
  without["verdicts"] = ordered_json::array();
  EXPECT_EQ(ErrorsSection(without), "");
}

TEST(ErrorSectionTest, ShowsErrorsRatioSharesAndCorrectnessOfAToggleThatMovesThem) {
  ordered_json json = Synthetic();
  ordered_json& errors = Find(json["verdicts"], "toggle", "wmma_pv", "long")["errors"];
  errors = {Errors("normal", 1e-05, 1.54e-05), Errors("outliers", 1e-04, 1.1e-04),
            Errors("constant", 0, 1e-06)};
  errors[1]["max_share"] = {0.2, 0.9};
  const std::string text = ErrorsSection(json);
  EXPECT_THAT(text, HasSubstr("| toggle | without it | with it | shapes | mean error, `normal` | "
                              "mean error, `outliers` | mean error, `constant` | of the limits: "
                              "mean, largest, log-sum-exp | correct |\n"));
  EXPECT_THAT(text, HasSubstr("\n| `wmma_pv` | `ladder:cp_async_stages` | `ladder:wmma_pv` | "
                              "`long` | 1.0e-05 → 1.5e-05, **1.540×** | 1.0e-04 → 1.1e-04, 1.100× "
                              "| 0.0e+00 → 1.0e-06 | 60%, 90%, 2% | yes |\n"));
  // The other shapes and toggles stay silent.
  EXPECT_THAT(text, Not(HasSubstr("`b1_h8_s512_d64`")));
  EXPECT_THAT(text, Not(HasSubstr("`kv_tiling`")));
}

TEST(ErrorSectionTest, ShapesShareARowWhereTheRatiosHardlyDiffer) {
  ordered_json json = Synthetic();
  const auto set = [&](const char* shape, double before, double after, double share) {
    ordered_json& errors = Find(json["verdicts"], "toggle", "wmma_pv", shape)["errors"];
    errors = {Errors("normal", before, after), Errors("constant", 0, 0)};
    errors[0]["mean_share"] = {0.3, share};
  };
  set("small", 1e-05, 2e-05, 0.5);
  set("medium", 1e-05, 2.4e-05, 0.6);   // 1.2 times the ratio of the first
  set("mission_a", 2e-05, 5.2e-05, 1);  // 1.3 times it
  set("mission_b", 4e-06, 8e-06, 0.7);  // as the first
  set("long", 1e-05, 2e-05, 0.8);       // as the first, and wrong
  Find(json["cells"], "variant", "ladder:wmma_pv", "long")["correct"] = false;
  const std::string text = ErrorsSection(json);
  EXPECT_THAT(text,
              HasSubstr("| `small`, `medium` and `b1_h8_s512_d64` | 1.0e-05 → 2.4e-05, **2.00× to "
                        "2.40×** | 0.0e+00 → 0.0e+00 | 70%, 40%, 2% | yes |\n"));
  EXPECT_THAT(text,
              HasSubstr("| `b2_h8_s256_d64` | 2.0e-05 → 5.2e-05, **2.60×** | 0.0e+00 → 0.0e+00 | "
                        "100%, 40%, 2% | yes |\n"));
  EXPECT_THAT(text, HasSubstr("| `long` | 1.0e-05 → 2.0e-05, **2.00×** | 0.0e+00 → 0.0e+00 | 80%, "
                              "40%, 2% | **no** |\n"));
}

TEST(ErrorSectionTest, MarksWhatIsOverItsLimitAndWhatIsWrong) {
  ordered_json json = Synthetic();
  ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b");
  verdict["verdict"] = "BROKEN";
  verdict["errors"] = {Errors("normal", 2e-05, 2e-05), Errors("constant", 0, 1e-02)};
  verdict["errors"][0]["lse_share"] = {0.02, 17.6};
  verdict["errors"][1]["mean_share"] = {0, nullptr};
  verdict["errors"][1]["lse_share"] = {nullptr, nullptr};
  verdict["errors"][1]["correct"] = {true, false};
  Find(json["cells"], "variant", "ladder:wmma_pv", "mission_b")["correct"] = false;
  const std::string text = ErrorsSection(json);
  EXPECT_THAT(text, HasSubstr("| 2.0e-05 → 2.0e-05, 1.000× | 0.0e+00 → 1.0e-02 | **∞**, 40%, "
                              "**1760%** | **no** |"));
  EXPECT_THAT(text, Not(HasSubstr("Broken without")));
}

TEST(ErrorSectionTest, SaysThatTheBaseIsTheWrongOne) {
  ordered_json json = Synthetic();
  ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b");
  verdict["verdict"] = "BROKEN";
  verdict["errors"] = {Errors("constant", 4e-02, 8e-05)};
  verdict["errors"][0]["mean_share"] = {316, 0.67};
  Find(json["cells"], "variant", "ladder:cp_async_stages", "mission_b")["correct"] = false;
  const std::string text = ErrorsSection(json);
  EXPECT_THAT(text, HasSubstr("| 4.0e-02 → 8.0e-05, **0.002×** | 67%, 40%, 2% | yes; without it "
                              "**no** |"));
  EXPECT_THAT(text, Not(HasSubstr("Broken without")));
}

TEST(ErrorSectionTest, GivesTheReasonWhereNoErrorIsOverItsLimit) {
  ordered_json json = Synthetic();
  ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b");
  verdict["verdict"] = "BROKEN";
  verdict["reason"] = "ladder:wmma_pv: trap: unspecified launch failure";
  Find(json["cells"], "variant", "ladder:wmma_pv", "mission_b")["correct"] = false;
  const std::string text = ErrorsSection(json);
  EXPECT_THAT(text, HasSubstr("| `b1_h8_s512_d64` | –, –, – | **no** |"));
  EXPECT_THAT(text,
              HasSubstr("\nBroken without an error over its limit:\n\n- `ladder:wmma_pv` at "
                        "`b1_h8_s512_d64`: ladder:wmma_pv: trap: unspecified launch failure\n"));
}

TEST(ErrorSectionTest, SaysWhichErrorsLeaveTheCostOfStorageOut) {
  const std::string kNote = "So these are errors of the arithmetic.";
  ordered_json json = Synthetic();
  Find(json["verdicts"], "toggle", "wmma_pv", "long")["errors"] = {Errors("normal", 1, 2)};
  EXPECT_THAT(ErrorsSection(json), Not(HasSubstr(kNote)));
  // Configurations as the registry prints them.
  Find(json["cells"], "variant", "ladder:cp_async_stages", "long")["config"] = "mma_sync";
  ordered_json& config = Find(json["cells"], "variant", "ladder:wmma_pv", "long")["config"];
  config = "mma_sync+mma_kv_dtype=3";
  EXPECT_THAT(ErrorsSection(json), HasSubstr("`wmma_pv` changes what K and V are stored as"));
  EXPECT_THAT(ErrorsSection(json), HasSubstr(kNote));
  Find(json["cells"], "variant", "ladder:cp_async_stages", "long")["config"] = "wgmma";
  config = "wgmma+wgmma_fp8";
  EXPECT_THAT(ErrorsSection(json), HasSubstr("`wmma_pv` changes what Q, K and V are stored as"));
  EXPECT_THAT(ErrorsSection(json), HasSubstr("errors of the arithmetic, in which P is FP8 too."));
}

TEST(ErrorSectionTest, StandsInLaddersAndInOtherDesigns) {
  ordered_json json = Synthetic();
  for (const char* design : {"ladder", "one_on"}) {
    json["design"] = design;
    const std::string page = RenderReport(json, {}).value();
    EXPECT_THAT(page, HasSubstr("\n## Errors\n")) << design;
  }
}

}  // namespace
}  // namespace warpledger::report
