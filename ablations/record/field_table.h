// SPDX-License-Identifier: Apache-2.0
// The tables of reports/RECORD.md: a row for each field of a struct's description
// (json_fields.h), and those of the structs in it.
//
//   std::string table = FieldTable<RunInfo>();  // "| field | value | meaning |\n…"

#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "ablations/base/json_fields.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {

class FieldTablePrinter {
 public:
  FieldTablePrinter(std::string prefix, std::string* rows)
      : prefix_(std::move(prefix)), rows_(rows) {}

  template <typename T, typename... Rules>
  void operator()(const char* name, const T&, const Rules&... rules) {
    constexpr bool kAbsent = json_fields::kHas<OnlyWhereSet, Rules...>;
    std::string value = TypeOf<T, kAbsent>();
    std::string meaning;
    (Add(rules, &value, &meaning), ...);
    const std::string path = absl::StrCat(prefix_, name);
    absl::StrAppend(rows_, "| `", path, "` | ", value, " | ", meaning, " |\n");
    Nested<T>(path);
  }

 private:
  // An empty optional that may be absent is never written as null.
  template <typename T, bool kAbsent = false>
  static std::string TypeOf() {
    using namespace json_fields;
    if constexpr (Text<T>) {
      return "text";
    } else if constexpr (std::is_same_v<T, bool>) {
      return "true or false";
    } else if constexpr (std::is_integral_v<T>) {
      return "integer";
    } else if constexpr (std::is_floating_point_v<T>) {
      return "number";
    } else if constexpr (kIsOptional<T>) {
      return absl::StrCat(TypeOf<typename T::value_type>(), kAbsent ? "" : " or null");
    } else if constexpr (Map<T>) {
      return absl::StrCat("object by name: ", TypeOf<typename T::mapped_type>());
    } else if constexpr (List<T>) {
      return absl::StrCat("list: ", TypeOf<typename T::value_type>());
    } else {
      return Described<T> || ToJson(T{}).is_object() ? "object" : "text";
    }
  }

  template <typename T>
  void Nested(const std::string& path) {
    using namespace json_fields;
    if constexpr (kIsOptional<T>) {
      Nested<typename T::value_type>(path);
    } else if constexpr (Map<T>) {
      Nested<typename T::mapped_type>(path + ".NAME");
    } else if constexpr (!Text<T> && List<T>) {
      Nested<typename T::value_type>(path + "[]");
    } else if constexpr (Described<T>) {
      FieldTablePrinter nested(path + ".", rows_);
      T{}.Visit(nested);
    }
  }

  template <typename Rule>
  static void Add(const EachName<Rule>& names, std::string* value, std::string*) {
    absl::StrAppend(value, ", each name ", names.rule.Words());
  }
  template <typename Rule>
  static void Add(const Rule& rule, std::string* value, std::string* meaning) {
    const auto mean = [&](const char* text) {
      absl::StrAppend(meaning, meaning->empty() ? "" : "; ", text);
    };
    if constexpr (std::is_convertible_v<Rule, const char*>) {
      mean(rule);
    } else if constexpr (std::is_same_v<Rule, OlderRecordsLack>) {
      mean("older records lack it");
    } else if constexpr (std::is_same_v<Rule, OnlyWhereSet>) {
      mean("optional");
    } else if constexpr (std::is_same_v<Rule, NullIsNan>) {
      absl::StrAppend(value, " or null");
    } else if constexpr (std::is_same_v<Rule, OneForAll>) {
      absl::StrAppend(value, ", or one value for all where they are equal");
    } else if constexpr (std::is_same_v<Rule, SchemaUpTo>) {
      absl::StrAppend(value, " up to ", rule.newest);
    } else if constexpr (requires { rule.rule; }) {
      absl::StrAppend(value, ", each ", rule.rule.Words());
    } else {
      absl::StrAppend(value, ", ", rule.Words());
    }
  }

  std::string prefix_;
  std::string* rows_;
};

template <Described T>
std::string FieldTable() {
  std::string rows = "| field | value | meaning |\n| :--- | :--- | :--- |\n";
  FieldTablePrinter printer("", &rows);
  T{}.Visit(printer);
  return rows;
}

}  // namespace warpledger::ablations
