// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, const std::string& path,
                      std::initializer_list<std::string_view> parts) {
  for (std::string_view bytes : parts) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return OsError(path, "write");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  return absl::OkStatus();
}

// Where a write to `path` ends up: behind links, also one that points to nothing yet. The OS
// refuses a circle.
std::filesystem::path BehindLinks(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, error); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path;
}

// Into a device or a pipe, which no rename may replace.
absl::Status WriteInto(const std::string& path, std::initializer_list<std::string_view> parts) {
  // Opened without waiting: a pipe that nobody reads is an error, not a wait.
  const FileDescriptor fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return OsError(path, "open");
  if (fcntl(fd.get(), F_SETFL, 0) != 0) return OsError(path, "open");
  return WriteAll(fd.get(), path, parts);
}

}  // namespace

absl::Status OsError(const std::string& path, const char* action) {
  const int error = errno;
  const std::string message = absl::StrCat(path, ": cannot ", action, ": ", std::strerror(error));
  if (error == ENOTDIR) {  // a file was named where a folder is needed
    return absl::InvalidArgumentError(absl::StrCat(message, "; name a folder"));
  }
  return error == ENOENT ? absl::NotFoundError(message) : absl::InternalError(message);
}

absl::Status SyncDirectory(const std::string& dir) {
  const FileDescriptor fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return OsError(dir, "open the directory");
  if (fsync(fd.get()) != 0) return OsError(dir, "fsync the directory");
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return OsError(path, "read");
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": this is no regular file; name one"));
  }
  if (info.st_size > kLargestFile) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": this file has ", info.st_size,
                                                   " bytes; at most ", kLargestFile, " are read"));
  }
  std::string text;
  char buffer[1 << 16];
  off_t offset = 0;
  while (true) {
    const ssize_t count = pread(fd, buffer, sizeof(buffer), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return OsError(path, "read");
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    offset += count;
  }
}

absl::Status AppendDurably(int fd, const std::string& path, const std::string& bytes) {
  const off_t before = lseek(fd, 0, SEEK_END);
  if (before < 0) return OsError(path, "seek");
  ssize_t written = 0;
  do {
    written = write(fd, bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  absl::Status status;
  if (written < 0) {
    status = OsError(path, "append");
  } else if (static_cast<size_t>(written) != bytes.size()) {
    status = absl::InternalError(absl::StrCat(path, ": only ", written, " of ", bytes.size(),
                                              " bytes could be appended; is the disk full?"));
  } else if (fdatasync(fd) != 0) {
    status = OsError(path, "fdatasync");
  }
  if (!status.ok() && ftruncate(fd, before) != 0) {
    status = absl::InternalError(absl::StrCat(
        std::string(status.message()), "; and the partial block could not be cut off: ",
        std::strerror(errno), ". Open the record again to repair it."));
  }
  return status;
}

absl::Status CreateDirectories(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    return absl::InternalError(
        absl::StrCat(dir, ": cannot create the directory: ", error.message()));
  }
  return absl::OkStatus();
}

std::vector<std::filesystem::path> Leftovers(const std::string& path) {
  const std::string prefix = std::filesystem::path(path).filename().string() + ".tmp.";
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::vector<std::filesystem::path> left;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(parent.empty() ? "." : parent, error)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, prefix)) continue;
    // PID, PID.N, or PID.tmp.PID.N; nobody else's file is called so.
    const std::string rest = name.substr(prefix.size());
    if (rest.find_first_not_of(".0123456789tmp") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::strtol(rest.c_str(), nullptr, 10));
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) left.push_back(entry.path());
  }
  return left;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  // Without waiting for the other end of a pipe, which ReadAll refuses.
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return OsError(path, "open");
  return ReadAll(fd.get(), path);
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view contents) {
  return WriteFileAtomically(path, {contents});
}

absl::Status WriteFileAtomically(const std::string& named,
                                 std::initializer_list<std::string_view> parts) {
  const std::string path = BehindLinks(named).string();
  struct stat before;
  const bool exists = stat(path.c_str(), &before) == 0;
  if (!exists && errno != ENOENT) return OsError(path, "write");
  if (exists && S_ISDIR(before.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": this is a folder; name a file"));
  }
  if (exists && !S_ISREG(before.st_mode)) return WriteInto(path, parts);
  std::error_code error;
  for (const std::filesystem::path& left : Leftovers(path)) {
    if (std::filesystem::is_regular_file(std::filesystem::symlink_status(left, error))) {
      std::filesystem::remove(left, error);
    }
  }
  static std::atomic<int> counter = 0;
  const std::string temporary =
      absl::StrCat(path, ".tmp.", static_cast<int64_t>(getpid()), ".", counter.fetch_add(1));
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const auto write_and_rename = [&]() -> absl::Status {
    const FileDescriptor fd(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd.get() < 0) return OsError(temporary, "create");
    // Only root may give a file away; the mode comes last, because a new owner clears parts of it.
    if (exists && geteuid() == 0 && fchown(fd.get(), before.st_uid, before.st_gid) != 0) {
      return OsError(temporary, "chown");
    }
    if (exists && fchmod(fd.get(), before.st_mode & 07777) != 0) return OsError(temporary, "chmod");
    if (absl::Status status = WriteAll(fd.get(), temporary, parts); !status.ok()) return status;
    if (fsync(fd.get()) != 0) return OsError(temporary, "fsync");
    if (rename(temporary.c_str(), path.c_str()) != 0) return OsError(path, "rename into place");
    return SyncDirectory(parent.empty() ? "." : parent);
  };
  absl::Status status = write_and_rename();
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

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
