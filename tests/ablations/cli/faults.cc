// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: calls of the system that fail, as on a full or broken disk.
//
//   WARPLEDGER_FAULT=CALL:NTH:KIND[:always]   write:3:ENOSPC:always, read:1:EINTR, write:2:short
//   WARPLEDGER_FAULT_UNDER=FOLDER             the calls on files below it count, but for
//   FOLDER/tmp;
//                                             others never fail
//   WARPLEDGER_FAULT_LOG=FILE                 gets a byte for each call that failed
//
// CALL: open, read (pread too), write, fsync (fdatasync too), rename or ftruncate. KIND: a name of
// errno, or short: half of the bytes. Each process counts its own calls. `always`: those behind
// the NTH fail too.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

namespace {

struct Fault {
  char call[16] = "";
  long nth = 0;
  int error = 0;  // 0: short
  bool always = false;
  const char* under = nullptr;
  const char* log = nullptr;
};

int ErrorOf(const char* name) {
  const struct {
    const char* name;
    int error;
  } kErrors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},  {"EDQUOT", EDQUOT},
                 {"EROFS", EROFS},   {"EACCES", EACCES}, {"EMFILE", EMFILE}};
  for (const auto& each : kErrors) {
    if (strcmp(each.name, name) == 0) return each.error;
  }
  return 0;
}

const Fault& TheFault() {
  static const Fault fault = [] {
    Fault read;
    const char* spec = getenv("WARPLEDGER_FAULT");
    char kind[16] = "";
    char always[16] = "";
    if (spec != nullptr &&
        sscanf(spec, "%15[^:]:%ld:%15[^:]:%15s", read.call, &read.nth, kind, always) >= 3) {
      read.error = ErrorOf(kind);
      read.always = always[0] != 0;
    }
    read.under = getenv("WARPLEDGER_FAULT_UNDER");
    read.log = getenv("WARPLEDGER_FAULT_LOG");
    return read;
  }();
  return fault;
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool IsUnder(const char* path) {
  const char* under = TheFault().under;
  return under != nullptr && strncmp(path, under, strlen(under)) == 0 &&
         strncmp(path + strlen(under), "/tmp", 4) != 0;
}

bool IsUnder(int fd) {
  char link[32];
  char path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = 0;
  return IsUnder(path);
}

bool IsUnderFromHere(const char* path) {
  if (path[0] == '/') return IsUnder(path);
  char here[4096];
  return getcwd(here, sizeof here) != nullptr && IsUnder(here);
}

void Log() {
  const int fd =
      Real<int(const char*, int, ...)>("open")(TheFault().log, O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written =
      Real<ssize_t(int, const void*, size_t)>("write")(fd, "x", 1);
  close(fd);
}

// Whether this call, which counts, is one that fails.
bool Fails(const char* call, bool counts) {
  static std::atomic<long> calls = 0;
  const Fault& fault = TheFault();
  if (!counts || strcmp(call, fault.call) != 0) return false;
  const long now = ++calls;
  if (now != fault.nth && !(fault.always && now > fault.nth)) return false;
  Log();
  errno = fault.error;
  return true;
}

bool IsShort() { return TheFault().error == 0; }

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t count) {
  const auto real = Real<ssize_t(int, const void*, size_t)>("write");
  if (!Fails("write", IsUnder(fd))) return real(fd, bytes, count);
  return IsShort() && count > 1 ? real(fd, bytes, count / 2)
         : IsShort()            ? real(fd, bytes, count)
                                : -1;
}

ssize_t read(int fd, void* bytes, size_t count) {
  const auto real = Real<ssize_t(int, void*, size_t)>("read");
  if (!Fails("read", IsUnder(fd))) return real(fd, bytes, count);
  return IsShort() ? real(fd, bytes, count > 1 ? count / 2 : count) : -1;
}

ssize_t pread(int fd, void* bytes, size_t count, off_t at) {
  const auto real = Real<ssize_t(int, void*, size_t, off_t)>("pread");
  if (!Fails("read", IsUnder(fd))) return real(fd, bytes, count, at);
  return IsShort() ? real(fd, bytes, count > 1 ? count / 2 : count, at) : -1;
}
ssize_t pread64(int fd, void* bytes, size_t count, off_t at) { return pread(fd, bytes, count, at); }

int fsync(int fd) {
  return Fails("fsync", IsUnder(fd)) && !IsShort() ? -1 : Real<int(int)>("fsync")(fd);
}
int fdatasync(int fd) {
  return Fails("fsync", IsUnder(fd)) && !IsShort() ? -1 : Real<int(int)>("fdatasync")(fd);
}
int ftruncate(int fd, off_t size) {
  return Fails("ftruncate", IsUnder(fd)) && !IsShort()
             ? -1
             : Real<int(int, off_t)>("ftruncate")(fd, size);
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

int rename(const char* from, const char* to) {
  return Fails("rename", IsUnderFromHere(to)) && !IsShort()
             ? -1
             : Real<int(const char*, const char*)>("rename")(from, to);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if (Fails("open", IsUnderFromHere(path)) && !IsShort()) return -1;
  return Real<int(const char*, int, ...)>("open")(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return open(path, flags, mode);
}

}  // extern "C"
