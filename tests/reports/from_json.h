// SPDX-License-Identifier: Apache-2.0
// Pages of a summary's JSON form, which tests change more easily than values.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/subject.h"
#include "ablations/summary/calibration.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"
#include "kernels/common/status_macros.h"
#include "nlohmann/json.hpp"
#include "reports/model/summary.h"
#include "reports/pages/pages.h"

namespace warpledger::report {

// provenance.micro of a summary that quotes microbenchmarks.
inline nlohmann::ordered_json QuotedMicro() {
  return ablations::ToJson(summary::MicroSource{"micro-1", "", "", 1, 1});
}

inline absl::StatusOr<Summary> ViewOf(const nlohmann::ordered_json& json) {
  ASSIGN_OR_RETURN(summary::Summary summary, ablations::FromJson<summary::Summary>(json));
  return ViewOf(std::move(summary), ablations::SdpaSubject());
}

inline absl::StatusOr<std::vector<Summary>> ViewsOf(
    const std::vector<nlohmann::ordered_json>& summaries) {
  std::vector<Summary> views;
  for (const nlohmann::ordered_json& json : summaries) {
    ASSIGN_OR_RETURN(Summary view, ViewOf(json));
    views.push_back(std::move(view));
  }
  return views;
}

inline absl::StatusOr<std::string> RenderReport(const nlohmann::ordered_json& json,
                                                const RenderOptions& options) {
  ASSIGN_OR_RETURN(const Summary view, ViewOf(json));
  return RenderReport(view, options);
}

inline absl::StatusOr<std::string> RenderReadmeSection(const nlohmann::ordered_json& json,
                                                       const RenderOptions& options) {
  ASSIGN_OR_RETURN(const Summary view, ViewOf(json));
  return RenderReadmeSection(view, options);
}

inline absl::StatusOr<std::string> RenderCalibration(const nlohmann::ordered_json& json,
                                                     const RenderOptions& options,
                                                     const OtherRuns& runs = {}) {
  ASSIGN_OR_RETURN(const CalibrationSummary read, ablations::FromJson<CalibrationSummary>(json));
  return RenderCalibration(read, options, runs);
}

}  // namespace warpledger::report
