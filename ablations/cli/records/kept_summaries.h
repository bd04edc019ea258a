// SPDX-License-Identifier: Apache-2.0
// Summaries of packs that were computed before, where a folder for them is named.
//
// Several pages judge the same records. Where the environment's WARPLEDGER_SUMMARIES names a
// folder, a pack's summary is kept there and used again: by this very program alone, for the same
// bytes of the pack and the same microbenchmarks beside it. Without the variable nothing is kept.
//
//   absl::StatusOr<Json> summary = KeptOrComputed(pack, [&] { return Summarize(*record); });

#ifndef WARPLEDGER_ABLATIONS_CLI_RECORDS_KEPT_SUMMARIES_H_
#define WARPLEDGER_ABLATIONS_CLI_RECORDS_KEPT_SUMMARIES_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace warpledger::cli {

absl::StatusOr<nlohmann::ordered_json> KeptOrComputed(
    const std::string& pack, absl::FunctionRef<absl::StatusOr<nlohmann::ordered_json>()> compute);

}  // namespace warpledger::cli

#endif  // WARPLEDGER_ABLATIONS_CLI_RECORDS_KEPT_SUMMARIES_H_
