// SPDX-License-Identifier: Apache-2.0
// Question: what does a wgmma cost, from issue to wait and back to back, for each
// width N, with A from shared memory (SS) or registers (RS), in fp16 and e4m3?
//
// Mechanism: four warps hand the SM's four tensor cores one m64nNk16 (k32 for
// e4m3) that runs on its own, B and for SS also A coming from shared memory.
// Wgmmas on the same accumulators follow each other without a gap; a wait exposes
// the whole depth of the pipeline.
//
// Formula: back to back, a wgmma takes max(tensor, operands) cycles, where
//   tensor = N/2 (fp16: 64 * N * 16 * 2 FLOP / 4096; e4m3 the same: twice the
//   FLOP at twice the rate) and operands = bytes of B (and of A for SS) / 128.
// A is 64 x 32 bytes = 2048, B N x 32 bytes: SS needs (2048 + 32 N)/128 cycles,
// which is more than N/2 below N = 64; RS needs N/4, never more.
//
// Expected: 100% of 4096 FLOP/clk/SM from N = 64 up, for SS and RS; SS with N = 8
// 4/18 of it, RS all. Issue to wait on an H200 NVL, SS: 75 cycles for N = 64, 107
// for N = 128 (FlashGPU-Sim's notes).
//
// Falsified by: N = 256 SS below 95% of the peak, or SS at N = 8 above 25% (A would
// then not be read anew for each wgmma).
//
// This file alone is compiled for sm_90a, which wgmma is part of.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"

namespace warpledger {
namespace {

constexpr int kWarpgroup = 128;
constexpr int kM = 64;
constexpr int kRowBytes = 128;  // of one swizzled row: 64 halves, 128 e4m3
constexpr int kStepBytes = 32;  // K of one wgmma: 16 halves, 32 e4m3
constexpr int kSteps = kRowBytes / kStepBytes;
constexpr int kATileBytes = kM * kRowBytes;
constexpr int kSwizzleAtom = 1024;  // 8 rows

enum class Type { kFp16, kE4m3 };
enum class SourceOfA { kShared, kRegisters };

// A shared-memory matrix descriptor (PTX ISA, "Asynchronous warpgroup-level matrix
// shared memory layout"), K-major with 128-byte swizzle: address and strides in
// units of 16 bytes; 8 rows to the next atom; the leading offset isn't used.
__device__ uint64_t MakeDescriptor(const void* tile) {
  const auto address = static_cast<uint64_t>(__cvta_generic_to_shared(tile));
  constexpr uint64_t kSwizzle128B = uint64_t{1} << 62;
  constexpr uint64_t kStride = uint64_t{kSwizzleAtom >> 4} << 32;
  constexpr uint64_t kLeading = uint64_t{1} << 16;
  return kSwizzle128B | kStride | kLeading | ((address & 0x3ffff) >> 4);
}

// PTX ISA, "Asynchronous warpgroup level matrix instructions": wgmma.fence orders
// registers and accumulators before the first wgmma of a batch.
__device__ void Fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void Commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ void Wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// The operand lists of wgmma, which names each accumulator register: "%0, …".
#define WL_TEN(tens)                                                                      \
  "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens \
  "6, %" #tens "7, %" #tens "8, %" #tens "9, "
#define WL_SIXTY WL_TEN() WL_TEN(1) WL_TEN(2) WL_TEN(3) WL_TEN(4) WL_TEN(5)
#define WL_LIST_8 "{%0, %1, %2, %3}, "
#define WL_LIST_16 "{%0, %1, %2, %3, %4, %5, %6, %7}, "
#define WL_LIST_32 "{" WL_TEN() "%10, %11, %12, %13, %14, %15}, "
#define WL_LIST_64 "{" WL_TEN() WL_TEN(1) WL_TEN(2) "%30, %31}, "
#define WL_LIST_96 \
  "{" WL_TEN() WL_TEN(1) WL_TEN(2) WL_TEN(3) "%40, %41, %42, %43, %44, %45, %46, %47}, "
#define WL_LIST_128 "{" WL_SIXTY "%60, %61, %62, %63}, "
#define WL_LIST_192 "{" WL_SIXTY WL_TEN(6) WL_TEN(7) WL_TEN(8) "%90, %91, %92, %93, %94, %95}, "
#define WL_LIST_256                                               \
  "{" WL_SIXTY WL_TEN(6) WL_TEN(7) WL_TEN(8) WL_TEN(9) WL_TEN(10) \
      WL_TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127}, "
#define WL_D4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define WL_D8(i) WL_D4(i), WL_D4((i) + 4)
#define WL_D16(i) WL_D8(i), WL_D8((i) + 8)
#define WL_D32(i) WL_D16(i), WL_D16((i) + 16)
#define WL_REGS_8 WL_D4(0)
#define WL_REGS_16 WL_D8(0)
#define WL_REGS_32 WL_D16(0)
#define WL_REGS_64 WL_D32(0)
#define WL_REGS_96 WL_D32(0), WL_D16(32)
#define WL_REGS_128 WL_D32(0), WL_D32(32)
#define WL_REGS_192 WL_REGS_128, WL_D32(64)
#define WL_REGS_256 WL_REGS_128, WL_D32(64), WL_D32(96)

// After the N/2 accumulators come, for SS, the two descriptors; for RS four
// registers of A and B's descriptor. Then: scale-d 1 (accumulate), signs of A and
// B, and for fp16 the transpositions, of which RS has only B's.
#define WL_SS(n, types, tail, p0, p1)                                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #n types WL_LIST_##n "%" #p0 ", %" #p1    \
                                                                        ", 1, 1, 1" tail ";" \
               : WL_REGS_##n                                                                 \
               : "l"(a_descriptor), "l"(b_descriptor))
#define WL_RS(n, types, tail, p0, p1, p2, p3, p4)                                     \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #n types WL_LIST_##n               \
               "{%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, %" #p4 ", 1, 1, 1" tail ";" \
               : WL_REGS_##n                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor))
#define WL_FP16 "k16.f32.f16.f16 "
#define WL_E4M3 "k32.f32.e4m3.e4m3 "

// d += A B, for a warpgroup. d: (64, N) fp32, N/2 registers of each thread.
template <Type kType, SourceOfA kA, int kN>
__device__ void Mma(float (&d)[kN / 2], uint64_t a_descriptor, const uint32_t (&a)[4],
                    uint64_t b_descriptor) {
  static_assert(kN == 8 || kN == 16 || kN == 32 || kN == 64 || kN == 96 || kN == 128 || kN == 192 ||
                    kN == 256,
                "a width with an operand list");
// Descriptors come after the N/2 accumulators.
#define WL_WIDTH(n, p0, p1, p2, p3, p4)                               \
  if constexpr (kN == n) {                                            \
    if constexpr (kType == Type::kFp16 && kA == SourceOfA::kShared) { \
      WL_SS(n, WL_FP16, ", 0, 0", p0, p1);                            \
    } else if constexpr (kType == Type::kFp16) {                      \
      WL_RS(n, WL_FP16, ", 0", p0, p1, p2, p3, p4);                   \
    } else if constexpr (kA == SourceOfA::kShared) {                  \
      WL_SS(n, WL_E4M3, "", p0, p1);                                  \
    } else {                                                          \
      WL_RS(n, WL_E4M3, "", p0, p1, p2, p3, p4);                      \
    }                                                                 \
  }
  WL_WIDTH(8, 4, 5, 6, 7, 8)
  WL_WIDTH(16, 8, 9, 10, 11, 12)
  WL_WIDTH(32, 16, 17, 18, 19, 20)
  WL_WIDTH(64, 32, 33, 34, 35, 36)
  WL_WIDTH(96, 48, 49, 50, 51, 52)
  WL_WIDTH(128, 64, 65, 66, 67, 68)
  WL_WIDTH(192, 96, 97, 98, 99, 100)
  WL_WIDTH(256, 128, 129, 130, 131, 132)
#undef WL_WIDTH
}

// Tiles of A and B that all warpgroups share, so that descriptors are the same for
// all threads.
constexpr int SmemBytes(int n) { return kATileBytes + n * kRowBytes; }

// kCommits batches of kBatch wgmmas per iteration. With kPending 1 the next batch is issued while
// one is under way, as in a GEMM's main loop; with 0 each batch is waited for.
template <Type kType, SourceOfA kA, int kN, int kCommits, int kBatch, int kPending>
__global__ void __launch_bounds__(2 * kWarpgroup) WgmmaKernel(harness::CycleArgs args) {
  // Shared memory starts at a multiple of 1024 where no other lies before it, which
  // the compiler takes from here; descriptors are then constants of the code.
  extern __shared__ __align__(kSwizzleAtom) unsigned char smem[];
  constexpr int kWords = (kATileBytes + kN * kRowBytes) / 4;
  const auto random = [&args](uint32_t index) {
    // +-[1/16, 1/8) in either format: sums stay finite, and no operand is zero.
    const uint32_t bits = harness::RandomBits(args.seed, index);
    return kType == Type::kFp16 ? (bits & 0x83ff83ffu) | 0x2c002c00u
                                : (bits & 0x87878787u) | 0x18181818u;
  };
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) {
    reinterpret_cast<uint32_t*>(smem)[i] = random(blockIdx.x * kWords + i);
  }
  // wgmma reads shared memory through the async proxy.
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  const uint64_t a_tile = MakeDescriptor(smem);
  const uint64_t b_tile = MakeDescriptor(smem + kATileBytes);
  uint32_t a[kSteps][4];
#pragma unroll
  for (int i = 0; i < kSteps * 4; ++i) a[i / 4][i % 4] = random(~(threadIdx.x * kSteps * 4 + i));
  float d[kN / 2] = {};

  const int64_t start = harness::StartCycles();
  int i = 0;
  // A loop that might not run at all joins two sets of accumulators behind it, and
  // ptxas then serialises the wgmmas (C7514); iterations is at least 1.
#pragma unroll 1
  do {
#pragma unroll
    for (int commit = 0; commit < kCommits; ++commit) {
      Fence();
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int step = (commit + k) % kSteps;
        constexpr uint64_t kStep = kStepBytes >> 4;
        Mma<kType, kA, kN>(d, a_tile + step * kStep, a[step], b_tile + step * kStep);
      }
      Commit();
      Wait<kPending>();
    }
  } while (++i < args.iterations);
  Wait<0>();
  harness::StopCycles(args, start);
  uint32_t folded = 0;
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) folded = folded * 31 + __float_as_uint(d[i]);
  harness::KeepAlive(args, folded);
}

constexpr char kSim[] = "FlashGPU-Sim notes, H200 NVL, SS";

std::string OpcodeOf(Type type, int n) {
  return type == Type::kFp16 ? absl::StrCat(R"(^HGMMA\.64x)", n, R"(x16\.F32)")
                             : absl::StrCat(R"(^QGMMA\.64x)", n, R"(x32\.F32)");
}

template <Type kType, SourceOfA kA, int kN>
void AddWidth(const std::vector<harness::Published>& latency = {}) {
  constexpr bool kFp16 = kType == Type::kFp16;
  constexpr bool kShared = kA == SourceOfA::kShared;
  const std::string subject =
      "m64n" + std::to_string(kN) + (kFp16 ? "k16_f16" : "k32_e4m3") + (kShared ? "_ss" : "_rs");
  const double operand_cycles = ((kShared ? kM * kStepBytes : 0) + kN * kStepBytes) / 128.0;
  const double tensor_cycles = kN / 2.0;
  constexpr int kLinks = 16;
  harness::Add(harness::CycleCase{
      .about = {.name = absl::StrCat("wgmma/", subject, "/latency"),
                .measures = "cycles from a wgmma to the next when each is waited for",
                .unit = "cycles",
                .min_cc = 90,
                .max_cc = 90,
                .published = latency,
                .evidence = {{.sass = OpcodeOf(kType, kN), .at_least = kLinks, .at_most = kLinks}},
                .parameters = {{"n", kN}, {"tensor_cycles", tensor_cycles}}},
      .measure = harness::Measure::kLatency,
      .kernel = WgmmaKernel<kType, kA, kN, kLinks, 1, 0>,
      .units_per_iteration = kLinks,
      .threads = kWarpgroup,
      .dynamic_smem_bytes = SmemBytes(kN)});
  // One warpgroup has the tensor cores for itself where a kernel has one consumer; that
  // two do no better is shown at the widths that kernels use.
  constexpr bool kTwoToo = kN == 8 || kN == 64 || kN == 128 || kN == 256;
  for (int warpgroups = 1; warpgroups <= (kTwoToo ? 2 : 1); ++warpgroups) {
    constexpr int kBatch = 16;
    constexpr double kFlopOfThread =
        2.0 * kM * kN * (kFp16 ? kStepBytes / 2 : kStepBytes) / kWarpgroup;
    harness::Add(harness::CycleCase{
        .about =
            {.name = absl::StrCat("wgmma/", subject, "/throughput/warpgroups_", warpgroups),
             .measures = "FLOP per clock and SM of wgmma back to back, batches of 16",
             .unit = "FLOP/clk/SM",
             .min_cc = 90,
             .max_cc = 90,
             .limit = {.resource = kFp16 ? harness::Resource::kTensorFp16Flop
                                         : harness::Resource::kTensorFp8Flop},
             .evidence = {{.sass = OpcodeOf(kType, kN), .at_least = kBatch, .at_most = kBatch}},
             .parameters = {{"n", kN},
                            {"warpgroups", static_cast<double>(warpgroups)},
                            {"tensor_cycles", tensor_cycles},
                            {"operand_cycles", operand_cycles}}},
        .measure = harness::Measure::kThroughput,
        .kernel = WgmmaKernel<kType, kA, kN, 1, kBatch, 1>,
        .units_per_iteration = kFlopOfThread * kBatch,
        .threads = warpgroups * kWarpgroup,
        .dynamic_smem_bytes = SmemBytes(kN)});
  }
}

// All widths but those with a published latency.
template <Type kType, SourceOfA kA>
void AddWidths() {
  AddWidth<kType, kA, 8>();
  AddWidth<kType, kA, 16>();
  AddWidth<kType, kA, 32>();
  AddWidth<kType, kA, 96>();
  AddWidth<kType, kA, 192>();
  AddWidth<kType, kA, 256>();
}

}  // namespace

WARPLEDGER_MICRO(wgmma) {
  AddWidths<Type::kFp16, SourceOfA::kShared>();
  AddWidth<Type::kFp16, SourceOfA::kShared, 64>({{.cc = 90, .value = 75, .source = kSim}});
  AddWidth<Type::kFp16, SourceOfA::kShared, 128>({{.cc = 90, .value = 107, .source = kSim}});
  AddWidths<Type::kFp16, SourceOfA::kRegisters>();
  AddWidth<Type::kFp16, SourceOfA::kRegisters, 64>();
  AddWidth<Type::kFp16, SourceOfA::kRegisters, 128>();
  AddWidths<Type::kE4m3, SourceOfA::kShared>();
  AddWidth<Type::kE4m3, SourceOfA::kShared, 64>();
  AddWidth<Type::kE4m3, SourceOfA::kShared, 128>();
  AddWidths<Type::kE4m3, SourceOfA::kRegisters>();
  AddWidth<Type::kE4m3, SourceOfA::kRegisters, 64>();
  AddWidth<Type::kE4m3, SourceOfA::kRegisters, 128>();
}

}  // namespace warpledger
