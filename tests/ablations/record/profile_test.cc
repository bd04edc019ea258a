// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/profile.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "ablations/base/files.h"
#include "ablations/judge/summarize.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/subject.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Printed by ncu 2025.3.1 on an NVIDIA H200.
constexpr char kPingPong[] = "tests/ablations/record/testdata/ncu_ping_pong.csv";
constexpr char kFailed[] = "tests/ablations/record/testdata/ncu_application_failed.csv";

std::string NcuOutput(const char* path) { return ReadFile(path).value(); }

std::string ErrorOf(std::string_view output) {
  const auto launches = ParseNcuCsv(output);
  EXPECT_FALSE(launches.ok());
  return std::string(launches.status().message());
}

TEST(ParseNcuCsv, ReadsALaunchThatNcuPrintedAmongItsMessages) {
  const KernelProfile profile = ParseNcuCsv(NcuOutput(kPingPong)).value().front();
  EXPECT_THAT(profile.kernel, HasSubstr("ping_pong"));
  EXPECT_EQ(profile.grid, "(24, 1, 1)");
  EXPECT_EQ(profile.block, "(512, 1, 1)");
  EXPECT_EQ(profile.compute_capability, "9.0");
  EXPECT_EQ(profile.metrics.size(), 10u);
  EXPECT_EQ(profile.metrics.at("gpu__time_duration.sum"), (MetricValue{"ns", 11776}));
  EXPECT_EQ(profile.metrics.at("sm__cycles_active.avg").value, 3251.20);
  EXPECT_EQ(profile.metrics.at("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"),
            (MetricValue{"%", 37.58}));
}

TEST(ParseNcuCsv, ReadsWindowsLineEnds) {
  const std::string text = absl::StrReplaceAll(NcuOutput(kPingPong), {{"\n", "\r\n"}});
  const KernelProfile profile = ParseNcuCsv(text).value().front();
  EXPECT_EQ(profile, ParseNcuCsv(NcuOutput(kPingPong))->front());
}

TEST(ParseNcuCsv, SaysWhatNcuSaidWhenThereIsNoProfile) {
  const std::string error = ErrorOf(NcuOutput(kFailed));
  EXPECT_THAT(error, HasSubstr("unknown variant 'nope'"));
  EXPECT_THAT(error, HasSubstr("returned an error code (2)"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("it printed nothing"));
}

TEST(ParseNcuCsv, LeavesOutWhatNcuCouldNotRead) {
  const std::string text = absl::StrReplaceAll(
      NcuOutput(kPingPong), {{"\"%\",\"37.58\"", "\"%\",\"n/a\""}, {"\"796,996\"", "\"nan\""}});
  const KernelProfile profile = ParseNcuCsv(text).value().front();
  EXPECT_EQ(profile.metrics.size(), 8u);
  EXPECT_FALSE(profile.metrics.contains("smsp__inst_executed.sum"));
}

TEST(ParseNcuCsv, ReadsEachLaunchOfACall) {
  const std::string text = absl::StrCat(
      NcuOutput(kPingPong),
      "\n\"1\",\"1\",\"a\",\"h\",\"second(int)\",\"1\",\"7\",\"(32, 1, 1)\",\"(1, 1, 1)\","
      "\"0\",\"9.0\",\"Command line profiler "
      "metrics\",\"gpu__time_duration.sum\",\"ns\",\"99,000\"");
  const auto launches = ParseNcuCsv(text);
  ASSERT_TRUE(launches.ok()) << launches.status();
  ASSERT_EQ(launches->size(), 2u);
  EXPECT_EQ(launches->back().metrics.at("gpu__time_duration.sum").value, 99000);
  EXPECT_EQ(&Longest(*launches), &launches->back());
  EXPECT_EQ(Longest({launches->front()}), launches->front());
}

TEST(ParseNcuCsv, RefusesMixedLaunchesTornLinesAndRepeatedCounters) {
  const std::string good = NcuOutput(kPingPong);
  const std::string line = good.substr(good.rfind("\n\"0\",") + 1);
  EXPECT_THAT(ErrorOf(absl::StrCat(good, "\n", line)), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf(absl::StrCat(good, "\n\"1\"", line.substr(3), "\n", line)),
              HasSubstr("launch 0 in two places"));
  EXPECT_THAT(ErrorOf(good.substr(0, good.size() - 40)), HasSubstr("not closed"));
  EXPECT_THAT(ErrorOf(absl::StrReplaceAll(good, {{"\"Metric Value\"", "\"Value\""}})),
              HasSubstr("no column \"Metric Value\""));
}

TEST(ProfileMetrics, AskOnlyForWhatTheGpuHas) {
  const std::vector<std::string> known =
      KnownMetrics(ProfileMetrics(),
                   "Device NVIDIA L4 (AD104)\n"
                   "smsp__inst_executed       Counter  inst  # of warp instructions\n"
                   "lts__t_bytes              Counter  byte  # of bytes\n");
  EXPECT_THAT(known, Contains("smsp__inst_executed.sum"));
  EXPECT_THAT(known, Contains("lts__t_bytes.sum"));
  EXPECT_THAT(known, Contains("device__attribute_display_name"));
  EXPECT_THAT(known, Not(Contains("sm__inst_executed_pipe_tensor_op_gmma.sum")));
}

TEST(NcuCall, LeavesClocksAndCachesAlone) {
  const std::vector<std::string> call = NcuCall("ncu", {"a", "b"}, {"program", "call"});
  const auto value_of = [&](const char* flag) {
    const auto found = std::find(call.begin(), call.end(), flag);
    return found == call.end() ? "" : *std::next(found);
  };
  EXPECT_EQ(value_of("--clock-control"), "none");
  EXPECT_EQ(value_of("--cache-control"), "none");
  EXPECT_EQ(value_of("--metrics"), "a,b");
  EXPECT_EQ(value_of("--profile-from-start"), "off");
  EXPECT_EQ(call.back(), "call");
}

class ProfileRecordTest : public ::testing::Test {
 protected:
  ProfileRecordTest() {
    info_.run_id = "as-it-was-told";
    info_.created_utc = "2026-01-02T03:04:05Z";
    info_.shapes = {ExampleShape("small", 1, 32)};
    info_.metrics = {"smsp__inst_executed.sum"};
    std::filesystem::create_directories(dir_);
    Write(kProfileFile, DumpFile(ToJson(info_)));
  }

  void Write(const char* name, const std::string& text) {
    std::ofstream(absl::StrCat(dir_, "/", name)) << text;
  }
  // Beside the record.
  void WriteBeside(const std::string& run, const char* file, const nlohmann::ordered_json& json) {
    std::filesystem::create_directories(absl::StrCat(parent_.path(), "/", run));
    std::ofstream(absl::StrCat(parent_.path(), "/", run, "/", file)) << json;
  }
  static summary::Cell Cell(const char* config, const char* code, double us) {
    summary::Cell cell;
    cell.variant = config;
    cell.config = config;
    cell.shape = "small";
    cell.code_sha256 = code;
    cell.correct = true;
    cell.p50_us.value = us;
    return cell;
  }
  // Beside the record, a run of the n-th of January that is judged to have these cells.
  void WriteRun(const char* run, int day, const std::vector<summary::Cell>& cells,
                const char* design = "ladder", const char* cache = kCacheWarm) {
    nlohmann::ordered_json codes;
    for (const summary::Cell& cell : cells) codes.push_back(cell.code_sha256.value());
    WriteBeside(run, kSamplesFile, nullptr);
    WriteBeside(run, kCodegenFile, codes);
    summary::Summary& summary = judged_[run];
    summary.run_id = run;
    summary.design = design;
    summary.provenance.created_utc = absl::StrCat("2026-01-0", day, "T00:00:00Z");
    summary.provenance.processes = 1;
    summary.provenance.blocks_per_process = 1;
    summary.provenance.cache = cache;
    summary.provenance.gpu.name = "NVIDIA H200";
    summary.statistics.confidence = 0.95;
    summary.problems = info_.shapes;
    summary.cells = cells;
  }
  // As runs are judged by WriteRun(); any other is damaged.
  summary::ProfileSummary Summarized() const {
    const auto judge = [&](const std::string& path) -> absl::StatusOr<summary::Summary> {
      const auto found = judged_.find(std::filesystem::path(path).filename().string());
      if (found == judged_.end()) return absl::DataLossError(path);
      return found->second;
    };
    return SummarizeProfiles(dir_, SdpaSubject(), judge).value();
  }
  static Profile Example(const std::string& variant, const std::string& code) {
    Profile profile;
    profile.variant = variant;
    profile.config = variant;
    profile.shape = "small";
    profile.code_sha256 = code;
    profile.launch.kernel = "sdpa_x";
    profile.launch.gpu = "NVIDIA H200";
    profile.launch.metrics = {{"smsp__inst_executed.sum", {"inst", 1234}},
                              {"device__attribute_multiprocessor_count", {"", 132}},
                              {"device__attribute_max_gpu_frequency_khz", {"", 1980000}}};
    return profile;
  }

  ScratchFolder parent_ = ScratchFolder::Make().value();
  std::string dir_ = absl::StrCat(parent_.path(), "/profile-test");
  ProfileInfo info_;
  std::map<std::string, summary::Summary> judged_;
};

TEST_F(ProfileRecordTest, ComesBackAsItWasWritten) {
  const Profile profile = Example("minimal_scalar", "aa");
  ASSERT_TRUE(AppendProfile(dir_, profile).ok());
  const ProfileRecord record = LoadProfiles(dir_).value();
  EXPECT_EQ(record.info, info_);
  ASSERT_EQ(record.profiles.size(), 1u);
  EXPECT_EQ(record.profiles[0], profile);
}

TEST_F(ProfileRecordTest, ALaterTryReplacesAFailedOne) {
  Profile failed = Example("minimal_scalar", "");
  failed.reason = "ncu exited with status 9";
  failed.launch = {};
  ASSERT_TRUE(AppendProfile(dir_, failed).ok());
  ASSERT_TRUE(AppendProfile(dir_, Example("minimal_scalar", "aa")).ok());
  const ProfileRecord record = LoadProfiles(dir_).value();
  ASSERT_EQ(record.profiles.size(), 1u);
  EXPECT_EQ(record.profiles[0].reason, "");
}

TEST_F(ProfileRecordTest, DamageIsNamedByLine) {
  const std::string line = DumpLine(ToJson(Example("minimal_scalar", "aa")));
  Write(kProfilesFile, absl::StrCat(line, "\n", line.substr(0, 40), "\n"));
  EXPECT_THAT(LoadProfiles(dir_).status().ToString(), HasSubstr("profiles.jsonl:2"));
  Write(kProfilesFile, absl::StrCat(line, "\n", line));
  EXPECT_THAT(LoadProfiles(dir_).status().ToString(), HasSubstr("its last line does not end"));
  Write(kProfilesFile, absl::StrReplaceAll(line + "\n", {{"\"small\"", "\"huge\""}}));
  EXPECT_EQ(LoadProfiles(dir_).status().code(), absl::StatusCode::kDataLoss);
  Write(kProfileFile, absl::StrReplaceAll(DumpFile(ToJson(info_)),
                                          {{"\"schema_version\": 1", "\"schema_version\": 99"}}));
  EXPECT_EQ(LoadProfiles(dir_).status().code(), absl::StatusCode::kFailedPrecondition);
  Write(kProfileFile, "{}");
  EXPECT_EQ(LoadProfiles(dir_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(LoadProfiles(dir_).status().ToString(),
              HasSubstr(absl::StrCat(dir_, "/", kProfileFile, ": schema_version: missing")));
}

TEST_F(ProfileRecordTest, TimesComeFromTheSameMachineCodeAndLaunchAloneAndFromAWarmL2) {
  ASSERT_TRUE(AppendProfile(dir_, Example("minimal_scalar", "aa")).ok());
  ASSERT_TRUE(AppendProfile(dir_, Example("kv_tiling", "bb")).ok());
  WriteRun("old", 1, {Cell("minimal_scalar", "aa", 3.0)});
  WriteRun("new", 3, {Cell("minimal_scalar", "aa", 2.0)});
  WriteRun("cold", 4, {Cell("minimal_scalar", "aa", 4.0)}, "ladder", kCacheCold);
  // The same code, launched otherwise.
  WriteRun("stream", 5, {Cell("stream_launch", "aa", 5.0)});
  WriteRun("other", 4, {Cell("minimal_scalar", "cc", 1.0)});
  WriteBeside("broken", kSamplesFile, nullptr);
  WriteBeside("broken", kCodegenFile, {"aa"});
  const summary::ProfileSummary summary = Summarized();
  EXPECT_EQ(summary.profiles[0].p50_us.value, 2.0);
  EXPECT_EQ(summary.profiles[0].timed_in, "new");
  EXPECT_FALSE(summary.profiles[1].p50_us.value);
  EXPECT_THAT(summary.skipped, testing::ElementsAre("broken"));
  EXPECT_EQ(summary.steps.size(), 1u);
  EXPECT_EQ(summary.steps[0].toggle, "kv_tiling");
}

// Records have boards and clocks of their own.
TEST_F(ProfileRecordTest, TimesOfAShapeComeFromTheRecordThatTimedMostOfItsKernels) {
  ASSERT_TRUE(AppendProfile(dir_, Example("minimal_scalar", "aa")).ok());
  ASSERT_TRUE(AppendProfile(dir_, Example("kv_tiling", "bb")).ok());
  WriteRun("both", 1, {Cell("minimal_scalar", "aa", 3.0), Cell("kv_tiling", "bb", 4.0)}, "one_on");
  WriteRun("ladder", 2, {Cell("minimal_scalar", "aa", 1.0)});
  WriteRun("newest", 3, {Cell("kv_tiling", "bb", 2.0)}, "one_on");
  const auto times = [&] {
    const summary::ProfileSummary summary = Summarized();
    return std::pair(*summary.profiles[0].p50_us.value, *summary.profiles[1].p50_us.value);
  };
  EXPECT_EQ(times(), std::pair(3.0, 4.0));
  std::filesystem::remove_all(parent_.path() + "/both");
  EXPECT_EQ(times(), std::pair(1.0, 2.0));
}

TEST_F(ProfileRecordTest, AProblemThatIsNoneOfTheSubjectsIsRefused) {
  ASSERT_TRUE(AppendProfile(dir_, Example("minimal_scalar", "aa")).ok());
  info_.shapes[0].fields["head_dim"] = "wide";
  Write(kProfileFile, DumpFile(ToJson(info_)));
  EXPECT_THAT(SummarizeProfiles(dir_, SdpaSubject()).status().ToString(), HasSubstr("head_dim"));
}

TEST_F(ProfileRecordTest, IsCalledAsItsFolderIs) {
  ASSERT_TRUE(AppendProfile(dir_, Example("minimal_scalar", "aa")).ok());
  const summary::ProfileSummary summary = SummarizeProfiles(dir_, SdpaSubject()).value();
  EXPECT_EQ(summary.provenance.run_id, "profile-test");
}

TEST_F(ProfileRecordTest, StandsUnderTheRoofOfItsProducts) {
  for (const auto& [config, roof] :
       {std::pair("kv_tiling", "fp32 FMA"), std::pair("kv_tiling+warp_shuffle+wmma_qk", "mma.sync"),
        std::pair("mma_sync", "mma.sync"), std::pair("wgmma", "wgmma"),
        std::pair("wgmma+resident_kv", "wgmma"),
        std::pair("wgmma+consumer_warpgroups+wgmma_fp8", "wgmma, FP8")}) {
    Profile profile = Example(config, "aa");
    profile.config = config;
    ASSERT_TRUE(AppendProfile(dir_, profile).ok());
    const summary::ProfileSummary summary = SummarizeProfiles(dir_, SdpaSubject()).value();
    EXPECT_EQ(summary.profiles.back().roof, roof) << config;
  }
}

TEST_F(ProfileRecordTest, CeilingsAreOfTheNewestMicrobenchmarksOfTheSameKindOfGpu) {
  ASSERT_TRUE(AppendProfile(dir_, Example("kv_tiling", "aa")).ok());
  const auto write = [&](const char* run, const char* slug, double value) {
    WriteBeside(run, "micro.json",
                {{"gpu", {{"slug", slug}, {"uuid", "GPU-1"}}},
                 {"provenance", {{"started", "2026-01-01"}, {"processes", 3}, {"n_samples", 9}}},
                 {"micro",
                  {{{"name", "global_memory/dram_16B/bandwidth"},
                    {"unit", "GB/s"},
                    {"value", value},
                    {"percent_of_limit", nullptr}}}}});
  };
  write("micro-20260101T000000Z", "h200", 4000);
  write("micro-20260202T000000Z", "h200", 4100);
  write("micro-20260303T000000Z", "l4", 300);
  summary::ProfileSummary summary = SummarizeProfiles(dir_, SdpaSubject()).value();
  ASSERT_EQ(summary.ceilings.size(), 1u);
  EXPECT_EQ(summary.ceilings[0].per_s, 4.1e12);
  EXPECT_EQ(summary.ceilings[0].run, "micro-20260202T000000Z");
  std::ofstream(parent_.path() + "/micro-20260303T000000Z/micro.json") << "{";
  summary = SummarizeProfiles(dir_, SdpaSubject()).value();
  EXPECT_TRUE(summary.ceilings.empty());
  EXPECT_THAT(summary.skipped, testing::ElementsAre("micro.json"));
}

TEST_F(ProfileRecordTest, ARecordWithoutAWorkingProfileHasNoPage) {
  EXPECT_EQ(SummarizeProfiles(dir_, SdpaSubject()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace warpledger::ablations
