#include "ablations/record.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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

int Nearness(std::string_view arch, std::string_view gpu_arch) {
  if (arch == gpu_arch) return 1000;
  const bool specific = absl::ConsumeSuffix(&arch, "a");
  int number = 0;
  int of_gpu = 0;
  if (!absl::ConsumePrefix(&arch, "sm_") || !absl::ConsumePrefix(&gpu_arch, "sm_") ||
      !absl::SimpleAtoi(arch, &number) || !absl::SimpleAtoi(gpu_arch, &of_gpu)) {
    return 0;
  }
  if (specific) return number == of_gpu ? 999 : 0;
  const bool runs = number > 0 && number < of_gpu && number / 10 == of_gpu / 10;
  return runs ? 1 + number % 10 : 0;
}

}  // namespace warpledger::ablations
