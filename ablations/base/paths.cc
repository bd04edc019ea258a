// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/paths.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {

std::string ExecutablePath() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "warpledger" : path.string();
}

absl::StatusOr<std::string> FindProgramFile(std::string_view relative) {
  const std::filesystem::path program(ExecutablePath());
  const std::filesystem::path prefix = program.parent_path() / "..";
  std::vector<std::filesystem::path> roots = {
      prefix / "share" / "warpledger",  // installed
      prefix,                           // build tree
  };
  // A copy of the program elsewhere brings what it needs, and must give the same
  // results whether or not the tree that it was built in is still there.
  if (absl::StartsWith(program.string(), WARPLEDGER_BINARY_DIR "/")) {
    roots.push_back(WARPLEDGER_SOURCE_DIR);
  }
  std::string tried;
  for (const auto& root : roots) {
    const auto path = root / relative;
    std::error_code error;
    if (std::filesystem::exists(path, error)) return path.lexically_normal().string();
    absl::StrAppend(&tried, tried.empty() ? "" : ", ", root.lexically_normal().string());
  }
  return absl::NotFoundError(absl::StrCat("'", std::string(relative), "' is in none of ", tried));
}

}  // namespace warpledger::ablations
