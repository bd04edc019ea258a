// SPDX-License-Identifier: Apache-2.0
// Question: what does it cost that threads wait for each other: a CTA's barrier by
// its warps, named barriers of parts of a CTA, __syncwarp, mbarrier, a cluster's
// barrier; and what do atomics cost, in shared and in global memory?
//
// Mechanism: BAR counts warps in hardware that one SM has for all its CTAs, so it
// takes longer with more warps. An mbarrier is a word in shared memory: an arrival
// is an atomic there, a wait reads it until the phase changes. A cluster's barrier
// crosses SMs. Atomics on shared memory run where the banks are, those on global
// memory in the L2; the same word for all lanes is serialised in both.
//
// Formula: cycles per barrier = slope over the barriers of a loop that does nothing
// else, from the CTA's first start to its last stop. Atomics: latency by the chain
// through the value that each returns, throughput by a full SM (all SMs at once
// for global memory).
//
// Expected on Hopper: mbarrier arrival 6 cycles, successful try_wait 43 (notes of
// FlashGPU-Sim). We know of no published figures for BAR by warps on Hopper and
// predict that 16 warps take less than twice the cycles of 4, and that named
// barriers of four warps cost what __syncthreads of four warps does.
//
// Falsified by: the two predictions; a __syncwarp of more than 10 cycles where the
// warp hasn't diverged; an mbarrier round cheaper than __syncthreads.

#include <cstdint>
#include <string>
#include <utility>

#include "kernels/common/mbarrier.cuh"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger {
namespace {

constexpr int kUnroll = 8;

using ptx::SharedAddress;

// A loop around kUnroll calls of `step`, timed.
template <typename Step>
__device__ void TimeLoop(const harness::CycleArgs& args, const Step& step) {
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) step();
  }
  harness::StopCycles(args, start);
}

// A barrier has no result, so nothing has to be kept alive.
__global__ void SyncThreadsKernel(harness::CycleArgs args) {
  TimeLoop(args, [] { __syncthreads(); });
}

// Each group of params[0] threads has a barrier of its own, number 1 and up
// (PTX ISA, "Parallel Synchronization and Communication: bar").
__global__ void NamedBarrierKernel(harness::CycleArgs args) {
  const int threads = static_cast<int>(args.params[0]);
  const int barrier = 1 + static_cast<int>(threadIdx.x) / threads;
  TimeLoop(args, [=] { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); });
}

// Where nvcc knows that the warp is together, __syncwarp is a NOP that keeps the
// order of memory accesses in the code; elsewhere a branch checks (BRA.DIV), and only
// lanes that are apart pay for WARPSYNC.
__global__ void SyncWarpKernel(harness::CycleArgs args) {
  TimeLoop(args, [] { __syncwarp(); });
}

// One thread initialises; all may use the barrier behind it.
__device__ void InitMbarrier(uint64_t* barrier, uint32_t arrivals) {
  if (threadIdx.x == 0) ptx::MbarrierInit(SharedAddress(barrier), arrivals);
  __syncthreads();
}

// All threads arrive and wait, again and again.
__global__ void MbarrierRoundKernel(harness::CycleArgs args) {
  __shared__ uint64_t barrier;
  InitMbarrier(&barrier, blockDim.x);
  const uint32_t address = SharedAddress(&barrier);
  uint32_t parity = 0;
  TimeLoop(args, [&] {
    ptx::MbarrierArrive(address);
    ptx::MbarrierWait(address, parity);
    parity ^= 1;
  });
}

// One thread arrives, or announces bytes too (none, so that phases go on); nobody
// waits.
template <bool kExpectsBytes>
__global__ void MbarrierArriveKernel(harness::CycleArgs args) {
  __shared__ uint64_t barrier;
  InitMbarrier(&barrier, 1);
  const uint32_t address = SharedAddress(&barrier);
  const int64_t start = harness::StartCycles();
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if constexpr (kExpectsBytes) {
          ptx::MbarrierArriveExpectBytes(address, 0);
        } else {
          ptx::MbarrierArrive(address);
        }
      }
    }
  }
  harness::StopCycles(args, start);
}

// Waits for a phase that is long over: what every wait costs at least.
__global__ void MbarrierTryWaitKernel(harness::CycleArgs args) {
  __shared__ uint64_t barrier;
  InitMbarrier(&barrier, 1);
  const uint32_t address = SharedAddress(&barrier);
  if (threadIdx.x == 0) ptx::MbarrierArrive(address);
  __syncthreads();
  // A loop of its own around it, as ptx::MbarrierWait's makes nvcc shift the parity anew
  // for each wait (53.6 cycles instead of 44.6 on an H200).
  TimeLoop(args, [=] {
    while (!ptx::MbarrierTryWait(address, 0)) {
    }
  });
}

// barrier.cluster (PTX ISA, same chapter; sm_90). All threads of kSize CTAs. The
// plain arrival releases all earlier writes to the cluster, for which nvcc issues a
// fence for the whole GPU; the relaxed one only waits.
enum class Arrival { kRelease, kRelaxed };
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define WARPLEDGER_CLUSTER(size) __cluster_dims__(size, 1, 1)
#else
#define WARPLEDGER_CLUSTER(size)
#endif
template <int kSize, Arrival kArrival>
__global__ void WARPLEDGER_CLUSTER(kSize) ClusterBarrierKernel(harness::CycleArgs args) {
  const auto barrier = [] {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if constexpr (kArrival == Arrival::kRelease) {
      asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    } else {
      asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    }
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#else
    __trap();
#endif
  };
  barrier();  // all CTAs have started
  TimeLoop(args, barrier);
}
#undef WARPLEDGER_CLUSTER

// ---- Atomics ----

// atom.add returns the old value; the chain adds it again.
__device__ uint32_t AtomicShared(uint32_t address, uint32_t value) {
  uint32_t old;
  asm volatile("atom.shared.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "r"(address), "r"(value)
               : "memory");
  return old;
}

__device__ uint32_t AtomicGlobal(uint32_t* address, uint32_t value) {
  uint32_t old;
  asm volatile("atom.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(address), "r"(value)
               : "memory");
  return old;
}

constexpr int kAtomicChains = 4;

// params[0]: words between neighbouring threads; 0: all on one word.
template <int kChains>
__global__ void SharedAtomicKernel(harness::CycleArgs args) {
  __shared__ uint32_t words[512];
  for (int i = threadIdx.x; i < 512; i += blockDim.x) words[i] = 0;
  const uint32_t address = SharedAddress(&words[threadIdx.x * args.params[0]]);
  uint32_t value[kChains];
#pragma unroll
  for (uint32_t c = 0; c < kChains; ++c) value[c] = harness::RandomBits(args.seed, c);
  TimeLoop(args, [&] {
#pragma unroll
    for (int c = 0; c < kChains; ++c) value[c] = AtomicShared(address, value[c]);
  });
  uint32_t folded = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) folded = folded * 31 + value[c];
  harness::KeepAlive(args, folded);
}

template <int kChains>
__global__ void GlobalAtomicKernel(harness::CycleArgs args) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  auto* address = static_cast<uint32_t*>(args.data) + thread * args.params[0];
  uint32_t value[kChains];
#pragma unroll
  for (uint32_t c = 0; c < kChains; ++c) value[c] = harness::RandomBits(args.seed, c);
  TimeLoop(args, [&] {
#pragma unroll
    for (int c = 0; c < kChains; ++c) value[c] = AtomicGlobal(address, value[c]);
  });
  uint32_t folded = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) folded = folded * 31 + value[c];
  harness::KeepAlive(args, folded);
}

// ---- Cases ----

constexpr char kSim[] = "FlashGPU-Sim notes, H200 NVL";

harness::CycleCase Barrier(std::string name, std::string measures, harness::CycleKernel kernel,
                           int threads, std::string sass) {
  return {.about = {.name = "barriers/" + std::move(name) + "/latency",
                    .measures = std::move(measures),
                    .unit = "cycles",
                    .evidence = {{.sass = std::move(sass), .at_least = kUnroll}},
                    .parameters = {{"threads", static_cast<double>(threads)}}},
          .measure = harness::Measure::kLatency,
          .kernel = kernel,
          .units_per_iteration = kUnroll,
          .threads = threads};
}

void AddBarriers() {
  for (const int warps : {1, 4, 8, 16, 32}) {
    harness::Add(Barrier("syncthreads_warps_" + std::to_string(warps),
                         "cycles per __syncthreads of " + std::to_string(warps) + " warps",
                         SyncThreadsKernel, warps * 32, R"(^BAR\.SYNC)"));
  }
  for (const int groups : {1, 2, 4}) {
    harness::CycleCase c = Barrier("named_4_warps_groups_" + std::to_string(groups),
                                   "cycles per bar.sync of four warps, " + std::to_string(groups) +
                                       " groups with a barrier each",
                                   NamedBarrierKernel, groups * 128, R"(^BAR\.SYNC)");
    c.args = {128};
    harness::Add(std::move(c));
  }
  harness::CycleCase warp =
      Barrier("syncwarp", "cycles per __syncwarp of a warp that nvcc knows to be together",
              SyncWarpKernel, 32, R"(^NOP$)");
  warp.about.evidence.push_back(
      {.sass = R"(^WARPSYNC|^BRA\.(DIV|CONV))", .at_least = 0, .at_most = 0});
  harness::Add(std::move(warp));
}

void AddMbarriers() {
  harness::CycleCase arrive = Barrier("mbarrier_arrive", "cycles per mbarrier.arrive of one thread",
                                      MbarrierArriveKernel<false>, 32, R"(^SYNCS\.ARRIVE)");
  arrive.about.published = {{.cc = 90, .value = 6, .source = kSim}};
  arrive.about.min_cc = 90;
  harness::Add(std::move(arrive));
  harness::CycleCase expect =
      Barrier("mbarrier_arrive_expect_tx", "cycles per mbarrier.arrive.expect_tx of one thread",
              MbarrierArriveKernel<true>, 32, R"(^SYNCS\.ARRIVE\.TRANS64)");
  expect.about.min_cc = 90;
  expect.about.evidence.push_back({.ptx = R"(mbarrier\.arrive\.expect_tx)", .at_least = kUnroll});
  harness::Add(std::move(expect));
  harness::CycleCase wait =
      Barrier("mbarrier_try_wait", "cycles per mbarrier.try_wait of a phase that is over",
              MbarrierTryWaitKernel, 32, R"(^SYNCS\.PHASECHK)");
  wait.about.published = {{.cc = 90, .value = 43, .source = kSim}};
  wait.about.min_cc = 90;
  harness::Add(std::move(wait));
  for (const int warps : {1, 4, 8, 16}) {
    harness::CycleCase round = Barrier(
        "mbarrier_round_warps_" + std::to_string(warps),
        "cycles until all threads of " + std::to_string(warps) + " warps have arrived and waited",
        MbarrierRoundKernel, warps * 32, R"(^SYNCS\.ARRIVE)");
    round.about.evidence.push_back({.sass = R"(^SYNCS\.PHASECHK)", .at_least = kUnroll});
    round.about.min_cc = 90;
    harness::Add(std::move(round));
  }
}

template <int kSize, Arrival kArrival>
void AddCluster() {
  constexpr bool kRelease = kArrival == Arrival::kRelease;
  harness::CycleCase c =
      Barrier("cluster_" + std::to_string(kSize) + "_ctas" + (kRelease ? "" : "_relaxed"),
              "cycles per cluster barrier of " + std::to_string(kSize) + " CTAs of four warps" +
                  (kRelease ? "" : ", relaxed arrival"),
              ClusterBarrierKernel<kSize, kArrival>, 128, R"(^UCGABAR_ARV)");
  c.about.min_cc = 90;
  // The fence is what the two differ by.
  const int fences = kRelease ? kUnroll : 0;
  c.about.evidence.push_back({.sass = R"(^MEMBAR)", .at_least = fences, .at_most = fences});
  c.about.parameters.push_back({"cluster_ctas", kSize});
  c.ctas = kSize;
  harness::Add(std::move(c));
}

struct AtomicCase {
  std::string subject;
  std::string words;  // which word each thread adds to
  int64_t stride;
  harness::CycleKernel one_chain;
  harness::CycleKernel chains;
  std::string sass;
  harness::MakeData make_data;
};

void AddAtomic(const AtomicCase& a) {
  harness::Add(harness::CycleCase{
      .about = {.name = "barriers/" + a.subject + "/latency",
                .measures = "cycles until an atomic add of a warp returns, " + a.words,
                .unit = "cycles",
                .evidence = {{.sass = a.sass, .at_least = kUnroll}}},
      .measure = harness::Measure::kLatency,
      .kernel = a.one_chain,
      .units_per_iteration = kUnroll,
      .make_data = a.make_data,
      .args = {a.stride}});
  harness::Add(harness::CycleCase{
      .about = {.name = "barriers/" + a.subject + "/throughput",
                .measures = "atomic adds of a thread per clock and SM, " + a.words,
                .unit = "atomic/clk/SM",
                .evidence = {{.sass = a.sass, .at_least = kUnroll * kAtomicChains}}},
      .measure = harness::Measure::kThroughput,
      .kernel = a.chains,
      .units_per_iteration = kUnroll * kAtomicChains,
      .lengths = {4, 8, 12, 16, 20},
      .make_data = a.make_data,
      .args = {a.stride}});
}

// A word for each thread of the largest launch of these cases.
absl::StatusOr<DeviceBuffer> ZeroWords(const harness::MicroDevice& device) {
  constexpr size_t kThreads = 512;
  absl::StatusOr<DeviceBuffer> words =
      DeviceBuffer::Allocate(device.facts.sm_count * kThreads * sizeof(uint32_t));
  if (!words.ok()) return words.status();
  const absl::Status filled = words->Fill(0);
  if (!filled.ok()) return filled;
  return words;
}

}  // namespace

WARPLEDGER_MICRO(barriers) {
  AddBarriers();
  AddMbarriers();
  AddCluster<2, Arrival::kRelease>();
  AddCluster<4, Arrival::kRelease>();
  AddCluster<8, Arrival::kRelease>();
  AddCluster<2, Arrival::kRelaxed>();
  AddCluster<8, Arrival::kRelaxed>();
  for (const int64_t stride : {1, 0}) {
    const std::string subject = stride == 0 ? "same_word" : "own_word";
    const std::string words = stride == 0 ? "all on one word" : "each thread on its own word";
    AddAtomic({.subject = "atomic_shared_" + subject,
               .words = words + " of shared memory",
               .stride = stride,
               .one_chain = SharedAtomicKernel<1>,
               .chains = SharedAtomicKernel<kAtomicChains>,
               .sass = R"(^ATOMS)",
               .make_data = {}});
    AddAtomic({.subject = "atomic_global_" + subject,
               .words = words + " of global memory",
               .stride = stride,
               .one_chain = GlobalAtomicKernel<1>,
               .chains = GlobalAtomicKernel<kAtomicChains>,
               .sass = R"(^ATOMG)",
               .make_data = ZeroWords});
  }
}

}  // namespace warpledger
