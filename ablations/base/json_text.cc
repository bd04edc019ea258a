// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/json_text.h"

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

// Whether lists and objects nest deeper than kDeepestJson.
bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if (c == ']' || c == '}') --depth;
    if ((c == '[' || c == '{') && ++depth > kDeepestJson) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text) {
  if (IsTooDeep(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not JSON of ours: it nests more than ", kDeepestJson, " levels deep"));
  }
  // A name that stands twice in an object would be read by some and not by others.
  std::vector<std::set<std::string>> names;  // of the objects that are open
  std::string twice;
  const auto note = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key) {
      const std::string name = parsed.get<std::string>();
      if (!names.back().insert(name).second) twice = name;
    }
    return true;
  };
  try {
    Json json = Json::parse(text.begin(), text.end(), note);
    if (twice.empty()) return json;
    return absl::InvalidArgumentError(absl::StrCat("not JSON of ours: '", twice, "' stands twice"));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not JSON: ", error.what()));
  }
}

std::string DumpLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string DumpFile(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace warpledger::ablations
