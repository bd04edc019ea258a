// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/json_fields.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownBytes = 60;

std::string Shortened(std::string text) {
  if (text.size() <= kShownBytes) return text;
  return absl::StrCat(text.substr(0, kShownBytes), "… (", text.size(), " bytes)");
}

}  // namespace

bool PlainName::Holds(std::string_view value) const {
  constexpr size_t kMostBytes = 1000;
  constexpr std::string_view kForbidden = "<>&|`\"'\\[]*$;!{}";
  return value.size() <= kMostBytes && std::none_of(value.begin(), value.end(), [&](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte < ' ' || byte == 0x7f || kForbidden.find(c) != std::string_view::npos;
         });
}
std::string PlainName::Words() const { return "a plain name (reports/RECORD.md)"; }

std::string FieldPath::ToString() const {
  if (parent_ == nullptr) return "";
  std::string path = parent_->ToString();
  if (name_.data() == nullptr) return absl::StrCat(path, "[", index_, "]");
  return absl::StrCat(path, path.empty() ? "" : ".", Shortened(std::string(name_)));
}

absl::Status WrongValue(const FieldPath& path, std::string_view expected, const Json& found) {
  const std::string where = path.ToString();
  std::string shown;
  if (found.is_string()) {
    // What a terminal takes for a command is shown as its number.
    shown = absl::Utf8SafeCHexEscape(Shortened(found.get<std::string>()));
  } else if (found.is_array()) {
    shown = absl::StrCat("a list of ", found.size());
  } else if (found.is_object()) {
    shown = absl::StrCat("an object of ", found.size(), " fields");
  } else {
    shown = DumpLine(found);
  }
  if (found.is_string()) shown = absl::StrCat("\"", shown, "\"");
  return absl::InvalidArgumentError(absl::StrCat(where.empty() ? "value" : where, ": expected ",
                                                 std::string(expected), ", found ", shown));
}

std::string TextOf(const Json& object, const char* field) {
  if (!object.is_object()) return "";
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

FieldReader::FieldReader(const Json& json, const FieldPath& path) : json_(json), path_(path) {
  if (!json.is_object()) status_ = WrongValue(path, "an object", json);
}

void FieldReader::Require(bool holds, const char* name, const char* words) {
  if (status_.ok() && !holds) status_ = WrongValue(path_.Field(name), words, json_[name]);
}

void FieldReader::Missing(const char* name) {
  status_ = absl::InvalidArgumentError(absl::StrCat(
      path_.Field(name).ToString(), ": missing; reports/RECORD.md lists the fields of this file"));
}

namespace json_fields {

absl::Status Invalid(const FieldPath& path, const std::string& why) {
  if (why.empty()) return absl::OkStatus();
  const std::string where = path.ToString();
  return absl::InvalidArgumentError(absl::StrCat(where, where.empty() ? "" : ".", why));
}

std::string Choice(const char* const* values, size_t count) {
  std::vector<std::string> named(values, values + count);
  std::erase(named, "");  // as if the field were absent
  if (named.size() == 2) return absl::StrCat(named[0], " or ", named[1]);
  return absl::StrCat("one of ", absl::StrJoin(named, ", "));
}

absl::Status Obey(int version, const SchemaUpTo& rule, const Json& json, const FieldPath& path) {
  if (version < 1) return WrongValue(path, "a schema version >= 1", json);
  if (version <= rule.newest) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "schema_version: this record has schema ", version, ", this program reads up to ",
      rule.newest, "; judge it with the version that wrote it, or update"));
}

absl::Status Read(const Json& json, const FieldPath& path, std::string& out) {
  if (!json.is_string()) return WrongValue(path, "a string", json);
  out = json.get<std::string>();
  return absl::OkStatus();
}

absl::Status Read(const Json& json, const FieldPath& path, bool& out) {
  if (!json.is_boolean()) return WrongValue(path, "true or false", json);
  out = json.get<bool>();
  return absl::OkStatus();
}

absl::Status Read(const Json& json, const FieldPath& path, uint64_t& out) {
  if (!json.is_number_unsigned()) return WrongValue(path, "an integer >= 0", json);
  out = json.get<uint64_t>();
  return absl::OkStatus();
}

absl::Status Read(const Json& json, const FieldPath& path, int64_t& out) {
  // A literal above 2^63-1 is unsigned to the parser and would wrap around.
  if (!json.is_number_integer() ||
      (json.is_number_unsigned() &&
       json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))) {
    return WrongValue(path, "an integer", json);
  }
  out = json.get<int64_t>();
  return absl::OkStatus();
}

absl::Status Read(const Json& json, const FieldPath& path, int& out) {
  int64_t wide = 0;
  RETURN_IF_ERROR(Read(json, path, wide));
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    return WrongValue(path, "a 32-bit integer", json);
  }
  out = static_cast<int>(wide);
  return absl::OkStatus();
}

absl::Status Read(const Json& json, const FieldPath& path, double& out) {
  if (!json.is_number()) return WrongValue(path, "a number", json);
  out = json.get<double>();
  return absl::OkStatus();
}

}  // namespace json_fields
}  // namespace warpledger::ablations
