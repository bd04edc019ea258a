// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gtest/gtest.h"
#include "micro/harness/cycle_runner.h"
#include "micro/harness/cycles.cuh"
#include "micro/harness/kernel_names.h"

namespace warpledger::harness {
namespace {

struct Ffma : FloatOp {
  static __device__ float Step(float x) { return fmaf(x, 0.75f, 0.5f); }
};

__global__ void StampsNothing(CycleArgs) {}

MicroDevice ThisDevice() {
  MicroDevice device;
  device.facts = QueryDevice().value();
  device.cc = 10 * device.facts.compute_major + device.facts.compute_minor;
  return device;
}

absl::StatusOr<CycleSample> RunOnce(const CycleCase& micro_case) {
  const MicroDevice device = ThisDevice();
  absl::StatusOr<CycleRunner> runner = CycleRunner::Create(micro_case, device);
  if (!runner.ok()) return runner.status();
  SplitMix64 random(1);
  return runner->Run(random);
}

TEST(CycleRunner, FindsTheFourCyclesOfADependentFma) {
  CycleCase latency;
  latency.about.name = "test/ffma/latency";
  latency.measure = Measure::kLatency;
  latency.kernel = ChainKernel<Ffma, 1, 64>;
  latency.units_per_iteration = 64;
  const CycleSample sample = RunOnce(latency).value();
  EXPECT_GT(sample.value, 3.9);
  EXPECT_LT(sample.value, 4.6);
  EXPECT_GT(sample.fit.r2, 0.999);
  EXPECT_EQ(sample.sms, 1);
}

TEST(CycleRunner, FindsTheFmaRateOfEverySm) {
  CycleCase throughput;
  throughput.about.name = "test/ffma/throughput";
  throughput.measure = Measure::kThroughput;
  throughput.kernel = ChainKernel<Ffma, 4, 64>;
  throughput.units_per_iteration = 4 * 64;
  const CycleSample sample = RunOnce(throughput).value();
  const MicroDevice device = ThisDevice();
  if (const auto limit = FindLimit({.resource = Resource::kFp32Fma}, device.cc)) {
    EXPECT_GT(sample.value, 0.93 * limit->value);
    EXPECT_LT(sample.value, 1.01 * limit->value);
  }
  EXPECT_EQ(sample.sms, device.facts.sm_count);
}

TEST(CycleRunner, RefusesAKernelThatStampsNothing) {
  CycleCase broken;
  broken.about.name = "test/nothing/latency";
  broken.kernel = &StampsNothing;
  const absl::StatusOr<CycleSample> sample = RunOnce(broken);
  EXPECT_NE(std::string(sample.status().message()).find("StopCycles"), std::string::npos)
      << sample.status();
}

TEST(CycleRunner, RefusesACaseThatDoesNotFitAnSm) {
  CycleCase crowded;
  crowded.about.name = "test/ffma/throughput";
  crowded.measure = Measure::kThroughput;
  crowded.kernel = ChainKernel<Ffma, 1, 64>;
  crowded.threads = 1024;
  crowded.ctas_per_sm = 8;
  EXPECT_EQ(RunOnce(crowded).status().code(), absl::StatusCode::kFailedPrecondition);
}

// On the CPU too, but a GPU is where a program is linked as it is measured.
TEST(KernelName, IsTheSymbolOfTheMachineCode) {
  const auto* kernel = reinterpret_cast<const void*>(&StampsNothing);
  const absl::StatusOr<std::string> name = KernelName(kernel);
  ASSERT_TRUE(name.ok()) << name.status();
  const char* of_cuda = nullptr;
  ASSERT_EQ(cudaFuncGetName(&of_cuda, kernel), cudaSuccess);
  EXPECT_EQ(*name, of_cuda);
  EXPECT_FALSE(KernelName(&name).ok());
}

}  // namespace
}  // namespace warpledger::harness
