// SPDX-License-Identifier: Apache-2.0
// The page of a calibration: how often the ledger would be wrong.
//
// Contract as render.h's.
//
//   std::string page = RenderCalibration(summary, {.picture_prefix = "plots/"});

#pragma once

#include <string>

#include "ablations/summary/calibration.h"
#include "reports/model/options.h"
#include "reports/sections/sections.h"

namespace warpledger::report {

using summary::CalibrationSummary;

// What `runs` say of noise that a calibration does not meet is set beside its figures.
std::string RenderCalibration(const CalibrationSummary& read, const RenderOptions& options,
                              const OtherRuns& runs = {});

}  // namespace warpledger::report
