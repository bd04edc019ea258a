// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

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

absl::Status WriteAll(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return OsError(path, "write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
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

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return OsError(path, "open");
  return ReadAll(fd.get(), path);
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view contents) {
  static std::atomic<int> counter = 0;
  const std::string temporary =
      absl::StrCat(path, ".tmp.", static_cast<int64_t>(getpid()), ".", counter.fetch_add(1));
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const auto write_and_rename = [&]() -> absl::Status {
    const FileDescriptor fd(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd.get() < 0) return OsError(temporary, "create");
    if (absl::Status status = WriteAll(fd.get(), temporary, contents); !status.ok()) return status;
    if (fsync(fd.get()) != 0) return OsError(temporary, "fsync");
    if (rename(temporary.c_str(), path.c_str()) != 0) return OsError(path, "rename into place");
    return SyncDirectory(parent.empty() ? "." : parent);
  };
  absl::Status status = write_and_rename();
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace warpledger::ablations
