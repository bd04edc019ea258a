#include "ablations/micro_record.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "ablations/files.h"
#include "ablations/rounded.h"
#include "ablations/store.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFolderPrefix[] = "micro-";
constexpr char kMicroFile[] = "micro.json";

std::vector<std::filesystem::path> NewestFirst(const std::string& data_dir) {
  std::vector<std::filesystem::path> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator it(data_dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code missing;
    if (absl::StartsWith(name, kFolderPrefix) &&
        std::filesystem::exists(it->path() / kMicroFile, missing)) {
      folders.push_back(it->path());
    }
  }
  std::sort(folders.rbegin(), folders.rend());
  return folders;
}

Json RoundedOrNull(const Json& value) {
  return value.is_number() ? Json(Rounded(value.get<double>())) : Json(nullptr);
}

MicroRecord Quote(const std::filesystem::path& folder, const Json& json) {
  MicroRecord record;
  record.dir = folder.string();
  const Json& provenance = json.at("provenance");
  record.provenance = {{"run_id", folder.filename().string()},
                       {"started", provenance.at("started").get<std::string>()},
                       {"gpu_uuid", json.at("gpu").at("uuid").get<std::string>()},
                       {"processes", provenance.at("processes").get<int>()},
                       {"n_samples", provenance.at("n_samples").get<int64_t>()}};
  record.entries = Json::array();
  for (const Json& entry : json.at("micro")) {
    record.entries.push_back({{"name", entry.at("name").get<std::string>()},
                              {"unit", entry.at("unit").get<std::string>()},
                              {"value", Rounded(entry.at("value").get<double>())},
                              {"percent_of_limit", RoundedOrNull(entry.at("percent_of_limit"))}});
  }
  return record;
}

}  // namespace

absl::StatusOr<std::optional<MicroRecord>> NewestMicroRecord(const std::string& data_dir,
                                                             const std::string& gpu_slug) {
  for (const std::filesystem::path& folder : NewestFirst(data_dir)) {
    const std::string file = (folder / kMicroFile).string();
    absl::StatusOr<std::string> text = ReadFile(file);
    if (!text.ok()) return text.status();
    try {
      const Json json = Json::parse(*text);
      if (json.at("gpu").at("slug") != gpu_slug) continue;
      return Quote(folder, json);
    } catch (const Json::exception& error) {
      return absl::DataLossError(
          absl::StrCat(file, ": ", error.what(), "; write it again with micro/record.py collect"));
    }
  }
  return std::nullopt;
}

}  // namespace warpledger::ablations
