// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/registry/variant.h"
#include "reports/pages/pages.h"
#include "reports/sections/sections.h"
#include "tests/reports/from_json.h"
#include "tests/reports/synthetic_summary.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A record of a design, whose peers were timed alone.
ordered_json GridRecord(const std::string& design, const std::vector<double>& ratios) {
  ordered_json json = Grid(ratios);
  json["design"] = design;
  json["run_id"] = design + "-run";
  json["provenance"]["created_utc"] = "2026-11-22T00:00:00Z";
  return json;
}

void ScaleTimes(ordered_json& json, double factor) {
  for (const char* list : {"cells", "peers"}) {
    for (ordered_json& entry : json[list]) {
      if (entry["p50_us"].is_number()) entry["p50_us"] = factor * entry["p50_us"].get<double>();
    }
  }
}

void SetHeadDim(ordered_json& json, int head_dim) {
  for (ordered_json& shape : json["shapes"]) shape["head_dim"] = head_dim;
}

// So that no two shapes are of one series.
void PartShapes(ordered_json& json) {
  int heads = 8;
  for (ordered_json& shape : json["shapes"]) shape["heads_q"] = heads++;
}

Standings Render(const std::vector<ordered_json>& records, const RenderOptions& options = {}) {
  return RenderStandings(*ViewsOf(records), options).value();
}

TEST(StandingsTest, TheMeanIsGeometricAndOverTheBestPeerOfEachCell) {
  ordered_json json = GridRecord("a", {0.5, 1, 2, 4, 8});
  for (ordered_json peer : ordered_json(json["peers"])) {
    peer["name"] = "peer:flash";
    // The best peer of the first cell alone: 0.25 there, twice cudnn's time elsewhere.
    const double us = peer["p50_us"].get<double>();
    peer["p50_us"] = peer["shape"] == json["shapes"][0]["name"] ? us / 2 : 2 * us;
    json["peers"].push_back(peer);
  }
  // (0.25 x 1 x 2 x 4 x 8)^(1/5) = 16^(1/5).
  const std::string page = Render({json}).page;
  EXPECT_THAT(page, HasSubstr("| fp16, head_dim 64 | 5 | **1.741×** | 0.250× | 8.00× | 2.00× | "
                              "3.03× | [a](a.md) | this tree's |"));
  EXPECT_THAT(page, HasSubstr("| head_dim 64, full | 100 (0.250× flash) | 100 (1.000× cudnn) |"));
  EXPECT_THAT(page, Not(HasSubstr("all of fp16")));
}

TEST(StandingsTest, TextOfARecordIsTextAlsoInProseAndTitles) {
  ordered_json json = GridRecord("a", {0.5, 1, 2, 4, 8});
  json["provenance"]["gpu"]["name"] = "GPU";
  for (ordered_json& peer : json["peers"]) {
    peer["name"] = "peer:<img src=x>|y";
    peer["version"] = "[1](http://x)\n<script>";
  }
  const std::string page = Render({json}).page;
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("](http:")));
  EXPECT_THAT(page, HasSubstr("| over &lt;img src=x>\\|y |"));
}

TEST(StandingsTest, HeadDimensionsOfOneTypeArePooledAndTypesAreNot) {
  ordered_json wide = GridRecord("wide", {2, 2, 2, 2, 2});
  SetHeadDim(wide, 128);
  ordered_json bf16 = GridRecord("brain", {4, 4, 4, 4, 4});
  for (ordered_json& shape : bf16["shapes"]) {
    shape["dtype"] = "bf16";
    shape["name"] = shape["name"].get<std::string>() + "_bf16";
  }
  for (const char* list : {"cells", "peers"}) {
    for (ordered_json& entry : bf16[list]) {
      entry["shape"] = entry["shape"].get<std::string>() + "_bf16";
    }
  }
  bf16["verdicts"] = bf16["floors"] = bf16["controls"] = ordered_json::array();
  const Standings standings = Render({bf16, wide, GridRecord("narrow", {8, 8, 8, 8, 8})});
  EXPECT_THAT(standings.page, HasSubstr("| fp16, head_dim 64 | 5 | **8.00×** |"));
  EXPECT_THAT(standings.page, HasSubstr("| fp16, head_dim 128 | 5 | **2.00×** |"));
  EXPECT_THAT(standings.page, HasSubstr("| all of fp16 | 10 | **4.00×** | 2.00× | 8.00× | 4.00× | "
                                        "[narrow](narrow.md) and [wide](wide.md) |"));
  EXPECT_THAT(standings.page, HasSubstr("| bf16, head_dim 64 | 5 | **4.00×** |"));
  EXPECT_THAT(standings.page, HasSubstr("| head_dim 64, full, bf16 |"));
  EXPECT_THAT(standings.pictured, ElementsAre(1, 2));
}

TEST(StandingsTest, OfOneSeriesTheRecordWithMostLengthsCountsAndThenTheFastest) {
  const ordered_json slow = GridRecord("slow", {2, 2, 2, 2, 2});
  ordered_json fast = GridRecord("fast", {3, 3, 3, 3, 3});
  ScaleTimes(fast, 0.5);
  ordered_json few = GridRecord("few", {9, 9, 9, 9, 9});
  ScaleTimes(few, 0.1);
  few["peers"].erase(0);
  const Standings standings = Render({slow, few, fast});
  EXPECT_THAT(standings.page, HasSubstr("| fp16, head_dim 64 | 5 | **3.00×** |"));
  EXPECT_THAT(standings.page, Not(HasSubstr("few")));
  EXPECT_THAT(standings.page, Not(HasSubstr("slow")));
  EXPECT_THAT(standings.pictured, ElementsAre(2));
}

TEST(StandingsTest, ProblemsOutsideOfSeriesHaveARowInTheRecordWhereOursIsFastest) {
  ordered_json slow = GridRecord("slow", {2, 2, 2, 2, 2});
  ordered_json fast = GridRecord("fast", {3, 3, 3, 3, 3});
  PartShapes(slow);
  PartShapes(fast);
  ScaleTimes(fast, 0.5);
  const Standings standings = Render({slow, fast});
  EXPECT_THAT(standings.pictured, IsEmpty());
  EXPECT_THAT(standings.page, Not(HasSubstr("By length")));
  EXPECT_THAT(standings.page, Not(HasSubstr(".svg")));
  EXPECT_THAT(standings.page,
              HasSubstr("| 50.00 | 150.0 (cudnn) | 3.00× | – | [fast](fast.md) | this tree's |"));
  EXPECT_THAT(standings.page, Not(HasSubstr("slow")));
}

TEST(StandingsTest, SaysWhatIsFastestWithoutADependentLaunchToo) {
  ordered_json json = GridRecord("a", {3, 3, 3, 3, 3});
  PartShapes(json);
  const std::string shape = json["shapes"][0]["name"];
  ordered_json plain;
  for (ordered_json& cell : json["cells"]) {
    if (cell["shape"] != shape || cell["variant"] != "ladder:wmma_pv") continue;
    plain = cell;
    cell["config"] = "wgmma+resident_kv+dependent_launch";
  }
  const auto row = [&] {
    const std::string page = Render({json}).page;
    const size_t at = page.find("| `" + shape + "` (");
    return page.substr(at, page.find('\n', at) - at);
  };
  // The other arms of the record are steps before it, and take twice as long.
  EXPECT_THAT(row(), HasSubstr("| 3.00× | 200.0 (1.500×) | [a](a.md) |"));
  plain["variant"] = "ladder:plain";
  plain["p50_us"] = 1.5 * plain["p50_us"].get<double>();
  json["cells"].push_back(plain);
  EXPECT_THAT(row(), HasSubstr("| 3.00× | 150.0 (2.00×) | [a](a.md) |"));
  for (ordered_json& cell : json["cells"]) {
    if (cell["shape"] == shape) cell["config"] = "wgmma+wgmma_dependent_launch";
  }
  EXPECT_THAT(row(), HasSubstr("| not timed | [a](a.md) |"));
}

TEST(StandingsTest, RecordsWhosePeersTookTurnsOrWithEightBitsDontCount) {
  ordered_json turns = GridRecord("turns", {2, 2, 2, 2, 2});
  turns["provenance"]["created_utc"] = "2026-11-21T20:00:00Z";
  ordered_json bits = GridRecord("bits", {2, 2, 2, 2, 2});
  bits["cells"][0]["kv_bits"] = 8;
  const Standings none = Render({turns, bits});
  EXPECT_THAT(none.page, HasSubstr("No record has a variant of ours beside a peer"));
  EXPECT_THAT(none.readme_rest, HasSubstr("No record has a variant of ours beside a peer"));
  EXPECT_THAT(none.page, Not(HasSubstr("|")));
  const std::string page = Render({turns, bits, GridRecord("good", {4, 4, 4, 4, 4})}).page;
  EXPECT_THAT(page, HasSubstr("| [good](good.md) | this tree's |"));
  EXPECT_THAT(page, Not(HasSubstr("turns.md")));
  EXPECT_THAT(page, Not(HasSubstr("bits.md")));
}

// A peer that multiplies in 8 bits, a thousand times as fast as the first peer.
void AddFp8Peer(ordered_json& json) {
  for (size_t i = 0, n = json["peers"].size(); i < n; ++i) {
    ordered_json peer = json["peers"][i];
    peer["name"] = "peer:cudnn_fp8";
    peer["kv_bits"] = 8;
    peer["p50_us"] = peer["p50_us"].get<double>() / 1000;
    json["peers"].push_back(peer);
  }
}

TEST(StandingsTest, APeerIn8BitsIsNeverTheBestPeerOfVariantsIn16) {
  ordered_json json = GridRecord("a", {0.5, 1, 2, 4, 8});
  const Standings without = Render({json});
  AddFp8Peer(json);
  const Standings with = Render({json});
  EXPECT_EQ(with.page, without.page);
  EXPECT_EQ(with.readme_rest, without.readme_rest);
  PartShapes(json);
  EXPECT_THAT(Render({json}).page, Not(HasSubstr("cudnn_fp8")));
  EXPECT_EQ(ViewOf(json)->FastestPeer(json["shapes"][0]["name"].get<std::string>())->name,
            "peer:cudnn");
}

TEST(StandingsTest, WrongArmsAndPeersCountNowhere) {
  ordered_json json = GridRecord("a", {2, 2, 2, 2, 2});
  const std::string shape = json["shapes"][1]["name"];
  for (ordered_json& cell : json["cells"]) {
    if (cell["shape"] == shape && cell["variant"] == "ladder:wmma_pv") cell["correct"] = false;
  }
  json["peers"][2]["correct"] = false;
  const std::string page = Render({json}).page;
  EXPECT_THAT(page, HasSubstr("| fp16, head_dim 64 | 4 |"));
  EXPECT_THAT(page, HasSubstr("| 50.0 (1.000× cudnn) | – |"));
}

TEST(StandingsTest, SaysWhereTheKernelsAreOlder) {
  const ordered_json json = GridRecord("a", {2, 2, 2, 2, 2});
  EXPECT_THAT(Render({json}, {.kernel_source_sha256 = "another"}).page,
              HasSubstr("| [a](a.md) | **older** |"));
}

TEST(StandingsTest, TheReadmesLinksBeginWhereThePagesLie) {
  const Standings standings =
      Render({GridRecord("a", {2, 2, 2, 2, 2})}, {.picture_prefix = "reports/h200/"});
  EXPECT_THAT(standings.readme_picture, HasSubstr("](reports/h200/throughput.svg)"));
  EXPECT_EQ(standings.readme_alone, "");
  EXPECT_THAT(standings.readme_rest,
              HasSubstr("**2.00×** in fp16 (geometric mean of 5 problems, "));
  EXPECT_THAT(standings.readme_rest, HasSubstr("](reports/h200/standings.md)"));
}

// A record whose arms were timed alone, of a slower variant too that the library takes: it is
// `library` times slower than the fastest.
ordered_json AloneRecord(const std::vector<double>& ratios, double library) {
  ordered_json json = GridRecord("fastest", ratios);
  json["provenance"]["alone"] = {{"settle_s", 0.5}, {"window_s", 1.0}};
  ordered_json cells = ordered_json::array();
  for (size_t i = 0; i < json["shapes"].size(); ++i) {
    const std::string shape = json["shapes"][i]["name"];
    ordered_json fast = Find(json["cells"], "variant", "ladder:wmma_pv", shape);
    fast["variant"] = "fast";
    fast["config"] = "wgmma";
    fast["alone"] = {{"sm_mhz", 1500},
                     {"watts", 700},
                     {"joules", 0.07},
                     {"joules_low", 0.07},
                     {"joules_high", 0.07}};
    fast["over_peers"] = {{{"peer", "peer:cudnn"},
                           {"ratio", ratios[i]},
                           {"ci_low", ratios[i] - 0.1},
                           {"ci_high", ratios[i] + 0.1},
                           {"joules", {{"ratio", 2.0}, {"ci_low", 1.9}, {"ci_high", 2.1}}}}};
    ordered_json chosen = fast;
    chosen["variant"] = "chosen";
    chosen["config"] = sdpa::ConfigName(sdpa::kLibraryKernels[0].config);
    chosen["p50_us"] = library * 100.0;
    chosen["over_peers"][0]["ratio"] = ratios[i] / library;
    json["provenance"]["chosen"][shape] = chosen["config"];
    json["peers"][i]["alone"] = fast["alone"];
    json["peers"][i]["alone"]["joules"] = 0.14;
    cells.push_back(fast);
    cells.push_back(chosen);
  }
  json["cells"] = cells;
  json["verdicts"] = json["floors"] = json["controls"] = ordered_json::array();
  return json;
}

TEST(StandingsTest, APageOfContendersAloneSaysWhichVisitsWaitedForTheHost) {
  ordered_json json = AloneRecord({2, 2, 2, 2, 2}, 1);
  json["provenance"]["n_samples"] = 84;
  json["provenance"]["starved_visits"] = 3;
  json["provenance"]["idle_share_p50"] = 0.0004;
  json["provenance"]["idle_share_max"] = 0.12;
  EXPECT_THAT(AloneSection(*ViewOf(json)),
              HasSubstr("**INVALID, and left out of all figures: 3 of 84 visits**. The GPU waited "
                        "for the host for at most 0.040% of the window in the median visit and 12% "
                        "in the worst; 1% is allowed."));
}

TEST(StandingsTest, ContendersAloneGiveTheRatiosAndTheLibrarysChoiceStandsBesideTheFastest) {
  const ordered_json turns = GridRecord("turns", {9, 9, 9, 9, 9});
  const Standings standings = Render({turns, AloneRecord({2, 2, 2, 2, 2}, 1.25)});
  EXPECT_THAT(standings.page,
              HasSubstr("| the fastest variant of each problem | **2.00×** | 2.00× |"));
  EXPECT_THAT(standings.page, HasSubstr("| one per head_dim | **2.00×** | 2.00× |"));
  EXPECT_THAT(standings.page, HasSubstr("| the library's own choice | **1.600×** | 1.600× |"));
  EXPECT_THAT(standings.page, HasSubstr("| joules: the fastest variant | **2.00×** |"));
  EXPECT_THAT(standings.page,
              HasSubstr("| 100 | 50.0 (cudnn) | 2.00× [1.900, 2.10] | 2.00× | 2.00× | 1.600× | "
                        "1500 / 1500 | 700 / 700 | 7.00 / 14.0 | [fastest](fastest_alone.md) |"));
  EXPECT_THAT(standings.page, HasSubstr("differs a little from the quotient of the two medians"));
  // Arms in turn keep their times and lose their ratios.
  EXPECT_THAT(standings.page, HasSubstr("| head_dim 64, full | 100 | 100 |"));
  EXPECT_THAT(standings.page, Not(HasSubstr("9.00×")));
  EXPECT_THAT(standings.readme_alone,
              HasSubstr("the fastest variant of each problem is **2.00×** over the best of cudnn"));
  EXPECT_THAT(standings.readme_alone,
              HasSubstr("the library's own choice **1.600×** (5 problems)"));
}

TEST(StandingsTest, AloneAPeerIn8BitsStandsBesideVariantsIn8BitsOnly) {
  ordered_json json = AloneRecord({2, 2, 2, 2, 2}, 1.25);
  AddFp8Peer(json);
  const auto over = [](ordered_json& cell, double over_cudnn, double over_fp8) {
    ordered_json eight = cell["over_peers"][0];
    eight["peer"] = "peer:cudnn_fp8";
    cell["over_peers"].push_back(eight);
    for (auto [at, ratio] : {std::pair(0, over_cudnn), {1, over_fp8}}) {
      ordered_json& one = cell["over_peers"][at];
      one["ratio"] = one["ci_low"] = one["ci_high"] = ratio;
    }
  };
  for (ordered_json& cell : json["cells"]) {
    if (cell["variant"] == "fast") over(cell, 2, 0.01);
  }
  // The peer alone changes nothing, for no variant of the record multiplies in 8 bits.
  EXPECT_THAT(Render({json}).page, Not(HasSubstr("cudnn_fp8")));
  EXPECT_THAT(Render({json}).page,
              HasSubstr("| the fastest variant of each problem | **2.00×** | 2.00× |"));
  for (size_t i = 0; i < json["shapes"].size(); ++i) {
    ordered_json cell = Find(json["cells"], "variant", "fast", json["shapes"][i]["name"]);
    cell["variant"] = "fp8";
    cell["config"] = "wgmma+consumer_warpgroups+wgmma_fp8";
    cell["kv_bits"] = 8;
    cell["p50_us"] = 10.0;
    cell["over_peers"].erase(1);
    over(cell, 20, 0.75);
    json["cells"].push_back(cell);
  }
  const Standings standings = Render({json});
  const size_t sixteen = standings.page.find("### Beside cudnn\n");
  const size_t eight = standings.page.find("### Beside cudnn_fp8, in 8 bits\n");
  ASSERT_NE(sixteen, std::string::npos);
  ASSERT_NE(eight, std::string::npos);
  ASSERT_LT(sixteen, eight);
  const std::string in_16 = standings.page.substr(sixteen, eight - sixteen);
  EXPECT_THAT(in_16, HasSubstr("| the fastest variant of each problem | **2.00×** | 2.00× |"));
  EXPECT_THAT(in_16, Not(HasSubstr("cudnn_fp8")));
  EXPECT_THAT(in_16, Not(HasSubstr("20.0×")));
  const std::string in_8 = standings.page.substr(eight);
  EXPECT_THAT(in_8, HasSubstr("| the fastest variant of each problem | **0.750×** | 0.750× |"));
  EXPECT_THAT(in_8, HasSubstr("| one per head_dim | **0.750×** | 0.750× |"));
  EXPECT_THAT(in_8, Not(HasSubstr("| cudnn |")));
  EXPECT_THAT(standings.readme_alone,
              HasSubstr("the fastest variant of each problem is **2.00×** over the best of cudnn"));
  const std::string page = AloneSection(*ViewOf(json));
  EXPECT_THAT(page, HasSubstr("Our fastest variant over the best peer: **2.00×**"));
  EXPECT_THAT(page, HasSubstr("over the best peer, both in 8 bits: **0.750×**"));
  // Each contender has a ratio to those that multiply in as many bits.
  EXPECT_THAT(page, HasSubstr("| 2.00× [2.00, 2.00] | – |"));
  EXPECT_THAT(page, HasSubstr("| – | 0.750× [0.750, 0.750] |"));
}

TEST(StandingsTest, AloneAVariantThatIsBestOnAverageNeedNotBeBestAnywhere) {
  ordered_json json = AloneRecord({2, 2, 2, 2, 2}, 1.25);
  // "fast" is wrong on one problem, so that it can't stand for all.
  json["cells"][0]["correct"] = false;
  const std::string page = Render({json}).page;
  EXPECT_THAT(page, HasSubstr("| one per head_dim | **1.600×** | 1.600× |"));
  json["provenance"].erase("chosen");
  EXPECT_THAT(Render({json}).page, HasSubstr("| the library's own choice | **–** | – |"));
}

TEST(StandingsTest, AKernelThatTodaysLibraryLacksIsNotItsChoice) {
  ordered_json json = AloneRecord({2, 2, 2, 2, 2}, 1.25);
  for (ordered_json& cell : json["cells"]) {
    if (cell["variant"] == "chosen") cell["config"] = "wgmma+kv_ring_stages";
  }
  for (auto& [shape, config] : json["provenance"]["chosen"].items()) {
    config = "wgmma+kv_ring_stages";
  }
  const Standings standings = Render({json});
  EXPECT_THAT(standings.page, HasSubstr("| the library's own choice | **–** | – |"));
  EXPECT_THAT(standings.readme_alone, Not(HasSubstr("library")));
}

TEST(StandingsTest, ProblemsAloneAreTakenTogetherWhereTheyHadTheSamePeers) {
  const auto record = [](const char* created, double ratio, bool with_another) {
    ordered_json json = AloneRecord({ratio, ratio, ratio, ratio, ratio}, 1.25);
    json["run_id"] = created;
    json["provenance"]["created_utc"] = created;
    for (size_t i = 0, n = json["peers"].size(); with_another && i < n; ++i) {
      ordered_json another = json["peers"][i];
      another["name"] = "peer:fa3";
      another["p50_us"] = 1e6;
      json["peers"].push_back(another);
    }
    return json;
  };
  const ordered_json first = record("2026-11-01T00:00:00Z", 2, true);
  const ordered_json second = record("2026-11-02T00:00:00Z", 3, true);
  const ordered_json third = record("2026-11-03T00:00:00Z", 4, false);
  const Standings standings = Render({first, second, third});
  const size_t more = standings.page.find("### Beside cudnn and fa3");
  const size_t fewer = standings.page.find("### Beside cudnn\n");
  ASSERT_NE(more, std::string::npos);
  ASSERT_NE(fewer, std::string::npos);
  EXPECT_LT(more, fewer);
  const std::string with_more = standings.page.substr(more, fewer - more);
  EXPECT_THAT(with_more, HasSubstr("| the fastest variant of each problem | **3.00×** |"));
  EXPECT_THAT(with_more, HasSubstr("`2026-11-02T00:00:00Z` |"));
  EXPECT_THAT(standings.page.substr(fewer), HasSubstr("**4.00×** |"));
  EXPECT_THAT(standings.page.substr(fewer), HasSubstr("[fastest](fastest_alone.md) |"));
  // A README quotes the ratios beside the most peers.
  EXPECT_THAT(standings.readme_alone,
              HasSubstr("the fastest variant of each problem is **3.00×** over the best of"));
}

TEST(StandingsTest, RefusesWhatSeveralRecordsOfOneDesignAre) {
  const ordered_json json = GridRecord("a", {2, 2, 2, 2, 2});
  EXPECT_EQ(RenderStandings(*ViewsOf({json, json}), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RenderStandings(*ViewsOf({}), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace warpledger::report
