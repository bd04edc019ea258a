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

std::string ThroughputSection(const ordered_json& json) {
  return ThroughputSection(ViewOf(json).value(), "plots/");
}

TEST(ThroughputSectionTest, IsLeftOutUnlessThreeShapesDifferInTheirLengthAlone) {
  EXPECT_EQ(ThroughputSection(Synthetic()), "");
  ordered_json json = Grid({1, 1, 1, 1, 1});
  for (size_t i = 2; i < 5; ++i) json["shapes"][i]["heads_q"] = 8 + i;
  EXPECT_EQ(ThroughputSection(json), "");
  json["shapes"][2]["heads_q"] = 32;
  EXPECT_THAT(ThroughputSection(json),
              HasSubstr("| TFLOP/s | of | S = 512 | S = 1024 | S = 2048 |\n"));
}

std::string BesidePeers(const ordered_json& json) {
  return BesidePeersSection(ViewOf(json).value());
}

TEST(BesidePeersSectionTest, ShowsTheFastestArmAndEachRankedPeerWhereThereIsNoCurve) {
  ordered_json json = Grid({0.5, 2, 2, 2, 2});
  EXPECT_EQ(BesidePeers(json), "") << "the curve has them";
  for (size_t i = 0; i < 5; ++i) json["shapes"][i]["heads_q"] = 8 + i;
  const std::string name = json["shapes"][0]["name"];
  EXPECT_THAT(BesidePeers(json), HasSubstr("| `" + name +
                                           "` | `ladder:wmma_pv` | 100.0 | 50.00 | "
                                           "0.500× |"));
  json["peers"][0]["correct"] = false;
  EXPECT_THAT(BesidePeers(json),
              HasSubstr("| `" + name + "` | `ladder:wmma_pv` | 100.0 | – | – |"));
  json["peers"] = ordered_json::array();
  EXPECT_EQ(BesidePeers(json), "");
}

TEST(PlainReadSectionTest, SetsTheFastestArmBesideTheReadOfItsShape) {
  ordered_json json = Grid({1, 1, 1, 1, 1});
  const auto section = [&] { return PlainReadSection(ViewOf(json).value()); };
  EXPECT_EQ(section(), "") << "an empty kernel is no read";
  ordered_json read = json["floors"][0];
  read["name"] = "floor:read_kv";
  read["shape"] = json["shapes"][1]["name"];
  read["p50_us"] = 80.0;
  json["floors"].push_back(read);
  EXPECT_THAT(section(), HasSubstr("| `ladder:wmma_pv` | 100.0 | 1.250× |"));
  EXPECT_THAT(section(), Not(HasSubstr(std::string(json["shapes"][0]["name"]))));
}

TEST(ThroughputSectionTest, ShowsRatesAndRatiosByLength) {
  const std::string text = ThroughputSection(Grid({0.5, 1, 2, 4, 8}));
  EXPECT_THAT(text, HasSubstr("](plots/ladder_throughput.svg)"));
  EXPECT_THAT(text,
              HasSubstr("| head_dim 64, full | our fastest variant | 100 | 100 | 100 | 100 | 100 "
                        "|\n| head_dim 64, full | cudnn | 200 | 100 | 50.0 | 25.0 | 12.5 |"));
  EXPECT_THAT(text,
              HasSubstr("| head_dim 64, full | 0.500× (cudnn) | 1.000× (cudnn) | 2.00× (cudnn) "
                        "| 4.00× (cudnn) | 8.00× (cudnn) |"));
}

TEST(ThroughputSectionTest, TheGeometricMeanIsThatOfTheRatiosToTheBestPeer) {
  ordered_json json = Grid({0.5, 1, 2, 4, 8});
  // A second peer that is slower everywhere changes nothing but its own mean.
  const size_t count = json["peers"].size();
  for (size_t i = 0; i < count; ++i) {
    ordered_json peer = json["peers"][i];
    peer["name"] = "peer:flash";
    peer["p50_us"] = 2 * peer["p50_us"].get<double>();
    json["peers"].push_back(peer);
  }
  const std::string text = ThroughputSection(json);
  EXPECT_THAT(text,
              HasSubstr("Over 5 of 5 cells the geometric mean of our fastest variant over the best "
                        "peer is **2.00×**. Over each peer: cudnn 2.00× (5 cells) and flash "
                        "4.00× (5 cells). The best single variant is `ladder:wmma_pv`, at "
                        "2.00× over the same cells."));
  EXPECT_THAT(text, HasSubstr("Below 0.90×: `small` (0.500×)."));
}

// No peer has 8-bit operands, so a ratio would be one of unlike work; and arms of 16 bits that
// have such neighbours run at a clock that the peers, timed alone, don't have.
TEST(ThroughputSectionTest, ArmsWithEightBitsHaveARowOfTheirOwnAndKeepTheRecordFromRatios) {
  ordered_json json = Grid({1, 1, 1, 1, 1});
  EXPECT_THAT(ThroughputSection(json), testing::Not(HasSubstr("8 bits")));
  EXPECT_THAT(ThroughputSection(json), HasSubstr("over the best peer"));
  for (ordered_json& cell : json["cells"]) {
    if (cell["variant"] == "ladder:wmma_pv") cell["kv_bits"] = 8;
  }
  const std::string text = ThroughputSection(json);
  EXPECT_THAT(
      text,
      HasSubstr("| our fastest variant | 50.0 | 50.0 | 50.0 | 50.0 | 50.0 |\n| head_dim 64, full "
                "| our fastest variant, K and V in 8 bits | 100 | 100 | 100 | 100 | 100 |"));
  EXPECT_THAT(text, HasSubstr("No variant of this record is in a ratio with a peer"));
  EXPECT_THAT(text, HasSubstr("| cudnn |"));
  EXPECT_THAT(text, testing::Not(HasSubstr("over the best peer")));
  EXPECT_THAT(text, testing::Not(HasSubstr("Ratios are")));
  EXPECT_THAT(text, HasSubstr("The peers took turns"));
}

TEST(ThroughputSectionTest, APeerIn8BitsHasARowAndNoRatio) {
  ordered_json json = Grid({1, 1, 1, 1, 1});
  for (ordered_json peer : ordered_json(json["peers"])) {
    peer["name"] = "peer:cudnn_fp8";
    peer["kv_bits"] = 8;
    peer["p50_us"] = 50.0;
    json["peers"].push_back(peer);
  }
  const std::string text = ThroughputSection(json);
  EXPECT_THAT(text, HasSubstr("| head_dim 64, full | cudnn_fp8 | 200 |"));
  EXPECT_THAT(text, HasSubstr("Over each peer: cudnn 1.000× (5 cells)."));
  for (ordered_json& cell : json["cells"]) cell["kv_bits"] = 8;
  EXPECT_THAT(ThroughputSection(json),
              HasSubstr("own type, except cudnn_fp8, whose products are in 8 bits. "));
}

TEST(ThroughputSectionTest, SaysWhatThePeersRanBeside) {
  ordered_json json = Grid({1, 1, 1, 1, 1});
  json["provenance"]["created_utc"] = "2026-11-21T20:59:59Z";
  EXPECT_THAT(ThroughputSection(json), HasSubstr("The peers took turns"));
  json["provenance"]["created_utc"] = "2026-11-21T21:00:00Z";
  EXPECT_THAT(ThroughputSection(json),
              HasSubstr("Each peer has all of its samples of a shape before"));
}

TEST(ThroughputSectionTest, WrongArmsAndPeersCountNowhere) {
  ordered_json json = Grid({0.5, 1, 2, 4, 8});
  for (ordered_json& cell : json["cells"]) {
    if (cell["shape"] == "small" && cell["variant"] == "ladder:wmma_pv") cell["correct"] = false;
  }
  json["peers"][1]["correct"] = false;
  const std::string text = ThroughputSection(json);
  EXPECT_THAT(text, HasSubstr("| our fastest variant | 50.0 | 100 |"));
  EXPECT_THAT(text, HasSubstr("Over 4 of 5 cells"));
  EXPECT_THAT(text, HasSubstr("| head_dim 64, full | 0.250× (cudnn) | – | 2.00× (cudnn) |"));
  // The last step is not ranked at `small`, so it is not the one for all cells.
  EXPECT_THAT(text, testing::Not(HasSubstr("The best single variant is `ladder:wmma_pv`")));
}

TEST(ThroughputSectionTest, MasksHaveRowsOfTheirOwn) {
  ordered_json json = Grid({1, 1, 1, 1, 1});
  for (ordered_json shape : ordered_json(json["shapes"])) {
    shape["name"] = shape["name"].get<std::string>() + "_causal";
    shape["causal"] = true;
    json["shapes"].push_back(shape);
  }
  // Nothing ran under the mask: no rows.
  EXPECT_THAT(ThroughputSection(json), testing::Not(HasSubstr("causal |")));
  for (ordered_json cell : ordered_json(json["cells"])) {
    cell["shape"] = cell["shape"].get<std::string>() + "_causal";
    json["cells"].push_back(cell);
  }
  EXPECT_THAT(ThroughputSection(json), HasSubstr("| head_dim 64, causal | – | – | – | – | – |"));
  EXPECT_THAT(ThroughputSection(json), HasSubstr("Over 5 of 10 cells"));
}

}  // namespace
}  // namespace warpledger::report
