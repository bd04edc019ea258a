// SPDX-License-Identifier: Apache-2.0
// Question: what does a launch cost, on a stream and as a node of a graph, and what
// does a kernel cost that must wait for the one before: by plain order, by
// programmatic dependent launch, by a barrier of the whole grid?
//
// Mechanism: on a stream the host hands each launch to the GPU, which starts it when
// the one before has finished and its writes are flushed. A graph hands over all at
// once. With programmatic dependent launch (CUDA C++ Programming Guide, chapter of
// that name; sm_90) the next kernel's CTAs are put in place while the last ones
// still run and wait in the kernel. A grid barrier needs no launch at all.
//
// Formula: microseconds per launch = time of a replay / launches in it; for the
// stream, time between two events on it / launches between them. Gap = what a launch
// takes beyond the work of its kernel: the intercept of the time per launch over
// kernels that spin for 2000 to 8000 cycles, whose slope is the clock's period.
//
// Expected on H200 (gpu-benches, small dependent kernels): 2.48 us on a stream, 1.27
// in a graph, 1.21 by grid.sync.
//
// An empty kernel's time is mostly its gap: we expect the gap of a graph's nodes
// within 20% of it, and that of programmatic dependent launch, where the next kernel is
// in place already, to be less than half of that.
//
// Seen on an H200: the gap in a graph is 0.65 us, a third more than an empty kernel
// takes; programmatic launch leaves 0.22 us of it.
//
// Falsified by: a graph node that isn't cheaper than a launch on a stream, or a
// programmatic dependent launch that doesn't shorten the chain.

#include <cooperative_groups.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/status_macros.h"
#include "micro/harness/line_fit.h"
#include "micro/harness/microbenchmark.h"

namespace warpledger {
namespace {

constexpr char kGpuBenches[] = "gpu-benches, small dependent kernels, H200";
constexpr int kThreads = 256;

__global__ void EmptyKernel() {}

// Each thread adds 1 to its word: the least that depends on the launch before.
__global__ void AddOneKernel(uint32_t* words) { words[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

// The same, launched while the one before still runs: griddepcontrol.wait (PTX ISA,
// "Parallel Synchronization and Communication: griddepcontrol") returns when that
// one is done and its writes are visible. Only then is the next one let in, so that
// at most one waits on the SMs.
__global__ void AddOneDependentKernel(uint32_t* words) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#else
  __trap();
#endif
  words[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

constexpr int kRounds = 200;

// kRounds dependent steps in one cooperative launch.
__global__ void GridSyncKernel(uint32_t* words) {
  const auto grid = cooperative_groups::this_grid();
  for (int i = 0; i < kRounds; ++i) {
    words[blockIdx.x * blockDim.x + threadIdx.x] += 1;
    grid.sync();
  }
}

// Keeps the GPU busy for about `cycles`, so that launches can queue up behind it.
__global__ void SpinKernel(int64_t cycles) {
  const int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
}

absl::StatusOr<std::shared_ptr<DeviceBuffer>> ZeroWords(int ctas) {
  absl::StatusOr<DeviceBuffer> words =
      DeviceBuffer::Allocate(static_cast<size_t>(ctas) * kThreads * sizeof(uint32_t));
  if (!words.ok()) return words.status();
  const absl::Status filled = words->Fill(0);
  if (!filled.ok()) return filled;
  return std::make_shared<DeviceBuffer>(*std::move(words));
}

// Spins after the launch before is done; programmatically, if it was launched so.
template <bool kProgrammatic>
__global__ void SpinNodeKernel(int64_t cycles) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if constexpr (kProgrammatic) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  }
#endif
  const int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
}

// How a launch follows the one before.
enum class Order { kPlain, kProgrammatic };

// Launch number `index` of a chain, of which the first has nobody to overlap with.
template <typename... Args>
absl::Status LaunchInChain(Order order, int index, void (*kernel)(Args...), int ctas,
                           cudaStream_t stream, Args... args) {
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(ctas);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = order == Order::kProgrammatic && index > 0 ? 1 : 0;
  return CudaStatus(cudaLaunchKernelEx(&config, kernel, args...), "launching a kernel of a chain");
}

// CTAs of a launch: one, or one on each SM.
enum class Grid { kOneCta, kOneCtaPerSm };

std::string NameOf(Grid grid) { return grid == Grid::kOneCta ? "one_cta" : "one_cta_per_sm"; }
int CtasOf(Grid grid, const harness::MicroDevice& device) {
  return grid == Grid::kOneCta ? 1 : device.facts.sm_count;
}

harness::TimeCase Time(const std::string& name, std::string measures, const void* kernel,
                       harness::TimeCase::Setup setup) {
  return {.about = {.name = "launch/" + name, .measures = std::move(measures), .unit = "us"},
          .setup = std::move(setup),
          .plan = {},
          .kernels = {kernel}};
}

void AddGraphs(Grid grid) {
  harness::Add(
      Time("empty_" + NameOf(grid) + "/graph", "an empty kernel as a node of a graph chain",
           reinterpret_cast<const void*>(&EmptyKernel), [grid](const harness::MicroDevice& device) {
             const int ctas = CtasOf(grid, device);
             return harness::LaunchFunction([ctas](int, cudaStream_t stream) {
               EmptyKernel<<<ctas, kThreads, 0, stream>>>();
               return CudaStatus(cudaGetLastError(), "launching an empty kernel");
             });
           }));

  harness::TimeCase dependent =
      Time("add_one_" + NameOf(grid) + "/graph",
           "a kernel that adds 1 to what the last one wrote, as a node of a graph chain",
           reinterpret_cast<const void*>(&AddOneKernel),
           [grid](const harness::MicroDevice& device) -> absl::StatusOr<harness::LaunchFunction> {
             const int ctas = CtasOf(grid, device);
             auto words = ZeroWords(ctas);
             if (!words.ok()) return words.status();
             return [ctas, words = *words](int, cudaStream_t stream) {
               AddOneKernel<<<ctas, kThreads, 0, stream>>>(static_cast<uint32_t*>(words->data()));
               return CudaStatus(cudaGetLastError(), "launching a dependent kernel");
             };
           });
  dependent.about.published = {{.cc = 90, .value = 1.27, .source = kGpuBenches}};
  harness::Add(std::move(dependent));

  harness::TimeCase programmatic =
      Time("add_one_" + NameOf(grid) + "/programmatic", "the same by programmatic dependent launch",
           reinterpret_cast<const void*>(&AddOneDependentKernel),
           [grid](const harness::MicroDevice& device) -> absl::StatusOr<harness::LaunchFunction> {
             const int ctas = CtasOf(grid, device);
             auto words = ZeroWords(ctas);
             if (!words.ok()) return words.status();
             return [ctas, words = *words](int index, cudaStream_t stream) {
               return LaunchInChain(Order::kProgrammatic, index, &AddOneDependentKernel, ctas,
                                    stream, static_cast<uint32_t*>(words->data()));
             };
           });
  programmatic.about.min_cc = 90;
  programmatic.about.evidence = {{.ptx = R"(griddepcontrol\.wait)"},
                                 {.ptx = R"(griddepcontrol\.launch_dependents)"}};
  harness::Add(std::move(programmatic));

  harness::TimeCase grid_sync =
      Time("add_one_" + NameOf(grid) + "/grid_sync",
           "the same step behind a barrier of the whole grid, in one cooperative launch",
           reinterpret_cast<const void*>(&GridSyncKernel),
           [grid](const harness::MicroDevice& device) -> absl::StatusOr<harness::LaunchFunction> {
             const int ctas = CtasOf(grid, device);
             auto words = ZeroWords(ctas);
             if (!words.ok()) return words.status();
             return [ctas, words = *words](int, cudaStream_t stream) {
               auto* data = static_cast<uint32_t*>(words->data());
               void* arguments[] = {&data};
               return CudaStatus(
                   cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&GridSyncKernel),
                                               dim3(ctas), dim3(kThreads), arguments, 0, stream),
                   "launching a cooperative kernel");
             };
           });
  grid_sync.units = kRounds;
  grid_sync.about.published = {{.cc = 90, .value = 1.21, .source = kGpuBenches}};
  harness::Add(std::move(grid_sync));
}

// ---- Streams ----
//
// The harness's timer replays graphs; what a launch on a stream costs can't be had
// from it, so these time themselves, with events on the stream.

struct StreamTimes {
  double gpu_us = 0;   // between starts of kernels that have all been submitted
  double host_us = 0;  // of the host's call
};

absl::StatusOr<StreamTimes> TimeStream(const harness::LaunchFunction& launch) {
  constexpr int kLaunches = 500;               // fewer than a stream takes before calls block
  constexpr int64_t kSpinCycles = 10'000'000;  // 5 ms at 2 GHz
  constexpr int kRepeats = 5;
  cudaStream_t stream = nullptr;
  cudaEvent_t events[3] = {};  // before and after the spinning, after the launches
  RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                       "creating a stream");
  const std::shared_ptr<void> destroy(stream, [&events](void* owned) {
    for (cudaEvent_t event : events) {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
    (void)cudaStreamDestroy(static_cast<cudaStream_t>(owned));
  });
  for (cudaEvent_t& event : events) {
    RETURN_IF_CUDA_ERROR(cudaEventCreate(&event), "creating an event");
  }
  std::vector<double> gpu_us;
  std::vector<double> host_us;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    RETURN_IF_CUDA_ERROR(cudaEventRecord(events[0], stream), "recording an event");
    SpinKernel<<<1, 1, 0, stream>>>(kSpinCycles);
    RETURN_IF_CUDA_ERROR(cudaGetLastError(), "launching the spinning kernel");
    RETURN_IF_CUDA_ERROR(cudaEventRecord(events[1], stream), "recording an event");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) RETURN_IF_ERROR(launch(i, stream));
    const std::chrono::duration<double, std::micro> submitting =
        std::chrono::steady_clock::now() - start;
    RETURN_IF_CUDA_ERROR(cudaEventRecord(events[2], stream), "recording an event");
    RETURN_IF_CUDA_ERROR(cudaEventSynchronize(events[2]), "waiting for the launches");
    float spin_ms = 0;
    float launches_ms = 0;
    RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&spin_ms, events[0], events[1]),
                         "reading the events");
    RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&launches_ms, events[1], events[2]),
                         "reading the events");
    if (submitting.count() > spin_ms * 1000.0) {
      return absl::FailedPreconditionError(
          absl::StrCat("submitting ", kLaunches, " launches took the host ", submitting.count(),
                       " us, longer than the GPU was kept busy (", spin_ms * 1000.0,
                       " us): the GPU waited for the host; is the host busy?"));
    }
    gpu_us.push_back(launches_ms * 1000.0 / kLaunches);
    host_us.push_back(submitting.count() / kLaunches);
  }
  return StreamTimes{.gpu_us = harness::Median(gpu_us), .host_us = harness::Median(host_us)};
}

constexpr char kQueuedUp[] =
    "ours are all queued up before the first may start, so the host's time isn't in it";

using StreamFigure = double StreamTimes::*;

// A case that launches `kernel` on a stream again and again.
template <typename MakeLaunch>
harness::ValueCase Stream(const std::string& name, std::string measures, const void* kernel,
                          StreamFigure figure, const MakeLaunch& make_launch) {
  return {.about = {.name = "launch/" + name, .measures = std::move(measures), .unit = "us"},
          .compute = [=](const harness::MicroDevice& device) -> absl::StatusOr<double> {
            const absl::StatusOr<harness::LaunchFunction> launch = make_launch(device);
            if (!launch.ok()) return launch.status();
            const absl::StatusOr<StreamTimes> times = TimeStream(*launch);
            if (!times.ok()) return times.status();
            return (*times).*figure;
          },
          .kernels = {kernel}};
}

void AddStreams(Grid grid) {
  const auto empty =
      [grid](const harness::MicroDevice& device) -> absl::StatusOr<harness::LaunchFunction> {
    return [ctas = CtasOf(grid, device)](int index, cudaStream_t stream) {
      return LaunchInChain(Order::kPlain, index, &EmptyKernel, ctas, stream);
    };
  };
  const auto* empty_kernel = reinterpret_cast<const void*>(&EmptyKernel);
  harness::ValueCase gpu = Stream("empty_" + NameOf(grid) + "/stream",
                                  "an empty kernel on a stream where all launches are queued up",
                                  empty_kernel, &StreamTimes::gpu_us, empty);
  gpu.about.published = {{.cc = 90, .value = 2.48, .source = kGpuBenches, .why = kQueuedUp}};
  harness::Add(std::move(gpu));
  harness::Add(Stream("empty_" + NameOf(grid) + "/host_call",
                      "the host's time in one launch on a stream", empty_kernel,
                      &StreamTimes::host_us, empty));

  const auto add_one = [grid](Order order) {
    return [grid,
            order](const harness::MicroDevice& device) -> absl::StatusOr<harness::LaunchFunction> {
      const int ctas = CtasOf(grid, device);
      auto words = ZeroWords(ctas);
      if (!words.ok()) return words.status();
      return [=, words = *words](int index, cudaStream_t stream) {
        return LaunchInChain(order, index,
                             order == Order::kPlain ? &AddOneKernel : &AddOneDependentKernel, ctas,
                             stream, static_cast<uint32_t*>(words->data()));
      };
    };
  };
  harness::ValueCase plain = Stream(
      "add_one_" + NameOf(grid) + "/stream",
      "a kernel that adds 1 to what the last one wrote, queued up on a stream",
      reinterpret_cast<const void*>(&AddOneKernel), &StreamTimes::gpu_us, add_one(Order::kPlain));
  plain.about.published = {{.cc = 90, .value = 2.48, .source = kGpuBenches, .why = kQueuedUp}};
  harness::Add(std::move(plain));
  harness::ValueCase programmatic = Stream("add_one_" + NameOf(grid) + "/stream_programmatic",
                                           "the same on a stream by programmatic dependent launch",
                                           reinterpret_cast<const void*>(&AddOneDependentKernel),
                                           &StreamTimes::gpu_us, add_one(Order::kProgrammatic));
  programmatic.about.min_cc = 90;
  programmatic.about.evidence = {{.ptx = R"(griddepcontrol\.wait)"}};
  harness::Add(std::move(programmatic));
}

// ---- Gaps ----

// Microseconds per launch beyond the kernel's own spinning.
using TimePerLaunch = std::function<absl::StatusOr<double>(const harness::LaunchFunction&)>;

absl::StatusOr<double> GapUs(Order order, const TimePerLaunch& time_us) {
  constexpr double kLeastR2 = 0.999;
  std::vector<double> spins;
  std::vector<double> times;
  for (const int64_t cycles : {2000, 4000, 6000, 8000}) {
    const absl::StatusOr<double> us = time_us([=](int index, cudaStream_t stream) {
      return LaunchInChain(order, index,
                           order == Order::kPlain ? &SpinNodeKernel<false> : &SpinNodeKernel<true>,
                           1, stream, cycles);
    });
    if (!us.ok()) return us.status();
    spins.push_back(static_cast<double>(cycles));
    times.push_back(*us);
  }
  const absl::StatusOr<harness::LineFit> fit = harness::FitLine(spins, times);
  if (!fit.ok()) return fit.status();
  if (fit->r2 < kLeastR2) {
    return absl::FailedPreconditionError(
        absl::StrCat("the time of a launch is no line over its kernel's cycles (R2 ", fit->r2,
                     "), so it has no intercept; did the clock change?"));
  }
  return fit->intercept;
}

absl::StatusOr<double> TimeInGraph(const harness::LaunchFunction& launch) {
  constexpr int kReplays = 5;
  absl::StatusOr<harness::GraphTimer> timer = harness::GraphTimer::Create();
  if (!timer.ok()) return timer.status();
  const absl::StatusOr<harness::TimedGraph> graph = timer->CaptureForPlan({}, launch);
  if (!graph.ok()) return graph.status();
  std::vector<double> us;
  for (int i = 0; i < kReplays; ++i) {
    const absl::StatusOr<double> replay = timer->ReplayUs(*graph);
    if (!replay.ok()) return replay.status();
    us.push_back(*replay);
  }
  return harness::Median(us);
}

absl::StatusOr<double> TimeOnStream(const harness::LaunchFunction& launch) {
  const absl::StatusOr<StreamTimes> times = TimeStream(launch);
  if (!times.ok()) return times.status();
  return times->gpu_us;
}

void AddGap(const std::string& where, const TimePerLaunch& time_us, Order order) {
  const bool programmatic = order == Order::kProgrammatic;
  harness::ValueCase c = {
      .about = {.name = absl::StrCat("launch/gap/", where, programmatic ? "_programmatic" : ""),
                .measures = absl::StrCat("what a launch takes beyond its kernel's work, ",
                                         programmatic ? "by programmatic dependent launch, " : "",
                                         "one after the other in a ", where),
                .unit = "us",
                .min_cc = programmatic ? 90 : 80},
      .compute = [=](const harness::MicroDevice&) { return GapUs(order, time_us); },
      .kernels = {programmatic ? reinterpret_cast<const void*>(&SpinNodeKernel<true>)
                               : reinterpret_cast<const void*>(&SpinNodeKernel<false>)}};
  if (programmatic) c.about.evidence = {{.ptx = R"(griddepcontrol\.wait)"}};
  harness::Add(std::move(c));
}

}  // namespace

WARPLEDGER_MICRO(launch) {
  for (const Grid grid : {Grid::kOneCta, Grid::kOneCtaPerSm}) {
    AddGraphs(grid);
    AddStreams(grid);
  }
  for (const Order order : {Order::kPlain, Order::kProgrammatic}) {
    AddGap("graph", TimeInGraph, order);
    AddGap("stream", TimeOnStream, order);
  }
}

}  // namespace warpledger
