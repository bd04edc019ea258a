// SPDX-License-Identifier: Apache-2.0
// Question: how many bytes per clock does an SM move between shared memory and
// registers, how long does a dependent load take, and what does a bank conflict
// cost?
//
// Mechanism: 32 banks of 4 bytes serve one wavefront per clock. A wider access of
// a warp is served in phases, a conflicting one in as many wavefronts as its
// busiest bank holds words (kernels/common/bank_model.h).
//
// Formula: bandwidth = bytes of all lanes / slope of the SM's cycles over the
// number of accesses; latency = slope of one warp's cycles over a chain of loads
// whose result is the next address. Conflicts: wavefronts that the model predicts
// / measured cycles, 1 where the model is right and the pipe is full.
//
// Expected: 128 B/clk/SM for every width, loads and stores (32 banks x 4 bytes,
// CUDA C++ Programming Guide). Latency 29 cycles (Luo et al., arXiv 2402.13499,
// on an H100); a conflict costs one cycle per wavefront when the pipe is full and
// about two in one warp's latency (te42kyfo/gpu-benches).
//
// Falsified if: bandwidth stays below 126 B/clk/SM at every width (then something
// else than the banks limits it), or if a conflict pattern gives less than 0.95 or
// more than 1.02 predicted wavefronts per clock (then the bank model is wrong). For
// broadcasts of 8 and 16 bytes the model is an upper bound, so there more than 1
// wavefront per clock tells how far the hardware merges phases.

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/common/bank_model.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"
#include "micro/memory_inputs.cuh"

namespace warpledger::shared_memory {
namespace {

using harness::CycleArgs;

// Lane addresses of a pattern stay below this, so each load of an unrolled group
// gets a block of its own: the same banks, other words.
constexpr int kBlockBytes = 4096;
constexpr int kLoads = 8;
constexpr int kTileBytes = (kLoads + 1) * kBlockBytes;  // + 1 for the rotation

__device__ uint32_t Fold(uint32_t v) { return v; }
__device__ uint32_t Fold(uint2 v) { return v.x ^ v.y; }
__device__ uint32_t Fold(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }

__device__ uint32_t Make(uint32_t bits, uint32_t*) { return bits; }
__device__ uint2 Make(uint32_t bits, uint2*) { return make_uint2(bits, ~bits); }
__device__ uint4 Make(uint32_t bits, uint4*) { return make_uint4(bits, ~bits, bits * 3, bits * 5); }

__device__ void Add(uint32_t& v, uint32_t by) { v += by; }
__device__ void Add(uint2& v, uint32_t by) { v.x += by, v.y += by; }
__device__ void Add(uint4& v, uint32_t by) { v.x += by, v.y += by, v.z += by, v.w += by; }

// kLoads loads per iteration, lane i from data[i] of its block. The rotation, by
// whole rows of banks, keeps the loads from being moved out of the loop and leaves
// the conflicts as they are.
template <typename Vector>
__global__ void LoadKernel(CycleArgs args) {
  __shared__ alignas(16) unsigned char tile[kTileBytes];
  for (int i = threadIdx.x; i < kTileBytes / 4; i += blockDim.x) {
    reinterpret_cast<uint32_t*>(tile)[i] = harness::RandomBits(args.seed, i);
  }
  const unsigned char* from = tile + static_cast<const uint32_t*>(args.data)[threadIdx.x % 32];
  uint32_t rotation = 0;
  uint32_t folded = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      folded ^= Fold(*reinterpret_cast<const Vector*>(from + rotation + u * kBlockBytes));
    }
    rotation = (rotation + bank_model::kRowBytes) % kBlockBytes;
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded);
}

// kStores stores per iteration, without conflicts, to the warp's own part of the
// tile. Two halves take turns, so that no store is an earlier one's address again
// within the loop's body.
constexpr int kStores = 4;
constexpr int kStoreThreads = 512;

template <typename Vector>
constexpr int StoreTileBytes() {
  return 2 * kStores * kStoreThreads * static_cast<int>(sizeof(Vector));
}

template <typename Vector>
__global__ void StoreKernel(CycleArgs args) {
  extern __shared__ uint4 store_tile[];
  auto* tile = reinterpret_cast<Vector*>(store_tile);
  Vector value = Make(harness::RandomBits(args.seed, threadIdx.x), static_cast<Vector*>(nullptr));
  int half = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kStores; ++u) {
      tile[half + u * kStoreThreads + threadIdx.x] = value;
    }
    Add(value, 0x9e3779b9u);
    half ^= kStores * kStoreThreads;
  }
  harness::StopCycles(args, start);
  __syncthreads();
  // Another thread's words, so that every store could matter.
  uint32_t folded = 0;
  for (int u = 0; u < 2 * kStores; ++u) {
    folded ^= Fold(tile[u * kStoreThreads + (threadIdx.x + 33) % kStoreThreads]);
  }
  harness::KeepAlive(args, folded);
}

// One chain: each word of the tile holds the byte address of the word a row of
// banks further on, so that the next load's address is what the last one brought.
constexpr int kChainLinks = 16;
constexpr int kChainTileBytes = 32 * 1024;

template <typename Vector>
__global__ void ChaseKernel(CycleArgs args) {
  __shared__ alignas(16) unsigned char tile[kChainTileBytes];
  for (uint32_t i = threadIdx.x * 4; i < kChainTileBytes; i += blockDim.x * 4) {
    *reinterpret_cast<uint32_t*>(tile + i) = (i + bank_model::kRowBytes) % kChainTileBytes;
  }
  uint32_t at = static_cast<const uint32_t*>(args.data)[threadIdx.x % 32];
  uint32_t folded = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kChainLinks; ++u) {
      const Vector value = *reinterpret_cast<const Vector*>(tile + at);
      folded ^= Fold(value);  // off the chain; without it the load would shrink to 4 bytes
      at = *reinterpret_cast<const uint32_t*>(&value);
    }
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded ^ at);
}

// lane / share * stride: `share` neighbours read the same place.
bank_model::LaneAddresses Pattern(int stride_bytes, int share) {
  bank_model::LaneAddresses lanes{};
  for (int lane = 0; lane < bank_model::kLanes; ++lane) lanes[lane] = lane / share * stride_bytes;
  return lanes;
}

template <typename Vector>
void AddWidth() {
  constexpr int kBytes = sizeof(Vector);
  const std::string bits = absl::StrCat(kBytes * 8);
  const std::string suffix = kBytes == 4 ? "" : absl::StrCat(R"(\.)", bits);
  const harness::Limit banks = {.resource = harness::Resource::kSharedBytes};
  const bank_model::LaneAddresses linear = bank_model::Strided(kBytes);
  harness::Add(harness::CycleCase{
      .about = {.name = absl::StrCat("shared_memory/load_", bits, "/throughput"),
                .measures = absl::StrCat("bytes loaded per clock and SM, ", kBytes, " per lane"),
                .unit = "B/clk/SM",
                .limit = banks,
                .published = {{.value = 128,
                               .source = "CUDA C++ Programming Guide: 32 banks x 4 B"}},
                .evidence = {{.sass = absl::StrCat("^LDS", suffix, "$"), .at_least = kLoads}}},
      .measure = harness::Measure::kThroughput,
      .kernel = LoadKernel<Vector>,
      .units_per_iteration = kLoads * kBytes,
      .threads = 1024,
      .make_data = memory_inputs::LaneBytes(linear)});
  harness::Add(harness::CycleCase{
      .about = {.name = absl::StrCat("shared_memory/store_", bits, "/throughput"),
                .measures = absl::StrCat("bytes stored per clock and SM, ", kBytes, " per lane"),
                .unit = "B/clk/SM",
                .limit = banks,
                .published = {{.value = 128,
                               .source = "CUDA C++ Programming Guide: 32 banks x 4 B"}},
                .evidence = {{.sass = absl::StrCat("^STS", suffix, "$"), .at_least = kStores}}},
      .measure = harness::Measure::kThroughput,
      .kernel = StoreKernel<Vector>,
      .units_per_iteration = kStores * kBytes,
      .threads = kStoreThreads,
      .dynamic_smem_bytes = StoreTileBytes<Vector>()});
  std::vector<harness::Published> published;
  if (kBytes == 4) {
    published = {{.cc = 90, .value = 29.0, .source = "Luo et al., arXiv 2402.13499, H100"},
                 {.cc = 89, .value = 30.1, .source = "Luo et al., arXiv 2402.13499, RTX 4090"},
                 {.cc = 80, .value = 29.0, .source = "Luo et al., arXiv 2402.13499, A100"}};
  }
  harness::Add(harness::CycleCase{
      .about = {.name = absl::StrCat("shared_memory/load_", bits, "/latency"),
                .measures =
                    absl::StrCat("cycles of a dependent load of ", kBytes, " bytes per lane"),
                .unit = "cycles",
                .published = published,
                .evidence = {{.sass = absl::StrCat("^LDS", suffix, "$"), .at_least = kChainLinks}}},
      .measure = harness::Measure::kLatency,
      .kernel = ChaseKernel<Vector>,
      .units_per_iteration = kChainLinks,
      .make_data = memory_inputs::LaneBytes(linear)});
}

// One conflict pattern: is the bank model right, and what does one warp feel?
template <typename Vector>
void AddPattern(const std::string& pattern, int stride_bytes, int share) {
  constexpr int kBytes = sizeof(Vector);
  const std::string bits = absl::StrCat(kBytes * 8);
  const std::string suffix = kBytes == 4 ? "" : absl::StrCat(R"(\.)", bits);
  const bank_model::LaneAddresses lanes = Pattern(stride_bytes, share);
  const int wavefronts = bank_model::Wavefronts(lanes, kBytes);
  const std::vector<harness::Parameter> parameters = {
      {"stride_bytes", static_cast<double>(stride_bytes)},
      {"lanes_per_address", static_cast<double>(share)},
      {"predicted_wavefronts", static_cast<double>(wavefronts)},
      {"wavefronts_without_conflict", static_cast<double>(bank_model::IdealWavefronts(kBytes))}};
  const std::string name = absl::StrCat("shared_memory/conflict_", bits, "_", pattern);
  harness::Add(harness::CycleCase{
      .about = {.name = name + "/throughput",
                .measures = "wavefronts that the bank model predicts, per clock and SM",
                .unit = "wavefronts/clk/SM",
                .limit = {.own = 1, .own_source = "the banks serve one wavefront per clock"},
                .published = {{.value = 1, .source = "bank model, kernels/common/bank_model.h"}},
                .evidence = {{.sass = absl::StrCat("^LDS", suffix, "$"), .at_least = kLoads}},
                .parameters = parameters},
      .measure = harness::Measure::kThroughput,
      .kernel = LoadKernel<Vector>,
      .units_per_iteration = static_cast<double>(kLoads) * wavefronts / bank_model::kLanes,
      .threads = 1024,
      .make_data = memory_inputs::LaneBytes(lanes)});
  harness::Add(harness::CycleCase{
      .about = {.name = name + "/latency",
                .measures = "cycles of a dependent load of one warp alone",
                .unit = "cycles",
                .evidence = {{.sass = absl::StrCat("^LDS", suffix, "$"), .at_least = kChainLinks}},
                .parameters = parameters},
      .measure = harness::Measure::kLatency,
      .kernel = ChaseKernel<Vector>,
      .units_per_iteration = kChainLinks,
      .make_data = memory_inputs::LaneBytes(lanes)});
}

}  // namespace

WARPLEDGER_MICRO(shared_memory) {
  AddWidth<uint32_t>();
  AddWidth<uint2>();
  AddWidth<uint4>();
  // Strides in units of the access: 32-bit words up to a column of one bank …
  for (const int stride : {2, 4, 8, 16, 32}) {
    AddPattern<uint32_t>(absl::StrCat("stride_", stride), stride * 4, /*share=*/1);
  }
  AddPattern<uint32_t>("broadcast", /*stride_bytes=*/0, /*share=*/1);
  // … and 16-byte chunks up to a column of 128-byte rows.
  for (const int stride : {2, 4, 8}) {
    AddPattern<uint4>(absl::StrCat("stride_", stride), stride * 16, /*share=*/1);
  }
  // What the model only bounds: words shared between phases.
  AddPattern<uint2>("pairs", 8, /*share=*/2);
  AddPattern<uint2>("broadcast", 0, /*share=*/1);
  AddPattern<uint4>("pairs", 16, /*share=*/2);
  AddPattern<uint4>("broadcast", 0, /*share=*/1);
}

}  // namespace warpledger::shared_memory
