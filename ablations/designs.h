// The experimental designs: which arms are timed together and what each one is
// compared with. All of them derive from the registry.
//
// Standard library only: the instance generator compiles a kernel for every
// configuration that some design names.

#ifndef WARPLEDGER_ABLATIONS_DESIGNS_H_
#define WARPLEDGER_ABLATIONS_DESIGNS_H_

#include <string>
#include <vector>

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/variant.h"

namespace warpledger::ablations {

// One thing that is timed. reports/RECORD.md says what each role is.
struct DesignArm {
  std::string name;
  sdpa::Config config;
  std::string role;    // base, step, aa or null
  std::string toggle;  // what a step or a null control adds
  std::string base;    // the arm that it is judged against
};

struct Design {
  std::string name;
  std::string label;
  std::vector<DesignArm> arms;
};

// The first level of a toggle that is not off.
constexpr int FirstOnLevel(const sdpa::ToggleRow& row) { return row.levels.values[1]; }

// Every technique in registry order, each on top of all before it; then the two
// controls on top of the last step: the same instance under a second name (A/A)
// and the null toggle, whose machine code is the same in a second instance.
inline Design LadderDesign() {
  Design design = {.name = "ladder",
                   .label = "cumulative ladder: each toggle on top of all before it",
                   .arms = {}};
  sdpa::Config config;
  std::string previous(sdpa::kBaseline.id);
  design.arms.push_back(
      {.name = previous, .config = config, .role = "base", .toggle = "", .base = ""});
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control) continue;
    config.*row.field = FirstOnLevel(row);
    std::string name = "ladder:" + std::string(row.id);
    design.arms.push_back({.name = name,
                           .config = config,
                           .role = "step",
                           .toggle = std::string(row.id),
                           .base = previous});
    previous = std::move(name);
  }
  design.arms.push_back(
      {.name = "control:aa", .config = config, .role = "aa", .toggle = "", .base = previous});
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!row.control) continue;
    sdpa::Config planted = config;
    planted.*row.field = FirstOnLevel(row);
    design.arms.push_back({.name = "control:" + std::string(row.id),
                           .config = planted,
                           .role = "null",
                           .toggle = std::string(row.id),
                           .base = previous});
  }
  return design;
}

inline std::vector<Design> AllDesigns() { return {LadderDesign()}; }

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_DESIGNS_H_
