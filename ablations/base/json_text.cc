// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/json_text.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {

using Json = nlohmann::ordered_json;

absl::StatusOr<Json> ParseJson(std::string_view text) {
  try {
    return Json::parse(text.begin(), text.end());
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
