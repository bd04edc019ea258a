// SPDX-License-Identifier: Apache-2.0
// A loop over independent pieces of work on all cores that the process may use.

#ifndef WARPLEDGER_KERNELS_COMMON_PARALLEL_H_
#define WARPLEDGER_KERNELS_COMMON_PARALLEL_H_

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace warpledger {

// Cores that this process may run on: taskset and job schedulers give a process a part of the
// machine's, which std::thread::hardware_concurrency counts all the same.
inline int UsableCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Calls body(i) for every i below `count`, in no order. `body` comes from make_body(), which
// each thread calls once, so that what it needs to work with is made once per thread.
template <typename MakeBody>
void ParallelForWith(int64_t count, const MakeBody& make_body) {
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    auto body = make_body();
    for (int64_t i = next++; i < count; i = next++) body(i);
  };
  const int64_t threads = std::clamp<int64_t>(UsableCores(), 1, std::max<int64_t>(count, 1));
  std::vector<std::thread> pool;
  for (int64_t i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
}

// The same with one body, which all threads call at once.
template <typename Body>
void ParallelFor(int64_t count, const Body& body) {
  ParallelForWith(count, [&] { return [&](int64_t i) { body(i); }; });
}

}  // namespace warpledger

#endif  // WARPLEDGER_KERNELS_COMMON_PARALLEL_H_
