// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/micro_record.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "ablations/base/json_fields.h"
#include "ablations/base/json_text.h"
#include "ablations/record/record_files.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kNamePrefix[] = "micro-";

Json RoundedOrNull(const Json& value) {
  return value.is_number() ? json_fields::Write(SixDigits(value.get<double>())) : Json(nullptr);
}

MicroRecord Quote(const RecordFiles& files, const Json& json) {
  MicroRecord record;
  record.dir = files.path();
  const Json& provenance = json.at("provenance");
  record.provenance = {{"run_id", files.name()},
                       {"started", provenance.at("started").get<std::string>()},
                       {"gpu_uuid", json.at("gpu").at("uuid").get<std::string>()},
                       {"processes", provenance.at("processes").get<int>()},
                       {"n_samples", provenance.at("n_samples").get<int64_t>()}};
  record.entries = Json::array();
  for (const Json& entry : json.at("micro")) {
    record.entries.push_back(
        {{"name", entry.at("name").get<std::string>()},
         {"unit", entry.at("unit").get<std::string>()},
         {"value", json_fields::Write(SixDigits(entry.at("value").get<double>()))},
         {"percent_of_limit", RoundedOrNull(entry.at("percent_of_limit"))}});
  }
  return record;
}

}  // namespace

absl::StatusOr<std::optional<MicroRecord>> NewestMicroRecord(const std::string& data_dir,
                                                             const std::string& gpu_slug) {
  std::vector<std::string> paths = RecordsIn(data_dir);
  std::reverse(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    if (!std::filesystem::path(path).filename().string().starts_with(kNamePrefix)) continue;
    ASSIGN_OR_RETURN(const RecordFiles files, RecordFiles::Open(path));
    if (!files.Has(kMicroFile)) continue;
    ASSIGN_OR_RETURN(const std::string text, files.Read(kMicroFile));
    const auto damaged = [&](absl::string_view why) {
      return absl::DataLossError(absl::StrCat(files.PathOf(kMicroFile), ": ", why,
                                              "; write it again with micro/record.py collect"));
    };
    const absl::StatusOr<Json> json = ParseJson(text);
    if (!json.ok()) return damaged(json.status().message());
    try {
      if (json->at("gpu").at("slug") == gpu_slug) return Quote(files, *json);
    } catch (const Json::exception& error) {
      return damaged(error.what());
    }
  }
  return std::nullopt;
}

}  // namespace warpledger::ablations
