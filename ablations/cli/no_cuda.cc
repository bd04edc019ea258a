// SPDX-License-Identifier: Apache-2.0
// The commands that launch kernels, in a build without CUDA.

#include "ablations/cli/measure/calibrate.h"
#include "ablations/cli/measure/dry_run.h"
#include "ablations/cli/measure/run.h"
#include "ablations/cli/sdpa/check.h"
#include "ablations/cli/sdpa/exec.h"

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
absl::StatusOr<int> Run(const RunFlags& flags) {
  if (*flags.dry_run) return DryRun(flags, nullptr);
  return NoCuda();
}
absl::StatusOr<int> Calibrate(const CalibrateFlags& /*flags*/) { return NoCuda(); }
absl::StatusOr<int> Exec(const ExecFlags& /*flags*/) { return NoCuda(); }
absl::StatusOr<int> Work(const FlagSet& /*flags*/) { return NoCuda(); }

}  // namespace warpledger::cli
