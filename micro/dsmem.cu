// SPDX-License-Identifier: Apache-2.0
// Question: what does it cost to read or write the shared memory of another CTA of the
// cluster, by loads, by stores, asynchronously, or in bulk?
//
// Mechanism: a cluster's CTAs lie on SMs of one GPC, and a network between these
// SMs carries accesses to the cluster's window of addresses (distributed shared memory).
// A load waits for the way there and back. st.async and cp.async.bulk go one way and
// complete as bytes on an mbarrier over there, which saves a flag and a fence.
//
// Formula: latency of loads = slope of cycles over a chain of addresses that lie in the
// other CTA; of asynchronous copies, half of a round trip in which each of two CTAs
// waits for the other's bytes before it sends its own, the wait's end included.
// Throughput = bytes that a CTA reads or writes in its neighbour / cycles, all SMs at
// work, one CTA each.
//
// Expected on Hopper: loads 181 to 213 cycles and about 20 B/clk/SM (Luo et al., as
// quoted by others), against 23 cycles and 128 B/clk/SM at home; stores no faster; a
// hop of st.async about as long as a load's way there plus a wait's 40 cycles, so
// shorter than a load.
//
// Falsified by: a load in the own CTA through the cluster's window as slow as one of the
// neighbour; throughput above 32 B/clk/SM; a hop longer than a load.
//
// Seen on an H200: a hop takes 342 cycles, longer than a load's way there and back, so
// completion on an mbarrier and the wait for it cost more than the way that they save.
//
// Compiled for sm_90 alone.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/common/cluster.cuh"
#include "kernels/common/tma.cuh"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger::dsmem {
namespace {

using harness::CycleArgs;
using ptx::SharedAddress;

constexpr int kUnroll = 8;
constexpr int kThreads = 256;
constexpr int kLaneBytes = 16;
// What a CTA offers to its neighbour: kUnroll accesses of each thread, twice, as
// iterations alternate between two halves; what is read at the same place every time
// leaves the loop.
constexpr int kHalfBytes = kThreads * kUnroll * kLaneBytes;
constexpr int kWindowBytes = 2 * kHalfBytes;

__device__ void FillRandom(uint32_t* words, int count, uint32_t seed) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) words[i] = harness::RandomBits(seed, i);
}

// --- Loads and stores ------------------------------------------------------------

// params[0]: how many ranks on the CTA lies that is read; 0 is the own one.
template <int kCluster>
__global__ void __cluster_dims__(kCluster, 1, 1) ChaseKernel(CycleArgs args) {
  __shared__ uint32_t nodes[32];
  const uint32_t rank = (ptx::ClusterRank() + static_cast<uint32_t>(args.params[0])) % kCluster;
  const uint32_t theirs = ptx::MapShared(SharedAddress(&nodes[threadIdx.x]), rank);
  // A word of a CTA holds its own address in the cluster's window: whoever reads it
  // reads it again.
  nodes[threadIdx.x] = ptx::MapShared(SharedAddress(&nodes[threadIdx.x]), ptx::ClusterRank());
  ptx::ClusterSync();
  uint32_t address = theirs;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) address = ptx::LoadCluster32(address);
  }
  harness::StopCycles(args, start);
  ptx::ClusterSync();
  harness::KeepAlive(args, address);
}

enum class Access { kLoad32, kLoad128, kStore128 };
constexpr int BytesOf(Access access) { return access == Access::kLoad32 ? 4 : kLaneBytes; }

template <int kCluster, Access kAccess>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads)
    NeighbourKernel(CycleArgs args) {
  extern __shared__ uint4 window[];  // (2, kUnroll, kThreads)
  FillRandom(reinterpret_cast<uint32_t*>(window), kWindowBytes / 4, args.seed);
  const uint32_t neighbour = (ptx::ClusterRank() + 1) % kCluster;
  constexpr int kBytes = BytesOf(kAccess);
  constexpr int kStride = kThreads * kBytes;
  const uint32_t first = ptx::MapShared(SharedAddress(window), neighbour) + threadIdx.x * kBytes;
  uint32_t half = 0;
  const uint32_t bits = harness::RandomBits(args.seed, threadIdx.x);
  uint32_t folded = 0;
  ptx::ClusterSync();
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
    const uint32_t theirs = first + half;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if constexpr (kAccess == Access::kLoad32) {
        folded ^= ptx::LoadCluster32(theirs + u * kStride);
      } else if constexpr (kAccess == Access::kLoad128) {
        const uint4 v = ptx::LoadCluster128(theirs + u * kStride);
        folded ^= v.x ^ v.y ^ v.z ^ v.w;
      } else {
        ptx::StoreCluster128(theirs + u * kStride, make_uint4(bits, ~bits, bits ^ i, u));
      }
    }
    half ^= kHalfBytes;
  }
  // Stores are done when the cluster's barrier, which releases them, is passed.
  if constexpr (kAccess == Access::kStore128) ptx::ClusterSync();
  harness::StopCycles(args, start);
  ptx::ClusterSync();
  harness::KeepAlive(args, folded);
}

// --- Asynchronous copies between two CTAs ----------------------------------------
//
// Each CTA has two barriers, used in turn. It sends round r + 1 only when it has the
// other's round r, so that a barrier never gets bytes of two rounds at a time.

enum class Send { kStAsync, kBulk };
enum class Order { kPingPong, kBothAtOnce };

struct Mailbox {
  uint32_t mine;    // the two barriers here …
  uint32_t theirs;  // … and there
  uint32_t source;  // what is sent, and where it goes over there
  uint32_t destination;
  uint32_t bytes_per_copy;  // of one bulk copy
};

constexpr int kBarrierBytes = 8;

// One round of kCopies bulk copies, or of kUnroll st.async of every thread.
template <Send kSend>
__device__ void SendRound(const Mailbox& box, uint32_t slot, int copies) {
  const uint32_t barrier = box.theirs + slot * kBarrierBytes;
  if constexpr (kSend == Send::kStAsync) {
    const uint4 v = make_uint4(threadIdx.x, slot, box.source, box.bytes_per_copy);
    for (int c = 0; c < copies; ++c) {
      const uint32_t at = (c * blockDim.x + threadIdx.x) * kLaneBytes;
      ptx::StoreAsync128(box.destination + at, v, barrier);
    }
  } else if (threadIdx.x == 0) {
    for (int c = 0; c < copies; ++c) {
      const uint32_t at = c * box.bytes_per_copy;
      ptx::BulkCopyToCluster(box.destination + at, box.source + at, box.bytes_per_copy, barrier);
    }
  }
}

// params[0]: bytes of a bulk copy; params[1]: copies of a round, of st.async those of a
// thread; params[2]: bytes of a round.
template <Send kSend, Order kOrder>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kThreads)
    ExchangeKernel(CycleArgs args) {
  extern __shared__ uint4 window[];  // what is sent, then what is received
  __shared__ uint64_t barriers[2];
  const auto round_bytes = static_cast<uint32_t>(args.params[2]);
  const auto copies = static_cast<int>(args.params[1]);
  FillRandom(reinterpret_cast<uint32_t*>(window), static_cast<int>(round_bytes / 4), args.seed);
  ptx::FenceProxyAsync();
  if (threadIdx.x == 0) {
    for (uint64_t& barrier : barriers) ptx::MbarrierInit(SharedAddress(&barrier), 1);
    ptx::MbarrierInitFence();
  }
  const uint32_t rank = ptx::ClusterRank();
  const uint32_t other = rank ^ 1;
  const Mailbox box = {.mine = SharedAddress(barriers),
                       .theirs = ptx::MapShared(SharedAddress(barriers), other),
                       .source = SharedAddress(window),
                       .destination = ptx::MapShared(SharedAddress(window) + round_bytes, other),
                       .bytes_per_copy = static_cast<uint32_t>(args.params[0])};
  const bool sends_first = kOrder == Order::kBothAtOnce || rank == 0;
  ptx::ClusterSync();
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
    const uint32_t slot = i & 1;
    const uint32_t barrier = box.mine + slot * kBarrierBytes;
    if (threadIdx.x == 0) ptx::MbarrierArriveExpectBytes(barrier, round_bytes);
    if (sends_first) SendRound<kSend>(box, slot, copies);
    ptx::MbarrierWait(barrier, (i >> 1) & 1);
    if (!sends_first) SendRound<kSend>(box, slot, copies);
  }
  harness::StopCycles(args, start);
  ptx::ClusterSync();
  harness::KeepAlive(args, reinterpret_cast<uint32_t*>(window)[round_bytes / 4 + threadIdx.x]);
}

// --- Cases -----------------------------------------------------------------------

constexpr char kLuo[] = "Luo et al., arXiv 2402.13499, Hopper, second-hand";

harness::CycleCase Case(std::string name, std::string measures, harness::Measure measure,
                        harness::CycleKernel kernel, int cluster, std::string sass) {
  harness::CycleCase c;
  c.about.name = absl::StrCat("dsmem/", name);
  c.about.measures = std::move(measures);
  c.about.unit = measure == harness::Measure::kLatency ? "cycles" : "B/clk/SM";
  c.about.min_cc = 90;
  c.about.max_cc = 90;
  c.about.evidence = {{.sass = std::move(sass)}};
  c.about.parameters = {{"cluster_ctas", static_cast<double>(cluster)}};
  c.measure = measure;
  c.kernel = kernel;
  if (measure == harness::Measure::kLatency) c.ctas = cluster;
  return c;
}

template <int kCluster>
void AddChase(int ranks_on) {
  harness::CycleCase c =
      Case(absl::StrCat("load_cluster_", kCluster, ranks_on == 0 ? "_own" : "", "/latency"),
           absl::StrCat("cycles of a dependent load from ",
                        ranks_on == 0 ? "the own CTA, by the cluster's window" : "the next CTA"),
           harness::Measure::kLatency, ChaseKernel<kCluster>, kCluster, R"(^LD\.E)");
  c.about.evidence[0].at_least = kUnroll;
  c.about.evidence.push_back({.ptx = R"(ld\.shared::cluster\.u32)", .at_least = kUnroll});
  c.units_per_iteration = kUnroll;
  if (ranks_on != 0 && kCluster == 2) {
    c.about.published = {{.cc = 90, .value = 181, .source = kLuo}};
  }
  c.args = {ranks_on};
  harness::Add(std::move(c));
}

template <int kCluster, Access kAccess>
void AddNeighbour(const std::string& name) {
  constexpr bool kLoads = kAccess != Access::kStore128;
  harness::CycleCase c =
      Case(absl::StrCat(name, "_cluster_", kCluster, "/throughput"),
           absl::StrCat("bytes per clock and SM ", kLoads ? "read from" : "written to",
                        " the next CTA, ", BytesOf(kAccess), " per thread"),
           harness::Measure::kThroughput, NeighbourKernel<kCluster, kAccess>, kCluster,
           kLoads ? R"(^LD\.E)" : R"(^ST\.E)");
  c.about.evidence[0].at_least = kUnroll;
  c.units_per_iteration = kUnroll * BytesOf(kAccess);
  c.threads = kThreads;
  c.dynamic_smem_bytes = kWindowBytes;
  if (kLoads) {
    c.about.published = {{.cc = 90,
                          .value = 20,
                          .source = kLuo,
                          .why = "second-hand; wider loads and larger clusters get less here, and "
                                 "theirs are unknown"}};
  }
  harness::Add(std::move(c));
}

template <Send kSend>
std::string SendSass() {
  return kSend == Send::kStAsync ? R"(^ST\.ASYNC|^STAS)" : R"(^UBLKCP\.S\.S$)";
}

// A hop of one warp's st.async, or of one bulk copy.
template <Send kSend>
void AddHop(const std::string& name, int bytes) {
  harness::CycleCase c = Case(
      absl::StrCat(name, "/latency"),
      "cycles from sending to the end of the other CTA's wait, half of a round trip",
      harness::Measure::kLatency, ExchangeKernel<kSend, Order::kPingPong>, 2, SendSass<kSend>());
  c.about.parameters.push_back({"bytes", static_cast<double>(bytes)});
  c.units_per_iteration = 2;
  c.threads = 32;
  c.dynamic_smem_bytes = 2 * bytes;
  c.args = {bytes, 1, bytes};
  harness::Add(std::move(c));
}

template <Send kSend>
void AddExchange(const std::string& name, int bytes_per_copy, int copies) {
  const int round_bytes =
      kSend == Send::kStAsync ? copies * kThreads * kLaneBytes : copies * bytes_per_copy;
  harness::CycleCase c = Case(absl::StrCat(name, "/throughput"),
                              "bytes per clock and SM sent to the other CTA, which sends as many",
                              harness::Measure::kThroughput,
                              ExchangeKernel<kSend, Order::kBothAtOnce>, 2, SendSass<kSend>());
  c.about.parameters.push_back({"round_bytes", static_cast<double>(round_bytes)});
  c.threads = kSend == Send::kStAsync ? kThreads : 32;
  c.units_per_iteration = static_cast<double>(round_bytes) / c.threads;
  c.dynamic_smem_bytes = 2 * round_bytes;
  c.args = {bytes_per_copy, copies, round_bytes};
  harness::Add(std::move(c));
}

}  // namespace

WARPLEDGER_MICRO(dsmem) {
  AddChase<2>(0);
  AddChase<2>(1);
  AddChase<4>(1);
  AddNeighbour<2, Access::kLoad32>("load_4B");
  AddNeighbour<2, Access::kLoad128>("load_16B");
  AddNeighbour<4, Access::kLoad128>("load_16B");
  AddNeighbour<2, Access::kStore128>("store_16B");
  AddHop<Send::kStAsync>("st_async_512B", 512);
  AddHop<Send::kBulk>("bulk_512B", 512);
  AddHop<Send::kBulk>("bulk_8KiB", 8192);
  AddExchange<Send::kStAsync>("st_async_16B", kLaneBytes, 8);
  AddExchange<Send::kBulk>("bulk_1KiB", 1024, 64);
  AddExchange<Send::kBulk>("bulk_8KiB", 8192, 8);
}

}  // namespace warpledger::dsmem
