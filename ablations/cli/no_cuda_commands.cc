// SPDX-License-Identifier: Apache-2.0
// The commands that launch kernels, in a build without CUDA.

#include "ablations/cli/command.h"
#include "ablations/cli/dry_run.h"
#include "ablations/cli/flags.h"
#include "absl/flags/flag.h"

namespace warpledger::cli {
namespace {

absl::Status NoCuda() {
  return absl::UnimplementedError(
      "this build holds no kernels, because CMake found no nvcc. Install the CUDA toolkit, set "
      "CUDACXX if it is in an unusual place, and build again; list, judge and report work as they "
      "are.");
}

}  // namespace

absl::StatusOr<int> CheckCommand(absl::Span<const std::string> /*arguments*/) { return NoCuda(); }
absl::StatusOr<int> RunCommand(absl::Span<const std::string> /*arguments*/) {
  if (absl::GetFlag(FLAGS_dry_run)) return DryRun(nullptr);
  return NoCuda();
}
absl::StatusOr<int> CalibrateCommand(absl::Span<const std::string> /*arguments*/) {
  return NoCuda();
}
absl::StatusOr<int> ExecCommand(absl::Span<const std::string> /*arguments*/) { return NoCuda(); }
absl::StatusOr<int> WorkerCommand(absl::Span<const std::string> /*arguments*/) { return NoCuda(); }

}  // namespace warpledger::cli
