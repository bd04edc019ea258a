// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/budget.h"

#include <gmock/gmock.h>

#include <fstream>

#include "reports/sections/sections.h"
#include "tests/reports/from_json.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSms = 132;
constexpr char kBase[] = "wgmma+resident_kv";
constexpr char kClustered[] = "wgmma+resident_kv+cluster_split_kv";

Shape MissionB() {
  Shape shape;
  shape.name = "mission_b";
  shape.attention = {
      .batch = 1, .heads_q = 8, .heads_kv = 8, .seq_q = 512, .seq_kv = 512, .head_dim = 64};
  return shape;
}

sdpa::Config Resident() { return {.wgmma = 1, .resident_kv = 1}; }

TEST(KernelWorkTest, ATileOf64RowsReadsAllKeysOfItsHead) {
  const KernelWork work = WorkOf(MissionB(), Resident(), kSms);
  EXPECT_EQ(work.ctas, 64);
  EXPECT_EQ(work.rounds, 1);
  EXPECT_EQ(work.scores, 64 * 512);
  EXPECT_EQ(work.load_bytes, 8 * 512 * 64 * 2 + 64 * 2 * 512 * 64 * 2);
  EXPECT_EQ(work.exchange_bytes, 0);
  EXPECT_EQ(work.store_bytes, 8 * 512 * 64 * 2);
  EXPECT_FALSE(work.dependent_launch);
}

TEST(KernelWorkTest, AClusterHalvesTheScoresOfAnSmAndSendsHalfOfO) {
  sdpa::Config config = Resident();
  config.cluster_split_kv = 2;
  KernelWork work = WorkOf(MissionB(), config, kSms);
  EXPECT_EQ(work.ctas, 128);
  EXPECT_EQ(work.scores, 64 * 256);
  EXPECT_EQ(work.load_bytes, WorkOf(MissionB(), Resident(), kSms).load_bytes);
  EXPECT_EQ(work.exchange_bytes, 64 * 64 / 2 * 4);
  config.fp16_exchange = 1;
  EXPECT_EQ(WorkOf(MissionB(), config, kSms).exchange_bytes, 64 * 64 / 2 * 2);
  // Two parts in each CTA: each sends two of four quarters to the other CTA.
  config.kv_warpgroups = 1;
  EXPECT_EQ(WorkOf(MissionB(), config, kSms).exchange_bytes, 2 * 64 * 64 / 2 * 2);
}

TEST(KernelWorkTest, TheBusiestSmRunsARoundMoreWhereCtasDontFit) {
  Shape shape = MissionB();
  shape.attention->batch = 3;  // 192 tiles on 132 SMs
  const KernelWork work = WorkOf(shape, Resident(), kSms);
  EXPECT_EQ(work.rounds, 2);
  EXPECT_EQ(work.scores, 2 * 64 * 512);
}

TEST(KernelWorkTest, APartOfATileCountsAsOne) {
  Shape shape = MissionB();
  shape.attention->seq_q = 65;
  EXPECT_EQ(WorkOf(shape, Resident(), kSms).ctas, 16);
}

// The synthetic record as one of hopper_small, its last step of the configuration `config`, with
// microbenchmarks whose values make round figures at 2000 MHz.
ordered_json BudgetRecord(const std::string& config) {
  std::ifstream file("tests/reports/testdata/summary.json");
  EXPECT_TRUE(file) << "run the test from the repository's root";
  ordered_json json = ordered_json::parse(file);
  json["design"] = "hopper_small";
  json["provenance"]["gpu"]["max_sm_clock_mhz"] = 2000;
  json["provenance"]["micro"] = QuotedMicro();
  for (ordered_json& cell : json["cells"]) {
    cell["config"] = cell["variant"] == "ladder:wmma_pv" ? config : "wgmma";
  }
  const std::pair<const char*, double> cases[] = {
      {"launch/empty_one_cta_per_sm/graph", 0.7},
      {"launch/add_one_one_cta_per_sm/graph", 1.1},
      {"launch/add_one_one_cta_per_sm/programmatic", 0.65},
      {"global_memory/chase_past_l1_8MiB/latency", 300},
      {"global_memory/chase_past_l1_1GiB/latency", 700},
      {"global_memory/read_16MiB/bandwidth", 10000},
      {"global_memory/dram_16B/bandwidth", 1000},
      {"wgmma/m64n128k16_f16_ss/throughput/warpgroups_1", 4096},
      {"wgmma/m64n64k16_f16_rs/throughput/warpgroups_1", 2048},
      {"exp_cost/ex2_approx_ftz_f32/throughput", 16},
      {"dsmem/st_async_512B/latency", 400},
      {"dsmem/st_async_16B/throughput", 32}};
  for (const auto& [name, value] : cases) {
    json["micro"].push_back(
        {{"name", name}, {"unit", "u"}, {"value", value}, {"percent_of_limit", nullptr}});
  }
  return json;
}

void Forget(ordered_json& json, const std::string& name) {
  for (auto row = json["micro"].begin(); row != json["micro"].end(); ++row) {
    if ((*row)["name"] != name) continue;
    json["micro"].erase(row);
    return;
  }
  ADD_FAILURE() << "no case " << name;
}

Budget At(const ordered_json& json) {
  const Summary summary = ViewOf(json).value();
  const Cell* cell = summary.FindCell("ladder:wmma_pv", "b1_h8_s512_d64");
  return BudgetOf(summary, summary.MainShape(), *cell).value();
}

double Us(const Budget& budget, std::string_view name) {
  for (const BudgetPart& part : budget.parts) {
    if (part.name == name && part.us) return *part.us;
  }
  ADD_FAILURE() << "no figure of " << name;
  return 0;
}

TEST(BudgetTest, APartIsItsWorkOverTheMeasuredRate) {
  const Budget budget = At(BudgetRecord(kBase));
  EXPECT_DOUBLE_EQ(Us(budget, "launch"), 0.512);  // the record's own empty kernel
  EXPECT_DOUBLE_EQ(Us(budget, "first load"), 0.15);
  EXPECT_DOUBLE_EQ(Us(budget, "loads"), (524288 + 8388608) / 1e7);
  EXPECT_DOUBLE_EQ(Us(budget, "Q Kᵀ"), 2.0 * 64 * 512 * 64 / 4096 / 2000);
  EXPECT_DOUBLE_EQ(Us(budget, "softmax"), 64.0 * 512 / 16 / 2000);
  EXPECT_DOUBLE_EQ(Us(budget, "P V"), 2.0 * 64 * 512 * 64 / 2048 / 2000);
  EXPECT_EQ(Us(budget, "combine"), 0);
  EXPECT_DOUBLE_EQ(Us(budget, "store"), 524288 / 1e7);
  double sum = 0;
  for (const BudgetPart& part : budget.parts) sum += part.us.value_or(0);
  EXPECT_DOUBLE_EQ(budget.sum_us, sum);
  EXPECT_TRUE(budget.complete);
}

TEST(BudgetTest, AClusterPaysForItsCombine) {
  const Budget budget = At(BudgetRecord(kClustered));
  EXPECT_DOUBLE_EQ(Us(budget, "combine"), (400 + 64 * 64 / 2 * 4 / 32.0) / 2000);
  EXPECT_DOUBLE_EQ(Us(budget, "softmax"), 64.0 * 256 / 16 / 2000);
}

TEST(BudgetTest, DependentLaunchLeavesWhatTheSmallKernelSays) {
  const Budget budget = At(BudgetRecord(std::string(kClustered) + "+dependent_launch"));
  EXPECT_NEAR(Us(budget, "launch"), 0.65 - (1.1 - 0.7), 1e-12);
}

TEST(BudgetTest, ColdCachesReadFromDram) {
  ordered_json json = BudgetRecord(kBase);
  json["provenance"]["cache"] = "cold";
  const Budget budget = At(json);
  EXPECT_DOUBLE_EQ(Us(budget, "first load"), 0.35);
  EXPECT_DOUBLE_EQ(Us(budget, "loads"), 3 * 524288 / 1e6);  // Q, K and V once
}

TEST(BudgetTest, WithoutAFloorOfTheRecordTheMicrobenchmarksLaunchCounts) {
  ordered_json json = BudgetRecord(kBase);
  json["floors"] = ordered_json::array();
  EXPECT_DOUBLE_EQ(Us(At(json), "launch"), 0.7);
}

TEST(BudgetTest, APartWithoutItsMicrobenchmarkHasNoFigure) {
  ordered_json json = BudgetRecord(kClustered);
  Forget(json, "dsmem/st_async_512B/latency");
  const Budget budget = At(json);
  EXPECT_FALSE(budget.complete);
  for (const BudgetPart& part : budget.parts) {
    EXPECT_EQ(part.us.has_value(), part.name != "combine") << part.name;
    EXPECT_EQ(part.missing, part.name == "combine" ? "dsmem/st_async_512B/latency" : "");
  }
}

TEST(BudgetTest, RefusesAConfigurationOfAnotherRegistry) {
  const absl::StatusOr<Summary> summary = ViewOf(BudgetRecord("no_such_toggle"));
  const Cell* cell = summary->FindCell("ladder:wmma_pv", "b1_h8_s512_d64");
  EXPECT_THAT(BudgetOf(*summary, summary->MainShape(), *cell).status().ToString(),
              HasSubstr("no_such_toggle"));
}

std::string BudgetSection(const ordered_json& json) {
  return SmallShapesSection(ViewOf(json).value(), "plots/");
}

// The text from a heading to the next.
std::string Part(const std::string& text, const std::string& heading) {
  const size_t begin = text.find(heading);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find("\n### ", begin + 1) - begin);
}

TEST(SmallShapesSectionTest, StandsInThatDesignsReportAlone) {
  ordered_json json = BudgetRecord(kBase);
  EXPECT_NE(BudgetSection(json), "");
  json["design"] = "hopper";
  EXPECT_EQ(BudgetSection(json), "");
}

TEST(SmallShapesSectionTest, SetsStepsPeersAndBudgetTogether) {
  const std::string text = Part(BudgetSection(BudgetRecord(kClustered)), "### `b1_h8_s512_d64`");
  EXPECT_THAT(text, HasSubstr("](plots/hopper_small_ladder_b1_h8_s512_d64.svg)"));
  EXPECT_THAT(text, HasSubstr("`ladder:wmma_pv` | 14.22 | [14.16, 14.27] | 2.41× [2.39, 2.43] | "
                              "0.633× | yes"));
  EXPECT_THAT(text, HasSubstr("| peer: cudnn | 9.000 |"));
  EXPECT_THAT(text, HasSubstr("| step | launch | first load | loads | Q Kᵀ | softmax | P V | "
                              "combine | store | sum, µs | reached, µs | reached / sum |"));
  EXPECT_THAT(text, HasSubstr("| `ladder:wmma_pv` | 0.51 | 0.15 | 0.89 | 0.26 | 0.51 | 0.51 | 0.33 "
                              "| 0.052 | 3.21 | 14.22 | 4.42× |"));
}

TEST(SmallShapesSectionTest, NamesWhatTheBudgetLacks) {
  ordered_json json = BudgetRecord(kClustered);
  Forget(json, "dsmem/st_async_16B/throughput");
  const std::string text = BudgetSection(json);
  EXPECT_THAT(text, HasSubstr("| – | 0.052 | at least 2.89 | 14.22 | – |"));
  EXPECT_THAT(text, HasSubstr("lack `dsmem/st_async_16B/throughput`"));
  EXPECT_THAT(text, HasSubstr("`dsmem/st_async_16B/throughput` (not quoted)"));
}

TEST(SmallShapesSectionTest, ACausalShapeHasNoBudget) {
  ordered_json json = BudgetRecord(kBase);
  for (ordered_json& shape : json["shapes"]) shape["causal"] = true;
  const std::string text = BudgetSection(json);
  EXPECT_THAT(text, HasSubstr("No budget: "));
  EXPECT_THAT(text, Not(HasSubstr("reached / sum |")));
}

}  // namespace
}  // namespace warpledger::report
