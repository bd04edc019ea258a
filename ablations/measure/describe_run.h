// SPDX-License-Identifier: Apache-2.0
// What run.json says of when, and of which build, a record was made.

#ifndef WARPLEDGER_ABLATIONS_MEASURE_DESCRIBE_RUN_H_
#define WARPLEDGER_ABLATIONS_MEASURE_DESCRIBE_RUN_H_

#include <string>

#include "ablations/record/record.h"

namespace warpledger::ablations {

// Fills in the time of creation, and the run's name: `<what>-<time>`.
void DescribeNow(const std::string& what, RunInfo* run);

// Fills in git, hashes and toolchain of this build.
void DescribeBuild(RunInfo* run);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_MEASURE_DESCRIBE_RUN_H_
