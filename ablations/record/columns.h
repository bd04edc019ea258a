// SPDX-License-Identifier: Apache-2.0
// A file of lines by columns: the form in which a pack has its .jsonl files, which compresses to
// three quarters of what the lines compress to.
//
// Contract
// - The first line is the number of lines, in decimal digits. A line's pieces end with a comma or
//   with the line. Behind the number stand the first pieces of all lines, then the second pieces of
//   the lines that have one, and so on.
// - Where a line ends in its right sum (record_lines.h), the digits of the sum are left out.
// - FromColumns(ToColumns(lines)) is `lines`; ToColumns checks it.
// - FromColumns trusts nothing. What comes out is at most twice as large as what goes in, and at
//   most kMaxPieces are accepted, so that damage can't use up the memory.
//
// Errors: InvalidArgument that says what does not fit.
//
//   ToColumns("{\"a\":1,\"b\":2}\n{\"a\":3,\"b\":4}\n");
//   // "2\n{\"a\":1,{\"a\":3,\"b\":2}\n\"b\":4}\n"

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace warpledger::ablations {

// The largest file of 2026 has 2 million.
inline constexpr size_t kMaxPieces = size_t{1} << 23;

// nullopt: the text has no such form. It is empty, its last line is cut off, it has more than
// kMaxPieces, or the digits of a sum are missing already.
std::optional<std::string> ToColumns(std::string_view lines);

absl::StatusOr<std::string> FromColumns(std::string_view columns);

}  // namespace warpledger::ablations
