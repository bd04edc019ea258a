// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/worker.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "ablations/plan/block_order.h"
#include "ablations/record/record.h"
#include "ablations/subjects/sdpa/correctness.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/planted_faults.h"
#include "ablations/subjects/sdpa/references.h"
#include "ablations/subjects/sdpa/sdpa_runner.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/nvml.h"
#include "kernels/common/random.h"
#include "kernels/common/text.h"
#include "kernels/sdpa/wgmma/tensor_maps.h"
#include "micro/harness/graph_timer.h"
#include "micro/harness/spin_kernel.h"

namespace warpledger::ablations {
namespace {

// The clocks of an idle GPU are low; replays before the first block raise them. Where the
// power limit then lowers them, it takes longer until they stand. ablations/subjects/sdpa/peers.py
// does the same (WARM_UP_S, CAPPED_WARM_UP_S).
constexpr absl::Duration kWarmUp = absl::Milliseconds(300);
constexpr absl::Duration kCappedWarmUp = absl::Milliseconds(1000);

struct TimedArm {
  std::string name;
  sdpa::Config config;
  const sdpa::KernelInstance* instance;  // null: a floor, or a delay alone
  Fault fault = Fault::kNone;
  std::optional<harness::TimedGraph> graph;
  int64_t spin_cycles = 0;
};

// What a CUDA error that broke the context says of the kernel: the `kind` of a line
// of broken.jsonl.
const char* KindOf(cudaError_t error) {
  switch (error) {
    case cudaErrorLaunchFailure:  // what __trap() gives
      return "trap";
    case cudaErrorAssert:
      return "assert";
    case cudaErrorIllegalAddress:
      return "illegal_address";
    case cudaErrorMisalignedAddress:
      return "misaligned_address";
    case cudaErrorIllegalInstruction:
      return "illegal_instruction";
    case cudaErrorLaunchTimeout:
      return "no_answer";
    default:
      return "error";
  }
}

class Worker {
 public:
  explicit Worker(const WorkerJob& job) : job_(job) {}

  absl::Status Run() {
    absl::StatusOr<Design> design = FindDesign(job_.design);
    if (!design.ok()) return design.status();
    design_ = *std::move(design);
    absl::StatusOr<std::vector<sdpa::NamedShape>> shapes =
        ParseShapes(absl::StrJoin(job_.shapes, ","));
    if (!shapes.ok()) return shapes.status();
    absl::StatusOr<DeviceFacts> device = QueryDevice();
    if (!device.ok()) return device.status();
    absl::StatusOr<NvmlDevice> nvml = NvmlDevice::Open(device->uuid);
    if (nvml.ok()) {
      nvml_ = *std::move(nvml);
    } else {
      std::fprintf(stderr, "warpledger: clocks and power are not recorded: %s\n",
                   std::string(nvml.status().message()).c_str());
    }
    absl::StatusOr<harness::GraphTimer> timer = harness::GraphTimer::Create();
    if (!timer.ok()) return timer.status();
    timer_ = *std::move(timer);
    l2_bytes_ = device->l2_bytes;
    for (const sdpa::NamedShape& shape : *shapes) {
      if (absl::Status status = RunShape(shape); !status.ok()) {
        return absl::Status(status.code(), absl::StrCat(Text(shape.name), ": ", status.message()));
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

  // A step of one arm: announces it, plants what is to be planted, and takes it.
  // When it fails, the controller is told and the process ends here: after most
  // faults the context is lost, and destructors would only repeat the error.
  // What is not the arm's fault (no memory, no GPU) is returned.
  template <typename Step>
  auto Take(const TimedArm& arm, std::string_view shape, const std::string& doing,
            SdpaRunner* runner, Step step) -> decltype(step()) {
    const nlohmann::ordered_json what = {
        {"arm", arm.name}, {"shape", std::string(shape)}, {"doing", doing}};
    Print({{"running", what}});
    if (runner != nullptr) runner->PlantFault(arm.fault);
    RETURN_IF_ERROR(SetL2AsideFor(arm));
    auto result = step();
    const absl::Status status = StatusOf(result);
    if (status.ok() || arm.instance == nullptr || absl::IsResourceExhausted(status) ||
        absl::IsUnavailable(status)) {
      return result;
    }
    nlohmann::ordered_json fault = what;
    fault["kind"] = KindOf(cudaDeviceSynchronize());
    fault["reason"] = absl::StrCat(status.message(), ", while ", doing);
    Print({{"fault", fault}});
    std::_Exit(kWorkerFaultExit);
  }
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  // As much of L2 as can be for an arm whose K and V persist in it, and nothing for any other:
  // what is set aside is missing to everything else (reports/decisions/0017).
  absl::Status SetL2AsideFor(const TimedArm& arm) {
    const bool wanted = arm.config.l2_persisting_kv != 0;
    if (wanted == l2_is_set_aside_) return absl::OkStatus();
    int device = 0;
    int most = 0;
    RETURN_IF_CUDA_ERROR(cudaGetDevice(&device), "asking for the device");
    RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, device),
                         "asking for how much of L2 may persist");
    RETURN_IF_CUDA_ERROR(
        cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, wanted ? static_cast<size_t>(most) : 0),
        "setting a part of L2 aside");
    l2_is_set_aside_ = wanted;
    return absl::OkStatus();
  }

  // What an arm's window keeps in L2 would be missing to the arms after it.
  static absl::Status GiveBackPersistingLines(const TimedArm& arm) {
    if (arm.config.l2_persisting_kv == 0) return absl::OkStatus();
    RETURN_IF_CUDA_ERROR(cudaCtxResetPersistingL2Cache(), "giving persisting lines of L2 back");
    return absl::OkStatus();
  }

  // Evidence of the launch for calls.jsonl. Where the driver gives none, the verdicts of
  // toggles that need it are INVALID; nothing else suffers.
  static void PrintCall(const TimedArm& arm, const sdpa::NamedShape& shape) {
    const absl::StatusOr<std::vector<std::string>>& lines = arm.graph->call();
    if (lines.ok()) {
      Print({{"call", ablations::ToJson(LaunchedCall{arm.name, std::string(shape.name), *lines})}});
      return;
    }
    std::fprintf(stderr, "warpledger: what %s launches is not recorded: %s\n", arm.name.c_str(),
                 std::string(lines.status().message()).c_str());
  }

  absl::StatusOr<Fault> PlantedIn(const std::string& arm, std::string_view shape) const {
    for (const PlantedFault& planted : job_.planted) {
      if (planted.arm == arm && (planted.shape.empty() || planted.shape == shape)) {
        return FindFault(planted.fault);
      }
    }
    return Fault::kNone;
  }

  static std::vector<int64_t> Rows(const sdpa::Problem& problem, uint64_t seed) {
    return sdpa::SampleRows(problem, kMaxReferenceFlops, seed);
  }

  bool Done(std::string_view shape, int block) const {
    return job_.done.contains({std::string(shape), block});
  }

  absl::Status RunShape(const sdpa::NamedShape& shape) {
    int missing = 0;
    for (int block = 0; block < job_.blocks; ++block) missing += Done(shape.name, block) ? 0 : 1;
    if (missing == 0) return absl::OkStatus();
    Idle();

    const uint64_t shape_seed = MixSeed(MixSeed(job_.seed, job_.process), HashName(shape.name));
    std::vector<sdpa::Inputs> sets;
    for (int i = 0; i < kInputSets; ++i) {
      sets.push_back(
          sdpa::MakeInputs(shape.problem, sdpa::InputKind::kNormal, MixSeed(shape_seed, i)));
    }
    const absl::StatusOr<int> rotation =
        RotationSets(sdpa::MinBytes(shape.problem), job_.cache, l2_bytes_);
    if (!rotation.ok()) return rotation.status();
    absl::StatusOr<SdpaRunner> runner = SdpaRunner::Create(shape.problem, sets, *rotation);
    if (!runner.ok()) return runner.status();

    std::vector<TimedArm> arms;
    for (const DesignArm& arm : design_.arms) {
      if (job_.excluded.contains({arm.name, std::string(shape.name)})) continue;
      const absl::StatusOr<Fault> fault = PlantedIn(arm.name, shape.name);
      if (!fault.ok()) return fault.status();
      const sdpa::KernelInstance* instance =
          arm.spin_alone ? nullptr : sdpa::FindInstance(arm.config, shape.problem);
      const bool missing_kernel = instance == nullptr && !arm.spin_alone;
      // Not every design is compiled for every head_dim and dtype; its verdicts say so.
      if (missing_kernel && !sdpa::EveryDesignRuns(shape.problem)) continue;
      if (missing_kernel) {
        return absl::InternalError(absl::StrCat("this build holds no instance for ", arm.name));
      }
      arms.push_back({arm.name, arm.config, instance, *fault, std::nullopt, arm.spin_cycles});
    }
    arms.push_back({kFloorArm, {}, nullptr, Fault::kNone, std::nullopt});
    if (design_.reads_kv) arms.push_back({kReadArm, {}, nullptr, Fault::kNone, std::nullopt});

    // Right before fast: nothing is timed that was not checked in this process.
    References references(shape.problem, sets[0], Rows(shape.problem, shape_seed));
    if (absl::Status status = Prepare(arms, references, *runner); !status.ok()) return status;
    for (const TimedArm& arm : arms) {
      if (arm.instance == nullptr) continue;
      absl::StatusOr<CheckOutcome> outcome =
          Take(arm, shape.name, "checking it on inputs 'normal'", &*runner, [&] {
            return runner->Check(*arm.instance, 0, references.For(arm.instance->config),
                                 &arm.config);
          });
      if (!outcome.ok()) return outcome.status();
      PrintCheck(arm, shape, "normal", MixSeed(shape_seed, 0), *outcome);
    }
    // The other inputs give the same answer in every process, so one is enough.
    if (job_.process == 0) {
      if (absl::Status status = CheckOtherInputs(shape, shape_seed, arms); !status.ok()) {
        return status;
      }
    }
    for (TimedArm& arm : arms) {
      absl::StatusOr<harness::TimedGraph> graph = Take(
          arm, shape.name, "capturing its graph", &*runner, [&] { return Capture(*runner, arm); });
      if (!graph.ok()) return graph.status();
      arm.graph = *std::move(graph);
      if (arm.instance != nullptr) PrintCall(arm, shape);
    }
    RETURN_IF_ERROR(WarmUp(shape, arms));
    for (int block = 0; block < job_.blocks; ++block) {
      if (Done(shape.name, block)) continue;
      absl::StatusOr<nlohmann::ordered_json> samples = RunBlock(shape, shape_seed, block, arms);
      if (!samples.ok()) return samples.status();
      // What was timed is checked before the last block is handed over: a run that
      // is killed in between lacks a block then, and makes both when resumed.
      if (--missing == 0) {
        absl::Status status = CheckTimedGraphs(shape, MixSeed(shape_seed, 0), arms, *runner);
        if (!status.ok()) return status;
      }
      Print({{"block", *std::move(samples)}});
    }
    Idle();
    return absl::OkStatus();
  }

  absl::Status WarmUp(const sdpa::NamedShape& shape, const std::vector<TimedArm>& arms) {
    const absl::Time start = absl::Now();
    const auto long_enough = [&] {
      const absl::Duration spent = absl::Now() - start;
      return spent >= kCappedWarmUp || (spent >= kWarmUp && !IsPowerCappedNow());
    };
    while (!long_enough()) {
      for (const TimedArm& arm : arms) {
        const absl::StatusOr<double> us = Take(arm, shape.name, "warming up", nullptr,
                                               [&] { return timer_->ReplayUs(*arm.graph); });
        if (!us.ok()) return us.status();
        RETURN_IF_ERROR(GiveBackPersistingLines(arm));
      }
    }
    return absl::OkStatus();
  }

  bool IsPowerCappedNow() const {
    if (!nvml_) return false;
    const absl::StatusOr<NvmlSample> now = nvml_->Sample();
    return now.ok() && now->throttle_reasons && IsPowerCapped(*now->throttle_reasons);
  }

  // References and quantised K/V of all arms, while none of them is under way: they take
  // seconds, which would count as an arm's.
  static absl::Status Prepare(const std::vector<TimedArm>& arms, References& references,
                              SdpaRunner& runner) {
    for (const TimedArm& arm : arms) {
      if (arm.instance == nullptr) continue;
      references.For(arm.instance->config);
      if (absl::Status status = runner.AddStorage(arm.instance->config); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckOtherInputs(const sdpa::NamedShape& shape, uint64_t shape_seed,
                                const std::vector<TimedArm>& arms) {
    for (const sdpa::NamedInputKind& kind : sdpa::kInputKinds) {
      if (kind.kind == sdpa::InputKind::kNormal) continue;
      Idle();
      const uint64_t seed = MixSeed(shape_seed, HashName(kind.name));
      const sdpa::Inputs inputs = sdpa::MakeInputs(shape.problem, kind.kind, seed);
      References references(shape.problem, inputs, Rows(shape.problem, seed));
      absl::StatusOr<SdpaRunner> runner = SdpaRunner::Create(shape.problem, {inputs});
      if (!runner.ok()) return runner.status();
      if (absl::Status status = Prepare(arms, references, *runner); !status.ok()) return status;
      for (const TimedArm& arm : arms) {
        if (arm.instance == nullptr) continue;
        absl::StatusOr<CheckOutcome> outcome = Take(
            arm, shape.name, absl::StrCat("checking it on inputs '", std::string(kind.name), "'"),
            &*runner, [&] {
              return runner->Check(*arm.instance, 0, references.For(arm.instance->config),
                                   &arm.config);
            });
        if (!outcome.ok()) return outcome.status();
        PrintCheck(arm, shape, std::string(kind.name), seed, *outcome);
      }
    }
    return absl::OkStatus();
  }

  // The checks before the timing launch kernels one by one; this holds the very
  // graphs that were timed against such launches.
  absl::Status CheckTimedGraphs(const sdpa::NamedShape& shape, uint64_t seed,
                                const std::vector<TimedArm>& arms, SdpaRunner& runner) {
    for (const TimedArm& arm : arms) {
      if (arm.instance == nullptr) continue;
      absl::StatusOr<CheckOutcome> outcome =
          Take(arm, shape.name, "checking its timed graph", &runner, [&] {
            return runner.CheckReplay(
                *arm.instance, [&] { return timer_->ReplayUs(*arm.graph).status(); }, &arm.config);
          });
      if (!outcome.ok()) return outcome.status();
      PrintCheck(arm, shape, "timed_graph", seed, *outcome);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<harness::TimedGraph> Capture(const SdpaRunner& runner, const TimedArm& arm) {
    // A replay uses each set equally often, at least once.
    const int rotation = runner.sets();
    const harness::ReplayPlan plan = {.target_us = job_.replay_us,
                                      .min_launches = rotation,
                                      .max_launches = std::max(rotation, job_.max_launches),
                                      .multiple_of = rotation};
    // By stream it is kept and called again, so it holds what it needs; the runner outlives
    // all arms.
    const auto launch = [&runner, instance = arm.instance, config = arm.config,
                         spin_cycles = arm.spin_cycles, rotation,
                         reads_kv = arm.name == kReadArm](int i, cudaStream_t stream) {
      if (reads_kv) return runner.LaunchReadOfKv(i % rotation, stream);
      if (instance == nullptr && spin_cycles > 0) {
        return CudaStatus(harness::LaunchSpin(spin_cycles, stream), "launching a delay");
      }
      if (instance == nullptr) {
        return CudaStatus(harness::LaunchEmptyKernel(stream), "launching the empty kernel");
      }
      return runner.Launch(*instance, i % rotation, stream, &config);
    };
    const harness::LaunchedBy by =
        arm.config.stream_launch ? harness::LaunchedBy::kStream : harness::LaunchedBy::kGraph;
    harness::DescribeParameter describe;
    if (arm.instance != nullptr && sdpa::FamilyOf(arm.config) == sdpa::Family::kWgmma &&
        !arm.config.wgmma_cp_async) {
      describe = [](std::string_view symbol, const void* parameter) -> std::string {
        const bool has_maps = symbol.find("sdpa_wgmma") != symbol.npos;  // none that joins parts
        return has_maps ? sdpa::DescribePromotion(parameter) : "";
      };
    }
    absl::StatusOr<harness::TimedGraph> graph = timer_->CaptureForPlan(plan, launch, by, describe);
    if (!graph.ok() || arm.instance == nullptr || arm.spin_cycles == 0) return graph;
    // As many launches as without the delay, which ends the replay.
    const int launches = graph->launches();
    return timer_->Capture(launches, [&](int i, cudaStream_t stream) {
      absl::Status status = launch(i, stream);
      if (!status.ok() || i + 1 < launches) return status;
      return CudaStatus(harness::LaunchSpin(arm.spin_cycles, stream), "launching a delay");
    });
  }

  // The samples of one block.
  absl::StatusOr<nlohmann::ordered_json> RunBlock(const sdpa::NamedShape& shape,
                                                  uint64_t shape_seed, int block,
                                                  const std::vector<TimedArm>& arms) {
    // The order comes from its own stream, so that a resumed run draws the same.
    std::vector<std::string> names;
    for (const TimedArm& arm : arms) names.push_back(arm.name);
    const std::vector<int> order = BlockOrder(MixSeed(shape_seed, HashName("order")), block, names);
    nlohmann::ordered_json samples = nlohmann::ordered_json::array();
    for (size_t place = 0; place < order.size(); ++place) {
      const TimedArm& arm = arms[order[place]];
      const absl::StatusOr<harness::ReplaySample> replay =
          Take(arm, shape.name, "timing it", nullptr, [&] { return timer_->Replay(*arm.graph); });
      if (!replay.ok()) return replay.status();
      RETURN_IF_ERROR(GiveBackPersistingLines(arm));
      Sample sample;
      sample.process = job_.process;
      sample.shape = shape.name;
      sample.block = block;
      sample.order = static_cast<int>(place);
      sample.of = static_cast<int>(order.size());
      sample.arm = arm.name;
      sample.launches = arm.graph->launches();
      sample.us = replay->us;
      // To a tenth, which is more than the counters' own resolution.
      if (replay->sm_mhz > 0) sample.sm_mhz = std::round(10 * replay->sm_mhz) / 10;
      sample.cache = job_.cache;
      ReadSensors(sample);
      samples.push_back(ablations::ToJson(sample));
    }
    return samples;
  }

  void ReadSensors(Sample& sample) {
    if (!nvml_) return;
    const absl::StatusOr<NvmlSample> now = nvml_->Sample();
    if (!now.ok()) return;
    sample.temp_c = now->temperature_c;
    sample.power_w = now->power_w;
    sample.throttle = now->throttle_reasons;
  }

  void PrintCheck(const TimedArm& arm, const sdpa::NamedShape& shape, const std::string& inputs,
                  uint64_t seed, const CheckOutcome& outcome) const {
    Check check;
    check.process = job_.process;
    check.arm = arm.name;
    check.shape = shape.name;
    check.inputs = inputs;
    check.seed = seed;
    check.correct = outcome.correct;
    check.max_err = outcome.accuracy.max_err;
    check.max_err_limit = outcome.accuracy.max_err_limit;
    check.mean_err = outcome.accuracy.mean_err;
    check.mean_err_limit = outcome.accuracy.mean_err_limit;
    check.lse_err = outcome.accuracy.lse_err;
    check.lse_limit = outcome.accuracy.lse_limit;
    check.guards_intact = outcome.guards_intact;
    check.bit_identical = outcome.bit_identical;
    check.reason = outcome.reason;
    check.rows = outcome.accuracy.rows;
    Print({{"check", ablations::ToJson(check)}});
  }

  const WorkerJob& job_;
  Design design_;
  std::optional<NvmlDevice> nvml_;
  std::optional<harness::GraphTimer> timer_;
  int64_t l2_bytes_ = 0;
  bool l2_is_set_aside_ = false;
};

}  // namespace

absl::Status RunWorker(const WorkerJob& job) { return Worker(job).Run(); }

}  // namespace warpledger::ablations
