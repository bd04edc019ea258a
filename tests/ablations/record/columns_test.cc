// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/columns.h"

#include <gmock/gmock.h>

#include <string>

#include "ablations/record/record_lines.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;

std::string WithSum(const std::string& body, const std::string& sum) {
  return body + ",\"sum\":\"" + sum + "\"}\n";
}

TEST(Columns, StandTogetherBehindTheNumberOfLines) {
  EXPECT_EQ(ToColumns("{\"a\":1,\"b\":2}\n{\"a\":3,\"b\":4}\n"),
            "2\n{\"a\":1,{\"a\":3,\"b\":2}\n\"b\":4}\n");
  EXPECT_EQ(ToColumns("a,b,c\nd\ne,f\n"), "3\na,d\ne,b,f\nc\n");
  EXPECT_EQ(ToColumns("\n"), "1\n\n");
}

TEST(Columns, LeaveTheDigitsOfARightSumOut) {
  const std::string body = R"({"us":1.5)";
  EXPECT_EQ(ToColumns(WithSum(body, SumOf(body))), "1\n{\"us\":1.5,\"sum\":\"\"}\n");
  EXPECT_EQ(ToColumns(WithSum(body, "00000000")), "1\n{\"us\":1.5,\"sum\":\"00000000\"}\n");
}

TEST(Columns, GiveTheSameLinesAgain) {
  const std::string body = R"({"arm":"a, \"b\"","us":1.5)";
  const std::string summed = SummedLine({{"arm", "a"}, {"list", {1, 2, 3}}});
  for (const std::string& lines :
       {std::string("\n"), std::string("\n\n,\n"), std::string("{}\n"), std::string(",,,\n,\n"),
        std::string("no JSON\n\0\xff,\r\n", 13), WithSum(body, SumOf(body)),
        WithSum(body, "00000000"), summed + "{}\n" + summed, summed + summed + "a,b\n"}) {
    const std::optional<std::string> columns = ToColumns(lines);
    ASSERT_TRUE(columns.has_value()) << lines;
    EXPECT_EQ(FromColumns(*columns).value(), lines);
  }
}

TEST(Columns, ThereAreNoneOfWhatWouldComeOutOtherwise) {
  EXPECT_EQ(ToColumns(""), std::nullopt);
  EXPECT_EQ(ToColumns("{}"), std::nullopt);
  EXPECT_EQ(ToColumns("{}\n{"), std::nullopt);
  EXPECT_EQ(ToColumns(WithSum("{\"us\":1.5", "")), std::nullopt);
  EXPECT_EQ(ToColumns(std::string(kMaxPieces + 1, '\n')), std::nullopt);
}

TEST(Columns, ThatAreDamagedAreRefused) {
  for (const char* columns :
       {"", "\n", "1", "1\n", "x\n\n", "0\n", "00\n\n", "01\n\n", "+1\n\n", " 1\n\n", "-1\n\n",
        "2\n\n", "1\na", "1\na,\nb", "1000000000\n\n", "18446744073709551617\n\n"}) {
    EXPECT_THAT(FromColumns(columns),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is wrong")))
        << columns;
  }
  EXPECT_THAT(FromColumns("2\na,b,c\n"), StatusIs(testing::_, HasSubstr("end before its lines")));
  EXPECT_THAT(FromColumns("1\na,"), StatusIs(testing::_, HasSubstr("end before its lines")));
  EXPECT_THAT(FromColumns("1\na\nb\n"), StatusIs(testing::_, HasSubstr("go on behind")));
  EXPECT_THAT(FromColumns("1\n" + std::string(kMaxPieces + 1, '\n')),
              StatusIs(testing::_, HasSubstr("is wrong")));
}

}  // namespace
}  // namespace warpledger::ablations
