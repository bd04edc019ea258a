// SPDX-License-Identifier: Apache-2.0
// The kernels that this build holds, as commands look them up.

#ifndef WARPLEDGER_ABLATIONS_CLI_SDPA_COMPILED_INSTANCE_H_
#define WARPLEDGER_ABLATIONS_CLI_SDPA_COMPILED_INSTANCE_H_

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

#endif  // WARPLEDGER_ABLATIONS_CLI_SDPA_COMPILED_INSTANCE_H_
