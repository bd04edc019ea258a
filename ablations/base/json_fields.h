// SPDX-License-Identifier: Apache-2.0
// Reading the fields of a JSON object, with errors that name the path.
//
//   Fields fields(json, "gpu");
//   fields.Get("name", &gpu.name).Get("sm_count", &gpu.sm_count);
//   return fields.Result(gpu);  // InvalidArgument: "gpu.name: expected a string, found 3"

#ifndef WARPLEDGER_ABLATIONS_BASE_JSON_FIELDS_H_
#define WARPLEDGER_ABLATIONS_BASE_JSON_FIELDS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

namespace json_fields {

using Json = nlohmann::ordered_json;

absl::Status WrongType(const std::string& path, const char* expected, const Json& found);

absl::Status Convert(const Json& json, const std::string& path, std::string* out);
absl::Status Convert(const Json& json, const std::string& path, bool* out);
absl::Status Convert(const Json& json, const std::string& path, uint64_t* out);
absl::Status Convert(const Json& json, const std::string& path, int64_t* out);
absl::Status Convert(const Json& json, const std::string& path, int* out);
absl::Status Convert(const Json& json, const std::string& path, double* out);

template <typename T>
absl::Status Convert(const Json& json, const std::string& path, std::optional<T>* out) {
  if (json.is_null()) {
    out->reset();
    return absl::OkStatus();
  }
  T value{};
  if (absl::Status status = Convert(json, path, &value); !status.ok()) return status;
  *out = std::move(value);
  return absl::OkStatus();
}

template <typename T>
absl::Status Convert(const Json& json, const std::string& path, std::map<std::string, T>* out) {
  if (!json.is_object()) return WrongType(path, "an object", json);
  for (const auto& [key, value] : json.items()) {
    if (absl::Status status = Convert(value, absl::StrCat(path, ".", key), &(*out)[key]);
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace json_fields

// The field's text; empty where there is none.
std::string TextOf(const nlohmann::ordered_json& object, const char* field);

// Reads the fields of one object; keeps the first error and skips the rest.
class Fields {
 public:
  Fields(const nlohmann::ordered_json& json, std::string path)
      : json_(json), path_(std::move(path)) {
    if (!json.is_object()) {
      status_ = json_fields::WrongType(path_.empty() ? "value" : path_, "an object", json);
    }
  }

  template <typename T>
  Fields& Get(const char* name, T* out) {
    if (const nlohmann::ordered_json* field = Find(name))
      status_ = json_fields::Convert(*field, Path(name), out);
    return *this;
  }

  // null, which stands for "not a finite number", reads as NaN.
  Fields& GetOrNan(const char* name, double* out) {
    std::optional<double> value;
    Get(name, &value);
    if (status_.ok()) *out = value.value_or(std::numeric_limits<double>::quiet_NaN());
    return *this;
  }

  template <typename T>
  Fields& GetIfPresent(const char* name, T* out) {
    if (status_.ok() && json_.contains(name)) Get(name, out);
    return *this;
  }

  // `read(element, path)` returns absl::StatusOr<T>.
  template <typename T, typename Read>
  Fields& GetList(const char* name, std::vector<T>* out, Read read) {
    const nlohmann::ordered_json* field = Find(name);
    if (field == nullptr) return *this;
    if (!field->is_array()) {
      status_ = json_fields::WrongType(Path(name), "a list", *field);
      return *this;
    }
    out->clear();
    for (size_t i = 0; i < field->size() && status_.ok(); ++i) {
      absl::StatusOr<T> element = read((*field)[i], absl::StrCat(Path(name), "[", i, "]"));
      if (element.ok()) {
        out->push_back(*std::move(element));
      } else {
        status_ = element.status();
      }
    }
    return *this;
  }

  template <typename T, typename Read>
  Fields& GetObject(const char* name, T* out, Read read) {
    const nlohmann::ordered_json* field = Find(name);
    if (field == nullptr) return *this;
    absl::StatusOr<T> value = read(*field, Path(name));
    if (value.ok()) {
      *out = *std::move(value);
    } else {
      status_ = value.status();
    }
    return *this;
  }

  // A size in memory. What no machine has would overflow the sums that use it.
  Fields& GetBytes(const char* name, int64_t* out) {
    constexpr int64_t kMost = int64_t{1} << 50;
    Get(name, out);
    Require(*out >= 0 && *out <= kMost, name, "a number of bytes");
    return *this;
  }

  void Require(bool holds, const char* name, const char* rule) {
    if (status_.ok() && !holds) status_ = json_fields::WrongType(Path(name), rule, json_[name]);
  }
  // Of a field that was read into `count`: what is looped over or allocated needs a limit.
  void RequireCount(int count, int most, const char* name) {
    if (count < 1 || count > most) {
      Require(false, name, absl::StrCat("a number from 1 to ", most).c_str());
    }
  }

  const absl::Status& status() const { return status_; }
  template <typename T>
  absl::StatusOr<T> Result(T value) const {
    if (!status_.ok()) return status_;
    return value;
  }

 private:
  std::string Path(const char* name) const {
    return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
  }
  const nlohmann::ordered_json* Find(const char* name) {
    if (!status_.ok()) return nullptr;
    const auto it = json_.find(name);
    if (it == json_.end()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat(Path(name), ": missing; reports/RECORD.md lists the fields of this file"));
      return nullptr;
    }
    return &*it;
  }

  const nlohmann::ordered_json& json_;
  std::string path_;
  absl::Status status_;
};

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_BASE_JSON_FIELDS_H_
