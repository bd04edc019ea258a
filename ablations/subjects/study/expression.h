// SPDX-License-Identifier: Apache-2.0
// Sums and products over a problem's parameters: "2 * rows * cols".
//
// Numbers, names, + - * / % and brackets, with the usual precedence. Values are double.
//
// Errors: InvalidArgument says what is wrong and where in the text.
//
//   ASSIGN_OR_RETURN(const double flops, Evaluate("2 * rows * cols", {{"rows", 4}, {"cols", 8}}));

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace warpledger::ablations {

using Parameters = std::map<std::string, int64_t>;

absl::StatusOr<double> Evaluate(std::string_view text, const Parameters& parameters);
// A value that counts something: whole, from 0 to 2^53.
absl::StatusOr<int64_t> EvaluateCount(std::string_view text, const Parameters& parameters);

}  // namespace warpledger::ablations
