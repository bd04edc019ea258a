// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/expression.h"

#include "gmock/gmock.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;

const Parameters kSizes = {{"rows", 4}, {"cols", 8}};

TEST(ExpressionTest, HasTheUsualPrecedence) {
  EXPECT_EQ(*Evaluate("2 * rows * cols + 1", kSizes), 65);
  EXPECT_EQ(*Evaluate("rows - 1 - 1", kSizes), 2);
  EXPECT_EQ(*Evaluate("-(rows + 2) * 3 / 4", kSizes), -4.5);
  EXPECT_EQ(*Evaluate("cols % 3", kSizes), 2);
  EXPECT_EQ(*Evaluate(" 1e3 ", {}), 1000);
}

TEST(ExpressionTest, SaysWhatIsWrongAndWhere) {
  const auto why = [](const char* text) {
    return std::string(Evaluate(text, kSizes).status().message());
  };
  EXPECT_THAT(why("rows *"), HasSubstr("expected a number, a parameter or '(' at character 7"));
  EXPECT_THAT(why("rows cols"), HasSubstr("expected an operator at character 6"));
  EXPECT_THAT(why("(rows"), HasSubstr("expected ')'"));
  EXPECT_THAT(why("rows * colls"), HasSubstr("names 'colls', but the problem's parameters are "
                                             "cols, rows"));
  EXPECT_THAT(why("rows / (cols - 8)"), HasSubstr("divides by 0"));
  EXPECT_THAT(why("1e300 * 1e300"), HasSubstr("is not finite"));
  EXPECT_THAT(why(""), HasSubstr("expected a number"));
  EXPECT_THAT(why(std::string(10'000, '(').c_str()), HasSubstr("fewer brackets"));
}

TEST(ExpressionTest, CountsAreWholeNumbers) {
  EXPECT_EQ(*EvaluateCount("cols / rows", kSizes), 2);
  EXPECT_THAT(std::string(EvaluateCount("rows / cols", kSizes).status().message()),
              HasSubstr("'rows / cols' is 0.5, and must be a whole number"));
  EXPECT_FALSE(EvaluateCount("rows - cols", kSizes).ok());
}

}  // namespace
}  // namespace warpledger::ablations
