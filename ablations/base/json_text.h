// SPDX-License-Identifier: Apache-2.0
// JSON as text: how every file and every line of the program reads and writes it.

#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

// What prints or compares JSON calls itself once for each level, so that text from outside
// could end the program. Our files have fewer than ten.
inline constexpr int kDeepestJson = 64;

// JSON text to a value; InvalidArgument says where the text is malformed, or that it nests
// deeper than kDeepestJson.
absl::StatusOr<nlohmann::ordered_json> ParseJson(std::string_view text);
// One line without a newline; doubles survive the round trip bit by bit, and
// bytes that are not UTF-8 become U+FFFD.
std::string DumpLine(const nlohmann::ordered_json& json);
// Indented, with a final newline: the form of the files that people read.
std::string DumpFile(const nlohmann::ordered_json& json);

// A figure as summary.json holds it. Empty for what is no number. What is below six significant
// digits depends on the machine's libm, and the bytes must not.
inline std::optional<double> SixDigits(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return std::strtod(text, nullptr);
}
inline std::optional<double> SixDigits(const std::optional<double>& value) {
  return value ? SixDigits(*value) : std::nullopt;
}

}  // namespace warpledger::ablations
