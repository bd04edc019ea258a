// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/verdict.h"

#include <gmock/gmock.h>

#include <cmath>

namespace warpledger::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// At 2 degrees of freedom: a half-width of 4.3 errors at 95%, and of 2.9 at 90%.
Evidence Around(double ratio, double error = 0.0003) {
  Evidence evidence;
  evidence.effect = Effect{std::log(ratio), error, 2};
  evidence.processes = 3;
  return evidence;
}

Judgement JudgeRatio(double ratio, double error = 0.0003) { return Judge(Around(ratio, error)); }

// Beyond the 1% of NEUTRAL, short of the gate, and far outside its noise.
TEST(VerdictTest, ASmallEffectThatIsSureIsRealAndNotNeutral) {
  const Judgement j = JudgeRatio(1.015, 0.0005);
  EXPECT_EQ(j.verdict, Verdict::kRealBelowGate);
  EXPECT_GT(j.interval->low, 1.01);
  EXPECT_LT(j.interval->high, 1.02);
}

TEST(VerdictTest, ALowerBoundAboveTheGateIsAdopted) {
  const Judgement j = JudgeRatio(1.30);
  EXPECT_EQ(j.verdict, Verdict::kAdopt);
  EXPECT_NEAR(*j.ratio, 1.30, 1e-6);
  EXPECT_GE(j.interval->low, 1.10);
  EXPECT_THAT(j.reason, HasSubstr("gate 1.10x"));
}

// Without any error the interval is the estimate, at every level.
Verdict JudgeExactly(double log_ratio, double gate = 1.10) {
  return Judge({.effect = Effect{log_ratio, 0, 2}, .processes = 3, .gate = gate}).verdict;
}

// On either side of each border, and on it.
constexpr double kStep = 1e-9;

TEST(VerdictTest, TheGateIsAdoptedAndJustBelowItIsNot) {
  const double gate = std::log(1.10);
  EXPECT_EQ(JudgeExactly(gate + kStep), Verdict::kAdopt);
  EXPECT_EQ(JudgeExactly(gate - kStep), Verdict::kRealBelowGate);
  // A gate that is the bound to the last bit.
  EXPECT_EQ(JudgeExactly(0.25, std::exp(0.25)), Verdict::kAdopt);
  EXPECT_EQ(JudgeExactly(0.25, std::nextafter(std::exp(0.25), 2)), Verdict::kRealBelowGate);
}

TEST(VerdictTest, TheEdgesOfNeutralAreNeutralAndJustBeyondThemIsNot) {
  const double edge = std::log1p(0.01);
  EXPECT_EQ(JudgeExactly(edge), Verdict::kNeutral);
  EXPECT_EQ(JudgeExactly(edge - kStep), Verdict::kNeutral);
  EXPECT_EQ(JudgeExactly(edge + kStep), Verdict::kRealBelowGate);
  EXPECT_EQ(JudgeExactly(-edge), Verdict::kNeutral);
  EXPECT_EQ(JudgeExactly(-edge + kStep), Verdict::kNeutral);
  EXPECT_EQ(JudgeExactly(-edge - kStep), Verdict::kRegression);
}

TEST(VerdictTest, NeutralGoesBeforeAGateThatLiesWithinIt) {
  EXPECT_EQ(JudgeExactly(std::log(1.005), 1.001), Verdict::kNeutral);
}

// Moved until a bound is where it is wanted.
Verdict JudgeWithBound(double low_or_high, bool low) {
  constexpr double kError = 0.01;
  const Interval centred = Effect{0, kError, 2}.At(0.95);
  const double move = low_or_high - (low ? centred.low : centred.high);
  return Judge({.effect = Effect{move, kError, 2}, .processes = 3, .gate = 2}).verdict;
}

TEST(VerdictTest, ALowerBoundJustAboveOneIsRealAndJustBelowOneIsInconclusive) {
  EXPECT_EQ(JudgeWithBound(kStep, /*low=*/true), Verdict::kRealBelowGate);
  EXPECT_EQ(JudgeWithBound(-kStep, /*low=*/true), Verdict::kInconclusive);
}

TEST(VerdictTest, AnUpperBoundJustBelowOneIsARegressionAndJustAboveOneIsInconclusive) {
  EXPECT_EQ(JudgeWithBound(-kStep, /*low=*/false), Verdict::kRegression);
  EXPECT_EQ(JudgeWithBound(kStep, /*low=*/false), Verdict::kInconclusive);
}

TEST(VerdictTest, AGainShortOfTheGateIsRealButBelowIt) {
  EXPECT_EQ(JudgeRatio(1.05).verdict, Verdict::kRealBelowGate);
}

TEST(VerdictTest, AnEstimateAboveTheGateWithALowerBoundBelowItIsNotAdopted) {
  const Judgement j = JudgeRatio(1.102, 0.002);
  EXPECT_GT(*j.ratio, 1.10);
  EXPECT_EQ(j.verdict, Verdict::kRealBelowGate);
}

TEST(VerdictTest, ALossIsARegression) { EXPECT_EQ(JudgeRatio(0.8).verdict, Verdict::kRegression); }

TEST(VerdictTest, ATightIntervalAroundOneIsNeutral) {
  EXPECT_EQ(JudgeRatio(1.0).verdict, Verdict::kNeutral);
}

TEST(VerdictTest, AnEffectThatIsSurelyUnderOnePercentIsNeutralThoughItIsNotZero) {
  const Judgement j = JudgeRatio(1.005, 0.0005);
  EXPECT_GT(j.interval->low, 1);
  EXPECT_EQ(j.verdict, Verdict::kNeutral);
}

TEST(VerdictTest, AWideIntervalIsInconclusiveAndSaysWhatItWouldHaveFound) {
  const Judgement j = JudgeRatio(1.0, 0.01);
  EXPECT_EQ(j.verdict, Verdict::kInconclusive);
  ASSERT_TRUE(j.mde_ratio.has_value());
  EXPECT_GT(*j.mde_ratio, j.interval->high);
}

TEST(VerdictTest, OneProcessIsNeverEnoughForAVerdict) {
  Evidence evidence = Around(1.6);
  evidence.processes = 1;
  const Judgement j = Judge(evidence);
  EXPECT_EQ(j.verdict, Verdict::kInconclusive);
  EXPECT_THAT(j.reason,
              HasSubstr("one process only: whether the effect recurs in another is unknown, and "
                        "two at least are needed"));
  EXPECT_TRUE(j.ratio.has_value());
  EXPECT_FALSE(j.interval.has_value());
  EXPECT_FALSE(j.mde_ratio.has_value());
}

TEST(VerdictTest, NoPairsAreInconclusive) {
  const Judgement j = Judge(Evidence{});
  EXPECT_EQ(j.verdict, Verdict::kInconclusive);
  EXPECT_FALSE(j.ratio.has_value());
  EXPECT_THAT(j.reason, HasSubstr("no paired samples"));
}

TEST(VerdictTest, TheFirstRuleThatAppliesDecides) {
  Evidence evidence = Around(2.0);
  evidence.invalid = "same code";
  EXPECT_EQ(Judge(evidence).verdict, Verdict::kInvalid);
  evidence.broken = "wrong output";
  EXPECT_EQ(Judge(evidence).verdict, Verdict::kBroken);
  // Timed for the record all the same.
  EXPECT_NEAR(*Judge(evidence).ratio, 2.0, 1e-6);
  evidence.not_applicable = "head_dim";
  EXPECT_EQ(Judge(evidence).verdict, Verdict::kNotApplicable);
  EXPECT_EQ(Judge(evidence).reason, "head_dim");
}

TEST(VerdictTest, AStricterLevelCanTakeAVerdictBack) {
  Evidence evidence = Around(1.13, 0.002);
  EXPECT_EQ(Judge(evidence).verdict, Verdict::kAdopt);
  evidence.alpha = 0.05 / 35;
  EXPECT_NE(Judge(evidence).verdict, Verdict::kAdopt);
}

TEST(VerdictTest, SameMachineCodeIsInvalid) {
  EXPECT_THAT(WhyCodeInvalid({"abc", "abc"}), HasSubstr("reaches no code"));
  EXPECT_THAT(WhyCodeInvalid({"abc", "def"}), IsEmpty());
}

TEST(VerdictTest, OtherMachineCodeWithoutTheTogglesInstructionsIsInvalid) {
  const Opcodes none = {{"FFMA", 64}};
  const Opcodes some = {{"FFMA", 8}, {"HMMA.16816.F32", 16}};
  const Opcodes more = {{"HMMA.16816.F32", 16}, {"HMMA.1688.F32", 16}};
  const auto why = [](const Opcodes& base, const Opcodes& candidate, const char* sass) {
    return WhyCodeInvalid({.base = "abc",
                           .candidate = "def",
                           .base_opcodes = &base,
                           .candidate_opcodes = &candidate,
                           .sass = sass});
  };
  EXPECT_THAT(why(none, some, "HMMA"), IsEmpty()) << "appears";
  EXPECT_THAT(why(some, more, "HMMA"), IsEmpty()) << "grows";
  EXPECT_THAT(why(some, some, "HMMA"), HasSubstr("16 that match /HMMA/ in the base, 16 in"));
  EXPECT_THAT(why(none, none, "HMMA"), HasSubstr("not in the machine code"));
  EXPECT_THAT(why(some, none, "HMMA"), HasSubstr("16 that match /HMMA/ in the base, 0 in"));
  EXPECT_THAT(why(none, none, ""), IsEmpty()) << "a row that names no opcode";
  EXPECT_THAT(why({}, some, "LDGSTS"), IsEmpty()) << "no disassembler";
  EXPECT_THAT(why(some, {}, "LDGSTS"), IsEmpty()) << "no disassembler";
}

TEST(VerdictTest, AToggleThatTakesInstructionsAwayMustLeaveFewer) {
  const Opcodes many = {{"LDSM.16.M88.4", 40}};
  const Opcodes few = {{"LDSM.16.M88.4", 16}};
  const auto why = [](const Opcodes& base, const Opcodes& candidate) {
    return WhyCodeInvalid({.base = "abc",
                           .candidate = "def",
                           .base_opcodes = &base,
                           .candidate_opcodes = &candidate,
                           .sass = "LDSM",
                           .fewer = true});
  };
  EXPECT_THAT(why(many, few), IsEmpty());
  EXPECT_THAT(why(many, many), HasSubstr("still in the machine code: 40"));
  EXPECT_THAT(why(few, many), HasSubstr("16 that match /LDSM/ in the base, 40 in"));
}

TEST(VerdictTest, UnknownMachineCodeIsInvalid) {
  EXPECT_THAT(WhyCodeInvalid({"", "def"}), HasSubstr("no hash of the base"));
  EXPECT_THAT(WhyCodeInvalid({"abc", ""}), HasSubstr("no hash of the candidate"));
  EXPECT_THAT(WhyCodeInvalid({"", ""}), HasSubstr("no machine-code evidence"));
}

TEST(VerdictTest, LaunchesWithoutWhatTheToggleBringsAreInvalid) {
  using Lines = std::vector<std::string>;
  const Lines plain = {"by graph", "kernel sdpa"};
  const Lines window = {"by graph", "kernel sdpa window 1024 B"};
  const Lines two = {"by graph", "kernel layernorm", "kernel sdpa"};
  const auto why = [](std::vector<Lines> base, std::vector<Lines> candidate, const char* pattern,
                      bool vanishes) {
    return WhyLaunchInvalid({.base = std::move(base),
                             .candidate = std::move(candidate),
                             .pattern = pattern,
                             .vanishes = vanishes});
  };
  EXPECT_THAT(why({plain}, {window}, "window", false), IsEmpty());
  EXPECT_THAT(why({two}, {plain}, "layernorm", true), IsEmpty());
  EXPECT_THAT(why({plain}, {plain}, "window", false), HasSubstr("launch the same"));
  EXPECT_THAT(why({plain}, {two}, "window", false), HasSubstr("0 lines of a call match /window/"));
  EXPECT_THAT(why({window}, {plain}, "window", false), HasSubstr("1 lines"));
  EXPECT_THAT(why({plain}, {window}, "layernorm", true), HasSubstr("0 lines"));
  EXPECT_THAT(why({plain, window}, {window}, "window", false), HasSubstr("launch the same"))
      << "one process launched the base otherwise";
  EXPECT_THAT(why({}, {window}, "window", false), HasSubstr("no call of the base"));
  EXPECT_THAT(why({plain}, {}, "window", false), HasSubstr("no call of the candidate"));
  EXPECT_THAT(why({plain}, {window}, "", false), IsEmpty()) << "between two levels";
}

std::vector<Pair> Pairs(int count, int throttled, double base_mhz, double candidate_mhz) {
  std::vector<Pair> pairs;
  for (int i = 0; i < count; ++i) {
    pairs.push_back({{.block = i, .us = 1, .sm_mhz = base_mhz, .throttled = i < throttled},
                     {.block = i, .us = 1, .sm_mhz = candidate_mhz}});
  }
  return pairs;
}

TEST(VerdictTest, ThrottlingInMoreThanHalfOfThePairsIsInvalid) {
  EXPECT_THAT(WhyConditionsInvalid(Pairs(10, 5, 1980, 1980)), IsEmpty());
  EXPECT_THAT(WhyConditionsInvalid(Pairs(10, 6, 1980, 1980)), HasSubstr("6 of 10 pairs"));
}

// `base` and `candidate` of the pairs ran under the power limit, from the first on.
std::vector<Pair> Capped(int count, int base, int candidate, double base_mhz = 1400,
                         double candidate_mhz = 1400) {
  std::vector<Pair> pairs = Pairs(count, 0, base_mhz, candidate_mhz);
  for (int i = 0; i < count; ++i) {
    pairs[i].base.power_capped = i < base;
    pairs[i].candidate.power_capped = i < candidate;
  }
  return pairs;
}

TEST(VerdictTest, APowerLimitThatBothArmsShareIsValidAndMarkedWithBothClocks) {
  const std::vector<Pair> pairs = Capped(72, 70, 72, 1410, 1408);
  EXPECT_THAT(WhyConditionsInvalid(pairs), IsEmpty());
  const PowerCap cap = FindPowerCap(pairs);
  EXPECT_TRUE(cap.Any());
  EXPECT_EQ(cap.Text(),
            "power-capped in 70 (base) and 72 (candidate) of 72 pairs, at 1410 MHz (base) and "
            "1408 MHz (candidate)");
}

TEST(VerdictTest, APowerLimitThatHeldOneArmMoreThanAQuarterMoreIsInvalid) {
  // On either side of the limit of a quarter of the pairs, for either arm.
  const auto why = [](int base, int candidate) {
    return WhyConditionsInvalid(Capped(100, base, candidate, 1400, 1430));
  };
  EXPECT_THAT(why(25, 0), IsEmpty());
  EXPECT_THAT(why(0, 25), IsEmpty());
  EXPECT_THAT(why(100, 75), IsEmpty());
  EXPECT_THAT(why(26, 0), HasSubstr("base in 26, candidate in 0"));
  EXPECT_THAT(why(0, 26), HasSubstr("base in 0, candidate in 26"));
  EXPECT_THAT(why(74, 100), HasSubstr("one arm more"));
}

// NVML's mask flickers at the limit; a sample's own clock says what the limit did to it.
TEST(VerdictTest, UnequalCappingIsValidWhereTheClocksOfBothArmsWereReadAndAgree) {
  EXPECT_THAT(WhyConditionsInvalid(Capped(100, 60, 10, 1400, 1428)), IsEmpty());
  EXPECT_THAT(WhyConditionsInvalid(Capped(100, 60, 10, 1400, 1429)), HasSubstr("one arm more"));
  EXPECT_THAT(WhyConditionsInvalid(Capped(100, 60, 10, 0, 1400)), HasSubstr("one arm more"));
  EXPECT_THAT(WhyConditionsInvalid(Capped(100, 60, 10, 0, 0)), HasSubstr("one arm more"));
}

TEST(VerdictTest, UnderThePowerLimitDriftIsCommonToBothArms) {
  EXPECT_THAT(WhyConditionsInvalid(Capped(72, 72, 72, 1400, 1430)), IsEmpty());
  std::vector<Pair> drifting = Capped(72, 72, 72);
  for (int i = 0; i < 72; ++i) {
    drifting[i].base.sm_mhz = drifting[i].candidate.sm_mhz = 1500 - 2.0 * i;
  }
  EXPECT_THAT(WhyConditionsInvalid(drifting), IsEmpty());
  // One sample at the limit makes the process's drift the limit's doing, and no other's.
  for (int i = 0; i < 72; ++i) {
    drifting[i].base.power_capped = false;
    drifting[i].candidate.power_capped = i == 60;
  }
  EXPECT_THAT(WhyConditionsInvalid(drifting), IsEmpty());
  for (int i = 0; i < 72; ++i) drifting[i].base.process = drifting[i].candidate.process = i / 36;
  EXPECT_THAT(WhyConditionsInvalid(drifting), HasSubstr("the clocks drift: process 0"));
}

TEST(VerdictTest, HeatUnderThePowerLimitIsStillThrottling) {
  std::vector<Pair> pairs = Capped(10, 10, 10);
  for (int i = 0; i < 6; ++i) pairs[i].candidate.throttled = true;
  EXPECT_THAT(WhyConditionsInvalid(pairs), HasSubstr("throttled in 6 of 10 pairs"));
}

TEST(VerdictTest, WithoutAPowerLimitThereIsNoMark) {
  EXPECT_FALSE(FindPowerCap(Pairs(10, 10, 1980, 1980)).Any());
  EXPECT_FALSE(FindPowerCap({}).Any());
  EXPECT_EQ(FindPowerCap(Capped(2, 1, 0, 0, 1400)).Text(),
            "power-capped in 1 (base) and 0 (candidate) of 2 pairs");
}

// Both arms are in every block: what sets their clocks apart are the arms themselves.
TEST(VerdictTest, ClocksMoreThanTwoPercentApartAreNamedAndHarmNoVerdict) {
  const auto differ = [](double base, double candidate) {
    const std::vector<Pair> pairs = Pairs(10, 0, base, candidate);
    EXPECT_THAT(WhyConditionsInvalid(pairs), IsEmpty());
    return FindPowerCap(pairs).ClocksDiffer();
  };
  // On either side of the limit of 2%.
  EXPECT_FALSE(differ(2000, 1970));
  EXPECT_FALSE(differ(2000, 2030));
  EXPECT_TRUE(differ(2000, 1940));
  EXPECT_TRUE(differ(2000, 2060));
  EXPECT_EQ(FindPowerCap(Pairs(10, 0, 1978, 1802)).ClocksText(),
            "at 1978 MHz (base) and 1802 MHz (candidate)");
  EXPECT_FALSE(differ(0, 1900)) << "not read";
  EXPECT_EQ(FindPowerCap(Pairs(10, 0, 0, 1900)).ClocksText(), "");
}

// Blocks of three processes whose clock goes from `first` to `last` MHz in the
// middle one, for base and candidate alike.
std::vector<Pair> Drifting(int blocks, double first, double last) {
  std::vector<Pair> pairs;
  for (int process = 0; process < 3; ++process) {
    for (int block = 0; block < blocks; ++block) {
      const double share = blocks > 1 ? block / (blocks - 1.0) : 0;
      const double mhz = process == 1 ? first + share * (last - first) : first;
      pairs.push_back({{.process = process, .block = block, .us = 1, .sm_mhz = mhz},
                       {.process = process, .block = block, .us = 1, .sm_mhz = mhz}});
    }
  }
  return pairs;
}

TEST(VerdictTest, AClockThatDriftsWithinAProcessIsInvalidThoughBothArmsShareIt) {
  const std::string why = WhyConditionsInvalid(Drifting(24, 1980, 1400));
  EXPECT_THAT(why, HasSubstr("the clocks drift: process 1"));
  EXPECT_THAT(WhyConditionsInvalid(Drifting(24, 1400, 1980)), HasSubstr("the clocks drift"));
  // Thirds of 24 blocks lie 16 blocks apart: 16/23 of the whole drift.
  EXPECT_THAT(WhyConditionsInvalid(Drifting(24, 2000, 2000 * (1 - 0.015 * 23 / 16))), IsEmpty());
  EXPECT_THAT(WhyConditionsInvalid(Drifting(24, 2000, 2000 * (1 - 0.03 * 23 / 16))),
              HasSubstr("the clocks drift"));
}

TEST(VerdictTest, AStepOfTheClockBetweenProcessesIsNoDriftAndTwoBlocksShowNone) {
  std::vector<Pair> pairs = Drifting(24, 1980, 1980);
  for (Pair& pair : pairs) {
    if (pair.base.process == 2) pair.base.sm_mhz = pair.candidate.sm_mhz = 1400;
  }
  EXPECT_THAT(WhyConditionsInvalid(pairs), IsEmpty());
  EXPECT_THAT(WhyConditionsInvalid(Drifting(2, 1980, 1400)), IsEmpty());
}

TEST(VerdictTest, UnreadClocksAreNoReason) {
  EXPECT_THAT(WhyConditionsInvalid(Pairs(10, 0, 0, 1900)), IsEmpty());
  EXPECT_THAT(WhyConditionsInvalid({}), IsEmpty());
}

}  // namespace
}  // namespace warpledger::analysis
