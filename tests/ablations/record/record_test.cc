// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/record.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <utility>

#include "ablations/stats/opcodes.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"
#include "kernels/sdpa/registry/registry.h"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Writes `value` and reads it back as the same; returns what was written.
template <typename T>
Json RoundTrip(const T& value) {
  const Json json = ToJson(value);
  const T again = FromText<T>(DumpFile(json)).value();
  EXPECT_EQ(ToJson(again), json);
  if constexpr (std::equality_comparable<T>) {
    EXPECT_EQ(again, value);
  }
  return json;
}

TEST(RecordTest, WhatIsWrittenIsRead) {
  RunInfo run = ExampleRun();
  run.stopping = StoppingRule{
      .half_width = 0.01, .confidence = 0.95, .looks = {3, 5}, .alpha_shares = {0.5, 0.5}};
  run.planted = {{"trap", "ladder:kv_tiling", ""}, {"spin", "ladder:wmma_qk", "small"}};
  run.cache = kCacheCold;
  run.gpu.power_limit_w.reset();
  EXPECT_TRUE(RoundTrip(run)["gpu"]["power_limit_w"].is_null());
  Sample sample = ExampleSample(0, "small", 0, 0, "minimal_scalar", 1);
  sample.sm_mhz.reset();
  EXPECT_TRUE(RoundTrip(sample)["sm_mhz"].is_null());
  RoundTrip(ExampleCheck("minimal_scalar", "small"));
  RoundTrip(BrokenArm{2, "ladder:kv_tiling", "small", "trap", "timing it", "it trapped"});
  RoundTrip(ResourcesFile{{{"kv_tiling", "sm_90", 40, 1024, 0, 8, 16}}});
  RoundTrip(Codegen{"nvdisasm 13.0",
                    {{"kv_tiling", "sm_90", "c0", "d0", {{"HMMA.16816.F32", kMostInstructions}}},
                     {"minimal_scalar", "sm_90", "c1", "d1", {}}}});
  RoundTrip(LaunchFile{{{"kv_tiling", 2048, 1024, 40, 64, 12}}});
  RoundTrip(PeersFile{{{"peer:cudnn", "torch 2.11.0", true, "", {{"small", true, 1e-5, 2e-5}}}}});
}

// Records from before such a field was written stay as they are.
TEST(RecordTest, WhatARunDoesNotSayIsAbsentAndStaysSo) {
  Json json = RoundTrip(ExampleRun());
  EXPECT_EQ(json["replay_us"], 1000.0);
  EXPECT_FALSE(json.contains("stopping") || json.contains("planted"));
  for (const char* field : {"protocol_sha256", "replay_us", "max_launches"}) {
    json.erase(field);
    const RunInfo run = FromJson<RunInfo>(json).value();
    EXPECT_EQ(ToJson(run), json) << field;
  }
}

TEST(RecordTest, TimesKeepEveryBit) {
  for (const double us : {0.1, 1.0 / 3, 9.731, 1e-300, 123456789.123456789,
                          std::nextafter(1.0, 2.0), std::numeric_limits<double>::max()}) {
    RoundTrip(ExampleSample(0, "small", 0, 0, "minimal_scalar", us));
  }
}

TEST(RecordTest, APeersLineNeedsNoBlockSize) {
  Json json = ToJson(ExampleSample(0, "small", 0, 0, "peer:cudnn", 1));
  json.erase("of");
  ASSERT_TRUE(FromJson<Sample>(json).ok());
  EXPECT_EQ(FromJson<Sample>(json)->of, 0);
}

// A value in the place of another, and what the refusal says.
struct Damage {
  const char* where;
  Json value;
  std::string error;
};

template <typename T>
void ExpectRefused(const T& good, const std::vector<Damage>& damages) {
  ASSERT_TRUE(FromJson<T>(ToJson(good)).ok());
  for (const auto& [where, value, error] : damages) {
    Json json = ToJson(good);
    json[Json::json_pointer(where)] = value;
    EXPECT_THAT(Message(FromJson<T>(json).status()), HasSubstr(error)) << where << " = " << value;
  }
}

TEST(RecordTest, ADamagedRunIsRefusedByTheFieldThatIsWrong) {
  std::vector<Damage> damages = {
      {"/shapes/1/flops", "many", "shapes[1].flops: expected a number, found \"many\""},
      {"/argv/1", 7, "argv[1]: expected a string"},
      {"/seed", -1, "seed: expected an integer >= 0"},
      {"/git", nullptr, "git: expected an object"},
      {"/arms", 3, "arms: expected a list"},
      {"/arms/0/role", "hero", "arms[0].role: expected one of"},
      {"/arms/2", Json::object(), "arms[2].name: missing"},
      {"/gpu/l2_bytes", std::numeric_limits<uint64_t>::max(), "gpu.l2_bytes"},
      {"/processes", int64_t{1} << 40, "processes: expected a 32-bit"},
      {"/processes", 2.5, "processes: expected an integer"},
      {"/max_launches", "many", "max_launches: expected"},
      {"/cache", "tepid", "cache: expected warm or cold"},
      {"/schema_version", kSchemaVersion + 1,
       "this record has schema 2, this program reads up to 1"},
  };
  // Judging counts them one by one.
  for (const char* where : {"/processes", "/blocks_per_process"}) {
    for (const int bad : {-1, 0, kMostProcesses + 1, std::numeric_limits<int>::max()}) {
      damages.push_back(
          {where, bad, absl::StrCat(": expected a number from 1 to 10000, found ", bad)});
    }
  }
  ExpectRefused(ExampleRun(), damages);
  Json newer = ToJson(ExampleRun());
  newer["schema_version"] = kSchemaVersion + 1;
  EXPECT_EQ(FromJson<RunInfo>(newer).status().code(), absl::StatusCode::kFailedPrecondition);
}

// Names reach pages, pictures, file names and the terminal as they stand.
TEST(RecordTest, ANameThatIsMoreThanANameIsRefused) {
  std::vector<Damage> damages;
  for (const char* name : {"<script>alert(1)</script>", "a\x1b]0;title\x07", "two\nlines",
                           "[link](x)", "`code`", "a|b", "a\"b", "a&amp;b", "$(x)", "a\x7f"}) {
    for (const char* where : {"/arms/0/name", "/arms/1/base", "/shapes/0/name", "/gpu/name",
                              "/design", "/family", "/run_id"}) {
      damages.push_back({where, name, "expected a plain name"});
    }
  }
  damages.push_back({"/arms/0/name", std::string(1001, 'a'), "expected a plain name"});
  // What is shown of it is no command to the terminal.
  damages.push_back({"/arms/0/name", "a\x1b[2J", "found \"a\\x1b[2J\""});
  ExpectRefused(ExampleRun(), damages);
}

TEST(RecordTest, ADamagedLineIsRefusedByTheFieldThatIsWrong) {
  ExpectRefused(ExampleSample(0, "small", 0, 0, "minimal_scalar", 1),
                {{"/process", -1, "process: expected a number from 0, found -1"},
                 {"/block", -1, "block: expected a number from 0, found -1"},
                 {"/us", 0, "us: expected a time above 0"},
                 {"/us", -1.5, "us: expected a time above 0"},
                 {"/us", nullptr, "us: expected a number"}});
  ExpectRefused(
      BrokenArm{2, "ladder:kv_tiling", "small", "trap", "timing it", "it trapped"},
      {{"/kind", "", "kind: expected a text"}, {"/reason", "", "reason: expected a text"}});
  // Found by damaging records: a regular expression on such a text ended the program.
  const std::string most(kMostMatchedBytes, 'A');
  ExpectRefused(LaunchedCall{"ladder:kv_tiling", "small", {"by graph", most}},
                {{"/lines/1", most + "A", "lines[1]: expected at most 2048 bytes"},
                 {"/lines", Json::array(), "at least how the calls are launched"}});
}

TEST(RecordTest, DamagedFactsOfTheBuildAreRefusedByTheFieldThatIsWrong) {
  const std::string most(kMostMatchedBytes, 'A');
  ExpectRefused(Codegen{"", {{"kv_tiling", "sm_90", "c0", "d0", {{most, 1}}}}},
                {{"/instances/0/opcodes", {{"FFMA", -1}}, "opcodes.FFMA: expected a number from 0"},
                 {"/instances/0/opcodes", {{"FFMA", kMostInstructions + 1}}, "opcodes.FFMA"},
                 {"/instances/0/opcodes",
                  {{most + "A", 1}},
                  "instances[0].opcodes: expected at most 2048 bytes"}});
  // Sums of such sizes would overflow before anything could be said of them.
  for (const int64_t bytes : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    ExpectRefused(ResourcesFile{{{"kv_tiling", "sm_90", 40, 1024, 0, 8, 16}}},
                  {{"/instances/0/static_smem_bytes", bytes,
                    "instances[0].static_smem_bytes: expected a number of bytes"}});
    ExpectRefused(LaunchFile{{{"kv_tiling", 2048, 1024, 40, 64, 12}}},
                  {{"/instances/0/dynamic_smem_bytes", bytes,
                    "instances[0].dynamic_smem_bytes: expected a number of bytes"}});
  }
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

TEST(RecordTest, ASampleIsOneLineWithTheFieldsInTheirOrder) {
  Sample sample = ExampleSample(0, "mission_b", 3, 5, "ladder:wmma_qk", 9.731);
  sample.seq = 12;
  sample.of = 6;
  EXPECT_EQ(DumpLine(ToJson(sample)),
            R"({"seq":12,"process":0,"shape":"mission_b","block":3,"order":5,"of":6,)"
            R"("arm":"ladder:wmma_qk","launches":64,"us":9.731,"sm_mhz":1980.0,"temp_c":41.0,)"
            R"("power_w":310.5,"throttle":0,"cache":"warm"})");
}

TEST(RecordTest, AnErrorThatIsNoNumberIsNullAndComesBackAsNan) {
  Check check = ExampleCheck("minimal_scalar", "small");
  check.max_err = std::numeric_limits<double>::infinity();
  check.lse_err = std::nan("");
  const Json json = ToJson(check);
  EXPECT_TRUE(json["max_err"].is_null());
  const Check again = FromJson<Check>(json).value();
  EXPECT_TRUE(std::isnan(again.max_err));
  EXPECT_TRUE(std::isnan(again.lse_err));
  EXPECT_EQ(again.max_err_limit, check.max_err_limit);
}

TEST(RecordTest, BytesThatAreNotUtf8DoNotStopTheRecord) {
  RunInfo run = ExampleRun();
  run.argv = {"\xff\xfe"};
  EXPECT_TRUE(ParseJson(DumpLine(ToJson(run))).ok());
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

// What a problem's parameters are, its subject says; what they may be made of, the record.
TEST(RecordTest, AProblemsParametersAreNumbersWordsAndTruths) {
  RunInfo run = ExampleRun();
  run.shapes[0].fields["layout"] = "rows";
  const RunInfo again = FromJson<RunInfo>(ToJson(run)).value();
  EXPECT_EQ(again, run);
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
  const RunInfo again = FromJson<RunInfo>(ToJson(run)).value();
  EXPECT_EQ(again.subject, "stand_in");
}

}  // namespace
}  // namespace warpledger::ablations
