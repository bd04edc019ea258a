// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/progress.h"

#include <algorithm>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpledger::harness {

std::optional<std::string> Progress::Started(const std::string& name, double seconds) {
  ++started_;
  const bool first = started_ == 1;
  const bool due = seconds - last_line_s_ >= kSecondsBetweenLines;
  if (!first && !due && started_ != runs_) return std::nullopt;
  last_line_s_ = seconds;
  const int done = started_ - 1;
  std::string line =
      runs_ > 0 ? absl::StrCat(started_, " of ", runs_, " runs") : absl::StrCat(started_, " runs");
  absl::StrAppend(&line, absl::StrFormat(", %.0f s", seconds));
  if (runs_ > 0 && done > 0) {
    absl::StrAppend(&line, absl::StrFormat(", about %.0f s left", seconds / done * (runs_ - done)));
  }
  return absl::StrCat(line, ": ", name);
}

std::string ExplainDebugLibrary(std::string heading) {
  constexpr char kWarning[] = "***WARNING*** Library was built as DEBUG";
  const size_t begin = heading.find(kWarning);
  if (begin == std::string::npos) return heading;
  size_t end = heading.find('\n', begin);
  end = end == std::string::npos ? heading.size() : end + 1;
  return heading.replace(
      begin, end - begin,
      "Google Benchmark itself is a debug build here, which times nothing: every time is set by "
      "this program, from cycles read on the GPU or from CUDA events.\n");
}

int CountMatches(const std::string& filter, const std::vector<std::string>& names) {
  if (filter.empty() || filter == "all") return static_cast<int>(names.size());
  const bool negative = filter[0] == '-';
  try {
    const std::regex pattern(negative ? filter.substr(1) : filter, std::regex::extended);
    return static_cast<int>(std::count_if(names.begin(), names.end(), [&](const auto& name) {
      return std::regex_search(name, pattern) != negative;
    }));
  } catch (const std::regex_error&) {
    return -1;
  }
}

}  // namespace warpledger::harness
