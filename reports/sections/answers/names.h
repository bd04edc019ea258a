// SPDX-License-Identifier: Apache-2.0
// The page of names: what records and older pages call a thing, and what pages call it now.
//
// Contract: pure functions of the records and the registry.
//
//   std::string page = NamesText(records, MeasuredClaims(records));

#pragma once

#include <string>
#include <vector>

#include "reports/model/derived/measured_claims.h"
#include "reports/model/records.h"

namespace warpledger::report {

inline constexpr char kNamesFile[] = "names.md";

std::string NamesText(const std::vector<ReadRecord>& records,
                      const std::vector<MeasuredClaim>& claims);

}  // namespace warpledger::report
