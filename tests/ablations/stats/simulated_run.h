// SPDX-License-Identifier: Apache-2.0
// Runs whose truth is known, with the disturbances of real ones, each of which
// can be had alone:
//   noise            every sample, independent
//   drift            a random walk of clock and temperature from sample to sample,
//                    which the two arms share but for the samples between them
//   outliers         rare samples that take up to half as long again
//   process effect   the ratio itself differs from process to process
//   autocorrelation  what disturbs an arm stays for some blocks: AR(1)
//
//   SimulatedRuns runs({.process_sd = 0.005}, /*seed=*/1);
//   const ProcessMedians measured = runs.Next(/*true_ratio=*/1.02);

#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "ablations/stats/log_ratios.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/random.h"

namespace warpledger::analysis {

// The defaults of `warpledger run`.
inline constexpr int kSimulatedProcesses = 5;
inline constexpr int kSimulatedBlocks = 24;

struct Disturbances {
  double noise_sd = 0.003;
  double drift_sd = 0;       // per sample
  double outlier_share = 0;  // of samples
  double process_sd = 0;     // of the log-ratio
  double autocorrelated_sd = 0;
  double autocorrelation = 0.9;  // from block to block
  int processes = kSimulatedProcesses;
  int blocks = kSimulatedBlocks;
  int arms = 10;  // in a block, of which two are compared
};

// Box and Muller.
inline double StandardNormal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  return radius * std::cos(2 * M_PI * random.Uniform());
}

// Times of single arms, so that comparisons can share one: noise and process effects alone, each of
// an arm. A comparison's process effect is as wide as `process_sd` says, its noise √2 of
// `noise_sd`.
class SimulatedArms {
 public:
  SimulatedArms(const Disturbances& disturbances, uint64_t seed)
      : d_(disturbances), random_(seed) {}

  // [process][block]
  std::vector<std::vector<double>> NextLogTimes() {
    std::vector<std::vector<double>> times(static_cast<size_t>(d_.processes));
    for (std::vector<double>& process : times) {
      const double effect = d_.process_sd / std::sqrt(2.0) * StandardNormal(random_);
      for (int block = 0; block < d_.blocks; ++block) {
        process.push_back(effect + d_.noise_sd * StandardNormal(random_));
      }
    }
    return times;
  }

 private:
  Disturbances d_;
  Random random_;
};

// Base less candidate: log-ratios.
inline std::vector<std::vector<double>> Differences(std::vector<std::vector<double>> base,
                                                    const std::vector<std::vector<double>>& minus) {
  for (size_t process = 0; process < base.size(); ++process) {
    for (size_t block = 0; block < base[process].size(); ++block) {
      base[process][block] -= minus[process][block];
    }
  }
  return base;
}

class SimulatedRuns {
 public:
  SimulatedRuns(const Disturbances& disturbances, uint64_t seed)
      : d_(disturbances), random_(seed) {}

  std::vector<std::vector<double>> NextLogRatios(double true_ratio) {
    std::vector<Timing> base;
    std::vector<Timing> candidate;
    for (int process = 0; process < d_.processes; ++process) {
      const double log_ratio = std::log(true_ratio) + d_.process_sd * Normal();
      double drift = 0;
      double base_state = d_.autocorrelated_sd * Normal();
      double candidate_state = d_.autocorrelated_sd * Normal();
      for (int block = 0; block < d_.blocks; ++block) {
        const uint32_t arms = static_cast<uint32_t>(d_.arms);
        const uint32_t base_place = random_.Below(arms);
        const uint32_t candidate_place = (base_place + 1 + random_.Below(arms - 1)) % arms;
        double base_us = 0;
        double candidate_us = 0;
        for (uint32_t place = 0; place < arms; ++place) {
          drift += d_.drift_sd * Normal();
          if (place == base_place) base_us = 10 * std::exp(drift + base_state) * Noise();
          if (place == candidate_place) {
            candidate_us = 10 * std::exp(drift + candidate_state - log_ratio) * Noise();
          }
        }
        base.push_back({.process = process, .block = block, .us = base_us});
        candidate.push_back({.process = process, .block = block, .us = candidate_us});
        Step(&base_state);
        Step(&candidate_state);
      }
    }
    return LogRatiosByProcess(PairUp(base, candidate));
  }

  ProcessMedians Next(double true_ratio) { return MediansOf(NextLogRatios(true_ratio)); }

 private:
  double Normal() { return StandardNormal(random_); }
  double Noise() {
    const double outlier = random_.Uniform() < d_.outlier_share ? 1 + 0.5 * random_.Uniform() : 1;
    return outlier * std::exp(d_.noise_sd * Normal());
  }
  // Keeps the variance at autocorrelated_sd squared.
  void Step(double* state) {
    const double rho = d_.autocorrelation;
    *state = rho * *state + std::sqrt(1 - rho * rho) * d_.autocorrelated_sd * Normal();
  }

  Disturbances d_;
  Random random_;
};

}  // namespace warpledger::analysis
