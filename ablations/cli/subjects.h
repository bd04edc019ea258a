// SPDX-License-Identifier: Apache-2.0
// The subjects that this program knows, and the device of each.

#ifndef WARPLEDGER_ABLATIONS_CLI_SUBJECTS_H_
#define WARPLEDGER_ABLATIONS_CLI_SUBJECTS_H_

#include <memory>
#include <string>
#include <string_view>

#include "ablations/plan/machine.h"
#include "ablations/plan/rig.h"
#include "ablations/plan/subject.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

// InvalidArgument with the nearest known ones.
absl::StatusOr<const ablations::Subject*> FindSubject(std::string_view name);
// The subject of a record that was loaded: FailedPrecondition where this program lacks it.
absl::StatusOr<const ablations::Subject*> SubjectOf(const ablations::RunInfo& run);

// What a subject is measured on; one object may be both.
struct Device {
  std::shared_ptr<ablations::Machine> machine;
  std::shared_ptr<ablations::Rig> rig;
};

// Unavailable or Unimplemented where this machine or this build has none.
absl::StatusOr<Device> OpenDevice(const ablations::Subject& subject);

// Attention's: a GPU, in a build with CUDA.
absl::StatusOr<Device> OpenGpu();

}  // namespace warpledger::cli

#endif  // WARPLEDGER_ABLATIONS_CLI_SUBJECTS_H_
