// SPDX-License-Identifier: Apache-2.0
// What needs kernels of attention, in a build without CUDA.

#include "ablations/cli/sdpa/check.h"
#include "ablations/cli/sdpa/exec.h"
#include "ablations/cli/subjects.h"

namespace warpledger::cli {
namespace {

absl::Status NoCuda() {
  return absl::UnimplementedError(
      "this build holds no kernels, because CMake found no nvcc. Install the CUDA toolkit, set "
      "CUDACXX if it is in an unusual place, and build again; list, judge and report work as they "
      "are.");
}

}  // namespace

absl::StatusOr<int> Check(const CheckFlags& /*flags*/) { return NoCuda(); }
absl::StatusOr<int> Exec(const ExecFlags& /*flags*/) { return NoCuda(); }
absl::StatusOr<Device> OpenGpu() { return NoCuda(); }

}  // namespace warpledger::cli
