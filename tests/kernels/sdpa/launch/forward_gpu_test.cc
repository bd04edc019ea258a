// SPDX-License-Identifier: Apache-2.0
// Every compiled instance on every shape: accuracy, guard bands, bit-equal
// repetition, on three seeds of each input distribution; on one where a reference takes seconds.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "ablations/subjects/sdpa/gpu/sdpa_runner.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/references.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/launch/cublaslt.h"
#include "kernels/sdpa/launch/launch.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/families.h"

namespace warpledger::sdpa {
namespace {

using ablations::CheckOutcome;
using ablations::SdpaRunner;

constexpr uint64_t kSeeds[] = {11, 22, 33};
constexpr double kFlopsOfOneSeed = 1e9;

// Whether this build has code of the instance for this GPU. On sm_90, which every kernel is
// written for, what lacks it is to fail.
bool IsBuiltFor(const DeviceFacts& device, const KernelInstance& instance) {
  return device.compute_major == 9 || !absl::IsFailedPrecondition(PrepareInstance(instance));
}

// GPU_TEST_INSTANCES is a part of names: only these instances are checked, after a change to no
// others' machine code.
const std::string& PartOfNames() {
  static const char* const given = std::getenv("GPU_TEST_INSTANCES");
  static const std::string part = given == nullptr ? "" : given;
  return part;
}
bool IsNamed(const KernelInstance& instance) {
  return absl::StrContains(InstanceName(instance.config), PartOfNames());
}

TEST(NamedInstances, AreSome) {
  const auto all = AllInstances();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const auto* it) { return IsNamed(*it); }))
      << "no instance has '" << PartOfNames() << "' in its name";
}

class EveryVariant : public testing::TestWithParam<NamedShape> {};

TEST_P(EveryVariant, AgreesWithTheReferenceAndRepeatsItsBits) {
  const Problem& problem = GetParam().problem;
  const DeviceFacts device = QueryDevice().value();
  int checks = 0;
  int launchable = 0;
  // Each way to store K and V has a reference of its own.
  const auto is_checked = [&](const KernelInstance& instance) {
    constexpr double kMostFlops = 2e9;
    if (KvStorageOf(instance.config).quantised && Flops(problem) > kMostFlops) return false;
    return IsNamed(instance) && CheckLaunchable(instance.config, problem, device).ok() &&
           IsBuiltFor(device, instance);
  };
  for (const KernelInstance* instance : AllInstances()) {
    launchable += is_checked(*instance) ? 1 : 0;
  }
  if (EveryDesignRuns(problem) && problem.embed_dim == 0 && PartOfNames().empty()) {
    ASSERT_GE(launchable, 9) << "the smem family runs everywhere";
  }
  const size_t seeds = Flops(problem) > kFlopsOfOneSeed ? 1 : std::size(kSeeds);
  for (const NamedInputKind& kind : kInputKinds) {
    for (const uint64_t seed : absl::MakeConstSpan(kSeeds, seeds)) {
      const Inputs inputs = MakeInputs(problem, kind.kind, seed);
      ablations::References references(problem, inputs);
      SdpaRunner runner = SdpaRunner::Create(problem, {inputs}).value();
      for (const KernelInstance* instance : AllInstances()) {
        if (!is_checked(*instance)) continue;
        const CheckOutcome outcome =
            runner.Check(*instance, 0, references.For(instance->config)).value();
        // What may miss the accuracy rule must still be itself in every run.
        const bool holds = sdpa::MayBreak(instance->config)
                               ? outcome.guards_intact && outcome.bit_identical
                               : outcome.correct;
        EXPECT_TRUE(holds) << InstanceName(instance->config) << ", " << kind.name << ", seed "
                           << seed << ": " << outcome.reason;
        ++checks;
      }
    }
  }
  EXPECT_EQ(checks, launchable * static_cast<int>(std::size(kInputKinds) * seeds));
}

// Shapes whose reference takes seconds are checked where they are timed.
std::vector<NamedShape> SmallShapes() {
  std::vector<NamedShape> shapes;
  for (const NamedShape& shape : kShapes) {
    if (Flops(shape.problem) < 2e10) shapes.push_back(shape);
  }
  return shapes;
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryVariant, testing::ValuesIn(SmallShapes()),
                         [](const auto& info) { return std::string(info.param.name); });

// A sum that is rescaled by almost one at every tile drifts, and only many tiles show it.
TEST(LongCache, KeepsTheLogSumExpOverAThousandTiles) {
  const Problem problem = {1, 1, 1, 16, 131072, 64, false};
  const DeviceFacts device = QueryDevice().value();
  const Inputs inputs = MakeInputs(problem, InputKind::kLargeLogits, 7);
  ablations::References references(problem, inputs);
  SdpaRunner runner = SdpaRunner::Create(problem, {inputs}).value();
  int checks = 0;
  for (const KernelInstance* instance : AllInstances()) {
    const Config& config = instance->config;
    if (!IsNamed(*instance) || KvStorageOf(config).quantised || MayBreak(config) ||
        !CheckLaunchable(config, problem, device).ok() || !IsBuiltFor(device, *instance)) {
      continue;
    }
    const CheckOutcome outcome = runner.Check(*instance, 0, references.For(config)).value();
    EXPECT_TRUE(outcome.correct) << InstanceName(config) << ": " << outcome.reason;
    ++checks;
  }
  EXPECT_TRUE(checks > 0 || !PartOfNames().empty());
}

// The projection by the library, and with the layernorm in our own, which the checks above
// leave to the layernorm kernel.
TEST(Projection, InEachKernelOfItsOwnAgreesWithTheReference) {
  const Problem problem = {2, 3, 3, 129, 129, 64, true, Dtype::kFp16, 192};
  const Inputs inputs = MakeInputs(problem, InputKind::kNormal, 5);
  const Reference reference = ComputeReference(problem, inputs);
  SdpaRunner runner = SdpaRunner::Create(problem, {inputs}).value();
  int checks = 0;
  for (const KernelInstance* instance : AllInstances()) {
    if (!instance->config.projected || instance->config.fuse_projection != 0) continue;
    for (const bool own : {true, false}) {
      if (!own && !CublasLt::Get().ok()) continue;
      Config arm = instance->config;
      arm.project_mma = own ? 1 : 0;
      arm.fuse_layernorm = own ? 1 : 0;
      const CheckOutcome outcome = runner.Check(*instance, 0, reference, &arm).value();
      EXPECT_TRUE(outcome.correct) << InstanceName(instance->config) << outcome.reason;
      ++checks;
    }
  }
  EXPECT_GE(checks, 3);
  if (!CublasLt::Get().ok()) std::cout << CublasLt::Get().status() << "\n";
}

// --- The checks themselves can fail ------------------------------------------

const KernelInstance& Honest() { return *AllInstances().front(); }
const Problem kProblem = {1, 2, 2, 33, 65, 64, false};
constexpr size_t kOutBytes = 2 * 33 * 64 * 2;

CheckOutcome CheckPlanted(decltype(KernelInstance::launch) launch) {
  const Inputs inputs = MakeInputs(kProblem, InputKind::kNormal, 5);
  const Reference reference = ComputeReference(kProblem, inputs);
  SdpaRunner runner = SdpaRunner::Create(kProblem, {inputs}).value();
  const KernelInstance planted = {Honest().config, Honest().code, launch};
  return runner.Check(planted, 0, reference).value();
}

TEST(PlantedFault, AnElementThatIsNotWrittenFails) {
  const CheckOutcome outcome =
      CheckPlanted([](const KernelInstance&, const LaunchParams&, unsigned, const LaunchMemory*,
                      cudaStream_t) { return cudaSuccess; });
  EXPECT_FALSE(outcome.correct);
  EXPECT_FALSE(outcome.accuracy.correct);
}

TEST(PlantedFault, AWriteBehindTheOutputFails) {
  const CheckOutcome outcome =
      CheckPlanted([](const KernelInstance& honest, const LaunchParams& params, unsigned ctas,
                      const LaunchMemory*, cudaStream_t stream) {
        const cudaError_t error = Honest().launch(honest, params, ctas, nullptr, stream);
        if (error != cudaSuccess) return error;
        return cudaMemsetAsync(static_cast<char*>(params.o) + kOutBytes, 0, 2, stream);
      });
  EXPECT_TRUE(outcome.accuracy.correct);
  EXPECT_FALSE(outcome.guards_intact);
  EXPECT_FALSE(outcome.correct);
}

TEST(PlantedFault, AResultThatChangesBetweenRunsFails) {
  const CheckOutcome outcome =
      CheckPlanted([](const KernelInstance& honest, const LaunchParams& params, unsigned ctas,
                      const LaunchMemory*, cudaStream_t stream) {
        static int calls = 0;
        const cudaError_t error = Honest().launch(honest, params, ctas, nullptr, stream);
        if (error != cudaSuccess || ++calls % 2 != 0) return error;
        // Every second run loses the high byte of the first element: its sign, its
        // exponent and two bits of its mantissa become 0.
        return cudaMemsetAsync(static_cast<char*>(params.o) + 1, 0x00, 1, stream);
      });
  EXPECT_FALSE(outcome.bit_identical);
  EXPECT_FALSE(outcome.correct);
}

// An element outside of an input, which the planted kernel copies into O.
struct StrayRead {
  const void* LaunchParams::*input;
  ptrdiff_t offset_bytes;
};
StrayRead stray_read;

TEST(PlantedFault, AReadOutsideAnInputFails) {
  constexpr ptrdiff_t kQBytes = 2 * 33 * 64 * 2;
  constexpr ptrdiff_t kKvBytes = 2 * 65 * 64 * 2;
  const StrayRead reads[] = {{&LaunchParams::q, -2},
                             {&LaunchParams::q, kQBytes},
                             {&LaunchParams::k, -2},
                             {&LaunchParams::k, kKvBytes},
                             {&LaunchParams::v, -2},
                             {&LaunchParams::v, kKvBytes},
                             {&LaunchParams::v, kKvBytes + 32 * 1024 - 2}};
  for (const StrayRead& read : reads) {
    stray_read = read;
    const CheckOutcome outcome =
        CheckPlanted([](const KernelInstance& honest, const LaunchParams& params, unsigned ctas,
                        const LaunchMemory*, cudaStream_t stream) {
          const cudaError_t error = Honest().launch(honest, params, ctas, nullptr, stream);
          if (error != cudaSuccess) return error;
          const char* from =
              static_cast<const char*>(params.*stray_read.input) + stray_read.offset_bytes;
          return cudaMemcpyAsync(params.o, from, 2, cudaMemcpyDeviceToDevice, stream);
        });
    EXPECT_FALSE(outcome.accuracy.correct) << read.offset_bytes;
  }
}

TEST(GuardedInputs, StayAlignedFor256Bytes) {
  CheckPlanted([](const KernelInstance&, const LaunchParams& params, unsigned, const LaunchMemory*,
                  cudaStream_t) {
    for (const void* input : {params.q, params.k, params.v}) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(input) % 256, 0u);
    }
    return cudaSuccess;
  });
}

// What CheckReplay says of `replay`, which may launch on the runner's sets.
CheckOutcome CheckReplayed(const std::function<absl::Status(SdpaRunner&)>& replay) {
  std::vector<Inputs> sets;
  for (const uint64_t seed : kSeeds) {
    sets.push_back(MakeInputs(kProblem, InputKind::kNormal, seed));
  }
  SdpaRunner runner = SdpaRunner::Create(kProblem, sets).value();
  const absl::StatusOr<CheckOutcome> outcome =
      runner.CheckReplay(Honest(), [&] { return replay(runner); });
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return *outcome;
}

absl::Status LaunchSets(SdpaRunner& runner, const KernelInstance& instance, int sets) {
  for (int set = 0; set < sets; ++set) {
    if (absl::Status status = runner.Launch(instance, set, nullptr); !status.ok()) return status;
  }
  return cudaDeviceSynchronize() == cudaSuccess ? absl::OkStatus() : absl::InternalError("sync");
}

TEST(CheckReplay, PassesWhatTheSameKernelLeaves) {
  const CheckOutcome outcome =
      CheckReplayed([](SdpaRunner& runner) { return LaunchSets(runner, Honest(), 3); });
  EXPECT_TRUE(outcome.correct) << outcome.reason;
  EXPECT_EQ(outcome.accuracy.max_err, 0);
}

TEST(CheckReplay, FailsASetThatWasNotComputedOrByAnotherKernel) {
  const CheckOutcome missing =
      CheckReplayed([](SdpaRunner& runner) { return LaunchSets(runner, Honest(), 2); });
  EXPECT_FALSE(missing.correct);
  EXPECT_NE(missing.reason.find("input set 2"), std::string::npos) << missing.reason;
  // P in fp16 rounds otherwise than the honest kernel's P in fp32.
  const KernelInstance* wmma_pv =
      FindInstance(ablations::FindVariant("ladder:wmma_pv")->config, kProblem);
  ASSERT_NE(wmma_pv, nullptr);
  const CheckOutcome other =
      CheckReplayed([&](SdpaRunner& runner) { return LaunchSets(runner, *wmma_pv, 3); });
  EXPECT_FALSE(other.correct);
  EXPECT_GT(other.accuracy.max_err, 0);
}

// --- The driver's word on the instances --------------------------------------

TEST(KernelAttributes, NeedNoLocalMemoryAndFitTheRegisterBudget) {
  // kernels/sdpa/spill_waivers.txt
  const std::vector<std::string> may_spill = absl::StrSplit(WARPLEDGER_MAY_SPILL, ' ');
  const DeviceFacts device = QueryDevice().value();
  for (const KernelInstance* instance : AllInstances()) {
    if (!IsBuiltFor(device, *instance)) continue;
    const KernelAttributes attributes = GetKernelAttributes(*instance).value();
    const bool waived = std::find(may_spill.begin(), may_spill.end(),
                                  InstanceSymbol(instance->config)) != may_spill.end();
    EXPECT_EQ(attributes.local_bytes > 0, waived) << InstanceName(instance->config);
    if (FamilyOf(instance->config) == Family::kSmem) {
      EXPECT_LE(attributes.registers, smem::RegisterBudget(instance->config))
          << InstanceName(instance->config);
    }
    EXPECT_GE(attributes.ctas_per_sm, 1) << InstanceName(instance->config);
  }
}

}  // namespace
}  // namespace warpledger::sdpa
