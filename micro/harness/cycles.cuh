// SPDX-License-Identifier: Apache-2.0
// Device side of a CycleCase: reading the clock, keeping results alive, and the
// kernel that most benchmarks of one instruction are made of.
//
// A kernel of one's own follows this shape, and nothing else:
//
//   __global__ void Kernel(CycleArgs args) {
//     … make data from args.seed or args.data …
//     const int64_t start = harness::StartCycles();       // barrier, then the clock
//   #pragma unroll 1                                      // a real loop: its body can't
//     for (int i = 0; i < args.iterations; ++i) { … }     // be moved past the clock
//     harness::StopCycles(args, start);                   // the clock, then the stamp
//     harness::KeepAlive(args, …32 bits of every result…);
//   }
//
// The loop's trip count is known at run time only, so nothing of its body can
// leave the two clock reads; what the reads and the loop's control cost, and the
// tail of the last chain, is the intercept of the fit, not the slope.

#ifndef WARPLEDGER_MICRO_HARNESS_CYCLES_CUH_
#define WARPLEDGER_MICRO_HARNESS_CYCLES_CUH_

#include <cstdint>

#include "micro/harness/cycle_args.h"

namespace warpledger::harness {

// %clock64 (PTX ISA, "Special Registers"): cycles of this SM. The memory clobber
// keeps loads and stores on their side.
__device__ inline int64_t ReadClock() {
  int64_t clock;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(clock)::"memory");
  return clock;
}

__device__ inline uint32_t ReadSmId() {
  uint32_t smid;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
  return smid;
}

// All threads of the CTA call it: they start together.
__device__ inline int64_t StartCycles() {
  __syncthreads();
  return ReadClock();
}

// All threads of the CTA call it; lane 0 of each warp writes. Blocks and CTAs are
// one-dimensional.
__device__ inline void StopCycles(const CycleArgs& args, int64_t start) {
  const int64_t stop = ReadClock();
  const uint32_t warps = (blockDim.x + 31) / 32;
  if (threadIdx.x % 32 == 0) {
    args.stamps[blockIdx.x * warps + threadIdx.x / 32] =
        WarpStamp{start, stop, ReadSmId(), blockIdx.x};
  }
}

// Makes `value` a result of the kernel: it is stored where it equals a number that
// the compiler can't know and that almost never comes up.
__device__ inline void KeepAlive(const CycleArgs& args, uint32_t value) {
  if (value == args.sink_key) *args.sink = value;
}

// 32 random bits for (seed, index): the finaliser of MurmurHash3 (A. Appleby,
// public domain) over a Weyl sequence.
__device__ inline uint32_t RandomBits(uint32_t seed, uint32_t index) {
  uint32_t bits = seed + index * 0x9e3779b9u;
  bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
  bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
  return bits ^ (bits >> 16);
}

// The same bits, of unknown origin. Data that the timed loop only reads must pass
// through here, or the compiler may save a register by making it anew in the loop.
__device__ inline uint32_t Opaque(uint32_t bits) {
  asm volatile("" : "+r"(bits));
  return bits;
}

// A float in [1, 2) from random bits.
__device__ inline float RandomFloat(uint32_t bits) {
  return __uint_as_float(0x3f800000u | (bits >> 9));
}

// What ChainKernel needs of an operation besides `static Value Step(Value)`: the
// first value of a chain, and 32 bits of the last. These two serve as bases.
struct FloatOp {
  using Value = float;
  static __device__ float Make(uint32_t bits) { return RandomFloat(bits); }
  static __device__ uint32_t Fold(float value) { return __float_as_uint(value); }
};
struct WordOp {
  using Value = uint32_t;
  static __device__ uint32_t Make(uint32_t bits) { return bits; }
  static __device__ uint32_t Fold(uint32_t value) { return value; }
};

// kChains independent chains per thread, kUnroll links of each per iteration:
// kChains * kUnroll steps per iteration and thread. One chain gives the latency of
// a step, enough chains and warps its throughput. Keep kChains * kUnroll at 64 or
// more for operations that issue every cycle: the loop's own control is about
// three instructions.
template <typename Op, int kChains, int kUnroll>
__global__ void ChainKernel(CycleArgs args) {
  typename Op::Value values[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) {
    const uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) * kChains + c;
    values[c] = Op::Make(RandomBits(args.seed, index));
  }
  const int64_t start = StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int c = 0; c < kChains; ++c) values[c] = Op::Step(values[c]);
    }
  }
  StopCycles(args, start);
  uint32_t folded = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) folded = folded * 31 + Op::Fold(values[c]);
  KeepAlive(args, folded);
}

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_CYCLES_CUH_
