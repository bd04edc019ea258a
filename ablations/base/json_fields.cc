// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/json_fields.h"

#include "ablations/base/json_text.h"

namespace warpledger::ablations::json_fields {

absl::Status WrongType(const std::string& path, const char* expected, const Json& found) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected ", expected, ", found ", DumpLine(found).substr(0, 60)));
}

absl::Status Convert(const Json& json, const std::string& path, std::string* out) {
  if (!json.is_string()) return WrongType(path, "a string", json);
  *out = json.get<std::string>();
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, bool* out) {
  if (!json.is_boolean()) return WrongType(path, "true or false", json);
  *out = json.get<bool>();
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, uint64_t* out) {
  if (!json.is_number_unsigned()) return WrongType(path, "an integer >= 0", json);
  *out = json.get<uint64_t>();
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, int64_t* out) {
  // A literal above 2^63-1 is unsigned to the parser and would wrap around.
  if (!json.is_number_integer() ||
      (json.is_number_unsigned() &&
       json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))) {
    return WrongType(path, "an integer", json);
  }
  *out = json.get<int64_t>();
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, int* out) {
  int64_t wide = 0;
  if (absl::Status status = Convert(json, path, &wide); !status.ok()) return status;
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    return WrongType(path, "a 32-bit integer", json);
  }
  *out = static_cast<int>(wide);
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, double* out) {
  if (!json.is_number()) return WrongType(path, "a number", json);
  *out = json.get<double>();
  return absl::OkStatus();
}

}  // namespace warpledger::ablations::json_fields

namespace warpledger::ablations {

std::string TextOf(const nlohmann::ordered_json& object, const char* field) {
  if (!object.is_object()) return "";
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace warpledger::ablations
