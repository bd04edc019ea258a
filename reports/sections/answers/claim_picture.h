// SPDX-License-Identifier: Apache-2.0
// The one small picture of a claim's page: its ratios on a logarithmic axis, as SVG.
//
// Contract: a pure function of the claim. A row for each problem, or for each kind of problem where
// these are many. A mark's shape and colour say the verdict, as in every picture of the reports
// (plots/style.py); a line is the interval of boards of the kind. Verdicts without meaning are not
// drawn. Empty where nothing is left.
//
//   std::string svg = ClaimPicture(claim);

#pragma once

#include <string>

#include "reports/model/derived/measured_claims.h"

namespace warpledger::report {

std::string ClaimPicture(const MeasuredClaim& claim);

}  // namespace warpledger::report
