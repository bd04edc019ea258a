// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/dtypes/dtype_mistakes.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "kernels/sdpa/problem/kv_quantise.h"

namespace warpledger::ablations {
namespace {

using sdpa::InputKind;

constexpr uint64_t kSeed = 20261121;
constexpr int kRows = 8;

// Rows of two heads that are not finite, of 16.
int64_t NonFinite(std::string_view name, InputKind kind, int seq) {
  const sdpa::Problem problem = {
      .batch = 1, .heads_q = 2, .heads_kv = 2, .seq_q = kRows, .seq_kv = seq};
  for (const DtypeMistake& mistake : DtypeMistakes()) {
    if (mistake.name == name && mistake.inputs == kind) {
      return NonFiniteRows(mistake, problem, sdpa::MakeInputs(problem, kind, kSeed), kRows);
    }
  }
  ADD_FAILURE() << "no mistake " << name;
  return -1;
}

TEST(DtypeMistakes, NoneGivesNoNanAtAnyLength) {
  for (const int seq : {64, 500, 512, 4096}) {
    EXPECT_EQ(NonFinite("none", InputKind::kNormal, seq), 0) << seq;
  }
}

// The notes' explanation, refuted: N(0, 1) cast to E4M3 without any scale uses 1% of the range.
TEST(DtypeMistakes, Fp8sRangeIsNotItEvenWithoutAScale) {
  for (const int seq : {64, 512, 4096}) {
    EXPECT_EQ(NonFinite("no_scale", InputKind::kNormal, seq), 0) << seq;
  }
  const sdpa::Problem mission_b = {1, 8, 8, 512, 512, 64, false};
  float largest = 0;
  for (const sdpa::Fp16 x : sdpa::MakeInputs(mission_b, InputKind::kNormal, kSeed).k) {
    largest = std::max(largest, std::fabs(sdpa::Fp16ToFloat(x)));
  }
  EXPECT_LT(largest, 7.0f);
  EXPECT_GT(sdpa::LargestNumber(sdpa::KvFormat::kE4m3), 60 * largest);
}

// Where the range is left, it is at every length, not from 512 keys on.
TEST(DtypeMistakes, LeavingTheRangeShowsAtEveryLength) {
  for (const int seq : {64, 128, 256, 512}) {
    EXPECT_EQ(NonFinite("scaled_to_480", InputKind::kNormal, seq), 2 * kRows) << seq;
    EXPECT_EQ(NonFinite("integers_read_as_e4m3", InputKind::kNormal, seq), 2 * kRows) << seq;
  }
}

TEST(DtypeMistakes, PaddingOfNanShowsAtRaggedLengthsAlone) {
  EXPECT_EQ(NonFinite("padding_is_nan", InputKind::kNormal, 512), 0);
  EXPECT_EQ(NonFinite("padding_is_nan", InputKind::kNormal, 500), 2 * kRows);
}

TEST(DtypeMistakes, ExpWithoutMaximumShowsWithLogitsNotWithLength) {
  for (const int seq : {64, 512}) {
    EXPECT_EQ(NonFinite("fp16_exp_without_max", InputKind::kNormal, seq), 0) << seq;
    EXPECT_EQ(NonFinite("fp16_exp_without_max", InputKind::kLargeLogits, seq), 2 * kRows) << seq;
  }
}

// The one that begins at 512 keys: 512 * 128 = 65536, and fp16 ends at 65504.
TEST(DtypeMistakes, AZeroPointTakenAwayLastInFp16OverflowsFrom512KeysOn) {
  EXPECT_EQ(NonFinite("zero_point_last_without_max", InputKind::kNormal, 128), 0);
  EXPECT_EQ(NonFinite("zero_point_last_without_max", InputKind::kNormal, 512), 2 * kRows);
  // Where the L4 notes' own note of 256 to 384 steps begins and ends.
  EXPECT_LT(NonFinite("zero_point_last_without_max", InputKind::kNormal, 256), kRows);
  EXPECT_EQ(NonFinite("zero_point_last_without_max", InputKind::kNormal, 384), 2 * kRows);
  EXPECT_EQ(NonFinite("zero_point_last", InputKind::kConstant, 256), 0);
  EXPECT_EQ(NonFinite("zero_point_last", InputKind::kConstant, 512), 2 * kRows);
  EXPECT_EQ(NonFinite("zero_point_last", InputKind::kNormal, 512), 0);
}

}  // namespace
}  // namespace warpledger::ablations
