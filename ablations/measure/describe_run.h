// SPDX-License-Identifier: Apache-2.0
// What run.json says of where and from what a record was made.

#ifndef WARPLEDGER_ABLATIONS_MEASURE_DESCRIBE_RUN_H_
#define WARPLEDGER_ABLATIONS_MEASURE_DESCRIBE_RUN_H_

#include "ablations/record/record.h"
#include "kernels/common/device_facts.h"

namespace warpledger::ablations {

GpuInfo DescribeGpu(const DeviceFacts& device);

// Fills in git, hashes and toolchain of this build.
void DescribeBuild(RunInfo* run);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_MEASURE_DESCRIBE_RUN_H_
