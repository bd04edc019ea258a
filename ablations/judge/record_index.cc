// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/record_index.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>

#include "ablations/base/json_text.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/random.h"
#include "ablations/stats/verdict.h"
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/nvml.h"

namespace warpledger::ablations {
namespace {

using analysis::ClusterMedian;
using analysis::Interval;
using analysis::Pair;
using analysis::Timing;

double ErrorOverLimit(const Check& check) {
  return ShareOfLimit(check.max_err, check.max_err_limit);
}

std::string FailureText(const Check& check) {
  const std::string why = check.reason.empty() ? "no reason recorded" : check.reason;
  return absl::StrCat("failed on inputs '", check.inputs, "', seed ", check.seed, ": ", why);
}

}  // namespace

double ShareOfLimit(double error, double limit) {
  const double share = error / limit;
  // NaN: the error is not a number, or 0 against a limit of 0.
  if (std::isnan(share)) return error == 0 ? 0 : HUGE_VAL;
  return share;
}

Timing TimingOf(const Sample& sample) {
  const uint64_t reasons = sample.throttle.value_or(0);
  return {.process = sample.process,
          .block = sample.block,
          .us = sample.us,
          .sm_mhz = sample.sm_mhz.value_or(0),
          .throttled = IsThrottledBesidesPowerCap(reasons),
          .power_capped = IsPowerCapped(reasons)};
}

std::string ArmSamples::WhyStarved(const std::string& arm) const {
  const size_t visits = starved.size() + counted.size();
  if (2 * starved.size() <= visits) return "";
  return absl::StrFormat("the GPU waited for the host in %d of %d visits of %s, for up to %.2g%%",
                         starved.size(), visits, arm, 100 * *absl::c_max_element(starved));
}

std::map<ArmShape, ArmSamples> SamplesByArm(const Record& record) {
  std::map<ArmShape, ArmSamples> samples;
  for (const Sample& sample : record.samples) {
    ArmSamples& of_arm = samples[{sample.arm, sample.shape}];
    if (sample.IsStarved()) {
      of_arm.starved.push_back(*sample.idle_share);
    } else {
      of_arm.counted.push_back(&sample);
    }
  }
  return samples;
}

std::optional<double> MedianOf(std::vector<double> values) {
  return values.empty() ? std::nullopt : SixDigits(analysis::Median(std::move(values)));
}

std::optional<bool> CheckFacts::correct() const {
  if (broken != nullptr) return false;
  return count == 0 ? std::nullopt : std::optional<bool>(all_correct);
}

std::string CheckFacts::WhyBroken() const {
  if (broken != nullptr) return absl::StrCat(broken->kind, ": ", broken->reason);
  return count == 0 ? "no correctness check on this shape" : first_failure;
}

absl::StatusOr<RecordIndex> RecordIndex::Of(const Record& record, const Subject& subject,
                                            const SummarizeOptions& options) {
  RecordIndex index(record, subject, options);
  absl::Status status = index.CheckSubject();
  if (status.ok()) status = index.AddArms();
  if (status.ok()) status = index.AddSamples();
  if (!status.ok()) return status;
  index.AddChecks();
  if (record.run.stopping) {
    for (const ShapeInfo& shape : record.run.shapes) {
      index.looks_[shape.name] = StateOf(record.run, record.samples, shape.name);
    }
  }
  return index;
}

absl::Status RecordIndex::CheckSubject() const {
  if (run().SubjectName() != subject_->name()) {
    return absl::InvalidArgumentError(
        absl::StrCat("run.json: a record of subject '", std::string(run().SubjectName()),
                     "' can't be judged as one of '", std::string(subject_->name()), "'"));
  }
  for (const ShapeInfo& shape : run().shapes) {
    if (absl::Status status = subject_->CheckProblem(shape); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("run.json: shape '", shape.name, "': ", status.message()));
    }
  }
  return absl::OkStatus();
}

// What adds or leaves out a technique must have its claim.
absl::Status RecordIndex::AddArms() {
  for (const Arm& arm : run().arms) {
    arms_[arm.name] = &arm;
    if (first_ == nullptr && arm.role == kRoleBase) first_ = &arm;
    if (arm.toggle.empty() && arm.role != kRoleStep && arm.role != kRoleWithout) continue;
    if (ClaimOf(arm) == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "run.json: arm '", arm.name, "' is one of toggle '", arm.toggle,
          "', which this program's registry does not know, so its gate and prediction are "
          "unknown; judge the record with the version that wrote it"));
    }
  }
  return absl::OkStatus();
}

absl::Status RecordIndex::AddSamples() {
  std::set<std::string> shapes;
  for (const ShapeInfo& shape : run().shapes) shapes.insert(shape.name);
  for (const Sample& sample : record_->samples) {
    const bool peer = sample.arm.rfind(kPeerPrefix, 0) == 0;
    if (!shapes.contains(sample.shape) || (!peer && !arms_.contains(sample.arm))) {
      return absl::InvalidArgumentError(
          absl::StrCat("sample ", sample.seq, ": arm '", sample.arm, "' or shape '", sample.shape,
                       "' is not in run.json; the record is not whole"));
    }
  }
  samples_ = SamplesByArm(*record_);
  for (const auto& [key, of_arm] : samples_) {
    const bool peer = key.first.rfind(kPeerPrefix, 0) == 0;
    for (const Sample* sample : of_arm.counted) {
      const Timing& timing = timings_[key].emplace_back(TimingOf(*sample));
      if (!peer && timing.sm_mhz != std::round(timing.sm_mhz)) clocks_of_samples_ = true;
      if (const std::optional<double> joules = sample->JoulesPerCall()) {
        joules_[key].push_back(timing);
        joules_[key].back().us = *joules;
      }
    }
  }
  return absl::OkStatus();
}

const ArmSamples& RecordIndex::Samples(const std::string& arm, const std::string& shape) const {
  static const ArmSamples kNone;
  const auto it = samples_.find(ArmShape(arm, shape));
  return it == samples_.end() ? kNone : it->second;
}

void RecordIndex::AddChecks() {
  for (const Check& check : record_->checks) {
    CheckFacts& facts = checks_[{check.arm, check.shape}];
    ++facts.count;
    if (!check.correct && facts.all_correct) {
      facts.all_correct = false;
      facts.first_failure = FailureText(check);
    }
    if (facts.worst == nullptr || ErrorOverLimit(check) > ErrorOverLimit(*facts.worst)) {
      facts.worst = &check;
    }
  }
  for (const BrokenArm& broken : record_->broken) {
    CheckFacts& facts = checks_[{broken.arm, broken.shape}];
    if (facts.broken == nullptr) facts.broken = &broken;
  }
}

double RecordIndex::AlphaShare(const std::string& shape) const {
  const auto found = looks_.find(shape);
  return found == looks_.end() ? 1 : found->second.alpha_share;
}

double RecordIndex::Confidence(const std::string& shape) const {
  const double share = AlphaShare(shape);
  return share == 1 ? options_.confidence : 1 - (1 - options_.confidence) * share;
}

const std::vector<Timing>& RecordIndex::Timings(const std::string& arm,
                                                const std::string& shape) const {
  static const std::vector<Timing> kNone;
  const auto it = timings_.find(ArmShape(arm, shape));
  return it == timings_.end() ? kNone : it->second;
}

const std::vector<Timing>& RecordIndex::Joules(const std::string& arm,
                                               const std::string& shape) const {
  static const std::vector<Timing> kNone;
  const auto it = joules_.find(ArmShape(arm, shape));
  return it == joules_.end() ? kNone : it->second;
}

std::vector<Pair> RecordIndex::JoulePairs(const std::string& base, const std::string& candidate,
                                          const std::string& shape) const {
  return analysis::PairUp(Joules(base, shape), Joules(candidate, shape));
}

std::optional<summary::Alone> RecordIndex::AloneOf(const std::string& arm,
                                                   const std::string& shape) const {
  if (!IsAlone() || Timings(arm, shape).empty()) return std::nullopt;
  summary::Alone alone;
  std::vector<double> sm_mhz;
  std::vector<double> watts;
  for (const Sample* sample : Samples(arm, shape).counted) {
    if (sample->sm_mhz) sm_mhz.push_back(*sample->sm_mhz);
    if (sample->Watts()) watts.push_back(*sample->Watts());
  }
  alone.sm_mhz = MedianOf(std::move(sm_mhz));
  alone.watts = MedianOf(std::move(watts));
  const std::vector<Timing>& joules = Joules(arm, shape);
  if (joules.empty()) return alone;
  const ClusterMedian log_joules(analysis::LogTimesByProcess(joules),
                                 Bootstrap("joules", arm, shape));
  const Interval interval = log_joules.Envelope(options_.confidence);
  alone.joules = summary::RatioOfLogs(log_joules.estimate(), interval.low, interval.high);
  return alone;
}

std::string RecordIndex::WhyStarved(std::initializer_list<std::string> arms,
                                    const std::string& shape) const {
  for (const std::string& arm : arms) {
    if (std::string why = Samples(arm, shape).WhyStarved(arm); !why.empty()) return why;
  }
  return "";
}

CheckFacts RecordIndex::Checks(const std::string& arm, const std::string& shape) const {
  const auto it = checks_.find(ArmShape(arm, shape));
  return it == checks_.end() ? CheckFacts{} : it->second;
}

analysis::BootstrapOptions RecordIndex::Bootstrap(const char* figure, const std::string& arm,
                                                  const std::string& shape) const {
  return {.resamples = options_.bootstrap_resamples,
          .seed = analysis::StreamSeed(options_.bootstrap_seed,
                                       absl::StrCat(figure, ":", arm, ":", shape))};
}

summary::Times RecordIndex::TimesOf(const std::string& arm, const std::string& shape) const {
  const std::vector<Timing>& timings = Timings(arm, shape);
  std::set<int> processes;
  std::vector<double> us;
  for (const Timing& timing : timings) {
    processes.insert(timing.process);
    us.push_back(timing.us);
  }
  summary::Times out;
  out.n_samples = std::ssize(timings);
  out.n_processes = std::ssize(processes);
  if (timings.empty()) return out;
  std::sort(us.begin(), us.end());
  const double p50 = analysis::SortedQuantile(us, 0.5);
  const Interval log_ci =
      ClusterMedian(analysis::LogTimesByProcess(timings), Bootstrap("time", arm, shape))
          .Envelope(Confidence(shape));
  // The interval is made on logarithms, where the median of an even number is
  // the middle two's geometric mean: a hair below p50.
  out.p50_us = {SixDigits(p50), SixDigits(std::min(p50, std::exp(log_ci.low))),
                SixDigits(std::max(p50, std::exp(log_ci.high)))};
  out.p10_us = SixDigits(analysis::SortedQuantile(us, 0.1));
  out.p90_us = SixDigits(analysis::SortedQuantile(us, 0.9));
  return out;
}

std::vector<Pair> RecordIndex::Pairs(const std::string& base, const std::string& candidate,
                                     const std::string& shape) const {
  std::vector<Pair> pairs = analysis::PairUp(Timings(base, shape), Timings(candidate, shape));
  // Behind the look that was reached, nobody has planned to look.
  if (const auto found = looks_.find(shape); found != looks_.end()) {
    std::erase_if(pairs,
                  [&](const Pair& pair) { return pair.base.process >= found->second.processes; });
  }
  return pairs;
}

// What the record holds of the code that `config` ran on for a shape.
template <typename Find>
auto RecordIndex::ForShape(const std::string& config, const ShapeInfo& shape,
                           const Find& find) const {
  decltype(find(config)) found = nullptr;
  for (const std::string& name : subject_->CodeNames(config, shape)) {
    if (found == nullptr) found = find(name);
  }
  return found;
}

const InstanceLaunch* RecordIndex::Launch(const Arm& arm, const ShapeInfo& shape) const {
  return ForShape(arm.config, shape, [&](const std::string& name) -> const InstanceLaunch* {
    if (!record_->launch) return nullptr;
    for (const InstanceLaunch& launch : *record_->launch) {
      if (launch.variant == name) return &launch;
    }
    return nullptr;
  });
}

const InstanceResources* RecordIndex::Resources(const Arm& arm, const ShapeInfo& shape) const {
  return ForShape(arm.config, shape, [&](const std::string& name) -> const InstanceResources* {
    return record_->resources ? CodeFor(arch_, *record_->resources, name) : nullptr;
  });
}

const InstanceCodegen* RecordIndex::Code(const Arm& arm, const ShapeInfo& shape) const {
  return ForShape(arm.config, shape, [&](const std::string& name) -> const InstanceCodegen* {
    return record_->codegen ? CodeFor(arch_, record_->codegen->instances, name) : nullptr;
  });
}

std::string RecordIndex::CodeHash(const Arm& arm, const ShapeInfo& shape) const {
  const InstanceCodegen* instance = Code(arm, shape);
  return instance == nullptr ? "" : instance->code_sha256;
}

std::vector<std::vector<std::string>> RecordIndex::Calls(const Arm& arm,
                                                         const ShapeInfo& shape) const {
  std::vector<std::vector<std::string>> calls;
  for (const LaunchedCall& call : record_->calls) {
    if (call.arm == arm.name && call.shape == shape.name) calls.push_back(call.lines);
  }
  return calls;
}

std::string RecordIndex::WhyToggleInvalid(const Arm& base, const Arm& candidate,
                                          const ShapeInfo& shape, const std::string& toggle) const {
  const Claim* claim = subject_->FindClaim(toggle);
  if (claim != nullptr && !claim->evidence.launched.empty()) {
    const bool on_in_base = subject_->IsOn(base.config, *claim);
    std::string why = analysis::WhyLaunchInvalid(
        {.base = Calls(base, shape),
         .candidate = Calls(candidate, shape),
         .pattern = on_in_base ? "" : std::string(claim->evidence.launched),
         .vanishes = claim->evidence.launched_vanishes});
    if (!why.empty()) return why;
    const bool one_code =
        subject_->CodeNames(base.config, shape) == subject_->CodeNames(candidate.config, shape);
    if (claim->launch_side && one_code) return "";
  }
  return WhyCodeInvalid(base, candidate, shape, toggle);
}

std::string RecordIndex::WhyCodeInvalid(const Arm& base, const Arm& candidate,
                                        const ShapeInfo& shape, const std::string& toggle) const {
  const InstanceCodegen* base_code = Code(base, shape);
  const InstanceCodegen* candidate_code = Code(candidate, shape);
  const Claim* claim = subject_->FindClaim(toggle);
  const bool by_opcodes = claim != nullptr && !subject_->IsOn(base.config, *claim);
  return analysis::WhyCodeInvalid(
      {.base = CodeHash(base, shape),
       .candidate = CodeHash(candidate, shape),
       .base_opcodes = base_code ? &base_code->opcodes : nullptr,
       .candidate_opcodes = candidate_code ? &candidate_code->opcodes : nullptr,
       // What tells on from off need not tell one level from another.
       .sass = by_opcodes ? std::string(claim->evidence.opcodes) : "",
       .fewer = claim != nullptr && claim->evidence.fewer_opcodes});
}

std::string RecordIndex::WhyNotApplicable(const Arm& arm, const ShapeInfo& shape) const {
  return Launch(arm, shape) != nullptr ? "" : subject_->WhyNoVariant(shape);
}

std::string RecordIndex::WhyDoesNothing(const Arm& base, const Arm& candidate,
                                        const ShapeInfo& shape, const std::string& toggle) const {
  const Claim* claim = subject_->FindClaim(toggle);
  if (claim == nullptr || !claim->may_do_nothing) return "";
  return subject_->CodeNames(base.config, shape) == subject_->CodeNames(candidate.config, shape)
             ? "it has nothing to do on this shape, where both sides run one kernel"
             : "";
}

std::string RecordIndex::WhyBroken(std::initializer_list<std::string> arms,
                                   const ShapeInfo& shape) const {
  for (const std::string& name : arms) {
    const CheckFacts checks = Checks(name, shape.name);
    if (checks.broken != nullptr) return absl::StrCat(name, ": ", checks.WhyBroken());
    if (checks.count == 0) {
      return absl::StrCat(name, " was never checked on this shape");
    }
    if (!checks.all_correct) return absl::StrCat(name, " ", checks.first_failure);
  }
  return "";
}

std::string RecordIndex::WhyUnusable(const Arm& arm, const ShapeInfo& shape) const {
  std::string why = WhyNotApplicable(arm, shape);
  if (why.empty()) why = WhyBroken({arm.name}, shape);
  if (why.empty() && arm.role == kRoleStep) {
    why = WhyToggleInvalid(*arms_.at(arm.base), arm, shape, arm.toggle);
    if (why.empty()) {
      why = analysis::WhyConditionsInvalid(Pairs(arm.base, arm.name, shape.name));
    }
  }
  return why;
}

}  // namespace warpledger::ablations
