// SPDX-License-Identifier: Apache-2.0
// The kernels that this build holds, as commands look them up.

#pragma once

#include "ablations/subjects/sdpa/plan.h"
#include "absl/status/statusor.h"
#include "kernels/sdpa/launch/launch.h"
#include "kernels/sdpa/problem/problem.h"

namespace warpledger::cli {

// What runs a variant on a problem. NotFound where the variant is compiled for other problems
// alone, InvalidArgument where no design names it.
absl::StatusOr<const sdpa::KernelInstance*> CompiledInstance(const ablations::NamedVariant& variant,
                                                             const sdpa::Problem& problem);

}  // namespace warpledger::cli
