// SPDX-License-Identifier: Apache-2.0
// JSON as text: how every file and every line of the program reads and writes it.

#pragma once

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

}  // namespace warpledger::ablations
