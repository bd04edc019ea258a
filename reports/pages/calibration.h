// SPDX-License-Identifier: Apache-2.0
// The page of a calibration: how often the ledger would be wrong.
//
// Contract and errors as render.h's.
//
//   absl::StatusOr<std::string> page = RenderCalibration(summary, {.picture_prefix = "plots/"});

#ifndef WARPLEDGER_REPORTS_PAGES_CALIBRATION_H_
#define WARPLEDGER_REPORTS_PAGES_CALIBRATION_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "reports/model/options.h"
#include "reports/sections/run_to_run.h"

namespace warpledger::report {

// What `runs` say of noise that a calibration does not meet is set beside its figures.
absl::StatusOr<std::string> RenderCalibration(const nlohmann::ordered_json& summary,
                                              const RenderOptions& options,
                                              const OtherRuns& runs = {});

}  // namespace warpledger::report

#endif  // WARPLEDGER_REPORTS_PAGES_CALIBRATION_H_
