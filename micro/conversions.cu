// SPDX-License-Identifier: Apache-2.0
// Question: what do the conversions of mixed-precision attention cost: FP32 to FP16
// and BF16 for P, e4m3 and e5m2 for FP8, and the uint8 dequantisation of the L4
// notes' "simulated FP8", by arithmetic and through a 256-entry table?
//
// Mechanism: a conversion of two values at once is F2FP on the ALU (16 lanes for
// each scheduler). A lone FP32 to FP16 or BF16 is F2F, on the 4-lane unit that
// MUFU lives on. FP16 to FP32 is an HADD2.F32; BF16 to FP32 is a shift and not
// measured. uint8 needs no conversion at all: a byte put by PRMT under the exponent
// of 2^23 (FP32) or 2^10 (FP16) is 2^23 + b or 1024 + b exactly, and an add removes
// the offset (Kim et al., arXiv 2211.10017, section 4.1). A table of 256 floats
// costs one shared load per byte, and 32 random bytes hit one bank several times.
//
// Formula: values per clock and SM = lanes per clock * values per instruction.
// Dequantised bytes per clock and SM: by arithmetic, 128 issued lanes * 4 bytes /
// instructions per word; by table, 32 / E[wavefronts of 32 random bytes], an
// expectation that the case u8_table/wavefronts computes.
//
// Expected: e4m3 to FP16 and FP16 to FP32 at 64, FP32 to BF16 at 16 per clock and
// SM on Hopper (DeepSeek, FlashMLA, notes on its FP8 decoding kernel), so packed
// FP32 to FP16 at up to 128 values; a table slower than PRMT by several times.
//
// Falsified by: a table that dequantises as many bytes per clock as PRMT does, or
// F2FP at the rate of F2F.

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <random>
#include <string>

#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger {
namespace {

constexpr int kChains = 4;
constexpr int kUnroll = 16;
constexpr int kLatencyUnroll = 32;
constexpr char kFlashMla[] = "DeepSeek, FlashMLA, notes on its FP8 decoding kernel";

// Conversions chain through bits: a result, read as the next source, is an odd
// number but a true dependence that costs no instruction of its own.

struct F32ToF16 : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) {
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(__uint_as_float(x)));
    return half;
  }
};

struct F32ToBf16 : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) {
    uint16_t half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(__uint_as_float(x)));
    return half;
  }
};

struct F32ToF16x2 : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) {
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %1;" : "=r"(pair) : "f"(__uint_as_float(x)));
    return pair;
  }
};

struct F32ToBf16x2 : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %1;" : "=r"(pair) : "f"(__uint_as_float(x)));
    return pair;
  }
};

struct F16ToF32 : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) {
    float single;
    asm("cvt.f32.f16 %0, %1;" : "=f"(single) : "h"(static_cast<uint16_t>(x)));
    return __float_as_uint(single);
  }
};

// PTX has cvt to and from e4m3x2 and e5m2x2 from sm_89 on; the cases say so too.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
#define WARPLEDGER_FP8_CVT(text, ...) asm(text : __VA_ARGS__)
#else
#define WARPLEDGER_FP8_CVT(text, ...) __trap()
#endif

struct E4m3x2ToF16x2 : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) {
    uint32_t pair = x;
    WARPLEDGER_FP8_CVT("cvt.rn.f16x2.e4m3x2 %0, %1;", "=r"(pair) : "h"(static_cast<uint16_t>(x)));
    return pair;
  }
};

struct E5m2x2ToF16x2 : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) {
    uint32_t pair = x;
    WARPLEDGER_FP8_CVT("cvt.rn.f16x2.e5m2x2 %0, %1;", "=r"(pair) : "h"(static_cast<uint16_t>(x)));
    return pair;
  }
};

// Four values into one register, as a store or an MMA wants them: two F2FP, and
// what the compiler needs to join their halves.
struct ToFp8x4 {
  struct Value {
    uint32_t a, b;
  };
  static __device__ Value Make(uint32_t bits) { return {bits, bits * 5}; }
  static __device__ uint32_t Fold(Value v) { return v.a ^ v.b; }
};

struct F32ToE4m3x4 : ToFp8x4 {
  static __device__ Value Step(Value v) {
    uint32_t quad = v.b;
    WARPLEDGER_FP8_CVT(
        "{.reg .b16 lo, hi;\n"
        " cvt.rn.satfinite.e4m3x2.f32 lo, %1, %2;\n"
        " cvt.rn.satfinite.e4m3x2.f32 hi, %2, %1;\n"
        " mov.b32 %0, {lo, hi};}",
        "=r"(quad)
        : "f"(__uint_as_float(v.a)), "f"(__uint_as_float(v.b)));
    return {quad, v.a};
  }
};

struct F32ToE5m2x4 : ToFp8x4 {
  static __device__ Value Step(Value v) {
    uint32_t quad = v.b;
    WARPLEDGER_FP8_CVT(
        "{.reg .b16 lo, hi;\n"
        " cvt.rn.satfinite.e5m2x2.f32 lo, %1, %2;\n"
        " cvt.rn.satfinite.e5m2x2.f32 hi, %2, %1;\n"
        " mov.b32 %0, {lo, hi};}",
        "=r"(quad)
        : "f"(__uint_as_float(v.a)), "f"(__uint_as_float(v.b)));
    return {quad, v.a};
  }
};

// From FP16 both values come in one register, and the 16 bits of the result need a
// mask before they are a register again: one LOP3 on the same ALU, counted in.
struct F16x2ToE4m3x2 : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) {
    uint16_t pair = 0;
    WARPLEDGER_FP8_CVT("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;", "=h"(pair) : "r"(x));
    return pair;
  }
};

struct F16x2ToE5m2x2 : harness::WordOp {
  static __device__ uint32_t Step(uint32_t x) {
    uint16_t pair = 0;
    WARPLEDGER_FP8_CVT("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;", "=h"(pair) : "r"(x));
    return pair;
  }
};

#undef WARPLEDGER_FP8_CVT

// Dequantisation: x = (byte - 128) * scale, summed so that every x is needed. The
// multiplication by the scale and the sum are one FMA. Each step takes the four
// bytes of a word that moves on by a stride of the thread's own, so that the bytes
// of a warp's lanes are unrelated.
constexpr float kZeroPoint = 128.0f;
constexpr float kScale = 0.03125f;
constexpr int kBytesPerWord = 4;

struct Dequantise {
  struct Value {
    uint32_t word, stride;
    float sum;
  };
  static __device__ Value Make(uint32_t bits) {
    return {bits, harness::RandomBits(bits, 1) | 1u, 0.0f};
  }
  static __device__ uint32_t Fold(Value v) { return v.word ^ __float_as_uint(v.sum); }
};

struct ByI2f : Dequantise {
  static __device__ Value Step(Value v) {
    v.word += v.stride;
#pragma unroll
    for (int i = 0; i < kBytesPerWord; ++i) {
      const float byte = static_cast<float>((v.word >> (8 * i)) & 0xffu);
      v.sum = fmaf(byte - kZeroPoint, kScale, v.sum);
    }
    return v;
  }
};

struct ByMagicF32 : Dequantise {
  static __device__ Value Step(Value v) {
    constexpr uint32_t kTwoTo23 = 0x4b000000u;
    constexpr float kOffset = 8388608.0f + kZeroPoint;
    v.word += v.stride;
#pragma unroll
    for (uint32_t i = 0; i < kBytesPerWord; ++i) {
      // Byte i of the word below three bytes of 2^23.
      const float magic = __uint_as_float(__byte_perm(v.word, kTwoTo23, 0x7440u | i));
      v.sum = fmaf(magic - kOffset, kScale, v.sum);
    }
    return v;
  }
};

struct ByMagicF16x2 {
  struct Value {
    uint32_t word, stride, sum;  // sum: two halves
  };
  static __device__ Value Make(uint32_t bits) {
    return {bits, harness::RandomBits(bits, 1) | 1u, 0u};
  }
  static __device__ uint32_t Fold(Value v) { return v.word ^ v.sum; }
  static __device__ Value Step(Value v) {
    v.word += v.stride;
#pragma unroll
    for (uint32_t pair = 0; pair < 2; ++pair) {
      // 0x64: the upper byte of 1024 as a half. Bytes 2*pair and 2*pair + 1.
      const uint32_t magic = __byte_perm(v.word, 0x64646464u, pair == 0 ? 0x4140u : 0x4342u);
      asm("{.reg .b32 x;\n"
          " add.rn.f16x2 x, %1, %2;\n"
          " fma.rn.f16x2 %0, x, %3, %0;}"
          : "+r"(v.sum)
          : "r"(magic), "r"(0xe480e480u) /* -1152 = -(1024 + 128) */, "r"(0x28002800u) /* 1/32 */);
    }
    return v;
  }
};

constexpr int kTableEntries = 256;
constexpr int kTableChains = 2;
constexpr int kTableUnroll = 8;

__global__ void TableKernel(harness::CycleArgs args) {
  __shared__ float table[kTableEntries];
  for (int i = threadIdx.x; i < kTableEntries; i += blockDim.x) {
    table[i] = (static_cast<float>(i) - kZeroPoint) * kScale;
  }
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  Dequantise::Value values[kTableChains];
#pragma unroll
  for (uint32_t c = 0; c < kTableChains; ++c) {
    values[c] = Dequantise::Make(harness::RandomBits(args.seed, thread * kTableChains + c));
  }
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int step = 0; step < kTableUnroll * kTableChains; ++step) {
      Dequantise::Value& v = values[step % kTableChains];
      v.word += v.stride;
#pragma unroll
      for (int byte = 0; byte < kBytesPerWord; ++byte) {
        v.sum += table[(v.word >> (8 * byte)) & 0xffu];
      }
    }
  }
  harness::StopCycles(args, start);
  harness::KeepAlive(args, Dequantise::Fold(values[0]) * 31 + Dequantise::Fold(values[1]));
}

// Expected wavefronts of a warp that loads table[random byte]: the largest number
// of different words that one of the 32 banks must give; equal words are one.
double ExpectedTableWavefronts() {
  constexpr int kTrials = 20000;
  constexpr int kBanks = 32;
  std::mt19937 random(20);
  int64_t wavefronts = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::bitset<kTableEntries> seen;
    int words_of_bank[kBanks] = {};
    int most = 0;
    for (int lane = 0; lane < 32; ++lane) {
      const uint32_t byte = random() % kTableEntries;
      if (seen.test(byte)) continue;
      seen.set(byte);
      most = std::max(most, ++words_of_bank[byte % kBanks]);
    }
    wavefronts += most;
  }
  return static_cast<double>(wavefronts) / kTrials;
}

struct Conversion {
  std::string name;
  std::string what;
  std::string sass;
  double values_per_step;
  int instructions_per_step = 1;  // that `sass` matches
  int min_cc = 80;
  std::vector<harness::Published> throughput = {};
};

template <typename Op>
void AddConversion(const Conversion& c) {
  const int chain = kLatencyUnroll * c.instructions_per_step;
  harness::Add(harness::CycleCase{
      .about = {.name = "conversions/" + c.name + "/latency",
                .measures = "cycles from " + c.what + " to the next that needs it",
                .unit = "cycles",
                .min_cc = c.min_cc,
                .evidence = {{.sass = c.sass, .at_least = chain, .min_cc = c.min_cc}}},
      .measure = harness::Measure::kLatency,
      .kernel = harness::ChainKernel<Op, 1, kLatencyUnroll>,
      .units_per_iteration = kLatencyUnroll});
  const int steps = kChains * kUnroll;
  harness::Add(
      harness::CycleCase{.about = {.name = "conversions/" + c.name + "/throughput",
                                   .measures = "values per clock and SM by " + c.what,
                                   .unit = "value/clk/SM",
                                   .min_cc = c.min_cc,
                                   .published = c.throughput,
                                   .evidence = {{.sass = c.sass,
                                                 .at_least = steps * c.instructions_per_step,
                                                 .min_cc = c.min_cc}}},
                         .measure = harness::Measure::kThroughput,
                         .kernel = harness::ChainKernel<Op, kChains, kUnroll>,
                         .units_per_iteration = c.values_per_step * steps});
}

constexpr int kDequantChains = 2;
constexpr int kDequantUnroll = 8;

// `instructions`: of one word of four bytes, all of which must be issued.
template <typename Op>
void AddDequantisation(const std::string& name, const std::string& how, const std::string& sass,
                       int instructions, int sass_per_word) {
  const int words = kDequantChains * kDequantUnroll;
  harness::Add(harness::CycleCase{
      .about = {.name = "conversions/u8_" + name + "/throughput",
                .measures = "uint8 dequantised and summed per clock and SM, " + how,
                .unit = "value/clk/SM",
                .limit = {.resource = harness::Resource::kIssue,
                          .scale = static_cast<double>(kBytesPerWord) / instructions},
                .evidence = {{.sass = sass, .at_least = words * sass_per_word}},
                .parameters = {{"instructions_per_word", static_cast<double>(instructions)}}},
      .measure = harness::Measure::kThroughput,
      .kernel = harness::ChainKernel<Op, kDequantChains, kDequantUnroll>,
      .units_per_iteration = static_cast<double>(kBytesPerWord) * words});
}

}  // namespace

WARPLEDGER_MICRO(conversions) {
  AddConversion<F32ToF16>({.name = "f32_to_f16",
                           .what = "a scalar FP32 to FP16 conversion",
                           .sass = R"(^F2FP?\.)",
                           .values_per_step = 1});
  AddConversion<F32ToF16x2>({.name = "f32_to_f16x2",
                             .what = "a packed FP32 to FP16 conversion",
                             .sass = R"(^F2FP\.F16\.F32|^F2FP\.PACK_AB)",
                             .values_per_step = 2});
  AddConversion<F32ToBf16>({.name = "f32_to_bf16",
                            .what = "a scalar FP32 to BF16 conversion",
                            .sass = R"(^F2FP?\.)",
                            .values_per_step = 1,
                            .throughput = {{.cc = 90, .value = 16, .source = kFlashMla}}});
  AddConversion<F32ToBf16x2>({.name = "f32_to_bf16x2",
                              .what = "a packed FP32 to BF16 conversion",
                              .sass = R"(^F2FP\.BF16)",
                              .values_per_step = 2});
  AddConversion<F16ToF32>({.name = "f16_to_f32",
                           .what = "an FP16 to FP32 conversion",
                           .sass = R"(^HADD2\.F32)",
                           .values_per_step = 1,
                           .throughput = {{.cc = 90, .value = 64, .source = kFlashMla}}});
  AddConversion<E4m3x2ToF16x2>({.name = "e4m3x2_to_f16x2",
                                .what = "a packed e4m3 to FP16 conversion",
                                .sass = R"(^F2FP\.F16\.E4M3\.UNPACK)",
                                .values_per_step = 2,
                                .min_cc = 89,
                                .throughput = {{.cc = 90, .value = 64, .source = kFlashMla}}});
  AddConversion<E5m2x2ToF16x2>({.name = "e5m2x2_to_f16x2",
                                .what = "a packed e5m2 to FP16 conversion",
                                .sass = R"(^F2FP\.F16\.E5M2\.UNPACK)",
                                .values_per_step = 2,
                                .min_cc = 89});
  AddConversion<F32ToE4m3x4>({.name = "f32_to_e4m3x4",
                              .what = "packing four FP32 as e4m3",
                              .sass = R"(^F2FP\.SATFINITE\.E4M3\.F32)",
                              .values_per_step = 4,
                              .instructions_per_step = 2,
                              .min_cc = 89});
  AddConversion<F32ToE5m2x4>({.name = "f32_to_e5m2x4",
                              .what = "packing four FP32 as e5m2",
                              .sass = R"(^F2FP\.SATFINITE\.E5M2\.F32)",
                              .values_per_step = 4,
                              .instructions_per_step = 2,
                              .min_cc = 89});
  AddConversion<F16x2ToE4m3x2>({.name = "f16x2_to_e4m3x2",
                                .what = "a packed FP16 to e4m3 conversion and its mask",
                                .sass = R"(^F2FP\.SATFINITE\.E4M3\.F16)",
                                .values_per_step = 2,
                                .min_cc = 89});
  AddConversion<F16x2ToE5m2x2>({.name = "f16x2_to_e5m2x2",
                                .what = "a packed FP16 to e5m2 conversion and its mask",
                                .sass = R"(^F2FP\.SATFINITE\.E5M2\.F16)",
                                .values_per_step = 2,
                                .min_cc = 89});

  // Instructions per word: one to move on, then for each value (or pair) the
  // extraction, the zero point and the FMA. I2F takes its byte from the word where
  // it can and needs a shift and a mask where not; counted as if it always could.
  AddDequantisation<ByI2f>("i2f", "by integer-to-float conversion", R"(^I2FP?\.)",
                           /*instructions=*/1 + 4 * 3, /*sass_per_word=*/4);
  AddDequantisation<ByMagicF32>("magic_f32", "by PRMT under 2^23, in FP32", "^PRMT",
                                /*instructions=*/1 + 4 * 3, /*sass_per_word=*/4);
  AddDequantisation<ByMagicF16x2>("magic_f16x2", "by PRMT under 1024, in FP16x2", "^PRMT",
                                  /*instructions=*/1 + 2 * 3, /*sass_per_word=*/2);

  const double wavefronts = ExpectedTableWavefronts();
  const int loads = kTableChains * kTableUnroll * kBytesPerWord;
  harness::Add(harness::CycleCase{
      .about = {.name = "conversions/u8_table/throughput",
                .measures = "uint8 dequantised and summed per clock and SM, by a shared table",
                .unit = "value/clk/SM",
                .limit = {.own = 32 / wavefronts,
                          .own_source = "32 lanes / expected wavefronts of 32 random bytes"},
                .evidence = {{.sass = "^LDS", .at_least = loads}},
                .parameters = {{"expected_wavefronts", wavefronts}}},
      .measure = harness::Measure::kThroughput,
      .kernel = TableKernel,
      .units_per_iteration = static_cast<double>(loads)});
  harness::Add(harness::ValueCase{
      .about = {.name = "conversions/u8_table/wavefronts",
                .measures = "expected wavefronts of a warp's load from a table of 256 floats by "
                            "random bytes",
                .unit = "wavefronts"},
      .compute = [wavefronts](const harness::MicroDevice&) { return wavefronts; },
      .kernels = {}});
}

}  // namespace warpledger
