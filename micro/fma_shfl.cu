// SPDX-License-Identifier: Apache-2.0
// Question: how many cycles does a dependent FP32 FMA, FP16x2 FMA, 32-bit integer
// add or warp shuffle take, and how many of each does an SM finish per clock?
//
// Mechanism: each of an SM's four schedulers issues one warp instruction per
// clock. FFMA has 32 lanes per scheduler (16 on sm_80), HFMA2 32 lanes of two
// halves, IADD3 16 lanes, and shuffles share one 32-lane crossbar per SM.
//
// Formula: results per clock and SM = 4 schedulers * lanes * results per lane;
// a unit of half a warp's width takes a warp instruction every second clock.
// Latency = slope of cycles over the links of one dependent chain.
//
// Expected: 128 FFMA (64 on sm_80), 256 half FMA, 64 integer adds and 32
// shuffled lanes per clock and SM (NVIDIA, CUDA C++ Programming Guide, table of
// arithmetic throughput). FFMA chains at 4 cycles since Volta (Jia et al.,
// arXiv 1804.06826, table 4.1), shuffles at 24-25 on Hopper.
//
// Falsified by: fewer than 126 FFMA or 31 shuffled lanes per clock and SM on
// sm_90; more than 64 IADD3 (the compiler then moved adds to the FMA pipe as
// IMAD.IADD, which the evidence would show).

#include <cuda_fp16.h>

#include <string>

#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger {
namespace {

constexpr char kGuide[] = "NVIDIA, CUDA C++ Programming Guide, arithmetic throughput";

// x * a + b stays in [1, 2] for x there: no denormals, no overflow.
struct Ffma : harness::FloatOp {
  static __device__ float Step(float x) { return fmaf(x, 0.5f, 0.75f); }
};

struct Hfma2 : harness::WordOp {
  static __device__ uint32_t Make(uint32_t bits) {
    return (bits & 0x03ff03ffu) | 0x3c003c00u;  // two halves in [1, 2)
  }
  static __device__ uint32_t Step(uint32_t x) {
    // asm: nvcc would see no reason to keep two halves in one register.
    asm("{.reg .b32 a, b;\n"
        " mov.b32 a, 0x38003800;\n"
        " mov.b32 b, 0x3a003a00;\n"
        " fma.rn.f16x2 %0, %0, a, b;}"
        : "+r"(x));
    return x;
  }
};

// The same with factor and addend that ptxas can't know, near 0.5 and 0.75. It then
// takes HFMA2 and HFMA2.MMA in turn, which are two pipes' names for it; with
// constants it takes HFMA2 alone, at half the rate.
struct Hfma2Registers : Hfma2 {
  struct Value {
    uint32_t x, a, b;
  };
  static __device__ Value Make(uint32_t bits) {
    // One pair for all chains of a thread: with a pair each, reading three registers
    // an instruction costs a third of the rate.
    return {Hfma2::Make(bits), 0x38003800u | (threadIdx.x & 3),
            0x3a003a00u | (threadIdx.x >> 2 & 3)};
  }
  static __device__ Value Step(Value v) {
    asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(v.x) : "r"(v.a), "r"(v.b));
    return v;
  }
  static __device__ uint32_t Fold(Value v) { return v.x; }
};

// Each value is the sum of the three before it: a sum with constants would be
// folded. asm keeps nvcc from sharing parts of one sum with the next, which turns
// them into two-operand adds, half of them on the FMA pipe as IMAD.IADD.
struct Iadd3 {
  struct Value {
    uint32_t newest, middle, oldest;
  };
  static __device__ Value Make(uint32_t bits) { return {bits, bits * 3, bits ^ 0x5a5a5a5au}; }
  static __device__ Value Step(Value v) {
    uint32_t sum;
    asm("{.reg .u32 t;\n"
        " add.u32 t, %1, %2;\n"
        " add.u32 %0, t, %3;}"
        : "=r"(sum)
        : "r"(v.newest), "r"(v.middle), "r"(v.oldest));
    return {sum, v.newest, v.middle};
  }
  static __device__ uint32_t Fold(Value v) { return v.newest ^ v.middle ^ v.oldest; }
};

struct Shuffle : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) { return __shfl_xor_sync(0xffffffffu, x, 1); }
};

// Throughputs at the issue rate need long loops: with 128 FFMAs a turn, its control and
// the jump back made it 123.7 per clock on an H200 (132.5 issue slots a turn), with 512
// 126.0, with 1024 126.9.
constexpr int kLatencyUnroll = 32;
constexpr int kLoopCounter = 1;  // an IADD3 of its own on sm_80 and sm_89

struct Operation {
  std::string name;
  std::string what;  // plural, for the sentence
  std::string unit;  // of a result
  std::string sass;  // opcode
  harness::Resource resource;
  double results_per_step;  // of one thread
  std::vector<harness::Published> throughput = {};
  std::vector<harness::Published> latency = {};
};

template <typename Op, int kChains, int kUnroll>
void AddOperation(const Operation& op) {
  harness::Add(harness::CycleCase{
      .about = {.name = "fma_shfl/" + op.name + "/latency",
                .measures = "cycles from one link of a chain of " + op.what + " to the next",
                .unit = "cycles",
                .published = op.latency,
                .evidence = {{.sass = op.sass,
                              .at_least = kLatencyUnroll,
                              .at_most = kLatencyUnroll + kLoopCounter}}},
      .measure = harness::Measure::kLatency,
      .kernel = harness::ChainKernel<Op, 1, kLatencyUnroll>,
      .units_per_iteration = kLatencyUnroll});
  harness::Add(
      harness::CycleCase{.about = {.name = "fma_shfl/" + op.name + "/throughput",
                                   .measures = op.what + " per clock and SM",
                                   .unit = op.unit + "/clk/SM",
                                   .limit = {.resource = op.resource},
                                   .published = op.throughput,
                                   .evidence = {{.sass = op.sass,
                                                 .at_least = kChains * kUnroll,
                                                 .at_most = kChains * kUnroll + kLoopCounter}}},
                         .measure = harness::Measure::kThroughput,
                         .kernel = harness::ChainKernel<Op, kChains, kUnroll>,
                         .units_per_iteration = op.results_per_step * kChains * kUnroll});
}

}  // namespace

WARPLEDGER_MICRO(fma_shfl) {
  AddOperation<Ffma, 4, 256>({.name = "ffma",
                              .what = "FP32 fused multiply-adds",
                              .unit = "fma",
                              .sass = "^FFMA",
                              .resource = harness::Resource::kFp32Fma,
                              .results_per_step = 1,
                              .throughput = {{.cc = 80, .value = 64, .source = kGuide},
                                             {.cc = 89, .value = 128, .source = kGuide},
                                             {.cc = 90, .value = 128, .source = kGuide}}});
  AddOperation<Hfma2, 4, 128>({.name = "hfma2",
                               .what = "FP16 fused multiply-adds, two per instruction",
                               .unit = "fma",
                               .sass = "^HFMA2$",
                               .resource = harness::Resource::kFp16Fma,
                               .results_per_step = 2,
                               .throughput = {{.cc = 80, .value = 256, .source = kGuide},
                                              {.cc = 89, .value = 128, .source = kGuide},
                                              {.cc = 90, .value = 256, .source = kGuide}}});
  AddOperation<Iadd3, 4, 16>({.name = "iadd3",
                              .what = "three-operand 32-bit integer adds",
                              .unit = "add",
                              .sass = "^IADD3$",
                              .resource = harness::Resource::kInt32Add,
                              .results_per_step = 1,
                              .throughput = {{.cc = 0, .value = 64, .source = kGuide}}});
  AddOperation<Shuffle, 4, 16>({.name = "shfl_bfly",
                                .what = "butterfly shuffles of one lane",
                                .unit = "lane",
                                .sass = R"(^SHFL\.BFLY)",
                                .resource = harness::Resource::kShuffle,
                                .results_per_step = 1,
                                .throughput = {{.cc = 0, .value = 32, .source = kGuide}}});
  AddOperation<Hfma2Registers, 8, 64>({.name = "hfma2_registers",
                                       .what = "FP16 fused multiply-adds on registers",
                                       .unit = "fma",
                                       .sass = R"(^HFMA2(\.MMA)?$)",
                                       .resource = harness::Resource::kFp16Fma,
                                       .results_per_step = 2,
                                       .throughput = {{.cc = 80, .value = 256, .source = kGuide},
                                                      {.cc = 89, .value = 128, .source = kGuide},
                                                      {.cc = 90, .value = 256, .source = kGuide}}});
}

}  // namespace warpledger
