// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <set>

#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/counters.h"
#include "reports/pages/pages.h"

namespace warpledger::report {
namespace {

using ablations::MetricValue;
using summary::ProfileSummary;
using summary::TimedProfile;
using ::testing::HasSubstr;
using ::testing::Not;
using Metrics = std::map<std::string, MetricValue>;

constexpr char kTensor[] =
    "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active.avg.pct_of_peak_sustained_active";
constexpr char kL2Bytes[] = "lts__t_bytes.sum";

Metrics Counted(double busy, double tensor, double wait, double l2_bytes) {
  return {{"sm__cycles_active.avg", {"", 1000 * busy}},
          {"sm__cycles_elapsed.max", {"", 1000}},
          {kTensor, {"", tensor}},
          {"smsp__inst_executed.sum", {"", 1e6}},
          {kL2Bytes, {"", l2_bytes}},
          {"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", {"", 1}},
          {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", {"", wait}},
          {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", {"", 1}}};
}

TimedProfile Profiled(const char* variant, const Metrics& metrics,
                      std::optional<double> us = std::nullopt) {
  TimedProfile profile;
  profile.variant = variant;
  profile.config = variant;
  profile.shape = "mission_b";
  profile.code_sha256 = "aa";
  profile.launch.grid = "(64, 1, 1)";
  profile.launch.metrics = metrics;
  profile.p50_us.value = us;
  profile.roof = "wgmma";
  if (us) profile.timed_in = "ladder-1";
  return profile;
}

ProfileSummary Example() {
  ProfileSummary summary;
  summary.gpu = {"NVIDIA H200", "h200", 132, 1980};
  summary.provenance.run_id = "profile-1";
  summary.provenance.kernel_source_sha256 = "ab";
  summary.provenance.shapes = {{"mission_b", {{"flops", 5e8}}}};
  summary.profiles = {Profiled("minimal_scalar", Counted(0.9, 10, 2, 1e8), 100),
                      Profiled("ladder:kv_tiling", Counted(0.9, 70, 2, 2e7)),
                      Profiled("ladder:warp_shuffle", {})};
  summary.profiles[2].reason = "ncu exited with status 9 | and said so";
  summary.steps = {{"kv_tiling", "minimal_scalar", "ladder:kv_tiling"}};
  summary.ceilings = {{"wgmma", 1e15, "flop", "m", "micro-1"},
                      {"L2", 1e13, "bytes", "l", "micro-1"}};
  return summary;
}

std::string Page(const ProfileSummary& summary) { return RenderProfileReport(summary, {}); }

TEST(ProfileReport, ShowsTextOfARecordAsText) {
  ProfileSummary summary = Example();
  summary.gpu.name = "<b>GPU</b>\n# Title";
  summary.profiles[2].reason = "<script> [a](b)";
  EXPECT_THAT(Page(summary), AllOf(HasSubstr("on &lt;b>GPU&lt;/b> # Title, "),
                                   HasSubstr(": &lt;script> [a] (b)\n"), Not(HasSubstr("<b>"))));
}

TEST(ProfileReport, TakesTheLowestOfTheRoofs) {
  ProfileSummary summary = Example();
  EXPECT_THAT(Page(summary), HasSubstr("| 100.00 | 5.00 | – | 5.00 | 50.0 | L2 | 10.0% |"));
  summary.ceilings.push_back({"DRAM", 4e12, "bytes", "d", "micro-1"});
  Metrics& metrics = summary.profiles[0].launch.metrics;
  metrics["dram__bytes_write.sum"] = {"byte", 0};
  metrics["dram__bytes_read.sum"] = {"byte", 1e7};
  EXPECT_THAT(Page(summary), HasSubstr("| 100.00 | 5.00 | 10.00 | 5.00 | 50.0 | L2 | 10.0% |"));
  metrics["dram__bytes_read.sum"].value = 8e7;
  EXPECT_THAT(Page(summary), HasSubstr("| 100.00 | 5.00 | 80.00 | 5.00 | 25.0 | DRAM | 20.0% |"));
}

TEST(ProfileReport, HoldsAKernelAgainstTheRoofOfItsOwnArithmetic) {
  ProfileSummary summary = Example();
  summary.ceilings.push_back({"wgmma, FP8", 2e15, "flop", "f", "micro-1"});
  EXPECT_THAT(Page(summary), HasSubstr("0.5% of the measured peak of wgmma."));
  summary.profiles[0].roof = "wgmma, FP8";
  EXPECT_THAT(Page(summary), HasSubstr("0.2% of the measured peak of wgmma, FP8."));
  summary.profiles[0].roof = std::nullopt;
  EXPECT_THAT(Page(summary), Not(HasSubstr("of the measured peak")));
}

TEST(ProfileReport, SaysWhereTimesOfAShapeAreOfSeveralRecords) {
  ProfileSummary summary = Example();
  summary.profiles[1].p50_us.value = 50;
  summary.profiles[1].timed_in = "ladder-1";
  EXPECT_THAT(Page(summary), Not(HasSubstr("timed in")));
  summary.profiles[1].timed_in = "hopper-2";
  const std::string page = Page(summary);
  EXPECT_THAT(page, HasSubstr("Its times come from 2 records"));
  EXPECT_THAT(page, HasSubstr("| bound by | timed in |"));
  EXPECT_THAT(page, HasSubstr("| `hopper-2` |"));
}

TEST(ProfileReport, SetsTheModelOfBankConflictsBesideItsCounter) {
  ProfileSummary summary = Example();
  EXPECT_THAT(Page(summary), Not(HasSubstr("Bank conflicts"))) << "no kernel of the mma family";
  nlohmann::ordered_json& shape = summary.provenance.shapes[0].fields;
  shape = {{"flops", 5e8}, {"batch", 1},    {"heads_q", 8},   {"heads_kv", 8},
           {"seq_q", 512}, {"seq_kv", 512}, {"head_dim", 64}, {"causal", false}};
  constexpr char kLinear[] = "mma_sync+mma_v_ldmatrix_trans+mma_p_registers+mma_q_registers";
  constexpr char kCounter[] = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum";
  Metrics metrics = Counted(0.9, 10, 2, 1e8);
  summary.profiles.push_back(Profiled(kLinear, metrics));
  EXPECT_THAT(Page(summary), Not(HasSubstr("Bank conflicts"))) << "no counter";
  // 64 CTAs of 4 warps: 4 + 8 tiles x 32 ldmatrix of 32 wavefronts each.
  metrics[kCounter] = {"", 2129920.0 * 1.25};
  summary.profiles.push_back(Profiled(kLinear, metrics));
  EXPECT_THAT(Page(summary), HasSubstr(std::string("| `b1_h8_s512_d64` | `") + kLinear +
                                       "` | 66560 | 32.0 | 2129920 | 2662400 | 1.2500 |"));
  shape["causal"] = true;
  EXPECT_THAT(Page(summary), Not(HasSubstr("Bank conflicts"))) << "some tiles are not read";
}

// The prefix of a stall's counter ends as its suffix begins.
TEST(StallsTest, ACounterOfNoReasonIsNoStall) {
  const TimedProfile profile =
      Profiled("a", {{"smsp__average_warps_issue_stalled_per_issue_active.ratio", {"inst", 1}}});
  EXPECT_TRUE(Stalls(profile).empty());
  EXPECT_FALSE(CyclesPerInstruction(profile).has_value());
}

TEST(BoundBy, NamesIdleSmsThenTheBusiestUnitThenLatency) {
  EXPECT_EQ(BoundBy(Profiled("a", Counted(0.49, 99, 2, 1))), "idle SMs: 64 CTAs, 49% busy");
  EXPECT_EQ(BoundBy(Profiled("a", Counted(0.9, 60, 2, 1))), "tensor cores 60%");
  EXPECT_EQ(BoundBy(Profiled("a", Counted(0.9, 59, 2, 1))), "latency: wait 50%");
  EXPECT_EQ(BoundBy(Profiled("a", {})), "–");
}

TEST(ProfileReport, ComputesRooflineFromTimeBytesAndMeasuredRoofs) {
  const std::string page = Page(Example());
  // 5e8 FLOP in 100 us are 5 TFLOP/s; 5 FLOP per byte under 10 TB/s are 50 TFLOP/s.
  EXPECT_THAT(page,
              HasSubstr("| `minimal_scalar` | 100.00 | 5.00 | – | 5.00 | 50.0 | L2 | 10.0% |"));
  EXPECT_THAT(page, HasSubstr("| `ladder:kv_tiling` | 20.00 | 25.0 | – | – | 250 | L2 | – |"));
  EXPECT_THAT(page, HasSubstr("times from | `ladder-1`"));
}

TEST(ProfileReport, HoldsAKernelWithoutTensorInstructionsToTheRoofOfFp32) {
  ProfileSummary summary = Example();
  summary.ceilings.push_back({"fp32 FMA", 2e13, "flop", "f", "micro-1"});
  summary.profiles[0] = Profiled("minimal_scalar", Counted(0.9, 0, 2, 1e8), 100);
  summary.profiles[0].roof = "fp32 FMA";
  const std::string page = Page(summary);
  // Below the slope of L2 (50 TFLOP/s) lies that of the FMA pipe.
  EXPECT_THAT(page, HasSubstr("| 5.00 | – | 5.00 | 20.0 | fp32 FMA | 25.0% |"));
  EXPECT_THAT(page, HasSubstr("it reaches 25.0% of the measured peak of fp32 FMA"));
}

TEST(ProfileReport, ShowsNoPictureOfRoofsWhereThereAreNone) {
  ProfileSummary summary = Example();
  summary.ceilings.clear();
  EXPECT_THAT(Page(summary), ::testing::Not(HasSubstr("profile_roofline.svg")));
  EXPECT_THAT(Page(summary), HasSubstr("so there are no roofs."));
}

TEST(ProfileReport, ShowsNoPictureUnderTheRoofsWhereNoKernelWasTimed) {
  ProfileSummary summary = Example();
  EXPECT_THAT(Page(summary), HasSubstr("profile_roofline.svg"));
  for (TimedProfile& profile : summary.profiles) profile.p50_us.value.reset();
  EXPECT_THAT(Page(summary), ::testing::Not(HasSubstr("profile_roofline.svg")));
}

TEST(ProfileReport, WhatVanishesMovedMoreThanAnyFactor) {
  ProfileSummary summary = Example();
  const auto set = [&](size_t profile, const char* counter, double value) {
    summary.profiles[profile].launch.metrics[counter].value = value;
  };
  const char* const kConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
  const char* const kWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
  set(0, kWavefronts, 9e6);
  set(1, kWavefronts, 1e6);
  EXPECT_THAT(Page(summary), HasSubstr("| shared-memory wavefronts ÷9.00 |"));
  set(0, kConflicts, 262144);
  set(1, kConflicts, 0);
  EXPECT_THAT(Page(summary), HasSubstr("| bank conflicts 262 k → 0 |"));
  // What hardly occurs is left out.
  set(0, kConflicts, 1000);
  EXPECT_THAT(Page(summary), HasSubstr("| shared-memory wavefronts ÷9.00 |"));
}

TEST(ProfileReport, HoldsClaimsAgainstCounters) {
  EXPECT_THAT(Page(Example()), HasSubstr("| 100 M | 20.0 M | as claimed, ÷5.00 |"));
  ProfileSummary summary = Example();
  summary.profiles[1].launch.metrics[kL2Bytes].value = 3e8;
  EXPECT_THAT(Page(summary), HasSubstr("**the opposite**, ×3.00"));
  summary.profiles[1].launch.metrics[kL2Bytes].value = 1.0488e8;
  EXPECT_THAT(Page(summary), HasSubstr("**did not move**, ×1.049"));
  summary.profiles[1].launch.metrics.erase(kL2Bytes);
  EXPECT_THAT(Page(summary), Not(HasSubstr("Do the counters")));
}

TEST(ProfileReport, NamesWhatCouldNotBeProfiled) {
  EXPECT_THAT(
      Page(Example()),
      HasSubstr("- `ladder:warp_shuffle` at `b1_h8_s512_d64`: ncu exited with status 9 | and"));
}

TEST(ProfileReport, WarnsWhenTheKernelsAreNewer) {
  const std::string page = RenderProfileReport(Example(), {.kernel_source_sha256 = "other"});
  EXPECT_THAT(page, HasSubstr("older than the kernels"));
  EXPECT_THAT(Page(Example()), Not(HasSubstr("older than the kernels")));
}

TEST(ProfileReport, WarnsOfMachineCodeThatChangedAndNotOfSourcesThatReachedNone) {
  ProfileSummary summary = Example();
  for (TimedProfile& profile : summary.profiles) profile.launch.compute_capability = "9.0";
  const auto page = [&](const char* minimal) {
    RenderOptions tree = {.kernel_source_sha256 = "other"};
    tree.tree_code = *ParseTreeCode(
        {{"schema_version", 1},
         {"nvcc", "13.0.88"},
         {"archs", {{"sm_90", {{"minimal_scalar", minimal}, {"ladder:kv_tiling", "aa"}}}}}});
    return RenderProfileReport(summary, tree);
  };
  EXPECT_THAT(page("aa"), Not(HasSubstr("older than the kernels")));
  EXPECT_THAT(
      page("aa"),
      HasSubstr("the machine code of all its 2 instances is the same; launches (grids, tensor "
                "maps) are not compared."));
  EXPECT_THAT(page("bb"), HasSubstr("> **Warning: this record is older than the kernels.** Since "
                                    "it was made, the machine code of 1 of its 2 instances "
                                    "changed: `minimal_scalar`. Counters of these"));
}

TEST(ProfileReport, WithoutMicrobenchmarksItHasNoRoofs) {
  ProfileSummary summary = Example();
  summary.ceilings.clear();
  EXPECT_THAT(Page(summary), HasSubstr("there are no roofs"));
}

TEST(CounterClaims, SpeakOfKnownCountersAndNotForControls) {
  int claims = 0;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    const std::string_view counter = row.counter_claim.counter;
    if (counter.empty()) continue;
    ++claims;
    EXPECT_NE(FindCounter(counter), nullptr) << row.id;
    EXPECT_FALSE(row.control) << row.id;
  }
  EXPECT_GT(claims, 20);
}

TEST(Counters, HaveOneIdEach) {
  std::set<std::string_view> seen;
  for (const Counter& counter : Counters()) {
    EXPECT_TRUE(seen.insert(counter.id).second) << counter.id;
    EXPECT_EQ(FindCounter(counter.id), &counter);
  }
  EXPECT_EQ(FindCounter(""), nullptr);
}

}  // namespace
}  // namespace warpledger::report
