// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/columns.h"

#include <algorithm>
#include <vector>

#include "ablations/record/record_lines.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

constexpr size_t kMaxCountDigits = 9;

bool EndsPiece(char c) { return c == ',' || c == '\n'; }

size_t CountPieces(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), &EndsPiece));
}

// The piece that begins at `at`, with its end; CountPieces() says that there is one.
std::string_view PieceAt(std::string_view text, size_t at) {
  size_t end = at;
  while (!EndsPiece(text[end])) ++end;
  return text.substr(at, end + 1 - at);
}

// What a line ends in where the digits of its sum are left out.
const std::string& LeftOutSum() {
  static const auto* end = new std::string(std::string(kBeforeSum) + std::string(kAfterSum) + "\n");
  return *end;
}

// A line with its newline, without the digits of a sum that is right.
void AppendWithoutSum(std::string_view line, std::string* text) {
  const std::string_view body = BodyOfSummed(line.substr(0, line.size() - 1));
  const bool is_right =
      !body.empty() && line.substr(body.size() + kBeforeSum.size()).starts_with(SumOf(body));
  text->append(is_right ? body : line);
  if (is_right) text->append(LeftOutSum());
}

}  // namespace

std::optional<std::string> ToColumns(std::string_view lines) {
  if (lines.empty() || lines.back() != '\n' || CountPieces(lines) > kMaxPieces) return std::nullopt;
  std::vector<std::string> columns;
  size_t n_lines = 0;
  std::string line;
  for (size_t begin = 0; begin < lines.size(); ++n_lines) {
    const size_t end = lines.find('\n', begin) + 1;
    line.clear();
    AppendWithoutSum(lines.substr(begin, end - begin), &line);
    begin = end;
    size_t column = 0;
    for (size_t at = 0; at < line.size(); ++column) {
      const std::string_view piece = PieceAt(line, at);
      if (column == columns.size()) columns.emplace_back();
      columns[column].append(piece);
      at += piece.size();
    }
  }
  std::string text = absl::StrCat(n_lines, "\n");
  for (const std::string& column : columns) text.append(column);
  const absl::StatusOr<std::string> again = FromColumns(text);
  if (!again.ok() || *again != lines) return std::nullopt;
  return text;
}

absl::StatusOr<std::string> FromColumns(std::string_view columns) {
  const size_t digits = std::min(columns.find('\n'), columns.size());
  const std::string_view count = columns.substr(0, digits);
  const std::string_view text = columns.substr(std::min(digits + 1, columns.size()));
  const size_t n_pieces = CountPieces(text);
  size_t n_lines = 0;
  if (digits > kMaxCountDigits || count.find_first_not_of("0123456789") != std::string_view::npos ||
      !absl::SimpleAtoi(std::string(count), &n_lines) || count[0] == '0' || n_lines > n_pieces ||
      n_pieces > kMaxPieces || !EndsPiece(text.back())) {
    return absl::InvalidArgumentError("its number of lines or pieces is wrong");
  }
  std::vector<size_t> next;  // of each column the piece that the next line takes
  size_t at = 0;
  size_t seen = 0;
  for (size_t unfinished = n_lines; unfinished > 0;) {
    if (n_pieces - seen < unfinished) {
      return absl::InvalidArgumentError("its columns end before its lines");
    }
    seen += unfinished;
    next.push_back(at);
    size_t longer = 0;
    for (size_t i = 0; i < unfinished; ++i) {
      const std::string_view piece = PieceAt(text, at);
      at += piece.size();
      longer += piece.back() == ',' ? 1 : 0;
    }
    unfinished = longer;
  }
  if (at != text.size()) {
    return absl::InvalidArgumentError("its columns go on behind its lines");
  }
  std::string lines;
  lines.reserve(text.size());
  for (size_t line = 0; line < n_lines; ++line) {
    const size_t begin = lines.size();
    for (size_t column = 0; column == 0 || lines.back() == ','; ++column) {
      const std::string_view piece = PieceAt(text, next[column]);
      next[column] += piece.size();
      lines.append(piece);
    }
    const std::string_view whole = std::string_view(lines).substr(begin);
    if (whole.ends_with(LeftOutSum())) {
      const std::string sum = SumOf(whole.substr(0, whole.size() - LeftOutSum().size()));
      lines.insert(lines.size() - kAfterSum.size() - 1, sum);
    }
  }
  return lines;
}

}  // namespace warpledger::ablations
