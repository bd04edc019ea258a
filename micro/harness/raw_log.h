// SPDX-License-Identifier: Apache-2.0
// The raw samples of a run, one JSON object per line: Google Benchmark's own JSON
// keeps one mean per repetition.
//
//   RawLog log = *RawLog::Open("raw.jsonl");
//   log.Append({{"case", name}, …});
//
// Lines are appended and flushed one repetition at a time, so a kill loses the
// repetition in flight and nothing else. Errors: what the file system says.

#ifndef WARPLEDGER_MICRO_HARNESS_RAW_LOG_H_
#define WARPLEDGER_MICRO_HARNESS_RAW_LOG_H_

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace warpledger::harness {

class RawLog {
 public:
  // Opens `path` for appending; with an empty path every line is dropped.
  static absl::StatusOr<RawLog> Open(const std::string& path);

  absl::Status Append(const std::vector<nlohmann::ordered_json>& lines);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_RAW_LOG_H_
