#include "reports/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "kernels/sdpa/config.h"
#include "reports/floors.h"
#include "reports/summary_view.h"
#include "tests/reports/synthetic_summary.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Render(const ordered_json& summary, const RenderOptions& options = {}) {
  const absl::StatusOr<std::string> report = RenderReport(summary, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.value_or("");
}

// The part of the report from a heading to the next heading of its level.
std::string Section(const std::string& report, const std::string& heading) {
  const size_t begin = report.find(heading + "\n");
  if (begin == std::string::npos) {
    ADD_FAILURE() << "no heading " << heading;
    return "";
  }
  const std::string level = heading.substr(0, heading.find(' ') + 1);
  const size_t end = report.find("\n" + level, begin + 1);
  return report.substr(begin, end == std::string::npos ? end : end - begin);
}

// The table row whose first cell contains `first`.
std::string Row(const std::string& section, const std::string& first) {
  size_t begin = 0;
  while (begin < section.size()) {
    size_t end = section.find('\n', begin);
    if (end == std::string::npos) end = section.size();
    const std::string line = section.substr(begin, end - begin);
    if (line.starts_with("| ") && line.substr(0, line.find(" |", 2)).find(first) != line.npos) {
      return line;
    }
    begin = end + 1;
  }
  ADD_FAILURE() << "no row " << first << " in\n" << section;
  return "";
}

TEST(RenderReportTest, GivesTheSameBytesTwice) {
  EXPECT_EQ(Render(Synthetic()), Render(Synthetic()));
}

TEST(RenderReportTest, NamesGpuAndDateOfTheRecordInItsTitle) {
  EXPECT_THAT(Render(Synthetic()), ::testing::StartsWith("# Optimisation ladder on NVIDIA H200, "
                                                         "2026-01-02\n"));
}

TEST(RenderReportTest, ShowsTheFiguresOfAStepInItsRow) {
  const std::string row = Row(Section(Render(Synthetic()), "### `mission_b`"), "`wmma_pv`");
  EXPECT_EQ(row,
            "| WMMA for P V `wmma_pv` | 14.22 | [14.16, 14.27] | 2.41× [2.39, 2.43] | 17.3× | 37.8 "
            "| 96 | 36.2 | 0 | 5 | 1600 → 1700: `HMMA` 0 → 32, `LDS` 80 → 54, `MUFU` 8 → 4 | yes "
            "(3.1e-05; limit 1.2e-04) | **ADOPT** | 656.0 |");
}

TEST(RenderReportTest, ShowsWhatAToggleDidToTheKernelBesideEachVerdict) {
  const char* const kKernel = "| 88 → 96 registers, 30.5 → 36.2 KiB shared, 20 warps / SM |";
  const char* const kInstructions = "| 1600 → 1700: `HMMA` 0 → 32, `LDS` 80 → 54, `MUFU` 8 → 4 |";
  ordered_json json = Synthetic();
  const std::string steps = Section(Render(json), "### WMMA for P V (`wmma_pv`)");
  for (const char* shape : {"`small`", "`mission_b`", "`long`"}) {
    EXPECT_THAT(Row(steps, shape), HasSubstr(kKernel));
    EXPECT_THAT(Row(steps, shape), HasSubstr(kInstructions));
  }
  json["design"] = "one_on";
  const std::string row = Row(Section(Render(json), "## `mission_b`"), "`wmma_pv`");
  EXPECT_THAT(row, HasSubstr(kKernel));
  EXPECT_THAT(row, HasSubstr(kInstructions));
}

TEST(RenderReportTest, ADesignWithoutVerdictsSaysSoAndShowsNoPictureOfThem) {
  ordered_json json = Synthetic();
  json["design"] = "mma_bf16";
  json["verdicts"] = ordered_json::array();
  const std::string page = Render(json);
  EXPECT_THAT(page, HasSubstr("No toggle is judged here"));
  EXPECT_THAT(page, Not(HasSubstr("What each toggle did")));
  EXPECT_THAT(page, Not(HasSubstr("_effects.svg")));
}

TEST(RenderReportTest, NamesSpillsWhereThereAreAnyAndLeavesOutWhatIsNotKnown) {
  ordered_json json = Synthetic();
  ordered_json& change = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b")["change"];
  change["spill_bytes"] = {0, 48};
  change["warps_per_sm"] = {20, nullptr};
  change["smem_bytes"] = {nullptr, nullptr};
  for (const char* field : {"instructions", "evidence", "opcodes"}) change[field] = nullptr;
  const std::string heading = "### WMMA for P V (`wmma_pv`)";
  EXPECT_THAT(Row(Section(Render(json), heading), "`mission_b`"),
              HasSubstr("| 88 → 96 registers, 20 → – warps / SM, 0 → 48 B of spills | – |"));
  // A summary of an older program.
  Find(json["verdicts"], "toggle", "wmma_pv", "mission_b").erase("change");
  EXPECT_THAT(Row(Section(Render(json), heading), "`mission_b`"), HasSubstr("** | – | – | – |"));
}

TEST(RenderReportTest, ComputesItsSentencesFromTheRecord) {
  const std::string summary = Section(Render(Synthetic()), "## Summary");
  EXPECT_THAT(summary, HasSubstr("the fastest step is `wmma_pv` at 14.22 µs, 17.3× [17.2, 17.4] "
                                 "over the first step (246.0 µs)"));
  EXPECT_THAT(summary, HasSubstr("The best peer, cudnn, takes 9.000 µs: it is 1.580× faster than "
                                 "our fastest step."));
  EXPECT_THAT(summary, HasSubstr("Of 7 predictions written down before the run, 6 held; "
                                 "`vector_loads` missed high."));
  EXPECT_THAT(summary, HasSubstr("0 false verdicts in 10 trials (0%)"));
  EXPECT_THAT(summary, HasSubstr("- **REGRESSION** (slower), 1 step: `kv_tiling` (0.780×).\n"));
}

TEST(RenderReportTest, SaysThatOursIsFasterWhereItBeatsThePeer) {
  ordered_json json = Synthetic();
  for (ordered_json& peer : json["peers"]) peer["p50_us"] = 28.44;
  EXPECT_THAT(Render(json), HasSubstr("our fastest step is 2.00× faster."));
}

TEST(RenderReportTest, ShowsTheNotesFiguresOnlyBesideMissionB) {
  const std::string report = Render(Synthetic());
  EXPECT_THAT(Section(report, "### `mission_b`"), HasSubstr("L4 notes, p50 µs on an L4"));
  EXPECT_THAT(Section(report, "### `mission_b`"), HasSubstr("reports/decisions/0000-l4-notes.md"));
  for (const char* shape : {"### `small`", "### `medium`", "### `mission_a`", "### `long`"}) {
    EXPECT_THAT(Section(report, shape), Not(HasSubstr("L4"))) << shape;
  }
}

TEST(RenderReportTest, GivesEveryToggleItsClaimPredictionAndPrior) {
  const ordered_json json = Synthetic();
  const std::string report = Section(Render(json), "## Toggle by toggle");
  size_t seen = 0;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    // The synthetic record has steps of the first family only.
    if (report.find("(`" + std::string(row.id) + "`)") == std::string::npos) continue;
    ++seen;
    EXPECT_THAT(report, HasSubstr("**Claim.** " + std::string(row.claim))) << row.id;
    EXPECT_THAT(report, HasSubstr(std::string(row.predicted.why))) << row.id;
    EXPECT_THAT(report, HasSubstr("**Prior.** " + std::string(row.prior.text))) << row.id;
    EXPECT_THAT(report, HasSubstr(std::string(row.lesson))) << row.id;
  }
  EXPECT_EQ(seen, json["verdicts"].size() / json["shapes"].size());
}

TEST(RenderReportTest, SaysByHowMuchAPredictionMissedLow) {
  ordered_json json = Synthetic();
  ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_qk", "mission_b");
  verdict["ratio"] = 1.04;
  verdict["ci_low"] = 1.03;
  verdict["ci_high"] = 1.05;
  verdict["prediction_held"] = false;
  const std::string paragraph = Section(Render(json), "### WMMA for QK^T (`wmma_qk`)");
  EXPECT_THAT(paragraph, HasSubstr("It **missed low**: 1.040× [1.030, 1.050] at `mission_b` is "
                                   "1.250× short of the range's lower end."));
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
  const std::string section = Section(report, "### `mission_b`");
  EXPECT_EQ(
      Row(section, "`wmma_pv`"),
      "| WMMA for P V `wmma_pv` | 14.22 | [14.16, 14.27] | – | – | – | 96 | 36.2 | 0 | 5 | 1600 "
      "→ 1700: `HMMA` 0 → 32, `LDS` 80 → 54, `MUFU` 8 → 4 | **no** (4.1e-01 against 1.2e-04) | "
      "**BROKEN** | 656.0 |");
  EXPECT_THAT(section, HasSubstr("- `wmma_pv`: max_err 0.41 exceeds its limit\n"));
  EXPECT_THAT(report, HasSubstr("At `mission_b` the fastest step is `cp_async_stages`"));
  EXPECT_THAT(Section(report, "### Peers at `mission_b`"), HasSubstr("Ours: `cp_async_stages`"));
  EXPECT_THAT(Section(report, "### WMMA for P V (`wmma_pv`)"),
              HasSubstr("Not judged: the verdict at `mission_b` is `BROKEN`."));
}

TEST(RenderReportTest, NeverRanksAStepWhoseTimingIsInvalid) {
  ordered_json json = Synthetic();
  Find(json["verdicts"], "toggle", "wmma_pv", "mission_b")["verdict"] = "INVALID";
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("At `mission_b` the fastest step is `cp_async_stages`"));
  EXPECT_THAT(report, HasSubstr("**INVALID** (the timing is no evidence), 1 step: `wmma_pv`.\n"));
}

TEST(RenderReportTest, NeverRanksAStepThatWasNotChecked) {
  ordered_json json = Synthetic();
  Find(json["cells"], "variant", "ladder:wmma_pv", "mission_b")["correct"] = nullptr;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("At `mission_b` the fastest step is `cp_async_stages`"));
  EXPECT_THAT(Row(Section(report, "### `mission_b`"), "`wmma_pv`"), HasSubstr("| not checked |"));
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
  for (const char* key : {"ratio", "ci_low", "ci_high", "n_pairs", "adjusted_confidence"}) {
    verdict[key] = nullptr;
  }
  verdict["verdict"] = "NOT_APPLICABLE";
  EXPECT_EQ(
      Row(Section(Render(json), "### `mission_b`"), "`wmma_pv`"),
      "| WMMA for P V `wmma_pv` | – | – | – | – | – | – | – | – | – | 1600 → 1700: `HMMA` 0 → "
      "32, `LDS` 80 → 54, `MUFU` 8 → 4 | yes | "
      "**NOT_APPLICABLE** | 656.0 |");
}

TEST(RenderReportTest, SaysSoWhenNothingPassedCorrectness) {
  ordered_json json = Synthetic();
  for (ordered_json& cell : json["cells"]) cell["correct"] = false;
  for (ordered_json& verdict : json["verdicts"]) verdict["verdict"] = "BROKEN";
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("At `mission_b` no step passed correctness and was timed."));
  EXPECT_THAT(report, HasSubstr("No step of ours is ranked here."));
}

TEST(RenderReportTest, RendersARecordWithoutPeersFloorsAndControls) {
  ordered_json json = Synthetic();
  json["peers"] = ordered_json::array();
  json["floors"] = ordered_json::array();
  json["controls"] = ordered_json::array();
  json["controls_summary"]["trials"] = 0;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("The record holds no peer."));
  EXPECT_THAT(report, HasSubstr("No control was timed, so nothing bounds the false verdicts."));
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
  const std::string peers = Section(report, "### Peers at `mission_b`");
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
  EXPECT_THAT(fresh, HasSubstr("\n\nSources changed since; the machine code of all its "));
  EXPECT_THAT(fresh, HasSubstr("instances is the same. The registry of toggles changed since; "));
  EXPECT_LT(fresh.find("Sources changed"), fresh.find("## "));
  EXPECT_THAT(*RenderReadmeSection(json, tree), Not(HasSubstr("changed since")));

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
  EXPECT_THAT(stale, HasSubstr("instances changed: `minimal_scalar`. Figures of what changed"));
  EXPECT_THAT(*RenderReadmeSection(json, tree), HasSubstr("changed: `minimal_scalar`"));
}

TEST(RenderReportTest, SaysOfAnArmThatTheKernelsCanNotHaveThatItIsNotApplicableAndWhy) {
  ordered_json json = Synthetic();
  json["design"] = "stage2_plus";
  json["infeasible"] = {{{"variant", "stage2:swizzle"},
                         {"toggle", "swizzle"},
                         {"missing", "wmma"},
                         {"why", "it has no leading dimension"},
                         {"verdict", "NOT_APPLICABLE"}}};
  EXPECT_THAT(Section(Render(json), "## Combinations that are not possible"),
              HasSubstr("- `stage2:swizzle`: `NOT_APPLICABLE`: `swizzle` can't go with `wmma`, for "
                        "it has no leading dimension\n"));
  json["infeasible"][0].erase("why");
  json["infeasible"][0].erase("verdict");
  EXPECT_THAT(Render(json), HasSubstr("- `stage2:swizzle`: `swizzle` needs `wmma`\n"));
}

TEST(RenderReportTest, SaysThatARecordIsUnfinishedBeforeAnythingElse) {
  ordered_json json = Synthetic();
  EXPECT_THAT(Render(json), Not(HasSubstr("unfinished")));
  EXPECT_THAT(Render(json), HasSubstr("The run had 3 processes of 24 blocks per shape."));
  json["provenance"]["processes_found"] = 2;
  json["provenance"]["blocks_missing"] = 130;
  std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("> **Warning: this record is unfinished: 230 of 360 blocks** (2 of "
                                "3 processes). "));
  EXPECT_LT(report.find("unfinished"), report.find("## "));
  EXPECT_THAT(report, HasSubstr("Planned were 3 processes of 24 blocks per shape; 230 of 360 "
                                "blocks are there."));
  EXPECT_THAT(*RenderReadmeSection(json, {}), ::testing::StartsWith("> **Warning"));
  json["provenance"]["blocks_missing"] = 0;
  json["provenance"]["peer_blocks_missing"] = 24;
  EXPECT_THAT(Render(json), HasSubstr("and of the peers 336 of 360 blocks."));
}

TEST(RenderReportTest, SaysThatThrottleReasonsWereNotReadable) {
  ordered_json json = Synthetic();
  EXPECT_THAT(Render(json), HasSubstr("Of 3960 samples, 0 were taken while the GPU was throttled"));
  json["provenance"]["unknown_throttle_samples"] = 60;
  EXPECT_THAT(Render(json), HasSubstr("Of 3900 samples whose throttle reasons were readable, 0 "));
  json["provenance"]["unknown_throttle_samples"] = 3960;
  json["provenance"]["throttled_samples"] = nullptr;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("Throttle reasons were not readable"));
  EXPECT_THAT(report, Not(HasSubstr("were taken while the GPU was throttled")));
}

TEST(RenderReportTest, SaysHowManyIntervalsOfTheControlsHoldOne) {
  ordered_json json = Synthetic();
  json["controls_summary"]["intervals_holding_one"] = 9;
  json["controls"][0]["holds_one"] = false;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("9 of their 10 intervals hold 1; 95% should."));
  EXPECT_THAT(Row(Section(report, "## Controls"), "`control:aa`"), HasSubstr("| **no** | NEUTRAL"));
}

TEST(RenderReportTest, NeverRanksAPeerThatWasNotChecked) {
  ordered_json json = Synthetic();
  Find(json["peers"], "name", "peer:cudnn", "mission_b")["correct"] = nullptr;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("The best peer, flash, takes 10.20 µs"));
  EXPECT_THAT(Row(Section(report, "### Peers at `mission_b`"), "cudnn"),
              HasSubstr("| – | not checked |"));
}

TEST(RenderReportTest, SaysWhichFlashAttentionThePeerIs) {
  ordered_json json = Synthetic();
  EXPECT_THAT(Section(Render(json), "## Peers"), HasSubstr("`flash` is the FlashAttention-2"));
  ordered_json others = ordered_json::array();
  for (const ordered_json& peer : json["peers"]) {
    if (peer["name"] != "peer:flash") others.push_back(peer);
  }
  json["peers"] = others;
  EXPECT_THAT(Section(Render(json), "## Peers"), Not(HasSubstr("FlashAttention")));
}

TEST(RenderReportTest, SaysThatARecordFromADirtyTreeIsNotReproducible) {
  ordered_json json = Synthetic();
  json["provenance"]["git"]["dirty"] = true;
  EXPECT_THAT(Render(json), HasSubstr("uncommitted changes"));
}

TEST(RenderReportTest, PutsThePrefixBeforeEveryPicture) {
  RenderOptions options;
  options.picture_prefix = "plots/";
  const std::string pictures = Section(Render(Synthetic(), options), "## Pictures");
  EXPECT_THAT(pictures, HasSubstr("](plots/ladder_mission_b.svg)"));
  EXPECT_THAT(pictures, HasSubstr("](plots/effects.svg)"));
  EXPECT_THAT(pictures, HasSubstr("](plots/ladder_long.svg)"));
}

TEST(RenderReportTest, ARecordWithAColdL2HasAPageAndPicturesOfItsOwn) {
  EXPECT_EQ(ReportFileName("ladder", "warm"), "ladder.md");
  EXPECT_EQ(ReportFileName("ladder", "cold"), "ladder_cold.md");
  const std::string warm = Render(Synthetic());
  EXPECT_THAT(warm, Not(HasSubstr("cold")));
  for (const std::string design : {"ladder", "hopper", "hopper_small"}) {
    ordered_json json = Synthetic();
    json["design"] = design;
    json["provenance"]["cache"] = "cold";
    const std::string text = Render(json);
    EXPECT_THAT(text.substr(0, text.find('\n')),
                HasSubstr(" on NVIDIA H200 with a cold L2, 2026-"));
    for (size_t at = text.find(".svg)"); at != std::string::npos; at = text.find(".svg)", at + 1)) {
      EXPECT_EQ(text.substr(at - 5, 5), "_cold") << design << ": " << text.substr(at - 40, 45);
    }
  }
}

TEST(RenderReportTest, TheReadmeShowsNoLadderWithAColdL2) {
  ordered_json json = Synthetic();
  json["provenance"]["cache"] = "cold";
  EXPECT_THAT(RenderReadmeSection(json, {}).status().ToString(), HasSubstr("leave --readme out"));
}

TEST(RenderReportTest, SaysByHowMuchAControlsIntervalMissesOneAndWhetherThatMatters) {
  ordered_json json = Synthetic();
  EXPECT_THAT(Section(Render(json), "## Controls"), Not(HasSubstr("out 1")));
  const auto miss = [&](const char* shape, double low, double high) {
    ordered_json& control = Find(json["controls"], "candidate", "control:aa", shape);
    control["ci_low"] = low;
    control["ci_high"] = high;
    control["holds_one"] = false;
  };
  miss("small", 1.0001, 1.0004);
  EXPECT_THAT(
      Section(Render(json), "## Controls"),
      HasSubstr("\nThe one interval that leaves out 1, at `small`, misses it by 0.01%. That "
                "is far inside the neutral zone of ±1%"));
  miss("long", 0.9990, 0.9998);
  EXPECT_THAT(
      Section(Render(json), "## Controls"),
      HasSubstr("The 2 that leave out 1, at `small` and `long`, miss it by at most 0.02%."));
  miss("long", 0.980, 0.990);
  EXPECT_THAT(Section(Render(json), "## Controls"),
              HasSubstr("by at most 1%. That is as large as effects that verdicts are given on."));
}

TEST(RenderReportTest, SaysWhatTheCorrectionDoesNotBound) {
  EXPECT_THAT(Section(Render(Synthetic()), "## How the statistics were made"),
              HasSubstr("how often a ratio of exactly its gate is called `ADOPT` anywhere, it does "
                        "not bound as tightly"));
}

TEST(RenderReportTest, ListsTheWholeProvenance) {
  const std::string provenance = Section(Render(Synthetic()), "## Provenance");
  EXPECT_THAT(provenance, HasSubstr("| `gpu.driver` | `580.0` |"));
  EXPECT_THAT(provenance, HasSubstr("| `toolchain.cuda_flags` | `-O3 -std=c++20` |"));
  EXPECT_THAT(provenance, HasSubstr("| `argv` | `warpledger run --design=ladder` |"));
}

TEST(RenderReportTest, KeepsAToggleThatTheRegistryNoLongerHas) {
  ordered_json json = Synthetic();
  for (ordered_json& verdict : json["verdicts"]) {
    if (verdict["toggle"] == "wmma_pv") verdict["toggle"] = "forgotten";
  }
  EXPECT_THAT(Section(Render(json), "### `forgotten` (`forgotten`)"),
              HasSubstr("This build's registry has no such toggle"));
}

struct Damage {
  const char* what;
  std::function<void(ordered_json&)> apply;
  const char* message;
};

TEST(RenderReportTest, NamesThePathOfADamagedField) {
  const Damage damages[] = {
      {"missing field", [](ordered_json& j) { j["cells"][3].erase("p50_us"); },
       "cells[3].p50_us is missing; it must be a number or null"},
      {"wrong type", [](ordered_json& j) { j["cells"][0]["registers"] = "many"; },
       "cells[0].registers must be an integer or null, but is string"},
      {"fraction", [](ordered_json& j) { j["cells"][0]["registers"] = 1.5; },
       "cells[0].registers must be an integer or null, but is 1.5"},
      {"no count", [](ordered_json& j) { j["provenance"]["n_samples"] = INT64_MIN; },
       "provenance.n_samples must be an integer or null, but is -9223372036854775808"},
      {"no count either", [](ordered_json& j) { j["provenance"]["n_samples"] = UINT64_MAX; },
       "provenance.n_samples must be an integer or null, but is 18446744073709551615"},
      {"nested", [](ordered_json& j) { j["cells"][1]["speedup_over_first"].erase("ci_low"); },
       "cells[1].speedup_over_first.ci_low is missing"},
      {"element is no object", [](ordered_json& j) { j["peers"][2] = 7; },
       "peers[2] must be an object, but is number"},
      {"array missing", [](ordered_json& j) { j.erase("verdicts"); }, "verdicts is missing"},
      {"no object at all", [](ordered_json& j) { j = ordered_json::array(); },
       "the document must be an object, but is array"},
      {"deep provenance", [](ordered_json& j) { j["provenance"]["gpu"].erase("name"); },
       "provenance.gpu.name is missing"},
      {"zero time", [](ordered_json& j) { j["cells"][0]["p50_us"] = 0; },
       "cells[0].p50_us must be above 0, but is 0"},
      {"unknown verdict", [](ordered_json& j) { j["verdicts"][4]["verdict"] = "GREAT"; },
       "verdicts[4].verdict is \"GREAT\", which this build does not know"},
      {"half a change", [](ordered_json& j) { j["verdicts"][0]["change"]["registers"] = {40}; },
       "verdicts[0].change.registers must be null or two integers or nulls, but is array"},
      {"unknown shape", [](ordered_json& j) { j["floors"][0]["shape"] = "nowhere"; },
       "floors[0].shape is \"nowhere\", which is not in shapes[]"},
      {"twice", [](ordered_json& j) { j["cells"][1] = j["cells"][0]; },
       "cells[1] repeats minimal_scalar at small"},
      {"no shapes", [](ordered_json& j) { j["shapes"] = ordered_json::array(); },
       "shapes must not be empty"},
      {"confidence", [](ordered_json& j) { j["statistics"]["confidence"] = 95; },
       "statistics.confidence must lie between 0 and 1, but is 95"},
      {"newer schema", [](ordered_json& j) { j["schema_version"] = 2; },
       "schema_version is 2, but this build knows versions up to 1"},
  };
  for (const Damage& damage : damages) {
    ordered_json json = Synthetic();
    damage.apply(json);
    for (const absl::StatusOr<std::string>& result :
         {RenderReport(json, {}), RenderReadmeSection(json, {})}) {
      ASSERT_FALSE(result.ok()) << damage.what;
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << damage.what;
      EXPECT_THAT(std::string(result.status().message()), HasSubstr(damage.message)) << damage.what;
    }
  }
}

TEST(RenderReportTest, IgnoresFieldsItDoesNotKnow) {
  ordered_json json = Synthetic();
  json["cells"][0]["later"] = ordered_json::array();
  json["later"] = 1;
  EXPECT_EQ(Render(json), Render(Synthetic()));
}

TEST(RenderReadmeSectionTest, ShowsPictureLadderAndVerdictsOfTheMainShape) {
  RenderOptions options;
  options.picture_prefix = "reports/h200/plots/";
  const absl::StatusOr<std::string> section = RenderReadmeSection(Synthetic(), options);
  ASSERT_TRUE(section.ok()) << section.status();
  EXPECT_THAT(*section, ::testing::StartsWith("![Ladder at mission_b on NVIDIA H200]("
                                              "reports/h200/plots/ladder_mission_b.svg)\n"));
  EXPECT_EQ(Row(*section, "WMMA for P V"),
            "| WMMA for P V | 14.22 | 2.41× [2.39, 2.43] | 17.3× | **ADOPT** |");
  EXPECT_THAT(*section, HasSubstr("**ADOPT** (met the gate), 5 steps: "));
}

TEST(RenderReadmeSectionTest, TakesTheLastShapeWhereMissionBWasNotRun) {
  ordered_json json = Synthetic();
  for (const char* array : {"cells", "peers", "floors", "verdicts", "controls"}) {
    ordered_json kept = ordered_json::array();
    for (const ordered_json& element : json[array]) {
      if (element["shape"] != "mission_b") kept.push_back(element);
    }
    json[array] = kept;
  }
  json["shapes"].erase(3);
  EXPECT_THAT(*RenderReadmeSection(json, {}), HasSubstr("At `long` the fastest step is"));
}

constexpr char kReadme[] =
    "# Title\n<!-- generated:ladder begin -->\nold\nlines\n<!-- generated:ladder end -->\nrest\n";

TEST(ReplaceGeneratedSectionTest, ReplacesWhatStandsBetweenTheMarkersAndNothingElse) {
  const absl::StatusOr<std::string> once = ReplaceGeneratedSection(kReadme, "ladder", "new");
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(*once,
            "# Title\n<!-- generated:ladder begin -->\nnew\n<!-- generated:ladder end -->\nrest\n");
  EXPECT_EQ(*ReplaceGeneratedSection(*once, "ladder", "new\n"), *once);
}

TEST(ReplaceGeneratedSectionTest, EmptiesTheSectionForAnEmptyBody) {
  EXPECT_EQ(*ReplaceGeneratedSection(kReadme, "ladder", ""),
            "# Title\n<!-- generated:ladder begin -->\n<!-- generated:ladder end -->\nrest\n");
}

TEST(ReplaceGeneratedSectionTest, RefusesMissingDoubledAndSwappedMarkers) {
  const auto message = [](const std::string& text) {
    const absl::StatusOr<std::string> result = ReplaceGeneratedSection(text, "ladder", "new");
    EXPECT_FALSE(result.ok()) << text;
    return std::string(result.status().message());
  };
  EXPECT_THAT(message("# Title\n"), HasSubstr("no line `<!-- generated:ladder begin -->`"));
  EXPECT_THAT(message("<!-- generated:ladder begin -->\n"),
              HasSubstr("no line `<!-- generated:ladder end -->`"));
  EXPECT_THAT(message(std::string(kReadme) + kReadme), HasSubstr("2 line"));
  EXPECT_THAT(message("<!-- generated:ladder end -->\n<!-- generated:ladder begin -->\n"),
              HasSubstr("swap them"));
  EXPECT_THAT(message("<!-- generated:peers begin -->\n<!-- generated:peers end -->\n"),
              HasSubstr("no line"));
}

TEST(ReplaceGeneratedSectionTest, TakesAMarkerInsideALineOfProseForProse) {
  const std::string text = std::string("Write `<!-- generated:ladder begin -->` once.\n") + kReadme;
  EXPECT_TRUE(ReplaceGeneratedSection(text, "ladder", "new").ok());
}

TEST(FloorsTest, ComputesMissionBFromTheRatesOfTheH200) {
  const std::optional<Rates> rates = ArithmeticRates("h200", 132, 1980);
  ASSERT_TRUE(rates);
  Shape shape;
  shape.flops = 536870912;
  shape.min_bytes = 2097152;
  shape.exponentials = 2097152;
  const ArithmeticFloor floor = FloorOf(shape, *rates);
  EXPECT_NEAR(floor.tensor_us, 0.54284, 1e-5);
  EXPECT_NEAR(floor.dram_us, 0.43691, 1e-5);
  EXPECT_NEAR(floor.exp_us, 0.50150, 1e-5);
  EXPECT_DOUBLE_EQ(floor.largest_us, floor.tensor_us);
}

TEST(FloorsTest, KnowsNoRatesForOtherGpusOrWithoutAClock) {
  EXPECT_FALSE(ArithmeticRates("l4", 58, 2040));
  EXPECT_FALSE(ArithmeticRates("h200", 132, std::nullopt));
  ordered_json json = Synthetic();
  json["provenance"]["gpu"]["max_sm_clock_mhz"] = nullptr;
  EXPECT_THAT(Section(Render(json), "## Floors"), HasSubstr("Arithmetic floors are left out"));
}

}  // namespace
}  // namespace warpledger::report
