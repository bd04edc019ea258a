// SPDX-License-Identifier: Apache-2.0
// What a replay is, for whoever plans or reads one: no GPU and no CUDA header is needed.

#ifndef WARPLEDGER_MICRO_HARNESS_REPLAY_H_
#define WARPLEDGER_MICRO_HARNESS_REPLAY_H_

#include <functional>
#include <string>
#include <string_view>

namespace warpledger::harness {

// How many launches one replay holds.
struct ReplayPlan {
  double target_us = 1000;  // wanted length of a replay
  int min_launches = 4;
  int max_launches = 256;
  int multiple_of = 4;  // the number of input sets: each is used equally often
};

enum class LaunchedBy { kGraph, kStream };

struct ReplaySample {
  double us = 0;      // per launch
  double sm_mhz = 0;  // over both replays; 0: not read
};

// What many replays without a pause do next.
enum class Stay { kGoOn, kBeginWindow, kEndWindow };

struct StaySample : ReplaySample {
  int launches = 0;       // in the window
  double window_s = 0;    // that they took
  double idle_share = 0;  // of the window: the stream waited for the host
};

// Launches for a kernel that takes about `kernel_us`, within the plan's limits.
int PlanLaunches(const ReplayPlan& plan, double kernel_us);

// What else there is to say of a kernel, from its first parameter as a graph's node holds it;
// nothing where it is empty.
using DescribeParameter =
    std::function<std::string(std::string_view symbol, const void* parameter)>;

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_REPLAY_H_
