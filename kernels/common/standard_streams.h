// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error of a program that opens files of its own.
//
// OpenStandardStreams(): where a caller closed one of the three (`program 2>&-`), the next file
// that is opened takes its number, and what is printed goes into that file, a record say. First
// thing in main, this puts there what can be neither read nor written, so that the stream fails.
//
// CloseStandardOutput(): a full disk or a closed stream shows here at the latest; empty, or what
// is wrong.
//
//   int main() { OpenStandardStreams(); …; return CloseStandardOutput().empty() ? 0 : 5; }

#ifndef WARPLEDGER_KERNELS_COMMON_STANDARD_STREAMS_H_
#define WARPLEDGER_KERNELS_COMMON_STANDARD_STREAMS_H_

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace warpledger {

inline void OpenStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // In order, so that open() gives the number that is missing.
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) _exit(127);
  }
}

inline std::string CloseStandardOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return "";
  return std::string("standard output can't be written to its end: ") +
         (errno == 0 ? "an earlier write failed" : std::strerror(errno));
}

}  // namespace warpledger

#endif  // WARPLEDGER_KERNELS_COMMON_STANDARD_STREAMS_H_
