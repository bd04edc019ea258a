// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/raw_log.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace warpledger::harness {

absl::StatusOr<RawLog> RawLog::Open(const std::string& path) {
  RawLog log;
  if (path.empty()) return log;
  log.path_ = path;
  log.file_.open(path, std::ios::app);
  if (!log.file_) {
    return absl::UnavailableError(absl::StrCat("can't open ", path,
                                               " for the raw samples: ", std::strerror(errno),
                                               "; name a file in a folder that exists"));
  }
  return log;
}

absl::Status RawLog::Append(const std::vector<nlohmann::ordered_json>& lines) {
  if (path_.empty()) return absl::OkStatus();
  std::string text;
  for (const auto& line : lines) absl::StrAppend(&text, line.dump(), "\n");
  file_ << text << std::flush;
  if (!file_) {
    return absl::UnavailableError(
        absl::StrCat("can't write raw samples to ", path_, "; is the disk full?"));
  }
  return absl::OkStatus();
}

}  // namespace warpledger::harness
