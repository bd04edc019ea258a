// SPDX-License-Identifier: Apache-2.0
// Question: what does it cost to bring a 16 x 16 fp16 operand of the tensor cores
// into registers, by memory space, layout, leading dimension and orientation?
//
// Mechanism: on sm_80 to sm_90 ptxas makes wmma::load_matrix_sync from shared
// memory one LDSM (ldmatrix.x4), with .T for a column-major A or a row-major B; from
// global memory it makes four 4-byte loads per lane, and a MOVM per register where
// the block must be transposed. An LDSM reads 16 rows of 32 bytes, in quarter-warp
// phases of 8 rows x 16 bytes, so rows that start in the same banks conflict. A
// pad of 16 bytes per row cures that for the price of the bytes; an XOR swizzle
// cures it for nothing, but gives no constant leading dimension: it is legal with
// ldmatrix only, never with load_matrix_sync, and only ldmatrix is measured on it.
//
// Formula: bytes per clock and SM = 512 (x4) / slope of the SM's cycles over the
// number of fragments. Prediction: 128 x wavefronts without conflict / wavefronts
// with, from kernels/common/bank_model.h and the very addresses that the kernel
// reads. Latency: slope over a chain in which each ldmatrix brings the lanes their
// next addresses.
//
// Expected: shared memory, by the bank model: 128 B/clk/SM where rows are an odd
// number of 16-byte chunks apart (leading dimensions 24, 40, 72, 136) or swizzled,
// 64 at 16, 32 at 32, 16 at 64 and 128. Transposed the same. .x1 and .x2 move fewer
// bytes per instruction and reach the same bandwidth if the issue of LDSM isn't the
// limit. From L1 fewer than 128 B/clk/SM, since a load touches 8 rows and uses half
// of each 32-byte sector.
//
// Falsified if: a layout without conflicts stays more than 5% below 128 B/clk/SM,
// or one with conflicts is off its prediction by more than 5%; if .trans costs
// bandwidth; or if loads from L1 beat a padded shared tile, in which case staging
// operands that are used once is a loss.

#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/bank_model.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"
#include "micro/memory_inputs.cuh"

namespace warpledger::wmma_fragment_loads {
namespace {

using bank_model::FragmentBlock;
using harness::CycleArgs;

constexpr int kFragmentBytes = 16 * 16 * 2;
constexpr int kMaxLd = 136;  // halves
constexpr int kLoads = 4;    // fragments per iteration
// Two sets of kLoads blocks take turns; see the rotation in the kernels.
constexpr int kRows = 2 * kLoads * 16;
constexpr int kTileHalves = kRows * kMaxLd;

__device__ void FillTile(uint32_t* words, int count, uint32_t seed) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) words[i] = harness::RandomBits(seed, i);
}

template <typename Fragment>
__device__ uint32_t FoldFragment(const Fragment& fragment) {
  const auto* words = reinterpret_cast<const uint32_t*>(fragment.x);
  uint32_t folded = 0;
#pragma unroll
  for (int i = 0; i < fragment.num_elements / 2; ++i) folded ^= words[i];
  return folded;
}

// --- wmma::load_matrix_sync --------------------------------------------------

enum class Space { kShared, kGlobal };

// kLoads fragments per iteration from row blocks of a (kRows, ld) fp16 tile,
// params[0] = ld in halves. Every warp reads the same blocks. The rotation keeps
// the loads from being moved out of the loop.
template <Space kSpace, typename Use, typename Layout>
__global__ void WmmaLoadKernel(CycleArgs args) {
  __shared__ alignas(32) half shared_tile[kSpace == Space::kShared ? kTileHalves : 16];
  const auto ld = static_cast<uint32_t>(args.params[0]);
  const half* tile = shared_tile;
  uint32_t folded = 0;
  if constexpr (kSpace == Space::kShared) {
    FillTile(reinterpret_cast<uint32_t*>(shared_tile), kTileHalves / 2, args.seed);
  } else {
    tile = static_cast<const half*>(args.data);
    // Into L1, before the clock starts.
    const auto* words = static_cast<const uint32_t*>(args.data);
    for (int i = threadIdx.x; i < kTileHalves / 2; i += blockDim.x) folded ^= words[i];
  }
  uint32_t rotation = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      nvcuda::wmma::fragment<Use, 16, 16, 16, half, Layout> fragment;
      nvcuda::wmma::load_matrix_sync(fragment, tile + (rotation + u * 16) * ld, ld);
      folded ^= FoldFragment(fragment);
    }
    rotation ^= kLoads * 16;
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded);
}

// One chain from global memory: the next block's offset takes a bit of the last
// fragment, masked by params[1], which is 0, so that the compiler must wait for it.
// A link thus holds the mask and the address besides the loads.
constexpr int kChainLinks = 8;

template <typename Use, typename Layout>
__global__ void WmmaGlobalChainKernel(CycleArgs args) {
  const auto ld = static_cast<uint32_t>(args.params[0]);
  const auto mask = static_cast<uint32_t>(args.params[1]);
  const auto* tile = static_cast<const half*>(args.data);
  uint32_t folded = 0;
  const auto* words = static_cast<const uint32_t*>(args.data);
  for (int i = threadIdx.x; i < kTileHalves / 2; i += blockDim.x) folded ^= words[i];
  uint32_t offset = folded & mask;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kChainLinks; ++u) {
      nvcuda::wmma::fragment<Use, 16, 16, 16, half, Layout> fragment;
      nvcuda::wmma::load_matrix_sync(fragment, tile + offset, ld);
      offset = FoldFragment(fragment) & mask;
    }
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded ^ offset);
}

// --- ldmatrix ----------------------------------------------------------------

// ldmatrix.sync.aligned.m8n8.xN{.trans}.shared.b16 (PTX ISA, "ldmatrix"; sm_75).
// Pure: the tile isn't written while the timed loop runs.
template <int kMatrices, bool kTrans>
__device__ void LoadMatrices(uint32_t (&r)[kMatrices], uint32_t address) {
  if constexpr (kMatrices == 1) {
    if constexpr (kTrans) {
      asm("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(address));
    } else {
      asm("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(address));
    }
  } else if constexpr (kMatrices == 2) {
    if constexpr (kTrans) {
      asm("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
          : "=r"(r[0]), "=r"(r[1])
          : "r"(address));
    } else {
      asm("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
          : "=r"(r[0]), "=r"(r[1])
          : "r"(address));
    }
  } else {
    if constexpr (kTrans) {
      asm("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
          : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
          : "r"(address));
    } else {
      asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
          : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
          : "r"(address));
    }
  }
}

// kLoads ldmatrix per iteration. data: each lane's byte offset in a block of 16
// rows; params[0]: bytes of a block, a multiple of 128.
template <int kMatrices, bool kTrans>
__global__ void LdmatrixKernel(CycleArgs args) {
  __shared__ alignas(128) half tile[kTileHalves];
  FillTile(reinterpret_cast<uint32_t*>(tile), kTileHalves / 2, args.seed);
  const auto block_bytes = static_cast<uint32_t>(args.params[0]);
  const uint32_t first = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) +
                         static_cast<const uint32_t*>(args.data)[threadIdx.x % 32];
  uint32_t rotation = 0;
  uint32_t folded = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      uint32_t r[kMatrices];
      LoadMatrices<kMatrices, kTrans>(r, first + (rotation + u) * block_bytes);
#pragma unroll
      for (int m = 0; m < kMatrices; ++m) folded ^= r[m];
    }
    rotation ^= kLoads;
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded);
}

// One chain with nothing but ldmatrix in it. Of the first matrix, lane l receives
// the halves (l / 4, 2 (l % 4)) and the next one to the right, or with .trans the
// halves (2 (l % 4), l / 4) and the next one below (PTX ISA, "ldmatrix"). The
// block is filled such that those two halves are lane l's own address, so the
// chain reads the same rows for ever.
template <int kMatrices, bool kTrans>
__global__ void LdmatrixChainKernel(CycleArgs args) {
  __shared__ alignas(128) half tile[kTileHalves];
  __shared__ uint32_t row_offsets[32];
  FillTile(reinterpret_cast<uint32_t*>(tile), kTileHalves / 2, args.seed);
  const int lane = threadIdx.x % 32;
  row_offsets[lane] = static_cast<const uint32_t*>(args.data)[lane];
  __syncthreads();
  uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + row_offsets[lane];
  if (threadIdx.x < 32) {
    const int pair = lane % 4 * 2;
    auto* bytes = reinterpret_cast<unsigned char*>(tile);
    const auto at = [&](int row, int column) {
      return reinterpret_cast<uint16_t*>(bytes + row_offsets[row]) + column;
    };
    *at(kTrans ? pair : lane / 4, kTrans ? lane / 4 : pair) = static_cast<uint16_t>(address);
    *at(kTrans ? pair + 1 : lane / 4, kTrans ? lane / 4 : pair + 1) =
        static_cast<uint16_t>(address >> 16);
  }
  uint32_t folded = 0;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kChainLinks; ++u) {
      uint32_t r[kMatrices];
      LoadMatrices<kMatrices, kTrans>(r, address);
      address = r[0];
#pragma unroll
      for (int m = 1; m < kMatrices; ++m) folded ^= r[m];  // off the chain
    }
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, folded ^ address);
}

// --- cases -------------------------------------------------------------------

struct Prediction {
  int wavefronts;
  int ideal;
  double Bandwidth() const {  // B/clk/SM
    return static_cast<double>(bank_model::kRowBytes) * ideal / wavefronts;
  }
};

Prediction Predict(const FragmentBlock& block, int matrices) {
  const uint32_t lanes = bank_model::LdmatrixLanes(matrices);
  return {bank_model::Wavefronts(bank_model::LdmatrixRows(block), bank_model::kChunkBytes, lanes),
          bank_model::IdealWavefronts(bank_model::kChunkBytes, lanes)};
}

std::vector<harness::Parameter> ParametersOf(const FragmentBlock& block,
                                             const Prediction& prediction) {
  return {{"ld_halves", block.ld_bytes / 2.0},
          {"swizzle", block.swizzle ? 1.0 : 0.0},
          {"predicted_wavefronts", static_cast<double>(prediction.wavefronts)},
          {"wavefronts_without_conflict", static_cast<double>(prediction.ideal)}};
}

constexpr char kModelSource[] = "bank model, kernels/common/bank_model.h";
constexpr harness::Resource kBanks = harness::Resource::kSharedBytes;

// `transposed`: LDSM transposes, where the fragment's layout isn't the operand's own.
template <typename Use, typename Layout>
void AddWmma(const std::string& operand, bool transposed) {
  namespace wmma = nvcuda::wmma;
  for (const int ld : {16, 24, 32, 40, 64, 72, 128, 136}) {
    const FragmentBlock block = {.ld_bytes = ld * 2};
    const Prediction prediction = Predict(block, /*matrices=*/4);
    harness::Add(harness::CycleCase{
        .about =
            {.name = absl::StrCat("wmma_fragment_loads/shared_", operand, "_ld", ld, "/throughput"),
             .measures = "bytes of fragments loaded from shared memory per clock and SM",
             .unit = "B/clk/SM",
             .limit = {.resource = kBanks},
             .published = {{.value = prediction.Bandwidth(), .source = kModelSource}},
             .evidence = {{.sass = transposed ? R"(^LDSM\.16\.MT88\.4$)" : R"(^LDSM\.16\.M88\.4$)",
                           .at_least = kLoads}},
             .parameters = ParametersOf(block, prediction)},
        .measure = harness::Measure::kThroughput,
        .kernel = WmmaLoadKernel<Space::kShared, Use, Layout>,
        .units_per_iteration = kLoads * kFragmentBytes / 32.0,
        .args = {ld}});
  }
  for (const int ld : {16, 64, 128, 136}) {
    const auto data = [](const harness::MicroDevice&) {
      return memory_inputs::RandomWords(kTileHalves * 2);
    };
    std::vector<harness::Evidence> throughput_evidence = {
        {.sass = R"(^LDG\.E)", .at_least = 4 * kLoads}};
    std::vector<harness::Evidence> latency_evidence = {
        {.sass = R"(^LDG\.E)", .at_least = 4 * kChainLinks}};
    if (transposed) {
      throughput_evidence.push_back({.sass = "^MOVM", .at_least = 4 * kLoads});
      latency_evidence.push_back({.sass = "^MOVM", .at_least = 4 * kChainLinks});
    }
    harness::Add(harness::CycleCase{
        .about = {.name = absl::StrCat("wmma_fragment_loads/global_", operand, "_ld", ld,
                                       "/throughput"),
                  .measures =
                      "bytes of fragments loaded from global memory, in L1, per clock and SM",
                  .unit = "B/clk/SM",
                  .limit = {.own = 128, .own_source = "L1 is the shared memory's array: 128 B/clk"},
                  .evidence = throughput_evidence,
                  .parameters = {{"ld_halves", static_cast<double>(ld)}}},
        .measure = harness::Measure::kThroughput,
        .kernel = WmmaLoadKernel<Space::kGlobal, Use, Layout>,
        .units_per_iteration = kLoads * kFragmentBytes / 32.0,
        .make_data = data,
        .args = {ld}});
    harness::Add(harness::CycleCase{
        .about = {.name =
                      absl::StrCat("wmma_fragment_loads/global_", operand, "_ld", ld, "/latency"),
                  .measures = "cycles from one fragment in L1 to the next, address included",
                  .unit = "cycles",
                  .evidence = latency_evidence,
                  .parameters = {{"ld_halves", static_cast<double>(ld)}}},
        .measure = harness::Measure::kLatency,
        .kernel = WmmaGlobalChainKernel<Use, Layout>,
        .units_per_iteration = kChainLinks,
        .make_data = data,
        .args = {ld, /*mask=*/0}});
  }
}

template <int kMatrices, bool kTrans>
void AddLdmatrix(const std::string& layout, const FragmentBlock& block) {
  const Prediction prediction = Predict(block, kMatrices);
  const std::string name =
      absl::StrCat("wmma_fragment_loads/ldmatrix_x", kMatrices, kTrans ? "_trans_" : "_", layout);
  const std::string sass =
      absl::StrCat(R"(^LDSM\.16\.M)", kTrans ? "T88" : "88",
                   kMatrices == 1 ? "$" : absl::StrCat(R"(\.)", kMatrices, "$"));
  harness::Add(harness::CycleCase{
      .about = {.name = name + "/throughput",
                .measures = "bytes of 8 x 8 matrices loaded per clock and SM",
                .unit = "B/clk/SM",
                .limit = {.resource = kBanks},
                .published = {{.value = prediction.Bandwidth(), .source = kModelSource}},
                .evidence = {{.sass = sass, .at_least = kLoads}},
                .parameters = ParametersOf(block, prediction)},
      .measure = harness::Measure::kThroughput,
      .kernel = LdmatrixKernel<kMatrices, kTrans>,
      .units_per_iteration = kLoads * kMatrices * 128 / 32.0,
      .make_data = memory_inputs::LaneBytes(bank_model::LdmatrixRows(block)),
      .args = {16 * block.ld_bytes}});
  harness::Add(
      harness::CycleCase{.about = {.name = name + "/latency",
                                   .measures = "cycles of a dependent ldmatrix",
                                   .unit = "cycles",
                                   .evidence = {{.sass = sass, .at_least = kChainLinks}},
                                   .parameters = ParametersOf(block, prediction)},
                         .measure = harness::Measure::kLatency,
                         .kernel = LdmatrixChainKernel<kMatrices, kTrans>,
                         .units_per_iteration = kChainLinks,
                         .make_data = memory_inputs::LaneBytes(bank_model::LdmatrixRows(block))});
}

// The layouts of a tile with head dimension 64, and its neighbours.
template <int kMatrices, bool kTrans>
void AddLdmatrixLayouts() {
  AddLdmatrix<kMatrices, kTrans>("none_ld64", {.ld_bytes = 64 * 2});
  AddLdmatrix<kMatrices, kTrans>("padded_ld72", {.ld_bytes = 72 * 2});
  AddLdmatrix<kMatrices, kTrans>("xor_ld64", {.ld_bytes = 64 * 2, .swizzle = true});
}

}  // namespace

WARPLEDGER_MICRO(wmma_fragment_loads) {
  namespace wmma = nvcuda::wmma;
  AddWmma<wmma::matrix_a, wmma::row_major>("a_row", /*transposed=*/false);
  AddWmma<wmma::matrix_a, wmma::col_major>("a_col", /*transposed=*/true);
  AddWmma<wmma::matrix_b, wmma::row_major>("b_row", /*transposed=*/true);
  AddWmma<wmma::matrix_b, wmma::col_major>("b_col", /*transposed=*/false);
  AddLdmatrixLayouts<1, false>();
  AddLdmatrixLayouts<2, false>();
  AddLdmatrixLayouts<4, false>();
  AddLdmatrixLayouts<4, true>();
  AddLdmatrix<4, false>("none_ld128", {.ld_bytes = 128 * 2});
  AddLdmatrix<4, false>("padded_ld136", {.ld_bytes = 136 * 2});
  AddLdmatrix<4, false>("xor_ld128", {.ld_bytes = 128 * 2, .swizzle = true});
  AddLdmatrix<4, false>("none_ld32", {.ld_bytes = 32 * 2});
  AddLdmatrix<4, false>("xor_ld32", {.ld_bytes = 32 * 2, .swizzle = true});
}

}  // namespace warpledger::wmma_fragment_loads
