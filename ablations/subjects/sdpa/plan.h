// SPDX-License-Identifier: Apache-2.0
// Names from the command line to designs, arms, variants, shapes and inputs.
// Unknown names give InvalidArgument with the nearest known ones.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ablations/subjects/sdpa/designs/designs.h"
#include "absl/status/statusor.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/shapes.h"

namespace warpledger::ablations {

struct NamedVariant {
  std::string name;
  sdpa::Config config;
};

// A design of AllDesigns() by its name, or one of one's own (own_designs.h). InvalidArgument
// for anything else.
absl::StatusOr<Design> FindDesign(std::string_view name);

// The designs whose kernels a build with nvcc holds: AllDesigns(), and those of one's
// own that CMake's WARPLEDGER_EXTRA_DESIGNS names.
std::vector<Design> BuiltDesigns();

// The command that builds what this build holds and the kernels of an own design.
std::string HowToBuild(const Design& design);

// A variant by a design's arm ("ladder:wmma_pv") or by its printed configuration
// ("kv_tiling+warp_shuffle"). InvalidArgument names the rule that it breaks.
absl::StatusOr<NamedVariant> FindVariant(std::string_view name);

// The distinct configurations of all designs, each under its first arm's name.
std::vector<NamedVariant> AllVariants();

// The configuration of each instance that a build with nvcc holds.
std::vector<sdpa::Config> AllInstanceConfigs();

// "all", or comma-separated names in the order given, without repeats.
absl::StatusOr<std::vector<NamedVariant>> ParseVariants(std::string_view list);
// "all", comma-separated names, or a group: "ladder" (the design's own shapes) or
// "fa3" (the grid of FlashAttention-3's paper). A name is one of the suite's, or says any problem's
// sizes (problem_name.h).
absl::StatusOr<std::vector<sdpa::NamedShape>> ParseShapes(std::string_view list);
// "all" or comma-separated names.
absl::StatusOr<std::vector<sdpa::NamedInputKind>> ParseInputKinds(std::string_view list);

}  // namespace warpledger::ablations
