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
// stream, time between two events on it / launches between them.
//
// Expected on H200 (gpu-benches, small dependent kernels): 2.48 us on a stream, 1.27
// in a graph, 1.21 by grid.sync.
//
// Falsified by: a graph node that isn't cheaper than a launch on a stream, or a
// programmatic dependent launch that doesn't shorten the chain.

#include <cooperative_groups.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/cuda_status.h"
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
               cudaLaunchAttribute overlap = {};
               overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
               overlap.val.programmaticStreamSerializationAllowed = 1;
               cudaLaunchConfig_t config = {};
               config.gridDim = dim3(ctas);
               config.blockDim = dim3(kThreads);
               config.stream = stream;
               config.attrs = &overlap;
               // The first node of a graph has nobody to overlap with.
               config.numAttrs = index == 0 ? 0 : 1;
               return CudaStatus(cudaLaunchKernelEx(&config, AddOneDependentKernel,
                                                    static_cast<uint32_t*>(words->data())),
                                 "launching a programmatically dependent kernel");
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
// from it, so these two time themselves, with events on the stream.

struct StreamTimes {
  double gpu_us = 0;   // between starts of kernels that have all been submitted
  double host_us = 0;  // of the host's call
};

absl::StatusOr<StreamTimes> TimeStream(int ctas) {
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
    for (int i = 0; i < kLaunches; ++i) EmptyKernel<<<ctas, kThreads, 0, stream>>>();
    const std::chrono::duration<double, std::micro> submitting =
        std::chrono::steady_clock::now() - start;
    RETURN_IF_CUDA_ERROR(cudaGetLastError(), "launching empty kernels");
    RETURN_IF_CUDA_ERROR(cudaEventRecord(events[2], stream), "recording an event");
    RETURN_IF_CUDA_ERROR(cudaEventSynchronize(events[2]), "waiting for empty kernels");
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

void AddStreams(Grid grid) {
  harness::Add(harness::ValueCase{
      .about = {.name = "launch/empty_" + NameOf(grid) + "/stream",
                .measures = "an empty kernel on a stream where all launches are queued up",
                .unit = "us",
                .published = {{.cc = 90, .value = 2.48, .source = kGpuBenches}}},
      .compute = [grid](const harness::MicroDevice& device) -> absl::StatusOr<double> {
        const absl::StatusOr<StreamTimes> times = TimeStream(CtasOf(grid, device));
        if (!times.ok()) return times.status();
        return times->gpu_us;
      },
      .kernels = {reinterpret_cast<const void*>(&EmptyKernel)}});
  harness::Add(harness::ValueCase{
      .about = {.name = "launch/empty_" + NameOf(grid) + "/host_call",
                .measures = "the host's time in one launch on a stream",
                .unit = "us"},
      .compute = [grid](const harness::MicroDevice& device) -> absl::StatusOr<double> {
        const absl::StatusOr<StreamTimes> times = TimeStream(CtasOf(grid, device));
        if (!times.ok()) return times.status();
        return times->host_us;
      },
      .kernels = {reinterpret_cast<const void*>(&EmptyKernel)}});
}

}  // namespace

WARPLEDGER_MICRO(launch) {
  for (const Grid grid : {Grid::kOneCta, Grid::kOneCtaPerSm}) {
    AddGraphs(grid);
    AddStreams(grid);
  }
}

}  // namespace warpledger
