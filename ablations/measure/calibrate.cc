// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "ablations/base/paths.h"
#include "ablations/base/progress.h"
#include "ablations/base/subprocess.h"
#include "ablations/measure/describe_run.h"
#include "ablations/measure/worker.h"
#include "ablations/plan/calibration_record.h"
#include "ablations/record/store.h"
#include "ablations/stats/quantile.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/sdpa_runner.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "kernels/common/random.h"
#include "kernels/sdpa/inputs.h"
#include "kernels/sdpa/launch.h"
#include "micro/harness/graph_timer.h"
#include "micro/harness/spin_kernel.h"

namespace warpledger::ablations {
namespace {

constexpr absl::Duration kPilotWarmUp = absl::Milliseconds(300);
constexpr int kPilotRounds = 40;
// The two delays that the line through the pilot's replays is drawn from.
constexpr int64_t kPilotCycles[] = {4000, 40000};
constexpr int64_t kLeastCycles = 100;

// Replays of the kernel without a delay and with two, interleaved.
absl::StatusOr<DelayPilot> RunPilot(const CalibrateOptions& options) {
  std::vector<sdpa::Inputs> sets;
  for (int i = 0; i < kInputSets; ++i) {
    sets.push_back(sdpa::MakeInputs(options.shape.problem, sdpa::InputKind::kNormal,
                                    MixSeed(options.seed, i)));
  }
  absl::StatusOr<SdpaRunner> runner = SdpaRunner::Create(options.shape.problem, sets);
  if (!runner.ok()) return runner.status();
  const sdpa::KernelInstance* instance =
      sdpa::FindInstance(options.variant.config, options.shape.problem);
  if (instance == nullptr) return absl::InternalError("this build holds no kernel to calibrate on");
  // Loads the kernel and raises its limits; the workers check its results.
  const sdpa::Config* arm = &options.variant.config;
  if (absl::StatusOr<RunOutput> output = runner->Run(*instance, 0, arm); !output.ok()) {
    return output.status();
  }
  absl::StatusOr<harness::GraphTimer> timer = harness::GraphTimer::Create();
  if (!timer.ok()) return timer.status();
  const auto launch = [&](int i, cudaStream_t stream) {
    return runner->Launch(*instance, i % kInputSets, stream, arm);
  };
  absl::StatusOr<harness::TimedGraph> plain =
      timer->CaptureForPlan({.target_us = options.replay_us,
                             .min_launches = kInputSets,
                             .max_launches = options.max_launches,
                             .multiple_of = kInputSets},
                            launch);
  if (!plain.ok()) return plain.status();
  DelayPilot pilot;
  pilot.launches = plain->launches();
  std::vector<harness::TimedGraph> graphs;
  graphs.push_back(*std::move(plain));
  for (const int64_t cycles : kPilotCycles) {
    absl::StatusOr<harness::TimedGraph> graph =
        timer->Capture(pilot.launches, [&](int i, cudaStream_t stream) {
          absl::Status status = launch(i, stream);
          if (!status.ok() || i + 1 < pilot.launches) return status;
          return CudaStatus(harness::LaunchSpin(cycles, stream), "launching a delay");
        });
    if (!graph.ok()) return graph.status();
    graphs.push_back(*std::move(graph));
  }
  std::vector<std::vector<double>> replay_us(graphs.size());
  const absl::Time warm = absl::Now() + kPilotWarmUp;
  for (int round = 0; round < kPilotRounds;) {
    const bool timed = absl::Now() >= warm;
    for (size_t i = 0; i < graphs.size(); ++i) {
      const absl::StatusOr<double> us = timer->ReplayUs(graphs[i]);
      if (!us.ok()) return us.status();
      if (timed) replay_us[i].push_back(*us * pilot.launches);
    }
    if (timed) ++round;
  }
  pilot.replay_us = analysis::Median(replay_us[0]);
  const double short_us = analysis::Median(replay_us[1]) - pilot.replay_us;
  const double long_us = analysis::Median(replay_us[2]) - pilot.replay_us;
  pilot.us_per_cycle =
      (long_us - short_us) / static_cast<double>(kPilotCycles[1] - kPilotCycles[0]);
  pilot.intercept_us = short_us - pilot.us_per_cycle * static_cast<double>(kPilotCycles[0]);
  if (!(pilot.us_per_cycle > 0)) {
    return absl::InternalError("a longer delay took no longer; nothing can be planted here");
  }
  return pilot;
}

absl::Status SetCycles(const DelayPilot& pilot, CalibrationPlan* plan) {
  for (Plant& plant : plan->plants) {
    const double us = plant.percent / 100 * pilot.replay_us - pilot.intercept_us;
    plant.cycles = std::llround(us / pilot.us_per_cycle);
    if (plant.cycles >= kLeastCycles) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a slow-down of ", plant.percent, "% is ", plant.percent / 100 * pilot.replay_us,
        " us of a replay, less than a launch takes; plant more or raise --replay_us"));
  }
  return absl::OkStatus();
}

class Calibrator {
 public:
  explicit Calibrator(const CalibrateOptions& options) : options_(options) {}

  absl::Status Run() {
    absl::StatusOr<DeviceFacts> device = QueryDevice();
    if (!device.ok()) return device.status();
    CalibrationHeader header;
    header.plan = options_.plan;
    header.plan.variant = sdpa::ConfigName(options_.variant.config);
    if (HasRecord(options_.out_dir)) {
      RETURN_IF_ERROR(TakeCyclesOfRecord(&header));
    } else {
      absl::StatusOr<DelayPilot> pilot = RunPilot(options_);
      if (!pilot.ok()) return pilot.status();
      header.pilot = *pilot;
      RETURN_IF_ERROR(SetCycles(*pilot, &header.plan));
    }
    absl::StatusOr<Design> design = CalibrationDesign(PlanText(header.plan));
    if (!design.ok()) return design.status();
    DescribeRun(*device, *design, &header.run);
    absl::StatusOr<std::unique_ptr<CalibrationWriter>> writer =
        CalibrationWriter::Open(options_.out_dir, header);
    if (!writer.ok()) return writer.status();
    writer_ = *std::move(writer);
    const RunInfo& run = writer_->header().run;
    for (size_t i = 0; i < run.arms.size(); ++i) arm_index_[run.arms[i].name] = i;
    Progress progress("blocks", int64_t{run.processes} * run.blocks_per_process,
                      static_cast<int64_t>(writer_->n_blocks()));
    progress_ = &progress;
    for (int process = 0; process < run.processes; ++process) RETURN_IF_ERROR(RunProcess(process));
    return absl::OkStatus();
  }

 private:
  // The delays of a record that goes on are those that it began with.
  absl::Status TakeCyclesOfRecord(CalibrationHeader* header) const {
    absl::StatusOr<CalibrationHeader> found = LoadCalibrationHeader(options_.out_dir);
    if (!found.ok()) return found.status();
    for (Plant& plant : header->plan.plants) {
      for (const Plant& recorded : found->plan.plants) {
        if (recorded.percent == plant.percent) plant.cycles = recorded.cycles;
      }
    }
    header->pilot = found->pilot;
    return absl::OkStatus();
  }

  void DescribeRun(const DeviceFacts& device, const Design& design, RunInfo* run) const {
    const absl::Time now = absl::Now();
    run->created_utc = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
    run->run_id = absl::StrCat(kCalibrateDesign, "-",
                               absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
    run->design = kCalibrateDesign;
    run->family = kCalibrateDesign;
    run->argv = options_.argv;
    run->seed = options_.seed;
    run->processes = options_.groups * options_.plan.trial_processes;
    run->blocks_per_process = options_.blocks;
    run->cache = kCacheWarm;
    run->replay_us = options_.replay_us;
    run->max_launches = options_.max_launches;
    run->shapes = {{std::string(options_.shape.name), options_.shape.problem}};
    for (const DesignArm& arm : design.arms) {
      run->arms.push_back({arm.name, arm.spin_alone ? "" : sdpa::ConfigName(arm.config), arm.role,
                           arm.toggle, arm.base});
    }
    run->arms.push_back({kFloorArm, "", kRoleFloor, "", ""});
    run->gpu = DescribeGpu(device);
    DescribeBuild(run);
  }

  absl::Status RunProcess(int process) {
    const CalibrationHeader& header = writer_->header();
    WorkerJob job;
    job.design = PlanText(header.plan);
    job.shapes = {header.run.shapes[0].name};
    job.process = process;
    job.seed = header.run.seed;
    job.blocks = header.run.blocks_per_process;
    job.replay_us = options_.replay_us;
    job.max_launches = options_.max_launches;
    job.cache = kCacheWarm;
    for (int block = 0; block < job.blocks; ++block) {
      if (writer_->Has(process, block)) job.done.emplace(job.shapes[0], block);
    }
    if (job.done.size() == static_cast<size_t>(job.blocks)) return absl::OkStatus();
    checks_ = 0;
    RETURN_IF_ERROR(RunLines({ExecutablePath(), "worker"}, DumpLine(ToJson(job)),
                             absl::Seconds(options_.silence_limit_s),
                             [this](std::string_view line) { return TakeLine(line); }));
    return writer_->Append(CalibrationChecks{process, checks_});
  }

  absl::Status TakeLine(std::string_view line) {
    absl::StatusOr<nlohmann::ordered_json> json = ParseJson(line);
    if (!json.ok()) return json.status();
    if (json->contains("check")) {
      absl::StatusOr<Check> check = FromJson<Check>((*json)["check"]);
      if (!check.ok()) return check.status();
      ++checks_;
      if (check->correct) return absl::OkStatus();
      return absl::AbortedError(absl::StrCat("a wrong kernel calibrates nothing: ", check->arm,
                                             " on ", check->shape, ": ", check->reason));
    }
    if (json->contains("running") || json->contains("call")) return absl::OkStatus();
    if (json->contains("fault")) {
      return absl::AbortedError(
          absl::StrCat("a kernel that fails calibrates nothing: ", DumpLine((*json)["fault"])));
    }
    if (!json->contains("block")) {
      return absl::InternalError(
          absl::StrCat("a worker printed what is neither a check nor a block: ",
                       std::string(line.substr(0, 100))));
    }
    const size_t arms = arm_index_.size();
    CalibrationBlock block;
    block.order.assign(arms, -1);
    block.launches.assign(arms, 0);
    block.us.assign(arms, 0);
    block.sm_mhz.assign(arms, 0);
    for (const auto& entry : (*json)["block"]) {
      const absl::StatusOr<Sample> sample = FromJson<Sample>(entry);
      if (!sample.ok()) return sample.status();
      const auto arm = arm_index_.find(sample->arm);
      if (arm == arm_index_.end() || sample->order < 0 || sample->order >= static_cast<int>(arms)) {
        return absl::InternalError(absl::StrCat("a worker timed an unplanned arm: ", sample->arm));
      }
      block.process = sample->process;
      block.block = sample->block;
      block.order[static_cast<size_t>(sample->order)] = static_cast<int>(arm->second);
      block.launches[arm->second] = sample->launches;
      block.us[arm->second] = sample->us;
      block.sm_mhz[arm->second] = sample->sm_mhz.value_or(0);
      if (sample->throttle) {
        block.throttle.resize(arms, 0);
        block.throttle[arm->second] = *sample->throttle;
      }
      block.temp_c = sample->temp_c.value_or(block.temp_c);
      block.power_w = sample->power_w.value_or(block.power_w);
    }
    // What is written must load: a block that lacks an arm is refused here.
    absl::StatusOr<CalibrationBlock> whole = CalibrationBlockFromJson(ToJson(block), arms);
    if (!whole.ok()) return whole.status();
    RETURN_IF_ERROR(writer_->Append(*whole));
    progress_->Step(absl::StrCat("process ", block.process + 1));
    return absl::OkStatus();
  }

  const CalibrateOptions& options_;
  std::unique_ptr<CalibrationWriter> writer_;
  std::map<std::string, size_t> arm_index_;
  Progress* progress_ = nullptr;
  int checks_ = 0;
};

}  // namespace

absl::Status Calibrate(const CalibrateOptions& options) { return Calibrator(options).Run(); }

}  // namespace warpledger::ablations
