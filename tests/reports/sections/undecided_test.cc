// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "reports/sections/sections.h"
#include "tests/reports/from_json.h"
#include "tests/reports/synthetic_summary.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;

TEST(UndecidedSectionTest, ListsInconclusiveVerdictsAloneWithWhatWouldDecideThem) {
  ordered_json json = Synthetic();
  for (ordered_json& verdict : json["verdicts"]) verdict["verdict"] = "NEUTRAL";
  EXPECT_EQ(UndecidedSection(ViewOf(json).value()), "");
  const auto leave_open = [&](const char* shape) -> ordered_json& {
    ordered_json& verdict = Find(json["verdicts"], "toggle", "wmma_pv", shape);
    verdict["verdict"] = "INCONCLUSIVE";
    return verdict;
  };
  ordered_json& both = leave_open("long");
  both["boards_to_decide"] = 3;
  both["processes_to_decide"] = 17;
  leave_open("small");
  leave_open("medium")["n_processes"] = 1;
  const std::string text = UndecidedSection(ViewOf(json).value());
  EXPECT_THAT(text, HasSubstr("| `ladder:wmma_pv` | `long` | "));
  EXPECT_THAT(text, HasSubstr(" | 3 | 17 |\n"));
  EXPECT_THAT(text, HasSubstr(" | – | – |\n"));
  EXPECT_THAT(text, HasSubstr(" | – | 2 at least |\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4 + 2 + 3);
}

}  // namespace
}  // namespace warpledger::report
