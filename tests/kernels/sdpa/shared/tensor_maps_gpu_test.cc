// SPDX-License-Identifier: Apache-2.0
// What K's and V's tensor maps ask of L2 reaches the launch, and changes no bit of a result.

#include <string>
#include <string_view>

#include "ablations/subjects/sdpa/gpu/sdpa_runner.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/launch/launch.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/shared/tensor_maps.h"
#include "micro/harness/graph_timer.h"

namespace warpledger::sdpa {
namespace {

using ablations::RunOutput;
using ablations::SdpaRunner;

const Problem kProblem = {1, 4, 2, 65, 300, 128, false};
constexpr const char* kSaid[] = {"L2 promotion 128 B", "L2 promotion 256 B", "no L2 promotion"};

// The line of the first kernel in what a call launches; empty, and a failure, where there is none.
std::string KernelLine(const SdpaRunner& runner, const KernelInstance& instance,
                       const Config& arm) {
  harness::GraphTimer timer = harness::GraphTimer::Create().value();
  const absl::StatusOr<harness::TimedGraph> graph = timer.Capture(
      2, [&](int, cudaStream_t stream) { return runner.Launch(instance, 0, stream, &arm); },
      harness::LaunchedBy::kGraph,
      [](std::string_view symbol, const void* parameter) {
        return (symbol.find("sdpa_wgmma") != symbol.npos) ? DescribePromotion(parameter) : "";
      });
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return "";
  EXPECT_TRUE(graph->call().ok()) << graph->call().status();
  return graph->call().ok() && graph->call()->size() > 1 ? (*graph->call())[1] : "";
}

// A kernel of each kind of parameters, and one that begins beside the end of the one before.
const Config kConfigs[] = {
    {.wgmma = 1, .kv_ring_stages = 1},
    {.wgmma = 1,
     .kv_ring_stages = 1,
     .softmax_overlap = 1,
     .wgmma_tile_per_cta = 1,
     .wgmma_pack_heads = 1,
     .wgmma_split_kv = 1,
     .wgmma_dependent_launch = 1},
    {.wgmma = 1,
     .kv_ring_stages = 1,
     .softmax_overlap = 1,
     .consumer_warpgroups = 1,
     .ping_pong = 1,
     .dynamic_schedule = 1,
     .tma_store = 1},
};

TEST(TensorMaps, AreLaunchedWithTheL2PromotionThatTheArmNamesAndTheSameBits) {
  const Inputs inputs = MakeInputs(kProblem, InputKind::kNormal, 5);
  SdpaRunner runner = SdpaRunner::Create(kProblem, {inputs}).value();
  for (const Config& config : kConfigs) {
    const KernelInstance* instance = FindInstance(config, kProblem);
    ASSERT_NE(instance, nullptr) << ConfigName(config);
    if (const absl::Status status = PrepareInstance(*instance); !status.ok()) {
      GTEST_SKIP() << status;  // another GPU
    }
    const RunOutput plain = runner.Run(*instance, 0).value();
    for (int level = 0; level < 3; ++level) {
      Config arm = instance->config;
      arm.wgmma_l2_promotion = level;
      const RunOutput output = runner.Run(*instance, 0, &arm).value();
      EXPECT_TRUE(SameBits(plain, output)) << ConfigName(config) << ", level " << level;
      const std::string line = KernelLine(runner, *instance, arm);
      for (int other = 0; other < 3; ++other) {
        EXPECT_EQ(absl::StrContains(line, kSaid[other]), other == level)
            << line << " and " << kSaid[other];
      }
    }
  }
}

}  // namespace
}  // namespace warpledger::sdpa
