// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/job.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;

WorkerJob ExampleJob() {
  WorkerJob job;
  job.design = "ladder";
  job.shapes = {"small", "mission_b"};
  job.process = 2;
  job.seed = std::numeric_limits<uint64_t>::max();
  job.blocks = 24;
  job.replay_us = 0.1;
  job.max_launches = 256;
  job.cache = "cold";
  job.done = {{"mission_b", 3}, {"small", 0}, {"small", 1}};
  job.excluded = {{"ladder:wmma_pv", "small"}};
  job.planted = {{"trap", "ladder:wmma_qk", "mission_b"}};
  return job;
}

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  if (at == std::string::npos) {
    ADD_FAILURE() << what << " is not in " << text;
    return text;
  }
  return text.replace(at, what.size(), with);
}

TEST(WorkerJob, SurvivesTheWayThroughAPipeInEveryField) {
  const WorkerJob job = ExampleJob();
  const absl::StatusOr<WorkerJob> read = FromText<WorkerJob>(DumpLine(ToJson(job)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->design, job.design);
  EXPECT_EQ(read->shapes, job.shapes);
  EXPECT_EQ(read->process, job.process);
  EXPECT_EQ(read->seed, job.seed);
  EXPECT_EQ(read->blocks, job.blocks);
  EXPECT_EQ(read->replay_us, job.replay_us);
  EXPECT_EQ(read->max_launches, job.max_launches);
  EXPECT_EQ(read->cache, job.cache);
  EXPECT_EQ(read->done, job.done);
  EXPECT_EQ(read->excluded, job.excluded);
  EXPECT_EQ(read->planted, job.planted);
}

// One pair of a string and a number must not turn into an object.
TEST(WorkerJob, SurvivesWithNothingDoneAndWithOneBlockDone) {
  WorkerJob job = ExampleJob();
  job.done.clear();
  job.shapes = {"small"};
  EXPECT_TRUE(FromText<WorkerJob>(DumpLine(ToJson(job)))->done.empty());
  job.done = {{"small", 7}};
  EXPECT_EQ(FromText<WorkerJob>(DumpLine(ToJson(job)))->done, job.done);
  EXPECT_EQ(FromText<WorkerJob>(DumpLine(ToJson(job)))->shapes, job.shapes);
}

TEST(WorkerJob, IsOneLine) {
  EXPECT_EQ(DumpLine(ToJson(ExampleJob())).find('\n'), std::string::npos);
}

TEST(WorkerJob, RefusesTextThatIsNoJob) {
  for (const char* text : {"", "{", "[]", "null", "\"job\"", "{}"}) {
    EXPECT_EQ(FromText<WorkerJob>(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(WorkerJob, RefusesAJobWithoutOneOfItsFieldsAndNamesTheField) {
  for (const std::string field : {"design", "shapes", "process", "seed", "blocks", "replay_us",
                                  "max_launches", "cache", "done", "excluded", "planted"}) {
    const std::string text =
        Replaced(DumpLine(ToJson(ExampleJob())), '"' + field + '"', "\"other\"");
    const absl::Status status = FromText<WorkerJob>(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
}

TEST(WorkerJob, RefusesAFieldOfAnotherType) {
  const std::string text = DumpLine(ToJson(ExampleJob()));
  for (const auto& [what, with] :
       std::vector<std::pair<std::string, std::string>>{{"\"ladder\"", "7"},
                                                        {"[\"small\",\"mission_b\"]", "\"small\""},
                                                        {"\"blocks\":24", "\"blocks\":\"many\""},
                                                        {"[\"mission_b\",3]", "[\"mission_b\"]"},
                                                        {"[\"mission_b\",3]", "\"mission_b\""}}) {
    EXPECT_EQ(FromText<WorkerJob>(Replaced(text, what, with)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << what;
  }
}

TEST(WorkerJob, RefusesMoreBlocksThanAnyRunHasAndNegativeProcesses) {
  const std::string text = DumpLine(ToJson(ExampleJob()));
  for (const char* with : {"\"blocks\":0", "\"blocks\":10001", "\"blocks\":2147483647"}) {
    EXPECT_THAT(
        std::string(FromText<WorkerJob>(Replaced(text, "\"blocks\":24", with)).status().message()),
        HasSubstr("blocks: expected a number from 1 to 10000"))
        << with;
  }
  EXPECT_FALSE(FromText<WorkerJob>(Replaced(text, "\"process\":2", "\"process\":-1")).ok());
}

constexpr sdpa::Problem kMissionB = {1, 8, 8, 512, 512, 64, false};

TEST(RotationSets, IsTheInputSetsWhereTheL2IsWarm) {
  EXPECT_EQ(*RotationSets(sdpa::MinBytes(kMissionB), kCacheWarm, 60 << 20), kInputSets);
}

TEST(RotationSets, TouchesAMultipleOfTheL2WhereItIsCold) {
  for (const int64_t l2_bytes : {int64_t{50} << 20, int64_t{60} << 20, int64_t{126} << 20}) {
    const absl::StatusOr<int> sets = RotationSets(sdpa::MinBytes(kMissionB), kCacheCold, l2_bytes);
    ASSERT_TRUE(sets.ok()) << sets.status();
    const double touched = *sets * sdpa::MinBytes(kMissionB);
    EXPECT_GE(touched, kColdL2Multiple * static_cast<double>(l2_bytes));
    EXPECT_LT(touched, kColdL2Multiple * static_cast<double>(l2_bytes) +
                           kInputSets * sdpa::MinBytes(kMissionB));
    EXPECT_EQ(*sets % kInputSets, 0);
  }
}

TEST(RotationSets, IsTheInputSetsWhereOneOfThemIsLargerThanTheL2) {
  EXPECT_EQ(
      *RotationSets(sdpa::MinBytes({32, 32, 32, 2048, 2048, 64, false}), kCacheCold, 60 << 20),
      kInputSets);
}

TEST(RotationSets, RefusesAShapeTooSmallToEverLeaveTheL2) {
  const absl::Status status =
      RotationSets(sdpa::MinBytes({1, 1, 1, 32, 32, 64, false}), kCacheCold, 60 << 20).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--cache=warm"));
}

}  // namespace
}  // namespace warpledger::ablations
