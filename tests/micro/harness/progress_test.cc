// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/progress.h"

#include <gmock/gmock.h>

namespace warpledger::harness {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

TEST(Progress, TellsTheFirstRunAndThenNotTooOften) {
  Progress progress(10);
  EXPECT_THAT(progress.Started("a", 0), Optional(std::string("1 of 10 runs, 0 s: a")));
  EXPECT_FALSE(progress.Started("b", 1).has_value());
  // Two runs took 3 s, eight are left.
  EXPECT_THAT(progress.Started("c", 3),
              Optional(std::string("3 of 10 runs, 3 s, about 12 s left: c")));
  EXPECT_FALSE(progress.Started("d", 4).has_value());
}

TEST(Progress, TellsTheLastRun) {
  Progress progress(2);
  (void)progress.Started("a", 0);
  EXPECT_THAT(progress.Started("b", 0.1), Optional(HasSubstr("2 of 2 runs")));
}

TEST(Progress, GuessesNothingWithoutATotal) {
  Progress progress(0);
  (void)progress.Started("a", 0);
  EXPECT_THAT(progress.Started("b", 5), Optional(std::string("2 runs, 5 s: b")));
}

TEST(ExplainDebugLibrary, ReplacesTheWarningAlone) {
  const std::string text = ExplainDebugLibrary(
      "Run on (2 X 2000 MHz CPUs)\n***WARNING*** Library was built as DEBUG. Timings may be "
      "affected.\nlast\n");
  EXPECT_THAT(text, HasSubstr("Run on (2 X 2000 MHz CPUs)\nGoogle Benchmark itself"));
  EXPECT_THAT(text, HasSubstr("events.\nlast\n"));
  EXPECT_THAT(text, Not(HasSubstr("WARNING")));
  EXPECT_EQ(ExplainDebugLibrary("as it was\n"), "as it was\n");
}

TEST(CountMatches, CountsAsGoogleBenchmarkFilters) {
  const std::vector<std::string> names = {"a/b/latency", "a/b/throughput", "c/b/latency"};
  EXPECT_EQ(CountMatches("", names), 3);
  EXPECT_EQ(CountMatches("all", names), 3);
  EXPECT_EQ(CountMatches("^a/", names), 2);
  EXPECT_EQ(CountMatches("latency$", names), 2);
  EXPECT_EQ(CountMatches("-latency", names), 1);
  EXPECT_EQ(CountMatches("nothing", names), 0);
  EXPECT_EQ(CountMatches("(", names), -1);
}

}  // namespace
}  // namespace warpledger::harness
