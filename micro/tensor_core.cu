// SPDX-License-Identifier: Apache-2.0
// Question: how long does a dependent mma.sync take, and what part of the tensor
// cores' rate does a kernel reach that uses nothing newer?
//
// Mechanism: a warp hands its scheduler's tensor core one m16n8k16 (4096 FLOP) from
// registers. The core takes a new one long before the last is done, so chains and
// warps must cover the latency. On Hopper the full rate needs wgmma (wgmma.cu).
//
// Formula: FLOP per MMA = 2 * 16 * 8 * K; FLOP per clock and SM from the slope;
// MMAs in flight per core = rate / 4 / FLOP per MMA * latency.
//
// Expected on Hopper: 24 cycles per link for fp16 (Luo et al., arXiv 2402.13499,
// as quoted by others: a second-hand figure); 494 TFLOP/s on an H800, about 63% of
// 4096 FLOP/clk/SM. fp16 accumulation is no faster there. On sm_80 and sm_89
// mma.sync reaches the full rate, 2048 and 1024 (NVIDIA, A100 and Ada whitepapers).
//
// Falsified by: mma.sync above 75% of the peak on sm_90, or an fp16 accumulator
// that changes the rate there by more than 2%.

#include <cstdint>
#include <string>
#include <vector>

#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger {
namespace {

// mma.sync (PTX ISA, "Warp-level Matrix Instructions: mma"). A and B come through
// shared memory as random numbers in +-[1/16, 1/8): sums stay finite and normal
// in fp16 over the longest loop (K * 2^-6 for each MMA at most, but signs cancel).
struct Fp16Random {
  static __device__ uint32_t Word(uint32_t bits) { return (bits & 0x83ff83ffu) | 0x2c002c00u; }
};
struct Bf16Random {
  static __device__ uint32_t Word(uint32_t bits) { return (bits & 0x807f807fu) | 0x3d803d80u; }
};
struct E4m3Random {  // exponent field 3: +-[1/16, 1/8)
  static __device__ uint32_t Word(uint32_t bits) { return (bits & 0x87878787u) | 0x18181818u; }
};

struct Fp16Fp32 : Fp16Random {
  static constexpr int kAccumulators = 4;  // 32-bit registers of C and D
  static constexpr int kK = 16;
  static __device__ void Mma(uint32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

struct Fp16Fp16 : Fp16Random {
  static constexpr int kAccumulators = 2;
  static constexpr int kK = 16;
  static __device__ void Mma(uint32_t (&d)[2], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
        "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
        : "+r"(d[0]), "+r"(d[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

struct Bf16Fp32 : Bf16Random {
  static constexpr int kAccumulators = 4;
  static constexpr int kK = 16;
  static __device__ void Mma(uint32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

// e4m3 came to mma.sync with sm_89.
struct E4m3Fp32 : E4m3Random {
  static constexpr int kAccumulators = 4;
  static constexpr int kK = 32;
  static __device__ void Mma(uint32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    __trap();
#endif
  }
};

// Each chain has an accumulator of its own. No two MMAs of an iteration have the
// same A and B: where A * B is computed apart from the sum (e4m3 on sm_90), the
// compiler would compute a product that comes twice only once.
template <typename Type, int kChains, int kUnroll>
__global__ void MmaKernel(harness::CycleArgs args) {
  constexpr int kAFragments = 4;
  constexpr int kBFragments = 8;
  static_assert(kChains * kUnroll <= kAFragments * kBFragments, "a product would repeat");
  constexpr int kWords = 32 * (kAFragments * 4 + kBFragments * 2);
  __shared__ uint32_t operands[kWords];  // (fragment register, lane)
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) {
    operands[i] = Type::Word(harness::RandomBits(args.seed, blockIdx.x * kWords + i));
  }
  __syncthreads();
  const int lane = threadIdx.x % 32;
  uint32_t a[kAFragments][4];
  uint32_t b[kBFragments][2];
#pragma unroll
  for (int f = 0; f < kAFragments; ++f) {
#pragma unroll
    for (int r = 0; r < 4; ++r) a[f][r] = operands[(f * 4 + r) * 32 + lane];
  }
#pragma unroll
  for (int f = 0; f < kBFragments; ++f) {
#pragma unroll
    for (int r = 0; r < 2; ++r) b[f][r] = operands[((kAFragments * 4) + f * 2 + r) * 32 + lane];
  }
  uint32_t d[kChains][Type::kAccumulators] = {};
  const int64_t start = harness::StartCycles();
#pragma unroll 1
  for (int i = 0; i < args.iterations; ++i) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int c = 0; c < kChains; ++c) {
        const int mma = u * kChains + c;
        Type::Mma(d[c], a[mma % kAFragments], b[mma / kAFragments]);
      }
    }
  }
  harness::StopCycles(args, start);
  uint32_t folded = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) {
#pragma unroll
    for (int r = 0; r < Type::kAccumulators; ++r) folded = folded * 31 + d[c][r];
  }
  harness::KeepAlive(args, folded);
}

constexpr char kLuo[] = "Luo et al., arXiv 2402.13499, H800, second-hand";

// The SASS that one mma.sync becomes.
struct Sass {
  std::string opcode;
  int per_mma = 1;
  int min_cc = 80;
  int max_cc = 0;
};

struct MmaInfo {
  std::string name;
  std::vector<Sass> sass = {};
  harness::Resource resource = harness::Resource::kTensorFp16Flop;
  int min_cc = 80;
  std::vector<harness::Published> latency = {};
  std::vector<harness::Published> throughput = {};
};

// Exactly `mmas` of them between the two reads of the clock.
std::vector<harness::Evidence> EvidenceOf(const MmaInfo& info, int mmas) {
  std::vector<harness::Evidence> evidence;
  for (const Sass& sass : info.sass) {
    evidence.push_back({.sass = sass.opcode,
                        .at_least = mmas * sass.per_mma,
                        .at_most = mmas * sass.per_mma,
                        .min_cc = sass.min_cc,
                        .max_cc = sass.max_cc});
  }
  return evidence;
}

template <typename Type, int kChains, int kUnroll>
void AddThroughput(const MmaInfo& info, int warps, const std::string& suffix) {
  constexpr double kFlopOfThread = 2.0 * 16 * 8 * Type::kK / 32;
  harness::Add(harness::CycleCase{
      .about = {.name = "tensor_core/" + info.name + "/throughput" + suffix,
                .measures = "FLOP per clock and SM of mma.sync, " + std::to_string(warps) +
                            " warps of " + std::to_string(kChains) + " chains",
                .unit = "FLOP/clk/SM",
                .min_cc = info.min_cc,
                .limit = {.resource = info.resource},
                .published = info.throughput,
                .evidence = EvidenceOf(info, kChains * kUnroll),
                .parameters = {{"warps", static_cast<double>(warps)},
                               {"chains", static_cast<double>(kChains)}}},
      .measure = harness::Measure::kThroughput,
      .kernel = MmaKernel<Type, kChains, kUnroll>,
      .units_per_iteration = kFlopOfThread * kChains * kUnroll,
      .threads = warps * 32});
}

// kChains: as many as fit the registers of a thread.
template <typename Type, int kChains = 8>
void AddMma(const MmaInfo& info, int warps = 16) {
  constexpr int kLinks = 16;
  harness::Add(harness::CycleCase{
      .about = {.name = "tensor_core/" + info.name + "/latency",
                .measures = "cycles from one mma.sync to the next on the same accumulators",
                .unit = "cycles",
                .min_cc = info.min_cc,
                .published = info.latency,
                .evidence = EvidenceOf(info, kLinks)},
      .measure = harness::Measure::kLatency,
      .kernel = MmaKernel<Type, 1, kLinks>,
      .units_per_iteration = kLinks});
  AddThroughput<Type, kChains, 4>(info, warps, "");
}

}  // namespace

WARPLEDGER_MICRO(tensor_core) {
  const std::vector<Sass> hmma = {{.opcode = R"(^HMMA\.16816\.F32$)"}};
  // What was published is a part of the peak; the clock of that run we don't know.
  AddMma<Fp16Fp32>({.name = "mma_m16n8k16_f16_f32",
                    .sass = hmma,
                    .latency = {{.cc = 90, .value = 24, .source = kLuo}},
                    .throughput = {{.cc = 90, .value = 0.63 * 4096, .source = kLuo}}});
  AddMma<Fp16Fp16>({.name = "mma_m16n8k16_f16_f16", .sass = {{.opcode = R"(^HMMA\.16816\.F16$)"}}});
  AddMma<Bf16Fp32>(
      {.name = "mma_m16n8k16_bf16_f32", .sass = {{.opcode = R"(^HMMA\.16816\.F32\.BF16$)"}}});
  // sm_90 has no QMMA: nvcc converts e4m3 to fp16, multiplies by two HMMA from zero
  // and adds with FADD, so the "latency" there is that of the FADD or of the issue.
  // The converted operands take so many registers that 16 warps wouldn't fit an SM.
  AddMma<E4m3Fp32, 4>(
      {.name = "mma_m16n8k32_e4m3_f32",
       .sass = {{.opcode = R"(^QMMA\.16832\.F32\.E4M3)", .min_cc = 89, .max_cc = 89},
                {.opcode = R"(^HMMA\.16816\.F32)", .per_mma = 2, .min_cc = 90, .max_cc = 90}},
       .resource = harness::Resource::kTensorFp8Flop,
       .min_cc = 89},
      /*warps=*/8);
  // How many warps, and MMAs of each in flight, the tensor cores need.
  const MmaInfo sweep = {.name = "mma_m16n8k16_f16_f32", .sass = hmma};
  AddThroughput<Fp16Fp32, 1, 16>(sweep, /*warps=*/4, "/warps_4_chains_1");
  AddThroughput<Fp16Fp32, 2, 16>(sweep, /*warps=*/4, "/warps_4_chains_2");
  AddThroughput<Fp16Fp32, 4, 8>(sweep, /*warps=*/4, "/warps_4_chains_4");
  AddThroughput<Fp16Fp32, 8, 4>(sweep, /*warps=*/4, "/warps_4_chains_8");
  AddThroughput<Fp16Fp32, 2, 16>(sweep, /*warps=*/8, "/warps_8_chains_2");
  AddThroughput<Fp16Fp32, 4, 8>(sweep, /*warps=*/8, "/warps_8_chains_4");
}

}  // namespace warpledger
