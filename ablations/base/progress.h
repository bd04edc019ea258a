// SPDX-License-Identifier: Apache-2.0
// Progress of a long step on standard error: one rewritten line on a terminal,
// a plain line now and then elsewhere.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace warpledger::ablations {

class Progress {
 public:
  // `done` of `total` steps are done already (a resumed run).
  Progress(std::string_view what, int64_t total, int64_t done = 0);
  ~Progress();

  // One more step is done; `detail` says which.
  void Step(std::string_view detail);
  // A line of its own.
  void Note(std::string_view text);

 private:
  std::string TimeLeft() const;

  std::string what_;
  int64_t total_;
  int64_t done_;
  int64_t done_at_start_;
  absl::Time start_;
  absl::Time last_print_ = absl::InfinitePast();
  bool terminal_;
  bool line_open_ = false;
};

}  // namespace warpledger::ablations
