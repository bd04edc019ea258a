// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/toml_text.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

Json JsonOf(const toml::node& node, const std::string& path, std::map<std::string, int>* lines) {
  (*lines)[path] = static_cast<int>(node.source().begin.line);
  if (const toml::table* table = node.as_table()) {
    Json json = Json::object();
    for (const auto& [key, value] : *table) {
      const std::string name(key.str().data(), key.str().size());
      json[name] = JsonOf(value, path.empty() ? name : absl::StrCat(path, ".", name), lines);
    }
    return json;
  }
  if (const toml::array* array = node.as_array()) {
    Json json = Json::array();
    for (const toml::node& element : *array) {
      json.push_back(JsonOf(element, absl::StrCat(path, "[", json.size(), "]"), lines));
    }
    return json;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  return nullptr;  // a date: no field is one
}

}  // namespace

absl::StatusOr<TomlText> TomlText::Parse(const std::string& file, std::string_view text) {
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":", error.source().begin.line, ": ", std::string(error.description())));
  }
  TomlText out;
  out.file_ = file;
  out.json_ = JsonOf(parsed.table(), "", &out.lines_);
  return out;
}

std::string TomlText::PlaceOf(std::string_view path) const {
  std::string part(path);
  while (!part.empty() && !lines_.contains(part)) {
    const size_t end = part.find_last_of(".[");
    part.resize(end == std::string::npos ? 0 : end);
  }
  return part.empty() ? file_ : absl::StrCat(file_, ":", lines_.at(part));
}

absl::Status TomlText::Located(const absl::Status& error) const {
  const std::string_view message(error.message().data(), error.message().size());
  const std::string_view path = message.substr(0, message.find(": "));
  std::string told(message);
  // Of records, which json_fields.h is written for.
  if (const size_t hint = told.find("; reports/RECORD.md"); hint != std::string::npos) {
    told.resize(hint);
  }
  return absl::Status(error.code(), absl::StrCat(PlaceOf(path), ": ", told));
}

}  // namespace warpledger::ablations
