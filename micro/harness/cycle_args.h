// SPDX-License-Identifier: Apache-2.0
// What a kernel that is timed in cycles is called with, shared by host and device.

#ifndef WARPLEDGER_MICRO_HARNESS_CYCLE_ARGS_H_
#define WARPLEDGER_MICRO_HARNESS_CYCLE_ARGS_H_

#include <cstdint>

namespace warpledger::harness {

inline constexpr int kMaxCycleParams = 6;

// What one warp saw of the timed loop. Clocks are those of its SM.
struct WarpStamp {
  int64_t start_clock = 0;
  int64_t stop_clock = 0;
  uint32_t smid = 0;
  uint32_t cta = 0;
};

struct CycleArgs {
  int iterations = 0;           // of the timed loop, at least 1
  uint32_t seed = 0;            // for data made in the kernel; never the same twice
  uint32_t sink_key = 0;        // random; see KeepAlive in cycles.cuh
  WarpStamp* stamps = nullptr;  // (ctas * warps of a CTA)
  uint32_t* sink = nullptr;     // (1)
  void* data = nullptr;         // what the case's make_data made
  int64_t data_bytes = 0;
  int64_t params[kMaxCycleParams] = {};  // the case's `args`
};

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_CYCLE_ARGS_H_
