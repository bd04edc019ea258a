// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/nearest.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpledger::ablations {
namespace {

// A part of a name shorter than this says nothing: every name holds an "a".
constexpr std::size_t kMinSharedPart = 3;

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Damerau-Levenshtein distance in its "optimal string alignment" form: no
// piece is edited twice. Only the last three rows of the table are needed.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

// How far apart two names are, or nullopt when no one would mix them up. Both
// in lower case.
std::optional<std::size_t> Distance(std::string_view unknown, std::string_view known) {
  const std::size_t distance = EditDistance(unknown, known);
  const std::size_t limit = std::max<std::size_t>(1, std::max(unknown.size(), known.size()) / 3);
  // `distance < known.size()`: something of the name must be left.
  if (distance <= limit && distance < known.size()) return distance;
  if (std::min(unknown.size(), known.size()) < kMinSharedPart) return std::nullopt;
  if (Contains(known, unknown) || Contains(unknown, known)) return distance;
  return std::nullopt;
}

}  // namespace

std::vector<std::string> NearestNames(std::string_view unknown, absl::Span<const std::string> known,
                                      std::size_t max) {
  const std::string wanted = absl::AsciiStrToLower(std::string(unknown));
  std::vector<std::pair<std::size_t, const std::string*>> found;
  for (const std::string& name : known) {
    const bool seen = std::any_of(found.begin(), found.end(),
                                  [&](const auto& entry) { return *entry.second == name; });
    if (seen) continue;
    if (const std::optional<std::size_t> distance = Distance(wanted, absl::AsciiStrToLower(name))) {
      found.emplace_back(*distance, &name);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [distance, name] : found) {
    if (names.size() == max) break;
    names.push_back(*name);
  }
  return names;
}

absl::Status UnknownName(std::string_view kind, std::string_view name,
                         absl::Span<const std::string> known) {
  const std::string noun(kind);
  std::string message =
      absl::StrCat("unknown ", noun, " '", absl::Utf8SafeCEscape(std::string(name)), "'; ");
  const std::vector<std::string> nearest = NearestNames(name, known);
  if (!nearest.empty()) {
    absl::StrAppend(&message, "did you mean '", absl::StrJoin(nearest, "', '"), "'? ");
  }
  absl::StrAppend(&message, "`warpledger list ", noun, "s` shows all");
  return absl::InvalidArgumentError(message);
}

}  // namespace warpledger::ablations
