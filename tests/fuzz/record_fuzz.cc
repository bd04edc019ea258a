// Feeds damaged records to everything that reads one. Nothing may crash, hang,
// throw or go wrong under the sanitizers (`--preset sanitize`): a damaged record
// is refused with an error status, or, where the damage is still a record, used.
//
//   record_fuzz [--data=DIR] [--executions=N | --seconds=S] [--seed=K] [--only=I]
//
// The seeds are the newest committed records of every design, cut down to two
// processes, blocks and shapes so that one execution takes milliseconds.
// Execution I of seed K is always the same damage; a crash names both, and
// `--seed=K --only=I` repeats it. Exit code 0: all survived.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/compare.h"
#include "ablations/files.h"
#include "ablations/gate.h"
#include "ablations/npy.h"
#include "ablations/peers_merge.h"
#include "ablations/profile.h"
#include "ablations/ratchet.h"
#include "ablations/store.h"
#include "ablations/summarize.h"
#include "ablations/verdict_table.h"
#include "ablations/worker.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/common/random.h"
#include "kernels/common/text.h"
#include "reports/profile.h"
#include "reports/render.h"
#include "tests/fuzz/mutate.h"

namespace warpledger::fuzz {
namespace {

using ablations::JudgedRecord;
using Json = nlohmann::ordered_json;
using Files = std::map<std::string, std::string>;

constexpr int kKept = 2;          // processes, blocks and shapes of a seed
constexpr int kHangSeconds = 60;  // sanitized code on a busy machine
const ablations::SummarizeOptions kQuick = {.bootstrap_resamples = 100};

// What the signal handler prints; set before each execution.
char g_current[256] = "start";

void OnSignal(int number) {
  const char* what = number == SIGALRM ? "HANG in " : "CRASH in ";
  // write(2) alone is allowed here; its result could only be reported by it.
  for (const char* text : {what, static_cast<const char*>(g_current), "\n"}) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
  }
  signal(SIGABRT, SIG_DFL);
  std::abort();
}

[[noreturn]] void Die(std::string_view why) {
  std::fprintf(stderr, "record_fuzz: %s\n", std::string(why).c_str());
  std::exit(2);
}

Json MustParse(std::string_view text) {
  absl::StatusOr<Json> json = ablations::ParseJson(text);
  if (!json.ok()) Die(json.status().ToString());
  return *std::move(json);
}

// --- Seeds ---------------------------------------------------------------------

// The lines of `text` that belong to the kept shapes, processes and blocks.
std::string KeptLines(std::string_view text, const Json& shapes) {
  std::string out;
  int64_t seq = 0;
  for (const absl::string_view line : absl::StrSplit(Text(text), '\n', absl::SkipEmpty())) {
    Json json = MustParse({line.data(), line.size()});
    bool kept = json["process"].get<int>() < kKept;
    bool known = false;
    for (const Json& shape : shapes) known = known || shape["name"] == json["shape"];
    kept = kept && known && (!json.contains("block") || json["block"].get<int>() < kKept);
    if (!kept) continue;
    if (json.contains("seq")) json["seq"] = seq++;
    absl::StrAppend(&out, ablations::DumpLine(json), "\n");
  }
  return out;
}

Files CutDown(Files files) {
  Json run = MustParse(files.at(ablations::kRunFile));
  run["processes"] = kKept;
  run["blocks_per_process"] = kKept;
  while (run["shapes"].size() > kKept) run["shapes"].erase(run["shapes"].size() - 1);
  for (const char* name : {ablations::kSamplesFile, ablations::kChecksFile}) {
    files.at(name) = KeptLines(files.at(name), run["shapes"]);
  }
  files.at(ablations::kRunFile) = ablations::DumpFile(run);
  return files;
}

struct Seed {
  std::string name;
  std::string dir;  // holds the undamaged files
  Files files;
  JudgedRecord judged;
};

void Write(const std::string& dir, const std::string& name, std::string_view text) {
  std::FILE* file = std::fopen(absl::StrCat(dir, "/", name).c_str(), "wb");
  if (file == nullptr) Die(absl::StrCat("can't write ", dir, "/", name));
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

std::vector<Seed> LoadSeeds(const std::string& data, const std::string& scratch) {
  std::map<std::string, std::filesystem::path> newest;  // by design; paths end in the time
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    if (entry.path().filename() != ablations::kRunFile) continue;
    const absl::StatusOr<std::string> text = ablations::ReadFile(entry.path());
    if (!text.ok()) Die(text.status().ToString());
    const Json run = MustParse(*text);
    if (!run.contains("design")) continue;
    if (!std::filesystem::exists(entry.path().parent_path() / ablations::kSamplesFile)) continue;
    std::filesystem::path& known = newest[run["design"].get<std::string>()];
    known = std::max(known, entry.path().parent_path());
  }
  std::vector<Seed> seeds;
  for (const auto& [design, path] : newest) {
    Seed seed;
    seed.name = design;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string name = entry.path().filename();
      if (!name.ends_with(".json") && !name.ends_with(".jsonl")) continue;
      absl::StatusOr<std::string> text = ablations::ReadFile(entry.path());
      if (!text.ok()) Die(text.status().ToString());
      seed.files[name] = *std::move(text);
    }
    seed.files = CutDown(std::move(seed.files));
    seed.dir = absl::StrCat(scratch, "/", design);
    std::filesystem::create_directories(seed.dir);
    for (const auto& [name, text] : seed.files) Write(seed.dir, name, text);
    // A seed that is refused would leave everything behind the door untested.
    absl::StatusOr<JudgedRecord> judged = ablations::LoadJudged(seed.dir, kQuick);
    if (!judged.ok()) Die(absl::StrCat(design, ": ", judged.status().ToString()));
    const absl::StatusOr<std::string> report = report::RenderReport(judged->summary, {});
    if (!report.ok()) Die(absl::StrCat(design, ": ", report.status().ToString()));
    seed.files[ablations::kSummaryFile] = ablations::DumpFile(judged->summary);
    seed.judged = *std::move(judged);
    seeds.push_back(std::move(seed));
  }
  if (seeds.empty()) Die(absl::StrCat("no record under ", data));
  return seeds;
}

// The newest profile record, a few launches of it, and what ncu prints.
struct ProfileSeed {
  std::string dir;
  Files files;
  std::string ncu_output;
};

ProfileSeed LoadProfileSeed(const std::string& data, const std::string& scratch) {
  constexpr size_t kLaunches = 6;
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    if (entry.path().filename() == ablations::kProfileFile) {
      newest = std::max(newest, entry.path().parent_path());
    }
  }
  if (newest.empty()) Die(absl::StrCat("no profiles under ", data));
  ProfileSeed seed;
  for (const char* name : {ablations::kProfileFile, ablations::kProfilesFile}) {
    absl::StatusOr<std::string> text = ablations::ReadFile(newest / name);
    if (!text.ok()) Die(text.status().ToString());
    seed.files[name] = *std::move(text);
  }
  std::string& lines = seed.files[ablations::kProfilesFile];
  size_t end = 0;
  for (size_t i = 0; i < kLaunches && end < lines.size(); ++i) end = lines.find('\n', end) + 1;
  lines.resize(end);
  seed.dir = absl::StrCat(scratch, "/profile");
  std::filesystem::create_directories(seed.dir);
  for (const auto& [name, text] : seed.files) Write(seed.dir, name, text);
  const absl::StatusOr<Json> summary = ablations::SummarizeProfiles(seed.dir);
  if (!summary.ok()) Die(summary.status().ToString());
  const absl::StatusOr<std::string> page = report::RenderProfileReport(*summary, {});
  if (!page.ok()) Die(page.status().ToString());
  // The header and rows that ncu would print of the first launch's counters.
  const absl::StatusOr<ablations::ProfileRecord> record = ablations::LoadProfiles(seed.dir);
  if (!record.ok() || record->profiles.empty()) Die("the profile seed is empty");
  seed.ncu_output =
      "==PROF== Connected to process 1\n\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"CC\","
      "\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  for (const auto& [name, metric] : record->profiles[0].launch.metrics) {
    absl::StrAppend(&seed.ncu_output,
                    "\"0\",\"sdpa_x(Params)\",\"(64, 1, 1)\",\"(8, 1, 1)\",\"9.0\",\"", name,
                    "\",\"", metric.unit, "\",\"", metric.value, "\"\n");
  }
  if (!ablations::ParseNcuCsv(seed.ncu_output).ok()) Die("the seed of ncu's output is refused");
  return seed;
}

// --- Targets -------------------------------------------------------------------

struct Tally {
  int64_t executions = 0;
  std::map<std::string, int64_t> outcomes;  // "load: OK", "report: INVALID_ARGUMENT"

  template <typename Result>
  bool Count(std::string_view what, const Result& result) {
    const absl::Status status = [&] {
      if constexpr (std::is_same_v<Result, absl::Status>) {
        return result;
      } else {
        return result.status();
      }
    }();
    ++outcomes[absl::StrCat(std::string(what), ": ", absl::StatusCodeToString(status.code()))];
    return status.ok();
  }
};

void UseSummary(const Json& summary, Tally& tally) {
  tally.Count("report", report::RenderReport(summary, {}));
  tally.Count("readme", report::RenderReadmeSection(summary, {}));
  tally.Count("table", ablations::VerdictTable(summary));
}

void UseRecord(const std::string& dir, const Seed& seed, Tally& tally) {
  tally.Count("peers", ablations::LoadPeerFindings(dir));
  const absl::StatusOr<ablations::BuildFacts> facts = ablations::LoadBaselineFacts(dir);
  if (tally.Count("facts", facts)) {
    const ablations::Ratchet ratchet = ablations::RunRatchet(*facts, *facts, {});
    ablations::RatchetText(ratchet);
    ablations::DumpFile(ablations::RatchetJson(ratchet));
  }
  const absl::StatusOr<ablations::Record> record = ablations::LoadRecord(dir);
  if (!tally.Count("load", record)) return;
  const absl::StatusOr<Json> summary = ablations::Summarize(*record, kQuick);
  if (!tally.Count("summarize", summary)) return;
  UseSummary(*summary, tally);
  const JudgedRecord damaged = {*record, *summary};
  const Json comparison = ablations::Compare(seed.judged, damaged, kQuick);
  ablations::ComparisonText(comparison);
  ablations::ComparisonMarkdown(comparison);
  const absl::StatusOr<ablations::GateResult> gate =
      ablations::Gate(damaged, seed.judged, {.bootstrap_resamples = 100});
  if (tally.Count("gate", gate)) {
    ablations::GateJUnit(*gate);
    ablations::GateMarkdown(*gate);
    ablations::DumpFile(ablations::GateJson(*gate));
  }
}

// Going on with a damaged record: what is repaired must load afterwards.
void ResumeRecord(const std::string& dir, const Seed& seed, Tally& tally) {
  const auto writer = ablations::RecordWriter::Resume(dir, seed.judged.record.run);
  if (!tally.Count("resume", writer)) return;
  if (!(*writer)->CompletedBlocks().empty()) {
    const absl::StatusOr<ablations::Record> record = ablations::LoadRecord(dir);
    tally.Count("load after resume", record);
  }
}

void UseSmallFormats(SplitMix64& random, const std::string& scratch, Tally& tally) {
  static const std::string* job = [] {
    ablations::WorkerJob sample;
    sample.design = "ladder";
    sample.shapes = {"small"};
    sample.cache = "warm";
    sample.done = {{"small", 3}};
    sample.excluded = {{"ladder:kv_tiling", "small"}};
    return new std::string(sample.ToJson());
  }();
  tally.Count("job", ablations::WorkerJob::FromJson(Mutate(*job, *job, random)));
  tally.Count("waivers",
              ablations::ParseWaivers(MutateBytes(
                  "kv_tiling sm_90 registers 40 a reason\n# why\nwmma_qk sm_80 spill_bytes 8 x\n",
                  random)));
  const std::string npy = absl::StrCat(scratch, "/array.npy");
  const std::vector<std::byte> zeros(48);
  if (!ablations::WriteNpy(npy, {2, 3, 4}, ablations::NpyType::kFloat16, zeros).ok()) Die(npy);
  const absl::StatusOr<std::string> bytes = ablations::ReadFile(npy);
  if (!bytes.ok()) Die(bytes.status().ToString());
  Write(scratch, "array.npy", MutateBytes(*bytes, random));
  tally.Count("npy", ablations::ReadNpy(npy));
}

void UseProfiles(const ProfileSeed& seed, SplitMix64& random, Tally& tally) {
  tally.Count("ncu",
              ablations::ParseNcuCsv(random.Below(2) == 0
                                         ? MutateBytes(seed.ncu_output, random)
                                         : MutateLines(seed.ncu_output, seed.ncu_output, random)));
  auto file = seed.files.begin();
  std::advance(file, static_cast<int64_t>(random.Below(seed.files.size())));
  Write(seed.dir, file->first, Mutate(file->second, file->second, random));
  const absl::StatusOr<Json> summary = ablations::SummarizeProfiles(seed.dir);
  if (tally.Count("profiles", summary)) {
    tally.Count("profile page", report::RenderProfileReport(*summary, {}));
    const std::string text = ablations::DumpFile(*summary);
    const absl::StatusOr<Json> damaged = ablations::ParseJson(MutateJson(text, random));
    if (damaged.ok()) {
      tally.Count("profile page, damaged", report::RenderProfileReport(*damaged, {}));
    }
  }
  Write(seed.dir, file->first, file->second);
}

void Execute(uint64_t number, uint64_t seed_of_all, const std::vector<Seed>& seeds,
             const ProfileSeed& profiles, const std::string& scratch, Tally& tally) {
  SplitMix64 random(MixSeed(seed_of_all, number));
  const Seed& seed = seeds[random.Below(seeds.size())];
  const Seed& donor = seeds[random.Below(seeds.size())];
  Files damaged;
  for (uint64_t n = 1 + random.Below(2); n > 0; --n) {
    auto file = seed.files.begin();
    std::advance(file, static_cast<int64_t>(random.Below(seed.files.size())));
    const auto same = donor.files.find(file->first);
    damaged[file->first] =
        Mutate(file->second, same == donor.files.end() ? "" : same->second, random);
  }
  std::snprintf(g_current, sizeof g_current, "execution %llu of seed %llu (%s)",
                static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(seed_of_all), seed.name.c_str());
  alarm(kHangSeconds);
  for (const auto& [name, text] : damaged) Write(seed.dir, name, text);
  if (const auto summary = damaged.find(ablations::kSummaryFile); summary != damaged.end()) {
    const absl::StatusOr<Json> json = ablations::ParseJson(summary->second);
    if (tally.Count("summary", json)) UseSummary(*json, tally);
  }
  UseRecord(seed.dir, seed, tally);
  ResumeRecord(seed.dir, seed, tally);
  UseSmallFormats(random, scratch, tally);
  UseProfiles(profiles, random, tally);
  // Resuming may have cut the tail of either file.
  damaged.try_emplace(ablations::kSamplesFile);
  damaged.try_emplace(ablations::kChecksFile);
  for (const auto& [name, text] : damaged) Write(seed.dir, name, seed.files.at(name));
  ++tally.executions;
}

struct Options {
  std::string data = "reports/data";
  int64_t executions = 1000;
  int64_t seconds = 0;
  uint64_t seed = 1;
  int64_t only = -1;
};

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    const auto& [name, value] = parts;
    bool ok = true;
    if (name == "--data") {
      options.data = value;
    } else if (name == "--executions") {
      ok = absl::SimpleAtoi(value, &options.executions);
    } else if (name == "--seconds") {
      ok = absl::SimpleAtoi(value, &options.seconds);
    } else if (name == "--seed") {
      ok = absl::SimpleAtoi(value, &options.seed);
    } else if (name == "--only") {
      ok = absl::SimpleAtoi(value, &options.only);
    } else {
      ok = false;
    }
    if (!ok) Die(absl::StrCat("what is ", argv[i], "? See the head of record_fuzz.cc"));
  }
  return options;
}

int Main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  signal(SIGALRM, &OnSignal);
  signal(SIGABRT, &OnSignal);
  // In memory where that exists: every execution rewrites a file.
  const bool has_shm = std::filesystem::is_directory("/dev/shm");
  std::string scratch =
      absl::StrCat(has_shm ? "/dev/shm" : std::filesystem::temp_directory_path().string(),
                   "/record_fuzz_XXXXXX");
  if (mkdtemp(scratch.data()) == nullptr) Die(absl::StrCat("can't make ", scratch));
  const std::vector<Seed> seeds = LoadSeeds(options.data, scratch);
  const ProfileSeed profiles = LoadProfileSeed(options.data, scratch);

  Tally tally;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  if (options.only >= 0) {
    Execute(static_cast<uint64_t>(options.only), options.seed, seeds, profiles, scratch, tally);
  } else if (options.seconds > 0) {
    for (uint64_t i = 0; seconds() < static_cast<double>(options.seconds); ++i) {
      Execute(i, options.seed, seeds, profiles, scratch, tally);
    }
  } else {
    for (int64_t i = 0; i < options.executions; ++i) {
      Execute(static_cast<uint64_t>(i), options.seed, seeds, profiles, scratch, tally);
    }
  }
  alarm(0);
  std::filesystem::remove_all(scratch);
  std::printf("seed %llu: %lld executions over %zu records survived in %.0f s\n",
              static_cast<unsigned long long>(options.seed),
              static_cast<long long>(tally.executions), seeds.size(), seconds());
  for (const auto& [what, count] : tally.outcomes) {
    std::printf("  %-36s %8lld\n", what.c_str(), static_cast<long long>(count));
  }
  return 0;
}

}  // namespace
}  // namespace warpledger::fuzz

// A finding aborts, so that the handler above names the execution. Too large an
// allocation must end this process, not the machine.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "hard_rss_limit_mb=4096:abort_on_error=1:handle_abort=0:detect_leaks=1";
}
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1:abort_on_error=1"; }

int main(int argc, char** argv) { return warpledger::fuzz::Main(argc, argv); }
