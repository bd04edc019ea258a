// SPDX-License-Identifier: Apache-2.0
#include "reports/model/text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace warpledger::report {

std::string FormatSignificant(double value, int digits) {
  // Beyond these the arithmetic below leaves the range of a double.
  constexpr double kSmallest = 1e-280;
  constexpr double kLargest = 1e280;
  const double size = std::abs(value);
  if (!(size >= kSmallest && size <= kLargest)) return absl::StrFormat("%g", value);
  // The magnitude after rounding: 9.9996 with four digits is 10.00, not 10.000.
  double rounded_unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - digits + 1);
  const double rounded = std::round(value / rounded_unit) * rounded_unit;
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(rounded)) + 1e-12));
  return absl::StrFormat("%.*f", std::max(0, digits - 1 - magnitude), value);
}

std::string FormatUs(std::optional<double> us) {
  return us ? FormatSignificant(*us, 4) : std::string(kNone);
}

std::string FormatRatioNumber(std::optional<double> ratio) {
  if (!ratio) return std::string(kNone);
  const int decimals = *ratio < 1.9995 ? 3 : *ratio < 9.995 ? 2 : *ratio < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f", decimals, *ratio);
}

std::string FormatRatio(std::optional<double> ratio) {
  return ratio ? FormatRatioNumber(ratio) + "×" : std::string(kNone);
}

std::string FormatLimit(double ratio) { return absl::StrFormat("%.2f×", ratio); }

std::string FormatError(std::optional<double> error) {
  return error ? absl::StrFormat("%.1e", *error) : std::string(kNone);
}

std::string FormatInteger(std::optional<int64_t> value) {
  return value ? Cat(*value) : std::string(kNone);
}

std::string FormatKib(std::optional<int64_t> bytes) {
  return bytes ? absl::StrFormat("%.1f", static_cast<double>(*bytes) / 1024) : std::string(kNone);
}

std::string FormatTflops(std::optional<double> tflops) {
  return tflops ? FormatSignificant(*tflops, 3) : std::string(kNone);
}

std::string FormatPercent(double fraction) { return absl::StrFormat("%.4g%%", fraction * 100); }

std::string FormatUsInterval(std::optional<double> low, std::optional<double> high) {
  if (!low || !high) return std::string(kNone);
  return Cat("[", FormatUs(low), ", ", FormatUs(high), "]");
}

std::string FormatRatioInterval(std::optional<double> low, std::optional<double> high) {
  if (!low || !high) return std::string(kNone);
  return Cat("[", FormatRatioNumber(low), ", ", FormatRatioNumber(high), "]");
}

std::string JoinWords(const std::vector<std::string>& words) {
  if (words.empty()) return "";
  if (words.size() == 1) return words[0];
  return Cat(absl::StrJoin(words.begin(), words.end() - 1, ", "), " and ", words.back());
}

std::string Count(int64_t n, std::string_view noun) { return Cat(n, " ", noun, n == 1 ? "" : "s"); }

namespace {

// Where a control character of one or two bytes (U+0080 to U+009F) stands: how long it is, else 0.
size_t ControlAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? text[i] & 0xff : 0; };
  if (byte(at) < ' ' || byte(at) == 0x7f) return 1;
  return byte(at) == 0xc2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xa0 ? 2 : 0;
}

// Without control characters, and each other one as `escaped(where it stands, what is before)`.
template <typename Escaped>
std::string Escape(std::string_view text, const Escaped& escaped) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (const size_t length = ControlAt(text, i); length > 0) {
      if (text[i] == '\n' || text[i] == '\t') result += ' ';
      i += length - 1;
    } else {
      const std::string_view as = escaped(i, result);
      result += as.empty() ? text.substr(i, 1) : as;
    }
  }
  return result;
}

// A pipe would begin the next cell; a <br> stays, which cells of several lines have.
std::string EscapeCell(std::string_view text) {
  return Escape(text, [&](size_t at, std::string_view /*before*/) {
    if (text[at] == '|') return "\\|";
    return text[at] == '<' && text.substr(at, 4) != "<br>" ? "&lt;" : "";
  });
}

}  // namespace

std::string PlainText(std::string_view text) {
  return Escape(text, [&](size_t at, std::string_view before) {
    if (text[at] == '<') return "&lt;";
    return text[at] == '(' && before.ends_with(']') ? " (" : "";
  });
}

std::string Fold(std::string_view title, const std::string& body) {
  if (body.empty()) return "";
  return Cat("\n<details>\n<summary>", title, "</summary>\n\n", body, "\n</details>\n");
}

Table::Table(std::string_view titles)
    : titles_(absl::StrSplit(CatPiece(titles), absl::ByString(" | "))) {}

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(titles_.size(), std::string(kNone));
  rows_.push_back(std::move(cells));
}

std::string Table::ToMarkdown() const {
  std::string out = "|";
  std::string rule = "\n|";
  for (std::string_view title : titles_) {
    const bool right = title.ends_with(':');
    if (right) title.remove_suffix(1);
    Append(&out, " ", EscapeCell(title), " |");
    rule += right ? " ---: |" : " :--- |";
  }
  Append(&out, rule, "\n");
  for (const std::vector<std::string>& row : rows_) {
    out += "|";
    for (const std::string& cell : row) Append(&out, " ", EscapeCell(cell), " |");
    out += "\n";
  }
  return out;
}

}  // namespace warpledger::report
