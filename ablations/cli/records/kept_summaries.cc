// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/records/kept_summaries.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/base/json_text.h"
#include "ablations/base/paths.h"
#include "ablations/record/record_pack.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

namespace fs = std::filesystem;

// Which file it is, without reading it.
std::string IdentityOf(const fs::path& path) {
  std::error_code error;
  return absl::StrCat(path.string(), " ", fs::file_size(path, error), " ",
                      fs::last_write_time(path, error).time_since_epoch().count());
}

// The name of a pack's summary: all that it is computed from.
absl::StatusOr<std::string> KeyOf(const std::string& pack) {
  ASSIGN_OR_RETURN(const std::string bytes, ablations::ReadFile(pack));
  std::vector<std::string> parts = {IdentityOf(ablations::ExecutablePath()),
                                    ablations::Sha256(bytes)};
  std::error_code error;
  const fs::path folder = fs::absolute(pack, error).parent_path();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with("micro")) continue;
    const fs::path file = entry.is_directory(error) ? entry.path() / "micro.json" : entry.path();
    parts.push_back(IdentityOf(file));
  }
  std::sort(parts.begin() + 2, parts.end());
  return ablations::Sha256(absl::StrJoin(parts, "\n"));
}

}  // namespace

absl::StatusOr<nlohmann::ordered_json> KeptOrComputed(
    const std::string& pack, absl::FunctionRef<absl::StatusOr<nlohmann::ordered_json>()> compute) {
  const char* folder = std::getenv("WARPLEDGER_SUMMARIES");
  if (folder == nullptr || *folder == '\0') return compute();
  ASSIGN_OR_RETURN(const std::string key, KeyOf(pack));
  const std::string file = (fs::path(folder) / absl::StrCat(key, ".json")).string();
  if (const absl::StatusOr<std::string> kept = ablations::ReadFile(file); kept.ok()) {
    return ablations::ParseJson(*kept);
  }
  absl::StatusOr<nlohmann::ordered_json> summary = compute();
  if (!summary.ok()) return summary;
  std::error_code error;
  fs::create_directories(folder, error);
  RETURN_IF_ERROR(ablations::WriteFileAtomically(file, ablations::DumpFile(*summary)));
  return summary;
}

}  // namespace warpledger::cli
