// SPDX-License-Identifier: Apache-2.0
// What run.json says of when, and of which build, a record was made.

#pragma once

#include <string>

#include "ablations/record/record.h"

namespace warpledger::ablations {

// Fills in the time of creation, and the run's name: `<what>-<time>`.
void DescribeNow(const std::string& what, RunInfo* run);

// Fills in git, hashes and toolchain of this build.
void DescribeBuild(RunInfo* run);

}  // namespace warpledger::ablations
