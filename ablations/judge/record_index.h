// SPDX-License-Identifier: Apache-2.0
// A record looked up by arm and shape: times, checks, code and resources, and why
// a verdict on them would be worth nothing.
//
// Contract: keeps references to the record and its subject, which must outlive it. Samples of
// arms or shapes that run.json does not name, and claims that the subject does not know, are
// errors of Of(), never skipped.
//
//   absl::StatusOr<RecordIndex> index = RecordIndex::Of(record, subject, options);
//   for (const analysis::Pair& pair : index->Pairs("base", "wmma_pv", "small")) …

#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablations/judge/summarize.h"
#include "ablations/plan/stopping.h"
#include "ablations/plan/subject.h"
#include "ablations/record/store.h"
#include "ablations/stats/cluster_median.h"
#include "ablations/stats/log_ratios.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

inline bool IsMeasuredHere(const Arm& arm) {
  return arm.role != kRolePeer && arm.role != kRoleFloor;
}
inline bool IsControl(const Arm& arm) { return arm.role == kRoleAa || arm.role == kRoleNull; }

// What the statistics need of a sample.
analysis::Timing TimingOf(const Sample& sample);

// An arm and a shape.
using ArmShape = std::pair<std::string, std::string>;

// The samples of an arm or a peer on a shape. A visit counts for nothing where the GPU waited for
// the host.
struct ArmSamples {
  std::vector<const Sample*> counted;
  std::vector<double> starved;  // idle shares of the visits that don't count

  // Why not enough visits are left; empty where they are.
  std::string WhyStarved(const std::string& arm) const;
};
// For whoever judges times: keeps references to the samples.
std::map<ArmShape, ArmSamples> SamplesByArm(const Record& record);

// Of six digits; empty where there is none.
std::optional<double> MedianOf(std::vector<double> values);

// How much of its limit an error takes; above 1 the rule of correctness is broken. Infinite for
// any error where the limit is 0, and where the error is no number.
double ShareOfLimit(double error, double limit);

// What the rule of correctness knows of one arm on one shape.
struct CheckFacts {
  int count = 0;
  bool all_correct = true;
  const Check* worst = nullptr;  // largest error against its limit
  std::string first_failure;
  const BrokenArm* broken = nullptr;  // it could not be run to its end

  std::optional<bool> correct() const;  // empty: never checked
  std::string WhyBroken() const;        // empty when it is not
};

class RecordIndex {
 public:
  static absl::StatusOr<RecordIndex> Of(const Record& record, const Subject& subject,
                                        const SummarizeOptions& options);

  const Record& record() const { return *record_; }
  const RunInfo& run() const { return record_->run; }
  const Subject& subject() const { return *subject_; }
  // What the arm adds or leaves out; null when there is none.
  const Claim* ClaimOf(const Arm& arm) const { return subject_->FindClaim(arm.toggle); }
  const SummarizeOptions& options() const { return options_; }
  const Arm* first() const { return first_; }  // the first base; null when there is none
  const Arm& ArmNamed(const std::string& name) const { return *arms_.at(name); }

  const std::map<ArmShape, std::vector<analysis::Timing>>& timings() const { return timings_; }
  // By shape; empty without a stopping rule.
  const std::map<std::string, StoppingState>& looks() const { return looks_; }

  const std::vector<analysis::Timing>& Timings(const std::string& arm,
                                               const std::string& shape) const;
  CheckFacts Checks(const std::string& arm, const std::string& shape) const;
  // Of visits: joules per call in place of the time. Empty where the counter was not read.
  const std::vector<analysis::Timing>& Joules(const std::string& arm,
                                              const std::string& shape) const;
  std::vector<analysis::Pair> JoulePairs(const std::string& base, const std::string& candidate,
                                         const std::string& shape) const;
  // Of the processes up to the look that was reached: behind it nobody has planned to look.
  std::vector<analysis::Pair> Pairs(const std::string& base, const std::string& candidate,
                                    const std::string& shape) const;
  summary::Times TimesOf(const std::string& arm, const std::string& shape) const;

  // Each arm was timed alone.
  bool IsAlone() const { return run().alone.has_value(); }
  // Why not enough visits of two arms are left; empty where they are.
  std::string WhyStarved(std::initializer_list<std::string> arms, const std::string& shape) const;
  // Medians of the visits of an arm or a peer; nullopt where there are none.
  std::optional<summary::Alone> AloneOf(const std::string& arm, const std::string& shape) const;

  // The samples' clocks are of the SMs' counters, each sample's own. NVML's are whole MHz, and near
  // samples share them.
  bool ClocksOfSamples() const { return clocks_of_samples_; }

  // What the looks of a run with a stopping rule leave of alpha; 1 without a rule.
  double AlphaShare(const std::string& shape) const;
  double Confidence(const std::string& shape) const;
  // Resamples whose seed is this figure's own.
  analysis::BootstrapOptions Bootstrap(const char* figure, const std::string& arm,
                                       const std::string& shape) const;

  // Of the instance that the arm ran on for a shape; null when the record lacks it.
  const InstanceLaunch* Launch(const Arm& arm, const ShapeInfo& shape) const;
  const InstanceResources* Resources(const Arm& arm, const ShapeInfo& shape) const;
  const InstanceCodegen* Code(const Arm& arm, const ShapeInfo& shape) const;
  std::string CodeHash(const Arm& arm, const ShapeInfo& shape) const;  // empty: unknown

  // Reasons, empty where they do not apply. The first: why the toggle is not shown to have
  // reached what was timed, its machine code, what was launched, or both.
  std::string WhyToggleInvalid(const Arm& base, const Arm& candidate, const ShapeInfo& shape,
                               const std::string& toggle) const;
  std::string WhyCodeInvalid(const Arm& base, const Arm& candidate, const ShapeInfo& shape,
                             const std::string& toggle) const;
  std::string WhyNotApplicable(const Arm& arm, const ShapeInfo& shape) const;
  std::string WhyDoesNothing(const Arm& base, const Arm& candidate, const ShapeInfo& shape,
                             const std::string& toggle) const;
  std::string WhyBroken(std::initializer_list<std::string> arms, const ShapeInfo& shape) const;
  // Why a cell of a factorial tells nothing on a shape. A step that reached no code or ran
  // under other conditions than its base would put that into the toggle's share.
  std::string WhyUnusable(const Arm& arm, const ShapeInfo& shape) const;

 private:
  RecordIndex(const Record& record, const Subject& subject, const SummarizeOptions& options)
      : record_(&record), subject_(&subject), options_(options), arch_(ArchOf(record.run.gpu)) {}
  absl::Status CheckSubject() const;
  absl::Status AddArms();
  absl::Status AddSamples();
  void AddChecks();
  // Empty where the arm has none.
  const ArmSamples& Samples(const std::string& arm, const std::string& shape) const;

  // The lines of each of the arm's calls.
  std::vector<std::vector<std::string>> Calls(const Arm& arm, const ShapeInfo& shape) const;
  template <typename Find>
  auto ForShape(const std::string& config, const ShapeInfo& shape, const Find& find) const;

  const Record* record_;
  const Subject* subject_;
  SummarizeOptions options_;
  std::string arch_;
  const Arm* first_ = nullptr;
  std::map<std::string, const Arm*> arms_;
  std::map<ArmShape, ArmSamples> samples_;
  std::map<ArmShape, std::vector<analysis::Timing>> timings_;
  std::map<ArmShape, std::vector<analysis::Timing>> joules_;
  std::map<ArmShape, CheckFacts> checks_;
  std::map<std::string, StoppingState> looks_;
  bool clocks_of_samples_ = false;
};

}  // namespace warpledger::ablations
