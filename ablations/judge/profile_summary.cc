// SPDX-License-Identifier: Apache-2.0
// What the page of a profile record is made of: counters, times of the same
// machine code, ceilings that the microbenchmarks measured.

#include "ablations/judge/profile_summary.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ablations/base/json_fields.h"
#include "ablations/judge/summarize.h"
#include "ablations/record/micro_record.h"
#include "ablations/record/profile.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/device_facts.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// A ceiling and the microbenchmark that measures it. Of arithmetic ceilings, a subject says which
// its variants stand under (Subject::RoofOf).
struct CeilingSource {
  const char* name;
  const char* micro;
  const char* unit;       // of the microbenchmark
  double per_value;       // its unit in the ceiling's: FLOP of an FMA, bytes of a gigabyte
  bool per_clock_per_sm;  // else per second
};
constexpr CeilingSource kCeilings[] = {
    {"wgmma", "wgmma/m64n256k16_f16_rs/throughput/warpgroups_2", "FLOP/clk/SM", 1, true},
    {"wgmma, FP8", "wgmma/m64n256k32_e4m3_rs/throughput/warpgroups_2", "FLOP/clk/SM", 1, true},
    {"mma.sync", "tensor_core/mma_m16n8k16_f16_f32/throughput", "FLOP/clk/SM", 1, true},
    {"fp32 FMA", "fma_shfl/ffma/throughput", "fma/clk/SM", 2, true},
    {"L2", "global_memory/l2_16B_cta_per_chunk/bandwidth", "GB/s", 1e9, false},
    {"DRAM", "global_memory/dram_16B/bandwidth", "GB/s", 1e9, false},
};

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
using TimedKey = std::array<std::string, 3>;  // code_sha256, Subject::LaunchPart(), shape
// Times of the same code in several records, by their run_ids.
using Times = std::map<TimedKey, std::map<std::string, Timed>>;

// Cells of one summary.json that may stand for this GPU's times.
void TakeTimes(const Json& summary, const Subject& subject, const std::string& gpu, Times& times) {
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
  const bool cumulative = subject.KindOf(TextOf(summary, "design")) == DesignKind::kCumulative;
  for (const Json& cell : *cells) {
    const std::string code = TextOf(cell, "code_sha256");
    const Json p50 = NumberAt(cell, "p50_us");
    if (code.empty() || p50.is_null()) continue;  // a code: it is an object
    const auto correct = cell.find("correct");
    if (correct == cell.end() || *correct != true) continue;
    const std::string run_id = TextOf(summary, "run_id");
    // The first of its cells of this code counts.
    times[{code, subject.LaunchPart(TextOf(cell, "config")), TextOf(cell, "shape")}].try_emplace(
        run_id, Timed{cumulative, created, run_id, p50, NumberAt(cell, "ci_low_us"),
                      NumberAt(cell, "ci_high_us")});
  }
}

absl::StatusOr<Json> SummaryOfRun(const std::string& path, const Subject& subject) {
  ASSIGN_OR_RETURN(const Record record, LoadRecord(path));
  ASSIGN_OR_RETURN(const summary::Summary summary, Summarize(record, subject));
  return ToJson(summary);
}

// The times of a record of runs: of its summary, or of what `judge` makes of a pack that may hold
// times of the profiled code. False where it can't be read; other records have no times.
bool TakeTimesOf(const std::string& path, const Subject& subject, const std::string& gpu,
                 const std::vector<Profile>& profiles, const SummaryOf& summary_of, Times& times) {
  const absl::StatusOr<RecordFiles> files = RecordFiles::Open(path);
  if (!files.ok()) return false;
  if (files->Has(kSummaryFile)) {
    const absl::StatusOr<std::string> text = files->Read(kSummaryFile);
    const absl::StatusOr<Json> json = text.ok() ? ParseJson(*text) : text.status();
    if (!json.ok() || !json->is_object()) return false;
    TakeTimes(*json, subject, gpu, times);
    return true;
  }
  if (!files->packed() || !files->Has(kSamplesFile) || !files->Has(kCodegenFile)) return true;
  const absl::StatusOr<std::string> code = files->Read(kCodegenFile);
  const bool has_code =
      code.ok() && std::any_of(profiles.begin(), profiles.end(), [&](const Profile& profile) {
        return !profile.code_sha256.empty() && absl::StrContains(*code, profile.code_sha256);
      });
  if (!has_code) return true;
  const absl::StatusOr<Json> summary = summary_of ? summary_of(path) : SummaryOfRun(path, subject);
  if (!summary.ok()) return false;
  TakeTimes(*summary, subject, gpu, times);
  return true;
}

// Which record's time stands for each of the profiles, or null: at each shape that of the record
// which timed most of them. Records have boards and clocks of their own, so that times of two say
// little of which kernel is faster. Then a ladder's, so that this page and the ladder's show one
// figure; then the newest.
std::vector<const Timed*> ChooseTimes(const std::vector<Profile>& profiles, const Subject& subject,
                                      const Times& times) {
  std::vector<const std::map<std::string, Timed>*> found;
  std::map<std::pair<std::string, std::string>, int> timed;  // of a shape, by a run
  for (const Profile& profile : profiles) {
    const auto at =
        times.find({profile.code_sha256, subject.LaunchPart(profile.config), profile.shape});
    const bool has_time = at != times.end() && !profile.code_sha256.empty();
    found.push_back(has_time ? &at->second : nullptr);
    if (!has_time) continue;
    for (const auto& [run, unused] : at->second) ++timed[{profile.shape, run}];
  }
  std::vector<const Timed*> out;
  for (size_t i = 0; i < profiles.size(); ++i) {
    const Timed* best = nullptr;
    const auto rank = [&](const Timed& t) {
      return std::tuple(timed[{profiles[i].shape, t.run_id}], t.cumulative, t.created_utc);
    };
    if (found[i] != nullptr) {
      for (const auto& [run, candidate] : *found[i]) {
        if (best == nullptr || rank(candidate) > rank(*best)) best = &candidate;
      }
    }
    out.push_back(best);
  }
  return out;
}

// The ceilings that a micro.json holds, in FLOP/s or bytes/s: of arithmetic those of `roofs`.
Json Ceilings(const Json& micro, const std::set<std::string>& roofs, const std::string& run,
              double sm_count, double clock_hz) {
  Json out = Json::array();
  for (const CeilingSource& source : kCeilings) {
    if (source.per_clock_per_sm && !roofs.contains(source.name)) continue;
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
Json Steps(const Subject& subject, const std::map<std::string, std::string>& variant_of_config) {
  Json out = Json::array();
  std::set<std::string> seen;
  for (const PlannedDesign& design : subject.Designs()) {
    std::map<std::string, std::string> config_of;
    for (const PlannedArm& arm : design.arms) config_of[arm.name] = arm.config;
    for (const PlannedArm& arm : design.arms) {
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

absl::StatusOr<Json> SummarizeProfiles(const std::string& path, const Subject& subject,
                                       const SummaryOf& summary_of) {
  const absl::StatusOr<RecordFiles> files = RecordFiles::Open(path);
  if (!files.ok()) return files.status();
  const absl::StatusOr<ProfileRecord> record = LoadProfiles(path);
  if (!record.ok()) return record.status();
  const auto first = std::find_if(record->profiles.begin(), record->profiles.end(),
                                  [](const Profile& p) { return p.reason.empty(); });
  if (first == record->profiles.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " holds no profile that worked; profiles.jsonl says why of each"));
  }
  const std::string gpu = first->launch.gpu;
  const double sm_count = MetricOr(*first, "device__attribute_multiprocessor_count", 0);
  const double clock_hz = MetricOr(*first, "device__attribute_max_gpu_frequency_khz", 0) * 1e3;

  Times times;
  std::vector<std::string> skipped;
  std::error_code error;
  const std::string beside = fs::weakly_canonical(files->path(), error).parent_path().string();
  for (const std::string& sibling : RecordsIn(beside)) {
    if (!TakeTimesOf(sibling, subject, gpu, record->profiles, summary_of, times)) {
      skipped.push_back(fs::path(sibling).filename().string());
    }
  }

  Json profiles = Json::array();
  std::map<std::string, std::string> variant_of_config;
  std::set<std::string> roofs;
  const std::vector<const Timed*> timed = ChooseTimes(record->profiles, subject, times);
  for (size_t i = 0; i < timed.size(); ++i) {
    const Profile& profile = record->profiles[i];
    Json json = ToJson(profile);
    if (profile.reason.empty()) variant_of_config.emplace(profile.config, profile.variant);
    json["p50_us"] = timed[i] == nullptr ? Json(nullptr) : timed[i]->p50_us;
    json["ci_low_us"] = timed[i] == nullptr ? Json(nullptr) : timed[i]->low_us;
    json["ci_high_us"] = timed[i] == nullptr ? Json(nullptr) : timed[i]->high_us;
    json["timed_in"] = timed[i] == nullptr ? Json(nullptr) : Json(timed[i]->run_id);
    const std::string roof = subject.RoofOf(profile.config);
    json["roof"] = roof.empty() ? Json(nullptr) : Json(roof);
    if (!roof.empty() && profile.reason.empty()) roofs.insert(roof);
    profiles.push_back(std::move(json));
  }
  Json ceilings = Json::array();
  const absl::StatusOr<std::optional<MicroRecord>> micro =
      NewestMicroRecord(beside, DeviceSlug(gpu));
  if (!micro.ok()) {
    skipped.emplace_back("micro.json");
  } else if (*micro) {
    ceilings = Ceilings((*micro)->entries, roofs, TextOf((*micro)->provenance, "run_id"), sm_count,
                        clock_hz);
  }
  Json out = {{"schema_version", kProfileSchemaVersion},
              {"kind", "profile"},
              {"gpu",
               {{"name", gpu},
                {"slug", DeviceSlug(gpu)},
                {"sm_count", sm_count},
                {"max_sm_clock_mhz", clock_hz / 1e6}}}};
  out["provenance"] = ToJson(record->info);
  // What the record is called where it lies; a run was told where to write, and no more.
  out["provenance"]["run_id"] = files->name();
  out["shapes"] = out["provenance"]["shapes"];
  out["profiles"] = profiles;
  out["steps"] = Steps(subject, variant_of_config);
  out["ceilings"] = ceilings;
  out["skipped"] = skipped;
  return out;
}

}  // namespace warpledger::ablations
