// SPDX-License-Identifier: Apache-2.0
// warpledger_micro: runs the cases of micro/*.cu under Google Benchmark.
//
// Each case runs with a fixed number of iterations: with manual time Google
// Benchmark has no cap on the wall clock and would otherwise repeat until its own
// idea of enough. One iteration is one sample; its repetitions are Google
// Benchmark's (--benchmark_repetitions=N), and the reported `value` is the median
// of a repetition's samples.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "kernels/common/nvml.h"
#include "kernels/common/standard_streams.h"
#include "micro/harness/cycle_runner.h"
#include "micro/harness/listing.h"
#include "micro/harness/microbenchmark.h"
#include "micro/harness/progress.h"
#include "micro/harness/raw_log.h"
#include "warpledger_build_info.h"

namespace warpledger::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kUsage[] =
    R"(warpledger_micro [--warpledger_list] [--warpledger_raw=FILE] [--warpledger_process=N]
                 [--warpledger_progress]
                 [Google Benchmark's flags: --benchmark_filter=REGEX,
                  --benchmark_repetitions=N, --benchmark_out=FILE, --help ...]

Microbenchmarks of one hardware question each; every case is one benchmark. To keep
what they say, with intervals over several processes and pages, use `warpledger
micro`, which runs this program.

Examples: warpledger_micro --benchmark_filter=exp_cost
          warpledger_micro --benchmark_filter='wgmma/.*latency' --benchmark_repetitions=3

  --warpledger_list       print all cases as JSON; needs no GPU
  --warpledger_raw=FILE   append every sample, one JSON object per line
                          (default: the environment's WARPLEDGER_MICRO_RAW, or none)
  --warpledger_process=N  number of this process among several, for the raw file
  --warpledger_progress   say on stderr how far the run is

Exit codes: 0 done; 1 a case failed; 2 wrong arguments, or no case matches the filter;
3 no GPU to run on.
)";
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitNoGpu = 3;

constexpr int kCycleIterations = 12;
constexpr int kTimeIterations = 12;

struct Flags {
  bool list = false;
  bool list_tests = false;  // Google Benchmark's: prints names, runs nothing
  bool help = false;
  bool progress = false;
  bool console = true;  // Google Benchmark's table on stdout, no other format
  int repetitions = 1;  // Google Benchmark's
  std::string filter;   // Google Benchmark's
  std::string raw_path;
  int process = 0;
  std::string error;
};

// Takes our flags out of argv and leaves Google Benchmark's.
Flags TakeFlags(int* argc, char** argv) {
  Flags flags;
  if (const char* path = std::getenv("WARPLEDGER_MICRO_RAW")) flags.raw_path = path;
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    absl::string_view text = argv[i];
    if (text == "--warpledger_list") {
      flags.list = true;
    } else if (absl::ConsumePrefix(&text, "--warpledger_raw=")) {
      flags.raw_path = std::string(text);
    } else if (absl::ConsumePrefix(&text, "--warpledger_process=")) {
      if (!absl::SimpleAtoi(text, &flags.process) || flags.process < 0) {
        flags.error =
            absl::StrCat("--warpledger_process needs a number from 0 on, not '", text, "'");
      }
    } else if (text == "--warpledger_progress") {
      flags.progress = true;
    } else {
      if (text == "--help") flags.help = true;
      absl::string_view value = text;
      // What our own reporter doesn't know is left to Google Benchmark's.
      if (absl::StartsWith(text, "--benchmark_color") ||
          absl::StartsWith(text, "--benchmark_counters_tabular") ||
          (absl::ConsumePrefix(&value, "--benchmark_format=") && value != "console")) {
        flags.console = false;
      }
      if (absl::ConsumePrefix(&value, "--benchmark_filter=")) flags.filter = std::string(value);
      if (absl::ConsumePrefix(&value, "--benchmark_repetitions=") &&
          !absl::SimpleAtoi(value, &flags.repetitions)) {
        flags.repetitions = 1;  // Google Benchmark says what is wrong with it
      }
      if (absl::StartsWith(text, "--benchmark_list_tests") &&
          text != "--benchmark_list_tests=false") {
        flags.list_tests = true;
      }
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  return flags;
}

// Google Benchmark's table under a heading that is true of this program.
class Console : public benchmark::ConsoleReporter {
 public:
  Console() : benchmark::ConsoleReporter(isatty(STDOUT_FILENO) != 0 ? OO_Color : OO_None) {}
  bool ReportContext(const Context& context) override {
    std::ostream& errors = GetErrorStream();
    std::ostringstream heading;
    SetErrorStream(&heading);
    const bool proceed = benchmark::ConsoleReporter::ReportContext(context);
    SetErrorStream(&errors);
    errors << ExplainDebugLibrary(heading.str());
    return proceed;
  }
};

// The GPU, its sensors and where samples go; shared by all cases.
class Bench {
 public:
  static absl::StatusOr<Bench> Create(const Flags& flags) {
    Bench bench;
    absl::StatusOr<DeviceFacts> facts = QueryDevice();
    if (!facts.ok()) return facts.status();
    bench.device_.facts = *facts;
    bench.device_.cc = 10 * facts->compute_major + facts->compute_minor;
    bench.process_ = flags.process;
    int device = 0;
    int memory_khz = 0;
    int bus_bits = 0;
    RETURN_IF_CUDA_ERROR(cudaGetDevice(&device), "asking for the current device");
    RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&bench.max_sm_khz_, cudaDevAttrClockRate, device),
                         "asking for the SM clock");
    RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, device),
                         "asking for the memory clock");
    RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device),
                         "asking for the width of the memory bus");
    // Two transfers per clock, on GDDR as on HBM.
    bench.dram_bytes_per_s_ = 2.0 * memory_khz * 1e3 * bus_bits / 8;
    if (absl::StatusOr<NvmlDevice> nvml = NvmlDevice::Open(facts->uuid); nvml.ok()) {
      bench.nvml_ = *std::move(nvml);
    } else {
      std::fprintf(stderr, "warpledger_micro: no clocks from NVML, so the maximum is assumed: %s\n",
                   std::string(nvml.status().message()).c_str());
    }
    absl::StatusOr<RawLog> log = RawLog::Open(flags.raw_path);
    if (!log.ok()) return log.status();
    bench.log_ = *std::move(log);
    return bench;
  }

  const MicroDevice& device() const { return device_; }

  void AddContext() const {
    benchmark::AddCustomContext("gpu", device_.facts.name);
    benchmark::AddCustomContext("gpu_slug", device_.facts.slug);
    benchmark::AddCustomContext("gpu_uuid", device_.facts.uuid);
    benchmark::AddCustomContext("compute_capability", absl::StrCat(device_.cc));
    benchmark::AddCustomContext("sm_count", absl::StrCat(device_.facts.sm_count));
    benchmark::AddCustomContext("max_sm_clock_mhz", absl::StrCat(max_sm_khz_ / 1000));
    benchmark::AddCustomContext("dram_gb_per_s", absl::StrCat(dram_bytes_per_s_ / 1e9));
    benchmark::AddCustomContext("nvcc", build_info::kNvcc);
    benchmark::AddCustomContext("warpledger_process", absl::StrCat(process_));
    // library_build_type, which Google Benchmark adds, says nothing of these times.
    benchmark::AddCustomContext("warpledger_timing",
                                "manual: cycles read on the GPU, or CUDA events");
  }

  // One repetition of a case.
  void Run(const MicroCase& micro_case, benchmark::State& state) {
    if (progress_) {
      const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start_;
      if (const auto line = progress_->Started(InfoOf(micro_case).name, since.count())) {
        std::fprintf(stderr, "  %s\n", line->c_str());
      }
    }
    // Google Benchmark's statistics read the first repetition's fields though it was
    // skipped (its issue 1406), so a case that failed fails as a whole.
    const std::string& name = InfoOf(micro_case).name;
    absl::Status status = failed_cases_.contains(name)
                              ? absl::FailedPreconditionError("an earlier repetition failed")
                              : absl::OkStatus();
    if (status.ok()) {
      status = std::visit([&](const auto& kind) { return RunKind(kind, state); }, micro_case);
    }
    if (!status.ok()) {
      failed_cases_.insert(name);
      // It doesn't return by itself, but every path to here has left the loop.
      state.SkipWithError(std::string(status.message()).c_str());
    }
  }

  bool failed() const { return !failed_cases_.empty(); }
  void ShowProgress(int runs) {
    progress_.emplace(runs);
    start_ = std::chrono::steady_clock::now();
  }

 private:
  struct Sensors {
    double sm_mhz = 0;
    NvmlSample nvml;
  };

  Sensors ReadSensors() const {
    Sensors sensors;
    if (nvml_) {
      if (absl::StatusOr<NvmlSample> sample = nvml_->Sample(); sample.ok()) sensors.nvml = *sample;
    }
    sensors.sm_mhz = sensors.nvml.sm_clock_mhz.value_or(max_sm_khz_ / 1000);
    return sensors;
  }

  absl::Status RunKind(const CycleCase& micro_case, benchmark::State& state) {
    absl::StatusOr<CycleRunner> runner = CycleRunner::Create(micro_case, device_);
    if (!runner.ok()) return runner.status();
    const int repetition = repetitions_[micro_case.about.name]++;
    SplitMix64 random(
        MixSeed(MixSeed(HashName(micro_case.about.name), process_ + 1), repetition + 1));
    const double sm_mhz = ReadSensors().sm_mhz;
    std::vector<Json> lines;
    std::vector<double> values, intercepts, r2s;
    for (auto _ : state) {
      const absl::StatusOr<CycleSample> sample = runner->Run(random);
      if (!sample.ok()) return sample.status();
      state.SetIterationTime(sample->fit.slope / (sm_mhz * 1e6));
      values.push_back(sample->value);
      intercepts.push_back(sample->fit.intercept);
      r2s.push_back(sample->fit.r2);
      Json line = Line(micro_case.about, repetition, lines.size(), sample->value);
      line["units"] = sample->units;
      line["cycles"] = sample->cycles;
      line["slope"] = sample->fit.slope;
      line["intercept"] = sample->fit.intercept;
      line["r2"] = sample->fit.r2;
      line["sms"] = sample->sms;
      lines.push_back(std::move(line));
    }
    const double value = Median(values);
    const Sensors sensors = ReadSensors();
    const bool latency = micro_case.measure == Measure::kLatency;
    const double cycles_per_unit = latency ? value : 1 / value;
    state.counters[latency ? "cycles" : "per_clk_sm"] = value;
    state.counters["ns"] = cycles_per_unit * 1e3 / sensors.sm_mhz;
    state.counters["intercept_cycles"] = Median(intercepts);
    state.counters["r2"] = Median(r2s);
    return Finish(micro_case.about, value, sensors, std::move(lines), state);
  }

  absl::Status RunKind(const TimeCase& micro_case, benchmark::State& state) {
    absl::StatusOr<LaunchFunction> launch = micro_case.setup(device_);
    if (!launch.ok()) return launch.status();
    absl::StatusOr<GraphTimer> timer = GraphTimer::Create();
    if (!timer.ok()) return timer.status();
    absl::StatusOr<TimedGraph> graph = timer->CaptureForPlan(micro_case.plan, *launch);
    if (!graph.ok()) return graph.status();
    const int repetition = repetitions_[micro_case.about.name]++;
    std::vector<Json> lines;
    std::vector<double> values;
    for (auto _ : state) {
      const absl::StatusOr<double> us = timer->ReplayUs(*graph);
      if (!us.ok()) return us.status();
      state.SetIterationTime(*us * 1e-6);
      const double value =
          micro_case.rate ? micro_case.units / (*us * 1e3) : *us / micro_case.units;
      values.push_back(value);
      Json line = Line(micro_case.about, repetition, lines.size(), value);
      line["us"] = *us;
      line["launches"] = graph->launches();
      lines.push_back(std::move(line));
    }
    const double value = Median(values);
    state.counters["us"] =
        micro_case.rate ? micro_case.units / value / 1e3 : value * micro_case.units;
    return Finish(micro_case.about, value, ReadSensors(), std::move(lines), state);
  }

  absl::Status RunKind(const ValueCase& micro_case, benchmark::State& state) {
    const int repetition = repetitions_[micro_case.about.name]++;
    std::vector<Json> lines;
    double value = 0;
    for (auto _ : state) {
      const auto start = std::chrono::steady_clock::now();
      const absl::StatusOr<double> computed = Compute(micro_case);
      if (!computed.ok()) return computed.status();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      state.SetIterationTime(took.count());
      value = *computed;
      lines.push_back(Line(micro_case.about, repetition, lines.size(), value));
    }
    return Finish(micro_case.about, value, ReadSensors(), std::move(lines), state);
  }

  // A busy host or a clock that changed (FailedPrecondition) spoils a value now and
  // then: the case is computed anew, and says so, at most kAttempts times.
  absl::StatusOr<double> Compute(const ValueCase& micro_case) const {
    constexpr int kAttempts = 3;
    for (int attempt = 1;; ++attempt) {
      absl::StatusOr<double> value = micro_case.compute(device_);
      if (!absl::IsFailedPrecondition(value.status()) || attempt == kAttempts) return value;
      std::fprintf(stderr, "  %s, attempt %d of %d: %s\n", micro_case.about.name.c_str(), attempt,
                   kAttempts, std::string(value.status().message()).c_str());
    }
  }

  Json Line(const CaseInfo& about, int repetition, size_t iteration, double value) const {
    Json line;
    line["case"] = about.name;
    line["process"] = process_;
    line["repetition"] = repetition;
    line["iteration"] = iteration;
    line["value"] = value;
    return line;
  }

  // What all kinds report: the value, its limit, the parameters and the sensors.
  absl::Status Finish(const CaseInfo& about, double value, const Sensors& sensors,
                      std::vector<Json> lines, benchmark::State& state) {
    state.counters["value"] = value;
    state.counters["sm_mhz"] = sensors.sm_mhz;
    const std::optional<LimitFigure> limit = FindLimit(about.limit, device_.cc, dram_bytes_per_s_);
    if (limit) {
      state.counters["limit"] = limit->value;
      state.counters["percent_of_limit"] = 100 * value / limit->value;
    }
    for (const Parameter& parameter : about.parameters) {
      state.counters[parameter.name] = parameter.value;
    }
    for (Json& line : lines) {
      line["limit"] = limit ? Json(limit->value) : Json();
      line["sm_mhz"] = sensors.nvml.sm_clock_mhz ? Json(*sensors.nvml.sm_clock_mhz) : Json();
      line["temp_c"] = sensors.nvml.temperature_c ? Json(*sensors.nvml.temperature_c) : Json();
      line["power_w"] = sensors.nvml.power_w ? Json(*sensors.nvml.power_w) : Json();
      line["throttle"] =
          sensors.nvml.throttle_reasons ? Json(*sensors.nvml.throttle_reasons) : Json();
    }
    return log_.Append(lines);
  }

  MicroDevice device_;
  int process_ = 0;
  int max_sm_khz_ = 0;
  double dram_bytes_per_s_ = 0;
  std::optional<NvmlDevice> nvml_;
  RawLog log_;
  std::optional<Progress> progress_;
  std::chrono::steady_clock::time_point start_;
  std::map<std::string, int> repetitions_;  // Google Benchmark doesn't tell which one runs
  std::set<std::string> failed_cases_;
};

bool RunsOn(const CaseInfo& about, int cc) {
  return cc >= about.min_cc && (about.max_cc == 0 || cc <= about.max_cc);
}

int IterationsOf(const MicroCase& micro_case) {
  if (std::holds_alternative<CycleCase>(micro_case)) return kCycleIterations;
  if (std::holds_alternative<TimeCase>(micro_case)) return kTimeIterations;
  return 1;
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "warpledger_micro: %s\n", std::string(status.message()).c_str());
  return code;
}

int Main(int argc, char** argv) {
  const Flags flags = TakeFlags(&argc, argv);
  if (!flags.error.empty()) return Fail(absl::InvalidArgumentError(flags.error), kExitUsage);
  if (flags.help) {
    std::printf("%s\n", kUsage);
    std::fflush(stdout);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return kExitUsage;
  absl::Status status = CheckCases(AllCases());
  if (!status.ok()) return Fail(status, kExitFailed);
  if (flags.list) {
    const absl::StatusOr<Json> list = ListCases(AllCases());
    if (!list.ok()) return Fail(list.status(), kExitFailed);
    // A case per line.
    std::printf("{\n \"schema_version\": %s,\n \"cases\": [",
                (*list)["schema_version"].dump().c_str());
    const char* separator = "\n  ";
    for (const Json& listed : (*list)["cases"]) {
      std::printf("%s%s", separator, listed.dump().c_str());
      separator = ",\n  ";
    }
    std::printf("\n ]\n}\n");
    return 0;
  }

  std::optional<Bench> bench;
  if (!flags.list_tests) {
    if (std::strcmp(build_info::kBuildType, "Release") != 0) {
      return Fail(absl::FailedPreconditionError(absl::StrCat(
                      "this is a ", build_info::kBuildType,
                      " build; times are taken from Release builds only (cmake --preset release)")),
                  kExitFailed);
    }
    absl::StatusOr<Bench> created = Bench::Create(flags);
    if (!created.ok()) {
      const bool no_gpu = absl::IsUnavailable(created.status());
      return Fail(created.status(), no_gpu ? kExitNoGpu : kExitFailed);
    }
    bench = *std::move(created);
    bench->AddContext();
  }
  std::string left_out;
  std::vector<std::string> registered;
  for (const MicroCase& micro_case : AllCases()) {
    const CaseInfo& about = InfoOf(micro_case);
    if (bench && !RunsOn(about, bench->device().cc)) {
      absl::StrAppend(&left_out, left_out.empty() ? "" : ", ", about.name);
      continue;
    }
    registered.push_back(about.name);
    benchmark::RegisterBenchmark(about.name.c_str(),
                                 [&](benchmark::State& state) { bench->Run(micro_case, state); })
        ->UseManualTime()
        ->Iterations(IterationsOf(micro_case));
  }
  if (!left_out.empty()) {
    std::fprintf(stderr, "warpledger_micro: left out, as this GPU can't run them: %s\n",
                 left_out.c_str());
  }
  if (bench && flags.progress) {
    bench->ShowProgress(std::max(0, CountMatches(flags.filter, registered)) * flags.repetitions);
  }
  Console console;
  // A reporter of our own would override --benchmark_format.
  const size_t matched = benchmark::RunSpecifiedBenchmarks(flags.console ? &console : nullptr);
  benchmark::Shutdown();
  if (matched == 0) return kExitUsage;  // Google Benchmark has said so
  return bench && bench->failed() ? kExitFailed : 0;
}

}  // namespace
}  // namespace warpledger::harness

int main(int argc, char** argv) {
  warpledger::OpenStandardStreams();
  const int result = warpledger::harness::Main(argc, argv);
  std::cout.flush();  // Google Benchmark's
  std::string unwritten = warpledger::CloseStandardOutput();
  if (unwritten.empty() && !std::cout) unwritten = "standard output can't be written to its end";
  if (unwritten.empty()) return result;
  std::fprintf(stderr, "warpledger_micro: %s\n", unwritten.c_str());
  return result != 0 ? result : warpledger::harness::kExitFailed;
}
