// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU: this build's kernels, on SdpaRunner's inputs and checks.

#pragma once

#include <memory>

#include "ablations/plan/rig.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// Unavailable without a GPU.
absl::StatusOr<std::unique_ptr<Rig>> OpenSdpaRig();

}  // namespace warpledger::ablations
