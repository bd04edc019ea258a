// SPDX-License-Identifier: Apache-2.0
// The designs of the library's kernels (kernels/sdpa/library), one for each head_dim and dtype:
// which kernel is fastest for which problem. Each arm is judged against the first.
//
// Included by designs.h, at its end.

#pragma once

#include <string>
#include <vector>

#include "ablations/subjects/sdpa/designs/design.h"
#include "kernels/sdpa/library/kernels.h"

namespace warpledger::ablations {

inline std::vector<Design> LibraryDesigns() {
  std::vector<Design> designs;
  for (const sdpa::LibraryKernel& kernel : sdpa::kLibraryKernels) {
    if (kernel.config.varlen) continue;  // problems here have one length for all
    const std::string sizes =
        "d" + std::to_string(kernel.head_dim) + (kernel.dtype == sdpa::Dtype::kBf16 ? "_bf16" : "");
    const std::string name = "library_" + sizes;
    const std::string arm = name + ":" + std::string(kernel.name);
    if (designs.empty() || designs.back().name != name) {
      designs.push_back({.name = name,
                         .label = "the library's kernels for " + sizes,
                         .arms = {{arm, kernel.config}},
                         .head_dims = {kernel.head_dim},
                         .dtypes = {kernel.dtype},
                         .span = Span::kWholeKernels});
      PlantControls(name, arm, &designs.back());
      continue;
    }
    std::vector<DesignArm>& arms = designs.back().arms;
    arms.insert(arms.end() - 2, {arm, kernel.config});
  }
  return designs;
}

}  // namespace warpledger::ablations
