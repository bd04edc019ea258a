// SPDX-License-Identifier: Apache-2.0
// What the page of a profile record is made of: counters, times of the same
// machine code, ceilings that the microbenchmarks measured.

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

struct Timed {
  bool cumulative = false;
  std::string created_utc;
  std::string run_id;
  summary::Estimate p50_us;
};
using TimedKey = std::array<std::string, 3>;  // code_sha256, Subject::LaunchPart(), shape
// Times of the same code in several records, by their run_ids.
using Times = std::map<TimedKey, std::map<std::string, Timed>>;

// Cells of one run that may stand for this GPU's times.
void TakeTimes(const summary::Summary& run, const Subject& subject, const std::string& gpu,
               Times& times) {
  // The counters beside them are of a warm L2.
  if (run.provenance.gpu.name != gpu || run.provenance.cache == kCacheCold) return;
  const bool cumulative = subject.KindOf(run.design) == DesignKind::kCumulative;
  for (const summary::Cell& cell : run.cells) {
    const std::string code = cell.code_sha256.value_or("");
    if (code.empty() || !cell.p50_us.value || cell.correct != true) continue;
    // The first of its cells of this code counts.
    times[{code, subject.LaunchPart(cell.config), cell.shape}].try_emplace(
        run.run_id, Timed{cumulative, run.provenance.created_utc, run.run_id, cell.p50_us});
  }
}

absl::StatusOr<summary::Summary> SummaryOfRun(const std::string& path, const Subject& subject) {
  ASSIGN_OR_RETURN(const Record record, LoadRecord(path));
  return Summarize(record, subject);
}

// The summary of a run that may hold times of the profiled code. Empty: it holds none.
absl::StatusOr<std::optional<summary::Summary>> ReadTimes(const std::string& path,
                                                          const Subject& subject,
                                                          const std::vector<Profile>& profiles,
                                                          const SummaryAt& summary_of) {
  ASSIGN_OR_RETURN(const RecordFiles files, RecordFiles::Open(path));
  if (!files.Has(kSamplesFile) || !files.Has(kCodegenFile)) return std::nullopt;
  ASSIGN_OR_RETURN(const std::string code, files.Read(kCodegenFile));
  const bool has_code = std::any_of(profiles.begin(), profiles.end(), [&](const Profile& profile) {
    return !profile.code_sha256.empty() && absl::StrContains(code, profile.code_sha256);
  });
  if (!has_code) return std::nullopt;
  return summary_of ? summary_of(path) : SummaryOfRun(path, subject);
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
std::vector<summary::Ceiling> Ceilings(const MicroRecord& micro, const std::set<std::string>& roofs,
                                       const summary::ProfiledGpu& gpu) {
  std::vector<summary::Ceiling> out;
  for (const CeilingSource& source : kCeilings) {
    if (source.per_clock_per_sm && !roofs.contains(source.name)) continue;
    for (const Json& entry : micro.entries) {
      if (TextOf(entry, "name") != source.micro || TextOf(entry, "unit") != source.unit) continue;
      const auto value = entry.find("value");
      if (value == entry.end() || !value->is_number()) continue;
      const double per_unit =
          source.per_clock_per_sm ? gpu.sm_count * gpu.max_sm_clock_mhz * 1e6 : 1;
      out.push_back({.name = source.name,
                     .per_s = value->get<double>() * source.per_value * per_unit,
                     .of = source.per_clock_per_sm ? "flop" : "bytes",
                     .micro = source.micro,
                     .run = TextOf(micro.provenance, "run_id")});
      break;
    }
  }
  return out;
}

// Which profiled configurations are one step apart: by the first design that adds the
// toggle to them, which is the ladder where it has it.
std::vector<summary::ProfiledStep> Steps(
    const Subject& subject, const std::map<std::string, std::string>& variant_of_config) {
  std::vector<summary::ProfiledStep> out;
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
      out.push_back({arm.toggle, base->second, candidate->second});
    }
  }
  return out;
}

double MetricOr(const Profile& profile, const char* name, double otherwise) {
  const auto found = profile.launch.metrics.find(name);
  return found == profile.launch.metrics.end() ? otherwise : found->second.value;
}

}  // namespace

absl::StatusOr<summary::ProfileSummary> SummarizeProfiles(const std::string& path,
                                                          const Subject& subject,
                                                          const SummaryAt& summary_of) {
  ASSIGN_OR_RETURN(const RecordFiles files, RecordFiles::Open(path));
  ASSIGN_OR_RETURN(ProfileRecord record, LoadProfiles(path));
  for (const ShapeInfo& shape : record.info.shapes) {
    if (absl::Status status = subject.CheckProblem(shape); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kProfileFile, ": shape '", shape.name, "': ", status.message()));
    }
  }
  const auto first = std::find_if(record.profiles.begin(), record.profiles.end(),
                                  [](const Profile& p) { return p.reason.empty(); });
  if (first == record.profiles.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " holds no profile that worked; profiles.jsonl says why of each"));
  }
  summary::ProfileSummary out;
  const std::string& gpu = first->launch.gpu;
  out.gpu = {
      .name = gpu,
      .slug = DeviceSlug(gpu),
      .sm_count = MetricOr(*first, "device__attribute_multiprocessor_count", 0),
      .max_sm_clock_mhz = MetricOr(*first, "device__attribute_max_gpu_frequency_khz", 0) / 1e3};
  out.provenance = std::move(record.info);
  // What the record is called where it lies; a run was told where to write, and no more.
  out.provenance.run_id = files.name();
  subject.AddShownNames(out.provenance.shapes);

  Times times;
  std::error_code error;
  const std::string beside = fs::weakly_canonical(files.path(), error).parent_path().string();
  for (const std::string& sibling : RecordsIn(beside)) {
    const absl::StatusOr<std::optional<summary::Summary>> run =
        ReadTimes(sibling, subject, record.profiles, summary_of);
    if (!run.ok()) {
      out.skipped.push_back(fs::path(sibling).filename().string());
    } else if (*run) {
      TakeTimes(**run, subject, gpu, times);
    }
  }

  std::map<std::string, std::string> variant_of_config;
  std::set<std::string> roofs;
  const std::vector<const Timed*> timed = ChooseTimes(record.profiles, subject, times);
  for (size_t i = 0; i < timed.size(); ++i) {
    summary::TimedProfile& profile = out.profiles.emplace_back();
    static_cast<Profile&>(profile) = record.profiles[i];
    if (timed[i] != nullptr) {
      profile.p50_us = timed[i]->p50_us;
      profile.timed_in = timed[i]->run_id;
    }
    if (std::string roof = subject.RoofOf(profile.config); !roof.empty()) profile.roof = roof;
    if (!profile.reason.empty()) continue;
    variant_of_config.emplace(profile.config, profile.variant);
    if (profile.roof) roofs.insert(*profile.roof);
  }
  out.steps = Steps(subject, variant_of_config);
  const absl::StatusOr<std::optional<MicroRecord>> micro = NewestMicroRecord(beside, out.gpu.slug);
  if (!micro.ok()) {
    out.skipped.emplace_back("micro.json");
  } else if (*micro) {
    out.ceilings = Ceilings(**micro, roofs, out.gpu);
  }
  return out;
}

}  // namespace warpledger::ablations
