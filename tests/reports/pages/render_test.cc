// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/budget.h"
#include "reports/model/describe.h"
#include "reports/pages/pages.h"
#include "tests/reports/from_json.h"
#include "tests/reports/pages/render_fixture.h"
#include "tests/reports/synthetic_summary.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RenderReportTest, SaysThatAFamilyIsAToggle) {
  EXPECT_THAT(Render(Synthetic()), HasSubstr("one family per toggle, over all its levels"));
}

TEST(RenderReportTest, GivesTheSameBytesTwice) {
  EXPECT_EQ(Render(Synthetic()), Render(Synthetic()));
}

TEST(RenderReportTest, NamesGpuAndDateOfTheRecordInItsTitle) {
  EXPECT_THAT(Render(Synthetic()), ::testing::StartsWith("# Optimisation ladder on NVIDIA H200, "
                                                         "2026-01-02\n"));
}

TEST(RenderReportTest, ShowsTheFiguresOfAStepInItsRow) {
  const std::string row = Row(Section(Render(Synthetic()), "### `b1_h8_s512_d64`"), "`wmma_pv`");
  EXPECT_EQ(row,
            "| WMMA for P V `wmma_pv` | 14.22 | [14.16, 14.27] | 2.41× [2.39, 2.43] | 17.3× | 37.8 "
            "| 96 | 36.2 | 0 | 5 | 1600 → 1700: `HMMA` 0 → 32, `LDS` 80 → 54, `MUFU` 8 → 4 | yes "
            "(3.1e-05; limit 1.2e-04) | **ADOPT** | 656.0 |");
}

TEST(RenderReportTest, SaysThisBoardWhereNothingIsKnownOfOthers) {
  constexpr char kBothColumns[] = "| boards of the kind | this board |";
  for (const char* design : {"ladder", "one_on"}) {
    ordered_json json = Synthetic();
    json["design"] = design;
    const bool has_columns = std::string_view(design) == "ladder";
    EXPECT_EQ(Render(json).find(kBothColumns) != std::string::npos, has_columns);
    EXPECT_THAT(Render(json), HasSubstr("another board of the kind would measure")) << design;
    json["statistics"]["spreads"] = ordered_json::array();
    const std::string report = Render(json);
    for (const char* other : {"oards of the kind", "boards of this kind", "another board of the"}) {
      EXPECT_THAT(report, Not(HasSubstr(other))) << design;
    }
    EXPECT_EQ(report.find("| ratio | this board |") != std::string::npos, has_columns);
  }
}

TEST(RenderReportTest, ShowsWhatAToggleDidToTheKernelBesideEachVerdict) {
  const char* const kKernel = "| 88 → 96 registers, 30.5 → 36.2 KiB shared, 20 warps / SM |";
  const char* const kInstructions = "| 1600 → 1700: `HMMA` 0 → 32, `LDS` 80 → 54, `MUFU` 8 → 4 |";
  ordered_json json = Synthetic();
  const std::string steps = Section(Render(json), "### WMMA for P V (`wmma_pv`)");
  for (const char* shape : {"`small`", "`b1_h8_s512_d64`", "`long`"}) {
    EXPECT_THAT(Row(steps, shape), HasSubstr(kKernel));
    EXPECT_THAT(Row(steps, shape), HasSubstr(kInstructions));
  }
  json["design"] = "one_on";
  const std::string row = Row(Section(Render(json), "## `b1_h8_s512_d64`"), "`wmma_pv`");
  EXPECT_THAT(row, HasSubstr(kKernel));
  EXPECT_THAT(row, HasSubstr(kInstructions));
}

TEST(RenderReportTest, NamesSpillsWhereThereAreAnyAndLeavesOutWhatIsNotKnown) {
  ordered_json json = Synthetic();
  ordered_json& change = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b")["change"];
  change["spill_bytes"] = {0, 48};
  change["warps_per_sm"] = {20, nullptr};
  change["smem_bytes"] = {nullptr, nullptr};
  for (const char* field : {"instructions", "evidence", "opcodes"}) change[field] = nullptr;
  const std::string heading = "### WMMA for P V (`wmma_pv`)";
  EXPECT_THAT(Row(Section(Render(json), heading), "`b1_h8_s512_d64`"),
              HasSubstr("| 88 → 96 registers, 20 → – warps / SM, 0 → 48 B of spills | – |"));
  // A summary of an older program.
  Find(json["verdicts"], "toggle", "wmma_pv", "mission_b").erase("change");
  EXPECT_THAT(Row(Section(Render(json), heading), "`b1_h8_s512_d64`"),
              HasSubstr("** | – | – | – |"));
}

TEST(RenderReportTest, ComputesItsSentencesFromTheRecord) {
  const std::string summary = Section(Render(Synthetic()), "## Summary");
  EXPECT_THAT(summary, HasSubstr("the fastest step is `wmma_pv` at 14.22 µs, 17.3× [17.2, 17.4] "
                                 "over the first step (246.0 µs)"));
  EXPECT_THAT(summary, HasSubstr("The best peer, cudnn, takes 9.000 µs: it is 1.580× faster than "
                                 "our fastest step."));
  EXPECT_THAT(summary, HasSubstr("6 of 7 predictions held; `vector_loads` missed high."));
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
  EXPECT_THAT(Section(report, "### `b1_h8_s512_d64`"), HasSubstr("L4 notes, p50 µs on an L4"));
  EXPECT_THAT(Section(report, "### `b1_h8_s512_d64`"),
              HasSubstr("reports/decisions/0000-l4-notes.md"));
  for (const char* shape : {"### `small`", "### `medium`", "### `b2_h8_s256_d64`", "### `long`"}) {
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
  EXPECT_THAT(paragraph,
              HasSubstr("It **missed low**: 1.040× [1.030, 1.050] at `b1_h8_s512_d64` is "
                        "1.250× below the range's lower end."));
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

TEST(RenderReportTest, SaysHowManyIntervalsOfTheControlsHoldOne) {
  ordered_json json = Synthetic();
  json["controls_summary"]["intervals_holding_one"] = 9;
  json["controls"][0]["holds_one"] = false;
  const std::string report = Render(json);
  EXPECT_THAT(report, HasSubstr("9 of 10 control intervals contain 1 (expected: 95%)."));
  EXPECT_THAT(Row(Section(report, "## Controls"), "`control:aa`"), HasSubstr("| **no** | NEUTRAL"));
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

TEST(RenderReportTest, PutsThePrefixBeforeEveryPicture) {
  RenderOptions options;
  options.picture_prefix = "plots/";
  const std::string pictures = Section(Render(Synthetic(), options), "## Pictures");
  EXPECT_THAT(pictures, HasSubstr("](plots/ladder_b1_h8_s512_d64.svg)"));
  EXPECT_THAT(pictures, HasSubstr("](plots/speedup_overview.svg)"));
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
      HasSubstr(
          "The 2 intervals that leave out 1, at `small` and `long`, miss it by at most 0.02%."));
  miss("long", 0.980, 0.990);
  EXPECT_THAT(Section(Render(json), "## Controls"),
              HasSubstr("by at most 1%. That is as large as effects"));
}

TEST(RenderReportTest, SaysWhatTheLevelOfAFamilyBounds) {
  EXPECT_THAT(
      Section(Render(Synthetic()), "## How the statistics were made"),
      HasSubstr("of the intervals of a family that decide, at most 5% are expected to miss"));
}

TEST(RenderReportTest, ListsTheWholeProvenance) {
  const std::string provenance = Section(Render(Synthetic()), "## Provenance");
  EXPECT_THAT(provenance, HasSubstr("| `gpu.driver` | `580.0` |"));
  EXPECT_THAT(provenance, HasSubstr("| `toolchain.cuda_flags` | `-O3 -std=c++20` |"));
  EXPECT_THAT(provenance, HasSubstr("| `argv` | `warpledger run --design=ladder` |"));
  ordered_json json = Synthetic();
  json["provenance"]["argv"] = {"/a/b/warpledger", "run", "--out=/c/d/mine",
                                "--shapes=x/y",    "/e",  "--peers=off"};
  EXPECT_THAT(Section(Render(json), "## Provenance"),
              HasSubstr("| `warpledger run --out=mine --shapes=x/y e --peers=off` |"));
}

TEST(RenderReadmeSectionTest, ShowsPictureLadderAndVerdictsOfTheMainShape) {
  RenderOptions options;
  options.picture_prefix = "reports/h200/plots/";
  const std::string section = RenderReadmeSection(Synthetic(), options).value();
  EXPECT_THAT(section, ::testing::StartsWith("![Ladder at b1_h8_s512_d64 on NVIDIA H200]("
                                             "reports/h200/plots/ladder_b1_h8_s512_d64.svg)\n"));
  EXPECT_EQ(Row(section, "WMMA for P V"),
            "| WMMA for P V | 14.22 | 2.41× [2.39, 2.43] | 17.3× | **ADOPT** |");
  EXPECT_THAT(section, HasSubstr("**ADOPT** (met the gate), 5 steps: "));
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
  const std::string once = ReplaceGeneratedSection(kReadme, "ladder", "new").value();
  EXPECT_EQ(once,
            "# Title\n<!-- generated:ladder begin -->\nnew\n<!-- generated:ladder end -->\nrest\n");
  EXPECT_EQ(*ReplaceGeneratedSection(once, "ladder", "new\n"), once);
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
  shape.attention.emplace().exponentials = 2097152;
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
