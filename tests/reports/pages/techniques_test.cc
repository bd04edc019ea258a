// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/measured_claims.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/pages/pages.h"
#include "tests/reports/from_json.h"
#include "tests/reports/synthetic_summary.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Page> Pages(const std::vector<ordered_json>& records,
                        const RenderOptions& options = {}) {
  return RenderTechniques(*ViewsOf(records), options).value().pages;
}

std::string Text(const std::vector<Page>& pages, const std::string& path) {
  for (const Page& page : pages) {
    if (page.path == path) return page.text;
  }
  ADD_FAILURE() << "no page " << path;
  return "";
}

// Every line that starts so.
std::string Lines(const std::string& text, const std::string& start) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    if (text.compare(begin, start.size(), start) == 0) {
      out += text.substr(begin, end - begin) + "\n";
    }
    begin = end + 1;
  }
  return out;
}

TEST(TechniquesTest, EveryToggleStandsOnThePageOfItsTechniqueWhichTheIndexLinks) {
  const std::vector<Page> pages = Pages({Synthetic()});
  const std::string index = Text(pages, "techniques.md");
  std::set<std::string> techniques;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control) continue;
    const std::string path = TechniquePath(row);
    techniques.insert(path);
    EXPECT_THAT(index, HasSubstr("](" + path + ")")) << row.id;
    const std::string page = Text(pages, path);
    EXPECT_THAT(page, HasSubstr(std::string(row.claim)));
    EXPECT_THAT(page, HasSubstr("**Prior.** " + std::string(row.prior.text)));
    EXPECT_THAT(page, HasSubstr(std::string(row.lesson)));
  }
  const auto in = [&](const std::string& folder) {
    return std::count_if(pages.begin(), pages.end(), [&](const Page& page) {
      return page.path.find(folder) == 0 && page.path.ends_with(".md");
    });
  };
  EXPECT_EQ(in("techniques/"), static_cast<int64_t>(techniques.size()));
  EXPECT_EQ(in("claims/"), 7);  // the ladder's steps
}

TEST(TechniquesTest, APageComparesTheFamiliesThatHaveATechnique) {
  const std::string page = Text(Pages({Synthetic()}), "techniques/tensor_cores.md");
  EXPECT_THAT(page, HasSubstr("# Tensor cores on "));
  EXPECT_THAT(Lines(page, "| WMMA kernel | [WMMA for P V](../claims/wmma_pv.md)"),
              HasSubstr("faster in"));
  EXPECT_THAT(page, HasSubstr("## mma.sync fragments, softmax in registers (`mma_sync`)"));
}

TEST(TechniquesTest, AClaimsFirstScreenIsItsAnswerThenTheRestIsFolded) {
  const std::string page = Text(Pages({Synthetic()}), "claims/wmma_pv.md");
  const std::string screen = page.substr(0, page.find("<details>"));
  EXPECT_EQ(screen.find("# WMMA for P V (WMMA kernel, "), 0u);
  EXPECT_THAT(screen, HasSubstr("**Faster in all 5 verdicts: "));
  EXPECT_THAT(screen, HasSubstr("Technique: [Tensor cores](../techniques/tensor_cores.md)."));
  EXPECT_THAT(screen, HasSubstr("| **short, full mask**: expected here | "));
  EXPECT_THAT(screen, HasSubstr("![Ratios by problem](wmma_pv.svg)"));
  EXPECT_THAT(screen, HasSubstr("**Mechanism.** "));
  EXPECT_THAT(screen, HasSubstr("**Lesson.** "));
  for (const char* field :
       {"baseline → candidate", "regime", "prediction", "gate", "family of tests", "evidence",
        "results", "counter", "microbenchmark", "prior"}) {
    EXPECT_THAT(Lines(page, std::string("| ") + field + " | "), Not(::testing::IsEmpty())) << field;
  }
}

TEST(TechniquesTest, AClaimsPictureHasAMarkForEachVerdictThatMeansSomething) {
  ordered_json json = Synthetic();
  Find(json["verdicts"], "toggle", "wmma_pv", "long")["verdict"] = "BROKEN";
  const std::string svg = Text(Pages({json}), "claims/wmma_pv.svg");
  EXPECT_THAT(svg, HasSubstr("b1_h8_s512_d64</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("long</text>")));
  size_t marks = 0;
  for (size_t at = svg.find("<g "); at != std::string::npos; at = svg.find("<g ", at + 1)) ++marks;
  EXPECT_EQ(marks, 4u + 1u);  // and one in the legend
}

TEST(TechniquesTest, APageHoldsEveryVerdictOfEveryRecord) {
  ordered_json other = Synthetic();
  other["design"] = "one_on";
  const std::string page = Text(Pages({Synthetic(), other}), "claims/wmma_pv.md");
  EXPECT_THAT(page, HasSubstr("10 verdicts in 2 designs"));
  EXPECT_THAT(Lines(page, "| [ladder](../ladder.md) | `b1_h8_s512_d64` |"),
              HasSubstr("| 2.41× [2.39, 2.43] | [2.40, 2.42] | 1.15× | **ADOPT** |"));
  EXPECT_THAT(Lines(page, "| [ladder](../ladder.md) | `b1_h8_s512_d64` |"),
              HasSubstr("| `ladder:cp_async_stages` → `ladder:wmma_pv` |"));
  EXPECT_THAT(Lines(page, "| [one_on](../one_on.md) | `long` |"), HasSubstr("**ADOPT**"));
}

// What a page of a toggle showed, the pages of its technique and of its claims show.
TEST(TechniquesTest, EveryFigureOfAVerdictIsOnThePageOfItsClaim) {
  const Summary view = ViewsOf({Synthetic()})->front();
  const std::vector<Page> pages = Pages({Synthetic()});
  for (const Verdict& v : view.verdicts) {
    const std::string rows = Lines(
        Text(pages,
             "claims/" + v.toggle +
                 (v.toggle == "cp_async_stages" ? ".two_stages_over_copy_through_registers" : "") +
                 ".md"),
        "| [ladder](../ladder.md) | ");
    EXPECT_THAT(rows, HasSubstr("`" + v.shape + "`"));
    if (HasMeaning(v)) {
      EXPECT_THAT(rows, HasSubstr(RatioWithInterval(v.ratio)));
      EXPECT_THAT(rows, HasSubstr(FormatRatioInterval(v.this_board_low, v.this_board_high)));
    }
    EXPECT_THAT(rows, HasSubstr(FormatLimit(v.gate)));
    EXPECT_THAT(rows, HasSubstr("**" + v.verdict + "**"));
    EXPECT_THAT(rows, HasSubstr(Remark(v)));
    const Cell* base = view.FindCell(v.base, v.shape);
    const Cell* candidate = view.FindCell(v.candidate, v.shape);
    for (const Cell* cell : {base, candidate}) {
      EXPECT_THAT(rows, HasSubstr(FormatInteger(cell->registers)));
      EXPECT_THAT(rows, HasSubstr(FormatKib(cell->smem_bytes)));
      EXPECT_THAT(rows, HasSubstr(FormatInteger(cell->ctas_per_sm)));
    }
    if (!v.change || !v.change->opcodes) continue;
    for (const auto& opcode : v.change->opcodes->list) {
      EXPECT_THAT(rows, HasSubstr("`" + opcode.name + "` " + FormatInteger(opcode.count.before)));
    }
  }
}

TEST(TechniquesTest, AComparisonOfTwoArmsIsAClaimThoughNoStepLeadsBetweenThem) {
  ordered_json json = Synthetic();
  const auto rename = [&](const std::string& arm, const std::string& config) {
    for (ordered_json& cell : json["cells"]) {
      if (cell["variant"] == arm) cell["config"] = config;
    }
  };
  const std::string two = "kv_tiling+vector_loads+cp_async_stages";
  rename("ladder:cp_async_stages", two);
  rename("ladder:wmma_pv", two + "=3");
  json["comparisons"] = ordered_json::array();
  ordered_json compared = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b");
  compared["toggle"] = "cp_async_stages";
  compared["ratio"] = 1.003;
  compared["ci_low"] = 0.999;
  compared["ci_high"] = 1.007;
  compared["verdict"] = "NEUTRAL";
  compared["predicted_low"] = 0.98;
  compared["predicted_high"] = 1.03;
  compared["same_errors"] = {{"checks", 12}, {"same", 12}};
  json["comparisons"].push_back(compared);
  const std::vector<Page> pages = Pages({json});
  const std::string page = Text(pages, "claims/cp_async_stages.three_stages_over_two_stages.md");
  EXPECT_THAT(page, HasSubstr("**No difference in the one verdict: 1.003×.**"));
  EXPECT_THAT(Lines(page, "| prediction | "), HasSubstr("0.98× to 1.03× at `b1_h8_s512_d64`"));
  EXPECT_THAT(Lines(page, "| prediction | "), HasSubstr("It **held**: 1.003× [0.999, 1.007]"));
  EXPECT_THAT(Lines(page, "| family of tests | "), HasSubstr("no step of the design leads from"));
  EXPECT_THAT(Lines(page, "| results | "), HasSubstr("in all 12 checks"));
  const std::string questions = Text(pages, "README.md");
  EXPECT_THAT(questions, HasSubstr("- **[Three stages of K/V or two?](claims/"
                                   "cp_async_stages.three_stages_over_two_stages.md)**\n  - "
                                   "**Two.** The third stage was faster in 0 of 1 verdict over two "
                                   "stages, and slower in 0."));
}

// A record whose steps to cp.async have `verdict`, with three stages beside two.
ordered_json ThreeStages(const char* verdict, const char* three_over_two) {
  ordered_json json = Synthetic();
  json["comparisons"] = ordered_json::array();
  for (ordered_json& cell : json["cells"]) {
    if (cell["variant"] == "ladder:wmma_pv") cell["config"] = "kv_tiling+cp_async_stages=3";
  }
  for (ordered_json& step : json["verdicts"]) {
    if (step["toggle"] != "cp_async_stages") continue;
    step["verdict"] = verdict;
    ordered_json three = step;
    three["candidate"] = "ladder:wmma_pv";
    three["ratio"] = 9;
    json["comparisons"].push_back(three);
    three["base"] = step["candidate"];
    three["verdict"] = three_over_two;
    json["comparisons"].push_back(three);
  }
  return json;
}

TEST(TechniquesTest, WhatNoVerdictDecidedIsNotCalledNoDifference) {
  const char* path = "claims/cp_async_stages.three_stages_over_two_stages.md";
  EXPECT_THAT(Text(Pages({ThreeStages("ADOPT", "NEUTRAL")}), path),
              HasSubstr("**No difference in any of 5 verdicts: "));
  ordered_json json = ThreeStages("ADOPT", "INCONCLUSIVE");
  EXPECT_THAT(Text(Pages({json}), path), HasSubstr("**Not decided in any of 5 verdicts: "));
  Find(json["comparisons"], "verdict", "INCONCLUSIVE", "long")["verdict"] = "NEUTRAL";
  const std::string page = Text(Pages({json}), path);
  EXPECT_THAT(page, HasSubstr("**No difference in 1 of 5 verdicts, not decided in 4: "));
  EXPECT_THAT(Lines(page, "| **short, full mask**"), HasSubstr(", not decided in 4 of 4 |"));
}

TEST(TechniquesTest, ATargetOfTheNotesIsMetOrMissedByWholeIntervals) {
  ordered_json json = ThreeStages("ADOPT", "INCONCLUSIVE");
  const auto stage4 = [&](double low, double high) {
    ordered_json& third = Find(json["comparisons"], "verdict", "INCONCLUSIVE", "mission_b");
    third["ci_low"] = low;
    third["ci_high"] = high;
    const std::string page = Text(Pages({json}), "l4_notes.md");
    return Lines(page, "| Stage 4: ") + Lines(page, "| stage 4, ");
  };
  EXPECT_THAT(stage4(0.9, 1.06), Not(HasSubstr("gains nothing")));
  EXPECT_THAT(stage4(0.9, 1.06),
              HasSubstr("5% there: **not decided**: the target lies in the one interval. |"));
  EXPECT_THAT(stage4(0.9, 1.06), HasSubstr("| **not decided**: the target lies in the one "));
  EXPECT_THAT(stage4(0.9, 1.04), HasSubstr("5% there: **missed** in the one verdict. |"));
  EXPECT_THAT(stage4(1.05, 1.07), HasSubstr("5% there: **met** in the one verdict. |"));
}

TEST(TechniquesTest, AGateOfTheNotesIsCountedVerdictByVerdict) {
  std::vector<ordered_json> records;
  for (const auto& [design, low, high] :
       {std::tuple("ladder", 1.15, 1.3), std::tuple("one_on", 1.1, 1.14),
        std::tuple("stage2_plus", 1.1, 1.2)}) {
    ordered_json& json = records.emplace_back(Synthetic());
    json["design"] = design;
    ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b");
    verdict["ci_low"] = low;
    verdict["ci_high"] = high;
  }
  EXPECT_THAT(Lines(Text(Pages(records), "l4_notes.md"), "| stage 2, "),
              HasSubstr("| **met** in 1 of 3 verdicts, missed in 1, not decided in 1: "));
}

TEST(TechniquesTest, AnAnswerNamesWhatWasFasterInMostVerdictsThoughSlowerInOne) {
  ordered_json json = Synthetic();
  Find(json["verdicts"], "toggle", "wmma_pv", "small")["verdict"] = "REGRESSION";
  const std::string questions = Text(Pages({json}), "README.md");
  EXPECT_THAT(questions, HasSubstr("that were faster in more than half of their verdicts"));
  EXPECT_THAT(questions, HasSubstr("faster in 3 of 4 and slower in 1"));
}

TEST(TechniquesTest, APredictionIsCountedOnceHoweverManyVerdictsTestIt) {
  ordered_json other = Synthetic();
  other["design"] = "one_on";
  // Held by its interval alone: 2.41x [2.39, 2.52] where 1.5x to 2.4x was predicted.
  ordered_json json = Synthetic();
  ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b");
  verdict["predicted_high"] = 2.4;
  const std::vector<Page> pages = Pages({json, other});
  const std::string questions = Text(pages, "README.md");
  EXPECT_THAT(questions, HasSubstr("**1 of 7 predictions** missed in at least one verdict: 2 of 14 "
                                   "verdicts on them."));
  EXPECT_THAT(questions, HasSubstr("in 1 of 12 verdicts where it held, the ratio itself lies"));
  EXPECT_THAT(Lines(Text(Pages({json}), "claims/wmma_pv.md"), "| prediction | "),
              HasSubstr("the interval reaches the range, the ratio itself does not."));
}

TEST(TechniquesTest, TheTableTakesTheLevelToWhichVerdictsBetweenLevelsLead) {
  const auto row = [](const ordered_json& json) {
    return Lines(RenderTechniques(*ViewsOf({json}), {}).value().readme,
                 "| **[Copies ahead of use]");
  };
  EXPECT_THAT(row(ThreeStages("ADOPT", "NEUTRAL")),
              HasSubstr("`two_stages` over `copy_through_registers`: "));
  EXPECT_THAT(row(ThreeStages("ADOPT", "ADOPT")),
              HasSubstr("`three_stages` over `copy_through_registers`: "));
}

TEST(TechniquesTest, AnotherLevelsMechanismIsSaidToBeThatOfTheFirst) {
  const std::vector<Page> pages = Pages({ThreeStages("ADOPT", "ADOPT")});
  EXPECT_THAT(Text(pages, "claims/cp_async_stages.three_stages_over_two_stages.md"),
              HasSubstr("**Mechanism.** (Written for `two_stages`.) "));
  EXPECT_THAT(Text(pages, "claims/cp_async_stages.two_stages_over_copy_through_registers.md"),
              Not(HasSubstr("(Written for ")));
}

TEST(TechniquesTest, VerdictsSayHowOftenATechniquePays) {
  for (const auto& [verdict, often] :
       {std::pair("ADOPT", "pays without a loss"), std::pair("NEUTRAL", "sometimes pays"),
        std::pair("REGRESSION", "never pays")}) {
    EXPECT_THAT(Text(Pages({ThreeStages(verdict, "NEUTRAL")}), "techniques/copies_ahead_of_use.md"),
                HasSubstr(std::string("**Does it pay?** It ") + often +
                          " in the WMMA kernel; best where "));
  }
}

TEST(TechniquesTest, ARecordsIntervalPredictsForLaterRecords) {
  ordered_json json = Synthetic();
  for (ordered_json& cell : json["cells"]) {
    if (cell["variant"] == "ladder:cp_async_stages") cell["config"] = "mma_sync";
    if (cell["variant"] == "ladder:wmma_pv") cell["config"] = "mma_sync+mma_exp=2";
  }
  ordered_json compared = Find(json["verdicts"], "toggle", "wmma_pv", "long");
  compared["toggle"] = "mma_exp";
  compared["ratio"] = 1.08;
  compared["ci_low"] = 1.075;
  compared["ci_high"] = 1.085;
  compared["predicted_low"] = compared["predicted_high"] = nullptr;
  compared["prediction_held"] = nullptr;
  json["comparisons"] = {compared};
  const auto prediction = [&](const char* made) {
    json["provenance"]["created_utc"] = made;
    return Lines(Text(Pages({json}), "claims/mma_exp.fast_expf_over_expf.md"), "| prediction | ");
  };
  EXPECT_THAT(prediction("2026-11-25T23:59:59Z"), HasSubstr("1.071× to 1.090× at `long`"));
  EXPECT_THAT(prediction("2026-11-25T23:59:59Z"), HasSubstr("No record since then judges it"));
  EXPECT_THAT(prediction("2026-11-26T00:00:01Z"), HasSubstr("It **held**: 1.080×"));
}

TEST(TechniquesTest, NamesResolveOldPagesLevelsAndArms) {
  ordered_json json = Synthetic();
  for (ordered_json& cell : json["cells"]) {
    if (cell["variant"] == "ladder:kv_tiling") cell["config"] = "kv_tiling+cp_async_stages=3";
  }
  const std::string names = Text(Pages({json}), "names.md");
  EXPECT_THAT(
      Lines(names, "| `techniques/wmma_pv.md` |"),
      HasSubstr("[Tensor cores](techniques/tensor_cores.md) | [wmma_pv](claims/wmma_pv.md)"));
  EXPECT_THAT(Lines(names, "| `kv_ring_stages=3` |"), HasSubstr("`kv_ring_stages=three_stages`"));
  EXPECT_THAT(Lines(names, "| `mission_b` |"),
              HasSubstr("| `b1_h8_s512_d64` | `b1_h8_s512_d64` | the L4 notes' mission shape"));
  EXPECT_THAT(Lines(names, "| `long` |"), HasSubstr("| `long` | `b1_h8_s2048_d64` |"));
  EXPECT_THAT(Lines(names, "| `ladder:kv_tiling` |"),
              HasSubstr("`minimal_scalar{kv_tiling, cp_async_stages=three_stages}`"));
}

TEST(TechniquesTest, SaysSoWhereNoRecordJudgesATechnique) {
  const std::vector<Page> pages = Pages({Synthetic()});
  EXPECT_THAT(Text(pages, "techniques/ping_pong_scheduling.md"),
              HasSubstr("No record yet: no design"));
  EXPECT_THAT(Text(pages, "techniques/tensor_cores.md"), HasSubstr("No record judges it"));
  EXPECT_THAT(Lines(Text(pages, "techniques.md"), "No record yet: "),
              HasSubstr("(techniques/ping_pong_scheduling.md)"));
}

TEST(TechniquesTest, ABrokenTechniqueShowsItsFailingFigureAndNoRatio) {
  ordered_json json = Synthetic();
  ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_pv", "long");
  verdict["verdict"] = "BROKEN";
  verdict["reason"] = "wrong on normal inputs";
  for (ordered_json& cell : json["cells"]) {
    if (cell["variant"] != "ladder:wmma_pv" || cell["shape"] != "long") continue;
    cell["correct"] = false;
    cell["max_err"] = 0.41;
  }
  const std::vector<Page> pages = Pages({json});
  const std::string line =
      Lines(Text(pages, "claims/wmma_pv.md"), "| [ladder](../ladder.md) | `long` |");
  EXPECT_THAT(line, HasSubstr("| – | 1.15× | **BROKEN** | wrong on normal inputs; `ladder:wmma_pv` "
                              "correct: **no** (4.1e-01 against 1.2e-04) |"));
  const std::string row = Lines(Text(pages, "techniques.md"), "| [WMMA for P V]");
  EXPECT_THAT(row, ::testing::EndsWith("| [ladder](ladder.md) BROKEN |\n"));
}

TEST(TechniquesTest, TheIndexCountsWhereADesignJudgesATechniqueSeveralTimes) {
  ordered_json json = Synthetic();
  ordered_json second = Find(json["verdicts"], "toggle", "wmma_pv", "mission_b");
  second["candidate"] = "ladder:wmma_pv=2";
  second["verdict"] = "NEUTRAL";
  second["ratio"] = 1.001;
  json["verdicts"].push_back(second);
  EXPECT_THAT(Lines(Text(Pages({json}), "techniques.md"), "| [WMMA for P V]"),
              HasSubstr("[ladder](ladder.md) 1 ADOPT and 1 NEUTRAL 1.001× to 2.41×"));
}

TEST(TechniquesTest, KeepsHeadDimensionsAndMasksInTablesOfTheirOwn) {
  ordered_json json = Synthetic();
  for (ordered_json& shape : json["shapes"]) {
    if (shape["name"] == "long") shape["causal"] = true;
  }
  const std::string index = Text(Pages({json}), "techniques.md");
  EXPECT_THAT(index,
              HasSubstr("head_dim 64:\n\n| technique | `small` | `medium` | `b2_h8_s256_d64` | "
                        "`b1_h8_s512_d64` |\n"));
  EXPECT_THAT(index, HasSubstr("head_dim 64, causal:\n\n| technique | `long` |\n"));
}

TEST(TechniquesTest, SetsResourcesAndInstructionsSideBySide) {
  const std::string page = Text(Pages({Synthetic()}), "claims/wmma_qk.md");
  const std::string row = Lines(page, "| [ladder](../ladder.md) | `minimal_scalar{");
  EXPECT_THAT(row, HasSubstr("| 72 → 86 | 18.5 → 22.5 | 0 | 6 → 5 | 1400 → 1500 | 0 → 32 | `HMMA` "
                             "0 → 32, `LDS` 80 → 56, `MUFU` 8 → 4 |"));
  EXPECT_EQ(row.find('\n'), row.size() - 1) << "a pair stands once, not once per shape:\n" << row;
}

TEST(TechniquesTest, LeavesInstructionsOutWhereTheRecordHasNoDisassembly) {
  ordered_json json = Synthetic();
  for (ordered_json& verdict : json["verdicts"]) {
    for (const char* field : {"instructions", "evidence", "opcodes"}) {
      verdict["change"][field] = nullptr;
    }
  }
  ordered_json older = Synthetic();
  for (ordered_json& verdict : older["verdicts"]) verdict.erase("change");
  for (const ordered_json& summary : {json, older}) {
    EXPECT_THAT(Lines(Text(Pages({summary}), "claims/wmma_qk.md"),
                      "| [ladder](../ladder.md) | `minimal_scalar{"),
                HasSubstr("| 6 → 5 | – | – | – |"));
  }
}

TEST(TechniquesTest, NamesTheFiveLargestChangesOfOpcodes) {
  ordered_json json = Synthetic();
  for (ordered_json& verdict : json["verdicts"]) {
    ordered_json& opcodes = verdict["change"]["opcodes"];
    opcodes = ordered_json::object();
    for (const char* name : {"F", "E", "D", "C", "B", "A"}) opcodes[name] = {9, 8};
  }
  EXPECT_THAT(Text(Pages({json}), "claims/wmma_qk.md"),
              HasSubstr("| `F` 9 → 8, `E` 9 → 8, `D` 9 → 8, `C` 9 → 8, `B` 9 → 8 |"));
}

TEST(TechniquesTest, QuotesTheMicrobenchmarkBesideTheKernel) {
  ordered_json json = Synthetic();
  for (const auto& [name, value] : {std::pair("warp_reduction/serial_shared/max/rows8/latency", 40),
                                    std::pair("warp_reduction/shfl_xor/max/rows8/latency", 10)}) {
    json["micro"].push_back(
        {{"name", name}, {"unit", "cycles"}, {"value", value}, {"percent_of_limit", nullptr}});
  }
  json["provenance"]["micro"] = QuotedMicro();
  const std::vector<Page> pages = Pages({json});
  EXPECT_THAT(Text(pages, "techniques/warp_shuffle.md"),
              HasSubstr("alone it is worth **4.00×**, in the kernel 1.520× to 1.740×. How it is "
                        "measured: [warp_reduction](../micro/warp_reduction.md) (record "
                        "`micro-1`)"));
  EXPECT_THAT(Text(pages, "techniques/tensor_cores.md"),
              HasSubstr("No record yet of its microbenchmark"));
  EXPECT_THAT(Text(pages, "techniques/tile_m.md"), HasSubstr("No microbenchmark isolates it."));
}

TEST(TechniquesTest, SaysWhereATechniqueCantBeAndWhy) {
  const std::string page =
      Text(Pages({Synthetic()}), "techniques/shared_memory_without_bank_conflicts.md");
  EXPECT_THAT(page, HasSubstr("the families `mma`, `wgmma` and `resident`, whose kernels don't "
                              "branch on it. mma has mma_smem_layout;"));
  EXPECT_THAT(page, HasSubstr("- Together with `wmma_qk`, at least at some levels: "
                              "wmma::load_matrix_sync takes one leading dimension"));
}

TEST(TechniquesTest, SaysWhyAVerdictAtThePredictionsProblemDoesNotTestIt) {
  const auto prediction = [](const char* shape) {
    ordered_json json = Synthetic();
    ordered_json kept = ordered_json::array();
    for (ordered_json& verdict : json["verdicts"]) {
      if (verdict["toggle"] != "wmma_pv" || verdict["shape"] != shape) continue;
      // As of a design in another order than the ladder's.
      verdict["predicted_low"] = verdict["predicted_high"] = verdict["prediction_held"] = nullptr;
      kept.push_back(verdict);
    }
    json["verdicts"] = kept;
    return Lines(Text(Pages({json}), "claims/wmma_pv.md"), "| prediction | ");
  };
  EXPECT_THAT(prediction("mission_b"),
              HasSubstr("No record judges it there in the order that the prediction is for; the "));
  EXPECT_THAT(prediction("long"),
              HasSubstr("No record judges it at the problem of the prediction"));
}

TEST(TechniquesTest, TellsBlindPredictionsFromOthers) {
  ordered_json json = Synthetic();
  const std::vector<Page> pages = Pages({json});
  EXPECT_THAT(
      Lines(Text(pages, "claims/wmma_pv.md"), "| prediction | "),
      HasSubstr("1.50× to 2.50× at `b1_h8_s512_d64`, written before anything of it had run. "));
  EXPECT_THAT(Lines(Text(pages, "claims/vector_loads.md"), "| prediction | "),
              HasSubstr("It **missed high**"));
  for (ordered_json& cell : json["cells"]) {
    if (cell["variant"] == "ladder:wmma_pv") cell["config"] = "wgmma";
  }
  for (ordered_json& verdict : json["verdicts"]) {
    if (verdict["toggle"] == "wmma_pv") verdict["toggle"] = "wgmma";
  }
  EXPECT_THAT(Lines(Text(Pages({json}), "claims/wgmma.wgmma.md"), "| prediction | "),
              HasSubstr("written after prototypes had run. "));
}

TEST(TechniquesTest, WarnsOfRecordsThatAreOlderThanTheKernels) {
  const std::vector<Page> fresh = Pages(
      {Synthetic()},
      {.kernel_source_sha256 = std::string(64, 'b'), .registry_sha256 = std::string(64, 'a')});
  EXPECT_THAT(Text(fresh, "claims/wmma_pv.md"), Not(HasSubstr("Warning")));
  const auto table = [](const RenderOptions& options) {
    return RenderTechniques(*ViewsOf({Synthetic()}), options).value().readme;
  };
  EXPECT_THAT(table({.kernel_source_sha256 = std::string(64, 'b')}), Not(HasSubstr("†")));
  EXPECT_THAT(
      Lines(table({.kernel_source_sha256 = std::string(64, 'c')}), "| **[Copies ahead of use]"),
      HasSubstr(" † |"));
  EXPECT_THAT(Text(fresh, "techniques.md"), HasSubstr("| current"));
  const std::vector<Page> stale =
      Pages({Synthetic()}, {.kernel_source_sha256 = std::string(64, 'c')});
  EXPECT_THAT(Text(stale, "claims/wmma_pv.md"),
              HasSubstr("> **Warning: older machine code.** The kernels changed since "
                        "`synthetic-0001`; figures of that record "));
  EXPECT_THAT(Text(stale, "techniques.md"), HasSubstr("since then the kernels' sources changed"));
}

TEST(TechniquesTest, WarnsOnThePagesOfTechniquesWhoseOwnKernelsChanged) {
  const ordered_json json = Synthetic();
  ordered_json hashes;
  for (const ordered_json& cell : json["cells"]) {
    hashes[cell["config"].get<std::string>()] = cell["code_sha256"];
  }
  hashes["minimal_scalar"] = "another";
  RenderOptions tree = {.kernel_source_sha256 = "another"};
  tree.tree_code =
      *ParseTreeCode({{"schema_version", 1}, {"nvcc", "13.0.0"}, {"archs", {{"sm_90", hashes}}}});
  const std::vector<Page> pages = Pages({json}, tree);
  EXPECT_THAT(Text(pages, "claims/kv_tiling.md"), HasSubstr("> **Warning"));
  EXPECT_THAT(Text(pages, "claims/wmma_pv.md"), Not(HasSubstr("Warning")));
  EXPECT_THAT(Text(pages, "techniques.md"),
              HasSubstr("**older than the kernels: since then the machine code of 1 of its "));
  hashes["minimal_scalar"] = std::string(64, '0');
  tree.tree_code =
      *ParseTreeCode({{"schema_version", 1}, {"nvcc", "13.0.0"}, {"archs", {{"sm_90", hashes}}}});
  const std::vector<Page> fresh = Pages({json}, tree);
  EXPECT_THAT(Text(fresh, "claims/kv_tiling.md"), Not(HasSubstr("Warning")));
  EXPECT_THAT(Text(fresh, "techniques.md"),
              HasSubstr("| current. Sources changed after this record, but the machine code of "));
}

TEST(TechniquesTest, RefusesRecordsThatDontGoTogether) {
  EXPECT_FALSE(RenderTechniques({}, {}).ok());
  EXPECT_THAT(RenderTechniques(*ViewsOf({Synthetic(), Synthetic()}), {}).status().ToString(),
              HasSubstr("both of design ladder"));
  ordered_json other = Synthetic();
  other["gpu"] = "l4";
  other["design"] = "one_on";
  EXPECT_THAT(RenderTechniques(*ViewsOf({Synthetic(), other}), {}).status().ToString(),
              HasSubstr("of two GPUs"));
  other = Synthetic();
  other["design"] = "one_on";
  other["provenance"]["cache"] = "cold";
  EXPECT_THAT(RenderTechniques(*ViewsOf({Synthetic(), other}), {}).status().ToString(),
              HasSubstr("with a cold L2"));
}

}  // namespace
}  // namespace warpledger::report
