// SPDX-License-Identifier: Apache-2.0
// The page of a claim. Its first screen has the answer, the verdicts by kind of problem, a small
// picture, the mechanism and the lesson; the rest is folded.
//
// Contract: a pure function of the records, the claim and the registry; `records` must not be
// empty.
//
//   const std::string page = ClaimPage(records, claim, has_picture);  // at ClaimPath(claim)

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/model/derived/measured_claims.h"
#include "reports/model/records.h"

namespace warpledger::report {

// `has_picture`: one lies beside the page, as ClaimName() and ".svg".
std::string ClaimPage(const std::vector<ReadRecord>& records, const MeasuredClaim& claim,
                      bool has_picture);

}  // namespace warpledger::report
