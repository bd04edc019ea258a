// SPDX-License-Identifier: Apache-2.0
// Attention as a subject of the engine: the registry's rows as claims, its designs,
// its shapes as problems.
//
//   const Subject& subject = SdpaSubject();
//   RETURN_IF_ERROR(Summarize(record, subject).status());

#pragma once

#include "ablations/plan/subject.h"
#include "ablations/subjects/sdpa/designs/designs.h"
#include "absl/status/statusor.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/shapes.h"

namespace warpledger::ablations {

const Subject& SdpaSubject();

// A design with its configurations printed.
PlannedDesign Planned(const Design& design);

// A shape as a record keeps it, with the work that it declares, and back. InvalidArgument names
// the parameter that no problem has.
ShapeInfo ShapeInfoOf(const sdpa::NamedShape& shape);
absl::StatusOr<sdpa::Problem> ProblemOf(const ShapeInfo& shape);

}  // namespace warpledger::ablations
