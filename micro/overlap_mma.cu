// SPDX-License-Identifier: Apache-2.0
// The overlap matrix with mma.sync as the co-runner; micro/overlap.cuh has the
// question, the formula and what is expected.
//
// Eight warps of four chains saturate the tensor cores as far as mma.sync can on
// Hopper: 24 cycles of a scheduler for four m16n8k16 (tensor_core.cu).

#include "micro/overlap.cuh"

namespace warpledger::overlap {
namespace {

struct MmaSync {
  static constexpr char kName[] = "mma_sync";
  static constexpr char kWhat[] = "mma.sync.m16n8k16 fp16";
  static constexpr char kSass[] = R"(^HMMA\.16816\.F32$)";
  static constexpr int kMinCc = 80;
  static constexpr int kMaxCc = 0;
  static constexpr int kMmas = 40;
  // 40 products of six cycles; each scheduler has two of the warps, and an
  // operation's kCycles are those of the scheduler's unit.
  static constexpr int kShareCycles = 40 * 6;
  static constexpr int kAccumulatorSets = 4;
  static constexpr int kAFragments = 2;
  static constexpr int kBFragments = 4;
  static constexpr int kSmemBytes = 0;

  struct State {
    uint32_t a[kAFragments][4];
    uint32_t b[kBFragments][2];
    float d[kAccumulatorSets][4];
  };

  // +-[1/16, 1/8): sums stay finite in fp16.
  static __device__ uint32_t Word(uint32_t bits) { return (bits & 0x83ff83ffu) | 0x2c002c00u; }
  static __device__ void PublishTiles() {}

  static __device__ void Init(State& state, const unsigned char*, uint32_t seed, int role_thread) {
    constexpr int kWords = kAFragments * 4 + kBFragments * 2;
    const auto word = [&](int i) {
      return harness::Opaque(Word(harness::RandomBits(~seed, role_thread * kWords + i)));
    };
#pragma unroll
    for (int i = 0; i < kAFragments * 4; ++i) state.a[i / 4][i % 4] = word(i);
#pragma unroll
    for (int i = 0; i < kBFragments * 2; ++i) {
      state.b[i / 2][i % 2] = word(kAFragments * 4 + i);
    }
#pragma unroll
    for (int i = 0; i < kAccumulatorSets * 4; ++i) state.d[i / 4][i % 4] = 0;
  }

  // The operations lie evenly between the products.
  template <int kOps, typename StepOps>
  static __device__ __forceinline__ void Turn(State& state, const StepOps& steps) {
#pragma unroll
    for (int m = 0; m < kMmas; ++m) {
      float(&d)[4] = state.d[m % kAccumulatorSets];
      const uint32_t(&a)[4] = state.a[m / kAccumulatorSets % kAFragments];
      const uint32_t(&b)[2] = state.b[m % kBFragments];
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
      steps(m * kOps / kMmas, (m + 1) * kOps / kMmas);
    }
  }
  static __device__ void Drain() {}
  static __device__ uint32_t Fold(const State& state) {
    uint32_t folded = 0;
#pragma unroll
    for (int i = 0; i < kAccumulatorSets * 4; ++i) {
      folded = folded * 31 + __float_as_uint(state.d[i / 4][i % 4]);
    }
    return folded;
  }
  static std::vector<harness::Evidence> MoreEvidence() { return {}; }
};

}  // namespace

WARPLEDGER_MICRO(overlap_mma) { AddPartner<MmaSync>(); }

}  // namespace warpledger::overlap
