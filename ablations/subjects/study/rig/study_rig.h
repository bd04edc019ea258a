// SPDX-License-Identifier: Apache-2.0
// A study on a device: what its variants give is checked, and their calls are handed out.
//
// Libraries are loaded, and their code runs, only within a step of an arm, so that a variant that
// hangs, traps or corrupts is its own fault.
//
//   StudyRig rig(subject, HostMemory());

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ablations/plan/known_subjects.h"
#include "ablations/plan/rig.h"
#include "ablations/subjects/study/rig/memory.h"
#include "ablations/subjects/study/study_subject.h"

namespace warpledger::ablations {

class StudyRig final : public Rig {
 public:
  StudyRig(const StudySubject& subject, std::shared_ptr<const Memory> memory)
      : subject_(subject), memory_(std::move(memory)) {}

  absl::StatusOr<std::unique_ptr<Bench>> Open(const ShapeInfo& problem,
                                              const BenchInputs& inputs) override;
  absl::Status WriteEvidence(const PlannedDesign& design, const std::vector<ShapeInfo>& problems,
                             const std::string& dir) const override;

 private:
  const StudySubject& subject_;
  const std::shared_ptr<const Memory> memory_;
};

// The GPU, where the program has one.
struct StudyGpu {
  absl::StatusOr<std::shared_ptr<Machine>> (*machine)();
  std::shared_ptr<const Memory> (*memory)();
};
void SetStudyGpu(StudyGpu gpu);

// Where the study's device is: the CPU, or that GPU. Unimplemented in a program without one.
absl::StatusOr<Device> OpenStudyDevice(const Subject& subject);

// Studies, for a program's SubjectKindRegistrar.
SubjectKind StudyKind();

}  // namespace warpledger::ablations
