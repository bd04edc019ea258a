// SPDX-License-Identifier: Apache-2.0
// The kernels of the simt and wmma families at head_dim 128, run on the CPU and held
// against the reference by the rule of all variants.

#include <cmath>
#include <vector>

#include "ablations/subjects/sdpa/correctness.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/reference.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/rules/rules.h"
#include "kernels/sdpa/smem/forward.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/smem_layout.h"
#include "tests/emulation/cuda_on_cpu.h"
#include "tests/kernels/sdpa/emulated/emulated_call.h"
#include "tests/kernels/sdpa/rules/all_configs.h"

namespace warpledger::sdpa::smem {
namespace {

// One past a tile on both axes; rows that see no key at all.
constexpr Problem kRagged = {1, 2, 1, 33, 65, 128, false};
constexpr Problem kRaggedCausal = {1, 1, 1, 67, 40, 128, true};

// `scale`: of the softmax; 0: the problem's own.
template <Config kConfig>
ablations::Accuracy Judge(const Problem& problem, const Inputs& inputs, const Reference& reference,
                          const Order& order, float scale = 0) {
  static_assert(!WhyInvalid(kConfig) && FamilyOf(kConfig) == Family::kSmem);
  Tensor q(inputs.q), k(inputs.k), v(inputs.v);
  Tensor out(static_cast<size_t>(QueryElements(problem)));
  std::vector<float> lse(static_cast<size_t>(QueryRows(problem)), NAN);
  ForwardParams params = CallOf(problem, q, k, v, out, lse);
  params.query_tiles = (problem.seq_q + TileM(kConfig) - 1) / TileM(kConfig);
  if (scale > 0) params.softmax_scale = scale;
  const emulation::Launch launch = {
      .ctas = static_cast<unsigned>(params.query_tiles * problem.heads_q * problem.batch),
      .threads = Threads(kConfig),
      .smem_bytes = static_cast<size_t>(MakeSmemLayout(kConfig).bytes),
      .copies = order.copies,
      .reversed = order.reversed};
  emulation::RunCtas(launch, [&] {
    ComputeTile<kConfig>(params, emulation::current->cta->smem, static_cast<int>(blockIdx.x));
  });
  EXPECT_TRUE(out.IntactAround()) << order.name;
  return ablations::JudgeAccuracy(reference, out.values(), lse, LseAllowance(kConfig, 1));
}

template <Config kConfig>
void ExpectRight() {
  constexpr Config kCompiled = Specialise(kConfig, 128, false);
  for (const Problem& problem : {kRagged, kRaggedCausal}) {
    const Inputs inputs = MakeInputs(problem, InputKind::kNormal, 3);
    const Reference reference = ComputeReference(problem, inputs);
    for (const Order& order : kOrders) {
      const ablations::Accuracy accuracy = Judge<kCompiled>(problem, inputs, reference, order);
      EXPECT_TRUE(accuracy.correct)
          << (problem.causal ? "causal, " : "full, ") << order.name << ": " << accuracy.reason;
    }
  }
}

constexpr Config With(Config config, ToggleField toggle, int level) {
  config.*toggle = level;
  return config;
}

constexpr Config kScalar = {.kv_tiling = 1};
constexpr Config kFp32 = {
    .kv_tiling = 1, .tile_m32_warps4 = 1, .warp_shuffle = 1, .vector_loads = 1};
constexpr Config kEnd = {.kv_tiling = 1,
                         .tile_m32_warps4 = 1,
                         .warp_shuffle = 1,
                         .vector_loads = 1,
                         .wmma_qk = 1,
                         .cp_async_stages = 2,
                         .wmma_pv = 1};
constexpr Config kFused = With(kEnd, &Config::softmax_in_registers, 3);
constexpr Config kFusedLong = With(With(kFused, &Config::exp_method, 1), &Config::tile_n, 64);

// Fewer threads than columns of O.
TEST(EmulatedWideForward, WithScalarLoadsAgreesWithTheReference) {
  ExpectRight<Config{}>();
  ExpectRight<kScalar>();
}

TEST(EmulatedWideForward, OnTheFp32PipesAgreesWithTheReference) {
  ExpectRight<With(kFp32, &Config::vector_loads, 0)>();
  ExpectRight<kFp32>();
  ExpectRight<With(kFp32, &Config::xor_swizzle, 1)>();
}

TEST(EmulatedWideForward, OfTheLaddersEndAndItsNeighboursAgreesWithTheReference) {
  EXPECT_EQ(kEnd, LastStep());
  ExpectRight<kEnd>();
  ExpectRight<With(kEnd, &Config::wmma_pv, 0)>();
  ExpectRight<With(kEnd, &Config::cp_async_stages, 0)>();
  ExpectRight<With(kEnd, &Config::tile_n, 64)>();
  ExpectRight<With(kEnd, &Config::tile_n, 128)>();
}

TEST(EmulatedWideForward, InPanelsAgreesWithTheReference) {
  ExpectRight<With(kEnd, &Config::smem_layout, 2)>();
}

TEST(EmulatedWideForward, WithSoftmaxInRegistersAgreesWithTheReference) {
  ExpectRight<With(kEnd, &Config::softmax_in_registers, 1)>();
  ExpectRight<With(kEnd, &Config::softmax_in_registers, 2)>();
  ExpectRight<kFused>();
  ExpectRight<kFusedLong>();
  ExpectRight<With(kFusedLong, &Config::tile_m, 64)>();
  ExpectRight<With(kFusedLong, &Config::tile_m, 128)>();
}

// The checks can fail.
TEST(EmulatedWideForward, IsWrongWithTheScaleOfAnotherHeadDim) {
  const Inputs inputs = MakeInputs(kRagged, InputKind::kNormal, 3);
  const Reference reference = ComputeReference(kRagged, inputs);
  constexpr Config kCompiled = Specialise(kEnd, 128, false);
  EXPECT_TRUE(Judge<kCompiled>(kRagged, inputs, reference, kOrders[0]).correct);
  EXPECT_FALSE(Judge<kCompiled>(kRagged, inputs, reference, kOrders[0], 0.125f).correct);
}

}  // namespace
}  // namespace warpledger::sdpa::smem
