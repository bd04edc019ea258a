// SPDX-License-Identifier: Apache-2.0
// Finds the files that belong to the program: in the install tree beside it, or,
// while it lies in the build tree that it was made in, there and in its sources.

#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace warpledger::ablations {

// The running program's own file.
std::string ExecutablePath();

// A file by its path in the source tree ("plots/render.py") or, for what the
// build makes, in the build tree ("codegen/codegen.json"). NotFound says where
// it was looked for.
absl::StatusOr<std::string> FindProgramFile(std::string_view relative);

}  // namespace warpledger::ablations
