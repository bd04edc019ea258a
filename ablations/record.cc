#include "ablations/record.h"

#include "absl/strings/ascii.h"
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

std::string ArchOf(const GpuInfo& gpu) {
  std::string digits;
  for (const char c : gpu.compute_capability) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) digits.push_back(c);
  }
  return absl::StrCat("sm_", digits);
}

}  // namespace warpledger::ablations
