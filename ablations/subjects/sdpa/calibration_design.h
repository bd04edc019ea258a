// SPDX-License-Identifier: Apache-2.0
// The arms of a calibration: one kernel under many names, with delays planted into some.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_CALIBRATION_DESIGN_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_CALIBRATION_DESIGN_H_

#include <string_view>

#include "ablations/subjects/sdpa/designs/designs.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// The arms of the plan that `text` prints.
absl::StatusOr<Design> CalibrationDesign(std::string_view text);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_CALIBRATION_DESIGN_H_
