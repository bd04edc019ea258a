// SPDX-License-Identifier: Apache-2.0
// One description of a struct's fields, which writes and reads its JSON form, checks it and
// prints its schema.
//
// A struct has a `Visit` that names each field once, in the order of the file, with its rules
// and, for the schema, what it means:
//
//   struct GpuInfo {
//     std::string name;
//     std::string driver;
//     int sm_count = 0;
//     std::optional<bool> ecc;
//
//     void Visit(auto& f) {
//       FIELDS(name, driver);
//       f("sm_count", sm_count, AtLeast{1});
//       f("ecc", ecc, kOlderRecordsLack, "null: the driver does not say");
//     }
//   };
//   nlohmann::ordered_json json = ToJson(gpu);
//   absl::StatusOr<GpuInfo> again = FromJson<GpuInfo>(json);
//
// FIELDS lists fields in a row that need neither rule nor meaning and are called as the struct
// calls them. DESCRIBE_FIELDS(name, driver) is the whole Visit of a struct that has no others.
//
// Contract
// - Fields are numbers, texts, booleans, optionals (null where empty), pairs, lists and sets,
//   maps by name, and structs with a Visit. Another class brings its own
//   `Json ToJson(const T&)` and `absl::Status FromJson(const Json&, const FieldPath&, T&)`.
// - Every field must be there, unless a rule says that it may be absent. Unknown fields are
//   ignored, so that files of newer minor writers load.
// - A number that is not finite is written as null.
// - Visit must not change what it describes: ToJson calls it on constants.
// - What several fields must obey together, a `std::string WhyInvalid() const` says, which is
//   empty where all is well. It is asked after the fields were read.
//
// Errors: InvalidArgument that names the first wrong field with its path ("gpu.name: expected
// a string, found 3"); FailedPrecondition for a schema that is newer than the program's.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ablations/base/json_text.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"
#include "nlohmann/json.hpp"

#define FIELDS(...) NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(VISIT_FIELD_, __VA_ARGS__))
#define VISIT_FIELD_(field) f(#field, field);
#define DESCRIBE_FIELDS(...) \
  void Visit(auto& f) { FIELDS(__VA_ARGS__) }

namespace warpledger::ablations {

// --- Rules of a field ----------------------------------------------------------
// `Holds` says whether a value obeys, `Words` what it should have been.

struct AtLeast {
  int64_t least;
  bool Holds(int64_t value) const { return value >= least; }
  std::string Words() const { return absl::StrCat("a number from ", least); }
};

// What is looped over or allocated needs a limit.
struct Within {
  int64_t least;
  int64_t most;
  bool Holds(int64_t value) const { return value >= least && value <= most; }
  std::string Words() const { return absl::StrCat("a number from ", least, " to ", most); }
};

struct Above {
  double limit;
  const char* what = "a number";
  bool Holds(double value) const { return value > limit && std::isfinite(value); }
  std::string Words() const { return absl::StrCat(what, " above ", limit); }
};

// A size in memory. What no machine has would overflow the sums that use it.
struct ByteCount {
  bool Holds(int64_t value) const { return value >= 0 && value <= int64_t{1} << 50; }
  std::string Words() const { return "a number of bytes"; }
};

struct NotEmpty {
  bool Holds(std::string_view value) const { return !value.empty(); }
  std::string Words() const { return "a text that is not empty"; }
};

// What pages, pictures, file names and the terminal show as it stands: no control character and
// nothing that Markdown, HTML or a shell takes for its own. The empty name holds.
struct PlainName {
  bool Holds(std::string_view value) const;
  std::string Words() const;
};

struct AtMostBytes {
  size_t most;
  bool Holds(std::string_view value) const { return value.size() <= most; }
  std::string Words() const { return absl::StrCat("at most ", most, " bytes"); }
};
// Of a regular expression: std::regex recurses for each character of it.
inline constexpr AtMostBytes kPatternBytes{500};

// OneOf("warm", "cold").
template <size_t kCount>
struct OneOf {
  template <typename... Texts>
  explicit constexpr OneOf(Texts... texts) : values{texts...} {}
  bool Holds(std::string_view value) const {
    return std::find(values.begin(), values.end(), value) != values.end();
  }
  std::string Words() const;

  std::array<const char*, kCount> values;
};
template <typename... Texts>
OneOf(Texts...) -> OneOf<sizeof...(Texts)>;

// Any other rule of one field. (Clang 14 deduces no aggregate without a guide.)
template <typename Predicate>
struct Must {
  const char* words;
  Predicate holds;
  template <typename T>
  bool Holds(const T& value) const {
    return holds(value);
  }
  std::string Words() const { return words; }
};
template <typename Predicate>
Must(const char*, Predicate) -> Must<Predicate>;

// A rule of each element of a list or map, and of each name in a map.
template <typename Rule>
struct Each {
  Rule rule;
};
template <typename Rule>
Each(Rule) -> Each<Rule>;
template <typename Rule>
struct EachName {
  Rule rule;
};
template <typename Rule>
EachName(Rule) -> EachName<Rule>;

// The version of a file's schema; a newer one is FailedPrecondition.
struct SchemaUpTo {
  int newest;
};

// Always written. Where it is absent, the field keeps its default.
inline constexpr struct OlderRecordsLack {
} kOlderRecordsLack;
// Absent where the field has its default.
inline constexpr struct OnlyWhereSet {
} kOnlyWhereSet;
// null reads as NaN.
inline constexpr struct NullIsNan {
} kNullIsNan;
// One value stands for all elements of a list where they are equal. How many they are, the
// struct must know before it is read.
inline constexpr struct OneForAll {
} kOneForAll;

namespace json_fields {

using Json = nlohmann::ordered_json;

template <typename Wanted, typename... Rules>
inline constexpr bool kHas = (std::is_same_v<Wanted, Rules> || ...);

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
concept Text = std::is_same_v<T, std::string>;
template <typename T>
concept Scalar = std::is_arithmetic_v<T> || Text<T>;
template <typename T>
concept Map = requires {
  typename T::mapped_type;
};
template <typename T>
concept List = std::ranges::range<T> && !Map<T> && !Text<T>;
template <typename T>
concept Pair = requires(T value) {
  value.first, value.second;
};

// "one of a, b, c", or "a or b".
std::string Choice(const char* const* values, size_t count);

}  // namespace json_fields

template <size_t kCount>
std::string OneOf<kCount>::Words() const {
  return json_fields::Choice(values.data(), kCount);
}

// Where a value stands: "arms[2].role". Made into text for an error alone.
class FieldPath {
 public:
  FieldPath() = default;
  FieldPath Field(std::string_view name) const { return FieldPath(this, name, 0); }
  FieldPath Element(size_t index) const { return FieldPath(this, {}, index); }
  std::string ToString() const;

 private:
  FieldPath(const FieldPath* parent, std::string_view name, size_t index)
      : parent_(parent), name_(name), index_(index) {}

  const FieldPath* parent_ = nullptr;
  std::string_view name_;
  size_t index_ = 0;
};

// InvalidArgument: "PATH: expected EXPECTED, found VALUE". Of a long text only its beginning
// is shown, of lists and objects only their size.
absl::Status WrongValue(const FieldPath& path, std::string_view expected,
                        const nlohmann::ordered_json& found);

// The field's text; empty where there is none.
std::string TextOf(const nlohmann::ordered_json& object, const char* field);

class FieldWriter {
 public:
  template <typename T, typename... Rules>
  void operator()(const char* name, const T& value, const Rules&...);
  nlohmann::ordered_json Take() { return std::move(json_); }

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

// Keeps the first error and skips the rest.
class FieldReader {
 public:
  FieldReader(const nlohmann::ordered_json& json, const FieldPath& path);

  template <typename T, typename... Rules>
  void operator()(const char* name, T& out, const Rules&... rules);
  // A rule that several fields obey together; `name` is the one that an error shows.
  void Require(bool holds, const char* name, const char* words);
  const absl::Status& status() const { return status_; }

 private:
  void Missing(const char* name);

  const nlohmann::ordered_json& json_;
  const FieldPath& path_;
  absl::Status status_;
};

template <typename T>
concept Described = requires(T& value, FieldReader& f) {
  value.Visit(f);
};

template <Described T>
nlohmann::ordered_json ToJson(const T& value) {
  FieldWriter writer;
  const_cast<T&>(value).Visit(writer);
  return writer.Take();
}

// Of a file whose struct does not keep the version.
void VisitSchema(auto& f, int newest) {
  int version = newest;
  f("schema_version", version, SchemaUpTo{newest});
}

namespace json_fields {

template <typename T>
bool IsDefault(const T& value) {
  if constexpr (kIsOptional<T>) {
    return !value.has_value();
  } else if constexpr (std::ranges::range<T>) {
    return value.empty();
  } else {
    return value == T{};
  }
}

template <typename T>
Json Write(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  } else if constexpr (Scalar<T>) {
    return Json(value);
  } else if constexpr (kIsOptional<T>) {
    return value.has_value() ? Write(*value) : Json(nullptr);
  } else if constexpr (Map<T>) {
    Json json = Json::object();
    for (const auto& [name, element] : value) json[name] = Write(element);
    return json;
  } else if constexpr (List<T>) {
    Json json = Json::array();
    for (const auto& element : value) json.push_back(Write(element));
    return json;
  } else if constexpr (Pair<T>) {
    return Json::array({Write(value.first), Write(value.second)});
  } else {
    return ToJson(value);
  }
}

// InvalidArgument "PATH.WHY"; OK where `why` is empty.
absl::Status Invalid(const FieldPath& path, const std::string& why);

absl::Status Read(const Json& json, const FieldPath& path, std::string& out);
absl::Status Read(const Json& json, const FieldPath& path, bool& out);
absl::Status Read(const Json& json, const FieldPath& path, uint64_t& out);
absl::Status Read(const Json& json, const FieldPath& path, int64_t& out);
absl::Status Read(const Json& json, const FieldPath& path, int& out);
absl::Status Read(const Json& json, const FieldPath& path, double& out);

template <typename T>
absl::Status Read(const Json& json, const FieldPath& path, T& out) {
  if constexpr (kIsOptional<T>) {
    out.reset();
    return json.is_null() ? absl::OkStatus() : Read(json, path, out.emplace());
  } else if constexpr (Map<T>) {
    if (!json.is_object()) return WrongValue(path, "an object", json);
    out.clear();
    for (const auto& [name, element] : json.items()) {
      RETURN_IF_ERROR(Read(element, path.Field(name), out[name]));
    }
    return absl::OkStatus();
  } else if constexpr (List<T>) {
    if (!json.is_array()) return WrongValue(path, "a list", json);
    out.clear();
    for (size_t i = 0; i < json.size(); ++i) {
      typename T::value_type element{};
      RETURN_IF_ERROR(Read(json[i], path.Element(i), element));
      out.insert(out.end(), std::move(element));
    }
    return absl::OkStatus();
  } else if constexpr (Pair<T>) {
    if (!json.is_array() || json.size() != 2) return WrongValue(path, "a list of two", json);
    RETURN_IF_ERROR(Read(json[0], path.Element(0), out.first));
    return Read(json[1], path.Element(1), out.second);
  } else if constexpr (Described<T>) {
    FieldReader reader(json, path);
    out.Visit(reader);
    if constexpr (requires { out.WhyInvalid(); }) {
      if (reader.status().ok()) return Invalid(path, out.WhyInvalid());
    }
    return reader.status();
  } else {
    return FromJson(json, path, out);
  }
}

// Of what is no rule but a way to read, or the meaning of a field.
template <typename T, typename Rule>
absl::Status Obey(const T& value, const Rule& rule, const Json& json, const FieldPath& path) {
  if constexpr (kIsOptional<T>) {
    return value.has_value() ? Obey(*value, rule, json, path) : absl::OkStatus();
  } else if constexpr (requires { rule.Holds(value); }) {
    return rule.Holds(value) ? absl::OkStatus() : WrongValue(path, rule.Words(), json);
  } else {
    return absl::OkStatus();
  }
}

template <Map T, typename Rule>
absl::Status Obey(const T& map, const Each<Rule>& each, const Json& json, const FieldPath& path) {
  for (const auto& [name, value] : map) {
    RETURN_IF_ERROR(Obey(value, each.rule, json[name], path.Field(name)));
  }
  return absl::OkStatus();
}

template <Map T, typename Rule>
absl::Status Obey(const T& map, const EachName<Rule>& each, const Json&, const FieldPath& path) {
  for (const auto& [name, value] : map) {
    RETURN_IF_ERROR(Obey(name, each.rule, Json(name), path));
  }
  return absl::OkStatus();
}

template <List T, typename Rule>
absl::Status Obey(const T& list, const Each<Rule>& each, const Json& json, const FieldPath& path) {
  size_t i = 0;
  for (const auto& value : list) {
    // Where one value stands for all, that one is shown.
    RETURN_IF_ERROR(Obey(value, each.rule, json.is_array() ? json[i] : json, path.Element(i)));
    ++i;
  }
  return absl::OkStatus();
}

absl::Status Obey(int version, const SchemaUpTo& rule, const Json& json, const FieldPath& path);

}  // namespace json_fields

template <typename T, typename... Rules>
void FieldWriter::operator()(const char* name, const T& value, const Rules&...) {
  if constexpr (json_fields::kHas<OnlyWhereSet, Rules...>) {
    if (json_fields::IsDefault(value)) return;
  }
  if constexpr (json_fields::kHas<OneForAll, Rules...>) {
    const auto differs = [&](const auto& element) { return element != value.front(); };
    if (!value.empty() && std::none_of(value.begin(), value.end(), differs)) {
      json_[name] = json_fields::Write(value.front());
      return;
    }
  }
  json_[name] = json_fields::Write(value);
}

template <typename T, typename... Rules>
void FieldReader::operator()(const char* name, T& out, const Rules&... rules) {
  using json_fields::kHas;
  if (!status_.ok()) return;
  const auto found = json_.find(name);
  if (found == json_.end()) {
    if (!kHas<OlderRecordsLack, Rules...> && !kHas<OnlyWhereSet, Rules...>) Missing(name);
    return;
  }
  if constexpr (kHas<NullIsNan, Rules...>) {
    if (found->is_null()) {
      out = std::numeric_limits<T>::quiet_NaN();
      return;
    }
  }
  const FieldPath path = path_.Field(name);
  if constexpr (kHas<OneForAll, Rules...>) {
    if (found->is_number()) {
      typename T::value_type value{};
      status_ = json_fields::Read(*found, path, value);
      std::fill(out.begin(), out.end(), value);
    } else {
      status_ = json_fields::Read(*found, path, out);
    }
  } else {
    status_ = json_fields::Read(*found, path, out);
  }
  [[maybe_unused]] const auto check = [&](const auto& rule) {
    if (status_.ok()) status_ = json_fields::Obey(out, rule, *found, path);
  };
  (check(rules), ...);
}

template <Described T>
absl::StatusOr<T> FromJson(const nlohmann::ordered_json& json) {
  T value{};
  RETURN_IF_ERROR(json_fields::Read(json, FieldPath(), value));
  return value;
}

template <Described T>
absl::StatusOr<T> FromText(std::string_view text) {
  ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ParseJson(text));
  return FromJson<T>(json);
}

}  // namespace warpledger::ablations
