// SPDX-License-Identifier: Apache-2.0
// Fields of a summary.json, typed and with their path in every error. For summary_view.cc.

#ifndef WARPLEDGER_REPORTS_MODEL_SUMMARY_READER_H_
#define WARPLEDGER_REPORTS_MODEL_SUMMARY_READER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "reports/model/summary.h"
#include "reports/model/text.h"

namespace warpledger::report {

// Reads fields by path and keeps the first error. After an error every getter
// returns an empty value, so that the parsing code needs no branch per field;
// the caller looks at status() once, at the end.
class SummaryReader {
 public:
  using Json = nlohmann::ordered_json;

  absl::Status status() const { return status_; }

  void Fail(std::string_view path, std::string_view problem) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        Cat("summary.json: ", path, " ", problem,
            "; write the summary again with `warpledger judge` of this build"));
  }

  const Json& Object(const Json& in, std::string_view path, const char* key) {
    return Typed(in, path, key, "an object", [](const Json& j) { return j.is_object(); });
  }
  const Json& Array(const Json& in, std::string_view path, const char* key) {
    return Typed(in, path, key, "an array", [](const Json& j) { return j.is_array(); });
  }
  std::string String(const Json& in, std::string_view path, const char* key) {
    const Json& j = Typed(in, path, key, "a string", [](const Json& v) { return v.is_string(); });
    return j.is_string() ? j.get<std::string>() : "";
  }
  // "" for null: the schema writes null where there is nothing to say.
  std::string StringOrNull(const Json& in, std::string_view path, const char* key) {
    const Json& j = Typed(in, path, key, "a string or null",
                          [](const Json& v) { return v.is_string() || v.is_null(); });
    return j.is_string() ? j.get<std::string>() : "";
  }
  bool Bool(const Json& in, std::string_view path, const char* key) {
    const Json& j =
        Typed(in, path, key, "true or false", [](const Json& v) { return v.is_boolean(); });
    return j.is_boolean() && j.get<bool>();
  }
  std::optional<bool> BoolOrNull(const Json& in, std::string_view path, const char* key) {
    const Json& j = Typed(in, path, key, "true, false or null",
                          [](const Json& v) { return v.is_boolean() || v.is_null(); });
    return j.is_boolean() ? std::optional<bool>(j.get<bool>()) : std::nullopt;
  }
  double Number(const Json& in, std::string_view path, const char* key) {
    const Json& j = Typed(in, path, key, "a number", [](const Json& v) { return v.is_number(); });
    return j.is_number() ? j.get<double>() : 0;
  }
  std::optional<double> NumberOrNull(const Json& in, std::string_view path, const char* key) {
    const Json& j = Typed(in, path, key, "a number or null",
                          [](const Json& v) { return v.is_number() || v.is_null(); });
    return j.is_number() ? std::optional<double>(j.get<double>()) : std::nullopt;
  }
  // One that a double holds as well, so that the difference of two is one too.
  static bool IsInteger(const Json& v) {
    constexpr int64_t kMost = int64_t{1} << 53;
    if (v.is_number_unsigned()) return v.get<uint64_t>() <= static_cast<uint64_t>(kMost);
    return v.is_number_integer() && v.get<int64_t>() >= -kMost && v.get<int64_t>() <= kMost;
  }
  int64_t Integer(const Json& in, std::string_view path, const char* key) {
    const Json& j = Typed(in, path, key, "an integer", IsInteger);
    return IsInteger(j) ? j.get<int64_t>() : 0;
  }
  uint64_t Unsigned(const Json& in, std::string_view path, const char* key) {
    const Json& j = Typed(in, path, key, "an integer of at least 0", [](const Json& v) {
      return v.is_number_unsigned() || (v.is_number_integer() && v.get<int64_t>() >= 0);
    });
    return j.is_number_integer() ? j.get<uint64_t>() : 0;
  }
  std::optional<int64_t> IntegerOrNull(const Json& in, std::string_view path, const char* key) {
    const Json& j = Typed(in, path, key, "an integer or null",
                          [](const Json& v) { return IsInteger(v) || v.is_null(); });
    return IsInteger(j) ? std::optional<int64_t>(j.get<int64_t>()) : std::nullopt;
  }
  // [before, after], each a figure or null.
  BeforeAfter Both(const Json& in, std::string_view path, const char* key) {
    return PairOrNull<BeforeAfter>(in, path, key, "null or two integers or nulls", IsInteger,
                                   [](const Json& v) { return v.is_null(); });  // a pair it lacks
  }
  ErrorChange::Both BothNumbers(const Json& in, std::string_view path, const char* key) {
    return PairOrNull<ErrorChange::Both>(
        in, path, key, "two numbers or nulls", [](const Json& v) { return v.is_number(); },
        [](const Json&) { return false; });
  }
  std::pair<bool, bool> BothBools(const Json& in, std::string_view path, const char* key) {
    const auto is_pair = [](const Json& v) {
      return v.is_array() && v.size() == 2 && v[0].is_boolean() && v[1].is_boolean();
    };
    const Json& j = Typed(in, path, key, "two of true and false", is_pair);
    if (!is_pair(j)) return {};
    return {j[0].get<bool>(), j[1].get<bool>()};
  }
  // A time or ratio that must be above zero where it is given: logarithms and
  // quotients are taken of it.
  Estimate Positive(const Json& in, std::string_view path, const char* value, const char* low,
                    const char* high) {
    Estimate estimate = {.value = NumberOrNull(in, path, value),
                         .low = NumberOrNull(in, path, low),
                         .high = NumberOrNull(in, path, high)};
    const std::pair<const char*, std::optional<double>> parts[] = {
        {value, estimate.value}, {low, estimate.low}, {high, estimate.high}};
    for (const auto& [key, part] : parts) {
      if (part && *part <= 0) {
        Fail(Join(path, key), Cat("must be above 0, but is ", *part));
      }
    }
    return estimate;
  }
  std::string OneOf(const Json& in, std::string_view path, const char* key,
                    absl::Span<const std::string_view> allowed) {
    std::string value = String(in, path, key);
    if (status_.ok() && std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
      Fail(Join(path, key), Cat("is \"", value, "\", which this build does not know"));
    }
    return value;
  }

  static std::string Join(std::string_view path, std::string_view key) {
    return path.empty() ? std::string(key) : Cat(path, ".", key);
  }

 private:
  template <typename Pair, typename IsFigure, typename IsLacking>
  Pair PairOrNull(const Json& in, std::string_view path, const char* key, std::string_view expected,
                  IsFigure is_figure, IsLacking is_lacking) {
    using Figure = typename decltype(Pair::before)::value_type;
    const auto is_pair = [&](const Json& v) {
      return v.is_array() && v.size() == 2 && std::all_of(v.begin(), v.end(), [&](const Json& f) {
               return f.is_null() || is_figure(f);
             });
    };
    const Json& j =
        Typed(in, path, key, expected, [&](const Json& v) { return is_pair(v) || is_lacking(v); });
    if (!is_pair(j)) return {};
    const auto figure = [](const Json& v) {
      return v.is_null() ? std::nullopt : std::optional<Figure>(v.get<Figure>());
    };
    return {.before = figure(j[0]), .after = figure(j[1])};
  }
  template <typename Predicate>
  const Json& Typed(const Json& in, std::string_view path, const char* key,
                    std::string_view expected, Predicate holds) {
    static const Json kNull;
    if (!status_.ok()) return kNull;
    if (!in.is_object()) {
      Fail(path.empty() ? "the document" : path, Cat("must be an object, but is ", in.type_name()));
      return kNull;
    }
    const auto found = in.find(key);
    if (found == in.end()) {
      Fail(Join(path, key), Cat("is missing; it must be ", expected));
      return kNull;
    }
    if (!holds(*found)) {
      Fail(Join(path, key), Cat("must be ", expected, ", but is ",
                                found->is_number() ? found->dump() : found->type_name()));
      return kNull;
    }
    return *found;
  }

  absl::Status status_;
};

inline std::string Element(std::string_view array, size_t index) {
  return Cat(array, "[", index, "]");
}

// Calls `parse(element, path)` for each element of an array field.
template <typename Parse>
void ForEach(SummaryReader& reader, const nlohmann::ordered_json& json, const char* key,
             Parse parse) {
  const nlohmann::ordered_json& array = reader.Array(json, "", key);
  for (size_t i = 0; i < array.size(); ++i) {
    if (!reader.status().ok()) return;
    parse(array[i], Element(key, i));
  }
}

}  // namespace warpledger::report

#endif  // WARPLEDGER_REPORTS_MODEL_SUMMARY_READER_H_
