// SPDX-License-Identifier: Apache-2.0
// Checks one planted bug, and the kernel that it was planted in, as the suite checks its own.
//
//   check_mutant --list    a line of JSON for each: name, what, kernel, problem, input, race
//   check_mutant NAME      two lines of JSON: {"of": "original", …}, {"of": "mutant", …}
//
// A line has `passes`, by the suite's rule, with its `reason`, and `caught_by`, the weaker rules
// that fail the output. The second never comes where the mutant hangs: mutation_gpu_test.py, which
// calls this program, stops it then. Exits with 77 where there is no GPU, or no code for it.

#include <cuda_runtime_api.h>

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/subjects/sdpa/gpu/sdpa_runner.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/references.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/common/device.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/launch/launch.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/registry/variant.h"
#include "nlohmann/json.hpp"
#include "tests/kernels/sdpa/mutations/mutants.h"
#include "tests/kernels/sdpa/mutations/weaker_rules.h"

namespace warpledger::sdpa {
namespace {

constexpr int kSkipped = 77;
constexpr uint64_t kSeed = 11;
// A bug that depends on time may show in a later one.
constexpr int kTries = 5;

// What the rules say of `instance`. A status: the launch or the kernel failed.
absl::StatusOr<nlohmann::json> Judge(ablations::SdpaRunner& runner, const KernelInstance& instance,
                                     const Reference& reference) {
  nlohmann::json caught_by = nlohmann::json::array();
  ASSIGN_OR_RETURN(const ablations::RunOutput run, runner.Run(instance, 0));
  std::vector<float> out(run.out.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = ToFloat(reference.dtype, run.out[i]);
  for (const WeakerRule& rule : kWeakerRules) {
    if (!Passes(rule, reference.out, out)) caught_by.push_back(rule.name);
  }
  ablations::CheckOutcome outcome;
  for (int i = 0; i < kTries; ++i) {
    ASSIGN_OR_RETURN(outcome, runner.Check(instance, 0, reference));
    if (!outcome.correct) break;
  }
  return nlohmann::json{{"passes", outcome.correct},
                        {"reason", outcome.reason},
                        {"max_err", outcome.accuracy.max_err},
                        {"max_err_limit", outcome.accuracy.max_err_limit},
                        {"caught_by", caught_by}};
}

void Print(std::string_view of, const DeviceFacts& device,
           const absl::StatusOr<nlohmann::json>& judged) {
  // What ends with an error is seen by whoever looks at the output.
  nlohmann::json line = {{"passes", false}, {"caught_by", nlohmann::json::array()}};
  if (judged.ok()) {
    line = *judged;
  } else {
    line["reason"] = judged.status().ToString();
    for (const WeakerRule& rule : kWeakerRules) line["caught_by"].push_back(rule.name);
  }
  line["of"] = of;
  line["gpu"] = device.name;
  std::cout << line << std::endl;  // flushed: the next line may never come
}

int Skip(const absl::Status& why) {
  std::cout << "SKIPPED: " << why.message() << "\n";
  return kSkipped;
}

int Check(const Mutant& mutant) {
  const absl::StatusOr<DeviceFacts> device = QueryDevice();
  if (!device.ok()) return Skip(device.status());
  const KernelInstance* original = nullptr;
  for (const KernelInstance* instance : AllInstances()) {
    if (InstanceName(instance->config) == mutant.kernel) original = instance;
  }
  const auto shapes = ablations::ParseShapes(mutant.problem);
  const auto kinds = ablations::ParseInputKinds(mutant.input);
  if (original == nullptr || !shapes.ok() || !kinds.ok()) {
    std::cerr << mutant.name << ": no such kernel, problem or input\n";
    return 1;
  }
  const Problem& problem = shapes->front().problem;
  for (const absl::Status& status :
       {CheckLaunchable(original->config, problem, *device), PrepareInstance(*original)}) {
    if (absl::IsFailedPrecondition(status) && device->compute_major != 9) {
      return Skip(status);
    }
    if (!status.ok()) {
      std::cerr << mutant.name << ": " << status << "\n";
      return 1;
    }
  }
  const Inputs inputs = MakeInputs(problem, kinds->front().kind, kSeed);
  ablations::References references(problem, inputs);
  absl::StatusOr<ablations::SdpaRunner> runner = ablations::SdpaRunner::Create(problem, {inputs});
  if (!runner.ok()) {
    std::cerr << runner.status() << "\n";
    return 1;
  }
  const Reference& reference = references.For(original->config);
  Print("original", *device, Judge(*runner, *original, reference));
  Print("mutant", *device,
        Judge(*runner, {original->config, mutant.code, original->launch}, reference));
  return 0;
}

}  // namespace
}  // namespace warpledger::sdpa

int main(int argc, char** argv) {
  const std::string_view name = argc == 2 ? argv[1] : "";
  for (const warpledger::sdpa::Mutant& mutant : warpledger::sdpa::Mutants()) {
    if (name == "--list") {
      std::cout << nlohmann::json{{"name", mutant.name},     {"what", mutant.what},
                                  {"kernel", mutant.kernel}, {"problem", mutant.problem},
                                  {"input", mutant.input},   {"race", mutant.race}}
                << "\n";
    }
    if (name == mutant.name) return warpledger::sdpa::Check(mutant);
  }
  if (name == "--list") return 0;
  std::cerr << "usage: check_mutant --list | NAME\n";
  return 2;
}
