// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/toml_text.h"

#include "gmock/gmock.h"

namespace warpledger::ablations {
namespace {

using ::testing::StartsWith;

constexpr char kText[] = R"(name = "a"
[work]
flops = 3
[[claim]]
id = "x"
define = ["A",
  "B"]
[[claim]]
id = "y"
)";

TEST(TomlTextTest, IsJsonWithALineForEachValue) {
  const TomlText toml = *TomlText::Parse("s.toml", kText);
  EXPECT_EQ(
      toml.json().dump(),
      R"({"claim":[{"define":["A","B"],"id":"x"},{"id":"y"}],"name":"a","work":{"flops":3}})");
  EXPECT_EQ(toml.PlaceOf("name"), "s.toml:1");
  EXPECT_EQ(toml.PlaceOf("work.flops"), "s.toml:3");
  EXPECT_EQ(toml.PlaceOf("claim[0].define[1]"), "s.toml:7");
}

TEST(TomlTextTest, WhatIsAbsentIsWhereItsParentIs) {
  const TomlText toml = *TomlText::Parse("s.toml", kText);
  EXPECT_EQ(toml.PlaceOf("claim[1].label"), "s.toml:8");
  EXPECT_EQ(toml.PlaceOf("version"), "s.toml");
}

TEST(TomlTextTest, AnErrorHasFileAndLine) {
  const TomlText toml = *TomlText::Parse("s.toml", kText);
  EXPECT_EQ(toml.Located(absl::InvalidArgumentError("claim[0].id: it is taken")).message(),
            "s.toml:5: claim[0].id: it is taken");
  EXPECT_THAT(std::string(TomlText::Parse("s.toml", "a = 1\nb = \n").status().message()),
              StartsWith("s.toml:2: "));
}

}  // namespace
}  // namespace warpledger::ablations
