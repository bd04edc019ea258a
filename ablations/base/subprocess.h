// SPDX-License-Identifier: Apache-2.0
// Runs a program as a child process and hands out its standard output by lines.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace warpledger::ablations {

// How a child ended, for callers that must tell its own death from a stop.
struct ProcessEnd {
  int exit_code = -1;    // -1: it did not exit by itself
  int signal = 0;        // that ended it; 0: none, or it was stopped for the two below
  bool silent = false;   // stopped: it said nothing for too long
  bool refused = false;  // stopped: on_line failed
};

// Asked before each wait: how long the child may say nothing from its last line on.
using SilenceLimit = std::function<absl::Duration()>;

// Runs argv[0] (looked up on PATH), feeds it `input`, and calls `on_line` for
// each complete line of its output; standard error is inherited. The child gets
// SIGTERM, then SIGKILL, when the silence limit passes without a line or when
// `on_line` fails, and dies with this process.
// Errors: `on_line`'s own; NotFound when the program can't be started;
// DeadlineExceeded on silence; Aborted when it exits non-zero or by a signal.
// `end`, where given, says the same in parts.
absl::Status RunLines(const std::vector<std::string>& argv, std::string_view input,
                      const SilenceLimit& silence_limit,
                      const std::function<absl::Status(std::string_view line)>& on_line,
                      ProcessEnd* end = nullptr);
// The same with one limit.
absl::Status RunLines(const std::vector<std::string>& argv, std::string_view input,
                      absl::Duration silence_limit,
                      const std::function<absl::Status(std::string_view line)>& on_line);

}  // namespace warpledger::ablations
