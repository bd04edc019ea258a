// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/energy_window.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"

namespace warpledger::ablations {
namespace {

using harness::Stay;

// A load of so many watts on a counter that steps every 100 ms, asked every millisecond. Each
// thirtieth answer takes `slow_s`, and is of its end.
struct Load {
  double watts = 700;
  double step_s = 0.1;
  double stops_at_s = HUGE_VAL;  // the counter
  bool has_counter = true;
  double slow_s = 0;
  bool always_slow = false;
  double seconds = 0.0337;  // now, and not at the counter's own steps

  int readings = 0;

  std::optional<double> Read() {
    if (!has_counter) return std::nullopt;
    if (++readings % 30 == 0 || always_slow) seconds += slow_s;
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
  EnergyWindow window(
      plan, [&] { return load.Read(); },
      [&] { return absl::UnixEpoch() + absl::Seconds(load.seconds); });
  Outcome outcome;
  for (int i = 0; i < 10'000; ++i) {
    load.seconds += 1e-3;
    const Stay next = window.Next();
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

// A step that showed in an answer of 30 ms may be as old as that: another one counts.
TEST(EnergyWindow, TakesNoStepWhoseTimeIsNotKnown) {
  int known = 0;
  for (int i = 0; i < 50; ++i) {
    const Outcome outcome = OutcomeOf({.slow_s = 0.03, .seconds = 0.0007 + 0.002 * i},
                                      {.settle_s = 0.5, .window_s = 1});
    if (!outcome.joules) continue;
    ++known;
    EXPECT_NEAR(*outcome.joules / *outcome.seconds, 700, 0.006 * 700) << i;
  }
  EXPECT_GE(known, 40);
}

TEST(EnergyWindow, DoesWithoutACounterThatNeverAnswersInTime) {
  const Outcome outcome =
      OutcomeOf({.slow_s = 0.6, .always_slow = true}, {.settle_s = 0.5, .window_s = 1});
  EXPECT_EQ(outcome.joules, std::nullopt);
  EXPECT_LT(outcome.end_s, 5);
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

// Who submits work must never wait for the counter.
TEST(WatchedWindow, AnswersWhileTheCounterDoesNot) {
  absl::Notification answers;
  std::thread::id reader;
  bool at_end = false;
  const absl::Time began = absl::Now();
  WatchedWindow window(
      {.settle_s = 0, .window_s = 0},
      [&]() -> std::optional<double> {
        reader = std::this_thread::get_id();
        answers.WaitForNotificationWithTimeout(absl::Seconds(20));
        return std::nullopt;
      },
      [&] { at_end = true; });
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(window.Next(), Stay::kGoOn);
  EXPECT_LT(absl::Now() - began, absl::Seconds(15));
  answers.Notify();
  Stay next = Stay::kGoOn;
  while (next == Stay::kGoOn) next = window.Next();
  EXPECT_EQ(next, Stay::kBeginWindow) << "though it may have ended";
  do next = window.Next();
  while (next == Stay::kGoOn);
  EXPECT_EQ(next, Stay::kEndWindow);
  EXPECT_EQ(window.Stop().joules(), std::nullopt);
  EXPECT_TRUE(at_end);
  EXPECT_NE(reader, std::this_thread::get_id());
}

TEST(WatchedWindow, EndsWithItsOwner) {
  bool at_end = false;
  {
    const WatchedWindow window(
        {.settle_s = 50}, [] { return 1.0; }, [&] { at_end = true; });
  }
  EXPECT_FALSE(at_end);
}

}  // namespace
}  // namespace warpledger::ablations
