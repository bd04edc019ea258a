// SPDX-License-Identifier: Apache-2.0
// Whether a design can be timed on a problem: asked by a run, and by a dry run in builds
// without CUDA.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_MEASURABLE_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_MEASURABLE_H_

#include <optional>
#include <string>

#include "ablations/plan/subject.h"
#include "ablations/subjects/sdpa/subject.h"
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/sdpa/dtype/dtype_name.h"
#include "kernels/sdpa/registry/variant.h"

namespace warpledger::ablations {

// InvalidArgument where the problem begins with something else than the design is for, or no arm
// has a kernel for it: the floors alone would be timed, and the record would say nothing.
//   has_kernel: (const sdpa::Config& of an arm, const sdpa::Problem&) -> bool
template <typename HasKernel>
absl::Status CheckSdpaMeasurable(const PlannedDesign& design, const ShapeInfo& shape,
                                 const HasKernel& has_kernel) {
  const absl::StatusOr<sdpa::Problem> problem = ProblemOf(shape);
  if (!problem.ok()) return problem.status();
  if ((problem->embed_dim > 0) == design.peers) {
    return absl::InvalidArgumentError(
        absl::StrCat("design ", design.name, " is for problems that begin with ",
                     design.peers ? "Q, K and V" : "x", "; ", shape.name,
                     " does not. `warpledger list designs shapes` shows which do."));
  }
  if (absl::c_any_of(design.arms, [&](const PlannedArm& arm) {
        const std::optional<sdpa::Config> config = sdpa::ConfigFromName(arm.config);
        return !arm.spin_alone && config && has_kernel(*config, *problem);
      })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "design ", design.name, " has no arm that is compiled for ", shape.name, ": head_dim ",
      problem->head_dim, " in ", std::string(sdpa::DtypeName(problem->dtype)),
      ". `warpledger list designs` shows what each is compiled for."));
}

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_MEASURABLE_H_
