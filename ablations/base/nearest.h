// SPDX-License-Identifier: Apache-2.0
// Suggests the names that a user may have meant.
//
// Contract: pure functions; comparison ignores ASCII case. A known name is
// suggested when it is a few edits away (insert, delete, replace, swap two
// neighbours; up to a third of the longer name) or when one name contains the
// other. Nearer names come first, then the order of `known`.
//
//   NearestNames("misson_b", {"small", "mission_a", "mission_b"});  // mission_b, mission_a
//   return UnknownName("shape", name, names);

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

// At most `max` names, each once.
std::vector<std::string> NearestNames(std::string_view unknown, absl::Span<const std::string> known,
                                      std::size_t max = 3);

// InvalidArgument: "unknown shape 'misson_b'; did you mean 'mission_b',
// 'mission_a'? `warpledger list shapes` shows all". `kind` is a singular noun
// whose plural `warpledger list` understands.
absl::Status UnknownName(std::string_view kind, std::string_view name,
                         absl::Span<const std::string> known);

}  // namespace warpledger::ablations
