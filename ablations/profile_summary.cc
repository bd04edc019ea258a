// What the page of a profile record is made of: counters, times of the same
// machine code, ceilings that the microbenchmarks measured.

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ablations/designs.h"
#include "ablations/files.h"
#include "ablations/json_fields.h"
#include "ablations/profile.h"
#include "ablations/store.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/device_facts.h"
#include "kernels/sdpa/variant.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// A ceiling and the microbenchmark that measures it.
struct CeilingSource {
  const char* name;
  const char* micro;
  const char* unit;       // of the microbenchmark
  double per_value;       // its unit in the ceiling's: FLOP of an FMA, bytes of a gigabyte
  bool per_clock_per_sm;  // else per second
};
constexpr CeilingSource kCeilings[] = {
    {"wgmma", "wgmma/m64n256k16_f16_rs/throughput/warpgroups_2", "FLOP/clk/SM", 1, true},
    {"mma.sync", "tensor_core/mma_m16n8k16_f16_f32/throughput", "FLOP/clk/SM", 1, true},
    {"fp32 FMA", "fma_shfl/ffma/throughput", "fma/clk/SM", 2, true},
    {"L2", "global_memory/l2_16B_cta_per_chunk/bandwidth", "GB/s", 1e9, false},
    {"DRAM", "global_memory/dram_16B/bandwidth", "GB/s", 1e9, false},
};

std::optional<Json> ReadJson(const fs::path& path) {
  const absl::StatusOr<std::string> text = ReadFile(path.string());
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<Json> json = ParseJson(*text);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  return *std::move(json);
}

Json NumberAt(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? Json(found->get<double>()) : Json(nullptr);
}

struct Timed {
  bool cumulative = false;
  std::string created_utc;
  std::string run_id;
  Json p50_us, low_us, high_us;
};
using TimedKey = std::array<std::string, 3>;  // code_sha256, LaunchPart(), shape

// What of a printed configuration reaches its launch and no machine code.
std::string LaunchPart(const std::string& config_name) {
  const std::optional<sdpa::Config> config = sdpa::ConfigFromName(config_name);
  if (!config) return "";
  const sdpa::Config compiled = sdpa::CompiledPart(*config);
  sdpa::Config launch;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (compiled.*row.field != (*config).*row.field) launch.*row.field = (*config).*row.field;
  }
  return sdpa::ConfigName(launch);
}

// Cells of one summary.json that may stand for this GPU's times.
void TakeTimes(const Json& summary, const std::string& gpu, std::map<TimedKey, Timed>& times) {
  const auto provenance = summary.find("provenance");
  const auto cells = summary.find("cells");
  if (provenance == summary.end() || cells == summary.end() || !cells->is_array()) return;
  if (!provenance->is_object()) return;
  const auto gpu_json = provenance->find("gpu");
  if (gpu_json == provenance->end()) return;
  if (TextOf(*gpu_json, "name") != gpu) return;
  // The counters beside them are of a warm L2.
  if (TextOf(*provenance, "cache") == kCacheCold) return;
  const std::string created = TextOf(*provenance, "created_utc");
  const bool cumulative = IsCumulative(TextOf(summary, "design"));
  for (const Json& cell : *cells) {
    const std::string code = TextOf(cell, "code_sha256");
    const Json p50 = NumberAt(cell, "p50_us");
    if (code.empty() || p50.is_null()) continue;  // a code: it is an object
    const auto correct = cell.find("correct");
    if (correct == cell.end() || *correct != true) continue;
    Timed& known = times[{code, LaunchPart(TextOf(cell, "config")), TextOf(cell, "shape")}];
    // A ladder's time before that of a design that times the same code among other arms, so
    // that this page and the ladder's show one figure; then the newest, and its first cell.
    if (std::pair(known.cumulative, known.created_utc) >= std::pair(cumulative, created)) continue;
    known = {cumulative,
             created,
             TextOf(summary, "run_id"),
             p50,
             NumberAt(cell, "ci_low_us"),
             NumberAt(cell, "ci_high_us")};
  }
}

// The ceilings that a micro.json holds, in FLOP/s or bytes/s.
Json Ceilings(const Json& micro, const std::string& run, double sm_count, double clock_hz) {
  Json out = Json::array();
  for (const CeilingSource& source : kCeilings) {
    for (const Json& entry : micro) {
      if (TextOf(entry, "name") != source.micro || TextOf(entry, "unit") != source.unit) continue;
      const Json value = NumberAt(entry, "value");
      if (value.is_null()) continue;
      out.push_back({{"name", source.name},
                     {"per_s", value.get<double>() * source.per_value *
                                   (source.per_clock_per_sm ? sm_count * clock_hz : 1)},
                     {"of", source.per_clock_per_sm ? "flop" : "bytes"},
                     {"micro", source.micro},
                     {"run", run}});
      break;
    }
  }
  return out;
}

// Which profiled configurations are one step apart: by the first design that adds the
// toggle to them, which is the ladder where it has it.
Json Steps(const std::map<std::string, std::string>& variant_of_config) {
  Json out = Json::array();
  std::set<std::string> seen;
  for (const Design& design : AllDesigns()) {
    std::map<std::string, std::string> config_of;
    for (const DesignArm& arm : design.arms) config_of[arm.name] = sdpa::ConfigName(arm.config);
    for (const DesignArm& arm : design.arms) {
      if (arm.role != kRoleStep || seen.contains(arm.toggle)) continue;
      const auto base = variant_of_config.find(config_of[arm.base]);
      const auto candidate = variant_of_config.find(config_of[arm.name]);
      if (base == variant_of_config.end() || candidate == variant_of_config.end()) continue;
      seen.insert(arm.toggle);
      out.push_back(
          {{"toggle", arm.toggle}, {"base", base->second}, {"candidate", candidate->second}});
    }
  }
  return out;
}

double MetricOr(const Profile& profile, const char* name, double otherwise) {
  const auto found = profile.launch.metrics.find(name);
  return found == profile.launch.metrics.end() ? otherwise : found->second.value;
}

}  // namespace

absl::StatusOr<Json> SummarizeProfiles(const std::string& dir) {
  const absl::StatusOr<ProfileRecord> record = LoadProfiles(dir);
  if (!record.ok()) return record.status();
  const auto first = std::find_if(record->profiles.begin(), record->profiles.end(),
                                  [](const Profile& p) { return p.reason.empty(); });
  if (first == record->profiles.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, " holds no profile that worked; profiles.jsonl says why of each"));
  }
  const std::string gpu = first->launch.gpu;
  const double sm_count = MetricOr(*first, "device__attribute_multiprocessor_count", 0);
  const double clock_hz = MetricOr(*first, "device__attribute_max_gpu_frequency_khz", 0) * 1e3;

  std::map<TimedKey, Timed> times;
  std::vector<std::string> skipped;
  std::string newest_micro;
  std::error_code error;
  const fs::path here = fs::weakly_canonical(dir, error);
  std::vector<fs::path> siblings;
  for (const auto& entry : fs::directory_iterator(here.parent_path(), error)) {
    siblings.push_back(entry.path());
  }
  std::sort(siblings.begin(), siblings.end());
  for (const fs::path& sibling : siblings) {
    if (fs::exists(sibling / kSummaryFile, error)) {
      const std::optional<Json> summary = ReadJson(sibling / kSummaryFile);
      if (summary) {
        TakeTimes(*summary, gpu, times);
      } else {
        skipped.push_back(sibling.filename().string());
      }
    }
    // The names end in the time.
    if (fs::exists(sibling / "micro.json", error)) newest_micro = sibling.string();
  }

  Json profiles = Json::array();
  std::map<std::string, std::string> variant_of_config;
  for (const Profile& profile : record->profiles) {
    Json json = ToJson(profile);
    if (profile.reason.empty()) variant_of_config.emplace(profile.config, profile.variant);
    const auto timed = times.find({profile.code_sha256, LaunchPart(profile.config), profile.shape});
    const bool has_time = timed != times.end() && !profile.code_sha256.empty();
    json["p50_us"] = has_time ? timed->second.p50_us : Json(nullptr);
    json["ci_low_us"] = has_time ? timed->second.low_us : Json(nullptr);
    json["ci_high_us"] = has_time ? timed->second.high_us : Json(nullptr);
    json["timed_in"] = has_time ? Json(timed->second.run_id) : Json(nullptr);
    profiles.push_back(std::move(json));
  }
  Json ceilings = Json::array();
  if (!newest_micro.empty()) {
    const std::optional<Json> micro = ReadJson(fs::path(newest_micro) / "micro.json");
    if (micro && micro->contains("micro") && (*micro)["micro"].is_array()) {
      ceilings = Ceilings((*micro)["micro"], fs::path(newest_micro).filename().string(), sm_count,
                          clock_hz);
    } else {
      skipped.push_back(fs::path(newest_micro).filename().string());
    }
  }
  Json out = {{"schema_version", kProfileSchemaVersion},
              {"kind", "profile"},
              {"gpu",
               {{"name", gpu},
                {"slug", DeviceSlug(gpu)},
                {"sm_count", sm_count},
                {"max_sm_clock_mhz", clock_hz / 1e6}}}};
  out["provenance"] = ToJson(record->info);
  out["shapes"] = out["provenance"]["shapes"];
  out["profiles"] = profiles;
  out["steps"] = Steps(variant_of_config);
  out["ceilings"] = ceilings;
  out["skipped"] = skipped;
  return out;
}

}  // namespace warpledger::ablations
