// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/problem.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

#include "gtest/gtest.h"
#include "kernels/sdpa/problem/shapes.h"

namespace warpledger::sdpa {
namespace {

int64_t CountVisible(const Problem& p) {
  int64_t pairs = 0;
  for (int i = 0; i < p.seq_q; ++i) {
    for (int j = 0; j < p.seq_kv; ++j) {
      pairs += !p.causal || j <= i + p.seq_kv - p.seq_q ? 1 : 0;
    }
  }
  return pairs;
}

const NamedShape& Shape(std::string_view name) {
  return *std::find_if(std::begin(kShapes), std::end(kShapes),
                       [&](const NamedShape& shape) { return shape.name == name; });
}

TEST(VisiblePairs, AgreesWithCountingThemOneByOne) {
  for (const bool causal : {false, true}) {
    for (const int seq_q : {1, 2, 31, 64, 65}) {
      for (const int seq_kv : {1, 3, 32, 64, 97}) {
        const Problem p = {.seq_q = seq_q, .seq_kv = seq_kv, .causal = causal};
        EXPECT_EQ(VisiblePairs(p), CountVisible(p)) << seq_q << " x " << seq_kv;
      }
    }
  }
  for (const NamedShape& shape : kShapes) {
    if (int64_t{shape.problem.seq_q} * shape.problem.seq_kv > (1 << 20)) continue;
    EXPECT_EQ(VisiblePairs(shape.problem), CountVisible(shape.problem)) << shape.name;
  }
}

TEST(VisiblePairs, LetsTheLastQuerySeeEveryKeyUnderTheCausalMask) {
  EXPECT_EQ(VisiblePairs({.seq_q = 1, .seq_kv = 100, .causal = true}), 100);
  EXPECT_EQ(VisiblePairs({.seq_q = 4, .seq_kv = 4, .causal = true}), 1 + 2 + 3 + 4);
}

// Queries 0 to 6 of 10 see nothing; the last three see 1, 2 and 3 keys.
TEST(VisiblePairs, CountsRowsThatSeeNoKeyAsNone) {
  EXPECT_EQ(VisiblePairs({.seq_q = 10, .seq_kv = 3, .causal = true}), 1 + 2 + 3);
}

TEST(Work, OfMissionBIsWhatOneWorksOutByHand) {
  const Problem& p = Shape("mission_b").problem;
  EXPECT_EQ(QueryRows(p), 8 * 512);
  EXPECT_EQ(QueryElements(p), 262144);
  EXPECT_EQ(KeyElements(p), 262144);
  EXPECT_EQ(Flops(p), 536870912.0);       // 2 products x 2 x 8 x 512 x 512 x 64
  EXPECT_EQ(MinBytes(p), 2097152.0);      // 4 tensors of 512 KiB
  EXPECT_EQ(Exponentials(p), 2097152.0);  // 8 x 512 x 512
}

TEST(Work, BehindAProjectionCountsItsProductAndReadsXAndWInPlaceOfQKAndV) {
  Problem p = Shape("mission_b").problem;
  p.embed_dim = 512;
  EXPECT_EQ(EmbeddedElements(p), 512 * 512);
  EXPECT_EQ(ProjectionRows(p), 3 * 512);
  EXPECT_EQ(ProjectionFlops(p), 805306368.0);  // 2 x 512 x 512 x 1536
  EXPECT_EQ(Flops(p), 805306368.0 + 536870912.0);
  // x, W, gamma, beta and O.
  EXPECT_EQ(MinBytes(p), 2.0 * (262144 + 786432 + 2 * 512 + 262144));
  EXPECT_EQ(ProjectionFlops(Shape("mission_b").problem), 0);
}

// Sharing K/V heads changes what is read, never what is computed.
TEST(Work, OfPromptsWithSharedHeadsDiffersInBytesAlone) {
  const Problem& grouped = Shape("gqa_prefill").problem;
  const Problem& shared = Shape("mqa_prefill").problem;
  EXPECT_EQ(grouped.heads_q / grouped.heads_kv, 4);
  EXPECT_EQ(shared.heads_kv, 1);
  EXPECT_EQ(Flops(grouped), Flops(shared));
  EXPECT_EQ(Flops(grouped), 4.0 * 32 * 128 * (2048.0 * 2049 / 2));
  EXPECT_EQ(MinBytes(grouped) - MinBytes(shared), 2.0 * 2 * 7 * 2048 * 128);
}

TEST(Work, CountsGroupedKeysAndValuesOnceAndMaskedPairsNotAtAll) {
  const Problem p = {.batch = 2,
                     .heads_q = 8,
                     .heads_kv = 2,
                     .seq_q = 2,
                     .seq_kv = 3,
                     .head_dim = 64,
                     .causal = true};
  // Two queries see 2 and 3 keys.
  EXPECT_EQ(Exponentials(p), 2.0 * 8 * 5);
  EXPECT_EQ(Flops(p), 4.0 * 2 * 8 * 5 * 64);
  EXPECT_EQ(QueryElements(p), 2 * 8 * 2 * 64);
  EXPECT_EQ(KeyElements(p), 2 * 2 * 3 * 64);
  EXPECT_EQ(MinBytes(p), 2.0 * (2 * 2 * 8 * 2 * 64 + 2 * 2 * 2 * 3 * 64));
}

TEST(Work, DoesNotOverflowOnShapesBeyond32Bits) {
  const Problem p = {.batch = 64, .heads_q = 64, .heads_kv = 64, .seq_q = 65536, .seq_kv = 65536};
  EXPECT_EQ(QueryElements(p), int64_t{1} << 34);
  EXPECT_EQ(VisiblePairs(p), int64_t{1} << 32);
  EXPECT_EQ(Exponentials(p), std::ldexp(1.0, 44));
}

TEST(Shapes, HaveUniqueNamesAndReasons) {
  std::set<std::string_view> names;
  for (const NamedShape& shape : kShapes) {
    EXPECT_TRUE(names.insert(shape.name).second) << shape.name << " stands twice";
    EXPECT_FALSE(shape.why.empty()) << shape.name;
    // Words with a meaning of their own in lists of shapes.
    EXPECT_NE(shape.name, "all");
    EXPECT_NE(shape.name, "ladder");
    EXPECT_NE(shape.name, "fa3");
  }
}

TEST(Shapes, AreOnesThatTheKernelsCanDo) {
  for (const NamedShape& shape : kShapes) {
    const Problem& p = shape.problem;
    EXPECT_TRUE(p.batch > 0 && p.heads_q > 0 && p.heads_kv > 0 && p.seq_q > 0 && p.seq_kv > 0)
        << shape.name;
    EXPECT_EQ(p.heads_q % p.heads_kv, 0) << shape.name;
    EXPECT_NE(std::find(std::begin(kHeadDims), std::end(kHeadDims), p.head_dim),
              std::end(kHeadDims))
        << shape.name;
  }
}

TEST(Shapes, CoverRaggedCausalGroupedAndFullyMaskedCases) {
  bool ragged = false;
  bool causal = false;
  bool grouped = false;
  bool fully_masked_rows = false;
  bool ladder = false;
  for (const NamedShape& shape : kShapes) {
    const Problem& p = shape.problem;
    ragged |= p.seq_q % 32 != 0 && p.seq_kv % 32 != 0;
    causal |= p.causal;
    grouped |= p.heads_q > p.heads_kv;
    fully_masked_rows |= p.causal && p.seq_q > p.seq_kv;
    ladder |= shape.ladder;
  }
  EXPECT_TRUE(ragged && causal && grouped && fully_masked_rows && ladder);
}

TEST(Shapes, HoldMissionAAndBAsTheNotesGiveThem) {
  EXPECT_EQ(Shape("mission_a").problem, (Problem{2, 8, 8, 256, 256, 64, false}));
  EXPECT_EQ(Shape("mission_b").problem, (Problem{1, 8, 8, 512, 512, 64, false}));
  EXPECT_TRUE(Shape("mission_b").ladder);
}

}  // namespace
}  // namespace warpledger::sdpa
