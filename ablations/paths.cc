#include "ablations/paths.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {

std::string ExecutablePath() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "warpledger" : path.string();
}

absl::StatusOr<std::string> FindProgramFile(std::string_view relative) {
  const std::filesystem::path prefix = std::filesystem::path(ExecutablePath()).parent_path() / "..";
  const std::vector<std::filesystem::path> roots = {
      prefix / "share" / "warpledger",  // installed
      prefix,                           // build tree
      WARPLEDGER_SOURCE_DIR,            // source tree of this build
  };
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
