// SPDX-License-Identifier: Apache-2.0
// What was judged, as text for a terminal, 110 columns at most.
//
//   std::cout << VerdictTable(summary);

#pragma once

#include <string>

#include "ablations/summary/calibration.h"
#include "ablations/summary/summary.h"

namespace warpledger::report {

// The verdicts and controls of a run.
std::string VerdictTable(const summary::Summary& summary);
// The rates of a calibration.
std::string CalibrationTable(const summary::CalibrationSummary& summary);

}  // namespace warpledger::report
