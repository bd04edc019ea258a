// SPDX-License-Identifier: Apache-2.0
// Question: what does TMA take for one copy, how much must it have
// under way to use L2 and DRAM fully, and what does multicast to a cluster add?
//
// Mechanism: one thread orders a whole tile, by address and size (1-D) or by
// coordinates in a tensor map that also swizzles (2-D); the engine cuts it into
// requests and reports bytes to an mbarrier. Stores are waited for in groups: until
// shared memory has been read, or until all is written. A multicast load is read
// from L2 once and written to every CTA of the cluster.
//
// Formula: latency = slope of cycles over rounds of order, announcement and wait, one
// thread of one CTA, data in L2. Bandwidth = bytes that arrive in shared memory / time
// of a launch of one CTA per SM that keeps `slots` copies under way; by Little's law
// min(bytes in flight / latency, rate of the level).
//
// Expected on Hopper: 365 to 369 cycles for a small load (FlashGPU-Sim's notes, H200
// NVL; an ordinary load 264). 16 KiB take 256 cycles more at 64 B/clk. L2's rate, 9 TB/s or
// 34 B/clk/SM, at 500 cycles needs 17 KiB in flight, DRAM's 4.6 TB/s at 900 cycles
// 16 KiB: 16 to 32 KiB saturate either. Multicast to 2 and 4 delivers up to 2 and 4
// times what L2 gives, until shared memory's 128 B/clk/SM bind.
//
// Falsified by: bandwidth that still rises by 10% from 64 to 128 KiB in flight; 2-D
// loads more than 5% below 1-D ones of the same size; multicast to 2 that delivers less
// than 1.3 times what a CTA gets alone.
//
// Seen on an H200: one thread that waits, announces and orders in a loop orders a copy
// every 150 cycles, so copies of less than 4 KiB can't use L2 from one thread, however
// many are under way. A store's group is complete two cycles after its shared memory
// has been read: completion isn't the way to L2 and back.
//
// Compiled for sm_90a alone, where multicast is at home. Streams through TMA with arithmetic beside
// them, against cp.async: cp_async_depth.cu.

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/common/cluster.cuh"
#include "kernels/common/cuda_status.h"
#include "kernels/common/random.h"
#include "kernels/common/tma.cuh"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"
#include "micro/memory_inputs.cuh"
#include "micro/tensor_map.h"

namespace warpledger::tma {
namespace {

using harness::CycleArgs;
using ptx::SharedAddress;

constexpr int64_t kMiB = 1024 * 1024;
constexpr int kRowBytes = micro::kTensorRowBytes;
constexpr int kSwizzleAtom = 1024;

enum class Copy { kBulk1d, kTensor2d };

// --- Latency ---------------------------------------------------------------------

constexpr int64_t kLatencyBytes = kMiB;  // stays in L2; behind it lies the tensor map

__device__ const CUtensorMap* MapBehind(const CycleArgs& args) {
  return reinterpret_cast<const CUtensorMap*>(static_cast<const char*>(args.data) + kLatencyBytes);
}

// What an iteration copies: the next `bytes` of the data, around and around.
__device__ uint32_t Advance(uint32_t offset, uint32_t bytes) {
  return (offset + bytes) % static_cast<uint32_t>(kLatencyBytes);
}

// params[0]: bytes of a copy; 2-D: those of the map's box.
template <Copy kCopy>
__global__ void LoadLatencyKernel(CycleArgs args) {
  extern __shared__ __align__(kSwizzleAtom) unsigned char tile[];
  __shared__ uint64_t full;
  const uint32_t barrier = SharedAddress(&full);
  const uint32_t to = SharedAddress(tile);
  const auto bytes = static_cast<uint32_t>(args.params[0]);
  if (threadIdx.x == 0) {
    ptx::MbarrierInit(barrier, 1);
    ptx::MbarrierInitFence();
  }
  uint32_t offset = args.seed * bytes % static_cast<uint32_t>(kLatencyBytes);
  uint32_t parity = 0;
  const int64_t start = harness::StartCycles();
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 0; i < args.iterations; ++i) {
      ptx::MbarrierArriveExpectBytes(barrier, bytes);
      if constexpr (kCopy == Copy::kBulk1d) {
        ptx::BulkLoad(to, static_cast<const char*>(args.data) + offset, bytes, barrier);
      } else {
        ptx::TmaLoad2d(to, MapBehind(args), barrier, 0, static_cast<int>(offset / kRowBytes));
      }
      ptx::MbarrierWait(barrier, parity);
      parity ^= 1;
      offset = Advance(offset, bytes);
    }
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, tile[0]);
}

// The leader of a cluster loads for all of its CTAs; the others tell it when they have
// got their copies, so that no round runs into the one before.
template <int kCluster>
__global__ void __cluster_dims__(kCluster, 1, 1) MulticastLatencyKernel(CycleArgs args) {
  extern __shared__ __align__(kSwizzleAtom) unsigned char tile[];
  __shared__ uint64_t full;
  __shared__ uint64_t received;
  const uint32_t barrier = SharedAddress(&full);
  const auto bytes = static_cast<uint32_t>(args.params[0]);
  if (threadIdx.x == 0) {
    ptx::MbarrierInit(barrier, 1);
    ptx::MbarrierInit(SharedAddress(&received), kCluster - 1);
    ptx::MbarrierInitFence();
  }
  const bool leads = ptx::ClusterRank() == 0;
  const uint32_t at_leader = ptx::MapShared(SharedAddress(&received), 0);
  uint32_t offset = args.seed * bytes % static_cast<uint32_t>(kLatencyBytes);
  uint32_t parity = 0;
  ptx::ClusterSync();
  const int64_t start = harness::StartCycles();
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 0; i < args.iterations; ++i) {
      ptx::MbarrierArriveExpectBytes(barrier, bytes);
      if (leads) {
        ptx::TmaLoad2dMulticast(SharedAddress(tile), MapBehind(args), barrier, 0,
                                static_cast<int>(offset / kRowBytes), (1 << kCluster) - 1);
      }
      ptx::MbarrierWait(barrier, parity);
      if (leads) {
        ptx::MbarrierWait(SharedAddress(&received), parity);
      } else {
        ptx::MbarrierArriveClusterRelaxed(at_leader);
      }
      parity ^= 1;
      offset = Advance(offset, bytes);
    }
  }
  harness::StopCycles(args, start);
  ptx::ClusterSync();  // nobody leaves while others still tell it
  harness::KeepAlive(args, tile[0]);
}

enum class Until { kRead, kWritten };

template <Copy kCopy, Until kUntil>
__global__ void StoreLatencyKernel(CycleArgs args) {
  extern __shared__ __align__(kSwizzleAtom) unsigned char tile[];
  const auto bytes = static_cast<uint32_t>(args.params[0]);
  for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x) {
    reinterpret_cast<uint32_t*>(tile)[i] = harness::RandomBits(args.seed, i);
  }
  ptx::FenceProxyAsync();
  const uint32_t from = SharedAddress(tile);
  uint32_t offset = args.seed * bytes % static_cast<uint32_t>(kLatencyBytes);
  const int64_t start = harness::StartCycles();
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 0; i < args.iterations; ++i) {
      if constexpr (kCopy == Copy::kBulk1d) {
        ptx::BulkStore(static_cast<char*>(args.data) + offset, from, bytes);
      } else {
        ptx::TmaStore2d(MapBehind(args), from, 0, static_cast<int>(offset / kRowBytes));
      }
      ptx::BulkCommit();
      if constexpr (kUntil == Until::kRead) {
        ptx::BulkWaitRead<0>();
      } else {
        ptx::BulkWait<0>();
      }
      offset = Advance(offset, bytes);
    }
    ptx::BulkWait<0>();
  }
  harness::StopCycles(args, start);
}

// Random words and, behind them, the map of boxes of `bytes`.
harness::MakeData DataAndMap(int bytes) {
  return [bytes](const harness::MicroDevice&) -> absl::StatusOr<DeviceBuffer> {
    absl::StatusOr<DeviceBuffer> data =
        memory_inputs::RandomWords(kLatencyBytes + int64_t{sizeof(CUtensorMap)});
    if (!data.ok()) return data.status();
    const absl::StatusOr<CUtensorMap> map =
        micro::EncodeRows(data->data(), kLatencyBytes / kRowBytes, std::max(1, bytes / kRowBytes));
    if (!map.ok()) return map.status();
    RETURN_IF_CUDA_ERROR(cudaMemcpy(static_cast<char*>(data->data()) + kLatencyBytes, &*map,
                                    sizeof(*map), cudaMemcpyHostToDevice),
                         "copying a tensor map");
    return data;
  };
}

// --- Bandwidth -------------------------------------------------------------------

struct StreamArgs {
  CUtensorMap map = {};
  unsigned char* data = nullptr;
  uint32_t copy_bytes = 0;
  uint32_t slots = 0;   // copies under way in each CTA
  uint32_t copies = 0;  // of the launch
  uint32_t mask = 0;    // copies of the footprint, a power of two, minus 1
};

constexpr int kMaxSlots = 128;

// Copy number i of a CTA, of `count` that it makes.
__device__ uint32_t Place(const StreamArgs& args, uint32_t i, uint32_t worker, uint32_t workers) {
  return (worker + i * workers) & args.mask;
}

template <Copy kCopy>
__global__ void __launch_bounds__(32) LoadStreamKernel(const __grid_constant__ StreamArgs args) {
  extern __shared__ __align__(kSwizzleAtom) unsigned char ring[];
  __shared__ uint64_t full[kMaxSlots];
  if (threadIdx.x != 0) return;
  for (uint32_t s = 0; s < args.slots; ++s) ptx::MbarrierInit(SharedAddress(full + s), 1);
  ptx::MbarrierInitFence();
  const uint32_t count =
      args.copies > blockIdx.x ? (args.copies - blockIdx.x - 1) / gridDim.x + 1 : 0;
  const auto order = [&](uint32_t slot, uint32_t i) {
    if (i >= count) return;
    const uint32_t barrier = SharedAddress(full + slot);
    const uint32_t to = SharedAddress(ring) + slot * args.copy_bytes;
    const uint32_t place = Place(args, i, blockIdx.x, gridDim.x);
    ptx::MbarrierArriveExpectBytes(barrier, args.copy_bytes);
    if constexpr (kCopy == Copy::kBulk1d) {
      ptx::BulkLoad(to, args.data + uint64_t{place} * args.copy_bytes, args.copy_bytes, barrier);
    } else {
      const uint32_t box_rows = args.copy_bytes / kRowBytes;
      ptx::TmaLoad2d(to, &args.map, barrier, 0, static_cast<int>(place * box_rows));
    }
  };
  for (uint32_t s = 0; s < args.slots; ++s) order(s, s);
  uint32_t slot = 0;
  uint32_t parity = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < count; ++i) {
    ptx::MbarrierWait(SharedAddress(full + slot), parity);
    order(slot, i + args.slots);
    if (++slot == args.slots) {
      slot = 0;
      parity ^= 1;
    }
  }
}

// Each CTA of a cluster loads its share of the rows of every copy and sends it to all.
// A slot is loaded again when all have said that it is free.
template <int kCluster>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(32)
    MulticastStreamKernel(const __grid_constant__ StreamArgs args) {
  extern __shared__ __align__(kSwizzleAtom) unsigned char ring[];
  __shared__ uint64_t full[kMaxSlots];
  __shared__ uint64_t free_in_all[kMaxSlots];
  if (threadIdx.x == 0) {
    for (uint32_t s = 0; s < args.slots; ++s) {
      ptx::MbarrierInit(SharedAddress(full + s), 1);
      ptx::MbarrierInit(SharedAddress(free_in_all + s), kCluster);
    }
    ptx::MbarrierInitFence();
  }
  ptx::ClusterSync();
  const uint32_t rank = ptx::ClusterRank();
  const uint32_t worker = blockIdx.x / kCluster;
  const uint32_t workers = gridDim.x / kCluster;
  const uint32_t count = args.copies > worker ? (args.copies - worker - 1) / workers + 1 : 0;
  if (threadIdx.x == 0) {
    const uint32_t share = args.copy_bytes / kCluster;
    const auto order = [&](uint32_t slot, uint32_t i) {
      const uint32_t barrier = SharedAddress(full + slot);
      const uint32_t to = SharedAddress(ring) + slot * args.copy_bytes + rank * share;
      const uint32_t row =
          (Place(args, i, worker, workers) * args.copy_bytes + rank * share) / kRowBytes;
      ptx::MbarrierArriveExpectBytes(barrier, args.copy_bytes);
      ptx::TmaLoad2dMulticast(to, &args.map, barrier, 0, static_cast<int>(row),
                              (1 << kCluster) - 1);
    };
    for (uint32_t s = 0; s < args.slots && s < count; ++s) order(s, s);
    // A slot is loaded again kLag copies after it was used, so that nobody waits for
    // the others' word, which crosses the cluster.
    constexpr uint32_t kLag = 2;
    uint32_t slot = 0;
    uint32_t parity = 0;
    uint32_t freed_slot = 0;
    uint32_t freed_parity = 0;
    const auto next = [&args](uint32_t& at, uint32_t& phase) {
      if (++at == args.slots) {
        at = 0;
        phase ^= 1;
      }
    };
#pragma unroll 1
    for (uint32_t i = 0; i < count; ++i) {
      ptx::MbarrierWait(SharedAddress(full + slot), parity);
      for (int c = 0; c < kCluster; ++c) {
        ptx::MbarrierArriveClusterRelaxed(ptx::MapShared(SharedAddress(free_in_all + slot), c));
      }
      next(slot, parity);
      if (i < kLag) continue;
      const uint32_t again = i - kLag + args.slots;
      if (again < count) {
        ptx::MbarrierWait(SharedAddress(free_in_all + freed_slot), freed_parity);
        order(freed_slot, again);
      }
      next(freed_slot, freed_parity);
    }
  }
  ptx::ClusterSync();
}

// Groups of one copy each; kSlots of them are under way.
template <Copy kCopy, int kSlots>
__global__ void __launch_bounds__(32) StoreStreamKernel(const __grid_constant__ StreamArgs args) {
  extern __shared__ __align__(kSwizzleAtom) unsigned char ring[];
  for (uint32_t i = threadIdx.x; i < kSlots * args.copy_bytes / 4; i += blockDim.x) {
    reinterpret_cast<uint32_t*>(ring)[i] = harness::RandomBits(blockIdx.x, i);
  }
  ptx::FenceProxyAsync();
  __syncwarp();
  if (threadIdx.x != 0) return;
  uint32_t slot = 0;
#pragma unroll 1
  for (uint32_t i = blockIdx.x; i < args.copies; i += gridDim.x) {
    const uint32_t place = i & args.mask;
    const uint32_t from = SharedAddress(ring) + slot * args.copy_bytes;
    if constexpr (kCopy == Copy::kBulk1d) {
      ptx::BulkStore(args.data + uint64_t{place} * args.copy_bytes, from, args.copy_bytes);
    } else {
      const uint32_t box_rows = args.copy_bytes / kRowBytes;
      ptx::TmaStore2d(&args.map, from, 0, static_cast<int>(place * box_rows));
    }
    ptx::BulkCommit();
    ptx::BulkWaitRead<kSlots - 1>();
    if (++slot == kSlots) slot = 0;
  }
  ptx::BulkWait<0>();
}

// --- Cases -----------------------------------------------------------------------

constexpr char kSim[] = "FlashGPU-Sim notes, H200 NVL: 365 to 369";

std::string Size(int64_t bytes) {
  return bytes >= 1024 ? absl::StrCat(bytes / 1024, "KiB") : absl::StrCat(bytes, "B");
}
std::string NameOf(Copy copy) { return copy == Copy::kBulk1d ? "1d" : "2d"; }

// In SASS: from global to shared memory, or back.
std::string LoadSass(Copy copy) {
  return copy == Copy::kBulk1d ? R"(^UBLKCP\.S\.G$)" : R"(^UTMALDG\.2D$)";
}
std::string StoreSass(Copy copy) {
  return copy == Copy::kBulk1d ? R"(^UBLKCP\.G\.S$)" : R"(^UTMASTG\.2D$)";
}

harness::CycleCase Latency(std::string name, std::string measures, harness::CycleKernel kernel,
                           int bytes, std::string sass) {
  return {.about = {.name = absl::StrCat("tma/", name, "/latency"),
                    .measures = std::move(measures),
                    .unit = "cycles",
                    .min_cc = 90,
                    .max_cc = 90,
                    .evidence = {{.sass = std::move(sass), .at_most = 1}},
                    .parameters = {{"bytes", static_cast<double>(bytes)}}},
          .measure = harness::Measure::kLatency,
          .kernel = kernel,
          .units_per_iteration = 1,
          .dynamic_smem_bytes = std::max(bytes, kSwizzleAtom),
          .make_data = DataAndMap(bytes),
          .args = {bytes}};
}

template <Copy kCopy>
void AddLoadLatency(int bytes, std::vector<harness::Published> published = {}) {
  harness::CycleCase c =
      Latency(absl::StrCat("load_", NameOf(kCopy), "_", Size(bytes)),
              "cycles from a load's order to the end of the wait for it, data in L2",
              LoadLatencyKernel<kCopy>, bytes, LoadSass(kCopy));
  c.about.published = std::move(published);
  // The announcement and the wait are part of the round.
  c.about.evidence.push_back({.sass = R"(^SYNCS\.PHASECHK)"});
  c.about.evidence.push_back({.ptx = R"(mbarrier\.arrive\.expect_tx)", .at_most = 1});
  harness::Add(std::move(c));
}

template <int kCluster>
void AddMulticastLatency(int bytes) {
  harness::CycleCase c =
      Latency(absl::StrCat("load_multicast_", kCluster, "_", Size(bytes)),
              absl::StrCat("cycles from a load's order until the last of ", kCluster,
                           " CTAs has told the leader that it got its copy"),
              MulticastLatencyKernel<kCluster>, bytes, R"(^UTMALDG\.2D\.MULTICAST)");
  c.about.parameters.push_back({"cluster_ctas", kCluster});
  c.ctas = kCluster;
  harness::Add(std::move(c));
}

template <Copy kCopy>
void AddStoreLatency(int bytes) {
  const std::string name = absl::StrCat("store_", NameOf(kCopy), "_", Size(bytes));
  harness::Add(Latency(name + "_until_read",
                       "cycles from a store's order until its shared memory may be reused",
                       StoreLatencyKernel<kCopy, Until::kRead>, bytes, StoreSass(kCopy)));
  harness::Add(Latency(name + "_until_written", "cycles from a store's order until it is done",
                       StoreLatencyKernel<kCopy, Until::kWritten>, bytes, StoreSass(kCopy)));
}

enum class Level { kL2, kDram };

struct StreamPlan {
  const void* kernel = nullptr;
  Level level = Level::kL2;
  int copy_bytes = 0;
  int box_rows = 0;  // of the tensor map: a CTA's share of a copy
  int slots = 0;
  int cluster = 1;
};

absl::StatusOr<harness::LaunchFunction> SetUpStream(const StreamPlan& plan, int64_t footprint,
                                                    int64_t copied,
                                                    const harness::MicroDevice& device) {
  const int smem_bytes = plan.slots * plan.copy_bytes;
  RETURN_IF_CUDA_ERROR(
      cudaFuncSetAttribute(plan.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem_bytes),
      absl::StrCat("asking for ", smem_bytes, " B of shared memory"));
  absl::StatusOr<std::shared_ptr<DeviceBuffer>> buffer =
      memory_inputs::SharedRandomWords(footprint);
  if (!buffer.ok()) return buffer.status();
  const absl::StatusOr<CUtensorMap> map =
      micro::EncodeRows((*buffer)->data(), footprint / kRowBytes, plan.box_rows);
  if (!map.ok()) return map.status();
  StreamArgs args = {.map = *map,
                     .data = static_cast<unsigned char*>((*buffer)->data()),
                     .copy_bytes = static_cast<uint32_t>(plan.copy_bytes),
                     .slots = static_cast<uint32_t>(plan.slots),
                     .copies = static_cast<uint32_t>(copied / plan.copy_bytes),
                     .mask = static_cast<uint32_t>(footprint / plan.copy_bytes - 1)};
  const int ctas = device.facts.sm_count / plan.cluster * plan.cluster;
  return [buffer = *buffer, args, plan, smem_bytes, ctas](int, cudaStream_t stream) {
    StreamArgs mine = args;
    void* arguments[] = {&mine};
    return CudaStatus(
        cudaLaunchKernel(plan.kernel, dim3(ctas), dim3(32), arguments, smem_bytes, stream),
        "launching a stream of bulk copies");
  };
}

void AddStream(const std::string& name, std::string measures, const StreamPlan& plan,
               std::string sass) {
  const bool dram = plan.level == Level::kDram;
  const int64_t footprint = (dram ? 2048 : 16) * kMiB;
  const int64_t copied = (dram ? 2048 : 1024) * kMiB;  // a launch is a small part of its time
  harness::CaseInfo about;
  about.name = absl::StrCat("tma/", name, "/bandwidth");
  about.measures = std::move(measures);
  about.unit = "GB/s";
  about.min_cc = 90;
  about.max_cc = 90;
  if (dram) about.limit.resource = harness::Resource::kDramBytesPerSecond;
  about.peak_case =
      dram ? "global_memory/dram_16B/bandwidth" : "global_memory/read_16MiB/bandwidth";
  about.evidence = {{.sass = std::move(sass)}};
  about.parameters = {{"copy_bytes", static_cast<double>(plan.copy_bytes)},
                      {"slots", static_cast<double>(plan.slots)},
                      {"bytes_in_flight_per_sm", 1.0 * plan.slots * plan.copy_bytes},
                      {"cluster_ctas", static_cast<double>(plan.cluster)},
                      {"footprint_bytes", static_cast<double>(footprint)}};
  harness::Add(harness::TimeCase{.about = std::move(about),
                                 // Every CTA of a cluster gets all that the cluster copies.
                                 .units = static_cast<double>(copied) * plan.cluster,
                                 .rate = true,
                                 .setup =
                                     [=](const harness::MicroDevice& device) {
                                       return SetUpStream(plan, footprint, copied, device);
                                     },
                                 .kernels = {plan.kernel}});
}

template <Copy kCopy>
void AddLoads(Level level, int copy_bytes, int slots) {
  AddStream(absl::StrCat(level == Level::kDram ? "dram" : "l2", "_load_", NameOf(kCopy), "_",
                         Size(copy_bytes), "_slots_", slots),
            "bytes loaded into shared memory per nanosecond, one CTA on each SM",
            {.kernel = reinterpret_cast<const void*>(&LoadStreamKernel<kCopy>),
             .level = level,
             .copy_bytes = copy_bytes,
             .box_rows = std::max(1, copy_bytes / kRowBytes),
             .slots = slots},
            LoadSass(kCopy));
}

constexpr int kTileBytes = 8 * 1024;  // a (64, 64) fp16 tile of K or V

template <int kCluster>
void AddMulticast(int copy_bytes, int slots) {
  AddStream(absl::StrCat("l2_load_multicast_", kCluster, "_", Size(copy_bytes), "_slots_", slots),
            "bytes delivered to shared memory per nanosecond, clusters loading together",
            {.kernel = reinterpret_cast<const void*>(&MulticastStreamKernel<kCluster>),
             .copy_bytes = copy_bytes,
             .box_rows = copy_bytes / kRowBytes / kCluster,
             .slots = slots,
             .cluster = kCluster},
            R"(^UTMALDG\.2D\.MULTICAST)");
}

template <Copy kCopy>
void AddStores(Level level) {
  constexpr int kSlots = 8;
  AddStream(absl::StrCat(level == Level::kDram ? "dram" : "l2", "_store_", NameOf(kCopy), "_",
                         Size(kTileBytes), "_slots_", kSlots),
            "bytes stored from shared memory per nanosecond, one CTA on each SM",
            {.kernel = reinterpret_cast<const void*>(&StoreStreamKernel<kCopy, kSlots>),
             .level = level,
             .copy_bytes = kTileBytes,
             .box_rows = kTileBytes / kRowBytes,
             .slots = kSlots},
            StoreSass(kCopy));
}

}  // namespace

WARPLEDGER_MICRO(tma) {
  AddLoadLatency<Copy::kBulk1d>(16, {{.cc = 90, .value = 367, .source = kSim}});
  for (const int bytes : {128, 1024, 4096, 16384}) AddLoadLatency<Copy::kBulk1d>(bytes);
  for (const int bytes : {1024, 8192, 32768}) AddLoadLatency<Copy::kTensor2d>(bytes);
  AddMulticastLatency<2>(1024);
  AddMulticastLatency<4>(1024);
  AddStoreLatency<Copy::kBulk1d>(128);
  AddStoreLatency<Copy::kBulk1d>(8192);
  AddStoreLatency<Copy::kTensor2d>(8192);

  // By size, with 64 KiB under way; and by bytes under way, Little's law.
  for (const int bytes : {512, 2048, 32768}) {
    AddLoads<Copy::kBulk1d>(Level::kL2, bytes, 64 * 1024 / bytes);
  }
  for (const int slots : {1, 2, 4, 8, 16}) {
    AddLoads<Copy::kTensor2d>(Level::kL2, kTileBytes, slots);
    AddLoads<Copy::kTensor2d>(Level::kDram, kTileBytes, slots);
  }
  AddLoads<Copy::kBulk1d>(Level::kL2, kTileBytes, 8);
  // Large copies: a round of a cluster takes its one thread more than 250 cycles.
  AddLoads<Copy::kTensor2d>(Level::kL2, 32 * 1024, 6);
  for (const int bytes : {kTileBytes, 32 * 1024}) {
    AddMulticast<2>(bytes, 6);
    AddMulticast<4>(bytes, 6);
  }
  AddStores<Copy::kBulk1d>(Level::kL2);
  AddStores<Copy::kBulk1d>(Level::kDram);
  AddStores<Copy::kTensor2d>(Level::kL2);
}

}  // namespace warpledger::tma
