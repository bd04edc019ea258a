// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/oracles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpledger::fuzz {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(WhyNoPage, TakesWhatOurPagesHave) {
  EXPECT_THAT(WhyNoPage("# a < b\n\n| a | b |\n| :--- | ---: |\n| x\\|y<br>z | &lt;b> |\n\n| c |\n"
                        "<details><summary>2</summary>\n\n</details>\n<!-- generated -->\n"),
              IsEmpty());
}

TEST(WhyNoPage, NamesATagAControlCharacterAndACellTooMany) {
  EXPECT_THAT(WhyNoPage("ab <script>"), HasSubstr("a tag at byte 3"));
  EXPECT_THAT(WhyNoPage("</b>"), HasSubstr("a tag"));
  EXPECT_THAT(WhyNoPage("<!DOCTYPE"), HasSubstr("a tag"));
  EXPECT_THAT(WhyNoPage("a\x1b[2J"), HasSubstr("a control character at byte 1"));
  EXPECT_THAT(WhyNoPage("| a |\n| - |\n| b | c |\n"),
              HasSubstr("3 borders of cells in place of 2"));
  EXPECT_THAT(WhyNoPage("| a |\n| - |\n| b\\|c |\n"), IsEmpty());
}

TEST(WhyNoXml, TakesElementsAttributesAndTexts) {
  EXPECT_THAT(
      WhyNoXml("<?xml version=\"1.0\"?>\n<a b=\"1 &lt; 2\" c='\"'>\n <d/>x &amp; y\n</a>\n"),
      IsEmpty());
}

TEST(WhyNoXml, NamesWhatIsMalformed) {
  for (const char* xml :
       {"", "<a>", "<a></b>", "<a/><b/>", "<a b=\"1\" b=\"2\"/>", "<a b=1/>", "<a>&nbsp;</a>",
        "<a>\x1b</a>", "<a b=\"<\"/>", "<a b=\"1/>", "<a b='1\"/>", "</a>"}) {
    EXPECT_NE(WhyNoXml(xml), "") << xml;
  }
}

}  // namespace
}  // namespace warpledger::fuzz
