// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/progress.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace warpledger::ablations {
namespace {

constexpr absl::Duration kTerminalInterval = absl::Milliseconds(100);
constexpr absl::Duration kPlainInterval = absl::Seconds(10);

}  // namespace

Progress::Progress(std::string_view what, int64_t total, int64_t done)
    : what_(what),
      total_(total),
      done_(done),
      done_at_start_(done),
      start_(absl::Now()),
      terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (line_open_) std::fputc('\n', stderr);
}

std::string Progress::TimeLeft() const {
  const int64_t since_start = done_ - done_at_start_;
  if (since_start == 0) return "";
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start_) *
                         static_cast<double>(total_ - done_) / static_cast<double>(since_start);
  if (seconds < 90) return absl::StrFormat(", about %.0f s left", seconds);
  return absl::StrFormat(", about %.0f min left", seconds / 60);
}

void Progress::Step(std::string_view detail) {
  ++done_;
  const absl::Time now = absl::Now();
  const bool last = done_ == total_;
  if (!last && now - last_print_ < (terminal_ ? kTerminalInterval : kPlainInterval)) return;
  last_print_ = now;
  const std::string line =
      absl::StrFormat("%s: %d of %d (%s)%s", what_, done_, total_, detail, last ? "" : TimeLeft());
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    line_open_ = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

void Progress::Note(std::string_view text) {
  if (line_open_) std::fputc('\n', stderr);
  line_open_ = false;
  std::fprintf(stderr, "%s\n", std::string(text).c_str());
}

}  // namespace warpledger::ablations
