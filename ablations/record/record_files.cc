// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/record_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/record/profile.h"
#include "ablations/record/store.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

namespace fs = std::filesystem;

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Which file it was, so that one that was replaced is read again.
struct Stamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t bytes = 0;
  time_t seconds = 0;
  long nanoseconds = 0;

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

struct OpenedPack {
  std::string path;
  Stamp stamp;
  std::shared_ptr<const RecordPack> pack;
};

// The last two are kept: a verdict needs its record and the microbenchmarks beside it by turns.
absl::StatusOr<std::shared_ptr<const RecordPack>> OpenPack(const std::string& path) {
  thread_local std::array<OpenedPack, 2> last;  // the latest first
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return OsError(path, "open");
  const Stamp stamp = {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                       info.st_mtim.tv_nsec};
  const auto is_it = [&](const OpenedPack& opened) {
    return opened.pack != nullptr && opened.stamp == stamp && opened.path == path;
  };
  if (is_it(last[1])) std::swap(last[0], last[1]);
  if (is_it(last[0])) return last[0].pack;
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  ASSIGN_OR_RETURN(RecordPack pack, DecodePack(bytes, path));
  last[1] = std::move(last[0]);
  last[0] = {path, stamp, std::make_shared<const RecordPack>(std::move(pack))};
  return last[0].pack;
}

}  // namespace

std::string WithoutPackSuffix(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  if (path.ends_with(kPackSuffix)) path.remove_suffix(std::string_view(kPackSuffix).size());
  return std::string(path);
}

absl::StatusOr<RecordFiles> RecordFiles::Open(const std::string& path) {
  if (IsFolder(path)) return RecordFiles(path, nullptr);
  const std::string folder = WithoutPackSuffix(path);
  const std::string pack = folder + kPackSuffix;
  if (Exists(path) && path != pack) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no record; name a folder or a ", kPackSuffix, " file"));
  }
  if (Exists(pack)) {
    ASSIGN_OR_RETURN(std::shared_ptr<const RecordPack> opened, OpenPack(pack));
    return RecordFiles(pack, std::move(opened));
  }
  if (IsFolder(folder)) return RecordFiles(folder, nullptr);
  return absl::NotFoundError(absl::StrCat(path, ": there is no such record, neither the folder ",
                                          folder, " nor the pack ", pack));
}

std::string RecordFiles::name() const {
  if (packed()) return pack_->run;
  return fs::absolute(WithoutPackSuffix(path_)).lexically_normal().filename().string();
}

std::string RecordFiles::PathOf(std::string_view file) const {
  return absl::StrCat(absl::StripSuffix(path_, "/"), "/", std::string(file));
}

absl::StatusOr<std::string> RecordFiles::Read(std::string_view file) const {
  if (!packed()) return ReadFile(PathOf(file));
  const auto found = pack_->files.find(std::string(file));
  if (found != pack_->files.end()) return found->second;
  return absl::NotFoundError(absl::StrCat(path_, ": holds no ", std::string(file)));
}

bool RecordFiles::Has(std::string_view file) const {
  return packed() ? pack_->files.contains(std::string(file)) : Exists(PathOf(file));
}

std::vector<std::string> RecordFiles::Names() const {
  std::vector<std::string> names;
  if (packed()) {
    for (const auto& [name, unused] : pack_->files) names.push_back(name);
    return names;
  }
  std::error_code error;
  for (fs::directory_iterator it(path_, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> ReadRecordFile(const std::string& record, std::string_view file) {
  ASSIGN_OR_RETURN(const RecordFiles files, RecordFiles::Open(record));
  return files.Read(file);
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  const absl::StatusCode code =
      absl::IsInvalidArgument(status) ? absl::StatusCode::kDataLoss : status.code();
  return absl::Status(code, absl::StrCat(path, ": ", status.message()));
}

bool HasRecordFile(const std::string& record, std::string_view file) {
  const absl::StatusOr<RecordFiles> files = RecordFiles::Open(record);
  return files.ok() && files->Has(file);
}

std::vector<std::string> RecordsIn(const std::string& folder) {
  std::map<std::string, std::string> records;  // by name
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    const std::string file = it->path().filename().string();
    if (IsFolder(path)) {
      records[file] = path;
    } else if (absl::EndsWith(file, kPackSuffix)) {
      records.emplace(WithoutPackSuffix(file), path);
    }
  }
  std::vector<std::string> paths;
  for (const auto& [name, path] : records) paths.push_back(path);
  return paths;
}

absl::Status RefuseRawFile(const std::string& file) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(file, error);
  if (error || !fs::exists(target, error) || fs::is_directory(target, error)) {
    return absl::OkStatus();
  }
  if (absl::EndsWith(target.string(), kPackSuffix)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": this is a packed record; name another file"));
  }
  const fs::path folder = target.parent_path();
  for (const char* mark : {kRunFile, kProfileFile, kDtypesFile}) {
    if (target.filename() == kSummaryFile || !fs::exists(folder / mark, error)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": this file belongs to the record ", folder.string(), ", and nothing but ",
        kSummaryFile, " is written again there; name another file"));
  }
  return absl::OkStatus();
}

absl::Status RefusePacked(const std::string& dir) {
  if (IsFolder(dir)) return absl::OkStatus();
  const std::string pack = WithoutPackSuffix(dir) + kPackSuffix;
  if (!Exists(pack) && !absl::EndsWith(dir, kPackSuffix)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(dir,
                   ": a packed record is finished, and nothing is written into it; `warpledger "
                   "unpack ",
                   pack, "` opens it, or name another folder"));
}

}  // namespace warpledger::ablations
