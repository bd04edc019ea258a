// SPDX-License-Identifier: Apache-2.0
// A combination that no variant can have. Standard library only: the generator of kernel
// instances reads designs, which name such cells.

#pragma once

#include <string>

namespace warpledger::ablations {

// A combination that a design spans and no variant can have.
struct InfeasibleCell {
  std::string name;
  std::string toggle;    // on there
  std::string missing;   // which it needs, and which is off there; or, with `why`, what excludes it
  std::string why = {};  // the rule that excludes it; empty: it lacks a need

  // "cp_async_stages needs vector_loads", "xor_swizzle can't go with wmma_qk: …".
  std::string Reason() const {
    return why.empty() ? toggle + " needs " + missing
                       : toggle + " can't go with " + missing + ": " + why;
  }
};

}  // namespace warpledger::ablations
