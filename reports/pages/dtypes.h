// SPDX-License-Identifier: Apache-2.0
// Renders a record of `warpledger dtypes` as Markdown: error against length for each way
// to store K and V, and which mistakes give NaN.
//
// Contract: the record (schema: reports/RECORD.md) is the only input; the same record gives
// the same bytes. Errors: InvalidArgument that says what the record lacks.
//
//   absl::StatusOr<std::string> page = RenderDtypes(record);

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace warpledger::report {

inline constexpr char kDtypesReportFile[] = "dtypes.md";

absl::StatusOr<std::string> RenderDtypes(const nlohmann::ordered_json& record);

}  // namespace warpledger::report
