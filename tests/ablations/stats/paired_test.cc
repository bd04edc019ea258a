// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/paired.h"

#include <gmock/gmock.h>

#include <cmath>

namespace warpledger::analysis {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(PairedTest, SamplesOfOneProcessAndBlockMakeAPair) {
  const std::vector<Timing> base = {{.process = 0, .block = 0, .us = 10},
                                    {.process = 0, .block = 1, .us = 12},
                                    {.process = 1, .block = 0, .us = 30}};
  const std::vector<Timing> candidate = {{.process = 1, .block = 0, .us = 15},
                                         {.process = 0, .block = 1, .us = 6}};
  const std::vector<Pair> pairs = PairUp(base, candidate);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].base.us, 12);
  EXPECT_EQ(pairs[0].candidate.us, 6);
  EXPECT_EQ(pairs[1].base.process, 1);
}

TEST(PairedTest, AFasterCandidateHasALogRatioAboveZero) {
  const std::vector<Pair> pairs = {{{.process = 2, .us = 10}, {.process = 2, .us = 5}},
                                   {{.process = 2, .us = 10}, {.process = 2, .us = 20}},
                                   {{.process = 5, .us = 3}, {.process = 5, .us = 3}}};
  const double ln2 = std::log(2.0);
  EXPECT_THAT(
      LogRatiosByProcess(pairs),
      ElementsAre(ElementsAre(DoubleNear(ln2, 1e-12), DoubleNear(-ln2, 1e-12)), ElementsAre(0.0)));
}

TEST(PairedTest, CyclesAreTimesTheClock) {
  const std::vector<Pair> pairs = {
      {{.process = 2, .us = 10, .sm_mhz = 1500}, {.process = 2, .us = 10, .sm_mhz = 1200}}};
  EXPECT_THAT(LogCycleRatiosByProcess(pairs),
              ElementsAre(ElementsAre(DoubleNear(std::log(1.25), 1e-12))));
}

TEST(PairedTest, LogTimesAreGroupedByProcess) {
  const std::vector<Timing> timings = {
      {.process = 1, .us = 1}, {.process = 0, .us = M_E}, {.process = 1, .us = 1}};
  EXPECT_THAT(LogTimesByProcess(timings),
              ElementsAre(ElementsAre(DoubleNear(1, 1e-12)), ElementsAre(0.0, 0.0)));
}

}  // namespace
}  // namespace warpledger::analysis
