// SPDX-License-Identifier: Apache-2.0
// Judged records of one GPU, held against this tree: what pages over several designs are made of.
//
// Errors: InvalidArgument when no record is given, two are of one design whose arms took turns, the
// records are of several GPUs, one's L2 was cold, or one can't be read.
//
//   absl::StatusOr<std::vector<ReadRecord>> records = ReadRecords({summary}, options);

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/model/options.h"
#include "reports/model/staleness.h"
#include "reports/model/summary.h"

namespace warpledger::report {

struct ReadRecord {
  Summary summary;
  Staleness staleness;
};

absl::StatusOr<std::vector<ReadRecord>> ReadRecords(std::vector<Summary> summaries,
                                                    const RenderOptions& options);

// Whether a record is of these kernels, and what changed since it was made.
std::string StateOf(const ReadRecord& record);

// The report of the design, from a page that lies `up` ("../") below it.
std::string DesignLink(const Summary& summary, std::string_view up);

}  // namespace warpledger::report
