// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/resident/shape.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::sdpa {
namespace {

constexpr int kMaxSmemBytes = 227 * 1024;

// Every shape that the registry's levels span at head_dim 64.
std::vector<ResidentShape> Shapes() {
  std::vector<ResidentShape> shapes;
  for (const int warpgroups : {1, 2}) {
    for (const int cluster : {1, 2}) {
      for (const bool fp16 : {false, true}) {
        for (const bool dependent : {false, true}) {
          shapes.push_back({.warpgroups = warpgroups,
                            .cluster = cluster,
                            .fp16_exchange = fp16,
                            .dependent_launch = dependent});
        }
      }
    }
  }
  return shapes;
}

TEST(ResidentShape, FollowsTheTogglesOneByOne) {
  constexpr Config kAlone = {.wgmma = 1, .resident_kv = 1};
  EXPECT_EQ(FamilyOf(kAlone), Family::kResident);
  EXPECT_EQ(Parts(ResidentShapeOf(kAlone)), 1);
  EXPECT_EQ(GeometryOf(kAlone).threads, 128);
  EXPECT_EQ(GeometryOf(kAlone).tile_m, 64);
  EXPECT_EQ(GeometryOf(kAlone).tile_n, 128);
  constexpr Config kSplit = {
      .wgmma = 1, .resident_kv = 1, .cluster_split_kv = 2, .kv_warpgroups = 1};
  EXPECT_EQ(Parts(ResidentShapeOf(kSplit)), 4);
  EXPECT_EQ(GeometryOf(kSplit).threads, 256);
  EXPECT_FALSE(ResidentShapeOf(kSplit).causal);
  EXPECT_TRUE(ResidentShapeOf(Specialise(kSplit, 64, true)).causal);
}

TEST(ResidentShape, SharesOutputsEvenlyInPiecesOf16Bytes) {
  for (const ResidentShape& s : Shapes()) {
    const int bytes_per_value = s.fp16_exchange ? 2 : 4;
    // A thread holds two rows' fourth: head_dim / 2 values.
    EXPECT_EQ(ExchangedRegisters(s) * 4 * Parts(s), s.head_dim / 2 * bytes_per_value);
    EXPECT_EQ(ExchangedRegisters(s) % 4, 0) << s.warpgroups << " x " << s.cluster;
  }
}

TEST(ResidentSmem, HasNoTwoRegionsThatOverlapAndNoneThatSticksOut) {
  for (const ResidentShape& s : Shapes()) {
    const ResidentSmem m = MakeSmem(s);
    const int parts = Parts(s);
    EXPECT_EQ(m.k, m.q + 64 * 64 * 2);
    EXPECT_EQ(m.v, m.k + s.warpgroups * 128 * 64 * 2);
    EXPECT_EQ(m.statistics, m.v + s.warpgroups * 128 * 64 * 2);
    EXPECT_EQ(m.outputs, m.statistics + s.warpgroups * parts * 64 * 8);
    EXPECT_EQ(m.barriers, m.outputs + s.warpgroups * (parts - 1) * m.outputs_bytes);
    // 1023 bytes may go to the base's alignment.
    EXPECT_LE(m.barriers + s.warpgroups * kResidentBarriers * 8 + 1023, m.bytes);
    EXPECT_LE(m.bytes, kMaxSmemBytes);
  }
}

TEST(ResidentSmem, AlignsTilesForTheSwizzleAndBarriersToEightBytes) {
  for (const ResidentShape& s : Shapes()) {
    const ResidentSmem m = MakeSmem(s);
    for (const int offset : {m.q, m.k, m.v, m.kv_bytes}) EXPECT_EQ(offset % 1024, 0);
    for (const int offset : {m.statistics, m.outputs}) EXPECT_EQ(offset % 16, 0);
    EXPECT_EQ(m.barriers % 8, 0);
  }
}

// Two would fit otherwise: see kDependentSmemBytes.
TEST(ResidentSmem, LeavesRoomForOneCtaPerSmWhereLaunchesOverlap) {
  for (const ResidentShape& s : Shapes()) {
    if (!s.dependent_launch) continue;
    EXPECT_GT(2 * MakeSmem(s).bytes, kMaxSmemBytes);
  }
}

}  // namespace
}  // namespace warpledger::sdpa
