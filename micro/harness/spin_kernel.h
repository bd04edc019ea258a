// SPDX-License-Identifier: Apache-2.0
// A known delay: one thread that waits for a number of SM clock cycles. Appended
// to a replay it is a slow-down of known size; in cycles, so that it stays the
// same share of the replay's time when the clock changes.

#ifndef WARPLEDGER_MICRO_HARNESS_SPIN_KERNEL_H_
#define WARPLEDGER_MICRO_HARNESS_SPIN_KERNEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace warpledger::harness {

// Waits for at least `cycles` cycles, and some tens more for its own loop.
cudaError_t LaunchSpin(int64_t cycles, cudaStream_t stream);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_SPIN_KERNEL_H_
