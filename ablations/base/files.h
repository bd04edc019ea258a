// SPDX-License-Identifier: Apache-2.0
// Files that survive a kill: whole or as they were.
//
// Errors: NotFound for a missing file; InvalidArgument where a file stands in a folder's
// place or a folder in a file's, and for what is read and is no regular file or a larger
// one than kLargestFile; Internal for all else that the OS refuses.

#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// The largest file that is read, in bytes. The largest record so far has 12 MB.
inline constexpr int64_t kLargestFile = int64_t{1} << 32;

// Writes `path` through a temporary file of the same directory, fsync and
// rename: readers see the old bytes or the new ones, never half of them. A link stays,
// and what it points to is written; a file keeps its mode and owner. What is no regular
// file, say /dev/null or a pipe, is written to as it is. What a killed writer of the same file left
// goes.
absl::Status WriteFileAtomically(const std::string& path, std::string_view contents);
// The parts one after another.
absl::Status WriteFileAtomically(const std::string& path,
                                 std::initializer_list<std::string_view> parts);
absl::StatusOr<std::string> ReadFile(const std::string& path);
// Files and folders "<path>.tmp.<pid>…" of processes that run no more, which were killed before
// they renamed or removed them. A process of another PID namespace counts as such.
std::vector<std::filesystem::path> Leftovers(const std::string& path);
// mkdir -p.
absl::Status CreateDirectories(const std::string& dir);

// One write() and one fdatasync() at the end of an open file. When either fails, the
// file is cut back so that what was there before stays whole.
absl::Status AppendDurably(int fd, const std::string& path, const std::string& bytes);
// All bytes of an open file, wherever its offset stands.
absl::StatusOr<std::string> ReadAll(int fd, const std::string& path);
// A rename or a new file survives a power cut once its directory is synced.
absl::Status SyncDirectory(const std::string& dir);
// What errno says of `action` on `path`.
absl::Status OsError(const std::string& path, const char* action);

// A folder of this process alone under the system's temporary folder, gone with the object.
//
//   ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Make());
//   WriteFileAtomically(scratch.path() + "/a.json", text);
class ScratchFolder {
 public:
  static absl::StatusOr<ScratchFolder> Make() {
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / "warpledger_XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr) return OsError(path, "make the folder");
    return ScratchFolder(std::move(path));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Finds the files that belong to the program: in the install tree beside it, or,
// while it lies in the build tree that it was made in, there and in its sources.
//
// The running program's own file.
std::string ExecutablePath();

// A file by its path in the source tree ("plots/render.py") or, for what the
// build makes, in the build tree ("codegen/codegen.json"). NotFound says where
// it was looked for.
absl::StatusOr<std::string> FindProgramFile(std::string_view relative);

}  // namespace warpledger::ablations
