// SPDX-License-Identifier: Apache-2.0
// The newest record of the microbenchmarks of a GPU, as summary.json quotes it.
//
// Contract: among the records `micro-*` of `data_dir` (folders and packs) that hold a micro.json of
// the GPU model `gpu_slug`, the one whose name, which ends in the time, is the
// last. No such record is no error. The schema is reports/RECORD.md's.
//
//   absl::StatusOr<std::optional<MicroRecord>> micro =
//       NewestMicroRecord("reports/data/h200", "h200");
//
// Errors: DataLoss for a micro.json that is no JSON or lacks what is quoted.

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

inline constexpr char kMicroFile[] = "micro.json";

struct MicroRecord {
  std::string dir = {};               // the folder or pack that it was read from
  nlohmann::ordered_json provenance;  // {run_id, started, gpu_uuid, processes, n_samples}
  nlohmann::ordered_json entries;     // [{name, unit, value, percent_of_limit}]
};

absl::StatusOr<std::optional<MicroRecord>> NewestMicroRecord(const std::string& data_dir,
                                                             const std::string& gpu_slug);

}  // namespace warpledger::ablations
