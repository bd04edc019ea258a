// SPDX-License-Identifier: Apache-2.0
// Records that were made in a way that turned out to be wrong.
//
// Contract: by cause, never by outcome. A flaw is a protocol (RunInfo::protocol_sha256) and what an
// arm of the run must have for the fault to act; decisions/ says how it was found. All comparisons
// of such a record are INVALID.

#pragma once

#include <string>

#include "ablations/record/record.h"

namespace warpledger::ablations {

// Why no comparison of the run is what it says; empty where no flaw is known.
std::string WhyFlawed(const RunInfo& run);

}  // namespace warpledger::ablations
