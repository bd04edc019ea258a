// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/job.h"

#include <limits>

#include "gmock/gmock.h"
#include "tests/status_matchers.h"

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

TEST(WorkerJob, SurvivesTheWayThroughAPipeInOneLine) {
  WorkerJob job = ExampleJob();
  const std::string line = DumpLine(ToJson(job));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const WorkerJob read = FromText<WorkerJob>(line).value();
  EXPECT_EQ(read, job);
  // One pair of a string and a number must not turn into an object.
  job.done = {{"small", 7}};
  EXPECT_EQ(*FromText<WorkerJob>(DumpLine(ToJson(job))), job);
  job.done.clear();
  EXPECT_EQ(*FromText<WorkerJob>(DumpLine(ToJson(job))), job);
}

TEST(WorkerJob, RefusesTextThatIsNoJob) {
  for (const char* text : {"", "{", "[]", "null", "\"job\"", "{}"}) {
    EXPECT_EQ(FromText<WorkerJob>(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(WorkerJob, RefusesFieldsThatAreMissingOrWrongAndNamesThem) {
  const nlohmann::ordered_json good = ToJson(ExampleJob());
  const auto refused = [](const nlohmann::ordered_json& json, const std::string& error) {
    EXPECT_THAT(FromJson<WorkerJob>(json),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)));
  };
  for (const auto& [field, value] : good.items()) {
    nlohmann::ordered_json json = good;
    json.erase(field);
    refused(json, field + ": missing");
    json[field] = nullptr;
    refused(json, field + ": expected");
  }
  const std::pair<const char*, nlohmann::ordered_json> wrong[] = {
      {"blocks", 0},   {"blocks", kMostBlocks + 1}, {"blocks", 2147483647},
      {"process", -1}, {"done", {"mission_b"}},     {"done", {{"mission_b"}}}};
  for (const auto& [field, value] : wrong) {
    nlohmann::ordered_json json = good;
    json[field] = value;
    refused(json, field);
  }
}

constexpr sdpa::Problem kMissionB = {1, 8, 8, 512, 512, 64, false};

TEST(RotationSets, IsTheInputSetsWhereTheL2IsWarm) {
  EXPECT_EQ(*RotationSets(sdpa::MinBytes(kMissionB), kCacheWarm, 60 << 20), kInputSets);
}

TEST(RotationSets, TouchesAMultipleOfTheL2WhereItIsCold) {
  for (const int64_t l2_bytes : {int64_t{50} << 20, int64_t{60} << 20, int64_t{126} << 20}) {
    const int sets = RotationSets(sdpa::MinBytes(kMissionB), kCacheCold, l2_bytes).value();
    const double touched = sets * sdpa::MinBytes(kMissionB);
    EXPECT_GE(touched, kColdL2Multiple * static_cast<double>(l2_bytes));
    EXPECT_LT(touched, kColdL2Multiple * static_cast<double>(l2_bytes) +
                           kInputSets * sdpa::MinBytes(kMissionB));
    EXPECT_EQ(sets % kInputSets, 0);
  }
}

TEST(RotationSets, IsTheInputSetsWhereOneOfThemIsLargerThanTheL2) {
  EXPECT_EQ(
      *RotationSets(sdpa::MinBytes({32, 32, 32, 2048, 2048, 64, false}), kCacheCold, 60 << 20),
      kInputSets);
}

TEST(RotationSets, RefusesAShapeTooSmallToEverLeaveTheL2) {
  EXPECT_THAT(RotationSets(sdpa::MinBytes({1, 1, 1, 32, 32, 64, false}), kCacheCold, 60 << 20),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--cache=warm")));
}

}  // namespace
}  // namespace warpledger::ablations
