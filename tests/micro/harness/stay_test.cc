// SPDX-License-Identifier: Apache-2.0
// Stays on a stream of invented times, before a host that is slow or stops.

#include "micro/harness/stay.h"

#include <algorithm>
#include <array>

#include "gtest/gtest.h"

namespace warpledger::harness {
namespace {

constexpr int kLaunches = 4;

// The host's and the GPU's clocks begin together. Times are in milliseconds.
class SlowHost final : public ReplayStream {
 public:
  struct Load {
    double replay_ms = 1;
    double submit_ms = 0.01;    // the host's, of a replay
    double stops_every_ms = 0;  // 0: never
    double stops_for_ms = 0;
  };
  explicit SlowHost(const Load& load) : load_(load), stops_at_ms_(load.stops_every_ms) {}

  absl::Status Submit() override {
    Spend(load_.submit_ms);
    if (begun_) idle_ms_ += std::max(0.0, host_ms_ - std::max(gpu_ms_, begun_at_ms_));
    gpu_ms_ = std::max(gpu_ms_, host_ms_) + load_.replay_ms;
    return absl::OkStatus();
  }
  absl::Status Record(int event) override {
    Spend(0.001);
    ++records_;
    at_ms_[static_cast<size_t>(event)] = std::max(gpu_ms_, host_ms_);
    // The window's first event comes right behind the stamp.
    if (begun_ && begun_at_ms_ == 0) begun_at_ms_ = At(event);
    return absl::OkStatus();
  }
  absl::Status Wait(int event) override {
    Spend(0.001);
    host_ms_ = std::max(host_ms_, At(event));
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsPast(int event) override {
    Spend(0.001);
    return host_ms_ >= At(event);
  }
  absl::StatusOr<double> MsBetween(int from, int to) override { return At(to) - At(from); }
  absl::Status StampClock(bool begin) override {
    begun_ = begin;
    return absl::OkStatus();
  }
  absl::Time Now() override { return absl::UnixEpoch() + absl::Milliseconds(host_ms_); }

  // What the host does beside; it may stop meanwhile.
  void Spend(double ms) {
    host_ms_ += ms;
    if (load_.stops_every_ms > 0 && host_ms_ >= stops_at_ms_) {
      host_ms_ += load_.stops_for_ms;
      stops_at_ms_ = host_ms_ + load_.stops_every_ms;
    }
  }
  double host_ms() const { return host_ms_; }
  double idle_ms() const { return idle_ms_; }  // in the window, as it was
  int records() const { return records_; }

 private:
  double At(int event) const { return at_ms_[static_cast<size_t>(event)]; }

  const Load load_;
  double stops_at_ms_;
  double host_ms_ = 0;
  double gpu_ms_ = 0;  // when all that was submitted is done
  double idle_ms_ = 0;
  bool begun_ = false;
  double begun_at_ms_ = 0;
  int records_ = 0;
  std::array<double, kEvents> at_ms_ = {};
};

struct Outcome {
  StaySample sample;
  double idle_share = 0;  // as it was
  int asked = 0;
  double host_ms = 0;
  int records = 0;
};

// Half a second, and then a window of two. `answer_ms`: what each question takes the host;
// `estimate`: of a replay, over what it takes.
Outcome StayOf(const SlowHost::Load& load, double answer_ms = 0, double estimate = 1) {
  SlowHost host(load);
  Outcome outcome;
  bool begun = false;
  const auto next = [&] {
    ++outcome.asked;
    host.Spend(answer_ms);
    if (!begun && host.host_ms() >= 500) {
      begun = true;
      return Stay::kBeginWindow;
    }
    return host.host_ms() >= 2500 ? Stay::kEndWindow : Stay::kGoOn;
  };
  const absl::StatusOr<StaySample> sample =
      StayOn(host, estimate * load.replay_ms, kLaunches, next);
  EXPECT_TRUE(sample.ok()) << sample.status();
  outcome.sample = *sample;
  outcome.idle_share = host.idle_ms() / (1000 * outcome.sample.window_s);
  outcome.host_ms = host.host_ms();
  outcome.records = host.records();
  return outcome;
}

void ExpectTheTimeOfTheReplay(const Outcome& outcome, double replay_ms) {
  EXPECT_NEAR(outcome.sample.us * kLaunches / (1000 * replay_ms), 1, 1e-6);
  EXPECT_LT(outcome.sample.idle_share, 0.001);
  EXPECT_NEAR(outcome.sample.window_s, 2, 0.1);
}

TEST(StayOn, TimesTheReplaysOfItsWindow) {
  for (const double replay_ms : {0.25, 1.0, 7.0}) {
    ExpectTheTimeOfTheReplay(StayOf({.replay_ms = replay_ms}), replay_ms);
  }
}

TEST(StayOn, LosesNothingToAHostThatStopsForLessThanTheQueue) {
  for (const double replay_ms : {0.25, 1.0, 7.0}) {
    ExpectTheTimeOfTheReplay(
        StayOf({.replay_ms = replay_ms, .stops_every_ms = 137, .stops_for_ms = 80}), replay_ms);
  }
}

// The first replays may be of a low clock.
TEST(StayOn, QueuesEnoughWhereReplaysTakeLessThanTheFirstOne) {
  ExpectTheTimeOfTheReplay(
      StayOf({.stops_every_ms = 137, .stops_for_ms = 80}, /*answer_ms=*/0, /*estimate=*/5), 1);
}

TEST(StayOn, LosesNothingToAnswersThatTakeLongerThanReplays) {
  for (const double answer_ms : {3.0, 30.0, 90.0}) {
    ExpectTheTimeOfTheReplay(StayOf({}, answer_ms), 1);
  }
}

TEST(StayOn, AsksByTimeAndNotByReplay) {
  const Outcome outcome = StayOf({.replay_ms = 0.1});
  EXPECT_LE(outcome.asked, outcome.host_ms / 2 + 1);
  EXPECT_GE(outcome.asked, outcome.host_ms / 5);
}

TEST(StayOn, SeesAHostThatStopsForLonger) {
  const Outcome outcome = StayOf({.stops_every_ms = 400, .stops_for_ms = 150});
  EXPECT_GT(outcome.idle_share, 0.05);
  EXPECT_GT(outcome.sample.us * kLaunches, 1050);
  EXPECT_NEAR(outcome.sample.idle_share, outcome.idle_share, 0.01);
  EXPECT_GE(outcome.sample.idle_share, outcome.idle_share);
}

// The stream is dry between the replays of a group as well, where no event stands.
TEST(StayOn, SeesAHostThatIsSlowerThanTheGpu) {
  for (const double submit_ms : {1.2, 3.0, 20.0}) {
    const Outcome outcome = StayOf({.replay_ms = 1, .submit_ms = submit_ms});
    EXPECT_GT(outcome.idle_share, 0.1);
    EXPECT_GE(outcome.sample.idle_share, outcome.idle_share - 0.01) << submit_ms;
  }
}

TEST(StayOn, PutsEventsAroundGroupsOfShortReplays) {
  const double replay_ms = 0.003;
  const Outcome outcome = StayOf({.replay_ms = replay_ms, .submit_ms = 0.0005});
  ExpectTheTimeOfTheReplay(outcome, replay_ms);
  EXPECT_LE(outcome.records, 2.7e3 + 2) << "two for 2 ms";
}

TEST(StayOn, HasAReplayInItsWindowAtLeast) {
  SlowHost host({});
  int asked = 0;
  const absl::StatusOr<StaySample> sample = StayOn(
      host, 1, kLaunches, [&] { return asked++ == 0 ? Stay::kBeginWindow : Stay::kEndWindow; });
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_GE(sample->launches, kLaunches);
  EXPECT_NEAR(sample->us * kLaunches, 1000, 1);
}

}  // namespace
}  // namespace warpledger::harness
