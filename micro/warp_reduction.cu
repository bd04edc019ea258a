// SPDX-License-Identifier: Apache-2.0
// What does it cost a warp to reduce 32 values, one per lane, for every lane?
//
// Question: softmax needs the maximum and the sum of each row. Which way of
//   reducing across the warp is shortest, which gives the most rows per clock, and
//   how many rows at once hide a butterfly's latency?
// Mechanism: a butterfly of shuffles is five dependent SHFL and five operations,
//   about 29 cycles each; one row leaves the warp idle while they fly, more rows
//   fill the time until the shuffle unit's rate binds. redux.sync does
//   the whole row in one instruction, for 32-bit integers only. The tensor cores sum
//   eight columns at once when multiplied by ones, at the price of tf32 inputs.
// Formula: cycles per row = slope of the cycles over rows; rows/clk/SM <= 32 / lanes
//   moved per row. Each round feeds its results into the next round's values
//   (one FMA), so rounds can't overlap and rows of one round can.
// Expected: SHFL moves 32 lanes per clock and SM, REDUX 16 (CUDA C++ Programming
//   Guide), so at most 0.2 rows/clk/SM by five shuffles and 0.5 by redux; one row
//   alone takes five shuffles and five operations of latency, about 5 * (24 + 4)
//   cycles, and 8 rows at once little more than one: the kernel's shuffled softmax
//   gained only when its warps reduced 8 rows together (kernels/sdpa/smem/softmax.cuh).
// Falsifier: cycles per row that do not fall from 1 to 8 rows; a butterfly above
//   0.2 rows/clk/SM; serial reduction beating the butterfly at 1 row.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <algorithm>
#include <cub/warp/warp_reduce.cuh>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/cuda_status.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger::micro {
namespace {

namespace cg = cooperative_groups;

using harness::CycleArgs;
using harness::CycleCase;
using harness::Evidence;
using harness::Limit;
using harness::Measure;
using harness::MicroDevice;
using harness::Resource;
using harness::ValueCase;

constexpr int kWarp = 32;
constexpr unsigned kFullWarp = 0xffffffffu;
constexpr int kThroughputThreads = 256;

// --- Operations --------------------------------------------------------------

struct Max {
  static constexpr char kName[] = "max";
  using Group = cg::greater<float>;
  template <typename T>
  static __device__ T Combine(T a, T b) {
    return max(a, b);
  }
  static __device__ uint32_t Redux(uint32_t v) { return __reduce_max_sync(kFullWarp, v); }
};
struct Sum {
  static constexpr char kName[] = "sum";
  using Group = cg::plus<float>;
  template <typename T>
  static __device__ T Combine(T a, T b) {
    return a + b;
  }
  static __device__ uint32_t Redux(uint32_t v) { return __reduce_add_sync(kFullWarp, v); }
};

// --- Techniques --------------------------------------------------------------
//
// Reduce<Op, kRows>(v, scratch): v[r] holds this lane's value of row r; afterwards
// every lane holds the row's result there. All lanes of the warp call it.
// `scratch` is (kRows, kScratchStride) floats of the warp's own shared memory.

// Odd, so that lanes that walk different rows hit different banks.
constexpr int kScratchStride = kWarp + 1;

// One lane per row walks it in shared memory: what the tiled kernel's serial
// softmax does.
struct SerialShared {
  static constexpr bool kUsesScratch = true;
  using Value = float;
  template <typename Op, int kRows>
  static __device__ void Reduce(float (&v)[kRows], float* scratch) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int r = 0; r < kRows; ++r) scratch[r * kScratchStride + lane] = v[r];
    __syncwarp();
    if (lane < kRows) {
      float* row = scratch + lane * kScratchStride;
      float result = row[0];
#pragma unroll
      for (int i = 1; i < kWarp; ++i) result = Op::Combine(result, row[i]);
      row[0] = result;
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < kRows; ++r) v[r] = scratch[r * kScratchStride];
    __syncwarp();  // the next round's stores must not overtake these loads
  }
};

// Butterfly, rows inside: the shuffles of one step are independent.
struct ShuffleXor {
  static constexpr bool kUsesScratch = false;
  using Value = float;
  template <typename Op, int kRows>
  static __device__ void Reduce(float (&v)[kRows], float* /*scratch*/) {
#pragma unroll
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        v[r] = Op::Combine(v[r], __shfl_xor_sync(kFullWarp, v[r], mask));
      }
    }
  }
};

// Tree into lane 0, then a sixth shuffle, because every lane needs the result.
struct ShuffleDown {
  static constexpr bool kUsesScratch = false;
  using Value = float;
  template <typename Op, int kRows>
  static __device__ void Reduce(float (&v)[kRows], float* /*scratch*/) {
#pragma unroll
    for (int delta = kWarp / 2; delta > 0; delta /= 2) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        v[r] = Op::Combine(v[r], __shfl_down_sync(kFullWarp, v[r], delta));
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) v[r] = __shfl_sync(kFullWarp, v[r], 0);
  }
};

// redux.sync (PTX ISA, "Parallel Synchronization and Communication: redux.sync";
// sm_80), on unsigned integers.
struct ReduxU32 {
  static constexpr bool kUsesScratch = false;
  using Value = uint32_t;
  template <typename Op, int kRows>
  static __device__ void Reduce(uint32_t (&v)[kRows], float* /*scratch*/) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) v[r] = Op::Redux(v[r]);
  }
};

struct CooperativeGroups {
  static constexpr bool kUsesScratch = false;
  using Value = float;
  template <typename Op, int kRows>
  static __device__ void Reduce(float (&v)[kRows], float* /*scratch*/) {
    const auto warp = cg::tiled_partition<kWarp>(cg::this_thread_block());
#pragma unroll
    for (int r = 0; r < kRows; ++r) v[r] = cg::reduce(warp, v[r], typename Op::Group());
  }
};

// CUB's warp reduction gives lane 0 the result; a shuffle gives it to all.
struct Cub {
  static constexpr bool kUsesScratch = false;
  using Value = float;
  template <typename Op, int kRows>
  static __device__ void Reduce(float (&v)[kRows], float* /*scratch*/) {
    using WarpReduce = cub::WarpReduce<float>;
    typename WarpReduce::TempStorage unused;  // empty where all is done by shuffles
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const auto combine = [](float a, float b) { return Op::Combine(a, b); };
      v[r] = __shfl_sync(kFullWarp, WarpReduce(unused).Reduce(v[r], combine), 0);
    }
  }
};

// mma.sync.m16n8k8 on tf32 (PTX ISA, "Matrix Fragments for mma.m16n8k8"), with a
// matrix A whose upper eight rows sum the first four of B's eight rows and whose
// lower eight rows sum the others. A lane's first B register lies in the upper four
// rows, its second in the lower four, so one mma takes two rows of ours, in eight
// columns of four lanes each; a second one sums the columns.
struct MmaOnes {
  static constexpr bool kUsesScratch = false;
  using Value = float;

  static __device__ uint32_t ToTf32(float x) {
    uint32_t y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
  }
  // d: upper rows in [0], [1], lower rows in [2], [3].
  static __device__ void Multiply(float (&d)[4], uint32_t upper, uint32_t lower) {
    constexpr uint32_t kOne = 0x3f800000u;
    d[0] = d[1] = d[2] = d[3] = 0.0f;
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %5, %4}, "
        "{%6, %7}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(kOne), "r"(0u), "r"(upper), "r"(lower));
  }

  template <typename Op, int kRows>
  static __device__ void Reduce(float (&v)[kRows], float* /*scratch*/) {
    static_assert(std::is_same_v<Op, Sum>, "the tensor cores multiply and add only");
    constexpr int kPairs = (kRows + 1) / 2;
    float d[kPairs][4];
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const uint32_t lower = 2 * p + 1 < kRows ? ToTf32(v[(2 * p + 1) % kRows]) : 0u;
      Multiply(d[p], ToTf32(v[2 * p]), lower);
    }
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      Multiply(d[p], ToTf32(d[p][0] + d[p][1]), ToTf32(d[p][2] + d[p][3]));
    }
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      v[2 * p] = d[p][0];
      if (2 * p + 1 < kRows) v[(2 * p + 1) % kRows] = d[p][2];
    }
  }
};

// --- Kernels -----------------------------------------------------------------

// Rounds per iteration of the timed loop, so that its control stays small beside
// the rows.
constexpr int RoundsOf(int rows) { return std::max(1, 8 / rows); }

// Next round's value from the last one's result and this lane's own.
__device__ float Mix(float result, float own) { return fmaf(result, 0.03f, own); }
__device__ uint32_t Mix(uint32_t result, uint32_t own) { return result * 5u + own; }

__device__ float FromBits(uint32_t bits, float) { return harness::RandomFloat(bits); }
__device__ uint32_t FromBits(uint32_t bits, uint32_t) { return bits; }
__device__ uint32_t ToBits(float value) { return __float_as_uint(value); }
__device__ uint32_t ToBits(uint32_t value) { return value; }

template <typename Technique, typename Op, int kRows>
__global__ void __launch_bounds__(kThroughputThreads) ReduceKernel(CycleArgs args) {
  using Value = typename Technique::Value;
  constexpr int kScratchFloats =
      Technique::kUsesScratch ? kThroughputThreads / kWarp * kRows * kScratchStride : 1;
  __shared__ float scratch[kScratchFloats];
  float* const mine =
      scratch + (Technique::kUsesScratch ? threadIdx.x / kWarp * kRows * kScratchStride : 0);
  Value own[kRows];
  Value v[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) * kRows + r;
    own[r] = FromBits(harness::Opaque(harness::RandomBits(args.seed, index)), Value());
    v[r] = own[r];
  }
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int round = 0; round < RoundsOf(kRows); ++round) {
      Technique::template Reduce<Op, kRows>(v, mine);
#pragma unroll
      for (int r = 0; r < kRows; ++r) v[r] = Mix(v[r], own[r]);
    }
  }
  harness::StopCycles(args, start);
  uint32_t folded = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) folded = folded * 31 + ToBits(v[r]);
  harness::KeepAlive(args, folded);
}

// The largest relative error of one sum over `count` random rows per warp, against
// the sum in double, written as the bits of a double; every lane's result counts.
template <typename Technique>
__global__ void __launch_bounds__(kThroughputThreads)
    SumErrorKernel(int count, unsigned long long* max_rel_bits) {
  constexpr int kRows = 2;
  __shared__ float scratch[kThroughputThreads / kWarp * kRows * kScratchStride];
  float* const mine = scratch + threadIdx.x / kWarp * kRows * kScratchStride;
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    float v[kRows];
    double exact[kRows];
    for (int r = 0; r < kRows; ++r) {
      const uint32_t index = ((blockIdx.x * count + i) * kRows + r) * blockDim.x + threadIdx.x;
      v[r] = harness::RandomFloat(harness::RandomBits(1, index));
      exact[r] = v[r];
      for (int mask = kWarp / 2; mask > 0; mask /= 2) {
        exact[r] += __shfl_xor_sync(kFullWarp, exact[r], mask);
      }
    }
    Technique::template Reduce<Sum, kRows>(v, mine);
    for (int r = 0; r < kRows; ++r) worst = fmax(worst, fabs(v[r] - exact[r]) / exact[r]);
  }
  atomicMax(max_rel_bits, static_cast<unsigned long long>(__double_as_longlong(worst)));
}

template <typename Technique>
absl::StatusOr<double> LargestSumError(const MicroDevice& device) {
  constexpr int kRowPairsPerWarp = 1000;
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Allocate(sizeof(double));
  if (!buffer.ok()) return buffer.status();
  RETURN_IF_ERROR(buffer->Fill(0));
  SumErrorKernel<Technique><<<device.facts.sm_count, kThroughputThreads>>>(
      kRowPairsPerWarp, static_cast<unsigned long long*>(buffer->data()));
  RETURN_IF_CUDA_ERROR(cudaGetLastError(), "launching the error kernel of warp_reduction");
  double worst = 0;
  RETURN_IF_ERROR(
      buffer->CopyToHost(absl::MakeSpan(reinterpret_cast<std::byte*>(&worst), sizeof(worst))));
  return worst;
}

// --- Cases -------------------------------------------------------------------

struct TechniqueInfo {
  const char* name;
  Limit limit = {};                     // of the rows per clock and SM
  std::vector<Evidence> evidence = {};  // per round: see EvidenceOf
  bool per_row = true;                  // counts are per row; false: as they are
};

template <typename Technique, typename Op, int kRows>
void AddRows(const TechniqueInfo& info) {
  const std::string prefix = std::string("warp_reduction/") + info.name + "/" + Op::kName +
                             "/rows" + std::to_string(kRows);
  std::vector<Evidence> evidence = info.evidence;
  for (Evidence& row : evidence) {
    row.at_least *= RoundsOf(kRows) * (info.per_row ? kRows : 1);
    if (row.at_most > 0) row.at_most *= RoundsOf(kRows) * (info.per_row ? kRows : 1);
  }
  const std::vector<harness::Parameter> parameters = {{"rows_at_once", kRows}};
  harness::Add(
      CycleCase{.about = {.name = prefix + "/latency",
                          .measures = "cycles per row of one warp that reduces its rows together",
                          .unit = "cycles",
                          .evidence = evidence,
                          .parameters = parameters},
                .measure = Measure::kLatency,
                .kernel = ReduceKernel<Technique, Op, kRows>,
                .units_per_iteration = 1.0 * RoundsOf(kRows) * kRows});
  harness::Add(CycleCase{.about = {.name = prefix + "/throughput",
                                   .measures = "rows per clock and SM, eight warps at work",
                                   .unit = "rows/clk/SM",
                                   .limit = info.limit,
                                   .evidence = evidence,
                                   .parameters = parameters},
                         .measure = Measure::kThroughput,
                         .kernel = ReduceKernel<Technique, Op, kRows>,
                         // A row belongs to a whole warp.
                         .units_per_iteration = 1.0 * RoundsOf(kRows) * kRows / kWarp,
                         .threads = kThroughputThreads});
}

template <typename Technique, typename Op>
void AddCurve(const TechniqueInfo& info) {
  AddRows<Technique, Op, 1>(info);
  AddRows<Technique, Op, 4>(info);
  AddRows<Technique, Op, 8>(info);
  AddRows<Technique, Op, 32>(info);
}

template <typename Technique>
void AddError(const TechniqueInfo& info) {
  harness::Add(ValueCase{
      .about = {.name = std::string("warp_reduction/") + info.name + "/sum/max_relative_error",
                .measures = "largest relative error of the sum of 32 values in [1, 2)",
                .unit = ""},
      .compute = LargestSumError<Technique>});
}

Limit Shuffles(int per_row) {
  return {.resource = Resource::kShuffle, .scale = 1.0 / (kWarp * per_row)};
}

}  // namespace

WARPLEDGER_MICRO(warp_reduction) {
  // 32 stores of a row are one instruction of the warp, its serial walk 32 loads.
  const TechniqueInfo serial = {.name = "serial_shared",
                                .limit = {},
                                .evidence = {{.sass = R"(^LDS)", .at_least = kWarp}},
                                .per_row = false};
  AddCurve<SerialShared, Max>(serial);
  AddCurve<SerialShared, Sum>(serial);
  AddError<SerialShared>(serial);

  const TechniqueInfo butterfly = {
      .name = "shfl_xor",
      .limit = Shuffles(5),
      .evidence = {{.sass = R"(^SHFL\.BFLY)", .at_least = 5, .at_most = 5}}};
  AddCurve<ShuffleXor, Max>(butterfly);
  AddCurve<ShuffleXor, Sum>(butterfly);
  AddError<ShuffleXor>(butterfly);

  const TechniqueInfo tree = {.name = "shfl_down",
                              .limit = Shuffles(6),
                              .evidence = {{.sass = R"(^SHFL\.DOWN)", .at_least = 5, .at_most = 5},
                                           {.sass = R"(^SHFL\.IDX)"}}};
  AddCurve<ShuffleDown, Max>(tree);
  AddCurve<ShuffleDown, Sum>(tree);

  const TechniqueInfo redux = {
      .name = "redux_u32",
      .limit = {.resource = Resource::kWarpReduce, .scale = 1.0 / kWarp},
      .evidence = {{.sass = R"(^(U?C?REDUX))"}, {.sass = R"(^SHFL)", .at_least = 0, .at_most = 0}}};
  AddCurve<ReduxU32, Max>(redux);
  AddCurve<ReduxU32, Sum>(redux);

  // The library is free to choose; on floats it shuffles.
  const TechniqueInfo groups = {
      .name = "cooperative_groups", .limit = Shuffles(5), .evidence = {{.sass = R"(^SHFL)"}}};
  AddCurve<CooperativeGroups, Max>(groups);
  AddCurve<CooperativeGroups, Sum>(groups);

  const TechniqueInfo cub = {
      .name = "cub", .limit = Shuffles(6), .evidence = {{.sass = R"(^SHFL)", .at_least = 6}}};
  AddRows<Cub, Max, 1>(cub);
  AddRows<Cub, Max, 8>(cub);
  AddRows<Cub, Sum, 1>(cub);
  AddRows<Cub, Sum, 8>(cub);

  // One mma of 2048 FLOP per row, at half the rate of fp16 for tf32.
  const TechniqueInfo mma = {.name = "mma_ones_tf32",
                             .limit = {.resource = Resource::kTensorFp16Flop, .scale = 0.5 / 2048},
                             .evidence = {{.sass = R"(^HMMA\.1688\.F32\.TF32)"},
                                          {.sass = R"(^SHFL)", .at_least = 0, .at_most = 0}}};
  AddCurve<MmaOnes, Sum>(mma);
  AddError<MmaOnes>(mma);
}

}  // namespace warpledger::micro
