// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/stay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/common/status_macros.h"

namespace warpledger::harness {
namespace {

// One more than are queued: a group's wait is from the end of the one before it, which is not
// recorded anew until that is read.
constexpr int kSlots = kMostGroups + 1;
constexpr int kBegin = 2 * kSlots;
constexpr int kEnd = kBegin + 1;
static_assert(kEnd < ReplayStream::kEvents);

constexpr int Before(int64_t group) { return 2 * static_cast<int>(group % kSlots); }
constexpr int After(int64_t group) { return Before(group) + 1; }

int Times(absl::Duration length, double ms, int least, int most) {
  const double times = std::ceil(absl::ToDoubleMilliseconds(length) / std::max(ms, 1e-6));
  return static_cast<int>(std::clamp(times, static_cast<double>(least), static_cast<double>(most)));
}

class Stayer {
 public:
  Stayer(ReplayStream& stream, double replay_ms, int launches, const std::function<Stay()>& next)
      : stream_(stream),
        launches_(launches),
        replays_(Times(kGroup, replay_ms, 1, 1'000'000)),
        next_(next),
        fastest_ms_(replays_ * replay_ms) {}

  absl::StatusOr<StaySample> Run() {
    for (;;) {
      if (stream_.Now() >= ask_at_) {
        ASSIGN_OR_RETURN(const bool done, Ask());
        if (done) break;
      }
      // A replay takes less at a higher clock: the fastest says how many are enough.
      while (submitted_ - retired_ < Times(kQueued, fastest_ms_, 2, kMostGroups)) {
        RETURN_IF_ERROR(SubmitGroup());
      }
      RETURN_IF_ERROR(Retire());
      for (bool past = true; past && retired_ < submitted_;) {
        ASSIGN_OR_RETURN(past, stream_.IsPast(After(retired_)));
        if (past) RETURN_IF_ERROR(Retire());
      }
    }
    while (retired_ < submitted_) RETURN_IF_ERROR(Retire());
    RETURN_IF_ERROR(stream_.Wait(kEnd));
    ASSIGN_OR_RETURN(const double ms, stream_.MsBetween(kBegin, kEnd));
    StaySample sample;
    sample.us = 1000 * ms / static_cast<double>(in_window_);
    sample.launches = static_cast<int>(in_window_);
    sample.window_s = 1e-3 * ms;
    sample.idle_share = std::min(1.0, idle_ms_ / ms);
    return sample;
  }

 private:
  struct Group {
    bool in_window = false;
    int from = 0;        // the event that its wait began with
    double late_ms = 0;  // its submission, where the stream may have been dry during it
  };

  // Whether that was all.
  absl::StatusOr<bool> Ask() {
    const Stay what = next_();
    ask_at_ = stream_.Now() + kAskEvery;
    if (what == Stay::kBeginWindow) {
      RETURN_IF_ERROR(stream_.StampClock(/*begin=*/true));
      RETURN_IF_ERROR(stream_.Record(kBegin));
      begun_ = submitted_;
    }
    // A window holds a replay at least.
    if (what != Stay::kEndWindow || in_window_ == 0) return false;
    RETURN_IF_ERROR(stream_.Record(kEnd));
    RETURN_IF_ERROR(stream_.StampClock(/*begin=*/false));
    return true;
  }

  absl::Status SubmitGroup() {
    const absl::Time now = stream_.Now();
    RETURN_IF_ERROR(stream_.Record(Before(submitted_)));
    for (int i = 0; i < replays_; ++i) RETURN_IF_ERROR(stream_.Submit());
    RETURN_IF_ERROR(stream_.Record(After(submitted_)));
    Group& group = groups_[static_cast<size_t>(submitted_ % kSlots)];
    group = {.in_window = begun_ >= 0,
             .from = begun_ == submitted_ ? kBegin : After(submitted_ + kSlots - 1)};
    if (submitted_ > 0) {
      ASSIGN_OR_RETURN(const bool late, stream_.IsPast(After(submitted_ - 1)));
      if (late) group.late_ms = absl::ToDoubleMilliseconds(stream_.Now() - now);
    }
    in_window_ += group.in_window ? int64_t{launches_} * replays_ : 0;
    ++submitted_;
    return absl::OkStatus();
  }

  // Waits for the oldest group, and counts what the stream waited for it.
  absl::Status Retire() {
    RETURN_IF_ERROR(stream_.Wait(After(retired_)));
    ASSIGN_OR_RETURN(const double ms, stream_.MsBetween(Before(retired_), After(retired_)));
    fastest_ms_ = std::min(fastest_ms_, ms);
    const Group& group = groups_[static_cast<size_t>(retired_ % kSlots)];
    if (group.in_window) {
      ASSIGN_OR_RETURN(const double waited_ms, stream_.MsBetween(group.from, Before(retired_)));
      idle_ms_ += waited_ms + group.late_ms;
    }
    ++retired_;
    return absl::OkStatus();
  }

  ReplayStream& stream_;
  const int launches_;
  const int replays_;  // of a group
  const std::function<Stay()>& next_;
  double fastest_ms_;  // of a group
  absl::Time ask_at_ = absl::InfinitePast();
  std::array<Group, kSlots> groups_;
  int64_t submitted_ = 0;
  int64_t retired_ = 0;
  int64_t begun_ = -1;     // the first group of the window
  int64_t in_window_ = 0;  // launches
  double idle_ms_ = 0;
};

}  // namespace

absl::StatusOr<StaySample> StayOn(ReplayStream& stream, double replay_ms, int launches,
                                  const std::function<Stay()>& next) {
  return Stayer(stream, replay_ms, launches, next).Run();
}

}  // namespace warpledger::harness
