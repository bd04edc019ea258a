// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/worker.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "ablations/plan/block_order.h"
#include "ablations/plan/calibration.h"
#include "ablations/record/record.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/nvml.h"
#include "kernels/common/random.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

struct TimedArm {
  PlannedArm plan;
  std::unique_ptr<BenchVariant> variant;  // null: a floor, or a delay alone
  std::unique_ptr<TimedCalls> calls;
};
using TimedArms = std::vector<TimedArm>;

class Worker {
 public:
  Worker(const WorkerJob& job, const Subject& subject, Rig& rig, Machine& machine)
      : job_(job), subject_(subject), rig_(rig), machine_(machine) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(design_, IsCalibration(job_.design) ? CalibrationDesign(job_.design)
                                                         : subject_.FindDesign(job_.design));
    ASSIGN_OR_RETURN(const std::vector<ShapeInfo> shapes,
                     subject_.ParseProblems(absl::StrJoin(job_.shapes, ",")));
    ASSIGN_OR_RETURN(const GpuInfo gpu, machine_.Describe());
    l2_bytes_ = gpu.l2_bytes;
    for (const ShapeInfo& shape : shapes) {
      if (absl::Status status = RunShape(shape); !status.ok()) {
        return absl::Status(status.code(), absl::StrCat(shape.name, ": ", status.message()));
      }
    }
    return absl::OkStatus();
  }

 private:
  static void Print(const nlohmann::ordered_json& json) {
    std::fputs((DumpLine(json) + "\n").c_str(), stdout);
    std::fflush(stdout);
  }

  // What follows is no arm's doing.
  static void Idle() { Print({{"running", nullptr}}); }

  // A step of one arm: announces it and takes it. When it fails, the controller is told and
  // the process ends here: after most faults a GPU's context is lost, and destructors would
  // only repeat the error. What is not the arm's fault (no memory, no GPU) is returned.
  template <typename Step>
  auto Take(const TimedArm& arm, const ShapeInfo& shape, const std::string& doing, Bench& bench,
            Step step) -> decltype(step()) {
    Print({{"running", {{"arm", arm.plan.name}, {"shape", shape.name}, {"doing", doing}}}});
    RETURN_IF_ERROR(bench.BeforeVariant(arm.variant.get()));
    auto result = step();
    const absl::Status status = StatusOf(result);
    if (status.ok() || arm.variant == nullptr || absl::IsResourceExhausted(status) ||
        absl::IsUnavailable(status)) {
      return result;
    }
    const BrokenArm fault = {.process = job_.process,
                             .arm = arm.plan.name,
                             .shape = shape.name,
                             .kind = machine_.FaultKind(),
                             .doing = doing,
                             .reason = absl::StrCat(status.message(), ", while ", doing)};
    Print({{"fault", ToJson(fault)}});
    std::_Exit(kWorkerFaultExit);
  }
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  // Evidence of the launch for calls.jsonl. Where the driver gives none, the verdicts of
  // techniques that need it are INVALID; nothing else suffers.
  static void PrintCall(const TimedArm& arm, const ShapeInfo& shape) {
    const absl::StatusOr<std::vector<std::string>>& lines = arm.calls->lines();
    if (lines.ok()) {
      Print({{"call", ablations::ToJson(LaunchedCall{arm.plan.name, shape.name, *lines})}});
      return;
    }
    std::fprintf(stderr, "warpledger: what %s launches is not recorded: %s\n",
                 arm.plan.name.c_str(), std::string(lines.status().message()).c_str());
  }

  void PrintCheck(const TimedArm& arm, const ShapeInfo& shape, const std::string& inputs,
                  uint64_t seed, Check check) const {
    check.process = job_.process;
    check.arm = arm.plan.name;
    check.shape = shape.name;
    check.inputs = inputs;
    check.seed = seed;
    Print({{"check", ablations::ToJson(check)}});
  }

  std::string PlantedIn(const std::string& arm, const std::string& shape) const {
    for (const PlantedFault& planted : job_.planted) {
      if (planted.arm == arm && (planted.shape.empty() || planted.shape == shape)) {
        return planted.fault;
      }
    }
    return "";
  }

  bool Done(const std::string& shape, int block) const {
    return job_.done.contains({shape, block});
  }

  // To a tenth, which is more than the counters' own resolution.
  static double Tenths(double mhz) { return std::round(10 * mhz) / 10; }

  // Its time is left to the caller.
  Sample SampleOf(const TimedArm& arm, const ShapeInfo& shape, int block,
                  const Sensors& sensors) const {
    Sample sample;
    sample.process = job_.process;
    sample.shape = shape.name;
    sample.block = block;
    sample.of = 1;
    sample.arm = arm.plan.name;
    sample.launches = arm.calls->launches();
    sample.cache = job_.cache;
    sample.temp_c = sensors.temp_c;
    sample.power_w = sensors.power_w;
    sample.throttle = sensors.throttle;
    return sample;
  }

  absl::StatusOr<TimedArms> BindArms(const ShapeInfo& shape, Bench& bench) const {
    TimedArms arms;
    for (const PlannedArm& arm : design_.arms) {
      if (job_.excluded.contains({arm.name, shape.name})) continue;
      std::unique_ptr<BenchVariant> variant;
      if (!arm.spin_alone) {
        ASSIGN_OR_RETURN(std::unique_ptr<BenchVariant> bound,
                         bench.Bind(arm, PlantedIn(arm.name, shape.name)));
        // Not every design has a variant for every problem; its verdicts say so.
        if (bound == nullptr) {
          if (job_.alone) Print({{"absent", {{"arm", arm.name}, {"shape", shape.name}}}});
          continue;
        }
        variant = std::move(bound);
      }
      arms.push_back({arm, std::move(variant), nullptr});
    }
    // Alone, what an empty kernel takes says nothing of an arm.
    for (const std::string& floor : job_.alone ? std::vector<std::string>() : design_.floors) {
      arms.push_back({{.name = floor, .role = kRoleFloor}, nullptr, nullptr});
    }
    return arms;
  }

  absl::Status RunShape(const ShapeInfo& shape) {
    int missing = 0;
    for (int block = 0; block < job_.blocks; ++block) missing += Done(shape.name, block) ? 0 : 1;
    if (missing == 0) return absl::OkStatus();
    Idle();

    const uint64_t shape_seed = MixSeed(MixSeed(job_.seed, job_.process), HashName(shape.name));
    const std::vector<std::string> kinds = subject_.InputKinds();
    BenchInputs inputs = {.kind = kinds.front(), .sample_seed = shape_seed};
    for (int i = 0; i < kInputSets; ++i) inputs.seeds.push_back(MixSeed(shape_seed, i));
    ASSIGN_OR_RETURN(inputs.rotation, RotationSets(shape.min_bytes(), job_.cache, l2_bytes_));
    ASSIGN_OR_RETURN(const std::unique_ptr<Bench> opened, rig_.Open(shape, inputs));
    Bench& bench = *opened;
    ASSIGN_OR_RETURN(TimedArms bound, BindArms(shape, bench));
    TimedArms& arms = bound;

    // Right before fast: nothing is timed that was not checked in this process.
    RETURN_IF_ERROR(CheckArms(shape, inputs, arms, bench));
    // The other inputs give the same answer in every process, so one is enough.
    if (job_.process == 0) {
      for (size_t i = 1; i < kinds.size(); ++i) {
        RETURN_IF_ERROR(CheckOtherInputs(shape, kinds[i], shape_seed));
      }
    }
    for (TimedArm& arm : arms) {
      ASSIGN_OR_RETURN(
          std::unique_ptr<TimedCalls> calls,
          Take(arm, shape, "capturing its graph", bench, [&] { return Capture(bench, arm); }));
      arm.calls = std::move(calls);
      if (arm.variant != nullptr) PrintCall(arm, shape);
    }
    if (job_.alone) return VisitArms(shape, inputs, arms, bench);
    RETURN_IF_ERROR(WarmUp(shape, arms, bench));
    for (int block = 0; block < job_.blocks; ++block) {
      if (Done(shape.name, block)) continue;
      ASSIGN_OR_RETURN(nlohmann::ordered_json samples,
                       RunBlock(shape, shape_seed, block, arms, bench));
      // What was timed is checked before the last block is handed over: a run that
      // is killed in between lacks a block then, and makes both when resumed.
      if (--missing == 0) {
        RETURN_IF_ERROR(CheckTimedCalls(shape, inputs, arms, bench));
      }
      Print({{"block", std::move(samples)}});
    }
    Idle();
    return absl::OkStatus();
  }

  // Each arm alone, for as long as the plan says, round by round. Rounds are numbered through all
  // processes, and each second one is the mirror of the one before it.
  absl::Status VisitArms(const ShapeInfo& shape, const BenchInputs& inputs, const TimedArms& arms,
                         Bench& bench) {
    std::vector<std::string> names;
    for (const TimedArm& arm : arms) names.push_back(arm.plan.name);
    const uint64_t seed = MixSeed(job_.seed, HashName(shape.name));
    std::vector<std::pair<int, const TimedArm*>> left;
    for (int block = 0; block < job_.blocks; ++block) {
      for (const int i : BlockOrder(seed, job_.process * job_.blocks + block, names)) {
        const TimedArm& arm = arms[static_cast<size_t>(i)];
        if (!job_.visited.contains({{arm.plan.name, shape.name}, block})) {
          left.emplace_back(block, &arm);
        }
      }
    }
    for (const auto& [block, arm] : left) {
      ASSIGN_OR_RETURN(const Visit visit, Take(*arm, shape, "timing it", bench, [&] {
                         return machine_.StayOn(*arm->calls, *job_.alone,
                                                PlaceOf(*arm, shape, block));
                       }));
      RETURN_IF_ERROR(bench.AfterVariant(arm->variant.get()));
      Sample sample = SampleOf(*arm, shape, block, visit.sensors);
      sample.launches = visit.launches;
      sample.us = visit.us;
      if (visit.sm_mhz > 0) sample.sm_mhz = Tenths(visit.sm_mhz);
      sample.window_s = visit.window_s;
      sample.idle_share = visit.idle_share;
      sample.energy_j = visit.energy_j;
      sample.energy_s = visit.energy_s;
      // As before the last block of arms in turn.
      if (arm == left.back().second && block == left.back().first) {
        RETURN_IF_ERROR(CheckTimedCalls(shape, inputs, arms, bench));
      }
      Print({{"block", {ablations::ToJson(sample)}}});
    }
    Idle();
    return absl::OkStatus();
  }

  // References and what else variants need come first, while none of them is under way: they
  // take seconds, which would count as an arm's.
  absl::Status CheckArms(const ShapeInfo& shape, const BenchInputs& inputs, const TimedArms& arms,
                         Bench& bench) {
    for (const TimedArm& arm : arms) {
      if (arm.variant != nullptr) RETURN_IF_ERROR(arm.variant->Prepare());
    }
    for (const TimedArm& arm : arms) {
      if (arm.variant == nullptr) continue;
      ASSIGN_OR_RETURN(Check check,
                       Take(arm, shape, absl::StrCat("checking it on inputs '", inputs.kind, "'"),
                            bench, [&] { return arm.variant->CheckCall(); }));
      PrintCheck(arm, shape, inputs.kind, inputs.seeds.front(), std::move(check));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOtherInputs(const ShapeInfo& shape, const std::string& kind,
                                uint64_t shape_seed) {
    Idle();
    const uint64_t seed = MixSeed(shape_seed, HashName(kind));
    const BenchInputs inputs = {.kind = kind, .seeds = {seed}, .sample_seed = seed};
    ASSIGN_OR_RETURN(const std::unique_ptr<Bench> bench, rig_.Open(shape, inputs));
    ASSIGN_OR_RETURN(const TimedArms arms, BindArms(shape, *bench));
    return CheckArms(shape, inputs, arms, *bench);
  }

  // The checks before the timing call variants one by one; this holds the very replays that
  // were timed against such calls.
  absl::Status CheckTimedCalls(const ShapeInfo& shape, const BenchInputs& inputs,
                               const TimedArms& arms, Bench& bench) {
    for (const TimedArm& arm : arms) {
      if (arm.variant == nullptr) continue;
      absl::StatusOr<Check> check = Take(arm, shape, "checking its timed graph", bench, [&] {
        return arm.variant->CheckReplay(
            [&] { return machine_.Replay(*arm.calls, PlaceOf(arm, shape, -1)).status(); });
      });
      if (!check.ok()) return check.status();
      PrintCheck(arm, shape, "timed_graph", inputs.seeds.front(), *std::move(check));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<TimedCalls>> Capture(const Bench& bench, const TimedArm& arm) {
    // A replay uses each set equally often, at least once.
    const int rotation = bench.sets();
    const harness::ReplayPlan plan = {.target_us = job_.replay_us,
                                      .min_launches = rotation,
                                      .max_launches = std::max(rotation, job_.max_launches),
                                      .multiple_of = rotation};
    // One by one it is kept and called again, so it holds what it needs; the bench outlives
    // all arms.
    const int64_t delay = arm.plan.spin_cycles;
    const PutCall call = [this, &bench, variant = arm.variant.get(), name = arm.plan.name, delay,
                          rotation](int i, Stream stream) {
      if (variant != nullptr) return variant->Call(i % rotation, stream);
      if (delay > 0) return machine_.CallDelay(delay, stream);
      return name == kFloorArm ? machine_.CallNothing(stream)
                               : bench.CallFloor(name, i % rotation, stream);
    };
    Capturing capturing;
    if (const BenchVariant* variant = arm.variant.get(); variant != nullptr) {
      if (variant->IsSubmittedOneByOne()) capturing.by = harness::LaunchedBy::kStream;
      capturing.describe = [variant](std::string_view symbol, const void* parameter) {
        return variant->DescribeLaunch(symbol, parameter);
      };
    }
    absl::StatusOr<std::unique_ptr<TimedCalls>> calls = machine_.Capture(plan, call, capturing);
    if (!calls.ok() || arm.variant == nullptr || delay == 0) return calls;
    // As many calls as without the delay, which ends the replay.
    const int launches = (*calls)->launches();
    return machine_.CaptureExactly(launches, [this, call, launches, delay](int i, Stream stream) {
      absl::Status status = call(i, stream);
      if (!status.ok() || i + 1 < launches) return status;
      return machine_.CallDelay(delay, stream);
    });
  }

  SamplePlace PlaceOf(const TimedArm& arm, const ShapeInfo& shape, int block) const {
    return {job_.seed, job_.process, block, arm.plan.name, shape.name};
  }

  absl::Status WarmUp(const ShapeInfo& shape, const TimedArms& arms, Bench& bench) {
    const absl::Time start = absl::Now();
    const auto long_enough = [&] {
      const absl::Duration spent = absl::Now() - start;
      return spent >= machine_.CappedWarmUp() ||
             (spent >= machine_.WarmUp() &&
              !IsPowerCapped(machine_.ReadSensors().throttle.value_or(0)));
    };
    while (!long_enough()) {
      for (const TimedArm& arm : arms) {
        RETURN_IF_ERROR(Take(arm, shape, "warming up", bench, [&] {
                          return machine_.Replay(*arm.calls, PlaceOf(arm, shape, -1));
                        }).status());
        RETURN_IF_ERROR(bench.AfterVariant(arm.variant.get()));
      }
    }
    return absl::OkStatus();
  }

  // The samples of one block.
  absl::StatusOr<nlohmann::ordered_json> RunBlock(const ShapeInfo& shape, uint64_t shape_seed,
                                                  int block, const TimedArms& arms, Bench& bench) {
    // The order comes from its own stream, so that a resumed run draws the same.
    std::vector<std::string> names;
    for (const TimedArm& arm : arms) names.push_back(arm.plan.name);
    const std::vector<int> order = BlockOrder(MixSeed(shape_seed, HashName("order")), block, names);
    nlohmann::ordered_json samples = nlohmann::ordered_json::array();
    for (size_t place = 0; place < order.size(); ++place) {
      const TimedArm& arm = arms[order[place]];
      ASSIGN_OR_RETURN(const harness::ReplaySample replay,
                       Take(arm, shape, "timing it", bench, [&] {
                         return machine_.Replay(*arm.calls, PlaceOf(arm, shape, block));
                       }));
      RETURN_IF_ERROR(bench.AfterVariant(arm.variant.get()));
      Sample sample = SampleOf(arm, shape, block, machine_.ReadSensors());
      sample.order = static_cast<int>(place);
      sample.of = static_cast<int>(order.size());
      sample.us = replay.us;
      if (replay.sm_mhz > 0) sample.sm_mhz = Tenths(replay.sm_mhz);
      samples.push_back(ablations::ToJson(sample));
    }
    return samples;
  }

  const WorkerJob& job_;
  const Subject& subject_;
  Rig& rig_;
  Machine& machine_;
  PlannedDesign design_;
  int64_t l2_bytes_ = 0;
};

}  // namespace

absl::Status RunWorker(const WorkerJob& job, const Subject& subject, Rig& rig, Machine& machine) {
  return Worker(job, subject, rig, machine).Run();
}

}  // namespace warpledger::ablations
