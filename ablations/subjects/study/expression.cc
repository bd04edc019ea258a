// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/expression.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

constexpr int kDeepest = 100;                      // brackets and signs within each other
constexpr double kMostCount = 9007199254740992.0;  // 2^53

class Parser {
 public:
  Parser(std::string_view text, const Parameters& parameters)
      : text_(text), parameters_(parameters) {}

  absl::StatusOr<double> Whole() {
    ASSIGN_OR_RETURN(const double value, Sum());
    if (Peek() != '\0') return Wrong("an operator");
    return value;
  }

 private:
  char Peek() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  absl::Status Wrong(const char* expected) const {
    return absl::InvalidArgumentError(absl::StrCat("'", text_, "' is no expression: expected ",
                                                   expected, " at character ", at_ + 1));
  }

  absl::StatusOr<double> Sum() {
    ASSIGN_OR_RETURN(double value, Product());
    while (Peek() == '+' || Peek() == '-') {
      const bool adds = text_[at_++] == '+';
      ASSIGN_OR_RETURN(const double next, Product());
      value += adds ? next : -next;
    }
    return value;
  }

  absl::StatusOr<double> Product() {
    ASSIGN_OR_RETURN(double value, Factor());
    while (Peek() == '*' || Peek() == '/' || Peek() == '%') {
      const char by = text_[at_++];
      ASSIGN_OR_RETURN(const double next, Factor());
      if (by != '*' && next == 0) {
        return absl::InvalidArgumentError(absl::StrCat("'", text_, "' divides by 0"));
      }
      value = by == '*' ? value * next : by == '/' ? value / next : std::fmod(value, next);
    }
    return value;
  }

  absl::StatusOr<double> Factor() {
    const char next = Peek();
    if (next == '(' || next == '-') {
      if (++depth_ > kDeepest) return Wrong("fewer brackets");
      ++at_;
      absl::StatusOr<double> inner = next == '(' ? Sum() : Factor();
      if (!inner.ok()) return inner;
      --depth_;
      if (next == '-') return -*inner;
      if (Peek() != ')') return Wrong("')'");
      ++at_;
      return inner;
    }
    if (absl::ascii_isdigit(next) || next == '.') return Number();
    if (absl::ascii_isalpha(next) || next == '_') return Name();
    return Wrong("a number, a parameter or '('");
  }

  absl::StatusOr<double> Number() {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return Wrong("a number");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  absl::StatusOr<double> Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_')) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    const auto found = parameters_.find(name);
    if (found != parameters_.end()) return static_cast<double>(found->second);
    std::vector<std::string> known;
    for (const auto& [each, value] : parameters_) known.push_back(each);
    return absl::InvalidArgumentError(absl::StrCat("'", text_, "' names '", name,
                                                   "', but the problem's parameters are ",
                                                   absl::StrJoin(known, ", ")));
  }

  const std::string text_;
  const Parameters& parameters_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<double> Evaluate(std::string_view text, const Parameters& parameters) {
  ASSIGN_OR_RETURN(const double value, Parser(text, parameters).Whole());
  if (std::isfinite(value)) return value;
  return absl::InvalidArgumentError(absl::StrCat("'", std::string(text), "' is not finite"));
}

absl::StatusOr<int64_t> EvaluateCount(std::string_view text, const Parameters& parameters) {
  ASSIGN_OR_RETURN(const double value, Evaluate(text, parameters));
  if (value >= 0 && value <= kMostCount && value == std::floor(value)) {
    return static_cast<int64_t>(value);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(text), "' is ", value, ", and must be a whole number from 0"));
}

}  // namespace warpledger::ablations
