// SPDX-License-Identifier: Apache-2.0
#include "reports/pages/techniques.h"

#include <gmock/gmock.h>

#include "kernels/sdpa/registry/registry.h"
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

ordered_json& VerdictOn(ordered_json& summary, const std::string& toggle,
                        const std::string& shape) {
  for (ordered_json& verdict : summary["verdicts"]) {
    if (verdict["toggle"] == toggle && verdict["shape"] == shape) return verdict;
  }
  ADD_FAILURE() << "no verdict on " << toggle;
  return summary["verdicts"][0];
}

TEST(TechniquesTest, EveryToggleHasAPageThatTheIndexLinks) {
  const std::vector<Page> pages = Pages({Synthetic()});
  const std::string index = Text(pages, "techniques.md");
  size_t count = 0;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control) continue;
    ++count;
    const std::string path = "techniques/" + std::string(row.id) + ".md";
    EXPECT_THAT(index, HasSubstr("](" + path + ")")) << row.id;
    const std::string page = Text(pages, path);
    EXPECT_THAT(page, HasSubstr("**Claim.** " + std::string(row.claim)));
    EXPECT_THAT(page, HasSubstr(std::string(row.predicted.why)));
    EXPECT_THAT(page, HasSubstr("**Prior.** " + std::string(row.prior.text)));
    EXPECT_THAT(page, HasSubstr(std::string(row.lesson)));
  }
  EXPECT_EQ(pages.size(), count + 3);
}

TEST(TechniquesTest, APageHoldsEveryVerdictOfEveryRecord) {
  ordered_json other = Synthetic();
  other["design"] = "one_on";
  const std::string page = Text(Pages({Synthetic(), other}), "techniques/wmma_pv.md");
  EXPECT_THAT(page, HasSubstr("10 verdicts in 2 designs"));
  EXPECT_THAT(Lines(page, "| [ladder](../ladder.md) | `mission_b` |"),
              HasSubstr("| `ladder:cp_async_stages` | `ladder:wmma_pv` | 2.41× [2.39, 2.43] | "
                        "[2.40, 2.42] | 1.15× | **ADOPT** |"));
  EXPECT_THAT(Lines(page, "| [one_on](../one_on.md) | `long` |"), HasSubstr("**ADOPT**"));
}

TEST(TechniquesTest, SaysSoWhereNoRecordJudgesATechnique) {
  const std::vector<Page> pages = Pages({Synthetic()});
  EXPECT_THAT(Text(pages, "techniques/mma_sync.md"), HasSubstr("No record yet: no design"));
  EXPECT_THAT(Lines(Text(pages, "techniques.md"), "No record yet: "),
              HasSubstr("(techniques/mma_sync.md)"));
}

TEST(TechniquesTest, ABrokenTechniqueShowsItsFailingFigureAndNoRatio) {
  ordered_json json = Synthetic();
  ordered_json& verdict = VerdictOn(json, "wmma_pv", "long");
  verdict["verdict"] = "BROKEN";
  verdict["reason"] = "wrong on normal inputs";
  for (ordered_json& cell : json["cells"]) {
    if (cell["variant"] != "ladder:wmma_pv" || cell["shape"] != "long") continue;
    cell["correct"] = false;
    cell["max_err"] = 0.41;
  }
  const std::vector<Page> pages = Pages({json});
  const std::string line =
      Lines(Text(pages, "techniques/wmma_pv.md"), "| [ladder](../ladder.md) | `long` |");
  EXPECT_THAT(line, HasSubstr("| – | 1.15× | **BROKEN** | wrong on normal inputs; `ladder:wmma_pv` "
                              "correct: **no** (4.1e-01 against 1.2e-04) |"));
  const std::string row = Lines(Text(pages, "techniques.md"), "| [WMMA for P V]");
  EXPECT_THAT(row, ::testing::EndsWith("| [ladder](ladder.md) BROKEN |\n"));
}

TEST(TechniquesTest, TheIndexCountsWhereADesignJudgesATechniqueSeveralTimes) {
  ordered_json json = Synthetic();
  ordered_json second = VerdictOn(json, "wmma_pv", "mission_b");
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
  EXPECT_THAT(index, HasSubstr("head_dim 64:\n\n| technique | `small` | `medium` | `mission_a` | "
                               "`mission_b` |\n"));
  EXPECT_THAT(index, HasSubstr("head_dim 64, causal:\n\n| technique | `long` |\n"));
}

TEST(TechniquesTest, SetsResourcesAndInstructionsSideBySide) {
  const std::string page = Text(Pages({Synthetic()}), "techniques/wmma_qk.md");
  const std::string row = Lines(page, "| [ladder](../ladder.md) | `ladder:vector_loads` |");
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
    EXPECT_THAT(Lines(Text(Pages({summary}), "techniques/wmma_qk.md"),
                      "| [ladder](../ladder.md) | `ladder:vector_loads` |"),
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
  EXPECT_THAT(Text(Pages({json}), "techniques/wmma_qk.md"),
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
  EXPECT_THAT(Text(pages, "techniques/wmma_pv.md"),
              HasSubstr("No record yet of its microbenchmark"));
  EXPECT_THAT(Text(pages, "techniques/tile_m.md"), HasSubstr("No microbenchmark isolates it."));
}

TEST(TechniquesTest, SaysWhereATechniqueCantBeAndWhy) {
  const std::string page = Text(Pages({Synthetic()}), "techniques/xor_swizzle.md");
  EXPECT_THAT(page, HasSubstr("In the families `mma`, `wgmma` and `resident`, whose kernels don't "
                              "branch on it. mma has mma_smem_layout;"));
  EXPECT_THAT(page, HasSubstr("- Together with `wmma_qk`, at least at some levels: "
                              "wmma::load_matrix_sync takes one leading dimension"));
}

TEST(TechniquesTest, TellsBlindPredictionsFromOthers) {
  const std::vector<Page> pages = Pages({Synthetic()});
  EXPECT_THAT(Text(pages, "techniques/wmma_pv.md"),
              HasSubstr("**Prediction**, written before anything of it had run. 1.50× to 2.50× at "
                        "`mission_b`"));
  EXPECT_THAT(Text(pages, "techniques/wgmma.md"),
              HasSubstr("**Prediction**, written after prototypes had run."));
  EXPECT_THAT(Text(pages, "techniques/vector_loads.md"), HasSubstr("It **missed high**"));
}

TEST(TechniquesTest, WarnsOfRecordsThatAreOlderThanTheKernels) {
  const std::vector<Page> fresh = Pages(
      {Synthetic()},
      {.kernel_source_sha256 = std::string(64, 'b'), .registry_sha256 = std::string(64, 'a')});
  EXPECT_THAT(Text(fresh, "techniques/wmma_pv.md"), Not(HasSubstr("Warning")));
  EXPECT_THAT(Text(fresh, "techniques.md"), HasSubstr("of these kernels"));
  const std::vector<Page> stale =
      Pages({Synthetic()}, {.kernel_source_sha256 = std::string(64, 'c')});
  EXPECT_THAT(Text(stale, "techniques/wmma_pv.md"),
              HasSubstr("> **Warning: older than the kernels** is `synthetic-0001`"));
  EXPECT_THAT(Text(stale, "techniques/mma_sync.md"), Not(HasSubstr("Warning")));
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
  EXPECT_THAT(Text(pages, "techniques/kv_tiling.md"), HasSubstr("> **Warning"));
  EXPECT_THAT(Text(pages, "techniques/wmma_pv.md"), Not(HasSubstr("Warning")));
  EXPECT_THAT(Text(pages, "techniques.md"),
              HasSubstr("**older than the kernels: since then the machine code of 1 of its "));
  hashes["minimal_scalar"] = std::string(64, '0');
  tree.tree_code =
      *ParseTreeCode({{"schema_version", 1}, {"nvcc", "13.0.0"}, {"archs", {{"sm_90", hashes}}}});
  const std::vector<Page> fresh = Pages({json}, tree);
  EXPECT_THAT(Text(fresh, "techniques/kv_tiling.md"), Not(HasSubstr("Warning")));
  EXPECT_THAT(Text(fresh, "techniques.md"),
              HasSubstr("| of these kernels. Sources changed since; the machine code of all its "));
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
