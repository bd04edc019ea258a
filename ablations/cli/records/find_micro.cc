// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/records/find_micro.h"

#include <filesystem>

#include "ablations/base/paths.h"
#include "absl/strings/str_cat.h"

namespace warpledger::cli {

absl::StatusOr<std::optional<ablations::MicroRecord>> FindMicroRecord(const std::string& record_dir,
                                                                      const std::string& gpu_slug) {
  const std::filesystem::path dir(record_dir);
  const auto beside = (dir.has_filename() ? dir : dir.parent_path()) / "..";
  absl::StatusOr<std::optional<ablations::MicroRecord>> found =
      ablations::NewestMicroRecord(beside.lexically_normal().string(), gpu_slug);
  if (!found.ok() || *found) return found;
  const absl::StatusOr<std::string> recorded =
      ablations::FindProgramFile(absl::StrCat("reports/data/", gpu_slug));
  if (!recorded.ok()) return std::nullopt;
  return ablations::NewestMicroRecord(*recorded, gpu_slug);
}

}  // namespace warpledger::cli
