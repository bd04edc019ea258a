// SPDX-License-Identifier: Apache-2.0
// A rendered report, and how tests look into it.

#pragma once

#include <cstddef>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/reports/from_json.h"

namespace warpledger::report {

inline std::string Render(const nlohmann::ordered_json& summary,
                          const RenderOptions& options = {}) {
  return RenderReport(summary, options).value();
}

// The part of the report from a heading to the next heading of its level.
inline std::string Section(const std::string& report, const std::string& heading) {
  const size_t begin = report.find(heading + "\n");
  if (begin == std::string::npos) {
    ADD_FAILURE() << "no heading " << heading;
    return "";
  }
  const std::string level = heading.substr(0, heading.find(' ') + 1);
  const size_t end = report.find("\n" + level, begin + 1);
  return report.substr(begin, end == std::string::npos ? end : end - begin);
}

// The table row whose first cell contains `first`.
inline std::string Row(const std::string& section, const std::string& first) {
  size_t begin = 0;
  while (begin < section.size()) {
    size_t end = section.find('\n', begin);
    if (end == std::string::npos) end = section.size();
    const std::string line = section.substr(begin, end - begin);
    if (line.starts_with("| ") && line.substr(0, line.find(" |", 2)).find(first) != line.npos) {
      return line;
    }
    begin = end + 1;
  }
  ADD_FAILURE() << "no row " << first << " in\n" << section;
  return "";
}

}  // namespace warpledger::report
