// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/compare.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "ablations/plan/stopping.h"
#include "absl/strings/str_cat.h"
#include "reports/compared/compared.h"
#include "tests/ablations/judge/compare/compared_records.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTiling[] = "ladder:kv_tiling";
constexpr char kWmma[] = "ladder:wmma_qk";

Json ComparisonOf(const Record& a, const Record& b) {
  return ToJson(Compare(Judged(a), Judged(b), {.bootstrap_resamples = 2000}));
}

std::string ComparisonText(const Json& comparison) {
  return report::ComparisonText(*FromJson<summary::Comparison>(comparison));
}

std::string ComparisonMarkdown(const Json& comparison) {
  return report::ComparisonMarkdown(*FromJson<summary::Comparison>(comparison));
}

Json CellOf(const Json& comparison, const std::string& variant, const std::string& shape) {
  for (const Json& cell : comparison["cells"]) {
    if (cell["variant"] == variant && cell["shape"] == shape) return cell;
  }
  ADD_FAILURE() << "no cell " << variant << " on " << shape;
  return Json::object();
}

TEST(CompareTest, TwoRunsOfOneThingAreTheSameInEveryCell) {
  const Json comparison = ComparisonOf(ExampleRecord(1), ExampleRecord(2));
  ASSERT_EQ(comparison["cells"].size(), 6u);  // three arms on two shapes, no controls
  for (const Json& cell : comparison["cells"]) {
    EXPECT_EQ(cell["outcome"], "SAME") << cell.dump();
    EXPECT_EQ(cell["code"], "same");
  }
  EXPECT_EQ(comparison["statistics"]["family_size"], 6);
  EXPECT_EQ(comparison["verdicts"]["compared"], 4);
  EXPECT_EQ(comparison["verdicts"]["agreed"], comparison["verdicts"]["decided"]);
  EXPECT_TRUE(comparison["verdicts"]["changed"].empty());
  EXPECT_TRUE(comparison["differences"].empty());
}

TEST(CompareTest, AChangeIsFoundInItsCellAloneWithItsRatio) {
  Record b = ExampleRecord(2);
  ScaleTimes(b, kTiling, "small", 1.05);
  ScaleTimes(b, kWmma, "mission_b", 0.9);
  const Json comparison = ComparisonOf(ExampleRecord(1), b);
  const Json slower = CellOf(comparison, kTiling, "small");
  EXPECT_EQ(slower["outcome"], "SLOWER");
  EXPECT_NEAR(slower["ratio"].get<double>(), 1 / 1.05, 0.003);
  EXPECT_LT(slower["ci_high"].get<double>(), 1);
  EXPECT_THAT(slower["reason"].get<std::string>(), HasSubstr("machine code is the same"));
  const Json faster = CellOf(comparison, kWmma, "mission_b");
  EXPECT_EQ(faster["outcome"], "FASTER");
  EXPECT_NEAR(faster["ratio"].get<double>(), 1 / 0.9, 0.003);
  EXPECT_EQ(CellOf(comparison, kTiling, "mission_b")["outcome"], "SAME");
}

// --- Runs that a stopping rule could end early -----------------------------------

// ExampleRecord with a rule whose first look, after 3 of `processes`, all shapes pass.
Record StoppedRecord(uint64_t seed, int processes) {
  Record record = ExampleRecord(seed, {.processes = processes});
  const std::optional<StoppingRule> rule = ParseStopping("ci:10%", processes).value();
  record.run.stopping = *rule;
  return record;
}

TEST(CompareTest, EarlyEndsArePaidForByBothSides) {
  const double share = AlphaShares(2)[0];
  const double alone = CellOf(ComparisonOf(ExampleRecord(1), ExampleRecord(2)), kTiling,
                              "small")["adjusted_confidence"];
  const double one = CellOf(ComparisonOf(StoppedRecord(1, 5), ExampleRecord(2)), kTiling,
                            "small")["adjusted_confidence"];
  const double both = CellOf(ComparisonOf(StoppedRecord(1, 5), StoppedRecord(2, 5)), kTiling,
                             "small")["adjusted_confidence"];
  ASSERT_LT(share, 1);
  EXPECT_NEAR((1 - one) / (1 - alone), share, 0.01);
  EXPECT_NEAR((1 - both) / (1 - alone), share * share, 0.01);
}

TEST(CompareTest, ASmallShareOfAlphaAsksForNoBoundlessResampling) {
  Record a = StoppedRecord(1, 5);
  a.run.stopping->alpha_shares = {1e-9, 1 - 1e-9};
  std::erase_if(a.samples, [](const Sample& sample) { return sample.process > 2; });
  const Record b = a;
  const Json cell = CellOf(ComparisonOf(a, b), kTiling, "small");
  EXPECT_EQ(cell["outcome"], "CANNOT_TELL");
}

TEST(CompareTest, SamplesBehindTheLookThatEndedARunDontCount) {
  Record b = StoppedRecord(2, 5);
  for (Sample& sample : b.samples) {
    if (sample.process >= 3) sample.us *= 10;
  }
  const Json cell = CellOf(ComparisonOf(ExampleRecord(1), b), kTiling, "small");
  EXPECT_NEAR(cell["ratio"].get<double>(), 1, 0.003);
}

TEST(CompareTest, ARunThatReachedNoLookIsNotCompared) {
  Record b = StoppedRecord(2, 5);
  std::erase_if(b.samples, [](const Sample& sample) { return sample.process > 1; });
  const Json cell = CellOf(ComparisonOf(ExampleRecord(1), b), kTiling, "small");
  EXPECT_EQ(cell["outcome"], "NOT_COMPARED");
  EXPECT_THAT(cell["reason"].get<std::string>(), HasSubstr("up to a look"));
}

TEST(CompareTest, TheSameInputGivesTheSameBytes) {
  EXPECT_EQ(DumpFile(ComparisonOf(ExampleRecord(1), ExampleRecord(2))),
            DumpFile(ComparisonOf(ExampleRecord(1), ExampleRecord(2))));
}

TEST(CompareTest, DriftBetweenProcessesWidensTheIntervalUntilNothingCanBeTold) {
  const ExampleNoise loud = {.processes = 3, .process = 0.1};
  Record b = ExampleRecord(2, loud);
  ScaleTimes(b, kTiling, "small", 1.05);
  const Json comparison = ComparisonOf(ExampleRecord(1, loud), b);
  EXPECT_EQ(CellOf(comparison, kTiling, "small")["outcome"], "CANNOT_TELL");
}

TEST(CompareTest, CellsAreMatchedByConfigurationNotByTheArmsName) {
  Record b = ExampleRecord(2);
  for (Arm& arm : b.run.arms) {
    if (arm.name == kWmma) arm.name = "one_on:wmma_qk";
    if (arm.base == kWmma) arm.base = "one_on:wmma_qk";
  }
  for (Sample& sample : b.samples) {
    if (sample.arm == kWmma) sample.arm = "one_on:wmma_qk";
  }
  for (Check& check : b.checks) {
    if (check.arm == kWmma) check.arm = "one_on:wmma_qk";
  }
  const Json cell = CellOf(ComparisonOf(ExampleRecord(1), b), kWmma, "small");
  EXPECT_EQ(cell["variant_b"], "one_on:wmma_qk");
  EXPECT_EQ(cell["outcome"], "SAME");
}

TEST(CompareTest, AnArmOfAnotherConfigurationIsNotTheSameCellThoughItsNameIs) {
  Record b = ExampleRecord(2);
  for (Arm& arm : b.run.arms) {
    if (arm.name == kTiling) arm.config = "warp_shuffle";
  }
  const Json comparison = ComparisonOf(ExampleRecord(1), b);
  EXPECT_EQ(CellOf(comparison, kTiling, "small")["outcome"], "NOT_COMPARED");
  EXPECT_EQ(comparison["statistics"]["family_size"], 4);
}

TEST(CompareTest, AShapeOfAnotherSizeIsNotTheSameCellThoughItsNameIs) {
  Record b = ExampleRecord(2);
  b.run.shapes[0].fields["seq_kv"] = 64;
  const Json comparison = ComparisonOf(ExampleRecord(1), b);
  const Json cell = CellOf(comparison, kTiling, "small");
  EXPECT_EQ(cell["outcome"], "NOT_COMPARED");
  EXPECT_THAT(cell["reason"].get<std::string>(), HasSubstr("different problems"));
  EXPECT_EQ(CellOf(comparison, kTiling, "mission_b")["outcome"], "SAME");
}

TEST(CompareTest, BrokenCellsAreNotHeldAgainstEachOther) {
  Record b = ExampleRecord(2);
  for (Check& check : b.checks) {
    if (check.arm == kTiling && check.shape == "small") {
      check.correct = false;
      check.reason = "max error";
    }
  }
  const Json cell = CellOf(ComparisonOf(ExampleRecord(1), b), kTiling, "small");
  EXPECT_EQ(cell["outcome"], "NOT_COMPARED");
  EXPECT_THAT(cell["reason"].get<std::string>(), HasSubstr("B: failed on inputs"));
}

TEST(CompareTest, ThrottlingAndOtherClocksLeaveNothingToTell) {
  Record throttled = ExampleRecord(2);
  for (Sample& sample : throttled.samples) {
    if (sample.arm == kTiling) sample.throttle = 0x8;  // hardware slow-down
  }
  Json cell = CellOf(ComparisonOf(ExampleRecord(1), throttled), kTiling, "small");
  EXPECT_EQ(cell["outcome"], "CANNOT_TELL");
  EXPECT_THAT(cell["reason"].get<std::string>(), HasSubstr("throttled"));

  // The power limit: on one side it is a difference, on both it is none.
  Record base = ExampleRecord(1);
  Record capped = ExampleRecord(2);
  const auto cap = [](Record& record) {
    for (Sample& sample : record.samples) sample.throttle = 0x4;
  };
  cap(capped);
  cell = CellOf(ComparisonOf(base, capped), kTiling, "small");
  EXPECT_EQ(cell["outcome"], "CANNOT_TELL");
  EXPECT_THAT(cell["reason"].get<std::string>(), HasSubstr("power limit held one side more"));
  cap(base);
  EXPECT_EQ(CellOf(ComparisonOf(base, capped), kTiling, "small")["outcome"], "SAME");

  Record slow = ExampleRecord(2);
  for (Sample& sample : slow.samples) sample.sm_mhz = 1700;
  cell = CellOf(ComparisonOf(ExampleRecord(1), slow), kTiling, "small");
  EXPECT_EQ(cell["outcome"], "CANNOT_TELL");
  EXPECT_THAT(cell["reason"].get<std::string>(), HasSubstr("A ran at 1980 MHz, B at 1700 MHz"));

  // Another protocol reads it in another way.
  slow.run.protocol_sha256 = "another";
  EXPECT_EQ(CellOf(ComparisonOf(ExampleRecord(1), slow), kTiling, "small")["outcome"], "SAME");
  slow.run.protocol_sha256 = ExampleRecord(1).run.protocol_sha256;

  // Of another kind of GPU, the clock is part of what is compared.
  slow.run.gpu.name = "NVIDIA L4";
  cell = CellOf(ComparisonOf(ExampleRecord(1), slow), kTiling, "small");
  EXPECT_EQ(cell["outcome"], "SAME");
}

// --- Visits that waited for the host ----------------------------------------------

TEST(CompareTest, VisitsThatWaitedForTheHostCountForNothingOnEitherSide) {
  Record starved = ExampleRecord(1);
  StarveVisits(starved, kTiling, "small", 18);
  Record whole = ExampleRecord(2);
  StarveVisits(whole, kTiling, "small", 0);
  for (const Json& comparison : {ComparisonOf(whole, starved), ComparisonOf(starved, whole)}) {
    const Json cell = CellOf(comparison, kTiling, "small");
    EXPECT_EQ(cell["outcome"], "SAME") << cell.dump();
    EXPECT_NEAR(cell["ratio"].get<double>(), 1, 0.003);
  }
}

TEST(CompareTest, ACellThatLostMostOfItsVisitsTellsNothingOnEitherSide) {
  Record whole = ExampleRecord(2);
  StarveVisits(whole, kTiling, "small", 0);
  for (const int count : {24, 40}) {
    Record starved = ExampleRecord(1);
    StarveVisits(starved, kTiling, "small", count);
    const std::string why = "the GPU waited for the host in " + std::to_string(count) +
                            " of 40 visits of ladder:kv_tiling, for up to 30%";
    Json cell = CellOf(ComparisonOf(whole, starved), kTiling, "small");
    EXPECT_EQ(cell["outcome"], "CANNOT_TELL") << cell.dump();
    EXPECT_EQ(cell["reason"], "B: " + why);
    cell = CellOf(ComparisonOf(starved, whole), kTiling, "small");
    EXPECT_EQ(cell["outcome"], "CANNOT_TELL") << cell.dump();
    EXPECT_EQ(cell["reason"], "A: " + why);
    EXPECT_EQ(CellOf(ComparisonOf(starved, whole), kWmma, "small")["outcome"], "SAME");
  }
}

TEST(CompareTest, AReferenceThatLostMostOfItsVisitsDidNotMove) {
  Record a = ExampleRecord(1);
  StarveVisits(a, "peer:flash", "small", 24);
  Record b = ExampleRecord(2);
  StarveVisits(b, "peer:flash", "mission_b", 8);
  const Json references = ComparisonOf(a, b)["references"];
  EXPECT_EQ(references.size(), 3u);
  for (const Json& reference : references) EXPECT_EQ(reference["moved"], false);
}

TEST(CompareTest, ResourcesAndMachineCodeThatDifferAreListed) {
  Record b = ExampleRecord(2);
  (*b.resources)[1].registers = 44;
  (*b.resources)[1].spill_store_bytes = 8;
  b.codegen->instances[1].code_sha256 = "other";
  b.codegen->instances[2].code_sha256 = "another";
  const Json comparison = ComparisonOf(ExampleRecord(1), b);
  const Json cell = CellOf(comparison, kTiling, "small");
  EXPECT_EQ(cell["registers"], (Json{{"a", 40}, {"b", 44}}));
  EXPECT_EQ(cell["spill_bytes"], (Json{{"a", 0}, {"b", 8}}));
  EXPECT_EQ(cell["code"], "changed");
  const std::string text = ComparisonText(comparison);
  EXPECT_THAT(text, HasSubstr("ladder:kv_tiling: registers 40 -> 44, spills, B 0 -> 8\n"));
  EXPECT_THAT(text, HasSubstr("ladder:wmma_qk: machine code only\n"));
  EXPECT_THAT(ComparisonMarkdown(comparison), HasSubstr("| registers 40 -> 44"));
}

TEST(CompareTest, AVerdictThatChangesItsSignIsNamed) {
  // Tiling: 0.8x in A, 1.25x in B. WMMA: 1.56x in both, so no change there.
  Record b = ExampleRecord(2);
  ScaleTimes(b, kTiling, "small", 80.0 / 125);
  ScaleTimes(b, kWmma, "small", 80.0 / 125);
  const Json comparison = ComparisonOf(ExampleRecord(1), b);
  const Json& verdicts = comparison["verdicts"];
  ASSERT_EQ(verdicts["changed"].size(), 1u) << verdicts.dump();
  const Json& change = verdicts["changed"][0];
  EXPECT_EQ(change["toggle"], "kv_tiling");
  EXPECT_EQ(change["verdict_a"], "REGRESSION");
  EXPECT_EQ(change["verdict_b"], "ADOPT");
  EXPECT_EQ(change["sign_flip"], true);
  EXPECT_EQ(verdicts["sign_flips"], 1);
  EXPECT_THAT(ComparisonText(comparison), HasSubstr("SIGN FLIP kv_tiling on small: REGRESSION"));
  EXPECT_THAT(ComparisonMarkdown(comparison), HasSubstr("**flips**"));
}

TEST(CompareTest, AVerdictThatOnlyWeakensKeepsItsSign) {
  Record b = ExampleRecord(2);
  ScaleTimes(b, kWmma, "small", 125.0 / 80 / 1.02);  // 1.56x in A, 1.02x in B
  const Json verdicts = ComparisonOf(ExampleRecord(1), b)["verdicts"];
  ASSERT_EQ(verdicts["changed"].size(), 1u);
  EXPECT_EQ(verdicts["changed"][0]["verdict_b"], "REAL_BELOW_GATE");
  EXPECT_EQ(verdicts["changed"][0]["sign_flip"], false);
}

TEST(CompareTest, ReferencesShowWhenMoreThanTheKernelsDiffers) {
  Record b = ExampleRecord(2);
  ScaleTimes(b, "peer:flash", "small", 1.04);
  Json comparison = ComparisonOf(ExampleRecord(1), b);
  ASSERT_EQ(comparison["references"].size(), 4u);  // floor and peer on two shapes
  for (const Json& reference : comparison["references"]) {
    EXPECT_EQ(reference["moved"],
              reference["name"] == "peer:flash" && reference["shape"] == "small");
  }
  EXPECT_THAT(ComparisonText(comparison), HasSubstr("peer:flash on small, which no kernel"));
  // A peer of another version is another kernel.
  (*b.peers)[0].version = "2.0";
  comparison = ComparisonOf(ExampleRecord(1), b);
  EXPECT_EQ(comparison["references"].size(), 2u);
}

TEST(CompareTest, ReferencesThatMovedStandBesideTheCountOfFasterCells) {
  // One cell is 10% slower and one 3%; a reference is 4% slower too.
  Record b = ExampleRecord(2);
  ScaleTimes(b, kTiling, "small", 1.10);
  ScaleTimes(b, kWmma, "mission_b", 1.03);
  b.codegen->instances[2].code_sha256 = "another";
  Json comparison = ComparisonOf(ExampleRecord(1), b);
  EXPECT_THAT(ComparisonMarkdown(comparison), Not(HasSubstr("references, which")));
  EXPECT_THAT(ComparisonMarkdown(comparison),
              HasSubstr("1 of the 2 have the same machine code on both sides. 1 have other machine "
                        "code in B than in A"));
  ScaleTimes(b, "peer:flash", "small", 1.04);
  comparison = ComparisonOf(ExampleRecord(1), b);
  for (const std::string& text : {ComparisonMarkdown(comparison), ComparisonText(comparison)}) {
    EXPECT_THAT(text, HasSubstr("But 1 of 4 references, which no kernel of ours can change, moved "
                                "as well, most of all peer:flash on small (0.96"));
    EXPECT_THAT(text, HasSubstr("and 1 of the 2 cells that differ do so by more than that."));
  }
}

// Found by damaging times: the text ended the program.
TEST(CompareTest, RatiosAndBoundsBeyondAllNumbersAreLeftOut) {
  Record a = ExampleRecord(1);
  Record b = ExampleRecord(2);
  ScaleTimes(b, kTiling, "small", 1.10);
  // Two processes that are far off: of the interval, the upper end alone is no number.
  for (Sample& sample : b.samples) {
    if (sample.arm == "peer:flash" && sample.shape == "small" && sample.process < 2) {
      sample.us *= 1e-300;
    }
  }
  Json comparison = ComparisonOf(a, b);
  const auto wide = std::find_if(
      comparison["references"].begin(), comparison["references"].end(), [](const Json& reference) {
        return reference["ci_low"].is_number() && reference["ci_high"].is_null();
      });
  ASSERT_NE(wide, comparison["references"].end()) << comparison["references"];
  EXPECT_THAT(ComparisonMarkdown(comparison), HasSubstr("| – | not shown |"));
  EXPECT_THAT(ComparisonText(comparison), Not(HasSubstr("But 1 of 4")));

  ScaleTimes(a, "peer:flash", "mission_b", 1e300);
  ScaleTimes(b, "peer:flash", "mission_b", 1e-300);
  comparison = ComparisonOf(a, b);
  for (const std::string& text : {ComparisonMarkdown(comparison), ComparisonText(comparison)}) {
    EXPECT_THAT(text, HasSubstr("most of all peer:flash on b1_h8_s512_d64 (–), and 0 of the"));
  }
}

TEST(CompareTest, ACountOfNothingNeedsNoCaveat) {
  Record b = ExampleRecord(2);
  ScaleTimes(b, "peer:flash", "small", 1.04);
  EXPECT_THAT(ComparisonMarkdown(ComparisonOf(ExampleRecord(1), b)),
              Not(HasSubstr("But 1 of 4 references")));
}

TEST(CompareTest, AgreementComesWithItsBound) {
  const Json comparison = ComparisonOf(ExampleRecord(1), ExampleRecord(2));
  const double decided = comparison["verdicts"]["decided"].get<double>();
  // All of n: the one-sided 95% bound is 0.05^(1/n).
  EXPECT_NEAR(comparison["verdicts"]["agreed_at_least"].get<double>(), std::pow(0.05, 1 / decided),
              1e-5);
  EXPECT_THAT(ComparisonText(comparison),
              HasSubstr("4 of 4 that neither leaves INCONCLUSIVE agree (100%; at least 47.3% by a "
                        "one-sided"));
}

TEST(CompareTest, VerdictsThatNoTimingStandsBehindDoNotAgree) {
  Record a = ExampleRecord(1);
  Record b = ExampleRecord(2);
  // The same machine code on both sides of a step is INVALID, in both records alike; a wrong
  // arm is BROKEN.
  for (Record* record : {&a, &b}) {
    record->codegen->instances[1].code_sha256 = record->codegen->instances[0].code_sha256;
    for (Check& check : record->checks) {
      if (check.arm == kWmma && check.shape == "small") check.correct = false;
    }
  }
  const Json comparison = ComparisonOf(a, b);
  const Json& verdicts = comparison["verdicts"];
  EXPECT_EQ(verdicts["compared"], 4);
  EXPECT_TRUE(verdicts["changed"].empty());
  EXPECT_EQ(verdicts["unanswered"], 3);
  EXPECT_EQ(verdicts["decided"], 1);
  EXPECT_EQ(verdicts["agreed"], 1);
  EXPECT_NEAR(verdicts["agreed_at_least"].get<double>(), 0.05, 1e-5);
  EXPECT_THAT(
      ComparisonText(comparison),
      HasSubstr("1 of 1 that neither leaves INCONCLUSIVE, INVALID, BROKEN or NOT_APPLICABLE "
                "agree"));
}

TEST(CompareTest, WhatElseDiffersBetweenTheRunsIsNamed) {
  Record b = ExampleRecord(2);
  b.run.gpu.driver = "999.0";
  b.run.toolchain.nvcc = "13.1.0";
  const Json comparison = ComparisonOf(ExampleRecord(1), b);
  ASSERT_EQ(comparison["differences"].size(), 2u) << comparison["differences"].dump();
  EXPECT_THAT(ComparisonText(comparison), HasSubstr("gpu.driver: 580.0 -> 999.0"));
  EXPECT_THAT(ComparisonText(comparison), HasSubstr("toolchain.nvcc: 13.0.0 -> 13.1.0"));
}

// The plan of a run, and the definition of a study field by field.
TEST(CompareTest, AnotherPlanAndAnotherDefinitionAreNamed) {
  Record a = ExampleRecord(1);
  Record b = ExampleRecord(2);
  const auto definition = [](double gate, const char* folder, const char* sha256) {
    return Json{{"study", {{"name", "s"}, {"claim", {{{"id", "c"}, {"gate", gate}}}}}},
                {"folder", folder},
                {"libraries", {{"base", {folder, sha256}}}}};
  };
  a.run.definition.json = definition(1.05, "/a", "aa");
  b.run.definition.json = definition(1.1, "/b", "bb");
  b.run.seed = a.run.seed + 1;
  b.run.blocks_per_process = a.run.blocks_per_process + 1;
  b.run.max_launches = 7;
  std::vector<std::string> named;
  for (const summary::Difference& each : Differences(a.run, b.run)) {
    named.push_back(absl::StrCat(each.what, ": ", each.a, " -> ", each.b));
  }
  EXPECT_THAT(
      named, ElementsAre(HasSubstr("seed: "), HasSubstr("blocks_per_process: "),
                         HasSubstr("max_launches: "), "definition.study.claim[0].gate: 1.05 -> 1.1",
                         "definition.libraries.base.sha256: aa -> bb"));
  b = a;
  b.run.processes += 1;
  b.run.definition.json["study"]["claim"].push_back({{"id", "d"}});
  const std::vector<summary::Difference> more = Differences(a.run, b.run);
  ASSERT_EQ(more.size(), 2u);
  EXPECT_EQ(more[0].what, "processes");
  EXPECT_EQ(more[1].what, "definition.study.claim");
  EXPECT_EQ(more[1].b, "2 of them");
}

// A definition of Python callables names the GPU once more.
TEST(CompareTest, AnotherBoardIsNamedOnce) {
  Record a = ExampleRecord(1);
  Record b = ExampleRecord(2);
  b.run.gpu.uuid = "GPU-other";
  for (Record* of : {&a, &b}) {
    of->run.definition.json = Json{{"gpu", {{"uuid", of->run.gpu.uuid}}}, {"gate", 1.05}};
  }
  const std::vector<summary::Difference> differences = Differences(a.run, b.run);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].what, "gpu.uuid");
}

TEST(CompareTest, WhatOnlyOneRecordHasIsNotCompared) {
  Record b = ExampleRecord(2);
  b.run.shapes.erase(b.run.shapes.begin());
  std::erase_if(b.samples, [](const Sample& sample) { return sample.shape == "small"; });
  Json comparison = ComparisonOf(ExampleRecord(1), b);
  EXPECT_EQ(comparison["cells"].size(), 6u);
  EXPECT_EQ(CellOf(comparison, kTiling, "small")["outcome"], "NOT_COMPARED");
  EXPECT_EQ(comparison["verdicts"]["only_a"], 2);
  comparison = ComparisonOf(b, ExampleRecord(1));
  EXPECT_EQ(comparison["cells"].size(), 6u);
  EXPECT_EQ(CellOf(comparison, kTiling, "small")["reason"], "only B has this cell");
  EXPECT_EQ(comparison["verdicts"]["only_b"], 2);
}

TEST(CompareTest, OneProcessOnASideIsNotEnough) {
  const Json cell =
      CellOf(ComparisonOf(ExampleRecord(1), ExampleRecord(2, {.processes = 1})), kTiling, "small");
  EXPECT_EQ(cell["outcome"], "CANNOT_TELL");
  EXPECT_THAT(cell["reason"].get<std::string>(), HasSubstr("B has samples of 1 process"));
  EXPECT_TRUE(cell["ci_low"].is_null());
  EXPECT_TRUE(cell["ci_high"].is_null());
}

TEST(CompareTest, SmallLevelsOfALargeFamilyStayInReach) {
  // Six members: the first level is 0.05 / 6, and 100 resamples alone see no p
  // under 2 / 101.
  Record a = ExampleRecord(1, {.processes = 12});
  Record b = ExampleRecord(2, {.processes = 12});
  ScaleTimes(b, kTiling, "small", 1.5);
  std::vector<MatchedCell> cells = MatchCells(Judged(a), Judged(b), {.bootstrap_resamples = 100});
  const analysis::HolmLevel level = LevelsAgainst(cells, 0, 0.95)[2];
  EXPECT_EQ(cells[2].variant, kTiling);
  EXPECT_TRUE(level.rejected);
}

}  // namespace
}  // namespace warpledger::ablations
