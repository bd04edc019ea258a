// SPDX-License-Identifier: Apache-2.0
// The verdicts and controls of a summary as text for a terminal, 110 columns at most.
//
//   absl::StatusOr<std::string> table = VerdictTable(summary);  // InvalidArgument: a row lacks
//   something

#ifndef WARPLEDGER_ABLATIONS_JUDGE_VERDICT_TABLE_H_
#define WARPLEDGER_ABLATIONS_JUDGE_VERDICT_TABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

absl::StatusOr<std::string> VerdictTable(const nlohmann::ordered_json& summary);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_JUDGE_VERDICT_TABLE_H_
