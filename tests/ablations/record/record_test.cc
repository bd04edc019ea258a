// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "ablations/stats/opcodes.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"
#include "kernels/sdpa/registry.h"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(RecordTest, ARunSurvivesTheRoundTrip) {
  const RunInfo run = ExampleRun();
  const absl::StatusOr<Json> json = ParseJson(DumpFile(ToJson(run)));
  ASSERT_TRUE(json.ok()) << json.status();
  const absl::StatusOr<RunInfo> again = FromJson<RunInfo>(*json);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, run);
}

// Records from before the field was written stay as they are.
TEST(RecordTest, ARunWithoutAProtocolHashLoadsAndStaysWithoutOne) {
  Json json = ToJson(ExampleRun());
  json.erase("protocol_sha256");
  const absl::StatusOr<RunInfo> run = FromJson<RunInfo>(json);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->protocol_sha256, "");
  EXPECT_EQ(ToJson(*run), json);
}

TEST(RecordTest, ARunWithoutTheLengthOfItsReplaysLoadsAndStaysWithoutIt) {
  Json json = ToJson(ExampleRun());
  EXPECT_EQ(json["replay_us"], 1000.0);
  EXPECT_EQ(json["max_launches"], 256);
  json.erase("replay_us");
  json.erase("max_launches");
  const absl::StatusOr<RunInfo> run = FromJson<RunInfo>(json);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->replay_us.has_value());
  EXPECT_EQ(ToJson(*run), json);
  json["max_launches"] = "many";
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()), HasSubstr("max_launches: expected"));
}

TEST(RecordTest, AStoppingRuleAndPlantedFaultsSurviveAndAreAbsentWhereThereAreNone) {
  RunInfo run = ExampleRun();
  EXPECT_FALSE(ToJson(run).contains("stopping"));
  EXPECT_FALSE(ToJson(run).contains("planted"));
  run.stopping = StoppingRule{
      .half_width = 0.01, .confidence = 0.95, .looks = {3, 5}, .alpha_shares = {0.5, 0.5}};
  run.planted = {{"trap", "ladder:kv_tiling", ""}, {"spin", "ladder:wmma_qk", "small"}};
  const absl::StatusOr<RunInfo> again = FromJson<RunInfo>(ToJson(run));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, run);
}

// A verdict is only as good as the schedule that it was paid by.
TEST(RecordTest, AScheduleOfLooksThatSpendsMoreThanAlphaOrHasNoOrderIsRefused) {
  RunInfo run = ExampleRun();
  const auto why = [&](std::vector<int> looks, std::vector<double> shares) {
    run.stopping = StoppingRule{.half_width = 0.01,
                                .confidence = 0.95,
                                .looks = std::move(looks),
                                .alpha_shares = std::move(shares)};
    return FromJson<RunInfo>(ToJson(run)).status();
  };
  EXPECT_TRUE(why({3, 5}, {0.25, 0.5}).ok());
  EXPECT_FALSE(why({3, 5}, {0.6, 0.5}).ok()) << "more than all of alpha";
  EXPECT_FALSE(why({3, 5}, {1.0}).ok());
  EXPECT_FALSE(why({3, 5}, {0, 1.0}).ok());
  EXPECT_FALSE(why({5, 3}, {0.5, 0.5}).ok());
  EXPECT_FALSE(why({0, 3}, {0.5, 0.5}).ok());
  EXPECT_FALSE(why({}, {}).ok());
}

TEST(RecordTest, ACacheModeIsWarmOrCold) {
  RunInfo run = ExampleRun();
  run.cache = kCacheCold;
  EXPECT_TRUE(FromJson<RunInfo>(ToJson(run)).ok());
  run.cache = "tepid";
  EXPECT_FALSE(FromJson<RunInfo>(ToJson(run)).ok());
}

TEST(RecordTest, ABrokenArmSurvivesTheRoundTripAndMustSayWhy) {
  const BrokenArm broken = {2, "ladder:kv_tiling", "small", "trap", "timing it", "it trapped"};
  const absl::StatusOr<BrokenArm> again = FromJson<BrokenArm>(ToJson(broken));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, broken);
  for (const char* field : {"process", "arm", "shape", "kind", "doing", "reason"}) {
    Json json = ToJson(broken);
    json.erase(field);
    EXPECT_FALSE(FromJson<BrokenArm>(json).ok()) << field;
  }
  Json silent = ToJson(broken);
  silent["reason"] = "";
  EXPECT_FALSE(FromJson<BrokenArm>(silent).ok());
}

TEST(RecordTest, UnknownGpuFactsAreNullAndComeBackEmpty) {
  RunInfo run = ExampleRun();
  run.gpu.ecc.reset();
  run.gpu.power_limit_w.reset();
  const Json json = ToJson(run);
  EXPECT_TRUE(json["gpu"]["ecc"].is_null());
  const absl::StatusOr<RunInfo> again = FromJson<RunInfo>(json);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, run);
}

TEST(RecordTest, ASampleIsOneLineWithTheFieldsInTheirOrder) {
  Sample sample = ExampleSample(0, "mission_b", 3, 5, "ladder:wmma_qk", 9.731);
  sample.seq = 12;
  sample.of = 6;
  EXPECT_EQ(DumpLine(ToJson(sample)),
            R"({"seq":12,"process":0,"shape":"mission_b","block":3,"order":5,"of":6,)"
            R"("arm":"ladder:wmma_qk","launches":64,"us":9.731,"sm_mhz":1980.0,"temp_c":41.0,)"
            R"("power_w":310.5,"throttle":0,"cache":"warm"})");
}

TEST(RecordTest, TimesKeepEveryBit) {
  for (const double us : {0.1, 1.0 / 3, 9.731, 1e-300, 123456789.123456789,
                          std::nextafter(1.0, 2.0), std::numeric_limits<double>::max()}) {
    Sample sample = ExampleSample(0, "small", 0, 0, "minimal_scalar", us);
    const absl::StatusOr<Json> json = ParseJson(DumpLine(ToJson(sample)));
    ASSERT_TRUE(json.ok()) << json.status();
    const absl::StatusOr<Sample> again = FromJson<Sample>(*json);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, sample) << us;
  }
}

TEST(RecordTest, FiguresThatNvmlDoesNotGiveAreNull) {
  Sample sample = ExampleSample(0, "small", 0, 0, "minimal_scalar", 1);
  sample.sm_mhz.reset();
  sample.throttle.reset();
  const Json json = ToJson(sample);
  EXPECT_TRUE(json["sm_mhz"].is_null());
  const absl::StatusOr<Sample> again = FromJson<Sample>(json);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, sample);
}

TEST(RecordTest, AnErrorThatIsNoNumberIsNullAndComesBackAsNan) {
  Check check = ExampleCheck("minimal_scalar", "small");
  check.max_err = std::numeric_limits<double>::infinity();
  check.lse_err = std::nan("");
  const Json json = ToJson(check);
  EXPECT_TRUE(json["max_err"].is_null());
  const absl::StatusOr<Check> again = FromJson<Check>(json);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(std::isnan(again->max_err));
  EXPECT_TRUE(std::isnan(again->lse_err));
  EXPECT_EQ(again->max_err_limit, check.max_err_limit);
}

TEST(RecordTest, AMissingFieldIsNamedWithItsPath) {
  Json json = ToJson(ExampleRun());
  json["arms"][2].erase("role");
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()), HasSubstr("arms[2].role: missing"));
  json = ToJson(ExampleRun());
  json["gpu"].erase("uuid");
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()), HasSubstr("gpu.uuid: missing"));
}

TEST(RecordTest, AFieldOfTheWrongTypeIsNamedWithWhatWasFound) {
  Json json = ToJson(ExampleRun());
  json["shapes"][1]["flops"] = "many";
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()),
              AllOf(HasSubstr("shapes[1].flops: expected a number"), HasSubstr("found \"many\"")));
  json = ToJson(ExampleRun());
  json["argv"][1] = 7;
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()), HasSubstr("argv[1]: expected a string"));
  json = ToJson(ExampleRun());
  json["seed"] = -1;
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()),
              HasSubstr("seed: expected an integer >= 0"));
  json = ToJson(ExampleRun());
  json["git"] = nullptr;
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()), HasSubstr("git: expected an object"));
  json = ToJson(ExampleRun());
  json["arms"] = 3;
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()), HasSubstr("arms: expected a list"));
}

TEST(RecordTest, NumbersThatDoNotFitAreErrorsAndNeverWrapAround) {
  Json json = ToJson(ExampleRun());
  json["processes"] = int64_t{1} << 40;
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()), HasSubstr("processes: expected a 32-bit"));
  json = ToJson(ExampleRun());
  json["gpu"]["l2_bytes"] = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()), HasSubstr("gpu.l2_bytes"));
  json = ToJson(ExampleRun());
  json["processes"] = 2.5;
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()),
              HasSubstr("processes: expected an integer"));
}

// Judging counts them one by one.
TEST(RecordTest, MoreProcessesOrBlocksThanAnyRunHasAreRefused) {
  for (const auto& [field, most] :
       {std::pair("processes", kMostProcesses), std::pair("blocks_per_process", kMostBlocks)}) {
    Json json = ToJson(ExampleRun());
    json[field] = most;
    EXPECT_TRUE(FromJson<RunInfo>(json).ok()) << field;
    for (const int bad : {-1, 0, most + 1, std::numeric_limits<int>::max()}) {
      json[field] = bad;
      EXPECT_THAT(
          Message(FromJson<RunInfo>(json).status()),
          HasSubstr(absl::StrCat(field, ": expected a number from 1 to 10000, found ", bad)));
    }
  }
}

TEST(RecordTest, ASampleOfANegativeProcessOrBlockIsRefused) {
  for (const char* field : {"process", "block"}) {
    Json json = ToJson(ExampleSample(0, "small", 0, 0, "minimal_scalar", 1));
    json[field] = -1;
    EXPECT_THAT(Message(FromJson<Sample>(json).status()),
                HasSubstr(absl::StrCat(field, ": expected a number from 0, found -1")));
  }
}

TEST(RecordTest, AnUnknownRoleIsAnError) {
  Json json = ToJson(ExampleRun());
  json["arms"][0]["role"] = "hero";
  EXPECT_THAT(Message(FromJson<RunInfo>(json).status()),
              HasSubstr("arms[0].role: expected one of"));
}

TEST(RecordTest, UnknownFieldsAreTolerated) {
  Json json = ToJson(ExampleRun());
  json["weather"] = "fine";
  json["arms"][0]["colour"] = "blue";
  EXPECT_TRUE(FromJson<RunInfo>(json).ok());
}

TEST(RecordTest, ANewerSchemaIsRefusedByName) {
  Json json = ToJson(ExampleRun());
  json["schema_version"] = kSchemaVersion + 1;
  const absl::Status status = FromJson<RunInfo>(json).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("this record has schema 2, this program reads up to 1"));
}

TEST(RecordTest, ATimeOfZeroIsNoSample) {
  Json json = ToJson(ExampleSample(0, "small", 0, 0, "minimal_scalar", 1));
  for (const Json& bad : {Json(0), Json(-1.5), Json(nullptr)}) {
    json["us"] = bad;
    EXPECT_THAT(Message(FromJson<Sample>(json).status()), HasSubstr("us: expected"));
  }
}

TEST(RecordTest, APeersLineNeedsNoBlockSize) {
  Json json = ToJson(ExampleSample(0, "small", 0, 0, "peer:cudnn", 1));
  json.erase("of");
  ASSERT_TRUE(FromJson<Sample>(json).ok());
  EXPECT_EQ(FromJson<Sample>(json)->of, 0);
}

TEST(RecordTest, TextThatIsNotJsonSaysWhere) {
  EXPECT_THAT(Message(ParseJson("{\"a\":1,}").status()), HasSubstr("column"));
  EXPECT_FALSE(ParseJson("").ok());
  EXPECT_FALSE(ParseJson("{} {}").ok());
}

TEST(RecordTest, BytesThatAreNotUtf8DoNotStopTheRecord) {
  RunInfo run = ExampleRun();
  run.argv = {"\xff\xfe"};
  EXPECT_TRUE(ParseJson(DumpLine(ToJson(run))).ok());
}

// What comes back of what was written, as JSON; null where it is refused.
template <typename T>
Json Again(const T& value) {
  const absl::StatusOr<T> again = FromText<T>(DumpFile(ToJson(value)));
  EXPECT_TRUE(again.ok()) << again.status();
  return again.ok() ? ToJson(*again) : Json();
}

TEST(RecordTest, FilesOfTheBuildSurviveTheRoundTrip) {
  const ResourcesFile resources = {{{"kv_tiling", "sm_90", 40, 1024, 0, 8, 16}}};
  EXPECT_EQ(Again(resources), ToJson(resources));
  const Codegen codegen = {"nvdisasm 13.0",
                           {{"kv_tiling", "sm_90", "c0", "d0", {{"HMMA.16816.F32", 32}}},
                            {"minimal_scalar", "sm_90", "c1", "d1", {}}}};
  EXPECT_EQ(Again(codegen), ToJson(codegen));
  EXPECT_EQ(ToJson(codegen)["instances"][0]["opcodes"]["HMMA.16816.F32"], 32);
  const LaunchFile launch = {{{"kv_tiling", 2048, 1024, 40, 64, 12}}};
  EXPECT_EQ(Again(launch), ToJson(launch));
  const PeersFile peers = {
      {{"peer:cudnn", "torch 2.11.0", true, "", {{"small", true, 1e-5, 2e-5}}}}};
  EXPECT_EQ(Again(peers), ToJson(peers));
}

TEST(RecordTest, CountsOfOpcodesThatCannotBeAddedAreRefused) {
  for (const int64_t count : {int64_t{-1}, kMostInstructions + 1}) {
    const Codegen codegen = {"", {{"kv_tiling", "sm_90", "c0", "d0", {{"FFMA", count}}}}};
    EXPECT_FALSE(FromJson<Codegen>(ToJson(codegen)).ok()) << count;
  }
  const Codegen most = {"", {{"kv_tiling", "sm_90", "c0", "d0", {{"FFMA", kMostInstructions}}}}};
  EXPECT_TRUE(FromJson<Codegen>(ToJson(most)).ok());
}

// Found by damaging records: a regular expression on such a text ended the program.
TEST(RecordTest, TextsTooLongForARegularExpressionAreRefused) {
  const std::string most(kMostMatchedBytes, 'A');
  const auto call = [](const std::string& line) {
    return FromJson<LaunchedCall>(
        ToJson(LaunchedCall{"ladder:kv_tiling", "small", {"by graph", line}}));
  };
  EXPECT_TRUE(call(most).ok());
  EXPECT_THAT(Message(call(most + "A").status()),
              AllOf(HasSubstr("lines[1]: expected at most 2048 bytes"), HasSubstr("(2049 bytes)")));
  const auto codegen = [](const std::string& opcode) {
    return FromJson<Codegen>(
        ToJson(Codegen{"", {{"kv_tiling", "sm_90", "c0", "d0", {{opcode, 1}}}}}));
  };
  EXPECT_TRUE(codegen(most).ok());
  EXPECT_THAT(Message(codegen(most + "A").status()),
              AllOf(HasSubstr("instances[0].opcodes: expected at most 2048 bytes"),
                    HasSubstr("(2049 bytes)")));
}

TEST(RecordTest, TheLongestTextsCanBeHeldAgainstTheExpressionsOfEachToggle) {
  std::string line = "kernel ";
  line.resize(kMostMatchedBytes, 'a');
  std::string opcode = "UTMALDG";
  opcode.resize(kMostMatchedBytes, 'A');
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    const std::string launched(row.evidence.launched);
    if (!launched.empty()) {
      EXPECT_THAT(analysis::WhyLaunchInvalid(
                      {.base = {{line}}, .candidate = {{"by graph", line}}, .pattern = launched}),
                  HasSubstr("0 lines of a call match"));
    }
    const std::string sass(row.evidence.sass);
    if (sass.empty()) continue;
    EXPECT_EQ(analysis::CountMatching({{opcode, 3}}, sass), 0) << sass;
  }
}

TEST(RecordTest, EmptyListsStayLists) {
  EXPECT_EQ(DumpLine(ToJson(PeersFile{})), R"({"schema_version":1,"peers":[]})");
  RunInfo run = ExampleRun();
  run.argv.clear();
  EXPECT_TRUE(ToJson(run)["argv"].is_array());
  const Codegen codegen = {"", {{"kv_tiling", "sm_90", "c0", "d0", {}}}};
  EXPECT_TRUE(ToJson(codegen)["instances"][0]["opcodes"].is_object());
}

TEST(RecordTest, TheComputeCapabilityNamesTheArchitecture) {
  GpuInfo gpu;
  gpu.compute_capability = "9.0";
  EXPECT_EQ(ArchOf(gpu), "sm_90");
  gpu.compute_capability = "10.3";
  EXPECT_EQ(ArchOf(gpu), "sm_103");
}

TEST(RecordTest, AGpuRunsTheNearestCodeOfItsGenerationThatIsNotNewer) {
  const std::vector<InstanceCodegen> all = {
      {"ladder", "sm_80", "", "", {}},      {"ladder", "sm_89", "", "", {}},
      {"ladder", "sm_90", "", "", {}},      {"mma", "sm_80", "", "", {}},
      {"mma", "sm_90", "", "", {}},         {"wgmma", "sm_90a", "", "", {}},
      {"both", "sm_90a", "", "", {}},       {"both", "sm_90", "", "", {}},
      {"torn", "sm_", "", "", {}},          {"torn", "90", "", "", {}},
      {"torn", "sm_9999999999", "", "", {}}};
  const auto arch = [&](std::string_view gpu, std::string_view variant) -> std::string {
    const InstanceCodegen* found = CodeFor(gpu, all, variant);
    return found != nullptr ? found->arch : "none";
  };
  EXPECT_EQ(arch("sm_89", "ladder"), "sm_89");
  EXPECT_EQ(arch("sm_89", "mma"), "sm_80");
  EXPECT_EQ(arch("sm_86", "ladder"), "sm_80");
  EXPECT_EQ(arch("sm_90", "both"), "sm_90");
  EXPECT_EQ(arch("sm_90", "wgmma"), "sm_90a");
  EXPECT_EQ(arch("sm_89", "wgmma"), "none");
  EXPECT_EQ(arch("sm_75", "ladder"), "none");
  EXPECT_EQ(arch("sm_103", "both"), "none");
  EXPECT_EQ(arch("sm_90", "torn"), "none");
}

// Sums of such sizes would overflow before anything could be said of them.
TEST(RecordTest, SizesThatNoMachineHasAreRefused) {
  for (const int64_t bytes : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    const ResourcesFile resources = {
        {{.variant = "kv_tiling", .arch = "sm_90", .registers = 40, .static_smem_bytes = bytes}}};
    EXPECT_THAT(Message(FromJson<ResourcesFile>(ToJson(resources)).status()),
                AllOf(HasSubstr("instances[0].static_smem_bytes"), HasSubstr("number of bytes")));
    const LaunchFile launches = {{{.variant = "kv_tiling", .dynamic_smem_bytes = bytes}}};
    EXPECT_THAT(Message(FromJson<LaunchFile>(ToJson(launches)).status()),
                HasSubstr("instances[0].dynamic_smem_bytes"));
  }
}

// What a problem's parameters are, its subject says; what they may be made of, the record.
TEST(RecordTest, AProblemsParametersAreNumbersWordsAndTruths) {
  RunInfo run = ExampleRun();
  run.shapes[0].fields["layout"] = "rows";
  const absl::StatusOr<RunInfo> again = FromJson<RunInfo>(ToJson(run));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, run);
  for (const Json& damaged : {Json::array(), Json::object(), Json(nullptr)}) {
    run.shapes[1].fields["seq_q"] = damaged;
    EXPECT_THAT(Message(FromJson<RunInfo>(ToJson(run)).status()), HasSubstr("shapes[1].seq_q"));
  }
}

TEST(RecordTest, EveryProblemDeclaresItsWork) {
  for (const char* work : {"flops", "min_bytes"}) {
    for (const Json& damaged : {Json("many"), Json(-1), Json(1e300)}) {
      RunInfo run = ExampleRun();
      run.shapes[1].fields[work] = damaged;
      EXPECT_THAT(Message(FromJson<RunInfo>(ToJson(run)).status()),
                  HasSubstr(absl::StrCat("shapes[1].", work)));
    }
  }
}

TEST(RecordTest, ARecordThatNamesNoSubjectIsOfTheFirst) {
  RunInfo run = ExampleRun();
  EXPECT_FALSE(ToJson(run).contains("subject"));
  run.subject = "stand_in";
  const absl::StatusOr<RunInfo> again = FromJson<RunInfo>(ToJson(run));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->subject, "stand_in");
}

}  // namespace
}  // namespace warpledger::ablations
