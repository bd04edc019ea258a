// SPDX-License-Identifier: Apache-2.0
// The model of bank conflicts beside the profiler's counter.
//
// Contract: as RenderProfileReport (profile.h). Holds the variants whose reads of shared memory
// the model can count (kernels/sdpa/mma/conflicts.h) and whose profile has the counter.

#pragma once

#include <string>

#include "ablations/summary/profile.h"

namespace warpledger::report {

// A section of the page, "## …" to its last table; "" where no variant is in it.
//   summary: of a profile record
std::string SharedReadsSection(const summary::ProfileSummary& summary);

}  // namespace warpledger::report
