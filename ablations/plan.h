// Names from the command line to designs, arms, variants, shapes and inputs.
// Unknown names give InvalidArgument with the nearest known ones.

#ifndef WARPLEDGER_ABLATIONS_PLAN_H_
#define WARPLEDGER_ABLATIONS_PLAN_H_

#include <string>
#include <string_view>
#include <vector>

#include "ablations/designs.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/sdpa/inputs.h"
#include "kernels/sdpa/problem.h"

namespace warpledger::ablations {

struct NamedVariant {
  std::string name;
  sdpa::Config config;
};

// A design of AllDesigns() by its name, or a factorial of one's own:
// "factorial:a,b" spans the toggles a and b on top of what they need,
// "factorial:a,b@c,d" with c and d on in every cell too. InvalidArgument for a
// toggle that does not exist or is a control, for none of them or more than
// kMaxFactors, and for a background that needs a toggle which the cells switch.
// "fractional:a,b,c,d[@e]" spans a regular fraction of kMinFractionFactors toggles or
// more, "sweep:a[@b]" the levels of one (fractional.h).
absl::StatusOr<Design> FindDesign(std::string_view name);

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
// "fa3" (the grid of FlashAttention-3's paper).
absl::StatusOr<std::vector<sdpa::NamedShape>> ParseShapes(std::string_view list);
// "all" or comma-separated names.
absl::StatusOr<std::vector<sdpa::NamedInputKind>> ParseInputKinds(std::string_view list);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_PLAN_H_
