// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/shared/kernel_layout.h"

#include "gtest/gtest.h"

namespace warpledger::sdpa {
namespace {

TEST(FoldedHeadStride, IsOneStrideForAllHeadsOfTheBatch) {
  const TensorStrides contiguous = ContiguousStrides(8, 100, 64);
  EXPECT_EQ(contiguous, (TensorStrides{8 * 100 * 64, 100 * 64, 64}));
  EXPECT_EQ(FoldedHeadStride(contiguous, 3, 8), 100 * 64);
  // The first rows of a longer cache.
  EXPECT_EQ(FoldedHeadStride(ContiguousStrides(8, 4096, 64), 3, 8), 4096 * 64);
  // Rows outside of heads: within one batch alone, or where there is one row.
  const TensorStrides outside = {100 * 8 * 64, 64, 8 * 64};
  EXPECT_EQ(FoldedHeadStride(outside, 1, 8), 64);
  EXPECT_EQ(FoldedHeadStride(outside, 3, 8), std::nullopt);
  EXPECT_EQ(FoldedHeadStride({8 * 64, 64, 8 * 64}, 3, 8), 64);
  EXPECT_EQ(FoldedHeadStride({12345, 64, 8 * 64}, 3, 1), 12345);
}

TEST(ContiguousLayouts, ReadsSizesOfQueriesAndKeys) {
  const struct { int heads_q, heads_kv, seq_q, seq_kv; } sizes = {8, 2, 3, 5};
  const TensorLayouts layouts = ContiguousLayouts(sizes, 64);
  EXPECT_EQ(layouts.q, ContiguousStrides(8, 3, 64));
  EXPECT_EQ(layouts.k, ContiguousStrides(2, 5, 64));
  EXPECT_EQ(layouts.v, layouts.k);
  EXPECT_EQ(layouts.o, layouts.q);
}

}  // namespace
}  // namespace warpledger::sdpa
