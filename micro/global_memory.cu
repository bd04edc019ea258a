// SPDX-License-Identifier: Apache-2.0
// Question: how fast do L1, L2 and DRAM deliver, how wide must loads be, how many
// bytes must be in flight, and how long does one dependent load take at each level?
//
// Mechanism: a load of 4, 8 or 16 bytes per lane asks for 128, 256 or 512 bytes per
// warp with one instruction, so wide loads need fewer instructions and registers
// of addresses for the same bytes in flight. A level delivers at most what Little's
// law allows: bytes in flight / latency. Once that is above the level's own rate,
// neither width nor more threads help.
//
// Formula: L1: bytes / slope of an SM's cycles, all SMs at work on one footprint.
// L2, DRAM: bytes of a launch / its time. Latency: slope of cycles over a chain of
// loads through a random cycle over the footprint's 128-byte lines. Footprints that
// fit into a cache are read once before the clock starts; of larger ones each
// launch starts somewhere else.
//
// Expected on H200: DRAM at least 4.2 TB/s of 4.8 (NVIDIA H200 datasheet); L2 9.6
// to 10.2 TB/s (te42kyfo/gpu-benches, gpu-l2-cache) as long as the footprint fits
// one half of the 50 MB; L1 near 128 B/clk/SM. Latency about 41, 263 and 479 cycles
// on an H100 (Luo et al., arXiv 2402.13499), DRAM later at a higher SM clock.
//
// Seen on an H200: L2 gives 9.0 TB/s whatever the loads, threads and order, as long
// as SMs read different lines. Its 94 slices then deliver 64 bytes in 84% of their clocks
// (lts__lts2xbar_cycles_active, at 1.71 GHz: 10.3 TB/s would be all), with 97% hits.
// What lies above, up to 15 TB/s where SMs read the same lines at a time, L2 doesn't
// deliver: of the 805 MB that SMs get at a footprint of 4 MiB, slices send 541
// (lts__t_sectors_srcunit_tex), and the way to the SMs hands on the rest again.
// reports/decisions/0010-l2-read-rate.md has the counters.
//
// Falsified if: 4-byte loads reach the 16-byte rate from L1 (then the issue of
// loads isn't what width saves), if DRAM bandwidth keeps rising past 64 KiB in
// flight per SM (then latency under load is far above the idle one), or if latency
// steps don't fall where the caches' sizes are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/random.h"
#include "kernels/common/status_macros.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"
#include "micro/memory_inputs.cuh"

namespace warpledger::global_memory {
namespace {

using harness::CycleArgs;

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;
constexpr int64_t kGiB = 1024 * kMiB;

__device__ uint32_t Fold(uint32_t v) { return v; }
__device__ uint32_t Fold(uint2 v) { return v.x ^ v.y; }
__device__ uint32_t Fold(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }

// ld.global.L1::no_allocate (PTX ISA, "ld"; sm_70): reads past L1, so that what
// one pass brought isn't there for the next. Pure: nobody writes the data while
// the kernel runs.
__device__ uint32_t LoadPastL1(const uint32_t* from) {
  uint32_t v;
  asm("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}
__device__ uint2 LoadPastL1(const uint2* from) {
  uint2 v;
  asm("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from));
  return v;
}
__device__ uint4 LoadPastL1(const uint4* from) {
  uint4 v;
  asm("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(from));
  return v;
}

// --- L1 ------------------------------------------------------------------------

constexpr int kL1Threads = 1024;
constexpr int kL1LoadBytes = 64;  // per thread and iteration, whatever the width

// Reads params[0] bytes, a multiple of kL1Threads * kL1LoadBytes, over and over.
template <typename Vector>
__global__ void L1ReadKernel(CycleArgs args) {
  constexpr int kLoads = kL1LoadBytes / static_cast<int>(sizeof(Vector));
  const auto footprint = static_cast<uint32_t>(args.params[0] / sizeof(Vector));
  const auto* from = static_cast<const Vector*>(args.data) + threadIdx.x;
  uint32_t folded = 0;
  for (uint32_t i = 0; i < footprint; i += kL1Threads) folded ^= Fold(from[i]);  // into L1
  uint32_t at = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
    const Vector* block = from + at;
#pragma unroll
    for (int u = 0; u < kLoads; ++u) folded ^= Fold(block[u * kL1Threads]);
    at += kLoads * kL1Threads;
    if (at == footprint) at = 0;
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded);
}

// --- L2 and DRAM -----------------------------------------------------------------

struct ReadArgs {
  const void* data = nullptr;
  uint32_t chunks = 0;  // of the footprint; a chunk is what a CTA reads at a time
  uint32_t reads = 0;   // chunks read by the launch, each CTA every gridDim-th
  uint32_t sink_key = 0;
  uint32_t* sink = nullptr;
};

// Each CTA reads chunks blockIdx.x, blockIdx.x + gridDim.x, … below `reads`, modulo
// `chunks`, of kThreads * kLoads vectors each. kThreads is blockDim.x, as a constant
// so that a chunk's loads differ by an immediate and all go out before the first
// result is needed.
template <typename Vector, int kLoads, int kThreads>
__global__ void __launch_bounds__(kThreads) ReadKernel(ReadArgs args) {
  const uint32_t step = gridDim.x % args.chunks;
  uint32_t chunk = blockIdx.x % args.chunks;
  uint32_t folded = 0;
#pragma unroll 1
  for (uint32_t read = blockIdx.x; read < args.reads; read += gridDim.x) {
    const auto* from =
        static_cast<const Vector*>(args.data) + int64_t{chunk} * (kThreads * kLoads) + threadIdx.x;
    Vector vectors[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) vectors[u] = LoadPastL1(from + u * kThreads);
#pragma unroll
    for (int u = 0; u < kLoads; ++u) folded ^= Fold(vectors[u]);
    chunk += step;
    if (chunk >= args.chunks) chunk -= args.chunks;
  }
  if (folded == args.sink_key) *args.sink = folded;
}

// How a launch reads.
struct ReadPlan {
  int64_t footprint_bytes = 0;
  int64_t read_bytes = 0;  // by one launch, a multiple of the footprint
  int ctas_per_sm = 0;     // 0: one CTA per chunk, as many as there are
};

template <typename Vector, int kLoads, int kThreads>
harness::TimeCase::Setup SetUpRead(const ReadPlan& plan) {
  return [plan](const harness::MicroDevice& device) -> absl::StatusOr<harness::LaunchFunction> {
    // The last 256 bytes are the sink.
    absl::StatusOr<std::shared_ptr<DeviceBuffer>> buffer =
        memory_inputs::SharedRandomWords(plan.footprint_bytes + 256);
    if (!buffer.ok()) return buffer.status();
    const int64_t chunk_bytes = int64_t{kThreads} * kLoads * sizeof(Vector);
    ReadArgs args = {.data = (*buffer)->data(),
                     .chunks = static_cast<uint32_t>(plan.footprint_bytes / chunk_bytes),
                     .reads = static_cast<uint32_t>(plan.read_bytes / chunk_bytes),
                     .sink = reinterpret_cast<uint32_t*>(
                         static_cast<unsigned char*>((*buffer)->data()) + plan.footprint_bytes)};
    const uint32_t grid = plan.ctas_per_sm > 0
                              ? static_cast<uint32_t>(plan.ctas_per_sm * device.facts.sm_count)
                              : args.reads;
    return [buffer = *buffer, args, grid](int index, cudaStream_t stream) {
      ReadArgs mine = args;
      mine.sink_key = static_cast<uint32_t>(SplitMix64(index).Next());
      ReadKernel<Vector, kLoads, kThreads><<<grid, kThreads, 0, stream>>>(mine);
      return CudaStatus(cudaGetLastError(), "launching a read of global memory");
    };
  };
}

template <typename Vector, int kLoads, int kThreads>
harness::TimeCase ReadCase(harness::CaseInfo about, const ReadPlan& plan) {
  constexpr int kBytes = sizeof(Vector);
  about.measures = absl::StrCat("bytes read per nanosecond, ", kBytes, " per load");
  about.unit = "GB/s";
  about.evidence = {{.sass = kBytes == 4   ? R"(^LDG\.E\.NA$)"
                             : kBytes == 8 ? R"(^LDG\.E\.NA\.64$)"
                                           : R"(^LDG\.E\.NA\.128$)",
                     .at_least = kLoads}};
  about.parameters = {{"footprint_bytes", static_cast<double>(plan.footprint_bytes)},
                      {"bytes_per_load", static_cast<double>(kBytes)},
                      {"loads_per_thread", static_cast<double>(kLoads)},
                      {"threads_per_cta", static_cast<double>(kThreads)},
                      {"ctas_per_sm", static_cast<double>(plan.ctas_per_sm)}};
  if (plan.ctas_per_sm > 0) {
    about.parameters.push_back({"bytes_in_flight_per_sm", static_cast<double>(plan.ctas_per_sm) *
                                                              kThreads * kLoads * kBytes});
  }
  return {.about = std::move(about),
          .units = static_cast<double>(plan.read_bytes),
          .rate = true,
          .setup = SetUpRead<Vector, kLoads, kThreads>(plan),
          .kernels = {reinterpret_cast<const void*>(&ReadKernel<Vector, kLoads, kThreads>)}};
}

// --- latency ---------------------------------------------------------------------

constexpr int kNodeBytes = 128;  // a cache line
constexpr int kChainLinks = 8;
constexpr int kWarmLoads = 8;

// next[i] becomes the pointer of node i: at the start of its line.
__global__ void LinkNodes(unsigned char* nodes, const uint32_t* next, uint32_t count) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  *reinterpret_cast<unsigned char**>(nodes + int64_t{i} * kNodeBytes) =
      nodes + int64_t{next[i]} * kNodeBytes;
}

// A random cycle over all lines of `bytes`. What was written last is then pushed
// out of L2 by other data, so that a large footprint starts cold.
harness::MakeData RandomCycle(int64_t bytes) {
  return [bytes](const harness::MicroDevice& device) -> absl::StatusOr<DeviceBuffer> {
    const int count = static_cast<int>(bytes / kNodeBytes);
    SplitMix64 random(HashName("global_memory/chase"));
    const std::vector<int> order = RandomOrder(count, random);
    std::vector<uint32_t> next(count);
    for (int i = 0; i < count; ++i) next[order[i]] = order[(i + 1) % count];
    absl::StatusOr<DeviceBuffer> nodes = memory_inputs::RandomWords(bytes);
    if (!nodes.ok()) return nodes.status();
    absl::StatusOr<DeviceBuffer> links = DeviceBuffer::Allocate(next.size() * sizeof(uint32_t));
    if (!links.ok()) return links.status();
    RETURN_IF_ERROR(links->CopyFromHost(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(next.data()), links->bytes())));
    LinkNodes<<<(count + 255) / 256, 256>>>(static_cast<unsigned char*>(nodes->data()),
                                            static_cast<const uint32_t*>(links->data()), count);
    RETURN_IF_CUDA_ERROR(cudaGetLastError(), "linking the nodes of a pointer chase");
    const absl::StatusOr<DeviceBuffer> other =
        memory_inputs::RandomWords(std::max<int64_t>(4 * device.facts.l2_bytes, kMiB));
    if (!other.ok()) return other.status();
    return nodes;
  };
}

// Pure loads: nobody writes the nodes while the kernel runs.
template <bool kPastL1>
__device__ uint64_t Follow(uint64_t node) {
  uint64_t next;
  if constexpr (kPastL1) {
    asm("ld.global.L1::no_allocate.u64 %0, [%1];" : "=l"(next) : "l"(node));
  } else {
    asm("ld.global.u64 %0, [%1];" : "=l"(next) : "l"(node));
  }
  return next;
}

// All lanes follow one chain from a random node. params[0]: nodes; params[1]:
// whether the warp reads all of them first, so that they are where they fit.
template <bool kPastL1>
__global__ void ChaseKernel(CycleArgs args) {
  const auto nodes = static_cast<uint32_t>(args.params[0]);
  const auto first = reinterpret_cast<uint64_t>(args.data);
  uint32_t folded = 0;
  if (args.params[1] != 0) {
    // Several loads at once; `nodes` is a multiple of them.
    for (uint32_t i = threadIdx.x; i < nodes; i += 32 * kWarmLoads) {
      uint64_t read[kWarmLoads];
#pragma unroll
      for (int u = 0; u < kWarmLoads; ++u) {
        read[u] = Follow<kPastL1>(first + uint64_t{i + u * 32} * kNodeBytes);
      }
#pragma unroll
      for (int u = 0; u < kWarmLoads; ++u) folded ^= static_cast<uint32_t>(read[u]);
    }
  }
  uint64_t node = first + uint64_t{args.seed % nodes} * kNodeBytes;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kChainLinks; ++u) node = Follow<kPastL1>(node);
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded ^ static_cast<uint32_t>(node));
}

// --- cases -----------------------------------------------------------------------

std::string Size(int64_t bytes) {
  if (bytes >= kGiB) return absl::StrCat(bytes / kGiB, "GiB");
  if (bytes >= kMiB) return absl::StrCat(bytes / kMiB, "MiB");
  return absl::StrCat(bytes / kKiB, "KiB");
}

template <typename Vector>
void AddL1(int64_t footprint) {
  constexpr int kBytes = sizeof(Vector);
  harness::Add(harness::CycleCase{
      .about = {.name =
                    absl::StrCat("global_memory/l1_", kBytes, "B_", Size(footprint), "/throughput"),
                .measures =
                    absl::StrCat("bytes read from L1 per clock and SM, ", kBytes, " per load"),
                .unit = "B/clk/SM",
                .limit = {.own = 128, .own_source = "L1 is the shared memory's array: 128 B/clk"},
                .evidence = {{.sass = kBytes == 4   ? R"(^LDG\.E$)"
                                      : kBytes == 8 ? R"(^LDG\.E\.64$)"
                                                    : R"(^LDG\.E\.128$)",
                              .at_least = kL1LoadBytes / kBytes}},
                .parameters = {{"footprint_bytes", static_cast<double>(footprint)},
                               {"bytes_per_load", static_cast<double>(kBytes)}}},
      .measure = harness::Measure::kThroughput,
      .kernel = L1ReadKernel<Vector>,
      .units_per_iteration = kL1LoadBytes,
      .threads = kL1Threads,
      .make_data =
          [footprint](const harness::MicroDevice&) {
            return memory_inputs::RandomWords(footprint);
          },
      .args = {footprint}});
}

void AddChase(bool past_l1, int64_t footprint, bool warm,
              std::vector<harness::Published> published = {}) {
  harness::Add(harness::CycleCase{
      .about = {.name = absl::StrCat("global_memory/chase_", past_l1 ? "past_l1_" : "",
                                     Size(footprint), "/latency"),
                .measures = absl::StrCat("cycles of a dependent 8-byte load, random lines of ",
                                         Size(footprint), past_l1 ? ", not kept in L1" : ""),
                .unit = "cycles",
                .published = std::move(published),
                .evidence = {{.sass = past_l1 ? R"(^LDG\.E\.NA\.64$)" : R"(^LDG\.E\.64$)",
                              .at_least = kChainLinks}},
                .parameters = {{"footprint_bytes", static_cast<double>(footprint)},
                               {"warm", warm ? 1.0 : 0.0}}},
      .measure = harness::Measure::kLatency,
      .kernel = past_l1 ? ChaseKernel<true> : ChaseKernel<false>,
      .units_per_iteration = kChainLinks,
      // Short chains: what earlier launches walked must stay a small part of it all.
      .lengths = {16, 32, 48, 64, 80},
      .make_data = RandomCycle(footprint),
      .args = {footprint / kNodeBytes, warm ? 1 : 0}});
}

constexpr char kLuo90[] = "Luo et al., arXiv 2402.13499, H100";
constexpr char kLuo89[] = "Luo et al., arXiv 2402.13499, RTX 4090";
constexpr char kLuo80[] = "Luo et al., arXiv 2402.13499, A100";

void AddL2Cases() {
  constexpr int64_t kReadBytes = 768 * kMiB;  // a multiple of every footprint below
  constexpr int kThreads = 512;               // x 4 CTAs: every thread that an SM can hold
  for (const int64_t footprint : {4, 8, 16, 24, 32, 48, 64, 96, 192}) {
    std::vector<harness::Published> published;
    if (footprint == 16) {
      published = {{.cc = 90,
                    .value = 9600,
                    .source = "te42kyfo/gpu-benches, gpu-l2-cache, H200: 9.6 to 10.2 TB/s"}};
    }
    harness::Add(ReadCase<uint4, 4, kThreads>(
        {.name = absl::StrCat("global_memory/read_", Size(footprint * kMiB), "/bandwidth"),
         .published = published},
        {.footprint_bytes = footprint * kMiB, .read_bytes = kReadBytes, .ctas_per_sm = 4}));
  }
  const ReadPlan l2 = {.footprint_bytes = 16 * kMiB, .read_bytes = kReadBytes, .ctas_per_sm = 4};
  constexpr char kPeak[] = "global_memory/read_16MiB/bandwidth";
  harness::Add(ReadCase<uint32_t, 16, kThreads>(
      {.name = "global_memory/l2_4B/bandwidth", .peak_case = kPeak}, l2));
  harness::Add(ReadCase<uint2, 8, kThreads>(
      {.name = "global_memory/l2_8B/bandwidth", .peak_case = kPeak}, l2));
  // Few enough chunks that CTAs of many SMs read the same one at the same time.
  harness::Add(ReadCase<uint4, 4, kThreads>(
      {.name = "global_memory/l2_same_lines_2MiB/bandwidth", .peak_case = kPeak},
      {.footprint_bytes = 2 * kMiB, .read_bytes = kReadBytes, .ctas_per_sm = 2}));
  // Each CTA brings one chunk and goes: the scheduler, not a loop, hands out work.
  ReadPlan scattered = l2;
  scattered.ctas_per_sm = 0;
  harness::Add(ReadCase<uint4, 4, kThreads>(
      {.name = "global_memory/l2_16B_cta_per_chunk/bandwidth", .peak_case = kPeak}, scattered));
}

void AddDramCases() {
  constexpr int64_t kDramBytes = 4 * kGiB;  // 80 times the L2 of an H200
  constexpr int kThreads = 256;
  const harness::Limit dram = {.resource = harness::Resource::kDramBytesPerSecond};
  constexpr char kPeak[] = "global_memory/dram_16B/bandwidth";
  const ReadPlan plan = {.footprint_bytes = kDramBytes, .read_bytes = kDramBytes};
  harness::Add(ReadCase<uint32_t, 16, kThreads>(
      {.name = "global_memory/dram_4B/bandwidth", .limit = dram, .peak_case = kPeak}, plan));
  harness::Add(ReadCase<uint2, 8, kThreads>(
      {.name = "global_memory/dram_8B/bandwidth", .limit = dram, .peak_case = kPeak}, plan));
  harness::Add(ReadCase<uint4, 4, kThreads>(
      {.name = kPeak,
       .limit = dram,
       .published = {{.cc = 90, .value = 4800, .source = "NVIDIA H200 datasheet, 4.8 TB/s"}}},
      plan));
  // Little's law: how much must be in flight? Loops of resident CTAs, so that the
  // figure is what an SM can have under way.
  const auto in_flight = [&](auto loads, int ctas_per_sm) {
    constexpr int kLoads = decltype(loads)::value;
    ReadPlan resident = plan;
    resident.ctas_per_sm = ctas_per_sm;
    const int64_t bytes = int64_t{ctas_per_sm} * kThreads * kLoads * sizeof(uint4);
    harness::Add(ReadCase<uint4, kLoads, kThreads>(
        {.name = absl::StrCat("global_memory/dram_in_flight_", Size(bytes), "/bandwidth"),
         .limit = dram,
         .peak_case = kPeak},
        resident));
  };
  in_flight(std::integral_constant<int, 1>(), 1);
  in_flight(std::integral_constant<int, 1>(), 2);
  in_flight(std::integral_constant<int, 2>(), 2);
  in_flight(std::integral_constant<int, 4>(), 2);
  in_flight(std::integral_constant<int, 4>(), 4);
  in_flight(std::integral_constant<int, 4>(), 8);
}

}  // namespace

WARPLEDGER_MICRO(global_memory) {
  AddL1<uint32_t>(64 * kKiB);
  AddL1<uint2>(64 * kKiB);
  for (const int64_t footprint : {64, 128, 192, 256, 512}) AddL1<uint4>(footprint * kKiB);
  AddL2Cases();
  AddDramCases();

  AddChase(false, 32 * kKiB, /*warm=*/true);
  AddChase(false, 64 * kKiB, true,
           {{.cc = 90, .value = 40.7, .source = kLuo90},
            {.cc = 89, .value = 43.4, .source = kLuo89},
            {.cc = 80, .value = 37.9, .source = kLuo80}});
  AddChase(false, 128 * kKiB, true);
  AddChase(false, 192 * kKiB, true);
  AddChase(false, 256 * kKiB, true);
  AddChase(true, 1 * kMiB, true);
  AddChase(true, 8 * kMiB, true,
           {{.cc = 90, .value = 263.0, .source = kLuo90},
            {.cc = 89, .value = 273.0, .source = kLuo89},
            {.cc = 80, .value = 261.5, .source = kLuo80}});
  for (const int64_t footprint : {16, 24, 32, 48, 64}) AddChase(true, footprint * kMiB, true);
  AddChase(true, 1 * kGiB, /*warm=*/false,
           {{.cc = 90, .value = 478.8, .source = kLuo90},
            {.cc = 89, .value = 541.5, .source = kLuo89},
            {.cc = 80, .value = 466.3, .source = kLuo80}});
}

}  // namespace warpledger::global_memory
