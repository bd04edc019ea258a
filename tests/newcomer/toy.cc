// SPDX-License-Identifier: Apache-2.0
// A subject in one file: sums on the CPU, with one accumulator or with four.

#include <memory>
#include <numeric>

#include "ablations/plan/known_subjects.h"
#include "ablations/subjects/host/host_rig.h"
#include "ablations/subjects/host/listed_subject.h"

namespace warpledger::ablations {
namespace {

const ListedSubject& Toy() {
  static const ListedSubject kToy({.name = "toy",
                                   .baseline = "one_accumulator",
                                   .baseline_label = "One accumulator",
                                   .techniques = {{.id = "four_accumulators",
                                                   .label = "Four accumulators",
                                                   .predicted = {"sum_16k", 1.5, 4.0},
                                                   .evidence = {.opcodes = "FADD4"}}},
                                   .problems = {SizedProblem("sum_16k", 1 << 14)}});
  return kToy;
}

class ToyRig final : public HostRig {
 public:
  ToyRig() : HostRig(Toy()) {}

  std::vector<double> Compute(const std::vector<const Claim*>& on,
                              absl::Span<const float> in) const override {
    double sums[4] = {};
    const size_t accumulators = on.empty() ? 1 : 4;
    for (size_t i = 0; i < in.size(); i += accumulators) {
      for (size_t k = 0; k < accumulators; ++k) sums[k] += in[i + k];
    }
    return {sums[0] + sums[1] + sums[2] + sums[3]};
  }
  std::vector<double> Reference(absl::Span<const float> in) const override {
    return {std::accumulate(in.begin(), in.end(), 0.0)};
  }
};

absl::StatusOr<Device> Open() {
  const auto both = std::make_shared<ToyRig>();
  return Device{both, both};
}
WARPLEDGER_SUBJECT(Toy, Open);

}  // namespace
}  // namespace warpledger::ablations
