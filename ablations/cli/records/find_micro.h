// SPDX-License-Identifier: Apache-2.0
// The microbenchmarks that judging quotes beside a record.

#ifndef WARPLEDGER_ABLATIONS_CLI_RECORDS_FIND_MICRO_H_
#define WARPLEDGER_ABLATIONS_CLI_RECORDS_FIND_MICRO_H_

#include <optional>
#include <string>

#include "ablations/record/micro_record.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

// The newest of the GPU model: beside the record, else among those that come with
// the program. Empty when there is none.
absl::StatusOr<std::optional<ablations::MicroRecord>> FindMicroRecord(const std::string& record_dir,
                                                                      const std::string& gpu_slug);

}  // namespace warpledger::cli

#endif  // WARPLEDGER_ABLATIONS_CLI_RECORDS_FIND_MICRO_H_
