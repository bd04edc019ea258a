// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <type_traits>

#include "ablations/base/files.h"
#include "ablations/base/npy.h"
#include "ablations/judge/calibration_summary.h"
#include "ablations/judge/compare/compare.h"
#include "ablations/judge/compare/gate.h"
#include "ablations/judge/compare/ratchet.h"
#include "ablations/judge/profile_summary.h"
#include "ablations/measure/peers_merge.h"
#include "ablations/measure/worker.h"
#include "ablations/record/micro_record.h"
#include "ablations/record/profile.h"
#include "ablations/record/record_pack.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/subject.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/text.h"
#include "reports/compared/comparison.h"
#include "reports/compared/gate.h"
#include "reports/pages/profile.h"
#include "reports/pages/terminal.h"
#include "tests/reports/from_json.h"

namespace warpledger::fuzz {
namespace {

using ablations::JudgedRecord;
using Json = nlohmann::ordered_json;

std::map<std::string, int64_t>& MutableOutcomes() {
  static auto* outcomes = new std::map<std::string, int64_t>;
  return *outcomes;
}

template <typename Result>
bool Count(std::string_view what, const Result& result) {
  const absl::Status status = [&] {
    if constexpr (std::is_same_v<Result, absl::Status>) {
      return result;
    } else {
      return result.status();
    }
  }();
  ++MutableOutcomes()[absl::StrCat(Text(what), ": ", absl::StatusCodeToString(status.code()))];
  return status.ok();
}

void UseSummary(const absl::StatusOr<report::Summary>& summary) {
  if (!Count("view", summary)) return;
  report::VerdictTable(*summary);
  report::RenderReport(*summary, {});
  Count("readme", report::RenderReadmeSection(*summary, {}));
}

// What resuming took for whole, or repaired, must load. A finding aborts, so that
// record_fuzz names the execution.
template <typename Result>
void MustLoad(std::string_view what, const Result& loaded) {
  if (Count(what, loaded)) return;
  std::fprintf(stderr, "%s: %s\n", std::string(what).c_str(), loaded.status().ToString().c_str());
  std::abort();
}

// Going on with a damaged record: what is repaired must load afterwards.
void ResumeRecord(const Seed& seed, const Files& damaged) {
  const auto writer = ablations::RecordWriter::Resume(seed.dir, seed.judged.record.run);
  if (!Count("resume", writer)) return;
  // Of the build and the peers; resuming does not read them.
  constexpr const char* kNotResumed[] = {ablations::kResourcesFile, ablations::kCodegenFile,
                                         ablations::kLaunchFile, ablations::kPeersFile};
  const auto record = ablations::LoadRecord(seed.dir);
  if (std::any_of(std::begin(kNotResumed), std::end(kNotResumed),
                  [&](const char* file) { return damaged.contains(file); })) {
    Count("load after resume, other damage", record);
  } else {
    MustLoad("load after resume", record);
  }
}

void UseRun(const Seed& seed, const Files& damaged) {
  if (const auto summary = damaged.find(ablations::kSummaryFile); summary != damaged.end()) {
    const absl::StatusOr<Json> json = ablations::ParseJson(summary->second);
    if (Count("summary", json)) UseSummary(report::ViewOf(*json));
    if (damaged.size() == 1) return;  // nothing else reads it
  }
  Count("peers", ablations::LoadPeerFindings(seed.dir, ablations::SdpaSubject().Peers()));
  const absl::StatusOr<ablations::BuildFacts> facts = ablations::LoadBaselineFacts(seed.dir);
  if (Count("facts", facts)) {
    const ablations::Ratchet ratchet = ablations::RunRatchet(*facts, *facts, {});
    ablations::RatchetText(ratchet);
    ablations::DumpFile(ablations::RatchetJson(ratchet));
  }
  const absl::StatusOr<ablations::Record> record = ablations::LoadRecord(seed.dir);
  if (Count("load", record)) {
    const absl::StatusOr<summary::Summary> summary =
        ablations::Summarize(*record, ablations::SdpaSubject(), kQuick);
    if (Count("summarize", summary)) {
      UseSummary(report::ViewOf(*summary, ablations::SdpaSubject()));
      const JudgedRecord judged = {*record, *summary};
      const summary::Comparison comparison = ablations::Compare(seed.judged, judged, kQuick);
      report::ComparisonText(comparison);
      report::ComparisonMarkdown(comparison);
      const absl::StatusOr<ablations::GateResult> gate =
          ablations::Gate(judged, seed.judged, {.bootstrap_resamples = kQuick.bootstrap_resamples});
      if (Count("gate", gate)) {
        report::GateJUnit(*gate);
        report::GateMarkdown(*gate);
        ablations::DumpFile(report::GateJson(*gate));
      }
    }
  }
  ResumeRecord(seed, damaged);
}

void UseCalibration(const Seed& seed, const Files& damaged) {
  if (const auto summary = damaged.find(ablations::kSummaryFile); summary != damaged.end()) {
    const absl::StatusOr<Json> json = ablations::ParseJson(summary->second);
    if (Count("calibration summary", json)) {
      Count("calibration page, damaged", report::RenderCalibration(*json, {}));
    }
    if (damaged.size() == 1) return;
  }
  const auto record = ablations::LoadCalibration(seed.dir);
  if (Count("calibration", record)) {
    const auto summary = ablations::SummarizeCalibration(*record, kQuick);
    if (Count("calibration judged", summary)) {
      report::CalibrationTable(*summary);
      report::RenderCalibration(*summary, {});
    }
  }
  {
    const auto writer = ablations::CalibrationWriter::Open(seed.dir, seed.header);
    if (!Count("calibration resumed", writer)) return;
  }
  MustLoad("calibration after resume", ablations::LoadCalibration(seed.dir));
}

void UseProfile(const Seed& seed, const Files& damaged) {
  if (const auto ncu = damaged.find(kNcuFile); ncu != damaged.end()) {
    Count("ncu", ablations::ParseNcuCsv(ncu->second));
  }
  const auto summary = ablations::SummarizeProfiles(seed.dir, ablations::SdpaSubject());
  if (Count("profiles", summary)) report::RenderProfileReport(*summary, {});
}

void UseMicro(const Seed& seed) {
  Count("micro",
        ablations::NewestMicroRecord(std::filesystem::path(seed.dir).parent_path(), "h200"));
}

void UseFormats(const Seed& seed, const Files& damaged) {
  for (const auto& [name, text] : damaged) {
    if (name == kJobFile) Count("job", ablations::FromText<ablations::WorkerJob>(text));
    if (name == kWaiversFile) Count("waivers", ablations::ParseWaivers(text));
    if (name == kNpyFile) Count("npy", ablations::ReadNpy(absl::StrCat(seed.dir, "/", kNpyFile)));
  }
}

void UsePack(const Files& damaged) {
  for (const auto& [name, text] : damaged) {
    if (name == kPackFile) Count("pack", ablations::DecodePack(text, name));
    if (name == kTarFile) Count("tar in a pack", ablations::DecodePack(PackOfTar(text), name));
  }
}

// What reading may write to besides what was damaged: resuming cuts tails off, and a
// calibration's header is renewed.
void Restore(const Seed& seed, const Files& damaged) {
  std::vector<std::string> names = {ablations::kRunFile, ablations::kSamplesFile,
                                    ablations::kChecksFile, ablations::kBlocksFile};
  for (const auto& [name, text] : damaged) names.push_back(name);
  for (const std::string& name : names) {
    const auto whole = seed.files.find(name);
    if (whole != seed.files.end()) WriteFileOrDie(seed.dir, name, whole->second);
  }
}

// Up to `end`, which is dropped.
std::string_view TakeUntil(char end, std::string_view* text) {
  const size_t at = std::min(text->find(end), text->size());
  const std::string_view taken = text->substr(0, at);
  text->remove_prefix(std::min(at + 1, text->size()));
  return taken;
}

// In memory where that exists: every execution rewrites a file. Removed when the
// program ends.
struct Scratch {
  Scratch() {
    path = absl::StrCat(std::filesystem::is_directory("/dev/shm")
                            ? "/dev/shm"
                            : std::filesystem::temp_directory_path().string(),
                        "/record_fuzz_XXXXXX");
    if (mkdtemp(path.data()) == nullptr) Die(absl::StrCat("can't make ", path));
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::string path;
};

}  // namespace

std::string EncodeInput(const std::string& seed, const Files& damaged) {
  std::string input = seed + "\n";
  for (const auto& [name, text] : damaged) {
    absl::StrAppend(&input, name, " ", text.size(), "\n", text);
  }
  return input;
}

const std::vector<Seed>& TheSeeds() {
  static const Scratch scratch;
  static const std::vector<Seed> seeds = [] {
    const char* data = std::getenv("WARPLEDGER_FUZZ_DATA");
    return MakeSeeds(data != nullptr ? data : WARPLEDGER_SOURCE_DIR "/reports/data", scratch.path);
  }();
  return seeds;
}

const std::map<std::string, int64_t>& Outcomes() { return MutableOutcomes(); }

}  // namespace warpledger::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace warpledger::fuzz;  // NOLINT: the entry point can't be in it
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view name = TakeUntil('\n', &input);
  const auto seed = std::find_if(TheSeeds().begin(), TheSeeds().end(),
                                 [&](const Seed& s) { return s.name == name; });
  if (seed == TheSeeds().end()) return 0;
  Files damaged;
  while (!input.empty()) {
    const std::string file(TakeUntil(' ', &input));
    const std::string length(TakeUntil('\n', &input));
    uint64_t bytes = 0;
    if (!absl::SimpleAtoi(length, &bytes) || !seed->files.contains(file)) break;
    damaged[file] = std::string(input.substr(0, bytes));
    input.remove_prefix(std::min<uint64_t>(bytes, input.size()));
  }
  if (damaged.empty()) return 0;
  for (const auto& [file, text] : damaged) WriteFileOrDie(seed->dir, file, text);
  switch (seed->kind) {
    case SeedKind::kRun:
      UseRun(*seed, damaged);
      break;
    case SeedKind::kCalibration:
      UseCalibration(*seed, damaged);
      break;
    case SeedKind::kProfile:
      UseProfile(*seed, damaged);
      break;
    case SeedKind::kMicro:
      UseMicro(*seed);
      break;
    case SeedKind::kFormats:
      UseFormats(*seed, damaged);
      break;
    case SeedKind::kPack:
      UsePack(damaged);
      break;
  }
  Restore(*seed, damaged);
  return 0;
}
