// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gmock/gmock.h"
#include "micro/harness/microbenchmark.h"

namespace warpledger::harness {
namespace {

using ::testing::HasSubstr;

void NoKernel(CycleArgs) {}

CycleCase GoodCycles() {
  return {.about = {.name = "a/b/latency",
                    .measures = "cycles",
                    .unit = "cycles",
                    .evidence = {{.sass = "^FFMA"}}},
          .kernel = &NoKernel};
}

std::string FaultOf(const MicroCase& micro_case) {
  return std::string(CheckCases({micro_case}).message());
}

TEST(CheckCases, AcceptsAGoodCaseOfEachKind) {
  const TimeCase time = {.about = {.name = "a/b/time", .measures = "time", .unit = "us"},
                         .setup = [](const MicroDevice&) -> absl::StatusOr<LaunchFunction> {
                           return absl::UnimplementedError("");
                         }};
  const ValueCase value = {.about = {.name = "a/b/error", .measures = "error", .unit = ""},
                           .compute = [](const MicroDevice&) { return 1.0; }};
  EXPECT_EQ(CheckCases({GoodCycles(), time, value}), absl::OkStatus());
}

TEST(CheckCases, RefusesAProgramWithoutCases) { EXPECT_FALSE(CheckCases({}).ok()); }

TEST(CheckCases, RefusesANameTwice) {
  EXPECT_THAT(std::string(CheckCases({GoodCycles(), GoodCycles()}).message()),
              HasSubstr("its name is taken"));
}

TEST(CheckCases, RefusesAPeakThatIsNoCase) {
  CycleCase lonely = GoodCycles();
  lonely.about.peak_case = "a/c/throughput";
  EXPECT_THAT(FaultOf(lonely), HasSubstr("a/c/throughput"));
}

TEST(CheckCases, SaysWhatIsWrongWithACase) {
  const struct {
    void (*spoil)(CycleCase&);
    const char* fault;
  } kSpoilers[] = {
      {[](CycleCase& c) { c.about.name = "latency"; }, "three parts"},
      {[](CycleCase& c) { c.about.measures = ""; }, "measures"},
      {[](CycleCase& c) { c.about.evidence.clear(); }, "proved"},
      {[](CycleCase& c) { c.about.evidence = {{.at_least = 3}}; }, "without a pattern"},
      {[](CycleCase& c) { c.about.evidence = {{.sass = "x", .at_least = 0}}; }, "can't fail"},
      {[](CycleCase& c) { c.about.published = {{.value = 16}}; }, "no source"},
      {[](CycleCase& c) { c.about.limit = {.own = 2}; }, "no source"},
      {[](CycleCase& c) { c.kernel = nullptr; }, "no kernel"},
      {[](CycleCase& c) { c.units_per_iteration = 0; }, "units_per_iteration"},
      {[](CycleCase& c) {
         c.lengths = {1, 2, 3};
       },
       "at least 4"},
      {[](CycleCase& c) {
         c.lengths = {1, 2, 2, 3};
       },
       "rise"},
      {[](CycleCase& c) { c.threads = 48; }, "multiple of 32"},
      {[](CycleCase& c) { c.ctas_per_sm = 0; }, "ctas_per_sm"},
      {[](CycleCase& c) { c.args = {1, 2, 3, 4, 5, 6, 7}; }, "args"},
  };
  for (const auto& [spoil, fault] : kSpoilers) {
    CycleCase spoiled = GoodCycles();
    spoil(spoiled);
    EXPECT_THAT(FaultOf(spoiled), HasSubstr(fault));
  }
}

TEST(CheckCases, WantsAKernelWhereThereIsEvidence) {
  const ValueCase value = {.about = {.name = "a/b/error",
                                     .measures = "error",
                                     .unit = "",
                                     .evidence = {{.sass = "^MUFU"}}},
                           .compute = [](const MicroDevice&) { return 1.0; }};
  EXPECT_THAT(FaultOf(value), HasSubstr("kernels"));
}

void AddOne() { Add(GoodCycles()); }

TEST(Registrar, AddsItsCases) {
  const size_t before = AllCases().size();
  const Registrar registrar(&AddOne);
  ASSERT_EQ(AllCases().size(), before + 1);
  EXPECT_EQ(InfoOf(AllCases().back()).name, "a/b/latency");
}

}  // namespace
}  // namespace warpledger::harness
