// SPDX-License-Identifier: Apache-2.0
// The mma family's kernels, run on the CPU and held against the reference by the rule of
// all variants: what can be known of them where there is no GPU.

#include <cmath>
#include <initializer_list>
#include <vector>

#include "ablations/subjects/sdpa/correctness.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/mma/forward.cuh"
#include "kernels/sdpa/mma/plan.h"
#include "kernels/sdpa/mma/projection/projection_kernels.cuh"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/reference.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/rules/rules.h"
#include "tests/emulation/cuda_on_cpu.h"
#include "tests/kernels/sdpa/emulated/emulated_call.h"

namespace warpledger::sdpa {
namespace {

// The registry's toggles of the family that every configuration here has.
constexpr Config kCore = {.mma_sync = 1,
                          .mma_v_ldmatrix_trans = 1,
                          .mma_p_registers = 1,
                          .mma_q_registers = 1,
                          .mma_smem_layout = 1,
                          .mma_cp_async_stages = 2,
                          .mma_exp = 1,
                          .mma_border_mask = 1};
struct Level {
  ToggleField toggle;
  int level;
};
constexpr Config With(Config config, std::initializer_list<Level> levels) {
  for (const Level& level : levels) config.*level.toggle = level.level;
  return config;
}

constexpr Config kSplitGroups =
    With(kCore,
         {{&Config::mma_tile, 2}, {&Config::mma_key_groups, 4}, {&Config::mma_softmax_overlap, 1}});
constexpr Config kSquare = With(
    kCore,
    {{&Config::mma_key_groups, 2}, {&Config::mma_softmax_overlap, 1}, {&Config::project_mma, 1}});
constexpr Config kSingle =
    With(kCore, {{&Config::mma_cp_async_stages, 0}, {&Config::project_mma, 1}});
constexpr Config kWide = With(kCore, {{&Config::mma_q_registers, 0},
                                      {&Config::mma_tile, 1},
                                      {&Config::mma_lazy_rescale, 1},
                                      {&Config::mma_longest_first, 1}});

// What stands in front of attention in kernels of its own.
enum class Front { kNothing, kLayernorm, kLayernormAndProduct, kNormalisingProduct };

// Runs one call and judges it. `cluster`: the CTAs that run side by side; 0: those that
// the kernel needs.
template <MmaShape kShape>
ablations::Accuracy Judge(const Problem& problem, const Inputs& inputs, const Reference& reference,
                          Front front, const Order& order, unsigned cluster = 0) {
  Tensor q(inputs.q), k(inputs.k), v(inputs.v);
  Tensor x(inputs.x), gamma(inputs.gamma), beta(inputs.beta), w(inputs.w);
  const auto rows = static_cast<int>(EmbeddedRows(problem));
  Tensor normalised(static_cast<size_t>(EmbeddedElements(problem)));
  Tensor qkv(static_cast<size_t>(rows * ProjectionRows(problem)));
  Tensor out(static_cast<size_t>(QueryElements(problem)));
  std::vector<float> lse(static_cast<size_t>(QueryRows(problem)), NAN);

  ForwardParams forward = CallOf(problem, q, k, v, out, lse);
  ProjectionParams& p = forward.projection;
  p = {x.data(),
       gamma.data(),
       beta.data(),
       w.data(),
       qkv.data(),
       problem.embed_dim,
       static_cast<int>(ProjectionRows(problem))};

  emulation::Launch launch = {.copies = order.copies, .reversed = order.reversed};
  if (front == Front::kLayernorm || front == Front::kLayernormAndProduct) {
    launch.ctas = static_cast<unsigned>((rows + kRowsPerCta - 1) / kRowsPerCta);
    launch.threads = 32 * kRowsPerCta;
    emulation::RunCtas(launch,
                       [&] { NormaliseRows(p, rows, reinterpret_cast<half*>(normalised.data())); });
    p.x = normalised.data();
  }
  if (front == Front::kLayernormAndProduct || front == Front::kNormalisingProduct) {
    launch.grid_x = static_cast<unsigned>(p.columns / kProjectionRows);
    launch.ctas =
        launch.grid_x * static_cast<unsigned>((rows + kProjectionRows - 1) / kProjectionRows);
    launch.threads = 128;
    launch.smem_bytes = kTileSmemBytes;
    emulation::RunCtas(launch, [&] {
      unsigned char* smem = emulation::current->cta->smem;
      if (front == Front::kNormalisingProduct) {
        ProjectTile<true>(p, rows, smem);
      } else {
        ProjectTile<false>(p, rows, smem);
      }
    });
  }

  MmaParams params;
  launch.grid_x = 0;
  launch.ctas = PlanMma(forward, kShape, {132, 228 * 1024, 60 << 20}, &params);
  // NaN wherever nothing was written.
  const auto parts = static_cast<size_t>(kMaxPartials * TileM(kShape));
  std::vector<float> partial_out(parts * static_cast<size_t>(kShape.head_dim), NAN);
  std::vector<float> partial_stats(parts * 2, NAN);
  std::vector<int> arrivals(static_cast<size_t>(kMaxPartials), 0);
  params.partial_out = partial_out.data();
  params.partial_stats = partial_stats.data();
  params.arrivals = arrivals.data();
  launch.cluster =
      kShape.input != MmaInput::kClusterProjected ? 1 : static_cast<unsigned>(params.query_tiles);
  if (cluster > 0) launch.cluster = cluster;
  launch.threads = Threads(kShape);
  launch.smem_bytes = static_cast<size_t>(MakeSmem(kShape).bytes);
  emulation::RunCtas(launch, [&] { MmaForward<kShape>(params, emulation::current->cta->smem); });
  EXPECT_EQ(arrivals, std::vector<int>(arrivals.size(), 0));
  EXPECT_TRUE(out.IntactAround() && qkv.IntactAround() && normalised.IntactAround());
  return ablations::JudgeAccuracy(reference, out.values(), lse);
}

template <MmaShape kShape>
void ExpectRight(const Problem& problem, InputKind kind, Front front) {
  const Inputs inputs = MakeInputs(problem, kind, 3);
  const Reference reference = ComputeReference(problem, inputs);
  for (const Order& order : kOrders) {
    const ablations::Accuracy accuracy = Judge<kShape>(problem, inputs, reference, front, order);
    EXPECT_TRUE(accuracy.correct) << order.name << ": " << accuracy.reason;
  }
}

template <Config kConfig>
constexpr MmaShape kGiven = MmaShapeOf(Specialise(kConfig, 64, false));
template <Config kConfig>
constexpr MmaShape kFromX = MmaShapeOf(Specialise(kConfig, 64, false, Dtype::kFp16, true));

// --- Grouped heads --------------------------------------------------------------------

constexpr Problem kGrouped = {1, 4, 1, 65, 97, 64, true};

TEST(EmulatedForward, WithHeadsPackedIntoFullTilesAgreesWithTheReference) {
  ExpectRight<kGiven<kWide>>(kGrouped, InputKind::kNormal, Front::kNothing);
  ExpectRight<kGiven<With(kWide, {{&Config::mma_pack_heads, 1}})>>(kGrouped, InputKind::kNormal,
                                                                   Front::kNothing);
}

TEST(EmulatedForward, AsADependentLaunchAgreesWithTheReference) {
  ExpectRight<kGiven<With(kSplitGroups, {{&Config::mma_dependent_launch, 1}})>>(
      kGrouped, InputKind::kNormal, Front::kNothing);
}

// --- Decoding ---------------------------------------------------------------------------

constexpr Config kDecode = With(kCore, {{&Config::mma_tile, 3},
                                        {&Config::mma_key_groups, 2},
                                        {&Config::mma_cp_async_stages, 3},
                                        {&Config::mma_pack_heads, 1},
                                        {&Config::mma_split_kv, 1}});
constexpr Config kDecodeBulk =
    With(kDecode, {{&Config::mma_smem_layout, 2}, {&Config::mma_bulk_copy, 1}});
// 60 K/V tiles for at most 132 / 12 = 11 splits; 5 for one of three heads' two.
constexpr Problem kLongKeys = {2, 24, 6, 1, 1911, 64, false};
constexpr Problem kFewKeys = {1, 6, 3, 2, 131, 64, true};

TEST(EmulatedForward, SplitsKeysOverCtasAndJoinsThem) {
  for (const Problem& problem : {kLongKeys, kFewKeys}) {
    ExpectRight<kGiven<kDecode>>(problem, InputKind::kNormal, Front::kNothing);
    ExpectRight<kGiven<kDecodeBulk>>(problem, InputKind::kOutliers, Front::kNothing);
  }
}

TEST(EmulatedForward, RefillsARingByBulkCopies) {
  constexpr Config kBulk =
      With(kWide, {{&Config::mma_smem_layout, 2}, {&Config::mma_bulk_copy, 1}});
  constexpr Problem kTiles = {1, 2, 1, 130, 333, 64, true};
  ExpectRight<kGiven<kBulk>>(kTiles, InputKind::kNormal, Front::kNothing);
  ExpectRight<kGiven<With(kBulk, {{&Config::mma_key_groups, 2}})>>(kTiles, InputKind::kNormal,
                                                                   Front::kNothing);
}

// --- Behind a projection ---------------------------------------------------------------

// One past a tile on both axes, an odd number of steps over E.
constexpr Problem kRagged = {2, 2, 2, 65, 65, 64, true, Dtype::kFp16, 192};
constexpr Problem kShared = {1, 2, 1, 70, 70, 64, false, Dtype::kFp16, 128};

TEST(EmulatedForward, ReadsTheRowsOfAProductAsItReadsTensors) {
  ExpectRight<kFromX<kSplitGroups>>(kRagged, InputKind::kNormal, Front::kLayernormAndProduct);
  ExpectRight<kFromX<kSquare>>(kShared, InputKind::kLargeLogits, Front::kNormalisingProduct);
  ExpectRight<kFromX<kSingle>>(kShared, InputKind::kOutliers, Front::kLayernormAndProduct);
}

TEST(EmulatedForward, ProjectsWhatEachCtaReads) {
  constexpr Config kApart = With(kSingle, {{&Config::fuse_projection, 1}});
  constexpr Config kAll = With(kApart, {{&Config::fuse_layernorm, 1}});
  ExpectRight<kFromX<kApart>>(kRagged, InputKind::kNormal, Front::kLayernorm);
  ExpectRight<kFromX<kAll>>(kRagged, InputKind::kNormal, Front::kNothing);
  ExpectRight<kFromX<kAll>>(kShared, InputKind::kConstant, Front::kNothing);
}

TEST(EmulatedForward, ProjectsEachRowOnceInACluster) {
  constexpr Config kApart = With(kSquare, {{&Config::fuse_projection, 2}});
  constexpr Config kAll = With(kApart, {{&Config::fuse_layernorm, 1}});
  ExpectRight<kFromX<kApart>>(kRagged, InputKind::kNormal, Front::kLayernorm);
  ExpectRight<kFromX<kAll>>(kRagged, InputKind::kNormal, Front::kNothing);
}

// --- The checks can fail ---------------------------------------------------------------

// Without its cluster a CTA reads rows that nobody has projected yet.
TEST(EmulatedForward, IsWrongWhereACtaDoesNotWaitForItsCluster) {
  constexpr MmaShape kShape = kFromX<With(kSquare, {{&Config::fuse_projection, 2}})>;
  Problem problem = kRagged;
  problem.causal = false;
  const Inputs inputs = MakeInputs(problem, InputKind::kNormal, 3);
  const Reference reference = ComputeReference(problem, inputs);
  EXPECT_TRUE(Judge<kShape>(problem, inputs, reference, Front::kLayernorm, kOrders[0]).correct);
  EXPECT_FALSE(Judge<kShape>(problem, inputs, reference, Front::kLayernorm, kOrders[0], 1).correct);
}

TEST(EmulatedForward, IsWrongWithoutTheLayernorm) {
  const Inputs inputs = MakeInputs(kShared, InputKind::kNormal, 3);
  const Reference reference = ComputeReference(kShared, inputs);
  EXPECT_FALSE(Judge<kFromX<With(kSingle, {{&Config::fuse_projection, 1}})>>(
                   kShared, inputs, reference, Front::kNothing, kOrders[0])
                   .correct);
}

}  // namespace
}  // namespace warpledger::sdpa
