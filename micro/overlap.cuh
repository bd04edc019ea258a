// SPDX-License-Identifier: Apache-2.0
// The overlap matrix: what of an instruction's time is hidden behind a co-runner
// that keeps the tensor cores busy? Shared by overlap_mma.cu and overlap_wgmma.cu,
// which bring the co-runner.
//
// Question: an attention kernel wants copies, shuffles, exponentials and conversions
//   for nothing, in the shadow of its matrix products. Which of them are?
//
// Mechanism: a warp scheduler issues one instruction per clock. What then holds up a
//   unit of its own (MUFU for ex2, the shuffle crossbar, shared memory for ldmatrix
//   and cp.async, the FMA and ALU pipes) runs beside the tensor cores, as long as
//   warps have both to issue: within one stream, interleaved (`within`: eight warps
//   each do both), or from different warps of the same schedulers (`across`: eight
//   warps multiply, eight others do the rest).
//
// Formula: a turn is a fixed number of products, and as many operations as take the
//   same time alone (BalancedOps). With the cycles of a turn of an SM
//     hidden = (op_alone + mma_alone - both) / min(op_alone, mma_alone)
//   1: the shorter is free; 0: as slow as one after the other. `both` of an
//   `across` ends when the later of the two roles has done its turns. Slowdowns:
//   within, both / op_alone and both / mma_alone; across, op_beside / op_alone and
//   mma_beside / mma_alone, where the other role works on all the time (it gets
//   eight times the turns, and only the warps in question are timed).
//
// Expected on Hopper, from the units alone: ex2, shuffles and conversions nearly
//   hidden (above 0.9) beside either co-runner, since they need a quarter to a
//   half of the issue slots and no unit of the products. FFMA needs every issue
//   slot, so mma.sync, 40 issue slots in 240 cycles, can't be hidden beyond 5/6;
//   beside wgmma, which needs four slots a turn, it may be. wgmma from shared memory
//   (SS, m64n128k16) reads 6 KiB in 64 cycles, three quarters of what shared memory
//   delivers, so that ldmatrix at its full rate can be hidden to a quarter only, and
//   what cp.async writes has to fit there too.
//
// Seen on an H200, where it differs: beside wgmma, ex2 loses a quarter of its rate and
// conversions half of theirs, while the products lose nothing. Issue slots aren't
// short; we take it to be the register files, from which accumulators of 64 x 128
// floats, read and written every 64 cycles, take a warp's register per clock each way.
// Shuffles go the way of
// ldmatrix and get the quarter of shared memory that wgmma's operands leave. cp.async is
// hidden wholly beside wgmma at 123 bytes per clock, so what it writes doesn't compete
// with what wgmma reads; beside mma.sync it is not. FFMAs that fill every issue slot
// let neither co-runner issue (mma_beside then takes as long as all of their turns, and
// is a lower bound).
//
// Falsified by: hidden above 1.02 (work is missing from the loop); ex2 or conversions
//   below 0.5 across warps; ldmatrix beside wgmma above 0.35.
//
// One CTA alone on the GPU: what is shared is an SM. cp.async reads L2 then at the
// rate of one SM.

#ifndef WARPLEDGER_MICRO_OVERLAP_CUH_
#define WARPLEDGER_MICRO_OVERLAP_CUH_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/ptx.cuh"
#include "micro/harness/cycle_runner.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/microbenchmark.h"
#include "micro/memory_inputs.cuh"
#include "micro/overlap.h"

namespace warpledger::overlap {

inline constexpr int kRoleWarps = 8;  // two of a role for each scheduler
inline constexpr int kRoleThreads = kRoleWarps * 32;
inline constexpr int kChains = 8;  // independent values of each thread

inline constexpr int64_t kCopiedBytes = 4 << 20;  // stays in L2

// What an operation gets to start from.
struct OpInput {
  uint32_t seed = 0;
  uint32_t smem = 0;  // kSmemBytes of the operation, random
  const unsigned char* global = nullptr;
  int role_thread = 0;  // 0 … kRoleThreads - 1
};

// --- Operations ----------------------------------------------------------------
//
// kCycles: of a scheduler per instruction of a warp, at the rate that the unit has
// for itself. Step(op, k) is the k-th of a turn, EndTurn comes after its last. All
// are volatile, so that they stay where they stand among the products.

struct Registers {
  static constexpr int kMinCc = 80;
  static constexpr int kSmemBytes = 0;
  struct State {
    float x[kChains];
  };
  static __device__ void Init(State& state, const OpInput& input) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
      state.x[c] =
          harness::RandomFloat(harness::RandomBits(input.seed, input.role_thread * kChains + c));
    }
  }
  static __device__ void EndTurn(State&) {}
  static __device__ void Drain() {}
  static __device__ uint32_t Fold(const State& state) {
    uint32_t folded = 0;
#pragma unroll
    for (int c = 0; c < kChains; ++c) folded = folded * 31 + __float_as_uint(state.x[c]);
    return folded;
  }
};

struct Ex2 : Registers {
  static constexpr char kName[] = "ex2";
  static constexpr char kWhat[] = "ex2.approx.ftz.f32";
  static constexpr char kSass[] = R"(^MUFU\.EX2)";
  static constexpr int kCycles = 8;
  // x -> 2^-x stays in [0, 1].
  static __device__ void Step(State& state, int k) {
    float& x = state.x[k % kChains];
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(-x));
  }
};

struct Shuffle : Registers {
  static constexpr char kName[] = "shuffle";
  static constexpr char kWhat[] = "shfl.sync.bfly of 32 bits";
  static constexpr char kSass[] = R"(^SHFL\.BFLY)";
  static constexpr int kCycles = 4;
  static __device__ void Step(State& state, int k) {
    float& x = state.x[k % kChains];
    asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+f"(x));
  }
};

struct Convert : Registers {
  static constexpr char kName[] = "convert";
  static constexpr char kWhat[] = "cvt.rn.f16x2.f32, two values";
  static constexpr char kSass[] = R"(^F2FP\.F16\.F32|^F2FP\.PACK_AB)";
  static constexpr int kCycles = 2;
  // A pair of halves, read as a float, is an odd source but a true dependence.
  static __device__ void Step(State& state, int k) {
    float& x = state.x[k % kChains];
    asm volatile("{.reg .b32 pair;\n cvt.rn.f16x2.f32 pair, %0, %1;\n mov.b32 %0, pair;}"
                 : "+f"(x)
                 : "f"(state.x[(k + 1) % kChains]));
  }
};

struct Ffma : Registers {
  static constexpr char kName[] = "ffma";
  static constexpr char kWhat[] = "fma.rn.f32";
  static constexpr char kSass[] = "^FFMA";
  static constexpr int kCycles = 1;
  static __device__ void Step(State& state, int k) {
    float& x = state.x[k % kChains];
    asm volatile("fma.rn.f32 %0, %0, 0f3F000000, 0f3F400000;" : "+f"(x));  // x / 2 + 0.75
  }
};

// 512 bytes of a warp, without bank conflicts: 16 cycles of a scheduler when all
// four ask, as shared memory gives 128 bytes per clock.
struct Ldmatrix {
  static constexpr char kName[] = "ldmatrix";
  static constexpr char kWhat[] = "ldmatrix.x4 without conflicts";
  static constexpr char kSass[] = R"(^LDSM\.16\.M88\.4)";
  static constexpr int kCycles = 16;
  static constexpr int kMinCc = 80;
  // Turns use two halves alternately: what is read at the same place every time would
  // leave the loop.
  static constexpr int kHalfBytes = 8 * 1024;
  static constexpr int kSmemBytes = 2 * kHalfBytes;
  struct State {
    uint32_t address;
    uint32_t half;
    uint32_t folded;
  };
  static __device__ void Init(State& state, const OpInput& input) {
    state = {.address = input.smem + input.role_thread % 32 * 16, .half = 0, .folded = 0};
  }
  static __device__ void Step(State& state, int k) {
    uint32_t a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(state.address + state.half + k * 512 % kHalfBytes));
    state.folded ^= a ^ b ^ c ^ d;
  }
  static __device__ void EndTurn(State& state) { state.half ^= kHalfBytes; }
  static __device__ void Drain() {}
  static __device__ uint32_t Fold(const State& state) { return state.folded; }
};

// 512 bytes of a warp from L2, at the 128 bytes per clock that one SM can take. Turns
// use three buffers in turn, two of which are being filled. Never one: copies to the same
// place are in no order, and those that others overtake cost nothing (170 bytes per
// clock were seen).
struct CpAsync {
  static constexpr char kName[] = "cp_async";
  static constexpr char kWhat[] = "cp.async.cg of 16 bytes, from L2";
  static constexpr char kSass[] = R"(^LDGSTS\.E\.BYPASS)";
  static constexpr int kCycles = 16;
  static constexpr int kMinCc = 90;  // the three buffers
  static constexpr int kWarpBytes = 16 * 512;
  static constexpr int kBufferBytes = kRoleWarps * kWarpBytes;
  static constexpr int kBuffers = 3;
  static constexpr int kSmemBytes = kBuffers * kBufferBytes;
  struct State {
    uint32_t smem;
    uint32_t buffer;
    const unsigned char* global;
    uint32_t offset;
  };
  static __device__ void Init(State& state, const OpInput& input) {
    const uint32_t at = input.role_thread / 32 * kWarpBytes + input.role_thread % 32 * 16;
    state = {.smem = input.smem + at,
             .buffer = 0,
             .global = input.global,
             .offset = (input.seed * kBufferBytes + at) % static_cast<uint32_t>(kCopiedBytes)};
  }
  static __device__ void Step(State& state, int k) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(state.smem + state.buffer + k * 512),
        "l"(state.global + state.offset + k * 512)
        : "memory");
  }
  static __device__ void EndTurn(State& state) {
    ptx::CpAsyncCommit();
    ptx::CpAsyncWait<kBuffers - 1>();
    state.buffer = state.buffer == (kBuffers - 1) * kBufferBytes ? 0 : state.buffer + kBufferBytes;
    state.offset = (state.offset + kBufferBytes) % static_cast<uint32_t>(kCopiedBytes);
  }
  static __device__ void Drain() { ptx::CpAsyncWait<0>(); }
  static __device__ uint32_t Fold(const State&) { return 0; }
};

// --- The kernel ----------------------------------------------------------------

// What a kernel holds, and how its warps divide it.
enum class Work { kOpAlone, kMmaAlone, kWithin, kAcross };

constexpr bool HasOp(Work work) { return work != Work::kMmaAlone; }
constexpr bool HasMma(Work work) { return work != Work::kOpAlone; }
constexpr int Threads(Work work) { return work == Work::kAcross ? 2 * kRoleThreads : kRoleThreads; }
template <typename Partner, typename Op>
constexpr int SmemBytes() {
  return Partner::kSmemBytes + Op::kSmemBytes;
}
template <typename Partner, typename Op>
constexpr int OpsPerTurn() {
  return micro::BalancedOps(Partner::kShareCycles, Op::kCycles);
}

struct RoleResult {
  int64_t stop_clock;
  uint32_t folded;
};

// Operations `from` to `to` of a turn.
template <typename Op>
__device__ __forceinline__ void Steps(typename Op::State& state, int from, int to) {
#pragma unroll
  for (int k = from; k < to; ++k) Op::Step(state, k);
}

// `turns` turns, at least one: of products, operations or both. (A loop that might
// not run at all joins two sets of accumulators behind it, and ptxas then serialises
// wgmmas.)
template <typename Partner, typename Op, bool kHasOp, bool kHasMma>
__device__ __forceinline__ RoleResult TakeTurns(int turns, const unsigned char* tiles,
                                                const OpInput& input) {
  constexpr int kOps = kHasOp ? OpsPerTurn<Partner, Op>() : 0;
  typename Partner::State mma;
  typename Op::State op;
  if constexpr (kHasMma) Partner::Init(mma, tiles, input.seed, input.role_thread);
  if constexpr (kHasOp) Op::Init(op, input);
  int turn = 0;
#pragma unroll 1
  do {
    if constexpr (kHasMma) {
      Partner::template Turn<kOps>(mma, [&op](int from, int to) { Steps<Op>(op, from, to); });
    } else {
      Steps<Op>(op, 0, kOps);
    }
    if constexpr (kHasOp) Op::EndTurn(op);
  } while (++turn < turns);
  if constexpr (kHasMma) Partner::Drain();
  if constexpr (kHasOp) Op::Drain();
  RoleResult result = {.stop_clock = harness::ReadClock(), .folded = 0};
  if constexpr (kHasMma) result.folded ^= Partner::Fold(mma);
  if constexpr (kHasOp) result.folded ^= Op::Fold(op);
  return result;
}

// params, of kAcross: turns of the operations' and of the products' role, as multiples
// of `iterations`; whether the role's clocks count.
template <typename Partner, typename Op, Work kWork>
__global__ void __launch_bounds__(Threads(kWork)) Kernel(harness::CycleArgs args) {
  extern __shared__ __align__(1024) unsigned char smem[];
  constexpr int kWords = SmemBytes<Partner, Op>() / 4;
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) {
    reinterpret_cast<uint32_t*>(smem)[i] = Partner::Word(harness::RandomBits(args.seed, i));
  }
  Partner::PublishTiles();
  const OpInput input = {.seed = args.seed,
                         .smem = ptx::SharedAddress(smem + Partner::kSmemBytes),
                         .global = static_cast<const unsigned char*>(args.data),
                         .role_thread = static_cast<int>(threadIdx.x) % kRoleThreads};
  const int64_t start = harness::StartCycles();
  RoleResult result;
  bool counts = true;
  if constexpr (kWork != Work::kAcross) {
    result = TakeTurns<Partner, Op, HasOp(kWork), HasMma(kWork)>(args.iterations, smem, input);
  } else if (threadIdx.x < kRoleThreads) {
    const int turns = args.iterations * static_cast<int>(args.params[1]);
    result = TakeTurns<Partner, Op, false, true>(turns, smem, input);
    counts = args.params[3] != 0;
  } else {
    const int turns = args.iterations * static_cast<int>(args.params[0]);
    result = TakeTurns<Partner, Op, true, false>(turns, smem, input);
    counts = args.params[2] != 0;
  }
  if (threadIdx.x % 32 == 0) {
    args.stamps[threadIdx.x / 32] = harness::WarpStamp{
        start, counts ? result.stop_clock : start + 1, harness::ReadSmId(), blockIdx.x};
  }
  harness::KeepAlive(args, result.folded);
}

// --- Cases -----------------------------------------------------------------------

// The operation of a kernel that has none.
struct NoOp : Registers {
  static constexpr int kCycles = 1;
  static __device__ void Step(State&, int) {}
};

struct Roles {
  int64_t op_turns = 1;
  int64_t mma_turns = 1;
  bool op_counts = true;
  bool mma_counts = true;
};
inline constexpr int64_t kOutlasts = 8;  // turns of the role that must not end first

inline harness::Evidence Exactly(int count, const char* sass) {
  return {.sass = sass, .at_least = count, .at_most = count};
}

template <typename Partner, typename Op, Work kWork>
harness::CycleCase TurnCase(std::string name, std::string measures, const Roles& roles = {}) {
  constexpr int kOps = HasOp(kWork) ? OpsPerTurn<Partner, Op>() : 0;
  constexpr int kMmas = HasMma(kWork) ? Partner::kMmas : 0;
  harness::CaseInfo about;
  about.name = absl::StrCat("overlap/", Partner::kName, "/", name);
  about.measures = std::move(measures);
  about.unit = "cycles";
  about.min_cc = std::max(Partner::kMinCc, Op::kMinCc);
  about.max_cc = Partner::kMaxCc;
  about.evidence.push_back(Exactly(kMmas, Partner::kSass));
  about.parameters.push_back({"mmas_per_turn", static_cast<double>(kMmas)});
  about.parameters.push_back({"ops_per_turn", static_cast<double>(kOps)});
  if constexpr (HasOp(kWork)) about.evidence.push_back(Exactly(kOps, Op::kSass));
  if constexpr (HasMma(kWork)) {
    for (harness::Evidence& evidence : Partner::MoreEvidence()) {
      about.evidence.push_back(std::move(evidence));
    }
  }
  return {.about = std::move(about),
          .measure = harness::Measure::kLatency,
          .kernel = Kernel<Partner, Op, kWork>,
          .units_per_iteration = 1,
          .threads = Threads(kWork),
          .dynamic_smem_bytes = SmemBytes<Partner, Op>(),
          .lengths = {16, 32, 48, 64},
          .make_data =
              [](const harness::MicroDevice&) {
                return memory_inputs::RandomWords(kCopiedBytes + CpAsync::kBufferBytes);
              },
          .args = {roles.op_turns, roles.mma_turns, roles.op_counts, roles.mma_counts}};
}

inline absl::StatusOr<double> Cycles(const harness::CycleCase& micro_case,
                                     const harness::MicroDevice& device) {
  absl::StatusOr<harness::CycleRunner> runner = harness::CycleRunner::Create(micro_case, device);
  if (!runner.ok()) return runner.status();
  SplitMix64 random(HashName(micro_case.about.name));
  const absl::StatusOr<harness::CycleSample> sample = runner->Run(random);
  if (!sample.ok()) return sample.status();
  return sample->value;
}

// A cell of the matrix. Its evidence is that of `both`, which it speaks of.
inline void AddCell(const std::string& name, const std::string& what,
                    const harness::CycleCase& op_alone, const harness::CycleCase& mma_alone,
                    const harness::CycleCase& both) {
  harness::CaseInfo about = both.about;
  about.name = name;
  about.measures = "share of the shorter work hidden behind the longer: " + what;
  about.unit = "";
  about.limit = {.own = 1, .own_source = "all of the shorter is hidden"};
  harness::Add(harness::ValueCase{
      .about = std::move(about),
      .compute = [=](const harness::MicroDevice& device) -> absl::StatusOr<double> {
        const absl::StatusOr<double> op = Cycles(op_alone, device);
        if (!op.ok()) return op.status();
        const absl::StatusOr<double> mma = Cycles(mma_alone, device);
        if (!mma.ok()) return mma.status();
        const absl::StatusOr<double> together = Cycles(both, device);
        if (!together.ok()) return together.status();
        return micro::HiddenFraction({.op = *op, .mma = *mma, .both = *together});
      },
      .kernels = {reinterpret_cast<const void*>(both.kernel)}});
}

template <typename Partner, typename Op>
void AddOp(const harness::CycleCase& mma_alone) {
  const std::string op = Op::kName;
  const std::string what = absl::StrCat(Op::kWhat, " beside ", Partner::kWhat);
  const harness::CycleCase alone = TurnCase<Partner, Op, Work::kOpAlone>(
      op + "/op_alone", absl::StrCat("cycles of a turn of ", Op::kWhat, " alone, eight warps"));
  const harness::CycleCase within = TurnCase<Partner, Op, Work::kWithin>(
      op + "/within/both",
      "cycles of a turn of both, in the stream of each of eight warps: " + what);
  const harness::CycleCase across = TurnCase<Partner, Op, Work::kAcross>(
      op + "/across/both", "cycles until eight warps each have done a turn of theirs: " + what);
  harness::Add(alone);
  harness::Add(within);
  harness::Add(across);
  harness::Add(TurnCase<Partner, Op, Work::kAcross>(
      op + "/across/op_beside",
      absl::StrCat("cycles of a turn of ", Op::kWhat, " while other warps multiply on and on"),
      {.mma_turns = kOutlasts, .mma_counts = false}));
  harness::Add(TurnCase<Partner, Op, Work::kAcross>(
      op + "/across/mma_beside",
      absl::StrCat("cycles of a turn of ", Partner::kWhat, " while other warps do ", Op::kWhat,
                   " on and on"),
      {.op_turns = kOutlasts, .op_counts = false}));
  const std::string cell = absl::StrCat("overlap/", Partner::kName, "/", op);
  AddCell(cell + "/within", what + ", one stream", alone, mma_alone, within);
  AddCell(cell + "/across", what + ", other warps", alone, mma_alone, across);
}

// The partner's row of the matrix.
template <typename Partner>
void AddPartner() {
  const harness::CycleCase mma_alone = TurnCase<Partner, NoOp, Work::kMmaAlone>(
      "mma_alone", absl::StrCat("cycles of a turn of ", Partner::kWhat, " alone, eight warps"));
  harness::Add(mma_alone);
  AddOp<Partner, CpAsync>(mma_alone);
  AddOp<Partner, Ldmatrix>(mma_alone);
  AddOp<Partner, Shuffle>(mma_alone);
  AddOp<Partner, Ex2>(mma_alone);
  AddOp<Partner, Convert>(mma_alone);
  AddOp<Partner, Ffma>(mma_alone);
}

}  // namespace warpledger::overlap

#endif  // WARPLEDGER_MICRO_OVERLAP_CUH_
