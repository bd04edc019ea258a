// SPDX-License-Identifier: Apache-2.0
// Text, numbers and tables as the reports print them.
//
// Contract: pure functions of their arguments, independent of the locale. A
// figure that does not exist prints as kNone. Times have four significant
// digits, so that an interval of a few per mille stays visible; ratios have
// three decimals below 2, where the neutral zone lies, then fewer. No errors.
//
//   FormatUs(9.7312)                    "9.731"
//   FormatRatio(2.3312)                 "2.33×"
//   FormatInterval({.low = 1, ..}, ..)  "[1.000, 1.021]"

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace warpledger::report {

inline constexpr std::string_view kNone = "–";

// Debian's Abseil has a string_view of its own that std::string_view does not
// convert to, so absl::StrCat does not take one. Cat() and Append() do.
inline absl::string_view CatPiece(std::string_view text) { return {text.data(), text.size()}; }
template <typename Number>
requires std::is_arithmetic_v<Number> Number CatPiece(Number number) { return number; }
template <typename... Pieces>
std::string Cat(const Pieces&... pieces) {
  return absl::StrCat(CatPiece(pieces)...);
}
template <typename... Pieces>
void Append(std::string* out, const Pieces&... pieces) {
  absl::StrAppend(out, CatPiece(pieces)...);
}

// `digits` significant digits, no exponent, trailing zeros kept: 9.730, 3652.
std::string FormatSignificant(double value, int digits);
std::string FormatUs(std::optional<double> us);
std::string FormatRatio(std::optional<double> ratio);  // "1.019×"
// A limit somebody chose, such as a gate: two decimals are what it was given with.
std::string FormatLimit(double ratio);                       // "1.10×"
std::string FormatRatioNumber(std::optional<double> ratio);  // "1.019"
std::string FormatError(std::optional<double> error);        // "3.1e-05"
std::string FormatInteger(std::optional<int64_t> value);
std::string FormatKib(std::optional<int64_t> bytes);  // in units of 1024 bytes
std::string FormatTflops(std::optional<double> tflops);
std::string FormatPercent(double fraction);  // 0.95 -> "95%"
// "[low, high]", or kNone unless both exist.
std::string FormatUsInterval(std::optional<double> low, std::optional<double> high);
std::string FormatRatioInterval(std::optional<double> low, std::optional<double> high);

// "a", "a and b", "a, b and c".
std::string JoinWords(const std::vector<std::string>& words);

// "1 step", "2 steps".
std::string Count(int64_t n, std::string_view noun);

// Text from a record made safe to show in prose and on a terminal: one line, without control
// characters, HTML and links. Twice is as once.
std::string PlainText(std::string_view text);

// A part of a page that a reader unfolds; nothing for an empty one.
std::string Fold(std::string_view title, const std::string& body);

// A GitHub Markdown table, whose cells stay cells whatever they hold. A title that ends in ':' is
// of a right-aligned column, as "---:" is.
class Table {
 public:
  // Its titles, as in "variant | p50, µs:".
  explicit Table(std::string_view titles);
  // Before the first row.
  void AddColumn(std::string title) { titles_.push_back(std::move(title)); }
  // As many cells as columns; missing ones are kNone.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string ToMarkdown() const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace warpledger::report
