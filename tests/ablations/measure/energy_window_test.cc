// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/energy_window.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"

namespace warpledger::ablations {
namespace {

using harness::Stay;

// A load of so many watts on a counter that steps every 100 ms, asked every millisecond.
struct Load {
  double watts = 700;
  double step_s = 0.1;
  double stops_at_s = HUGE_VAL;  // the counter
  bool has_counter = true;

  double seconds = 0;  // now

  std::optional<double> Read() const {
    if (!has_counter) return std::nullopt;
    return watts * step_s * std::floor(std::min(seconds, stops_at_s) / step_s);
  }
};

struct Outcome {
  double begin_s = 0;
  double end_s = 0;
  std::optional<double> joules;
  std::optional<double> seconds;
};

Outcome OutcomeOf(Load load, const AlonePlan& plan) {
  EnergyWindow window(plan, [&] { return load.Read(); });
  Outcome outcome;
  for (int ms = 0; ms < 10'000; ++ms) {
    // Not at the counter's own steps.
    load.seconds = 0.0337 + 1e-3 * ms;
    const Stay next = window.Next(absl::UnixEpoch() + absl::Seconds(load.seconds));
    if (next == Stay::kBeginWindow) outcome.begin_s = load.seconds;
    if (next == Stay::kEndWindow) {
      outcome.end_s = load.seconds;
      break;
    }
  }
  outcome.joules = window.joules();
  outcome.seconds = window.seconds();
  return outcome;
}

TEST(EnergyWindow, ReadsTheCounterFromStepToStep) {
  for (const double watts : {350.0, 700.0}) {
    const Outcome outcome = OutcomeOf({.watts = watts}, {.settle_s = 0.5, .window_s = 1});
    EXPECT_NEAR(*outcome.joules / *outcome.seconds, watts, 0.002 * watts);
    // The calibration that a reading at any time would fail: half a step is 5%.
    EXPECT_NEAR(*outcome.seconds, 1.0, 0.002);
  }
}

TEST(EnergyWindow, BeginsAfterTheSettlingAndLastsLongEnough) {
  const Outcome outcome = OutcomeOf({}, {.settle_s = 0.72, .window_s = 0.33});
  EXPECT_NEAR(outcome.begin_s, 0.8, 0.002);
  EXPECT_NEAR(outcome.end_s, 1.2, 0.002);
}

TEST(EnergyWindow, DoesWithoutACounterThatIsNotThere) {
  const Outcome outcome = OutcomeOf({.has_counter = false}, {.settle_s = 0.5, .window_s = 1});
  EXPECT_NEAR(outcome.end_s - outcome.begin_s, 1, 0.002);
  EXPECT_EQ(outcome.joules, std::nullopt);
  EXPECT_EQ(outcome.seconds, std::nullopt);
}

TEST(EnergyWindow, DoesWithoutACounterThatStands) {
  for (const double stops_at_s : {0.0, 0.9}) {
    const Outcome outcome = OutcomeOf({.stops_at_s = stops_at_s}, {.settle_s = 0.2, .window_s = 1});
    EXPECT_GT(outcome.end_s, outcome.begin_s + 0.99) << stops_at_s;
    EXPECT_LT(outcome.end_s, 3) << stops_at_s;
    EXPECT_EQ(outcome.joules, std::nullopt) << stops_at_s;
  }
}

}  // namespace
}  // namespace warpledger::ablations
