// SPDX-License-Identifier: Apache-2.0
// wgmma: matrix products of a warpgroup, 16- or 8-bit inputs, fp32 accumulators (PTX ISA,
// "Asynchronous Warpgroup Level Matrix Instructions"). sm_90a.
//
// A warpgroup is four consecutive warps whose first index is a multiple of four.
// Accumulator layout of m64nNk16 for thread t: row 16 * (t / 32 % 4) + t % 32 / 4
// (+ 8 for elements 2 and 3 of each group of four), columns 8 * group + 2 * (t % 4)
// and the next. Between Fence and Wait no thread may touch accumulators or A
// registers of products in flight.

#ifndef WARPLEDGER_KERNELS_COMMON_WGMMA_CUH_
#define WARPLEDGER_KERNELS_COMMON_WGMMA_CUH_

#include <cstdint>

#include "kernels/common/wgmma_descriptor.cuh"

namespace warpledger::ptx {

// Before the first product after its registers were written. What was written to shared memory
// needs a fence of its own, FenceProxyAsync (PTX ISA, "wgmma.fence").
__device__ inline void WgmmaFence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ inline void WgmmaCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
// Waits until at most `kPending` committed groups are unfinished.
template <int kPending>
__device__ inline void WgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}

// Keeps the compiler from moving uses of these registers across this point: it
// doesn't know that a product in flight still writes them.
template <int kCount>
__device__ inline void PinRegisters(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

// What is written behind it stays there. ptxas starts a wait as early as it can, before
// arithmetic that stands ahead of it in PTX; but no instruction passes a branch, and this one
// needs `sum`. The warp votes, for behind a branch on which its threads might part ptxas keeps
// fewer values in uniform registers. All threads of a warp call it together.
//   sum: what the arithmetic leads to, never below 0, or the warp traps; an exponential by
//     the polynomial is that of an argument of at most 127 (Exp2Polynomial)
__device__ inline void OrderBehind(float sum) {
  asm volatile(
      "{\n"
      ".reg .pred mine, never;\n"
      "setp.lt.f32 mine, %0, 0f00000000;\n"
      "vote.sync.any.pred never, mine, 0xffffffff;\n"
      "@never trap;\n"
      "}\n" ::"f"(sum)
      : "memory");
}

// Moves registers between warpgroups (PTX ISA, "setmaxnreg"); needs a register
// cap at kernel entry.
template <int kRegisters>
__device__ inline void IncreaseRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void DecreaseRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

// One product of 16 along K, D (64, kN) += A (64, 16) B (16, kN).
//   SS: A and B in shared memory, both with K along the rows (B with N along them where
//       kTransposeB is 1); accumulate 0: D = A B
//   RS: A in registers, four pairs as the accumulator layout gives them; B with N
//       along the rows (transposed)
// E4M3 takes 32 along K, both operands with K along the rows; RS takes four bytes a register
// (kernels/sdpa/wgmma/load/fp8_layout.h).
enum class WgmmaInputs { kFp16, kBf16, kE4m3 };
template <int kN, WgmmaInputs kInputs = WgmmaInputs::kFp16>
struct Wgmma;

// Register lists in eights, for instructions that name up to 128 of them.
#define WARPLEDGER_R0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define WARPLEDGER_R1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define WARPLEDGER_R2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define WARPLEDGER_R3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define WARPLEDGER_R4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define WARPLEDGER_R5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define WARPLEDGER_R6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define WARPLEDGER_R7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define WARPLEDGER_O0 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define WARPLEDGER_O1                                                                      \
  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), \
      "+f"(d[15])
#define WARPLEDGER_O2                                                                        \
  "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), \
      "+f"(d[23])
#define WARPLEDGER_O3                                                                        \
  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), \
      "+f"(d[31])
#define WARPLEDGER_O4                                                                        \
  "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), \
      "+f"(d[39])
#define WARPLEDGER_O5                                                                        \
  "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), \
      "+f"(d[47])
#define WARPLEDGER_O6                                                                        \
  "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), \
      "+f"(d[55])
#define WARPLEDGER_O7                                                                        \
  "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), \
      "+f"(d[63])

#define WARPLEDGER_R8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define WARPLEDGER_R9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define WARPLEDGER_R10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define WARPLEDGER_R11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define WARPLEDGER_R12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define WARPLEDGER_R13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define WARPLEDGER_R14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define WARPLEDGER_R15 "%120, %121, %122, %123, %124, %125, %126, %127"
#define WARPLEDGER_O8                                                                        \
  "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), \
      "+f"(d[71])
#define WARPLEDGER_O9                                                                        \
  "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), \
      "+f"(d[79])
#define WARPLEDGER_O10                                                                       \
  "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), \
      "+f"(d[87])
#define WARPLEDGER_O11                                                                       \
  "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), \
      "+f"(d[95])
#define WARPLEDGER_O12                                                                          \
  "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), \
      "+f"(d[103])
#define WARPLEDGER_O13                                                                \
  "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), \
      "+f"(d[110]), "+f"(d[111])
#define WARPLEDGER_O14                                                                \
  "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), \
      "+f"(d[118]), "+f"(d[119])
#define WARPLEDGER_O15                                                                \
  "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), \
      "+f"(d[126]), "+f"(d[127])

#define WARPLEDGER_WGMMA_OF(inputs, types, n, registers, a0, a1, a2, a3, a4, a5, a6, ...)       \
  template <>                                                                                   \
  struct Wgmma<n, WgmmaInputs::inputs> {                                                        \
    template <int kTransposeB = 0>                                                              \
    __device__ static void SS(float (&d)[n / 2], uint64_t a, uint64_t b, int accumulate) {      \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " a2                                       \
                   ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32." types " {" registers \
                   "}, " a0 ", " a1 ", p, 1, 1, 0, " a3 ";\n}\n"                                \
                   : __VA_ARGS__                                                                \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(kTransposeB));                        \
    }                                                                                           \
    template <int kTransposeB = 1>                                                              \
    __device__ static void RS(float (&d)[n / 2], const uint32_t (&a)[4], uint64_t b,            \
                              int accumulate) {                                                 \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " a5                                       \
                   ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32." types " {" registers \
                   "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " a4 ", p, 1, 1, " a6 ";\n}\n"         \
                   : __VA_ARGS__                                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate),       \
                     "n"(kTransposeB));                                                         \
    }                                                                                           \
  };
#define WARPLEDGER_WGMMA_E4M3(n, registers, a0, a1, a2, a3, a4, a5, a6, ...)                    \
  template <>                                                                                   \
  struct Wgmma<n, WgmmaInputs::kE4m3> {                                                         \
    __device__ static void SS(float (&d)[n / 2], uint64_t a, uint64_t b, int accumulate) {      \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " a2                                       \
                   ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k32.f32.e4m3.e4m3 {" registers \
                   "}, " a0 ", " a1 ", p, 1, 1;\n}\n"                                           \
                   : __VA_ARGS__                                                                \
                   : "l"(a), "l"(b), "r"(accumulate));                                          \
    }                                                                                           \
    __device__ static void RS(float (&d)[n / 2], const uint32_t (&a)[4], uint64_t b,            \
                              int accumulate) {                                                 \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " a5                                       \
                   ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k32.f32.e4m3.e4m3 {" registers \
                   "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " a4 ", p, 1, 1;\n}\n"                 \
                   : __VA_ARGS__                                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));      \
    }                                                                                           \
  };
#define WARPLEDGER_WGMMA(...)                          \
  WARPLEDGER_WGMMA_OF(kFp16, "f16.f16", __VA_ARGS__)   \
  WARPLEDGER_WGMMA_OF(kBf16, "bf16.bf16", __VA_ARGS__) \
  WARPLEDGER_WGMMA_E4M3(__VA_ARGS__)

#define WARPLEDGER_OPERANDS WARPLEDGER_O0, WARPLEDGER_O1, WARPLEDGER_O2, WARPLEDGER_O3
WARPLEDGER_WGMMA(64, WARPLEDGER_R0 ", " WARPLEDGER_R1 ", " WARPLEDGER_R2 ", " WARPLEDGER_R3, "%32",
                 "%33", "%34", "%35", "%36", "%37", "%38", WARPLEDGER_OPERANDS)
#undef WARPLEDGER_OPERANDS
#define WARPLEDGER_OPERANDS \
  WARPLEDGER_O0, WARPLEDGER_O1, WARPLEDGER_O2, WARPLEDGER_O3, WARPLEDGER_O4
WARPLEDGER_WGMMA(80,
                 WARPLEDGER_R0 ", " WARPLEDGER_R1 ", " WARPLEDGER_R2 ", " WARPLEDGER_R3
                               ", " WARPLEDGER_R4,
                 "%40", "%41", "%42", "%43", "%44", "%45", "%46", WARPLEDGER_OPERANDS)
#undef WARPLEDGER_OPERANDS
#define WARPLEDGER_OPERANDS \
  WARPLEDGER_O0, WARPLEDGER_O1, WARPLEDGER_O2, WARPLEDGER_O3, WARPLEDGER_O4, WARPLEDGER_O5
WARPLEDGER_WGMMA(96,
                 WARPLEDGER_R0 ", " WARPLEDGER_R1 ", " WARPLEDGER_R2 ", " WARPLEDGER_R3
                               ", " WARPLEDGER_R4 ", " WARPLEDGER_R5,
                 "%48", "%49", "%50", "%51", "%52", "%53", "%54", WARPLEDGER_OPERANDS)
#undef WARPLEDGER_OPERANDS
#define WARPLEDGER_OPERANDS                                                                 \
  WARPLEDGER_O0, WARPLEDGER_O1, WARPLEDGER_O2, WARPLEDGER_O3, WARPLEDGER_O4, WARPLEDGER_O5, \
      WARPLEDGER_O6
WARPLEDGER_WGMMA(112,
                 WARPLEDGER_R0 ", " WARPLEDGER_R1 ", " WARPLEDGER_R2 ", " WARPLEDGER_R3
                               ", " WARPLEDGER_R4 ", " WARPLEDGER_R5 ", " WARPLEDGER_R6,
                 "%56", "%57", "%58", "%59", "%60", "%61", "%62", WARPLEDGER_OPERANDS)
#undef WARPLEDGER_OPERANDS
#define WARPLEDGER_OPERANDS                                                                 \
  WARPLEDGER_O0, WARPLEDGER_O1, WARPLEDGER_O2, WARPLEDGER_O3, WARPLEDGER_O4, WARPLEDGER_O5, \
      WARPLEDGER_O6, WARPLEDGER_O7
WARPLEDGER_WGMMA(128,
                 WARPLEDGER_R0 ", " WARPLEDGER_R1 ", " WARPLEDGER_R2 ", " WARPLEDGER_R3
                               ", " WARPLEDGER_R4 ", " WARPLEDGER_R5 ", " WARPLEDGER_R6
                               ", " WARPLEDGER_R7,
                 "%64", "%65", "%66", "%67", "%68", "%69", "%70", WARPLEDGER_OPERANDS)
#undef WARPLEDGER_OPERANDS
#define WARPLEDGER_OPERANDS                                                                 \
  WARPLEDGER_O0, WARPLEDGER_O1, WARPLEDGER_O2, WARPLEDGER_O3, WARPLEDGER_O4, WARPLEDGER_O5, \
      WARPLEDGER_O6, WARPLEDGER_O7, WARPLEDGER_O8, WARPLEDGER_O9, WARPLEDGER_O10
WARPLEDGER_WGMMA(176,
                 WARPLEDGER_R0 ", " WARPLEDGER_R1 ", " WARPLEDGER_R2 ", " WARPLEDGER_R3
                               ", " WARPLEDGER_R4 ", " WARPLEDGER_R5 ", " WARPLEDGER_R6
                               ", " WARPLEDGER_R7 ", " WARPLEDGER_R8 ", " WARPLEDGER_R9
                               ", " WARPLEDGER_R10,
                 "%88", "%89", "%90", "%91", "%92", "%93", "%94", WARPLEDGER_OPERANDS)
#undef WARPLEDGER_OPERANDS
#define WARPLEDGER_OPERANDS                                                                 \
  WARPLEDGER_O0, WARPLEDGER_O1, WARPLEDGER_O2, WARPLEDGER_O3, WARPLEDGER_O4, WARPLEDGER_O5, \
      WARPLEDGER_O6, WARPLEDGER_O7, WARPLEDGER_O8, WARPLEDGER_O9, WARPLEDGER_O10, WARPLEDGER_O11
WARPLEDGER_WGMMA(192,
                 WARPLEDGER_R0 ", " WARPLEDGER_R1 ", " WARPLEDGER_R2 ", " WARPLEDGER_R3
                               ", " WARPLEDGER_R4 ", " WARPLEDGER_R5 ", " WARPLEDGER_R6
                               ", " WARPLEDGER_R7 ", " WARPLEDGER_R8 ", " WARPLEDGER_R9
                               ", " WARPLEDGER_R10 ", " WARPLEDGER_R11,
                 "%96", "%97", "%98", "%99", "%100", "%101", "%102", WARPLEDGER_OPERANDS)
#undef WARPLEDGER_OPERANDS
#define WARPLEDGER_OPERANDS                                                                       \
  WARPLEDGER_O0, WARPLEDGER_O1, WARPLEDGER_O2, WARPLEDGER_O3, WARPLEDGER_O4, WARPLEDGER_O5,       \
      WARPLEDGER_O6, WARPLEDGER_O7, WARPLEDGER_O8, WARPLEDGER_O9, WARPLEDGER_O10, WARPLEDGER_O11, \
      WARPLEDGER_O12, WARPLEDGER_O13, WARPLEDGER_O14, WARPLEDGER_O15
WARPLEDGER_WGMMA(256,
                 WARPLEDGER_R0 ", " WARPLEDGER_R1 ", " WARPLEDGER_R2 ", " WARPLEDGER_R3
                               ", " WARPLEDGER_R4 ", " WARPLEDGER_R5 ", " WARPLEDGER_R6
                               ", " WARPLEDGER_R7 ", " WARPLEDGER_R8 ", " WARPLEDGER_R9
                               ", " WARPLEDGER_R10 ", " WARPLEDGER_R11 ", " WARPLEDGER_R12
                               ", " WARPLEDGER_R13 ", " WARPLEDGER_R14 ", " WARPLEDGER_R15,
                 "%128", "%129", "%130", "%131", "%132", "%133", "%134", WARPLEDGER_OPERANDS)
#undef WARPLEDGER_OPERANDS
#undef WARPLEDGER_WGMMA
#undef WARPLEDGER_WGMMA_OF
#undef WARPLEDGER_WGMMA_E4M3
#undef WARPLEDGER_R0
#undef WARPLEDGER_O0
#undef WARPLEDGER_R1
#undef WARPLEDGER_O1
#undef WARPLEDGER_R2
#undef WARPLEDGER_O2
#undef WARPLEDGER_R3
#undef WARPLEDGER_O3
#undef WARPLEDGER_R4
#undef WARPLEDGER_O4
#undef WARPLEDGER_R5
#undef WARPLEDGER_O5
#undef WARPLEDGER_R6
#undef WARPLEDGER_O6
#undef WARPLEDGER_R7
#undef WARPLEDGER_O7
#undef WARPLEDGER_R8
#undef WARPLEDGER_O8
#undef WARPLEDGER_R9
#undef WARPLEDGER_O9
#undef WARPLEDGER_R10
#undef WARPLEDGER_O10
#undef WARPLEDGER_R11
#undef WARPLEDGER_O11
#undef WARPLEDGER_R12
#undef WARPLEDGER_O12
#undef WARPLEDGER_R13
#undef WARPLEDGER_O13
#undef WARPLEDGER_R14
#undef WARPLEDGER_O14
#undef WARPLEDGER_R15
#undef WARPLEDGER_O15

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_WGMMA_CUH_
