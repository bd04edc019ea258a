// SPDX-License-Identifier: Apache-2.0
// What does it cost a CTA to reduce one value of each thread, for every thread?
//
// Question: a row that is spread over several warps needs a second step through
//   shared memory. What does that add to a warp's reduction (warp_reduction.cu), how does
//   it grow with the warps, and does a library or an atomic do better?
// Mechanism: warps reduce by shuffles (floats) or redux.sync (integers) and write one
//   value each; behind a barrier every warp reads all of them and reduces again, so
//   that nobody has to tell the result. CUB lets the first thread add the warps'
//   values one by one, and a second barrier tells. An atomic add to one word of
//   shared memory replaces the second reduction.
// Formula: cycles per reduction = slope of the cycles of one CTA over rounds, each of
//   which feeds its result into the next. Two levels by shuffles:
//   (5 + log2 warps) * (24 + 4.5) + store, barrier and load, about 23 + B + 23, where
//   B = 21 to 77 cycles for 4 to 32 warps (barriers.cu).
// Expected: on Hopper, two levels by shuffles of 4, 8 and 32 warps: 265, 300 and 400
//   cycles; redux about 110 for 8 warps; CUB slower from 8 warps on, where the serial
//   part has eight links; the atomic slower than redux from 8 warps on, as adds to a word
//   come one after the other.
// Seen on an H200: 32 warps take 495 cycles by shuffles, as eight warps of a scheduler
// wait for one crossbar, which the formula leaves out; redux of 8 warps takes 157.
// Falsifier: CUB faster than two levels at 32 warps; a second level that costs more
//   than the first; redux slower than 0.6 of the shuffles.

#include <cstddef>
#include <cub/block/block_reduce.cuh>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "kernels/common/status_macros.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger::micro {
namespace {

using harness::CycleArgs;
using harness::Evidence;

constexpr int kWarp = 32;
constexpr unsigned kFullWarp = 0xffffffffu;

constexpr int Log2(int n) { return n <= 1 ? 0 : 1 + Log2(n / 2); }

struct Max {
  static constexpr char kName[] = "max";
  static __device__ float Combine(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
  static constexpr char kName[] = "sum";
  static __device__ float Combine(float a, float b) { return a + b; }
};

// Reduce<Op, kWarps>(v, shared, round): all threads call it, and all get the result. A
// round may start when the one before has returned. kRounds of them make a whole
// cycle of the shared memory.

// What warps tell each other, for the next round and for this one: a round's values are
// not overwritten before all warps have passed the barrier behind their use.
template <typename Value>
struct Shared {
  Value of_warp[2][kWarp];
};

template <int kLanes, typename Op>
__device__ float Butterfly(float v) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) {
    v = Op::Combine(v, __shfl_xor_sync(kFullWarp, v, mask));
  }
  return v;
}

struct TwoLevelShuffle {
  static constexpr char kName[] = "two_level_shfl";
  using Value = float;
  template <typename Op, int kWarps>
  using Storage = Shared<float>;
  template <typename Op, int kWarps>
  static __device__ float Reduce(float v, Shared<float>& shared, int round) {
    float* values = shared.of_warp[round % 2];
    v = Butterfly<kWarp, Op>(v);
    if (threadIdx.x % kWarp == 0) values[threadIdx.x / kWarp] = v;
    __syncthreads();
    // Lanes past the warps read again what others do, so that every lane gets the result.
    return Butterfly<kWarps, Op>(values[threadIdx.x % kWarps]);
  }
  static std::vector<Evidence> Proof(int warps) {
    const int shuffles = 5 + Log2(warps);
    return {{.sass = R"(^SHFL\.BFLY)", .at_least = shuffles}, {.sass = R"(^BAR\.SYNC)"}};
  }
};

struct TwoLevelRedux {
  static constexpr char kName[] = "two_level_redux_u32";
  using Value = uint32_t;
  template <typename Op, int kWarps>
  using Storage = Shared<uint32_t>;
  template <typename Op, int kWarps>
  static __device__ uint32_t Reduce(uint32_t v, Shared<uint32_t>& shared, int round) {
    uint32_t* values = shared.of_warp[round % 2];
    v = __reduce_add_sync(kFullWarp, v);
    if (threadIdx.x % kWarp == 0) values[threadIdx.x / kWarp] = v;
    __syncthreads();
    const uint32_t lane = threadIdx.x % kWarp;
    return __reduce_add_sync(kFullWarp, lane < kWarps ? values[lane] : 0);
  }
  static std::vector<Evidence> Proof(int) {
    return {{.sass = R"(^(U?C?REDUX))", .at_least = 2},
            {.sass = R"(^SHFL)", .at_least = 0, .at_most = 0},
            {.sass = R"(^BAR\.SYNC)"}};
  }
};

// redux in the warp, then one atomic add of each warp. Three words in turn: one is
// added to, one read, one cleared.
struct ReduxAtomic {
  static constexpr char kName[] = "redux_atomic_u32";
  using Value = uint32_t;
  template <typename Op, int kWarps>
  using Storage = Shared<uint32_t>;
  template <typename Op, int kWarps>
  static __device__ uint32_t Reduce(uint32_t v, Shared<uint32_t>& shared, int round) {
    uint32_t* words = shared.of_warp[0];
    v = __reduce_add_sync(kFullWarp, v);
    if (threadIdx.x % kWarp == 0) atomicAdd(&words[round % 3], v);
    __syncthreads();
    if (threadIdx.x == 0) words[(round + 2) % 3] = 0;
    return *static_cast<volatile uint32_t*>(&words[round % 3]);
  }
  static std::vector<Evidence> Proof(int) {
    return {{.sass = R"(^(U?C?REDUX))"}, {.sass = R"(^ATOMS)"}, {.sass = R"(^BAR\.SYNC)"}};
  }
};

struct CubBlock {
  static constexpr char kName[] = "cub";
  using Value = float;
  template <int kWarps>
  using BlockReduce = cub::BlockReduce<float, kWarps * kWarp, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  template <typename Op, int kWarps>
  struct Storage {
    typename BlockReduce<kWarps>::TempStorage cub;
    float result[2];
  };
  template <typename Op, int kWarps>
  static __device__ float Reduce(float v, Storage<Op, kWarps>& shared, int round) {
    const auto combine = [](float a, float b) { return Op::Combine(a, b); };
    const float reduced = BlockReduce<kWarps>(shared.cub).Reduce(v, combine);
    float& result = shared.result[round % 2];
    if (threadIdx.x == 0) result = reduced;
    __syncthreads();
    return result;
  }
  static std::vector<Evidence> Proof(int) {
    return {{.sass = R"(^SHFL)", .at_least = 5}, {.sass = R"(^BAR\.SYNC)", .at_least = 2}};
  }
};

__device__ float FromBits(uint32_t bits, float) { return harness::RandomFloat(bits); }
__device__ uint32_t FromBits(uint32_t bits, uint32_t) { return bits; }
__device__ uint32_t ToBits(float value) { return __float_as_uint(value); }
__device__ uint32_t ToBits(uint32_t value) { return value; }
// Next round's value from the last one's result and this thread's own.
__device__ float Mix(float result, float own) { return fmaf(result, 0x1p-11f, own); }
__device__ uint32_t Mix(uint32_t result, uint32_t own) { return result * 5u + own; }

constexpr int kRounds = 6;  // per iteration: a multiple of the two or three words in turn

template <typename Technique, typename Op, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp) ReduceKernel(CycleArgs args) {
  using Value = typename Technique::Value;
  __shared__ typename Technique::template Storage<Op, kWarps> shared;
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(shared) / 4); i += blockDim.x) {
    reinterpret_cast<uint32_t*>(&shared)[i] = 0;
  }
  const Value own = FromBits(harness::Opaque(harness::RandomBits(args.seed, threadIdx.x)), Value());
  Value v = own;
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      v = Mix(Technique::template Reduce<Op, kWarps>(v, shared, round), own);
    }
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, ToBits(v));
}

// What every thread got in kRounds rounds of random values, against the sum or maximum
// that it computes for itself: the largest relative error, written as a double's bits.
template <typename Technique, typename Op, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp) ErrorKernel(unsigned long long* max_bits) {
  using Value = typename Technique::Value;
  __shared__ typename Technique::template Storage<Op, kWarps> shared;
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(shared) / 4); i += blockDim.x) {
    reinterpret_cast<uint32_t*>(&shared)[i] = 0;
  }
  __syncthreads();
  const auto value_of = [](int round, int thread) {
    return FromBits(harness::RandomBits(round, thread), Value());
  };
  double worst = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Value got =
        Technique::template Reduce<Op, kWarps>(value_of(round, threadIdx.x), shared, round);
    if constexpr (std::is_same_v<Value, float>) {
      double exact = 0;
      for (int t = 0; t < kWarps * kWarp; ++t) {
        const double v = value_of(round, t);
        exact = std::is_same_v<Op, Sum> ? exact + v : fmax(exact, v);
      }
      worst = fmax(worst, fabs(got - exact) / exact);
    } else {
      uint32_t exact = 0;
      for (int t = 0; t < kWarps * kWarp; ++t) exact += value_of(round, t);
      worst = fmax(worst, got == exact ? 0.0 : 1.0);
    }
  }
  atomicMax(max_bits, static_cast<unsigned long long>(__double_as_longlong(worst)));
}

template <typename Technique, typename Op, int kWarps>
absl::StatusOr<double> LargestError(const harness::MicroDevice&) {
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Allocate(sizeof(double));
  if (!buffer.ok()) return buffer.status();
  RETURN_IF_ERROR(buffer->Fill(0));
  ErrorKernel<Technique, Op, kWarps>
      <<<1, kWarps * kWarp>>>(static_cast<unsigned long long*>(buffer->data()));
  RETURN_IF_CUDA_ERROR(cudaGetLastError(), "launching the error kernel of block_reduction");
  double worst = 0;
  RETURN_IF_ERROR(
      buffer->CopyToHost(absl::MakeSpan(reinterpret_cast<std::byte*>(&worst), sizeof(worst))));
  constexpr double kTolerated = 1e-5;
  if (worst > kTolerated) {
    return absl::InternalError(absl::StrCat(Technique::kName, " is wrong: relative error ", worst));
  }
  return worst;
}

template <typename Technique, typename Op, int kWarps>
void AddError() {
  harness::Add(harness::ValueCase{
      .about = {.name = absl::StrCat("block_reduction/", Technique::kName, "/", Op::kName,
                                     "/warps_", kWarps, "/max_relative_error"),
                .measures = "largest relative error over all threads and six rounds",
                .unit = ""},
      .compute = LargestError<Technique, Op, kWarps>});
}

template <typename Technique, typename Op, int kWarps>
void AddWarps() {
  harness::CycleCase c;
  c.about.name = absl::StrCat("block_reduction/", Technique::kName, "/", Op::kName, "/warps_",
                              kWarps, "/latency");
  c.about.measures = "cycles until all threads of a CTA have the reduction of their values";
  c.about.unit = "cycles";
  c.about.evidence = Technique::Proof(kWarps);
  for (Evidence& evidence : c.about.evidence) {
    evidence.at_least *= kRounds;
    if (evidence.at_most > 0) evidence.at_most *= kRounds;
  }
  c.about.parameters.push_back({"warps", kWarps});
  c.kernel = ReduceKernel<Technique, Op, kWarps>;
  c.units_per_iteration = kRounds;
  c.threads = kWarps * kWarp;
  harness::Add(std::move(c));
}

template <typename Technique, typename Op>
void AddTechnique() {
  AddWarps<Technique, Op, 4>();
  AddWarps<Technique, Op, 8>();
  AddWarps<Technique, Op, 32>();
  AddError<Technique, Op, 32>();
}

}  // namespace

WARPLEDGER_MICRO(block_reduction) {
  AddTechnique<TwoLevelShuffle, Max>();
  AddTechnique<TwoLevelShuffle, Sum>();
  AddTechnique<CubBlock, Sum>();
  AddTechnique<TwoLevelRedux, Sum>();
  AddTechnique<ReduxAtomic, Sum>();
}

}  // namespace warpledger::micro
