// SPDX-License-Identifier: Apache-2.0
// Question: what does a bank conflict cost, alone and saturated; how far do padding
// and an XOR swizzle undo it; and how much arithmetic per load hides it?
//
// Mechanism: shared memory gives one word of each of 32 banks per clock, one
// wavefront. A warp's load whose lanes need `w` different words of one bank takes w
// wavefronts. Only the pipeline of shared memory is held up: warps that have
// arithmetic left go on issuing. XOR costs an instruction per address where padding
// costs bytes.
//
// Formula: saturated, cycles per load = max(wavefronts, FMAs per load / 4), as an SM
// issues four warp instructions per clock; an 8-way conflict costs nothing from 32
// FMAs per load on (16 on sm_80 does half the FMAs per clock), less what the load and
// the loop need of the issue slots. Break-even: the FMAs per load from which the
// conflict costs at most 1%, on straight lines between the measured counts. Alone,
// latency = latency without conflict + c * (w - 1).
//
// Expected: 1 cycle per extra wavefront when saturated, about 2 in one warp's
// latency (gpu-benches, its notes on bank conflicts).
//
// Falsified by: a slope outside 1 +- 2% or R2 below 0.999 when saturated; an XOR
// layout slower than the padded one; a conflict that still costs 5% at 48 FMAs.

#include <cuda_fp16.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/bank_model.h"
#include "micro/break_even.h"
#include "micro/harness/cycle_runner.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger {
namespace {

constexpr int kWordBytes = 4;
constexpr int kLineBytes = bank_model::kRowBytes;  // 128: one word of every bank
constexpr int kSaturatingThreads = 512;
constexpr int kSaturatingWarps = kSaturatingThreads / 32;
constexpr int kWays[] = {1, 2, 4, 8, 16, 32};

// ld.shared.u32 with an immediate offset. asm, because nothing else would keep
// loads of constant addresses in a loop.
template <int kOffset>
__device__ uint32_t LoadShared(uint32_t address) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1+%2];" : "=r"(word) : "r"(address), "n"(kOffset));
  return word;
}

__device__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ void FillRandom(uint32_t* smem, int words, uint32_t seed) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) {
    smem[i] = harness::RandomBits(seed, blockIdx.x * words + i);
  }
}

constexpr int kChaseUnroll = 16;

// params[0]: ways. Lane l lies at word l * ways, which holds its own address, so
// every load needs the one before.
__global__ void ChaseKernel(harness::CycleArgs args) {
  __shared__ uint32_t smem[32 * 32];
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) smem[i] = SharedAddress(&smem[i]);
  __syncthreads();
  uint32_t address = SharedAddress(&smem[threadIdx.x % 32 * args.params[0]]);
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kChaseUnroll; ++u) address = LoadShared<0>(address);
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, address);
}

constexpr int kLoads = 8;  // in flight per warp and iteration

// Offsets between an iteration's loads keep the banks, and so the conflict.
__device__ uint32_t LoadLines(uint32_t address) {
  static_assert(kLoads == 8, "one line for each load below");
  const uint32_t a = LoadShared<0 * kLineBytes>(address) ^ LoadShared<1 * kLineBytes>(address);
  const uint32_t b = LoadShared<2 * kLineBytes>(address) ^ LoadShared<3 * kLineBytes>(address);
  const uint32_t c = LoadShared<4 * kLineBytes>(address) ^ LoadShared<5 * kLineBytes>(address);
  const uint32_t d = LoadShared<6 * kLineBytes>(address) ^ LoadShared<7 * kLineBytes>(address);
  return a ^ b ^ c ^ d;
}

// params[0]: ways.
__global__ void SaturatedKernel(harness::CycleArgs args) {
  constexpr int kWords = 32 * 32 + 2 * kLoads * kLineBytes / kWordBytes;
  __shared__ __align__(2 * kLoads * kLineBytes) uint32_t smem[kWords];
  FillRandom(smem, kWords, args.seed);
  uint32_t address = SharedAddress(&smem[threadIdx.x % 32 * args.params[0]]);
  uint32_t folded = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
    folded ^= LoadLines(address);
    address ^= kLoads * kLineBytes;  // another eight lines, and back
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded);
}

// ---- Layouts of a tile ----

enum class Layout { kNone, kPadded, kXor };

// A 32 x 32 fp32 tile read by column: lane = row. An iteration reads every fourth
// column, since ptxas joins loads of neighbouring words into LDS.128.
constexpr int kColumnStep = 32 / 8;
constexpr int kColumnRows = 32;
constexpr int ColumnLdWords(Layout layout) { return layout == Layout::kPadded ? 33 : 32; }

constexpr bank_model::LaneAddresses ColumnAddresses(Layout layout, uint32_t column) {
  bank_model::LaneAddresses addresses{};
  for (uint32_t row = 0; row < 32; ++row) {
    const uint32_t at = layout == Layout::kXor ? column ^ row : column;
    addresses[row] = (row * ColumnLdWords(layout) + at) * kWordBytes;
  }
  return addresses;
}

template <Layout kLayout>
__global__ void ColumnKernel(harness::CycleArgs args) {
  constexpr int kWords = kColumnRows * ColumnLdWords(kLayout);
  __shared__ __align__(kLineBytes) uint32_t smem[kWords];
  FillRandom(smem, kWords, args.seed);
  const uint32_t row = threadIdx.x % 32;
  uint32_t at_row = SharedAddress(&smem[row * ColumnLdWords(kLayout)]);
  // Columns are XORed with the row once; a column's number then goes on by XOR.
  if constexpr (kLayout == Layout::kXor) at_row ^= row * kWordBytes;
  uint32_t folded = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (uint32_t i = 0; i < static_cast<uint32_t>(args.iterations); ++i) {
    const uint32_t first = i % kColumnStep * kWordBytes;
    constexpr int kStep = kColumnStep * kWordBytes;
    if constexpr (kLayout == Layout::kXor) {
#pragma unroll
      for (int k = 0; k < kLoads; ++k) folded ^= LoadShared<0>(at_row ^ first ^ (k * kStep));
    } else {
      const uint32_t address = at_row + first;
      folded ^= LoadShared<0 * kStep>(address) ^ LoadShared<1 * kStep>(address);
      folded ^= LoadShared<2 * kStep>(address) ^ LoadShared<3 * kStep>(address);
      folded ^= LoadShared<4 * kStep>(address) ^ LoadShared<5 * kStep>(address);
      folded ^= LoadShared<6 * kStep>(address) ^ LoadShared<7 * kStep>(address);
    }
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded);
}

// A tile of 64 x 64 halves, a K tile of the SDPA kernel, read by ldmatrix.x4 (PTX
// ISA, "Warp-level matrix load instruction: ldmatrix") as 16 x 16 blocks.
constexpr int kTileRows = 64;
constexpr int kTileColumns = 64;
constexpr int TileLdBytes(Layout layout) {
  return (kTileColumns + (layout == Layout::kPadded ? 8 : 0)) * 2;
}

__device__ uint32_t LdmatrixX4(uint32_t address) {
  uint32_t a, b, c, d;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(address));
  return a ^ b ^ c ^ d;
}

template <Layout kLayout>
__global__ void LdmatrixKernel(harness::CycleArgs args) {
  constexpr int kLd = TileLdBytes(kLayout);
  constexpr int kWords = kTileRows * kLd / kWordBytes;
  constexpr int kBlockRows = 16;
  constexpr int kBlockBytes = 32;  // of one row
  constexpr int kColumnBlocks = kTileColumns * 2 / kBlockBytes;
  constexpr int kRowBlocks = kLoads / kColumnBlocks;  // per iteration
  __shared__ __align__(1024) uint32_t smem[kWords];
  FillRandom(smem, kWords, args.seed);
  const uint32_t row = threadIdx.x % 16;
  const uint32_t chunk = threadIdx.x % 32 / 16;
  uint32_t at_row = SharedAddress(smem) + row * kLd;
  at_row += (kLayout == Layout::kXor ? chunk ^ (row % 8) : chunk) * 16;
  uint32_t folded = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (uint32_t i = 0; i < static_cast<uint32_t>(args.iterations); ++i) {
    const uint32_t address = at_row + i % 2 * (kTileRows / 2) * kLd;
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const uint32_t block = address + k / kColumnBlocks % kRowBlocks * kBlockRows * kLd;
      const uint32_t column = k % kColumnBlocks * kBlockBytes;
      folded ^= LdmatrixX4(kLayout == Layout::kXor ? block ^ column : block + column);
    }
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded);
}

// ---- Dilution ----

constexpr int kDilutionLoads = 4;
constexpr int kFmas[] = {0, 4, 8, 16, 24, 26, 28, 30, 32, 40, 48, 64};  // dense at the break-even

struct LoadedWords {
  uint32_t word[kDilutionLoads];
};

__device__ LoadedWords LoadDilutionLines(uint32_t address) {
  static_assert(kDilutionLoads == 4, "one line for each load below");
  return {LoadShared<0 * kLineBytes>(address), LoadShared<1 * kLineBytes>(address),
          LoadShared<2 * kLineBytes>(address), LoadShared<3 * kLineBytes>(address)};
}

// kFmasPerLoad dependent FMAs for each load, the first of which takes the word.
template <int kFmasPerLoad>
__device__ void UseWords(const LoadedWords& words, float (&sum)[kDilutionLoads], uint32_t& folded) {
  if constexpr (kFmasPerLoad == 0) {
    folded ^= words.word[0] ^ words.word[1] ^ words.word[2] ^ words.word[3];
  }
#pragma unroll
  for (int f = 0; f < kFmasPerLoad; ++f) {
#pragma unroll
    for (int l = 0; l < kDilutionLoads; ++l) {
      sum[l] = fmaf(sum[l], 0.5f, f == 0 ? __uint_as_float(words.word[l]) : 0.75f);
    }
  }
}

// params[0]: ways. Words are used one turn after they were asked for, so that no
// warp waits for a load that it has just issued.
template <int kFmasPerLoad>
__global__ void DilutionKernel(harness::CycleArgs args) {
  constexpr int kWords = 32 * 32 + 2 * kDilutionLoads * kLineBytes / kWordBytes;
  __shared__ __align__(2 * kDilutionLoads * kLineBytes) uint32_t smem[kWords];
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) {
    smem[i] = __float_as_uint(harness::RandomFloat(harness::RandomBits(args.seed, i)));
  }
  __syncthreads();
  uint32_t address = SharedAddress(&smem[threadIdx.x % 32 * args.params[0]]);
  float sum[kDilutionLoads] = {};
  uint32_t folded = 0;
  LoadedWords current = LoadDilutionLines(address);
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
    address ^= kDilutionLoads * kLineBytes;
    const LoadedWords next = LoadDilutionLines(address);
    UseWords<kFmasPerLoad>(current, sum, folded);
    current = next;
  }
  harness::StopCycles(args, start);
#pragma unroll
  for (int l = 0; l < kDilutionLoads; ++l) {
    folded = (folded * 31 + __float_as_uint(sum[l])) ^ current.word[l];
  }
  harness::KeepAlive(args, folded);
}

// ---- Cases ----

constexpr char kGpuBenches[] = "gpu-benches, notes on bank conflicts";

// One CTA of 16 warps on one SM; the value is the SM's cycles per load of a warp.
harness::CycleCase Saturated(std::string name, std::string measures, harness::CycleKernel kernel,
                             int loads) {
  return {.about = {.name = std::move(name), .measures = std::move(measures), .unit = "cycles"},
          .measure = harness::Measure::kLatency,
          .kernel = kernel,
          .units_per_iteration = static_cast<double>(loads) * kSaturatingWarps,
          .threads = kSaturatingThreads};
}

harness::CycleCase WaysCase(int ways, bool saturated) {
  const std::string name = "xor_swizzle/lds32_ways_" + std::to_string(ways);
  harness::CycleCase c =
      saturated ? Saturated(name + "/saturated",
                            "SM cycles per warp load of 4 bytes a lane, 16 warps loading",
                            SaturatedKernel, kLoads)
                : harness::CycleCase{.about = {.name = name + "/latency",
                                               .measures = "cycles of a dependent load by one warp",
                                               .unit = "cycles"},
                                     .measure = harness::Measure::kLatency,
                                     .kernel = ChaseKernel,
                                     .units_per_iteration = kChaseUnroll};
  c.args = {ways};
  const int loads = saturated ? kLoads : kChaseUnroll;
  c.about.evidence = {{.sass = R"(^LDS$)", .at_least = loads, .at_most = loads}};
  const int wavefronts = bank_model::Wavefronts(bank_model::Strided(ways * kWordBytes), kWordBytes);
  c.about.parameters = {{"wavefronts", static_cast<double>(wavefronts)}};
  return c;
}

absl::StatusOr<double> Cycles(const harness::CycleCase& c, const harness::MicroDevice& device) {
  absl::StatusOr<harness::CycleRunner> runner = harness::CycleRunner::Create(c, device);
  if (!runner.ok()) return runner.status();
  SplitMix64 random(HashName(c.about.name));
  const absl::StatusOr<harness::CycleSample> sample = runner->Run(random);
  if (!sample.ok()) return sample.status();
  return sample->value;
}

// Fits the values of `cases` over their wavefronts.
absl::StatusOr<harness::LineFit> FitOverWavefronts(const std::vector<harness::CycleCase>& cases,
                                                   const harness::MicroDevice& device) {
  std::vector<double> wavefronts;
  std::vector<double> cycles;
  for (const harness::CycleCase& c : cases) {
    const absl::StatusOr<double> value = Cycles(c, device);
    if (!value.ok()) return value.status();
    wavefronts.push_back(c.about.parameters[0].value);
    cycles.push_back(*value);
  }
  return harness::FitLine(wavefronts, cycles);
}

void AddWays() {
  std::vector<harness::CycleCase> both[2];
  for (const bool saturated : {false, true}) {
    std::vector<harness::CycleCase>& cases = both[saturated];
    for (const int ways : kWays) {
      cases.push_back(WaysCase(ways, saturated));
      harness::Add(cases.back());
    }
    const std::string where = saturated ? "saturated" : "latency";
    const harness::CycleKernel kernel = saturated ? SaturatedKernel : ChaseKernel;
    harness::Add(harness::ValueCase{
        .about = {.name = "xor_swizzle/lds32_ways/slope_" + where,
                  .measures = "cycles per extra wavefront, slope over 1 to 32 ways",
                  .unit = "cycles",
                  .published = {{.cc = 0, .value = saturated ? 1.0 : 2.0, .source = kGpuBenches}}},
        .compute = [cases](const harness::MicroDevice& device) -> absl::StatusOr<double> {
          const auto fit = FitOverWavefronts(cases, device);
          if (!fit.ok()) return fit.status();
          return fit->slope;
        },
        .kernels = {reinterpret_cast<const void*>(kernel)}});
    harness::Add(harness::ValueCase{
        .about = {.name = "xor_swizzle/lds32_ways/r2_" + where,
                  .measures = "R2 of that slope: 1 where a wavefront always costs the same",
                  .unit = ""},
        .compute = [cases](const harness::MicroDevice& device) -> absl::StatusOr<double> {
          const auto fit = FitOverWavefronts(cases, device);
          if (!fit.ok()) return fit.status();
          return fit->r2;
        },
        .kernels = {reinterpret_cast<const void*>(kernel)}});
  }
}

template <Layout kLayout>
void AddLayout(const std::string& name) {
  harness::CycleCase column = Saturated(
      "xor_swizzle/column_" + name + "/saturated",
      "SM cycles per warp load of a column of a 32 x 32 fp32 tile", ColumnKernel<kLayout>, kLoads);
  column.about.evidence = {{.sass = R"(^LDS$)", .at_least = kLoads, .at_most = kLoads}};
  const int column_wavefronts = bank_model::Wavefronts(ColumnAddresses(kLayout, 0), kWordBytes);
  column.about.parameters = {
      {"wavefronts", static_cast<double>(column_wavefronts)},
      {"tile_bytes", static_cast<double>(kColumnRows * ColumnLdWords(kLayout) * kWordBytes)}};
  harness::Add(std::move(column));

  harness::CycleCase matrix =
      Saturated("xor_swizzle/ldmatrix_" + name + "/saturated",
                "SM cycles per ldmatrix.x4 of 16 x 16 blocks of a 64 x 64 fp16 tile",
                LdmatrixKernel<kLayout>, kLoads);
  matrix.about.evidence = {{.sass = R"(^LDSM\.16\.M88\.4)", .at_least = kLoads, .at_most = kLoads}};
  const int matrix_wavefronts =
      bank_model::Wavefronts(bank_model::LdmatrixRows({.ld_bytes = TileLdBytes(kLayout),
                                                       .swizzle = kLayout == Layout::kXor}),
                             bank_model::kChunkBytes);
  matrix.about.parameters = {{"wavefronts", static_cast<double>(matrix_wavefronts)},
                             {"tile_bytes", static_cast<double>(kTileRows * TileLdBytes(kLayout))}};
  harness::Add(std::move(matrix));
}

template <int kFmasPerLoad>
harness::CycleCase DilutionCase(int ways) {
  harness::CycleCase c = Saturated(
      "xor_swizzle/dilution_ways_" + std::to_string(ways) + "/fma_" + std::to_string(kFmasPerLoad),
      "SM cycles per warp load with that many FMAs for each", DilutionKernel<kFmasPerLoad>,
      kDilutionLoads);
  c.args = {ways};
  constexpr int kFmasInLoop = kDilutionLoads * kFmasPerLoad;
  c.about.evidence = {{.sass = R"(^LDS$)", .at_least = kDilutionLoads, .at_most = kDilutionLoads},
                      {.sass = R"(^FFMA)", .at_least = kFmasInLoop, .at_most = kFmasInLoop}};
  const int wavefronts = bank_model::Wavefronts(bank_model::Strided(ways * kWordBytes), kWordBytes);
  c.about.parameters = {{"wavefronts", static_cast<double>(wavefronts)},
                        {"fmas_per_load", kFmasPerLoad}};
  return c;
}

constexpr int kDilutedWays = 8;

// From how many FMAs per load on the conflict costs at most kToleratedCost.
absl::StatusOr<double> DilutionBreakEven(const std::vector<harness::CycleCase>& free,
                                         const std::vector<harness::CycleCase>& conflicting,
                                         const harness::MicroDevice& device) {
  constexpr double kToleratedCost = 0.01;
  std::vector<double> fmas;
  std::vector<double> costs;
  for (size_t i = 0; i < free.size(); ++i) {
    const absl::StatusOr<double> without = Cycles(free[i], device);
    if (!without.ok()) return without.status();
    const absl::StatusOr<double> with = Cycles(conflicting[i], device);
    if (!with.ok()) return with.status();
    fmas.push_back(kFmas[i]);
    costs.push_back(*with / *without - 1);
  }
  return micro::BreakEven(fmas, costs, kToleratedCost);
}

template <size_t... kIndex>
void AddDilution(std::index_sequence<kIndex...>) {
  const std::vector<harness::CycleCase> free = {DilutionCase<kFmas[kIndex]>(1)...};
  const std::vector<harness::CycleCase> conflicting = {
      DilutionCase<kFmas[kIndex]>(kDilutedWays)...};
  for (const harness::CycleCase& c : free) harness::Add(c);
  for (const harness::CycleCase& c : conflicting) harness::Add(c);
  harness::Add(harness::ValueCase{
      .about = {.name = "xor_swizzle/dilution_ways_" + std::to_string(kDilutedWays) + "/break_even",
                .measures = "FMAs per load from which the conflict costs at most 1%",
                .unit = "FMA/load"},
      .compute =
          [=](const harness::MicroDevice& device) {
            return DilutionBreakEven(free, conflicting, device);
          },
      .kernels = {reinterpret_cast<const void*>(&DilutionKernel<kFmas[kIndex]>)...}});
}

}  // namespace

WARPLEDGER_MICRO(xor_swizzle) {
  AddWays();
  AddLayout<Layout::kNone>("none");
  AddLayout<Layout::kPadded>("padded");
  AddLayout<Layout::kXor>("xor");
  AddDilution(std::make_index_sequence<std::size(kFmas)>());
}

}  // namespace warpledger
