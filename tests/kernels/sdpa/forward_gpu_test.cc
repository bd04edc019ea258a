// Every compiled instance on every shape: accuracy, guard bands, bit-equal
// repetition, on three seeds of each input distribution.

#include <map>
#include <string>

#include "ablations/plan.h"
#include "ablations/sdpa_runner.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/inputs.h"
#include "kernels/sdpa/launch.h"
#include "kernels/sdpa/variant.h"

namespace warpledger::sdpa {
namespace {

using ablations::CheckOutcome;
using ablations::SdpaRunner;

constexpr uint64_t kSeeds[] = {11, 22, 33};

class EveryVariant : public testing::TestWithParam<NamedShape> {};

TEST_P(EveryVariant, AgreesWithTheReferenceAndRepeatsItsBits) {
  const Problem& problem = GetParam().problem;
  int checks = 0;
  for (const NamedInputKind& kind : kInputKinds) {
    for (const uint64_t seed : kSeeds) {
      const Inputs inputs = MakeInputs(problem, kind.kind, seed);
      const Reference reference = ComputeReference(problem, inputs);
      absl::StatusOr<SdpaRunner> runner = SdpaRunner::Create(problem, {inputs});
      ASSERT_TRUE(runner.ok()) << runner.status();
      for (const KernelInstance* instance : AllInstances()) {
        const absl::StatusOr<CheckOutcome> outcome = runner->Check(*instance, 0, reference);
        ASSERT_TRUE(outcome.ok()) << outcome.status();
        EXPECT_TRUE(outcome->correct) << ConfigName(instance->config) << ", " << kind.name
                                      << ", seed " << seed << ": " << outcome->reason;
        ++checks;
      }
    }
  }
  EXPECT_EQ(checks,
            static_cast<int>(AllInstances().size() * std::size(kInputKinds) * std::size(kSeeds)));
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryVariant, testing::ValuesIn(kShapes),
                         [](const auto& info) { return std::string(info.param.name); });

// --- The checks themselves can fail ------------------------------------------

const KernelInstance& Honest() { return *AllInstances().back(); }
const Problem kProblem = {1, 2, 2, 33, 65, 64, false};
constexpr size_t kOutBytes = 2 * 33 * 64 * 2;

CheckOutcome CheckPlanted(cudaError_t (*launch)(const ForwardParams&, unsigned, cudaStream_t)) {
  const Inputs inputs = MakeInputs(kProblem, InputKind::kNormal, 5);
  const Reference reference = ComputeReference(kProblem, inputs);
  absl::StatusOr<SdpaRunner> runner = SdpaRunner::Create(kProblem, {inputs});
  EXPECT_TRUE(runner.ok()) << runner.status();
  const KernelInstance planted = {Honest().config, Honest().kernel, launch};
  const absl::StatusOr<CheckOutcome> outcome = runner->Check(planted, 0, reference);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return *outcome;
}

TEST(PlantedFault, AnElementThatIsNotWrittenFails) {
  const CheckOutcome outcome =
      CheckPlanted([](const ForwardParams&, unsigned, cudaStream_t) { return cudaSuccess; });
  EXPECT_FALSE(outcome.correct);
  EXPECT_FALSE(outcome.accuracy.correct);
}

TEST(PlantedFault, AWriteBehindTheOutputFails) {
  const CheckOutcome outcome =
      CheckPlanted([](const ForwardParams& params, unsigned ctas, cudaStream_t stream) {
        const cudaError_t error = Honest().launch(params, ctas, stream);
        if (error != cudaSuccess) return error;
        return cudaMemsetAsync(static_cast<char*>(params.o) + kOutBytes, 0, 2, stream);
      });
  EXPECT_TRUE(outcome.accuracy.correct);
  EXPECT_FALSE(outcome.guards_intact);
  EXPECT_FALSE(outcome.correct);
}

TEST(PlantedFault, AResultThatChangesBetweenRunsFails) {
  const CheckOutcome outcome =
      CheckPlanted([](const ForwardParams& params, unsigned ctas, cudaStream_t stream) {
        static int calls = 0;
        const cudaError_t error = Honest().launch(params, ctas, stream);
        if (error != cudaSuccess || ++calls % 2 != 0) return error;
        // The sign bit of one element flips from +x to -x or back, if it isn't 0.
        return cudaMemsetAsync(static_cast<char*>(params.o) + 1, 0x00, 1, stream);
      });
  EXPECT_FALSE(outcome.bit_identical);
  EXPECT_FALSE(outcome.correct);
}

// --- The driver's word on the instances --------------------------------------

TEST(KernelAttributes, NeedNoLocalMemoryAndFitTheRegisterBudget) {
  for (const KernelInstance* instance : AllInstances()) {
    const absl::StatusOr<KernelAttributes> attributes = GetKernelAttributes(*instance);
    ASSERT_TRUE(attributes.ok()) << attributes.status();
    EXPECT_EQ(attributes->local_bytes, 0) << ConfigName(instance->config);
    EXPECT_LE(attributes->registers, 128) << ConfigName(instance->config);
    EXPECT_GE(attributes->ctas_per_sm, 1) << ConfigName(instance->config);
  }
}

}  // namespace
}  // namespace warpledger::sdpa
