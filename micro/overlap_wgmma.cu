// SPDX-License-Identifier: Apache-2.0
// The overlap matrix with wgmma as the co-runner; micro/overlap.cuh has the question,
// the formula and what is expected. Compiled for sm_90a.
//
// Two warpgroups keep m64n128k16 with both operands from shared memory under way all
// the time: 64 cycles of the SM's tensor cores each. Operations of a stream stand
// between issue and wait, as exponentials do in an attention kernel; the wait is for
// the turn before.

#include "kernels/common/tma.cuh"
#include "kernels/common/wgmma.cuh"
#include "micro/overlap.cuh"

namespace warpledger::overlap {
namespace {

struct WgmmaSs {
  static constexpr char kName[] = "wgmma";
  static constexpr char kWhat[] = "wgmma.m64n128k16 fp16 from shared memory";
  static constexpr char kSass[] = R"(^HGMMA\.64x128x16\.F32)";
  static constexpr int kMinCc = 90;
  static constexpr int kMaxCc = 90;
  static constexpr int kN = 128;
  static constexpr int kMmas = 4;  // one row of the swizzled tiles, 64 along K
  // A warpgroup's four products take 256 cycles; the other's take as long.
  static constexpr int kShareCycles = kMmas * kN / 2;
  static constexpr int kRowBytes = 128;
  static constexpr int kATileBytes = 64 * kRowBytes;
  static constexpr int kSmemBytes = kATileBytes + kN * kRowBytes;

  struct State {
    float d[kN / 2];
    uint64_t a;
    uint64_t b;
  };

  // +-[1/16, 1/8), as mma.sync's.
  static __device__ uint32_t Word(uint32_t bits) { return (bits & 0x83ff83ffu) | 0x2c002c00u; }
  // wgmma reads shared memory through the async proxy.
  static __device__ void PublishTiles() { ptx::FenceProxyAsync(); }

  static __device__ void Init(State& state, const unsigned char* tiles, uint32_t, int) {
#pragma unroll
    for (int i = 0; i < kN / 2; ++i) state.d[i] = 0;
    state.a = ptx::SwizzledDescriptor(ptx::SharedAddress(tiles));
    state.b = ptx::SwizzledDescriptor(ptx::SharedAddress(tiles + kATileBytes));
  }

  template <int kOps, typename StepOps>
  static __device__ __forceinline__ void Turn(State& state, const StepOps& steps) {
    ptx::WgmmaFence();
#pragma unroll
    for (int m = 0; m < kMmas; ++m) {
      constexpr uint32_t kStepBytes = 32;
      ptx::Wgmma<kN>::SS(state.d, ptx::AdvanceDescriptor(state.a, m * kStepBytes),
                         ptx::AdvanceDescriptor(state.b, m * kStepBytes), /*accumulate=*/1);
    }
    ptx::WgmmaCommit();
    steps(0, kOps);
    ptx::WgmmaWait<1>();
  }
  static __device__ void Drain() { ptx::WgmmaWait<0>(); }
  static __device__ uint32_t Fold(const State& state) {
    uint32_t folded = 0;
#pragma unroll
    for (int i = 0; i < kN / 2; ++i) folded = folded * 31 + __float_as_uint(state.d[i]);
    return folded;
  }
  // Where ptxas serialises wgmmas it waits after each of them: one wait in the loop
  // and one behind it are ours.
  static std::vector<harness::Evidence> MoreEvidence() {
    return {{.sass = R"(^WARPGROUP\.DEPBAR)", .at_least = 1, .at_most = 2}};
  }
};

}  // namespace

WARPLEDGER_MICRO(overlap_wgmma) { AddPartner<WgmmaSs>(); }

}  // namespace warpledger::overlap
