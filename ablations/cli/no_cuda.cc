// SPDX-License-Identifier: Apache-2.0
// What needs kernels of attention, in a build without CUDA.

#include "ablations/cli/sdpa/check.h"
#include "ablations/cli/sdpa/exec.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/subjects/sdpa/subject.h"

namespace warpledger::cli {
namespace {

absl::Status NoCuda() {
  return absl::UnimplementedError(
      "this build holds no kernels, because CMake found no nvcc. Install the CUDA toolkit, set "
      "CUDACXX if it is in an unusual place, and build again; list, judge and report work as they "
      "are.");
}

absl::StatusOr<ablations::Device> OpenGpu() { return NoCuda(); }
using ablations::SdpaSubject;
WARPLEDGER_SUBJECT(SdpaSubject, OpenGpu);

}  // namespace

absl::StatusOr<int> Check(const CheckFlags& /*flags*/) { return NoCuda(); }
absl::StatusOr<int> Exec(const ExecFlags& /*flags*/) { return NoCuda(); }

}  // namespace warpledger::cli
