// SPDX-License-Identifier: Apache-2.0
// Every verdict as a row of data: which claim, which problem, what was found. The explorer
// (reports/explorer.py) and scripts of others read it, so that they need no registry.
//
// Contract: a pure function of the records and the registry. Rows are in the order of the registry,
// levels rising, then of the records; a text is plain, without Markdown. A figure that a summary
// lacks is null.
//
//   const nlohmann::ordered_json rows = ClaimTable(MeasuredClaims(records));

#pragma once

#include <vector>

#include "nlohmann/json.hpp"
#include "reports/model/derived/measured_claims.h"

namespace warpledger::report {

nlohmann::ordered_json ClaimTable(const std::vector<MeasuredClaim>& claims);

}  // namespace warpledger::report
