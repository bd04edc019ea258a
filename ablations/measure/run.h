// SPDX-License-Identifier: Apache-2.0
// `warpledger run`: measures a design on shapes and writes a record.
//
// Describes the GPU, the build and the design; controller.h does the rest.

#ifndef WARPLEDGER_ABLATIONS_MEASURE_RUN_H_
#define WARPLEDGER_ABLATIONS_MEASURE_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/measure/worker.h"
#include "ablations/record/record.h"
#include "ablations/subjects/sdpa/designs/designs.h"
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/sdpa/dtype_name.h"
#include "kernels/sdpa/shapes.h"

namespace warpledger::ablations {

struct RunOptions {
  std::string design = "ladder";
  std::vector<sdpa::NamedShape> shapes;
  std::string out_dir;
  int processes = 5;
  int blocks = 24;  // per process and shape
  uint64_t seed = 1;
  double replay_us = 1000;
  int max_launches = 256;
  std::vector<std::string> peers;  // of kPeers; empty: none is timed
  std::string python = "python3";  // for the peers
  int silence_limit_s = 300;       // a process that says nothing for longer is stopped
  int arm_limit_s = 60;            // an arm that gives no answer for longer is broken
  std::string cache = kCacheWarm;
  std::optional<StoppingRule> stopping;
  std::vector<PlantedFault> planted;
  std::vector<std::string> argv;  // as called, for run.json
};

// InvalidArgument for the first shape that the design can't be timed on: the problem begins
// with something else, no arm has a kernel for it, or a cold L2 takes too many input sets.
// Inline, because a dry run asks it too, in builds without CUDA.
//   has_kernel: (const sdpa::Config& of an arm, const sdpa::Problem&) -> bool
template <typename HasKernel>
absl::Status CheckShapes(const Design& design, absl::Span<const sdpa::NamedShape> shapes,
                         std::string_view cache, int64_t l2_bytes, const HasKernel& has_kernel) {
  for (const sdpa::NamedShape& shape : shapes) {
    const std::string name(shape.name);
    const sdpa::Problem& problem = shape.problem;
    if ((problem.embed_dim > 0) != design.projected) {
      return absl::InvalidArgumentError(
          absl::StrCat("design ", design.name, " is for problems that begin with ",
                       design.projected ? "x" : "Q, K and V", "; ", name,
                       " does not. `warpledger list designs shapes` shows which do."));
    }
    // The floors alone would be timed, and the record would say nothing of the design.
    if (absl::c_none_of(design.arms, [&](const DesignArm& arm) {
          return !arm.spin_alone && has_kernel(arm.config, problem);
        })) {
      return absl::InvalidArgumentError(absl::StrCat(
          "design ", design.name, " has no arm that is compiled for ", name, ": head_dim ",
          problem.head_dim, " in ", std::string(sdpa::DtypeName(problem.dtype)),
          ". `warpledger list designs` shows what each is compiled for."));
    }
    const absl::StatusOr<int> rotation = RotationSets(sdpa::MinBytes(problem), cache, l2_bytes);
    if (!rotation.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": ", std::string(rotation.status().message())));
    }
  }
  return absl::OkStatus();
}

absl::Status RunDesign(const RunOptions& options);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_MEASURE_RUN_H_
