// SPDX-License-Identifier: Apache-2.0
// The GPU as a machine: replays of CUDA graphs, with NVML's sensors beside them.

#pragma once

#include <memory>

#include "ablations/plan/machine.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// Unavailable without a GPU or a driver.
absl::StatusOr<std::unique_ptr<Machine>> OpenCudaMachine();

}  // namespace warpledger::ablations
