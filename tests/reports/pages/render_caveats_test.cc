// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "reports/model/options.h"
#include "tests/reports/from_json.h"
#include "tests/reports/pages/render_fixture.h"
#include "tests/reports/synthetic_summary.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RenderReportTest, ADesignWithoutVerdictsSaysSoAndShowsNoPictureOfThem) {
  ordered_json json = Synthetic();
  json["design"] = "mma_bf16";
  json["verdicts"] = ordered_json::array();
  const std::string page = Render(json);
  EXPECT_THAT(page, HasSubstr("No toggle is judged here"));
  EXPECT_THAT(page, Not(HasSubstr("What each toggle does")));
  EXPECT_THAT(page, Not(HasSubstr("_effects.svg")));
}

TEST(RenderReportTest, ShowsABrokenStepAndNeverRanksIt) {
  ordered_json json = Synthetic();
  ordered_json& cell = Find(json["cells"], "variant", "ladder:wmma_pv", "mission_b");
  cell["correct"] = false;
  cell["max_err"] = 0.41;
  ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b");
  verdict["verdict"] = "BROKEN";
  verdict["reason"] = "max_err 0.41 exceeds its limit";
  verdict["prediction_held"] = true;
  const std::string report = Render(json);
  const std::string section = Section(report, "### `b1_h8_s512_d64`");
  EXPECT_EQ(
      Row(section, "`wmma_pv`"),
      "| WMMA for P V `wmma_pv` | 14.22 | [14.16, 14.27] | – | – | – | 96 | 36.2 | 0 | 5 | 1600 "
      "→ 1700: `HMMA` 0 → 32, `LDS` 80 → 54, `MUFU` 8 → 4 | **no** (4.1e-01 against 1.2e-04) | "
      "**BROKEN** | 656.0 |");
  EXPECT_THAT(section, HasSubstr("- `wmma_pv`: max_err 0.41 exceeds its limit\n"));
  EXPECT_THAT(report, HasSubstr("At `b1_h8_s512_d64` the fastest step is `cp_async_stages`"));
  EXPECT_THAT(Section(report, "### Peers at `b1_h8_s512_d64`"),
              HasSubstr("Ours: `cp_async_stages`"));
  EXPECT_THAT(Section(report, "### WMMA for P V (`wmma_pv`)"),
              HasSubstr("the verdict at `b1_h8_s512_d64` is `BROKEN`"));
}

TEST(RenderReportTest, NeverRanksAStepWhoseTimingIsInvalid) {
  ordered_json json = Synthetic();
  Find(json["verdicts"], "toggle", "wmma_pv", "mission_b")["verdict"] = "INVALID";
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("At `b1_h8_s512_d64` the fastest step is `cp_async_stages`"));
  EXPECT_THAT(report, HasSubstr("**INVALID** (the timing is no evidence), 1 step: `wmma_pv`.\n"));
}

TEST(RenderReportTest, NeverRanksAStepThatWasNotChecked) {
  ordered_json json = Synthetic();
  Find(json["cells"], "variant", "ladder:wmma_pv", "mission_b")["correct"] = nullptr;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("At `b1_h8_s512_d64` the fastest step is `cp_async_stages`"));
  EXPECT_THAT(Row(Section(report, "### `b1_h8_s512_d64`"), "`wmma_pv`"),
              HasSubstr("| not checked |"));
}

TEST(RenderReportTest, PrintsAnEnDashForEveryFigureThatIsNull) {
  ordered_json json = Synthetic();
  ordered_json& cell = Find(json["cells"], "variant", "ladder:wmma_pv", "mission_b");
  for (const char* key :
       {"max_err", "max_err_rule", "p50_us", "ci_low_us", "ci_high_us", "tflops",
        "speedup_over_first", "registers", "smem_bytes", "spill_bytes", "ctas_per_sm"}) {
    cell[key] = nullptr;
  }
  ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b");
  for (const char* key : {"ratio", "ci_low", "ci_high", "adjusted_confidence"}) {
    verdict[key] = nullptr;
  }
  verdict["verdict"] = "NOT_APPLICABLE";
  EXPECT_EQ(
      Row(Section(Render(json), "### `b1_h8_s512_d64`"), "`wmma_pv`"),
      "| WMMA for P V `wmma_pv` | – | – | – | – | – | – | – | – | – | 1600 → 1700: `HMMA` 0 → "
      "32, `LDS` 80 → 54, `MUFU` 8 → 4 | yes | "
      "**NOT_APPLICABLE** | 656.0 |");
}

TEST(RenderReportTest, SaysSoWhenNothingPassedCorrectness) {
  ordered_json json = Synthetic();
  for (ordered_json& cell : json["cells"]) cell["correct"] = false;
  for (ordered_json& verdict : json["verdicts"]) verdict["verdict"] = "BROKEN";
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("At `b1_h8_s512_d64` no step passed"));
  EXPECT_THAT(report, HasSubstr("No step of ours is ranked"));
}

TEST(RenderReportTest, RendersARecordWithoutPeersFloorsAndControls) {
  ordered_json json = Synthetic();
  json["peers"] = ordered_json::array();
  json["floors"] = ordered_json::array();
  json["controls"] = ordered_json::array();
  json["controls_summary"]["trials"] = 0;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("has no peer"));
  EXPECT_THAT(report, HasSubstr("No control was timed"));
  EXPECT_THAT(Row(Section(report, "## Floors"), "`long`"), HasSubstr("| `long` | – | 8.7 | "));
}

TEST(RenderReportTest, NeverRanksAPeerThatIsAbsentOrWrong) {
  ordered_json json = Synthetic();
  Find(json["peers"], "name", "peer:cudnn", "mission_b")["correct"] = false;
  ordered_json& flash = Find(json["peers"], "name", "peer:flash", "mission_b");
  flash["available"] = false;
  flash["reason"] = "not built for this GPU";
  for (const char* key : {"p50_us", "ci_low_us", "ci_high_us"}) flash[key] = nullptr;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("our fastest step is 4.59× faster."));
  const std::string peers = Section(report, "### Peers at `b1_h8_s512_d64`");
  EXPECT_THAT(Row(peers, "flash"), HasSubstr("| – | – | – | yes | not built for this GPU |"));
  EXPECT_THAT(Row(peers, "cudnn"), HasSubstr("[8.910, 9.090] | – | **no** |"));
}

TEST(RenderReportTest, WarnsWhenTheRecordIsOlderThanTheKernels) {
  const ordered_json json = Synthetic();
  const std::string hash = json["provenance"]["kernel_source_sha256"];
  const std::string registry = json["provenance"]["registry_sha256"];
  RenderOptions same;
  same.kernel_source_sha256 = hash;
  same.registry_sha256 = registry;
  EXPECT_THAT(Render(json, same), Not(HasSubstr("Warning")));
  EXPECT_THAT(Render(json), Not(HasSubstr("Warning")));
  RenderOptions other = same;
  other.kernel_source_sha256 = "another";
  const std::string report = Render(json, other);
  EXPECT_THAT(report, HasSubstr("> **Warning: this record is older than the kernels.** Since it "
                                "was made, the kernels' sources changed"));
  EXPECT_LT(report.find("Warning"), report.find("## "));
  other.registry_sha256 = "another";
  EXPECT_THAT(Render(json, other),
              HasSubstr("the kernels' sources and the registry of toggles changed"));
  EXPECT_THAT(*RenderReadmeSection(json, other), ::testing::StartsWith("> **Warning"));
}

// What the synthetic record's kernels compiled to, as if they were this tree's.
ordered_json CodeOf(const ordered_json& summary) {
  ordered_json hashes;
  for (const ordered_json& cell : summary["cells"]) {
    hashes[cell["config"].get<std::string>()] = cell["code_sha256"];
  }
  return {{"schema_version", 1},
          {"nvcc", summary["provenance"]["toolchain"]["nvcc"]},
          {"archs", {{"sm_90", hashes}}}};
}

TEST(RenderReportTest, WarnsOfMachineCodeThatChangedAndNotOfSourcesThatReachedNone) {
  ordered_json json = Synthetic();
  RenderOptions tree = {.kernel_source_sha256 = "another", .registry_sha256 = "another"};
  tree.tree_code = *ParseTreeCode(CodeOf(json));
  const std::string fresh = Render(json, tree);
  EXPECT_THAT(fresh, Not(HasSubstr("Warning")));
  EXPECT_THAT(fresh,
              HasSubstr("\n\nSources changed after this record, but the machine code of all its "));
  EXPECT_THAT(fresh,
              HasSubstr("tensor maps) are not compared. The registry of toggles changed after "));
  EXPECT_LT(fresh.find("Sources changed"), fresh.find("## "));
  EXPECT_THAT(*RenderReadmeSection(json, tree), Not(HasSubstr("changed after")));

  // A kernel that was never timed has no figures that could be old.
  ordered_json code = CodeOf(json);
  ordered_json untimed = json;
  untimed["cells"].push_back(json["cells"][0]);
  untimed["cells"].back()["variant"] = "untimed";
  untimed["cells"].back()["code_sha256"] = nullptr;
  for (const char* key : {"p50_us", "ci_low_us", "ci_high_us"})
    untimed["cells"].back()[key] = nullptr;
  EXPECT_THAT(Render(untimed, tree), Not(HasSubstr("Warning")));

  code["archs"]["sm_90"]["minimal_scalar"] = "another";
  tree.tree_code = *ParseTreeCode(code);
  const std::string stale = Render(json, tree);
  EXPECT_THAT(stale, HasSubstr("> **Warning: this record is older than the kernels.** Since it "
                               "was made, the machine code of 1 of its "));
  EXPECT_THAT(stale, HasSubstr("instances changed: `minimal_scalar`. Figures of these"));
  EXPECT_THAT(*RenderReadmeSection(json, tree), HasSubstr("changed: `minimal_scalar`"));
}

TEST(RenderReportTest, SaysThatARecordIsUnfinishedBeforeAnythingElse) {
  ordered_json json = Synthetic();
  EXPECT_THAT(Render(json), Not(HasSubstr("unfinished")));
  EXPECT_THAT(Render(json), HasSubstr("3 processes of 24 blocks per shape"));
  json["provenance"]["processes_found"] = 2;
  json["provenance"]["blocks_missing"] = 130;
  std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("> **Warning: this record is unfinished: 230 of 360 blocks** (2 of "
                                "3 processes). "));
  EXPECT_LT(report.find("unfinished"), report.find("## "));
  EXPECT_THAT(report, HasSubstr("3 processes of 24 blocks per shape; 230 of 360 blocks are there"));
  EXPECT_THAT(*RenderReadmeSection(json, {}), ::testing::StartsWith("> **Warning"));
  json["provenance"]["blocks_missing"] = 0;
  json["provenance"]["peer_blocks_missing"] = 24;
  EXPECT_THAT(Render(json), HasSubstr("and 336 of 360 blocks of the peers."));
}

TEST(RenderReportTest, SaysThatThrottleReasonsWereNotReadable) {
  ordered_json json = Synthetic();
  EXPECT_THAT(Render(json), HasSubstr("0 of 3960 samples were taken while the GPU was throttled"));
  json["provenance"]["unknown_throttle_samples"] = 60;
  EXPECT_THAT(Render(json),
              HasSubstr("0 of 3900 samples whose throttle reasons were readable were "));
  json["provenance"]["unknown_throttle_samples"] = 3960;
  json["provenance"]["throttled_samples"] = nullptr;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("Throttle reasons were not readable"));
  EXPECT_THAT(report, Not(HasSubstr("were taken while the GPU was throttled")));
}

TEST(RenderReportTest, NeverRanksAPeerThatWasNotChecked) {
  ordered_json json = Synthetic();
  Find(json["peers"], "name", "peer:cudnn", "mission_b")["correct"] = nullptr;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("The best peer, flash, takes 10.20 µs"));
  EXPECT_THAT(Row(Section(report, "### Peers at `b1_h8_s512_d64`"), "cudnn"),
              HasSubstr("| – | not checked |"));
}

TEST(RenderReportTest, SaysThatARecordFromADirtyTreeIsNotReproducible) {
  ordered_json json = Synthetic();
  json["provenance"]["git"]["dirty"] = true;
  EXPECT_THAT(Render(json), HasSubstr("uncommitted changes"));
}

TEST(RenderReportTest, KeepsAToggleThatTheRegistryNoLongerHas) {
  ordered_json json = Synthetic();
  for (ordered_json& verdict : json["verdicts"]) {
    if (verdict["toggle"] == "wmma_pv") verdict["toggle"] = "forgotten";
  }
  EXPECT_THAT(Section(Render(json), "### `forgotten` (`forgotten`)"),
              HasSubstr("This build's registry does not have this toggle"));
}

TEST(RenderReportTest, IgnoresFieldsItDoesNotKnow) {
  ordered_json json = Synthetic();
  json["cells"][0]["later"] = ordered_json::array();
  json["later"] = 1;
  EXPECT_EQ(Render(json), Render(Synthetic()));
}

}  // namespace
}  // namespace warpledger::report
