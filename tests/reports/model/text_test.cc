// SPDX-License-Identifier: Apache-2.0
#include "reports/model/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpledger::report {
namespace {

TEST(FormatSignificantTest, KeepsTrailingZerosAndUsesNoExponent) {
  EXPECT_EQ(FormatSignificant(9.73, 4), "9.730");
  EXPECT_EQ(FormatSignificant(3652, 4), "3652");
  EXPECT_EQ(FormatSignificant(1234567, 4), "1234567");
  EXPECT_EQ(FormatSignificant(0.000262144, 3), "0.000262");
  EXPECT_EQ(FormatSignificant(0, 3), "0");
  // No arithmetic on digits reaches these.
  EXPECT_EQ(FormatSignificant(5e-324, 4), "4.94066e-324");
  EXPECT_EQ(FormatSignificant(1.7976931348623157e308, 4), "1.79769e+308");
}

TEST(FormatSignificantTest, CountsDigitsAfterRoundingUpAPowerOfTen) {
  EXPECT_EQ(FormatSignificant(9.9996, 4), "10.00");
  EXPECT_EQ(FormatSignificant(999.96, 4), "1000");
  EXPECT_EQ(FormatSignificant(9.9994, 4), "9.999");
  EXPECT_EQ(FormatSignificant(0.1, 4), "0.1000");
  EXPECT_EQ(FormatSignificant(1000, 4), "1000");
}

TEST(FormatRatioTest, ShowsThreeDecimalsWhereTheNeutralZoneLies) {
  EXPECT_EQ(FormatRatio(1.0187), "1.019×");
  EXPECT_EQ(FormatRatio(0.2), "0.200×");
  EXPECT_EQ(FormatRatio(1.9996), "2.00×");
  EXPECT_EQ(FormatRatio(9.996), "10.0×");
  EXPECT_EQ(FormatRatio(40.04), "40.0×");
  EXPECT_EQ(FormatRatio(123.4), "123×");
}

TEST(FormatTest, PrintsAnEnDashForWhatDoesNotExist) {
  EXPECT_EQ(FormatUs(std::nullopt), "–");
  EXPECT_EQ(FormatRatio(std::nullopt), "–");
  EXPECT_EQ(FormatError(std::nullopt), "–");
  EXPECT_EQ(FormatInteger(std::nullopt), "–");
  EXPECT_EQ(FormatKib(std::nullopt), "–");
  EXPECT_EQ(FormatTflops(std::nullopt), "–");
  EXPECT_EQ(FormatUsInterval(1.0, std::nullopt), "–");
  EXPECT_EQ(FormatRatioInterval(std::nullopt, 1.0), "–");
}

TEST(FormatTest, PrintsFiguresWithTheirUsualDigits) {
  EXPECT_EQ(FormatError(3.14e-5), "3.1e-05");
  EXPECT_EQ(FormatKib(37120), "36.2");
  EXPECT_EQ(FormatPercent(0.95), "95%");
  EXPECT_EQ(FormatPercent(0.01), "1%");
  EXPECT_EQ(FormatLimit(1.1), "1.10×");
  EXPECT_EQ(FormatUsInterval(9.696, 9.76), "[9.696, 9.760]");
}

TEST(JoinWordsTest, PutsAndBeforeTheLastWord) {
  EXPECT_EQ(JoinWords({}), "");
  EXPECT_EQ(JoinWords({"a"}), "a");
  EXPECT_EQ(JoinWords({"a", "b"}), "a and b");
  EXPECT_EQ(JoinWords({"a", "b", "c"}), "a, b and c");
}

TEST(CountTest, UsesTheSingularForExactlyOne) {
  EXPECT_EQ(Count(0, "step"), "0 steps");
  EXPECT_EQ(Count(1, "step"), "1 step");
  EXPECT_EQ(Count(2, "step"), "2 steps");
}

TEST(PlainTextTest, ShowsTextAsTextInProseAndOnATerminal) {
  EXPECT_EQ(PlainText("<b>\x1b[2J\r\x7f\xc2\x9b"
                      "1m a\nb\tc"),
            "&lt;b>[2J1m a b c");
  EXPECT_EQ(PlainText("[here](javascript:x) `code`"), "[here] (javascript:x) `code`");
  const std::string once = PlainText("<a> [b](c) `d` \xc2\xb5s ×");
  EXPECT_EQ(PlainText(once), once);
  EXPECT_THAT(once, testing::EndsWith("\xc2\xb5s ×"));
}

TEST(TableTest, KeepsItsColumnsWhateverATitleHolds) {
  Table table("a");
  table.AddColumn("over x|<b>:");
  EXPECT_EQ(table.ToMarkdown(), "| a | over x\\|&lt;b> |\n| :--- | ---: |\n");
}

TEST(TableTest, KeepsItsColumnsAndShowsTextAsTextWhateverACellHolds) {
  Table table("a | b:");
  table.AddRow({"x|y\nz<b>\x1b[2J\r", "1"});
  EXPECT_EQ(table.ToMarkdown(), "| a | b |\n| :--- | ---: |\n| x\\|y z&lt;b>[2J | 1 |\n");
}

TEST(TableTest, FillsMissingCells) {
  Table table("a | b");
  EXPECT_TRUE(table.empty());
  table.AddRow({"x"});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.ToMarkdown(), "| a | b |\n| :--- | :--- |\n| x | – |\n");
}

}  // namespace
}  // namespace warpledger::report
