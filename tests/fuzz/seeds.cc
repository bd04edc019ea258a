// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/seeds.h"

#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "ablations/base/files.h"
#include "ablations/base/npy.h"
#include "ablations/judge/summarize.h"
#include "ablations/measure/worker.h"
#include "ablations/plan/calibration.h"
#include "ablations/plan/fleet/fleet.h"
#include "ablations/record/micro_record.h"
#include "ablations/record/profile.h"
#include "ablations/record/record_files.h"
#include "ablations/record/record_lines.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/subject.h"
#include "ablations/subjects/study/study.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/common/text.h"
#include "reports/pages/pages.h"
#include "tests/reports/from_json.h"

namespace warpledger::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kKept = 2;  // processes, and blocks of each
constexpr int kKeptSteps = 3;

Json MustParse(std::string_view text) {
  absl::StatusOr<Json> json = ablations::ParseJson(text);
  if (!json.ok()) Die(json.status().ToString());
  return *std::move(json);
}

template <typename T>
T Must(absl::StatusOr<T> result, std::string_view what) {
  if (!result.ok()) Die(absl::StrCat(Text(what), ": ", result.status().ToString()));
  return *std::move(result);
}

// The arms of `run` that a small record keeps: the first steps and their bases (of a
// factorial, all cells of its first two toggles), the controls, now of the last of
// them, the floor, and a peer.
Json KeptArms(const Json& run) {
  const bool factorial = absl::StartsWith(run["design"].get<std::string>(), "factorial");
  std::set<std::string> needed;
  std::set<std::string> toggles;
  int steps = 0;
  for (const Json& arm : run["arms"]) {
    const auto role = arm["role"].get<std::string>();
    if (role != ablations::kRoleStep && role != ablations::kRoleWithout) continue;
    const auto toggle = arm["toggle"].get<std::string>();
    const bool wanted =
        factorial ? toggles.contains(toggle) || toggles.size() < 2 : steps < kKeptSteps;
    if (!wanted || (factorial && !needed.empty() && !needed.contains(arm["base"]))) continue;
    ++steps;
    toggles.insert(toggle);
    needed.insert(arm["name"]);
    needed.insert(arm["base"]);
  }
  // Some designs have controls alone beside what they are held against.
  for (const Json& arm : run["arms"]) {
    if (steps == 0 && arm["role"] == ablations::kRoleBase) needed.insert(arm["name"]);
  }
  Json kept = Json::array();
  Json last;
  bool has_peer = false;
  for (Json arm : run["arms"]) {
    const auto role = arm["role"].get<std::string>();
    if (role == ablations::kRoleAa || role == ablations::kRoleNull) {
      arm["base"] = last["name"];
      arm["config"] = last["config"];
      if (role == ablations::kRoleNull) {
        arm["config"] =
            absl::StrCat(last["config"].get<std::string>(), "+", arm["toggle"].get<std::string>());
      }
    } else if (role == ablations::kRolePeer) {
      if (has_peer) continue;
      has_peer = true;
    } else if (role != ablations::kRoleFloor) {
      if (!needed.contains(arm["name"])) continue;
      last = arm;
    }
    kept.push_back(arm);
  }
  return kept;
}

std::set<std::string> Values(const Json& rows, const char* key) {
  std::set<std::string> values;
  for (const Json& row : rows) values.insert(row[key].get<std::string>());
  return values;
}

// The rows whose `key` is one of `values`, the first `most` of each.
Json KeptRows(const Json& rows, const char* key, const std::set<std::string>& values, int most) {
  Json kept = Json::array();
  std::map<std::string, int> counts;
  for (const Json& row : rows) {
    const auto value = row[key].get<std::string>();
    if (values.contains(value) && ++counts[value] <= most) kept.push_back(row);
  }
  return kept;
}

// The lines of kept arms on the kept shape, renumbered: blocks hold fewer samples.
std::string KeptLines(std::string_view text, const Json& run) {
  const std::set<std::string> arms = Values(run["arms"], "name");
  const std::set<std::string> shapes = Values(run["shapes"], "name");
  std::vector<Json> lines;
  std::map<std::string, std::vector<size_t>> blocks;
  for (const absl::string_view line : absl::StrSplit(Text(text), '\n', absl::SkipEmpty())) {
    Json json = MustParse({line.data(), line.size()});
    json.erase("sum");  // of the line as it was; lines without one are those of older records
    // A call is described once for all processes.
    if (json.value("process", 0) >= kKept || !arms.contains(json["arm"]) ||
        !shapes.contains(json["shape"])) {
      continue;
    }
    if (json.contains("block")) {
      if (json["block"].get<int>() >= kKept) continue;
      const bool peer = absl::StartsWith(json["arm"].get<std::string>(), ablations::kPeerPrefix);
      blocks[absl::StrCat(json["process"].get<int>(), "/", json["block"].get<int>(), "/", peer)]
          .push_back(lines.size());
      json["seq"] = lines.size();
    }
    lines.push_back(std::move(json));
  }
  if (run.contains("alone")) blocks.clear();  // there each sample is a visit by itself
  for (auto& [key, block] : blocks) {
    std::sort(block.begin(), block.end(),
              [&](size_t a, size_t b) { return lines[a]["order"] < lines[b]["order"]; });
    for (size_t order = 0; order < block.size(); ++order) {
      lines[block[order]]["order"] = order;
      lines[block[order]]["of"] = block.size();
    }
  }
  std::string out;
  for (const Json& line : lines) absl::StrAppend(&out, ablations::DumpLine(line), "\n");
  return out;
}

Files CutDown(Files files) {
  Json run = MustParse(files.at(ablations::kRunFile));
  run["processes"] = kKept;
  run["blocks_per_process"] = kKept;
  run["shapes"] = Json::array({run["shapes"][0]});
  run["arms"] = KeptArms(run);
  const std::set<std::string> configs = Values(run["arms"], "config");
  for (const char* name :
       {ablations::kResourcesFile, ablations::kCodegenFile, ablations::kLaunchFile}) {
    if (!files.contains(name)) continue;
    Json json = MustParse(files.at(name));
    // The last architecture's, which is the GPU's.
    Json& rows = json["instances"];
    if (rows[0].contains("arch")) std::reverse(rows.begin(), rows.end());
    rows = KeptRows(rows, "variant", configs, 1);
    files.at(name) = ablations::DumpFile(json);
  }
  if (files.contains(ablations::kPeersFile)) {
    Json json = MustParse(files.at(ablations::kPeersFile));
    json["peers"] = KeptRows(json["peers"], "name", Values(run["arms"], "name"), 1);
    for (Json& peer : json["peers"]) {
      peer["checks"] = KeptRows(peer["checks"], "shape", Values(run["shapes"], "name"), 1);
    }
    files.at(ablations::kPeersFile) = ablations::DumpFile(json);
  }
  for (const char* name :
       {ablations::kSamplesFile, ablations::kChecksFile, ablations::kCallsFile}) {
    if (files.contains(name)) files.at(name) = KeptLines(files.at(name), run);
  }
  files.at(ablations::kRunFile) = ablations::DumpFile(run);
  return files;
}

Files ReadRecord(const std::string& path) {
  const auto record = Must(ablations::RecordFiles::Open(path), path);
  Files files;
  for (const std::string& name : record.Names()) {
    if (!name.ends_with(".json") && !name.ends_with(".jsonl")) continue;
    files[name] = Must(record.Read(name), name);
  }
  return files;
}

// Paths of the records, folders and packs, in the folders of `data` that hold a file `name`; the
// newest of a kind, whose names end in the time, is the last.
std::vector<std::string> RecordsWith(const std::string& data, const char* name) {
  std::vector<std::string> paths;
  for (const std::string& gpu : ablations::RecordsIn(data)) {
    for (const std::string& path : ablations::RecordsIn(gpu)) {
      if (Must(ablations::RecordFiles::Open(path), path).Has(name)) paths.push_back(path);
    }
  }
  if (paths.empty()) Die(absl::StrCat("nothing under ", data, " holds a ", name));
  return paths;
}

Seed Placed(SeedKind kind, const std::string& name, const std::string& scratch, Files files,
            const std::string& below = "") {
  Seed seed;
  seed.kind = kind;
  seed.name = name;
  seed.dir = absl::StrCat(scratch, "/", name, below);
  seed.files = std::move(files);
  std::filesystem::create_directories(seed.dir);
  for (const auto& [file, text] : seed.files) WriteFileOrDie(seed.dir, file, text);
  return seed;
}

// Of no committed record: one whose last step is broken, and which looks after each process.
Files StoppedAndBroken(Files files) {
  Json run = MustParse(files.at(ablations::kRunFile));
  const ablations::StoppingRule rule = {
      .half_width = 0.01, .confidence = 0.95, .looks = {1, kKept}, .alpha_shares = {0.5, 0.5}};
  run["stopping"] = ablations::ToJson(rule);
  ablations::BrokenArm broken = {.arm = "",
                                 .shape = run["shapes"][0]["name"],
                                 .kind = "trap",
                                 .doing = "timing block 1",
                                 .reason = "unspecified launch failure"};
  for (const Json& arm : run["arms"]) {
    if (arm["role"] == ablations::kRoleStep) broken.arm = arm["name"];
  }
  files[ablations::kRunFile] = ablations::DumpFile(run);
  files[ablations::kBrokenFile] = ablations::DumpLine(ablations::ToJson(broken)) + "\n";
  return files;
}

// The samples as they are written today: the others have lost the sums of their lines, so that
// damage gets past these.
Files Summed(Files files) {
  std::string lines;
  for (const absl::string_view line :
       absl::StrSplit(files.at(ablations::kSamplesFile), '\n', absl::SkipEmpty())) {
    lines += ablations::SummedLine(MustParse({line.data(), line.size()}));
  }
  files[ablations::kSamplesFile] = lines;
  return files;
}

// Of no committed record either: each arm alone, so that a sample is a visit with its energy.
Files EachAlone(Files files) {
  Json run = MustParse(files.at(ablations::kRunFile));
  run["alone"] = ablations::ToJson(ablations::AlonePlan());
  files[ablations::kRunFile] = ablations::DumpFile(run);
  std::string visits;
  for (const absl::string_view line :
       absl::StrSplit(files.at(ablations::kSamplesFile), '\n', absl::SkipEmpty())) {
    Json visit = MustParse({line.data(), line.size()});
    visit["order"] = 0;
    visit["of"] = 1;
    visit["window_s"] = 1.0;
    visit["energy_j"] = 300.0 + visit["seq"].get<double>();
    visit["energy_s"] = 1.0;
    absl::StrAppend(&visits, ablations::DumpLine(visit), "\n");
  }
  files[ablations::kSamplesFile] = visits;
  return files;
}

Seed RunSeed(const std::string& design, Files files, const std::string& scratch) {
  Seed seed = Placed(SeedKind::kRun, design, scratch, std::move(files));
  seed.judged = Must(
      ablations::LoadJudged(
          seed.dir, [](const ablations::RunInfo&) { return &ablations::SdpaSubject(); }, kQuick),
      design);
  Must(report::RenderReport(ablations::ToJson(seed.judged.summary), {}), design);
  return seed;
}

// Two groups of two processes; the times are those of the first arms.
Seed CalibrationSeed(const std::string& data, const std::string& scratch) {
  const std::string path = RecordsWith(data, ablations::kBlocksFile).back();
  const auto record = Must(ablations::LoadCalibration(path), "the calibration");
  Seed seed = Placed(SeedKind::kCalibration, "calibration", scratch, {});
  seed.header = record.header;
  seed.header.plan.trial_processes = kKept;
  seed.header.plan.null_arms = 4;
  seed.header.plan.plants.resize(1);
  seed.header.plan.plants[0].arms = 2;
  ablations::RunInfo& run = seed.header.run;
  run.processes = 2 * kKept;
  run.blocks_per_process = kKept;
  run.design = ablations::PlanText(seed.header.plan);
  if (record.header.run.design == ablations::kCalibrateDesign) {
    run.design = ablations::kCalibrateDesign;
  }
  const ablations::Arm floor = run.arms.back();
  run.arms.clear();
  for (const ablations::PlannedArm& arm : ablations::ArmsOf(seed.header.plan)) {
    run.arms.push_back({arm.name, record.header.run.arms[0].config, arm.role, "", arm.base});
  }
  run.arms.push_back(floor);
  {
    const auto writer = Must(ablations::CalibrationWriter::Open(seed.dir, seed.header), "writing");
    const size_t arms = run.arms.size();
    for (ablations::CalibrationBlock block : record.blocks) {
      if (block.process >= run.processes || block.block >= kKept) continue;
      const auto cut = [&](auto& values) { values.resize(std::min(values.size(), arms)); };
      cut(block.launches);
      cut(block.us);
      cut(block.sm_mhz);
      cut(block.throttle);
      std::erase_if(block.order, [&](int arm) { return static_cast<size_t>(arm) >= arms; });
      if (const absl::Status status = writer->Append(block); !status.ok()) Die(status.ToString());
      if (block.block > 0) continue;
      const absl::Status status =
          writer->Append(ablations::CalibrationChecks{block.process, static_cast<int>(arms)});
      if (!status.ok()) Die(status.ToString());
    }
  }
  seed.files = ReadRecord(seed.dir);
  const auto small = Must(ablations::LoadCalibration(seed.dir), "the small calibration");
  Must(ablations::SummarizeCalibration(small, kQuick), "its summary");
  return seed;
}

// One launch, and the header and rows that ncu would print of its counters. In a
// folder of its own: the page is made of what lies beside it, too.
Seed ProfileSeed(const std::string& data, const std::string& scratch) {
  Files files = ReadRecord(RecordsWith(data, ablations::kProfileFile).back());
  std::string& lines = files.at(ablations::kProfilesFile);
  lines.resize(lines.find('\n') + 1);
  Seed seed = Placed(SeedKind::kProfile, "profile", scratch, std::move(files), "/profile-1");
  const auto summary =
      Must(ablations::SummarizeProfiles(seed.dir, ablations::SdpaSubject()), "the profiles");
  report::RenderProfileReport(summary, {});
  const auto record = Must(ablations::LoadProfiles(seed.dir), "the profiles");
  std::string ncu =
      "==PROF== Connected to process 1\n\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"CC\","
      "\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  for (const auto& [name, metric] : record.profiles.at(0).launch.metrics) {
    absl::StrAppend(&ncu, "\"0\",\"sdpa_x(Params)\",\"(64, 1, 1)\",\"(8, 1, 1)\",\"9.0\",\"", name,
                    "\",\"", metric.unit, "\",\"", metric.value, "\"\n");
  }
  if (!ablations::ParseNcuCsv(ncu).ok()) Die("the seed of ncu's output is refused");
  seed.files[kNcuFile] = ncu;
  return seed;
}

Seed MicroSeed(const std::string& data, const std::string& scratch) {
  const std::string path = RecordsWith(data, ablations::kMicroFile).back();
  Json json = MustParse(Must(ablations::ReadRecordFile(path, ablations::kMicroFile), path));
  while (json["micro"].size() > 3) json["micro"].erase(json["micro"].size() - 1);
  Seed seed = Placed(SeedKind::kMicro, "micro", scratch,
                     {{ablations::kMicroFile, ablations::DumpFile(json)}}, "/micro-1");
  const auto found = Must(ablations::NewestMicroRecord(absl::StrCat(scratch, "/micro"),
                                                       json["gpu"]["slug"].get<std::string>()),
                          "the microbenchmarks");
  if (!found) Die("the seed of the microbenchmarks is not found");
  return seed;
}

Seed FormatsSeed(const std::string& scratch) {
  ablations::WorkerJob job;
  job.design = "ladder";
  job.shapes = {"small"};
  job.blocks = 4;
  job.cache = "warm";
  job.done = {{"small", 3}};
  job.excluded = {{"ladder:kv_tiling", "small"}};
  Must(ablations::FromText<ablations::WorkerJob>(ablations::DumpLine(ablations::ToJson(job))),
       "the worker's job");
  const ablations::Fleet fleet = {
      .tasks = {{.name = "ladder_0", .group = "ladder", .shapes = {"small"}, .flags = {"--seed=1"}},
                {.name = "ladder_1", .group = "ladder", .shapes = {"long"}, .flags = {}}}};
  Files files = {
      {ablations::kFleetFile, ablations::DumpFile(ablations::ToJson(fleet))},
      {kJobFile, ablations::DumpLine(ablations::ToJson(job))},
      {kWaiversFile,
       "kv_tiling sm_90 registers 40 a reason\n# why\nwmma_qk sm_80 spill_bytes 8 x\n"},
      {kFlagsFile,
       "ladder\nfactorial:kv_tiling,warp_shuffle\nmission_b,b1_h32x8_s1x8192_d128_causal_bf16"
       "\ncalibrate:wmma_pv;processes=5;family=1;nulls=2;plants=5%x2@100\n2 * rows * cols + "
       "max(rows, 3)\n"}};
  Seed seed = Placed(SeedKind::kFormats, "formats", scratch, std::move(files));
  Must(ablations::LoadFleet(seed.dir), "the fleet");
  const std::string npy = absl::StrCat(seed.dir, "/", kNpyFile);
  const std::vector<std::byte> zeros(48);
  if (!ablations::WriteNpy(npy, {2, 3, 4}, ablations::NpyType::kFloat16, zeros).ok()) Die(npy);
  seed.files[kNpyFile] = Must(ablations::ReadFile(npy), kNpyFile);
  return seed;
}

Seed DtypesSeed(const std::string& data, const std::string& scratch) {
  const std::string path = RecordsWith(data, ablations::kDtypesFile).back();
  Json json = MustParse(Must(ablations::ReadRecordFile(path, ablations::kDtypesFile), path));
  Must(report::RenderDtypes(json), path);
  Json& cells = json["cells"];
  while (cells.size() > 6) cells.erase(cells.size() - 1);
  return Placed(SeedKind::kDtypes, "dtypes", scratch,
                {{ablations::kDtypesFile, ablations::DumpFile(json)}});
}

Seed StudySeed(const std::string& source, const std::string& scratch) {
  const std::string folder = absl::StrCat(source, "/ablations/subjects/study/template");
  Files files;
  for (const char* name : {kStudyFile, "kernel.cu", "reference.py"}) {
    files[name] = Must(ablations::ReadFile(absl::StrCat(folder, "/", name)), name);
  }
  std::string& toml = files.at(kStudyFile);
  for (size_t at = 0; (at = toml.find("STUDY_NAME")) != std::string::npos;) {
    toml.replace(at, std::string_view("STUDY_NAME").size(), "softmax");
  }
  Seed seed = Placed(SeedKind::kStudy, "study", scratch, std::move(files));
  Must(ablations::StudyFile::Load(seed.dir), "the study");
  seed.files = {{kStudyFile, seed.files.at(kStudyFile)}};
  seed.others = {"kernel.cu", "reference.py"};
  return seed;
}

// A pack of a small record, and the archive in it: of the frame alone hardly any damage passes its
// checksum.
Seed PackSeed(const Seed& run, const std::string& scratch) {
  const std::string pack = Must(ablations::EncodePack({"mine", run.files}), "a pack");
  std::string tar(ablations::kMaxPackBytes, '\0');
  tar.resize(ZSTD_decompress(tar.data(), tar.size(), pack.data(), pack.size()));
  Must(ablations::DecodePack(PackOfTar(tar), kTarFile), "a pack");
  return Placed(SeedKind::kPack, "pack", scratch, {{kPackFile, pack}, {kTarFile, tar}});
}

}  // namespace

std::string PackOfTar(std::string_view tar) {
  std::string pack(ZSTD_compressBound(tar.size()), '\0');
  pack.resize(ZSTD_compress(pack.data(), pack.size(), tar.data(), tar.size(), 1));
  return pack;
}

void Die(std::string_view why) {
  std::fprintf(stderr, "record_fuzz: %s\n", std::string(why).c_str());
  std::exit(2);
}

void WriteFileOrDie(const std::string& dir, const std::string& name, std::string_view text) {
  std::FILE* file = std::fopen(absl::StrCat(dir, "/", name).c_str(), "wb");
  if (file == nullptr) Die(absl::StrCat("can't write ", dir, "/", name));
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

std::vector<Seed> MakeSeeds(const std::string& data, const std::string& scratch) {
  std::map<std::string, std::string> newest;  // by design
  for (const std::string& path : RecordsWith(data, ablations::kSamplesFile)) {
    const Json run = MustParse(Must(ablations::ReadRecordFile(path, ablations::kRunFile), path));
    // A study's record is judged by the study, whose own seed is below.
    if (run.contains("definition")) continue;
    newest[run["design"].get<std::string>() + (run.contains("alone") ? "_alone" : "")] = path;
  }
  std::vector<Seed> seeds;
  for (const auto& [design, path] : newest) {
    seeds.push_back(RunSeed(design, CutDown(ReadRecord(path)), scratch));
  }
  seeds.push_back(
      RunSeed("stopped", StoppedAndBroken(CutDown(ReadRecord(newest.at("ladder")))), scratch));
  seeds.push_back(RunSeed("summed", Summed(CutDown(ReadRecord(newest.at("ladder")))), scratch));
  seeds.back().summed = true;
  seeds.push_back(RunSeed("alone", EachAlone(CutDown(ReadRecord(newest.at("ladder")))), scratch));
  seeds.push_back(CalibrationSeed(data, scratch));
  seeds.push_back(ProfileSeed(data, scratch));
  seeds.push_back(MicroSeed(data, scratch));
  seeds.push_back(FormatsSeed(scratch));
  seeds.push_back(PackSeed(seeds.front(), scratch));
  seeds.push_back(DtypesSeed(data, scratch));
  seeds.push_back(StudySeed(absl::StrCat(data, "/../.."), scratch));
  return seeds;
}

}  // namespace warpledger::fuzz
