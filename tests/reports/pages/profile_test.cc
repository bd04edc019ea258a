// SPDX-License-Identifier: Apache-2.0
#include "reports/pages/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/counters.h"

namespace warpledger::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

constexpr char kTensor[] =
    "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active.avg.pct_of_peak_sustained_active";

Json Metrics(double busy, double tensor, double wait, double l2_bytes) {
  const auto metric = [](double value) { return Json{{"value", value}, {"unit", ""}}; };
  return {{"sm__cycles_active.avg", metric(1000 * busy)},
          {"sm__cycles_elapsed.max", metric(1000)},
          {kTensor, metric(tensor)},
          {"smsp__inst_executed.sum", metric(1e6)},
          {"lts__t_bytes.sum", metric(l2_bytes)},
          {"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", metric(1)},
          {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", metric(wait)},
          {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", metric(1)}};
}

Json Profile(const char* variant, const Json& metrics, const Json& us) {
  return {{"variant", variant},   {"config", variant},
          {"shape", "mission_b"}, {"code_sha256", "aa"},
          {"reason", ""},         {"kernel", "k"},
          {"grid", "(64, 1, 1)"}, {"block", "(128, 1, 1)"},
          {"metrics", metrics},   {"p50_us", us},
          {"ci_low_us", nullptr}, {"ci_high_us", nullptr},
          {"roof", "wgmma"},      {"timed_in", us.is_null() ? Json(nullptr) : Json("ladder-1")}};
}

Json ProfileSummary() {
  Json failed = Profile("ladder:warp_shuffle", Json::object(), nullptr);
  failed["reason"] = "ncu exited with status 9 | and said so";
  return {
      {"schema_version", 1},
      {"kind", "profile"},
      {"gpu",
       {{"name", "NVIDIA H200"},
        {"slug", "h200"},
        {"sm_count", 132.0},
        {"max_sm_clock_mhz", 1980.0}}},
      {"provenance",
       {{"run_id", "profile-1"},
        {"created_utc", "2026-01-02T03:04:05Z"},
        {"ncu", "2025.3"},
        {"kernel_source_sha256", "ab"},
        {"registry_sha256", "cd"}}},
      {"shapes", {{{"name", "mission_b"}, {"flops", 5e8}}}},
      {"profiles",
       {Profile("minimal_scalar", Metrics(0.9, 10, 2, 1e8), 100.0),
        Profile("ladder:kv_tiling", Metrics(0.9, 70, 2, 2e7), nullptr), failed}},
      {"steps",
       {{{"toggle", "kv_tiling"}, {"base", "minimal_scalar"}, {"candidate", "ladder:kv_tiling"}}}},
      {"ceilings",
       {{{"name", "wgmma"}, {"per_s", 1e15}, {"of", "flop"}, {"micro", "m"}, {"run", "micro-1"}},
        {{"name", "L2"}, {"per_s", 1e13}, {"of", "bytes"}, {"micro", "l"}, {"run", "micro-1"}}}},
      {"skipped", Json::array()}};
}

std::string ProfilePage(const Json& summary) { return RenderProfileReport(summary, {}).value(); }

TEST(ProfileReport, TakesTheLowestOfTheRoofs) {
  Json summary = ProfileSummary();
  EXPECT_THAT(ProfilePage(summary), HasSubstr("| 100.00 | 5.00 | – | 5.00 | 50.0 | L2 | 10.0% |"));
  summary["ceilings"].push_back(
      {{"name", "DRAM"}, {"per_s", 4e12}, {"of", "bytes"}, {"micro", "d"}, {"run", "micro-1"}});
  Json& metrics = summary["profiles"][0]["metrics"];
  metrics["dram__bytes_write.sum"] = {{"value", 0.0}, {"unit", "byte"}};
  metrics["dram__bytes_read.sum"] = {{"value", 1e7}, {"unit", "byte"}};
  EXPECT_THAT(ProfilePage(summary),
              HasSubstr("| 100.00 | 5.00 | 10.00 | 5.00 | 50.0 | L2 | 10.0% |"));
  metrics["dram__bytes_read.sum"]["value"] = 8e7;
  EXPECT_THAT(ProfilePage(summary),
              HasSubstr("| 100.00 | 5.00 | 80.00 | 5.00 | 25.0 | DRAM | 20.0% |"));
}

TEST(ProfileReport, HoldsAKernelAgainstTheRoofOfItsOwnArithmetic) {
  Json summary = ProfileSummary();
  summary["ceilings"].push_back({{"name", "wgmma, FP8"},
                                 {"per_s", 2e15},
                                 {"of", "flop"},
                                 {"micro", "f"},
                                 {"run", "micro-1"}});
  EXPECT_THAT(ProfilePage(summary), HasSubstr("0.5% of the measured peak of wgmma."));
  summary["profiles"][0]["roof"] = "wgmma, FP8";
  EXPECT_THAT(ProfilePage(summary), HasSubstr("0.2% of the measured peak of wgmma, FP8."));
  summary["profiles"][0]["roof"] = nullptr;
  EXPECT_THAT(ProfilePage(summary), Not(HasSubstr("of the measured peak")));
}

TEST(ProfileReport, SaysWhereTimesOfAShapeAreOfSeveralRecords) {
  Json summary = ProfileSummary();
  summary["profiles"][1]["p50_us"] = 50.0;
  summary["profiles"][1]["timed_in"] = "ladder-1";
  EXPECT_THAT(ProfilePage(summary), Not(HasSubstr("timed in")));
  summary["profiles"][1]["timed_in"] = "hopper-2";
  const std::string page = ProfilePage(summary);
  EXPECT_THAT(page, HasSubstr("Its times are of 2 records"));
  EXPECT_THAT(page, HasSubstr("| bound by | timed in |"));
  EXPECT_THAT(page, HasSubstr("| `hopper-2` |"));
}

TEST(ProfileReport, SetsTheModelOfBankConflictsBesideItsCounter) {
  Json summary = ProfileSummary();
  EXPECT_THAT(ProfilePage(summary), Not(HasSubstr("Bank conflicts")))
      << "no kernel of the mma family";
  summary["shapes"][0] = {{"name", "mission_b"}, {"flops", 5e8},   {"batch", 1},
                          {"heads_q", 8},        {"heads_kv", 8},  {"seq_q", 512},
                          {"seq_kv", 512},       {"head_dim", 64}, {"causal", false}};
  constexpr char kLinear[] = "mma_sync+mma_v_ldmatrix_trans+mma_p_registers+mma_q_registers";
  constexpr char kCounter[] = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum";
  Json metrics = Metrics(0.9, 10, 2, 1e8);
  summary["profiles"].push_back(Profile(kLinear, metrics, nullptr));
  EXPECT_THAT(ProfilePage(summary), Not(HasSubstr("Bank conflicts"))) << "no counter";
  // 64 CTAs of 4 warps: 4 + 8 tiles x 32 ldmatrix of 32 wavefronts each.
  metrics[kCounter] = {{"value", 2129920.0 * 1.25}, {"unit", ""}};
  summary["profiles"].push_back(Profile(kLinear, metrics, nullptr));
  EXPECT_THAT(ProfilePage(summary), HasSubstr(std::string("| `mission_b` | `") + kLinear +
                                              "` | 66560 | 32.0 | 2129920 | 2662400 | 1.2500 |"));
  summary["shapes"][0]["causal"] = true;
  EXPECT_THAT(ProfilePage(summary), Not(HasSubstr("Bank conflicts"))) << "some tiles are not read";
}

// The prefix of a stall's counter ends as its suffix begins.
TEST(StallsTest, ACounterOfNoReasonIsNoStall) {
  const nlohmann::ordered_json profile = {
      {"metrics",
       {{"smsp__average_warps_issue_stalled_per_issue_active.ratio",
         {{"value", 1.0}, {"unit", "inst"}}}}}};
  EXPECT_TRUE(Stalls(profile).empty());
  EXPECT_FALSE(CyclesPerInstruction(profile).has_value());
}

TEST(BoundBy, NamesIdleSmsThenTheBusiestUnitThenLatency) {
  EXPECT_EQ(BoundBy(Profile("a", Metrics(0.49, 99, 2, 1), nullptr)), "idle SMs: 64 CTAs, 49% busy");
  EXPECT_EQ(BoundBy(Profile("a", Metrics(0.9, 60, 2, 1), nullptr)), "tensor cores 60%");
  EXPECT_EQ(BoundBy(Profile("a", Metrics(0.9, 59, 2, 1), nullptr)), "latency: wait 50%");
  EXPECT_EQ(BoundBy(Profile("a", Json::object(), nullptr)), "–");
}

TEST(ProfileReport, ComputesRooflineFromTimeBytesAndMeasuredRoofs) {
  const std::string page = ProfilePage(ProfileSummary());
  // 5e8 FLOP in 100 us are 5 TFLOP/s; 5 FLOP per byte under 10 TB/s are 50 TFLOP/s.
  EXPECT_THAT(page,
              HasSubstr("| `minimal_scalar` | 100.00 | 5.00 | – | 5.00 | 50.0 | L2 | 10.0% |"));
  EXPECT_THAT(page, HasSubstr("| `ladder:kv_tiling` | 20.00 | 25.0 | – | – | 250 | L2 | – |"));
  EXPECT_THAT(page, HasSubstr("times from | `ladder-1`"));
}

TEST(ProfileReport, HoldsAKernelWithoutTensorInstructionsToTheRoofOfFp32) {
  Json summary = ProfileSummary();
  summary["ceilings"].push_back(
      {{"name", "fp32 FMA"}, {"per_s", 2e13}, {"of", "flop"}, {"micro", "f"}, {"run", "micro-1"}});
  summary["profiles"][0] = Profile("minimal_scalar", Metrics(0.9, 0, 2, 1e8), 100.0);
  summary["profiles"][0]["roof"] = "fp32 FMA";
  const std::string page = ProfilePage(summary);
  // Below the slope of L2 (50 TFLOP/s) lies that of the FMA pipe.
  EXPECT_THAT(page, HasSubstr("| 5.00 | – | 5.00 | 20.0 | fp32 FMA | 25.0% |"));
  EXPECT_THAT(page, HasSubstr("it reaches 25.0% of the measured peak of fp32 FMA"));
}

TEST(ProfileReport, ShowsNoPictureUnderTheRoofsWhereNoKernelWasTimed) {
  Json summary = ProfileSummary();
  EXPECT_THAT(ProfilePage(summary), HasSubstr("profile_roofline.svg"));
  for (Json& profile : summary["profiles"]) profile["p50_us"] = nullptr;
  EXPECT_THAT(ProfilePage(summary), ::testing::Not(HasSubstr("profile_roofline.svg")));
}

TEST(ProfileReport, WhatVanishesMovedMoreThanAnyFactor) {
  Json summary = ProfileSummary();
  const auto set = [&](int profile, const char* counter, double value) {
    summary["profiles"][profile]["metrics"][counter]["value"] = value;
  };
  const char* const kConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
  const char* const kWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
  set(0, kWavefronts, 9e6);
  set(1, kWavefronts, 1e6);
  EXPECT_THAT(ProfilePage(summary), HasSubstr("| shared-memory wavefronts ÷9.00 |"));
  set(0, kConflicts, 262144);
  set(1, kConflicts, 0);
  EXPECT_THAT(ProfilePage(summary), HasSubstr("| bank conflicts 262 k → 0 |"));
  // What hardly occurs is left out.
  set(0, kConflicts, 1000);
  EXPECT_THAT(ProfilePage(summary), HasSubstr("| shared-memory wavefronts ÷9.00 |"));
}

TEST(ProfileReport, HoldsClaimsAgainstCounters) {
  EXPECT_THAT(ProfilePage(ProfileSummary()), HasSubstr("| 100 M | 20.0 M | as claimed, ÷5.00 |"));
  Json summary = ProfileSummary();
  summary["profiles"][1]["metrics"]["lts__t_bytes.sum"]["value"] = 3e8;
  EXPECT_THAT(ProfilePage(summary), HasSubstr("**the opposite**, ×3.00"));
  summary["profiles"][1]["metrics"]["lts__t_bytes.sum"]["value"] = 1.0488e8;
  EXPECT_THAT(ProfilePage(summary), HasSubstr("**did not move**, ×1.049"));
  summary["profiles"][1]["metrics"].erase("lts__t_bytes.sum");
  EXPECT_THAT(ProfilePage(summary), Not(HasSubstr("What was guessed")));
}

TEST(ProfileReport, NamesWhatCouldNotBeProfiled) {
  EXPECT_THAT(
      ProfilePage(ProfileSummary()),
      HasSubstr("- `ladder:warp_shuffle` at `mission_b`: ncu exited with status 9 \\| and"));
}

TEST(ProfileReport, WarnsWhenTheKernelsAreNewer) {
  const std::string page =
      RenderProfileReport(ProfileSummary(), {.kernel_source_sha256 = "other"}).value();
  EXPECT_THAT(page, HasSubstr("older than the kernels"));
  EXPECT_THAT(ProfilePage(ProfileSummary()), Not(HasSubstr("older than the kernels")));
}

TEST(ProfileReport, WarnsOfMachineCodeThatChangedAndNotOfSourcesThatReachedNone) {
  Json summary = ProfileSummary();
  for (Json& profile : summary["profiles"]) profile["compute_capability"] = "9.0";
  const auto page = [&](const char* minimal) {
    RenderOptions tree = {.kernel_source_sha256 = "other"};
    tree.tree_code = *ParseTreeCode(
        {{"schema_version", 1},
         {"nvcc", "13.0.88"},
         {"archs", {{"sm_90", {{"minimal_scalar", minimal}, {"ladder:kv_tiling", "aa"}}}}}});
    return *RenderProfileReport(summary, tree);
  };
  EXPECT_THAT(page("aa"), Not(HasSubstr("older than the kernels")));
  EXPECT_THAT(page("aa"),
              HasSubstr("the machine code of all its 2 instances is the same, "
                        "which says nothing of how it is launched (grids, tensor maps)."));
  EXPECT_THAT(page("bb"), HasSubstr("> **Warning: this record is older than the kernels.** Since "
                                    "it was made, the machine code of 1 of its 2 instances "
                                    "changed: `minimal_scalar`. Counters of what changed"));
}

TEST(ProfileReport, WithoutMicrobenchmarksItHasNoRoofs) {
  Json summary = ProfileSummary();
  summary["ceilings"] = Json::array();
  EXPECT_THAT(ProfilePage(summary), HasSubstr("there are no roofs"));
}

TEST(ProfileReport, RefusesWhatIsNoSummary) {
  for (const Json& json : {Json(nullptr), Json::array(), Json::object(), Json(3)}) {
    EXPECT_EQ(RenderProfileReport(json, {}).status().code(), absl::StatusCode::kInvalidArgument);
  }
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
