// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "kernels/sdpa/registry/registry.h"
#include "reports/sections/sections.h"
#include "tests/reports/from_json.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::HasSubstr;

const sdpa::ToggleRow& RowOf(std::string_view id) {
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.id == id) return row;
  }
  ADD_FAILURE() << "no toggle " << id;
  return sdpa::kToggles[0];
}

// The synthetic summary with microbenchmarks of one toggle: `off` is the value
// without, `on` with the technique.
std::string IsolatedSection(std::string_view toggle, const std::string& unit, double off,
                            double on) {
  std::ifstream file("tests/reports/testdata/summary.json");
  ordered_json json = ordered_json::parse(file);
  const sdpa::ToggleRow& row = RowOf(toggle);
  for (const auto& [name, value] : {std::pair(row.micro_off, off), std::pair(row.micro, on)}) {
    json["micro"].push_back(
        {{"name", name}, {"unit", unit}, {"value", value}, {"percent_of_limit", nullptr}});
  }
  json["provenance"]["micro"] = QuotedMicro();
  return IsolatedSection(ViewOf(json).value());
}

std::string Line(const std::string& text, const std::string& start) {
  const size_t begin = text.find(start);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(IsolatedSectionTest, SetsTheMicrobenchmarkBesideTheKernel) {
  const std::string text = IsolatedSection("warp_shuffle", "cycles", 40, 10);
  EXPECT_THAT(text, HasSubstr("`micro-1`"));
  const std::string line = Line(text, "| `warp_shuffle` |");
  EXPECT_THAT(line, HasSubstr("10.00 cycles, against"));
  EXPECT_THAT(line, HasSubstr("| 4.00× |"));
  EXPECT_THAT(line, HasSubstr("**"));
  EXPECT_THAT(text, HasSubstr("Part of the microbenchmark's gain that the kernel keeps"));
}

TEST(IsolatedSectionTest, ReadsRatesTheOtherWayRound) {
  EXPECT_THAT(Line(IsolatedSection("warp_shuffle", "GB/s", 40, 10), "| `warp_shuffle` |"),
              HasSubstr("| 0.250× |"));
}

TEST(IsolatedSectionTest, CountsUnitsThatDiffer) {
  const std::string line =
      Line(IsolatedSection("wmma_qk", "FLOP/clk/SM", 100, 1000), "| `wmma_qk` |");
  EXPECT_EQ(RowOf("wmma_qk").micro_off_factor, 2);
  EXPECT_THAT(line, HasSubstr("| 5.00× |"));
}

TEST(IsolatedSectionTest, NamesWhatHasNoEffectAloneAndWhatTurnsItsSign) {
  EXPECT_THAT(IsolatedSection("warp_shuffle", "cycles", 40, 40),
              HasSubstr("- No effect in the microbenchmark: "));
  EXPECT_THAT(IsolatedSection("warp_shuffle", "cycles", 10, 40), HasSubstr("- Opposite signs: "));
  EXPECT_THAT(IsolatedSection("warp_shuffle", "cycles", 40, 39),
              HasSubstr("- The kernel gains more than the microbenchmark: "));
}

TEST(IsolatedSectionTest, IsLeftOutWhereTheSummaryQuotesNothing) {
  std::ifstream file("tests/reports/testdata/summary.json");
  const Summary summary = ViewOf(ordered_json::parse(file)).value();
  EXPECT_EQ(IsolatedSection(summary), "");
}

TEST(IsolatedSectionTest, SaysWhichCaseTheRecordLacks) {
  const std::string text = IsolatedSection("warp_shuffle", "cycles", 40, 10);
  EXPECT_THAT(Line(text, "| `vector_loads` |"), HasSubstr("not in this record"));
}

}  // namespace
}  // namespace warpledger::report
