// SPDX-License-Identifier: Apache-2.0
// The current GPU's memory.

#pragma once

#include <memory>

#include "ablations/subjects/study/rig/memory.h"

namespace warpledger::ablations {

std::shared_ptr<const Memory> CudaMemory();

}  // namespace warpledger::ablations
