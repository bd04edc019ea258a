// What K's and V's tensor maps ask of L2 reaches the launch, and changes no bit of a result.

#include <string>
#include <vector>

#include "ablations/references.h"
#include "ablations/sdpa_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/inputs.h"
#include "kernels/sdpa/launch.h"
#include "kernels/sdpa/wgmma/tensor_maps.h"
#include "micro/harness/graph_timer.h"

namespace warpledger::sdpa {
namespace {

using ablations::CheckOutcome;
using ablations::SdpaRunner;
using testing::HasSubstr;
using testing::Not;

const Problem kProblem = {1, 2, 2, 65, 300, 128, false};
constexpr Config kRing = {.wgmma = 1, .kv_ring_stages = 1};

// The line of the kernel in what a call launches.
std::string KernelLine(const SdpaRunner& runner, const KernelInstance& instance,
                       const Config& arm) {
  absl::StatusOr<harness::GraphTimer> timer = harness::GraphTimer::Create();
  EXPECT_TRUE(timer.ok()) << timer.status();
  const absl::StatusOr<harness::TimedGraph> graph = timer->Capture(
      2, [&](int, cudaStream_t stream) { return runner.Launch(instance, 0, stream, &arm); },
      harness::LaunchedBy::kGraph, DescribePromotion);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(graph->call().ok()) << graph->call().status();
  if (!graph->call().ok() || graph->call()->size() != 2) return "";
  return graph->call()->back();
}

TEST(TensorMaps, AreLaunchedWithTheL2PromotionThatTheArmNames) {
  const KernelInstance* instance = FindInstance(kRing, kProblem);
  ASSERT_NE(instance, nullptr);
  const Inputs inputs = MakeInputs(kProblem, InputKind::kNormal, 5);
  const Reference reference = ComputeReference(kProblem, inputs);
  absl::StatusOr<SdpaRunner> runner = SdpaRunner::Create(kProblem, {inputs});
  ASSERT_TRUE(runner.ok()) << runner.status();
  const std::vector<std::string> said = {"L2 promotion 128 B", "L2 promotion 256 B",
                                         "no L2 promotion"};
  for (int level = 0; level < 3; ++level) {
    Config arm = instance->config;
    arm.wgmma_l2_promotion = level;
    const absl::StatusOr<CheckOutcome> outcome = runner->Check(*instance, 0, reference, &arm);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_TRUE(outcome->correct) << outcome->reason;
    const std::string line = KernelLine(*runner, *instance, arm);
    for (int other = 0; other < 3; ++other) {
      if (other == level) {
        EXPECT_THAT(line, HasSubstr(said[other]));
      } else {
        EXPECT_THAT(line, Not(HasSubstr(said[other])));
      }
    }
  }
}

}  // namespace
}  // namespace warpledger::sdpa
