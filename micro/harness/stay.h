// SPDX-License-Identifier: Apache-2.0
// Many replays without a pause, so that a kernel runs at the clock that its own power allows; a
// part of them is the window that is timed.
//
// Contract: the stream has kQueued of replays before it, so that a host that stops for less than
// that costs the GPU nothing. `next` is asked by time and not by replay, and the whole queue is
// filled after each answer. Events stand around each group of replays that takes kGroup: such a
// pair costs a microsecond or two, which would be much around replays of a few microseconds. What
// the stream waited between groups is idle time. Where a group was submitted too late, the host may
// have stopped between its replays too: the whole time that its submission took is counted then.
// So `idle_share` is an upper bound, and the events' own share of it is 0.1%.
//
//   absl::StatusOr<StaySample> sample = StayOn(stream, replay_ms, launches, next);

#ifndef WARPLEDGER_MICRO_HARNESS_STAY_H_
#define WARPLEDGER_MICRO_HARNESS_STAY_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "micro/harness/replay.h"

namespace warpledger::harness {

// ablations/subjects/sdpa/peers/peer_gpu.py does the same.
inline constexpr absl::Duration kQueued = absl::Milliseconds(100);
inline constexpr absl::Duration kGroup = absl::Milliseconds(2);
inline constexpr absl::Duration kAskEvery = absl::Milliseconds(2);
inline constexpr int kMostGroups = 256;  // in the queue

// What a stay needs of a stream, and of the host's clock. Tests bring their own.
class ReplayStream {
 public:
  // Numbers of events are below this.
  static constexpr int kEvents = 2 * (kMostGroups + 1) + 2;

  virtual ~ReplayStream() = default;
  virtual absl::Status Submit() = 0;           // one replay
  virtual absl::Status Record(int event) = 0;  // behind what was submitted
  virtual absl::Status Wait(int event) = 0;
  virtual absl::StatusOr<bool> IsPast(int event) = 0;
  virtual absl::StatusOr<double> MsBetween(int from, int to) = 0;  // both are past
  virtual absl::Status StampClock(bool begin) = 0;                 // of the window
  virtual absl::Time Now() = 0;
};

// Replays of `launches` calls until `next` has begun and ended the window. `replay_ms`: about what
// one takes. The clock is the stream's to read.
absl::StatusOr<StaySample> StayOn(ReplayStream& stream, double replay_ms, int launches,
                                  const std::function<Stay()>& next);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_STAY_H_
