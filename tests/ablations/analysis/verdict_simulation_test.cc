// How often the ledger would be wrong, on simulated runs whose truth is known.
//
// A run: 3 processes of 24 blocks. Each block drifts (clock, temperature), which
// both arms share. Each arm has a 1% noise of its own and 3% outliers of up to
// +50%. Each process has an effect of its own on the ratio: the same binary has
// differed between processes by more than the noise within one.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ablations/analysis/cluster_median.h"
#include "ablations/analysis/paired.h"
#include "ablations/analysis/random.h"
#include "ablations/analysis/verdict.h"

namespace warpledger::analysis {
namespace {

constexpr int kProcesses = 3;
constexpr int kBlocks = 24;
constexpr int kTrials = 1500;
constexpr int kResamples = 1000;

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed) {}

  ClusterMedian Run(double true_ratio, double process_sd) {
    std::vector<Timing> base;
    std::vector<Timing> candidate;
    for (int process = 0; process < kProcesses; ++process) {
      const double ratio = true_ratio * std::exp(process_sd * Normal());
      double drift = 0;
      for (int block = 0; block < kBlocks; ++block) {
        drift += 0.01 * Normal();
        const double common_us = 10 * std::exp(drift);
        base.push_back({.process = process, .block = block, .us = common_us * ArmNoise()});
        candidate.push_back(
            {.process = process, .block = block, .us = common_us * ArmNoise() / ratio});
      }
    }
    return ClusterMedian(LogRatiosByProcess(PairUp(base, candidate)),
                         {.resamples = kResamples, .seed = random_.Next()});
  }

 private:
  // Box and Muller.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - random_.Uniform()));
    return radius * std::cos(2 * M_PI * random_.Uniform());
  }
  double ArmNoise() {
    const double outlier = random_.Uniform() < 0.03 ? 1 + 0.5 * random_.Uniform() : 1;
    return outlier * std::exp(0.01 * Normal());
  }

  Random random_;
};

struct Rates {
  double false_verdicts = 0;
  double envelope_coverage = 0;
  double bootstrap_coverage = 0;
};

Rates RatesOf(double true_ratio, double process_sd) {
  Simulation simulation(20240601);
  const double truth = std::log(true_ratio);
  Rates rates;
  for (int trial = 0; trial < kTrials; ++trial) {
    const ClusterMedian median = simulation.Run(true_ratio, process_sd);
    Evidence evidence;
    evidence.log_ratio = &median;
    const Verdict verdict = Judge(evidence).verdict;
    rates.false_verdicts += verdict != Verdict::kNeutral && verdict != Verdict::kInconclusive;
    const Interval envelope = median.Envelope(0.95);
    rates.envelope_coverage += envelope.low <= truth && truth <= envelope.high;
    const Interval bootstrap = median.Bootstrap(0.95);
    rates.bootstrap_coverage += bootstrap.low <= truth && truth <= bootstrap.high;
  }
  rates.false_verdicts /= kTrials;
  rates.envelope_coverage /= kTrials;
  rates.bootstrap_coverage /= kTrials;
  ::testing::Test::RecordProperty("false_verdicts", std::to_string(rates.false_verdicts));
  ::testing::Test::RecordProperty("coverage", std::to_string(rates.envelope_coverage));
  std::printf("ratio %.2f, process sd %.3f: false %.4f, coverage %.4f, bootstrap alone %.4f\n",
              true_ratio, process_sd, rates.false_verdicts, rates.envelope_coverage,
              rates.bootstrap_coverage);
  return rates;
}

// The bounds leave three standard errors of a rate over kTrials, 1.7 points.

TEST(VerdictSimulationTest, IdenticalArmsRarelyGetAVerdictWithoutProcessEffects) {
  const Rates rates = RatesOf(1.0, 0.0);
  EXPECT_LT(rates.false_verdicts, 0.05);
  EXPECT_GT(rates.envelope_coverage, 0.95 - 0.017);
}

TEST(VerdictSimulationTest, IdenticalArmsRarelyGetAVerdictUnderStrongProcessEffects) {
  const Rates rates = RatesOf(1.0, 0.02);
  EXPECT_LT(rates.false_verdicts, 0.05 + 0.017);
  EXPECT_GT(rates.envelope_coverage, 0.95 - 0.017);
}

TEST(VerdictSimulationTest, TheBootstrapAloneWouldMissItsLevelUnderStrongProcessEffects) {
  // Why the envelope exists; when this fails, the envelope has lost its reason.
  EXPECT_LT(RatesOf(1.0, 0.02).bootstrap_coverage, 0.90);
}

TEST(VerdictSimulationTest, CoverageHoldsForARealEffect) {
  EXPECT_GT(RatesOf(1.3, 0.005).envelope_coverage, 0.95 - 0.017);
}

TEST(VerdictSimulationTest, ALargeEffectIsFoundInNearlyEveryRun) {
  Simulation simulation(7);
  int adopted = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const ClusterMedian median = simulation.Run(1.3, 0.005);
    Evidence evidence;
    evidence.log_ratio = &median;
    adopted += Judge(evidence).verdict == Verdict::kAdopt;
  }
  EXPECT_GT(adopted, 294);
}

}  // namespace
}  // namespace warpledger::analysis
