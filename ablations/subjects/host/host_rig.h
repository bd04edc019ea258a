// SPDX-License-Identifier: Apache-2.0
// A listed subject on the CPU, which is its machine too.
//
// A class that derives from HostRig says what a call computes and what is right. Inputs and checks
// are here, capturing and timing in host_machine.h. Outputs are held against Reference(): an
// element may be off by Tolerance() of the largest one.
//
// No machine code is read: what stands in codegen.json is the list of a variant's techniques and
// the opcodes that their claims name. So such a record proves the engine and its pages, and no
// technique.
//
//   class SumRig final : public HostRig {
//     using HostRig::HostRig;
//     std::vector<double> Compute(const Techniques& on, absl::Span<const float> in) const override;
//     std::vector<double> Reference(absl::Span<const float> in) const override;
//   };

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/plan/rig.h"
#include "ablations/subjects/host/host_machine.h"
#include "ablations/subjects/host/listed_subject.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

class HostRig : public Rig, public HostMachine {
 public:
  explicit HostRig(const ListedSubject& subject) : subject_(subject) {}

  // What a variant gives for the n numbers of a problem, as its techniques compute it.
  virtual std::vector<double> Compute(const std::vector<const Claim*>& on,
                                      absl::Span<const float> in) const = 0;
  // What it should give.
  virtual std::vector<double> Reference(absl::Span<const float> in) const = 0;
  virtual double Tolerance() const { return 1e-6; }
  // After a call that is timed, and after a check; a test may let something happen there.
  virtual void AfterCall(std::string_view /*config*/, const ShapeInfo& /*problem*/) const {}
  virtual absl::Status AfterCheck(const PlannedArm& /*arm*/, const ShapeInfo& /*problem*/,
                                  Check* /*check*/) {
    return absl::OkStatus();
  }

  const ListedSubject& subject() const { return subject_; }

  absl::StatusOr<std::unique_ptr<Bench>> Open(const ShapeInfo& problem,
                                              const BenchInputs& inputs) override;
  absl::Status WriteEvidence(const PlannedDesign& design, const std::vector<ShapeInfo>& problems,
                             const std::string& dir) const override;

 private:
  const ListedSubject& subject_;
};

}  // namespace warpledger::ablations
