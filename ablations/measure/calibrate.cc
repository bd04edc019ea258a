// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/calibrate.h"

#include <cmath>
#include <map>
#include <utility>

#include "ablations/base/progress.h"
#include "ablations/base/subprocess.h"
#include "ablations/measure/worker.h"
#include "ablations/plan/calibration.h"
#include "ablations/plan/job.h"
#include "ablations/record/store.h"
#include "ablations/stats/medians.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/random.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

constexpr int kPilotRounds = 40;
// The two delays that the line through the pilot's replays is drawn from.
constexpr int64_t kPilotCycles[] = {4000, 40000};
constexpr int64_t kLeastCycles = 100;

// Replays of the variant without a delay and with two, interleaved.
absl::StatusOr<DelayPilot> RunPilot(const CalibrateOptions& options, const std::string& inputs_kind,
                                    Rig& rig, Machine& machine) {
  BenchInputs inputs = {.kind = inputs_kind};
  for (int i = 0; i < kInputSets; ++i) inputs.seeds.push_back(MixSeed(options.seed, i));
  ASSIGN_OR_RETURN(const std::unique_ptr<Bench> bench, rig.Open(options.shapes[0], inputs));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<BenchVariant> variant,
      bench->Bind({.name = "pilot", .config = options.plan.variant, .role = kRoleBase}, ""));
  if (variant == nullptr) {
    return absl::InternalError("this build holds no kernel to calibrate on");
  }
  RETURN_IF_ERROR(variant->Prepare());
  RETURN_IF_ERROR(bench->BeforeVariant(variant.get()));
  // Loads it and raises its limits; the workers judge its results.
  RETURN_IF_ERROR(variant->CheckCall().status());
  const auto call = [&](int i, Stream stream) { return variant->Call(i % kInputSets, stream); };
  std::vector<std::unique_ptr<TimedCalls>> replays;
  ASSIGN_OR_RETURN(std::unique_ptr<TimedCalls> plain,
                   machine.Capture({.target_us = options.replay_us,
                                    .min_launches = kInputSets,
                                    .max_launches = options.max_launches,
                                    .multiple_of = kInputSets},
                                   call, {}));
  DelayPilot pilot;
  pilot.launches = plain->launches();
  replays.push_back(std::move(plain));
  for (const int64_t cycles : kPilotCycles) {
    const auto call_and_delay = [&machine, &pilot, call, cycles](int i, Stream stream) {
      absl::Status status = call(i, stream);
      if (!status.ok() || i + 1 < pilot.launches) return status;
      return machine.CallDelay(cycles, stream);
    };
    ASSIGN_OR_RETURN(replays.emplace_back(),
                     machine.CaptureExactly(pilot.launches, call_and_delay));
  }
  std::vector<std::vector<double>> replay_us(replays.size());
  const absl::Time warm = absl::Now() + machine.WarmUp();
  for (int round = 0; round < kPilotRounds;) {
    const bool timed = absl::Now() >= warm;
    for (size_t i = 0; i < replays.size(); ++i) {
      ASSIGN_OR_RETURN(const harness::ReplaySample sample, machine.Replay(*replays[i], {}));
      if (timed) replay_us[i].push_back(sample.us * pilot.launches);
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
  Calibrator(const CalibrateOptions& options, const Subject& subject, Rig& rig, Machine& machine)
      : options_(options), subject_(subject), rig_(rig), machine_(machine) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(GpuInfo gpu, machine_.Describe());
    CalibrationHeader header;
    header.plan = options_.plan;
    if (HasRecord(options_.out_dir)) {
      RETURN_IF_ERROR(TakeCyclesOfRecord(&header));
    } else {
      ASSIGN_OR_RETURN(DelayPilot pilot,
                       RunPilot(options_, subject_.InputKinds().front(), rig_, machine_));
      header.pilot = pilot;
      RETURN_IF_ERROR(SetCycles(pilot, &header.plan));
    }
    ASSIGN_OR_RETURN(const PlannedDesign design, CalibrationDesign(PlanText(header.plan)));
    header.run = DescribeRun(options_, subject_, design, std::move(gpu));
    ASSIGN_OR_RETURN(writer_, CalibrationWriter::Open(options_.out_dir, header));
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
    ASSIGN_OR_RETURN(CalibrationHeader found, LoadCalibrationHeader(options_.out_dir));
    for (Plant& plant : header->plan.plants) {
      for (const Plant& recorded : found.plan.plants) {
        if (recorded.percent == plant.percent) plant.cycles = recorded.cycles;
      }
    }
    header->pilot = found.pilot;
    return absl::OkStatus();
  }

  absl::Status RunProcess(int process) {
    const CalibrationHeader& header = writer_->header();
    WorkerJob job;
    job.subject = std::string(header.run.SubjectName());
    job.definition = header.run.definition;
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
    RETURN_IF_ERROR(RunLines(options_.worker, DumpLine(ToJson(job)),
                             absl::Seconds(options_.silence_limit_s),
                             [this](std::string_view line) { return TakeLine(line); }));
    return writer_->Append(CalibrationChecks{process, checks_});
  }

  absl::Status TakeLine(std::string_view line) {
    ASSIGN_OR_RETURN(nlohmann::ordered_json json, ParseJson(line));
    if (json.contains("check")) {
      ASSIGN_OR_RETURN(Check check, FromJson<Check>(json["check"]));
      ++checks_;
      if (check.correct) return absl::OkStatus();
      return absl::AbortedError(absl::StrCat("a wrong kernel calibrates nothing: ", check.arm,
                                             " on ", check.shape, ": ", check.reason));
    }
    if (json.contains("running") || json.contains("call")) return absl::OkStatus();
    if (json.contains("fault")) {
      return absl::AbortedError(
          absl::StrCat("a kernel that fails calibrates nothing: ", DumpLine(json["fault"])));
    }
    if (!json.contains("block")) {
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
    for (const auto& entry : json["block"]) {
      ASSIGN_OR_RETURN(const Sample sample, FromJson<Sample>(entry));
      const auto arm = arm_index_.find(sample.arm);
      if (arm == arm_index_.end() || sample.order < 0 || sample.order >= static_cast<int>(arms)) {
        return absl::InternalError(absl::StrCat("a worker timed an unplanned arm: ", sample.arm));
      }
      block.process = sample.process;
      block.block = sample.block;
      block.order[static_cast<size_t>(sample.order)] = static_cast<int>(arm->second);
      block.launches[arm->second] = sample.launches;
      block.us[arm->second] = sample.us;
      block.sm_mhz[arm->second] = sample.sm_mhz.value_or(0);
      if (sample.throttle) {
        block.throttle.resize(arms, 0);
        block.throttle[arm->second] = *sample.throttle;
      }
      block.temp_c = sample.temp_c.value_or(block.temp_c);
      block.power_w = sample.power_w.value_or(block.power_w);
    }
    // What is written must load: a block that lacks an arm is refused here.
    ASSIGN_OR_RETURN(CalibrationBlock whole, CalibrationBlockFromJson(ToJson(block), arms));
    RETURN_IF_ERROR(writer_->Append(whole));
    progress_->Step(absl::StrCat("process ", block.process + 1));
    return absl::OkStatus();
  }

  const CalibrateOptions& options_;
  const Subject& subject_;
  Rig& rig_;
  Machine& machine_;
  std::unique_ptr<CalibrationWriter> writer_;
  std::map<std::string, size_t> arm_index_;
  Progress* progress_ = nullptr;
  int checks_ = 0;
};

}  // namespace

absl::Status Calibrate(const CalibrateOptions& options, const Subject& subject, Rig& rig,
                       Machine& machine) {
  return Calibrator(options, subject, rig, machine).Run();
}

}  // namespace warpledger::ablations
