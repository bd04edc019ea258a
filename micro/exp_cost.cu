// SPDX-License-Identifier: Apache-2.0
// What does one exponential cost, and what does its speed cost in accuracy?
//
// Question: softmax needs one exp per score. Which way of computing it gives the
//   most per clock and SM, with which latency and which error, and does moving a
//   share of them to the FMA pipe beat the special-function unit alone?
// Mechanism: MUFU.EX2 gives 16 results per clock and SM. Everything else is issue
//   slots of the FMA and ALU pipes: expf() adds range reduction and scaling to the
//   MUFU, a polynomial leaves the MUFU out, and a mix loads both.
// Formula: results/clk/SM <= min(16 / share on the MUFU, 128 / instructions per
//   result); cycles per link of a chain x -> exp(-x) is the latency (the sign
//   keeps the chain in [0, 1] and costs nothing, being an operand modifier, but for
//   bf16x2, whose link holds an HFMA2 and a PRMT too).
// Expected: 16/clk/SM for every f32 variant on the MUFU (CUDA C++ Programming
//   Guide; Shah et al., FlashAttention-3, arXiv 2407.08608: 3.9 T/s on an H100,
//   which is 16 at 1830 MHz). Polynomial of degree 3: 9 instructions, 14.2/clk/SM.
//   75/25 mix: 21.3, 50/50: 23.3, by the formula.
// Falsifier: a MUFU variant below 15/clk/SM; a mix that does not beat the MUFU
//   alone; ex2.approx.f16x2 above 16 results, although SASS splits it into two
//   MUFU.EX2.F16; an error above the bound of the case.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/cuda_status.h"
#include "micro/exp_polynomial.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger::micro {
namespace {

using harness::CaseInfo;
using harness::ChainKernel;
using harness::CycleCase;
using harness::Evidence;
using harness::FloatOp;
using harness::Limit;
using harness::Measure;
using harness::MicroDevice;
using harness::Published;
using harness::ValueCase;

constexpr float kLog2E = 1.44269504f;

// --- The ways to compute it --------------------------------------------------
//
// Eval is the function itself; Step is a link of a chain that stays in [0, 1].
// kBase2 says whether Eval is 2^x or e^x. Errors are taken over [kAbsFrom, 0], and
// relative ones and those in units of the last place over [kRelFrom, 0], where the result is
// a normal number.

template <typename Derived>
struct NaturalExp : FloatOp {
  static constexpr bool kBase2 = false;
  static constexpr float kAbsFrom = -88.0f;
  static constexpr float kRelFrom = kLowestArgument;
  static constexpr int kMantissaBits = 23;
  static __device__ float Step(float x) { return Derived::Eval(-x); }
};

template <typename Derived>
struct BaseTwoExp : FloatOp {
  static constexpr bool kBase2 = true;
  static constexpr float kAbsFrom = -127.0f;
  static constexpr float kRelFrom = -126.0f;
  static constexpr int kMantissaBits = 23;
  static __device__ float Step(float x) { return Derived::Eval(-x); }
};

struct Expf : NaturalExp<Expf> {
  static __device__ float Eval(float x) { return expf(x); }
};
struct FastExpf : NaturalExp<FastExpf> {
  static __device__ float Eval(float x) { return __expf(x); }
};
struct Exp2f : BaseTwoExp<Exp2f> {
  static __device__ float Eval(float x) { return exp2f(x); }
};
// ex2.approx.ftz.f32 (PTX ISA, "Floating Point Instructions: ex2").
struct Ex2F32 : BaseTwoExp<Ex2F32> {
  static __device__ float Eval(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
};
// What a kernel does that folds nothing: scale to base 2, then ex2.
struct ScaledEx2F32 : NaturalExp<ScaledEx2F32> {
  static __device__ float Eval(float x) { return Ex2F32::Eval(x * kLog2E); }
};
template <int kDegree>
struct Polynomial : NaturalExp<Polynomial<kDegree>> {
  static __device__ float Eval(float x) { return ExpPolynomial<kDegree>(x); }
};

// Four values per step, kOnMufu of them by ScaledEx2F32 and the rest by the
// polynomial of degree 3.
struct FourFloats {
  float v[4];
};
template <int kOnMufu>
struct Mix {
  using Value = FourFloats;
  static __device__ Value Make(uint32_t bits) {
    Value value;
    for (int i = 0; i < 4; ++i) value.v[i] = FloatOp::Make(harness::RandomBits(bits, i));
    return value;
  }
  static __device__ Value Step(Value value) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      value.v[i] = i < kOnMufu ? ScaledEx2F32::Step(value.v[i]) : Polynomial<3>::Step(value.v[i]);
    }
    return value;
  }
  static __device__ uint32_t Fold(const Value& value) {
    uint32_t folded = 0;
    for (int i = 0; i < 4; ++i) folded = folded * 31 + FloatOp::Fold(value.v[i]);
    return folded;
  }
};

// Half precision in 32-bit words: two values, or one in the low half.
struct HalfWords : harness::WordOp {
  static constexpr bool kBase2 = true;
  static constexpr float kAbsFrom = -25.0f;
  static constexpr float kRelFrom = -14.0f;  // 2^-14 is the smallest normal half
  static constexpr int kMantissaBits = 10;
  // Two halves in [1, 2).
  static __device__ uint32_t Make(uint32_t bits) { return (bits & 0x03ff03ffu) | 0x3c003c00u; }
  static __device__ float ToFloat(uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<uint16_t>(bits)));
  }
};
struct Ex2F16 : HalfWords {
  using Value = uint16_t;
  static __device__ Value Make(uint32_t bits) { return HalfWords::Make(bits) & 0xffffu; }
  static __device__ Value Eval(Value x) {
    Value y;
    asm("ex2.approx.f16 %0, %1;" : "=h"(y) : "h"(x));
    return y;
  }
  static __device__ Value Step(Value x) {
    Value negated;
    asm("neg.f16 %0, %1;" : "=h"(negated) : "h"(x));
    return Eval(negated);
  }
  static __device__ uint32_t Fold(Value value) { return value; }
};
struct Ex2F16x2 : HalfWords {
  static __device__ Value Eval(Value x) {
    Value y;
    asm("ex2.approx.f16x2 %0, %1;" : "=r"(y) : "r"(x));
    return y;
  }
  static __device__ Value Step(Value x) {
    Value negated;
    asm("neg.f16x2 %0, %1;" : "=r"(negated) : "r"(x));
    return Eval(negated);
  }
};
struct Ex2Bf16x2 : harness::WordOp {
  static constexpr bool kBase2 = true;
  static constexpr float kAbsFrom = -127.0f;
  static constexpr float kRelFrom = -126.0f;
  static constexpr int kMantissaBits = 7;
  // Two bf16 in [1, 2).
  static __device__ Value Make(uint32_t bits) { return (bits & 0x007f007fu) | 0x3f803f80u; }
  static __device__ float ToFloat(uint32_t bits) { return __uint_as_float(bits << 16); }
  static __device__ Value Eval(Value x) {
    Value y = 0;
#if __CUDA_ARCH__ >= 900
    asm("ex2.approx.ftz.bf16x2 %0, %1;" : "=r"(y) : "r"(x));
#endif
    return y;
  }
  static __device__ Value Step(Value x) {
    Value negated = x;
#if __CUDA_ARCH__ >= 900
    asm("neg.bf16x2 %0, %1;" : "=r"(negated) : "r"(x));
#endif
    return Eval(negated);
  }
};

// --- Errors ------------------------------------------------------------------

struct Errors {
  unsigned long long max_abs_bits;  // of a double; non-negative doubles order as their bits
  unsigned long long max_rel_bits;
  unsigned long long max_ulp_bits;
};

// Evaluates Op at all `count` arguments whose bit patterns follow `first`: every
// float, or every 16-bit number, from -0 down. Grid-stride; the reference is the
// double-precision function.
template <typename Op>
__global__ void ErrorKernel(uint32_t first, uint32_t count, Errors* errors) {
  double max_abs = 0;
  double max_rel = 0;
  double max_ulp = 0;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const uint32_t bits = first + static_cast<uint32_t>(i);
    float x;
    float y;
    if constexpr (std::is_same_v<typename Op::Value, float>) {
      x = __uint_as_float(bits);
      y = Op::Eval(x);
    } else {
      x = Op::ToFloat(bits);
      y = Op::ToFloat(Op::Eval(static_cast<typename Op::Value>(bits)));
    }
    const double reference =
        Op::kBase2 ? exp2(static_cast<double>(x)) : exp(static_cast<double>(x));
    const double error = fabs(static_cast<double>(y) - reference);
    max_abs = fmax(max_abs, error);
    if (x >= Op::kRelFrom) {
      max_rel = fmax(max_rel, error / reference);
      // A unit in the last place of the format that holds the result.
      max_ulp = fmax(max_ulp, ldexp(error, Op::kMantissaBits - ilogb(reference)));
    }
  }
  atomicMax(&errors->max_abs_bits, static_cast<unsigned long long>(__double_as_longlong(max_abs)));
  atomicMax(&errors->max_rel_bits, static_cast<unsigned long long>(__double_as_longlong(max_rel)));
  atomicMax(&errors->max_ulp_bits, static_cast<unsigned long long>(__double_as_longlong(max_ulp)));
}

enum class ErrorKind { kAbsolute, kRelative, kUlp };

// The largest error of Op over all arguments with bit patterns `first` to `last`.
template <typename Op>
absl::StatusOr<double> LargestError(ErrorKind kind, const MicroDevice& device, uint32_t first,
                                    uint32_t last) {
  constexpr int kThreads = 256;
  constexpr int kCtasPerSm = 8;
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Allocate(sizeof(Errors));
  if (!buffer.ok()) return buffer.status();
  RETURN_IF_ERROR(buffer->Fill(0));
  ErrorKernel<Op><<<device.facts.sm_count * kCtasPerSm, kThreads>>>(
      first, last - first + 1, static_cast<Errors*>(buffer->data()));
  RETURN_IF_CUDA_ERROR(cudaGetLastError(), "launching the error kernel of exp_cost");
  Errors errors;
  RETURN_IF_ERROR(
      buffer->CopyToHost(absl::MakeSpan(reinterpret_cast<std::byte*>(&errors), sizeof(errors))));
  return std::bit_cast<double>(kind == ErrorKind::kAbsolute   ? errors.max_abs_bits
                               : kind == ErrorKind::kRelative ? errors.max_rel_bits
                                                              : errors.max_ulp_bits);
}

// --- Cases -------------------------------------------------------------------

constexpr char kGuide[] =
    "CUDA C++ Programming Guide, throughput of native arithmetic instructions";
constexpr double kUlp = 0x1p-23;  // of a float, relative, at worst
constexpr double kMufuPerClock = 16;
constexpr double kIssuePerClock = 128;

// The formula of the header comment.
double MixLimit(double mufu_share, double instructions_per_result) {
  const double issue = kIssuePerClock / instructions_per_result;
  return mufu_share > 0 ? std::min(issue, kMufuPerClock / mufu_share) : issue;
}
Limit Formula(double mufu_share, double instructions_per_result) {
  return {.own = MixLimit(mufu_share, instructions_per_result),
          .own_source = "min(16 / share on the MUFU, 128 / instructions per result)"};
}

// What the cases of one variant share.
struct Variant {
  const char* name;
  const char* unit = "exp/clk/SM";
  Limit throughput_limit = {};
  std::vector<Published> throughput = {};  // what others say
  std::vector<Published> latency = {};
  std::vector<Evidence> evidence = {};  // per step: its counts are multiplied
  int min_cc = 80;
  double max_relative_error = 0;  // bound, 0: none promised
  const char* error_source = "";
};

std::vector<Evidence> Times(std::vector<Evidence> evidence, int steps) {
  for (Evidence& row : evidence) {
    row.at_least *= steps;
    if (row.at_most > 0) row.at_most *= steps;
  }
  return evidence;
}

constexpr int kChains = 4;
constexpr int kUnroll = 8;
constexpr int kLatencyUnroll = 16;

// `results` per step of Op: 2 for packed pairs, 4 for a mix.
template <typename Op>
void AddSpeed(const Variant& variant, int results) {
  const std::string prefix = std::string("exp_cost/") + variant.name;
  harness::Add(CycleCase{.about = {.name = prefix + "/throughput",
                                   .measures = "results per clock and SM",
                                   .unit = variant.unit,
                                   .min_cc = variant.min_cc,
                                   .limit = variant.throughput_limit,
                                   .published = variant.throughput,
                                   .evidence = Times(variant.evidence, kChains * kUnroll)},
                         .measure = Measure::kThroughput,
                         .kernel = ChainKernel<Op, kChains, kUnroll>,
                         .units_per_iteration = 1.0 * kChains * kUnroll * results});
  harness::Add(CycleCase{.about = {.name = prefix + "/latency",
                                   .measures = "cycles per link of a dependent chain",
                                   .unit = "cycles",
                                   .min_cc = variant.min_cc,
                                   .published = variant.latency,
                                   .evidence = Times(variant.evidence, kLatencyUnroll)},
                         .measure = Measure::kLatency,
                         .kernel = ChainKernel<Op, 1, kLatencyUnroll>,
                         .units_per_iteration = kLatencyUnroll});
}

// Bit patterns of all arguments in the format of Op.
template <typename Op>
struct Arguments {
  static uint32_t Bits(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    if constexpr (std::is_same_v<typename Op::Value, float>) return bits;
    if constexpr (std::is_same_v<Op, Ex2Bf16x2>) return bits >> 16;
    return __half_as_ushort(__float2half_rn(x));
  }
};

template <typename Op>
void AddErrors(const Variant& variant) {
  const uint32_t first = Arguments<Op>::Bits(-0.0f);
  const uint32_t last = Arguments<Op>::Bits(Op::kAbsFrom);
  const auto* kernel = reinterpret_cast<const void*>(&ErrorKernel<Op>);
  const std::string prefix = std::string("exp_cost/") + variant.name;
  const std::string range = Op::kBase2 ? "2^x" : "e^x";
  const auto add = [&](ErrorKind kind, const char* name, float from, Limit limit) {
    harness::Add(ValueCase{
        .about = {.name = prefix + "/" + name,
                  .measures = "largest error of " + range + " over every representable x in [" +
                              std::to_string(static_cast<int>(from)) + ", 0]",
                  .unit = kind == ErrorKind::kUlp ? "ulp" : "",
                  .min_cc = variant.min_cc,
                  .limit = std::move(limit)},
        .compute =
            [=](const MicroDevice& device) { return LargestError<Op>(kind, device, first, last); },
        .kernels = {kernel}});
  };
  add(ErrorKind::kAbsolute, "max_absolute_error", Op::kAbsFrom, {});
  add(ErrorKind::kRelative, "max_relative_error", Op::kRelFrom,
      {.own = variant.max_relative_error, .own_source = variant.error_source});
  add(ErrorKind::kUlp, "max_ulp", Op::kRelFrom, {});
}

template <typename Op>
void AddVariant(const Variant& variant, int results) {
  AddSpeed<Op>(variant, results);
  AddErrors<Op>(variant);
}

const Limit kMufu = {.resource = harness::Resource::kMufu};
const std::vector<Evidence> kOneMufu = {{.sass = R"(^MUFU\.EX2)", .at_most = 1}};
const std::vector<Published> kSixteen = {{.value = kMufuPerClock, .source = kGuide}};

// Per result: fmax, the shift, n, two of the reduction, the degree's many of
// Horner's scheme, and one to add the exponent.
constexpr double PolynomialInstructions(int degree) { return 6.0 + degree; }

}  // namespace

// Adds a polynomial whose instructions are all on the FMA and ALU pipes.
template <int kDegree>
void AddPolynomial(const char* name, double bound, const char* source) {
  // The shift, two of the reduction, and the degree's many.
  const std::vector<Evidence> evidence = {{.sass = R"(^MUFU)", .at_least = 0, .at_most = 0},
                                          {.sass = R"(^FFMA)", .at_least = 3 + kDegree}};
  AddVariant<Polynomial<kDegree>>({.name = name,
                                   .throughput_limit = Formula(0, PolynomialInstructions(kDegree)),
                                   .evidence = evidence,
                                   .max_relative_error = bound,
                                   .error_source = source},
                                  1);
}

WARPLEDGER_MICRO(exp_cost) {
  AddVariant<Expf>({.name = "expf",
                    .throughput_limit = kMufu,
                    .evidence = kOneMufu,
                    .max_relative_error = 1 * kUlp,
                    .error_source = "CUDA C++ Programming Guide, mathematical functions: 1 ulp"},
                   1);
  AddVariant<FastExpf>(
      {.name = "fast_expf",
       .throughput_limit = kMufu,
       .throughput = kSixteen,
       .evidence = kOneMufu,
       // 2 + floor(|1.173 x|) ulp, at the end of the range.
       .max_relative_error = (2 + std::floor(1.173f * -kLowestArgument)) * kUlp,
       .error_source = "CUDA C++ Programming Guide: 2 + floor(abs(1.173 x)) ulp, at x = -87"},
      1);
  AddVariant<Exp2f>({.name = "exp2f",
                     .throughput_limit = kMufu,
                     .throughput = kSixteen,
                     .evidence = kOneMufu,
                     .max_relative_error = 2 * kUlp,
                     .error_source = "CUDA C++ Programming Guide, mathematical functions: 2 ulp"},
                    1);
  AddVariant<Ex2F32>(
      {.name = "ex2_approx_ftz_f32",
       .throughput_limit = kMufu,
       .throughput = kSixteen,
       .evidence = {{.sass = R"(^MUFU\.EX2)", .at_most = 1}, {.ptx = R"(ex2\.approx\.ftz\.f32)"}}},
      1);
  AddVariant<Ex2F16>(
      {.name = "ex2_approx_f16",
       .throughput_limit = kMufu,
       .evidence = {{.sass = R"(^MUFU\.EX2\.F16)", .at_most = 1}, {.ptx = R"(ex2\.approx\.f16\s)"}},
       .max_relative_error = std::exp2(-9.9),
       .error_source = "PTX ISA, ex2: 2^-9.9"},
      1);
  AddVariant<Ex2F16x2>({.name = "ex2_approx_f16x2",
                        .throughput_limit = kMufu,
                        // Split in two: nothing is gained but the packing.
                        .evidence = {{.sass = R"(^MUFU\.EX2\.F16)", .at_least = 2, .at_most = 2},
                                     {.ptx = R"(ex2\.approx\.f16x2)"}},
                        .max_relative_error = std::exp2(-9.9),
                        .error_source = "PTX ISA, ex2: 2^-9.9"},
                       2);
  AddVariant<Ex2Bf16x2>({.name = "ex2_approx_ftz_bf16x2",
                         .throughput_limit = kMufu,
                         .evidence = {{.sass = R"(^MUFU\.EX2\.BF16)", .at_least = 2, .at_most = 2},
                                      {.ptx = R"(ex2\.approx\.ftz\.bf16x2)"}},
                         .min_cc = 90,
                         .max_relative_error = std::exp2(-7),
                         .error_source = "PTX ISA, ex2: 2^-7"},
                        2);
  AddPolynomial<2>("polynomial2_f32", 1.73e-3, "minimax error of degree 2");
  AddPolynomial<3>("polynomial3_f32", 7.6e-5, "minimax error of degree 3");
  AddPolynomial<4>("polynomial4_f32", 2.8e-6, "minimax error of degree 4, and float rounding");
  AddPolynomial<5>("polynomial5_f32", 4e-7, "minimax error of degree 5, and float rounding");
  // The curve from the MUFU alone to the FMA pipe alone (polynomial3_f32).
  AddVariant<ScaledEx2F32>({.name = "mix_mufu100",
                            .throughput_limit = Formula(1, 2),
                            .throughput = kSixteen,
                            .evidence = kOneMufu},
                           1);
  AddSpeed<Mix<3>>({.name = "mix_mufu75",
                    .throughput_limit = Formula(0.75, 0.75 * 2 + 0.25 * PolynomialInstructions(3)),
                    .evidence = {{.sass = R"(^MUFU\.EX2)", .at_least = 3, .at_most = 3}}},
                   4);
  AddSpeed<Mix<2>>({.name = "mix_mufu50",
                    .throughput_limit = Formula(0.5, 0.5 * 2 + 0.5 * PolynomialInstructions(3)),
                    .evidence = {{.sass = R"(^MUFU\.EX2)", .at_least = 2, .at_most = 2}}},
                   4);
}

}  // namespace warpledger::micro
