#include "ablations/summarize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "ablations/analysis/cluster_median.h"
#include "ablations/analysis/holm.h"
#include "ablations/analysis/paired.h"
#include "ablations/analysis/quantile.h"
#include "ablations/analysis/random.h"
#include "ablations/analysis/variance_split.h"
#include "ablations/analysis/verdict.h"
#include "ablations/attribute.h"
#include "ablations/designs.h"
#include "ablations/fractional.h"
#include "ablations/fractional_effects.h"
#include "ablations/rounded.h"
#include "ablations/stopping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "kernels/common/nvml.h"
#include "kernels/sdpa/config.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using analysis::ClusterMedian;
using analysis::Interval;
using analysis::Pair;
using analysis::Timing;

Json MedianOrNull(std::vector<double> values) {
  return values.empty() ? Json(nullptr) : Rounded(analysis::Median(std::move(values)));
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

bool IsMeasuredHere(const Arm& arm) { return arm.role != kRolePeer && arm.role != kRoleFloor; }
bool IsControl(const Arm& arm) { return arm.role == kRoleAa || arm.role == kRoleNull; }

// What a rule of correctness knows of one arm on one shape.
struct CheckFacts {
  int count = 0;
  bool all_correct = true;
  const Check* worst = nullptr;  // largest error against its limit
  std::string first_failure;
  const BrokenArm* broken = nullptr;  // it could not be run to its end

  std::optional<bool> correct() const {
    if (broken != nullptr) return false;
    return count == 0 ? std::nullopt : std::optional<bool>(all_correct);
  }
  // Why it is broken; empty when it is not.
  std::string WhyBroken() const {
    if (broken != nullptr) return absl::StrCat(broken->kind, ": ", broken->reason);
    return count == 0 ? "no correctness check on this shape" : first_failure;
  }
};

double ErrorOverLimit(const Check& check) {
  const double ratio = check.max_err / check.max_err_limit;
  // NaN: the error is not a number, or 0 against a limit of 0.
  if (std::isnan(ratio)) return check.max_err == 0 ? 0 : HUGE_VAL;
  return ratio;
}

std::string FailureText(const Check& check) {
  const std::string why = check.reason.empty() ? "no reason recorded" : check.reason;
  return absl::StrCat("failed on inputs '", check.inputs, "', seed ", check.seed, ": ", why);
}

class Summarizer {
 public:
  Summarizer(const Record& record, const SummarizeOptions& options)
      : record_(record), run_(record.run), options_(options), arch_(ArchOf(record.run.gpu)) {}

  absl::StatusOr<Json> Run() {
    if (record_.samples.empty()) {
      return absl::DataLossError(
          absl::StrCat(kSamplesFile,
                       ": holds no sample, so there is nothing to judge. `warpledger run` on the "
                       "record's folder measures what is missing."));
    }
    if (absl::Status status = Index(); !status.ok()) return status;
    Json cells = Json::array();
    Json floors = Json::array();
    Json controls = Json::array();
    for (const Arm& arm : run_.arms) {
      for (const ShapeInfo& shape : run_.shapes) {
        if (arm.role == kRoleFloor) AddFloor(arm, shape, &floors);
        if (IsMeasuredHere(arm)) cells.push_back(Cell(arm, shape));
        if (IsControl(arm)) AddControl(arm, shape, &controls);
      }
    }
    int false_verdicts = 0;
    int intervals_holding_one = 0;
    for (const Json& control : controls) {
      if (control["false_verdict"].get<bool>()) ++false_verdicts;
      if (control["holds_one"].get<bool>()) ++intervals_holding_one;
    }
    int family_size = 0;
    Json verdicts = Verdicts(&family_size);

    Json summary;
    summary["schema_version"] = kSchemaVersion;
    summary["run_id"] = run_.run_id;
    summary["gpu"] = run_.gpu.slug;
    summary["design"] = run_.design;
    summary["family"] = run_.family;
    summary["provenance"] = Provenance();
    summary["statistics"] = {
        {"confidence", options_.confidence},
        {"bootstrap_resamples", options_.bootstrap_resamples},
        {"bootstrap_seed", options_.bootstrap_seed},
        {"neutral_delta", options_.neutral_delta},
        {"family_size", family_size},
        {"correction", "Holm"},
        {"interval",
         "the wider of a cluster bootstrap over whole processes and Student's t on the processes' "
         "medians"}};
    if (run_.stopping) summary["statistics"]["looks"] = Looks();
    summary["shapes"] = Json::array();
    for (const ShapeInfo& shape : run_.shapes) summary["shapes"].push_back(ToJson(shape));
    summary["cells"] = std::move(cells);
    summary["peers"] = Peers();
    summary["floors"] = std::move(floors);
    summary["verdicts"] = std::move(verdicts);
    summary["controls_summary"] = {{"trials", controls.size()},
                                   {"false_verdicts", false_verdicts},
                                   {"intervals_holding_one", intervals_holding_one}};
    summary["controls"] = std::move(controls);
    summary["micro"] = options_.micro ? options_.micro->entries : Json::array();
    if (options_.micro) summary["provenance"]["micro"] = options_.micro->provenance;
    if (IsFractional(run_.design)) AddFraction(&summary);
    if (IsFactorial(run_.design)) {
      if (absl::Status status = AddFactorial(&summary); !status.ok()) return status;
    } else {
      AddNotApplicable(&summary);
    }
    return summary;
  }

 private:
  using ArmShape = std::pair<std::string, std::string>;

  // Groups samples and checks; every step must have its row in the registry.
  absl::Status Index() {
    std::set<std::string> shapes;
    for (const ShapeInfo& shape : run_.shapes) shapes.insert(shape.name);
    for (const Arm& arm : run_.arms) {
      arms_[arm.name] = &arm;
      if (first_ == nullptr && arm.role == kRoleBase) first_ = &arm;
      if (arm.toggle.empty() && arm.role != kRoleStep) continue;
      if (Row(arm) == nullptr) {
        return absl::FailedPreconditionError(absl::StrCat(
            "run.json: arm '", arm.name, "' adds toggle '", arm.toggle,
            "', which this program's registry does not know, so its gate and prediction are "
            "unknown; judge the record with the version that wrote it"));
      }
    }
    for (const Sample& sample : record_.samples) {
      const bool peer = sample.arm.rfind(kPeerPrefix, 0) == 0;
      if (!shapes.contains(sample.shape) || (!peer && !arms_.contains(sample.arm))) {
        return absl::InvalidArgumentError(
            absl::StrCat("sample ", sample.seq, ": arm '", sample.arm, "' or shape '", sample.shape,
                         "' is not in run.json; the record is not whole"));
      }
      const uint64_t reasons = sample.throttle.value_or(0);
      timings_[{sample.arm, sample.shape}].push_back(
          {.process = sample.process,
           .block = sample.block,
           .us = sample.us,
           .sm_mhz = sample.sm_mhz.value_or(0),
           .throttled = IsThrottledBesidesPowerCap(reasons),
           .power_capped = IsPowerCapped(reasons)});
    }
    for (const Check& check : record_.checks) {
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
    for (const BrokenArm& broken : record_.broken) {
      CheckFacts& facts = checks_[{broken.arm, broken.shape}];
      if (facts.broken == nullptr) facts.broken = &broken;
    }
    if (run_.stopping) {
      for (const ShapeInfo& shape : run_.shapes) {
        looks_[shape.name] = StateOf(run_, record_.samples, shape.name);
      }
    }
    return absl::OkStatus();
  }

  // What the looks of a run with a stopping rule leave of alpha; 1 without a rule.
  double AlphaShare(const std::string& shape) const {
    const auto found = looks_.find(shape);
    return found == looks_.end() ? 1 : found->second.alpha_share;
  }
  double Confidence(const std::string& shape) const {
    const double share = AlphaShare(shape);
    return share == 1 ? options_.confidence : 1 - (1 - options_.confidence) * share;
  }

  static const sdpa::ToggleRow* Row(const std::string& toggle) {
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (row.id == toggle) return &row;
    }
    return nullptr;
  }
  static const sdpa::ToggleRow* Row(const Arm& arm) { return Row(arm.toggle); }

  const std::vector<Timing>& Timings(const std::string& arm, const std::string& shape) const {
    static const std::vector<Timing> kNone;
    const auto it = timings_.find(ArmShape(arm, shape));
    return it == timings_.end() ? kNone : it->second;
  }

  CheckFacts Checks(const std::string& arm, const std::string& shape) const {
    const auto it = checks_.find(ArmShape(arm, shape));
    return it == checks_.end() ? CheckFacts{} : it->second;
  }

  analysis::BootstrapOptions Bootstrap(const char* figure, const std::string& arm,
                                       const std::string& shape) const {
    return {.resamples = options_.bootstrap_resamples,
            .seed = analysis::StreamSeed(options_.bootstrap_seed,
                                         absl::StrCat(figure, ":", arm, ":", shape))};
  }

  // n_samples, n_processes and the median with its interval.
  void AddTimes(const std::string& arm, const std::string& shape, bool with_processes,
                Json* out) const {
    const std::vector<Timing>& timings = Timings(arm, shape);
    std::set<int> processes;
    std::vector<double> us;
    for (const Timing& timing : timings) {
      processes.insert(timing.process);
      us.push_back(timing.us);
    }
    (*out)["n_samples"] = timings.size();
    if (with_processes) (*out)["n_processes"] = processes.size();
    if (timings.empty()) {
      for (const char* field : {"p50_us", "ci_low_us", "ci_high_us", "p10_us", "p90_us"}) {
        (*out)[field] = nullptr;
      }
      return;
    }
    std::sort(us.begin(), us.end());
    const double p50 = analysis::SortedQuantile(us, 0.5);
    const Interval log_ci =
        ClusterMedian(analysis::LogTimesByProcess(timings), Bootstrap("time", arm, shape))
            .Envelope(Confidence(shape));
    (*out)["p50_us"] = Rounded(p50);
    // The interval is made on logarithms, where the median of an even number is
    // the middle two's geometric mean: a hair below p50.
    (*out)["ci_low_us"] = Rounded(std::min(p50, std::exp(log_ci.low)));
    (*out)["ci_high_us"] = Rounded(std::max(p50, std::exp(log_ci.high)));
    (*out)["p10_us"] = Rounded(analysis::SortedQuantile(us, 0.1));
    (*out)["p90_us"] = Rounded(analysis::SortedQuantile(us, 0.9));
  }

  std::vector<Pair> Pairs(const std::string& base, const std::string& candidate,
                          const std::string& shape) const {
    std::vector<Pair> pairs = analysis::PairUp(Timings(base, shape), Timings(candidate, shape));
    // Behind the look that was reached, nobody has planned to look.
    if (const auto found = looks_.find(shape); found != looks_.end()) {
      std::erase_if(pairs,
                    [&](const Pair& pair) { return pair.base.process >= found->second.processes; });
    }
    return pairs;
  }

  // What the record holds of the instance that `config` ran on for a shape. Records
  // that are older than instances per mask name it by the configuration alone.
  template <typename Find>
  auto ForShape(const std::string& printed, const ShapeInfo& shape, const Find& find) const {
    const std::string config = sdpa::CompiledName(printed);
    const int head_dim = shape.problem.head_dim;
    const bool projected = shape.problem.embed_dim > 0;
    const auto* found =
        find(config + sdpa::InstanceSuffix(head_dim, shape.problem.causal, projected));
    if (found == nullptr) found = find(config + sdpa::InstanceSuffix(head_dim, false, projected));
    return found;
  }

  const InstanceLaunch* Launch(const std::string& config, const ShapeInfo& shape) const {
    return ForShape(config, shape, [&](const std::string& name) -> const InstanceLaunch* {
      if (!record_.launch) return nullptr;
      for (const InstanceLaunch& launch : *record_.launch) {
        if (launch.variant == name) return &launch;
      }
      return nullptr;
    });
  }

  // sm_90a's code runs on sm_90 too; exactly sm_90 goes first.
  template <typename T>
  const T* ForThisGpu(const std::vector<T>& instances, const std::string& config) const {
    const T* found = nullptr;
    for (const T& instance : instances) {
      if (instance.variant != config) continue;
      if (instance.arch == arch_) return &instance;
      if (instance.arch == arch_ + "a") found = &instance;
    }
    return found;
  }

  const InstanceCodegen* Code(const Arm& arm, const ShapeInfo& shape) const {
    return ForShape(arm.config, shape, [&](const std::string& name) -> const InstanceCodegen* {
      return record_.codegen ? ForThisGpu(record_.codegen->instances, name) : nullptr;
    });
  }

  std::string CodeHash(const Arm& arm, const ShapeInfo& shape) const {
    const InstanceCodegen* instance = Code(arm, shape);
    return instance == nullptr ? "" : instance->code_sha256;
  }

  // Whether an arm's printed configuration has the toggle on, at any level.
  static bool IsOnIn(const Arm& arm, const sdpa::ToggleRow& row) {
    for (const absl::string_view part : absl::StrSplit(arm.config, '+')) {
      if (part.substr(0, part.find('=')) == absl::string_view(row.id.data(), row.id.size())) {
        return true;
      }
    }
    return false;
  }

  std::vector<std::vector<std::string>> Calls(const Arm& arm, const ShapeInfo& shape) const {
    std::vector<std::vector<std::string>> calls;
    for (const LaunchedCall& call : record_.calls) {
      if (call.arm == arm.name && call.shape == shape.name) calls.push_back(call.lines);
    }
    return calls;
  }

  // Why the toggle is not shown to have reached what was timed: its machine code, what
  // was launched, or both.
  std::string WhyToggleInvalid(const Arm& base, const Arm& candidate, const ShapeInfo& shape,
                               const std::string& toggle) const {
    const sdpa::ToggleRow* row = Row(toggle);
    if (row != nullptr && !row->evidence.launched.empty()) {
      const bool between_levels = IsOnIn(base, *row);
      std::string why = analysis::WhyLaunchInvalid(
          {.base = Calls(base, shape),
           .candidate = Calls(candidate, shape),
           .pattern = between_levels ? "" : std::string(row->evidence.launched),
           .vanishes = row->evidence.launched_vanishes});
      if (!why.empty()) return why;
      const bool one_instance =
          sdpa::CompiledName(base.config) == sdpa::CompiledName(candidate.config);
      if (row->launch_side && one_instance) return "";
    }
    return WhyCodeInvalid(base, candidate, shape, toggle);
  }

  std::string WhyCodeInvalid(const Arm& base, const Arm& candidate, const ShapeInfo& shape,
                             const std::string& toggle) const {
    const InstanceCodegen* base_code = Code(base, shape);
    const InstanceCodegen* candidate_code = Code(candidate, shape);
    const sdpa::ToggleRow* row = Row(toggle);
    return analysis::WhyCodeInvalid(
        {.base = CodeHash(base, shape),
         .candidate = CodeHash(candidate, shape),
         .base_opcodes = base_code ? &base_code->opcodes : nullptr,
         .candidate_opcodes = candidate_code ? &candidate_code->opcodes : nullptr,
         // What tells on from off need not tell one level from another.
         .sass = row == nullptr || IsOnIn(base, *row) ? "" : std::string(row->evidence.sass)});
  }

  static std::string Label(const Arm& arm) {
    if (arm.role == kRoleAa) return "Same kernel again (A/A control)";
    if (arm.role == kRoleWithout) return absl::StrCat("Without: ", std::string(Row(arm)->label));
    if (const sdpa::ToggleRow* row = Row(arm)) return std::string(row->label);
    if (arm.config == sdpa::kBaseline.id) return std::string(sdpa::kBaseline.label);
    return arm.name;
  }

  Json SpeedupOverFirst(const Arm& arm, const ShapeInfo& shape) const {
    if (first_ == nullptr) return nullptr;
    // Nothing that fails is ranked, nor anything against it.
    if (!Checks(arm.name, shape.name).correct().value_or(false)) return nullptr;
    if (!Checks(first_->name, shape.name).correct().value_or(false)) return nullptr;
    if (&arm == first_) {
      if (Timings(arm.name, shape.name).empty()) return nullptr;
      return {{"ratio", 1.0}, {"ci_low", 1.0}, {"ci_high", 1.0}};
    }
    const std::vector<Pair> pairs = Pairs(first_->name, arm.name, shape.name);
    if (pairs.empty()) return nullptr;
    const ClusterMedian log_ratio(analysis::LogRatiosByProcess(pairs),
                                  Bootstrap("over_first", arm.name, shape.name));
    const Interval interval = log_ratio.Envelope(Confidence(shape.name));
    return {{"ratio", Rounded(std::exp(log_ratio.estimate()))},
            {"ci_low", Rounded(std::exp(interval.low))},
            {"ci_high", Rounded(std::exp(interval.high))}};
  }

  Json Cell(const Arm& arm, const ShapeInfo& shape) const {
    const CheckFacts checks = Checks(arm.name, shape.name);
    Json cell;
    cell["variant"] = arm.name;
    cell["config"] = arm.config;
    cell["role"] = arm.role;
    cell["toggle"] = arm.toggle;
    cell["label"] = Label(arm);
    cell["shape"] = shape.name;
    cell["correct"] = checks.correct() ? Json(*checks.correct()) : Json(nullptr);
    cell["max_err"] = checks.worst ? Rounded(checks.worst->max_err) : Json(nullptr);
    cell["max_err_rule"] = checks.worst ? Rounded(checks.worst->max_err_limit) : Json(nullptr);
    cell["n_checks"] = checks.count;
    AddTimes(arm.name, shape.name, /*with_processes=*/true, &cell);
    const double us = cell["p50_us"].is_null() ? 0 : cell["p50_us"].get<double>();
    cell["tflops"] = us > 0 ? Rounded(sdpa::Flops(shape.problem) / us * 1e-6) : Json(nullptr);
    cell["speedup_over_first"] = SpeedupOverFirst(arm, shape);
    AddResources(arm, shape, &cell);
    cell["code_sha256"] = TextOrNull(CodeHash(arm, shape));
    std::vector<double> sm_mhz;
    for (const Timing& timing : Timings(arm.name, shape.name)) {
      if (timing.sm_mhz > 0) sm_mhz.push_back(timing.sm_mhz);
    }
    cell["sm_mhz_p50"] = MedianOrNull(std::move(sm_mhz));
    cell["reason"] = checks.WhyBroken();
    return cell;
  }

  // What the driver says of the loaded kernel goes before what ptxas said.
  void AddResources(const Arm& arm, const ShapeInfo& shape, Json* cell) const {
    const InstanceLaunch* launch = Launch(arm.config, shape);
    const InstanceResources* ptxas =
        ForShape(arm.config, shape, [&](const std::string& name) -> const InstanceResources* {
          return record_.resources ? ForThisGpu(*record_.resources, name) : nullptr;
        });
    Json& out = *cell;
    for (const char* field :
         {"registers", "smem_bytes", "spill_bytes", "stack_bytes", "threads", "ctas_per_sm"}) {
      out[field] = nullptr;
    }
    if (ptxas != nullptr) {
      out["registers"] = ptxas->registers;
      out["smem_bytes"] = ptxas->static_smem_bytes;
      out["spill_bytes"] = ptxas->spill_store_bytes + ptxas->spill_load_bytes;
      out["stack_bytes"] = ptxas->stack_bytes;
    }
    if (launch != nullptr) {
      out["registers"] = launch->registers;
      out["smem_bytes"] = launch->static_smem_bytes + launch->dynamic_smem_bytes;
      out["threads"] = launch->threads;
      out["ctas_per_sm"] = launch->ctas_per_sm;
    }
  }

  void AddFloor(const Arm& arm, const ShapeInfo& shape, Json* floors) const {
    if (Timings(arm.name, shape.name).empty()) return;
    Json floor;
    floor["name"] = arm.name;
    floor["shape"] = shape.name;
    AddTimes(arm.name, shape.name, /*with_processes=*/false, &floor);
    floors->push_back(std::move(floor));
  }

  std::string WhyNotApplicable(const Arm& arm, const ShapeInfo& shape) const {
    if (shape.problem.head_dim == sdpa::kDefaultHeadDim) return "";
    if (Launch(arm.config, shape) != nullptr) return "";
    return absl::StrCat("no kernel of this design is compiled for head_dim ",
                        shape.problem.head_dim);
  }

  std::string WhyBroken(std::initializer_list<std::string> arms, const ShapeInfo& shape) const {
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

  static Json Bound(const std::optional<Interval>& interval, double Interval::*bound) {
    return interval ? Rounded((*interval).*bound) : Json(nullptr);
  }

  // A control says what the same samples would have said of a real toggle; it
  // stands outside the family, so at the unadjusted level.
  void AddControl(const Arm& arm, const ShapeInfo& shape, Json* controls) const {
    const std::vector<Pair> pairs = Pairs(arm.base, arm.name, shape.name);
    if (pairs.empty()) return;
    const ClusterMedian log_ratio(analysis::LogRatiosByProcess(pairs),
                                  Bootstrap("control", arm.name, shape.name));
    analysis::Evidence evidence = {.not_applicable = "",
                                   .broken = "",
                                   .invalid = "",
                                   .log_ratio = &log_ratio,
                                   .alpha = 1 - Confidence(shape.name),
                                   .gate = Row(arm) ? Row(arm)->gate : sdpa::ToggleRow{}.gate,
                                   .neutral_delta = options_.neutral_delta};
    const analysis::Judgement timing = Judge(evidence);
    if (arm.role == kRoleNull) {
      evidence.invalid = WhyCodeInvalid(*arms_.at(arm.base), arm, shape, arm.toggle);
    }
    const bool false_verdict = timing.verdict != analysis::Verdict::kNeutral &&
                               timing.verdict != analysis::Verdict::kInconclusive;
    controls->push_back({{"kind", arm.role},
                         {"shape", shape.name},
                         {"candidate", arm.name},
                         {"ratio", Rounded(timing.ratio)},
                         {"ci_low", Bound(timing.interval, &Interval::low)},
                         {"ci_high", Bound(timing.interval, &Interval::high)},
                         {"holds_one", timing.interval->low <= 1 && timing.interval->high >= 1},
                         {"timing_verdict", VerdictName(timing.verdict)},
                         {"verdict", VerdictName(Judge(evidence).verdict)},
                         {"false_verdict", false_verdict}});
  }

  // What a verdict is about: `arm` names the toggle, base and candidate the times.
  struct Claim {
    const Arm* arm = nullptr;
    std::string base;
    std::string candidate;
    const ShapeInfo* shape = nullptr;
    std::vector<Pair> pairs;
    std::unique_ptr<ClusterMedian> log_ratio;
    std::string not_applicable;
  };

  // The declared family is every step on every shape that it applies to, whether
  // or not its samples turn out to be usable: what is counted must not depend on
  // the outcome.
  Json Verdicts(int* family_size) const {
    std::vector<Claim> claims;
    std::vector<double> p_values;
    for (const Arm& arm : run_.arms) {
      if (arm.role != kRoleStep && arm.role != kRoleWithout) continue;
      // A `without` arm lacks the toggle, and the arm it names has it.
      const bool adds = arm.role == kRoleStep;
      const std::string& base = adds ? arm.base : arm.name;
      const std::string& candidate = adds ? arm.name : arm.base;
      for (const ShapeInfo& shape : run_.shapes) {
        Claim claim = {.arm = &arm,
                       .base = base,
                       .candidate = candidate,
                       .shape = &shape,
                       .pairs = Pairs(base, candidate, shape.name),
                       .log_ratio = nullptr,
                       .not_applicable = WhyNotApplicable(arm, shape)};
        if (claim.not_applicable.empty() && !arm.base.empty()) {
          claim.not_applicable = WhyNotApplicable(*arms_.at(arm.base), shape);
        }
        if (!claim.pairs.empty()) {
          claim.log_ratio = std::make_unique<ClusterMedian>(
              analysis::LogRatiosByProcess(claim.pairs),
              Bootstrap("verdict", absl::StrCat(arm.toggle, ":", base), shape.name));
        }
        if (claim.not_applicable.empty()) {
          const bool testable = claim.log_ratio != nullptr &&
                                claim.log_ratio->n_clusters() >= analysis::kMinProcesses;
          // Over its share of alpha, the p-value of any look is one of the whole run.
          p_values.push_back(
              testable ? std::min(1.0, claim.log_ratio->PValue(0) / AlphaShare(shape.name)) : 1);
        }
        claims.push_back(std::move(claim));
      }
    }
    const std::vector<analysis::HolmLevel> levels =
        analysis::Holm(p_values, 1 - options_.confidence);
    *family_size = static_cast<int>(levels.size());
    Json verdicts = Json::array();
    size_t member = 0;
    for (const Claim& claim : claims) {
      const double level = claim.not_applicable.empty() ? levels[member++].alpha : 0;
      const double alpha = level * AlphaShare(claim.shape->name);
      verdicts.push_back(VerdictOf(claim, alpha));
    }
    return verdicts;
  }

  Json VerdictOf(const Claim& claim, double alpha) const {
    const Arm& arm = *claim.arm;
    const sdpa::ToggleRow& row = *Row(arm);
    const bool in_family = claim.not_applicable.empty();
    const Arm& base = *arms_.at(claim.base);
    const Arm& candidate = *arms_.at(claim.candidate);
    std::string invalid = WhyToggleInvalid(base, candidate, *claim.shape, arm.toggle);
    if (invalid.empty()) invalid = analysis::WhyConditionsInvalid(claim.pairs);
    const analysis::Judgement judgement =
        analysis::Judge({.not_applicable = claim.not_applicable,
                         .broken = WhyBroken({claim.base, claim.candidate}, *claim.shape),
                         .invalid = invalid,
                         .log_ratio = in_family ? claim.log_ratio.get() : nullptr,
                         .alpha = alpha,
                         .gate = row.gate,
                         .neutral_delta = options_.neutral_delta});
    std::set<int> processes;
    for (const Pair& pair : claim.pairs) processes.insert(pair.base.process);
    const std::optional<analysis::VarianceSplit> split =
        analysis::SplitVariance(analysis::LogRatiosByProcess(claim.pairs));

    // A prediction speaks of one shape and of its ladder's order, or of a technique
    // alone beyond the ladder, and only sound evidence can test it.
    const bool predicted_here =
        row.predicted.shape == claim.shape->name &&
        (IsCumulative(run_.design) || IsPredictedBeyondLadder(row, claim.candidate));
    const bool sound = judgement.interval && judgement.verdict != analysis::Verdict::kBroken &&
                       judgement.verdict != analysis::Verdict::kInvalid &&
                       static_cast<int>(processes.size()) >= analysis::kMinProcesses;
    Json held = nullptr;
    if (predicted_here && sound) {
      held = judgement.interval->low <= row.predicted.high &&
             judgement.interval->high >= row.predicted.low;
    }
    const analysis::PowerCap cap = analysis::FindPowerCap(claim.pairs);
    std::string reason = judgement.reason;
    if (cap.Any()) absl::StrAppend(&reason, reason.empty() ? "" : "; ", cap.Text());
    Json verdict = {{"toggle", arm.toggle},
                    {"design", run_.design},
                    {"base", claim.base},
                    {"candidate", claim.candidate},
                    {"shape", claim.shape->name},
                    {"n_pairs", claim.pairs.size()},
                    {"n_processes", processes.size()},
                    {"ratio", Rounded(judgement.ratio)},
                    {"ci_low", Bound(judgement.interval, &Interval::low)},
                    {"ci_high", Bound(judgement.interval, &Interval::high)},
                    {"adjusted_confidence", in_family ? Rounded(1 - alpha) : Json(nullptr)},
                    {"gate", row.gate},
                    {"verdict", VerdictName(judgement.verdict)},
                    {"reason", reason},
                    {"mde_ratio", Rounded(judgement.mde_ratio)},
                    {"within_process_sd", split ? Rounded(split->within) : Json(nullptr)},
                    {"between_process_sd", split ? Rounded(split->between) : Json(nullptr)},
                    {"predicted_low", predicted_here ? Json(row.predicted.low) : Json(nullptr)},
                    {"predicted_high", predicted_here ? Json(row.predicted.high) : Json(nullptr)},
                    {"prediction_held", std::move(held)}};
    // Only where it is so: summaries of other records keep their bytes.
    if (cap.Any()) {
      verdict["power_capped"] = {{"base_pairs", cap.base},
                                 {"candidate_pairs", cap.candidate},
                                 {"base_sm_mhz", Rounded(cap.base_mhz)},
                                 {"candidate_sm_mhz", Rounded(cap.candidate_mhz)}};
    }
    return verdict;
  }

  // Why a cell of a factorial tells nothing on a shape; empty when it does. A
  // step that reached no code or ran under other conditions than its base would
  // put that into the toggle's share.
  std::string WhyUnusable(const Arm& arm, const ShapeInfo& shape) const {
    std::string why = WhyNotApplicable(arm, shape);
    if (why.empty()) why = WhyBroken({arm.name}, shape);
    if (why.empty() && arm.role == kRoleStep) {
      why = WhyCodeInvalid(*arms_.at(arm.base), arm, shape, arm.toggle);
      if (why.empty()) {
        why = analysis::WhyConditionsInvalid(Pairs(arm.base, arm.name, shape.name));
      }
    }
    return why;
  }

  void AddFraction(Json* summary) const {
    const Fraction fraction = FindFraction(run_.arms);
    (*summary)["effects"] = Json::array();
    for (const ShapeInfo& shape : run_.shapes) {
      std::vector<CellData> cells;
      for (const std::string& arm : fraction.arms) {
        cells.push_back({.timings = Timings(arm, shape.name),
                         .why_unusable = WhyUnusable(*arms_.at(arm), shape)});
      }
      AddMainEffects(fraction, shape.name, cells,
                     {.confidence = Confidence(shape.name),
                      .bootstrap = Bootstrap("effects", run_.design, shape.name)},
                     summary);
    }
  }

  // The arms that the design would have if a rule of the kernels did not forbid them.
  void AddNotApplicable(Json* summary) const {
    for (const Design& design : AllDesigns()) {
      if (design.name != run_.design || design.infeasible.empty()) continue;
      Json cells = Json::array();
      for (const InfeasibleCell& cell : design.infeasible) {
        cells.push_back({{"variant", cell.name},
                         {"toggle", cell.toggle},
                         {"missing", cell.missing},
                         {"why", cell.why},
                         {"verdict", VerdictName(analysis::Verdict::kNotApplicable)}});
      }
      (*summary)["infeasible"] = std::move(cells);
    }
  }

  absl::Status AddFactorial(Json* summary) const {
    const absl::StatusOr<Factorial> factorial = FindFactorial(run_);
    if (!factorial.ok()) return factorial.status();
    (*summary)["attribution"] = Json::array();
    (*summary)["interactions"] = Json::array();
    for (const ShapeInfo& shape : run_.shapes) {
      std::vector<CellData> cells;
      for (const Arm* arm : factorial->arms) {
        cells.push_back(
            {.timings = Timings(arm->name, shape.name), .why_unusable = WhyUnusable(*arm, shape)});
      }
      AddAttribution(*factorial, run_.design, shape.name, cells,
                     {.confidence = Confidence(shape.name),
                      .bootstrap = Bootstrap("attribution", run_.design, shape.name)},
                     summary);
    }
    (*summary)["infeasible"] = InfeasibleCells(*factorial);
    return absl::OkStatus();
  }

  Json Looks() const {
    Json looks = Json::array();
    for (const ShapeInfo& shape : run_.shapes) {
      const StoppingState& state = looks_.at(shape.name);
      looks.push_back({{"shape", shape.name},
                       {"look", state.look + 1},
                       {"processes", state.processes},
                       {"alpha_share", state.alpha_share},
                       {"worst_half_width", Rounded(state.worst_half_width)},
                       {"stopped_early", state.stopped}});
    }
    return looks;
  }

  Json Peers() const {
    std::vector<PeerInfo> infos = record_.peers.value_or(std::vector<PeerInfo>{});
    std::set<std::string> named;
    for (const PeerInfo& info : infos) named.insert(info.name);
    for (const auto& [key, timings] : timings_) {
      const std::string& arm = key.first;
      if (arm.rfind(kPeerPrefix, 0) != 0 || !named.insert(arm).second) continue;
      PeerInfo info;
      info.name = arm;
      info.reason = "not described in peers.json";
      infos.push_back(std::move(info));
    }
    Json peers = Json::array();
    for (const PeerInfo& info : infos) {
      for (const ShapeInfo& shape : run_.shapes) {
        Json correct = nullptr;
        for (const PeerCheck& check : info.checks) {
          if (check.shape != shape.name) continue;
          correct = check.correct && (correct.is_null() || correct.get<bool>());
        }
        const bool timed = !Timings(info.name, shape.name).empty();
        std::string reason = timed && info.available ? "" : info.reason;
        if (!timed && reason.empty()) reason = "not timed on this shape";
        Json peer;
        peer["name"] = info.name;
        peer["version"] = info.version;
        peer["shape"] = shape.name;
        peer["available"] = timed;
        peer["correct"] = correct;
        peer["reason"] = reason;
        AddTimes(info.name, shape.name, /*with_processes=*/true, &peer);
        peers.push_back(std::move(peer));
      }
    }
    return peers;
  }

  // Whether peers were to be timed on a shape. Which of them exist shows only when
  // they run, so a shape that all of them refused counts for nothing.
  bool PlansPeers(const ShapeInfo& shape) const {
    const bool asked = std::any_of(run_.arms.begin(), run_.arms.end(),
                                   [](const Arm& arm) { return arm.role == kRolePeer; });
    if (!asked) return false;
    if (!record_.peers) return true;
    for (const PeerInfo& info : *record_.peers) {
      for (const PeerCheck& check : info.checks) {
        if (check.shape == shape.name && check.correct) return true;
      }
    }
    return false;
  }

  // What run.json plans against what is there: an interrupted run shows here.
  void AddCompleteness(Json* provenance) const {
    std::set<int> processes;
    std::set<BlockKey> found;
    std::set<std::string> with_peers;
    for (const Sample& sample : record_.samples) {
      const bool peer = sample.arm.rfind(kPeerPrefix, 0) == 0;
      if (peer) with_peers.insert(sample.shape);
      if (!peer) processes.insert(sample.process);
      found.insert({sample.process, sample.shape, sample.block, peer});
    }
    int64_t planned[2] = {0, 0};  // ours, the peers'
    int64_t missing[2] = {0, 0};
    for (const ShapeInfo& shape : run_.shapes) {
      for (const bool peers : {false, true}) {
        if (peers && !with_peers.contains(shape.name) && !PlansPeers(shape)) continue;
        const auto look = looks_.find(shape.name);
        const bool stopped = look != looks_.end() && look->second.stopped;
        const int processes = stopped ? look->second.processes : run_.processes;
        for (int process = 0; process < processes; ++process) {
          for (int block = 0; block < run_.blocks_per_process; ++block) {
            ++planned[peers];
            if (!found.contains({process, shape.name, block, peers})) ++missing[peers];
          }
        }
      }
    }
    (*provenance)["processes_found"] = processes.size();
    (*provenance)["blocks_planned"] = planned[false];
    (*provenance)["blocks_missing"] = missing[false];
    (*provenance)["peer_blocks_planned"] = planned[true];
    (*provenance)["peer_blocks_missing"] = missing[true];
  }

  Json Provenance() const {
    Json provenance = ToJson(run_);
    provenance.erase("shapes");
    provenance.erase("arms");
    AddCompleteness(&provenance);
    std::vector<double> sm_mhz;
    std::vector<double> temp_c;
    std::vector<double> power_w;
    int throttled = 0;
    int unknown_throttle = 0;
    for (const Sample& sample : record_.samples) {
      if (sample.sm_mhz) sm_mhz.push_back(*sample.sm_mhz);
      if (sample.temp_c) temp_c.push_back(*sample.temp_c);
      if (sample.power_w) power_w.push_back(*sample.power_w);
      if (!sample.throttle) ++unknown_throttle;
      if (sample.throttle && IsThrottled(*sample.throttle)) ++throttled;
    }
    const bool none_readable = unknown_throttle == static_cast<int>(record_.samples.size());
    provenance["n_samples"] = record_.samples.size();
    provenance["throttled_samples"] = none_readable ? Json(nullptr) : Json(throttled);
    provenance["unknown_throttle_samples"] = unknown_throttle;
    provenance["sm_mhz_p50"] = MedianOrNull(std::move(sm_mhz));
    provenance["temp_c_p50"] = MedianOrNull(std::move(temp_c));
    provenance["power_w_p50"] = MedianOrNull(std::move(power_w));
    return provenance;
  }

  const Record& record_;
  const RunInfo& run_;
  const SummarizeOptions options_;
  const std::string arch_;
  const Arm* first_ = nullptr;
  std::map<std::string, const Arm*> arms_;
  std::map<ArmShape, std::vector<Timing>> timings_;
  std::map<ArmShape, CheckFacts> checks_;
  std::map<std::string, StoppingState> looks_;  // by shape; of a run with a stopping rule
};

// --- The table ---------------------------------------------------------------

constexpr int kToggleColumn = 24;
constexpr int kShapeColumn = 22;

std::string Fit(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

std::string Number(const Json& value) {
  return value.is_number() ? absl::StrFormat("%.3f", value.get<double>()) : "-";
}

std::string Row(const std::string& toggle, const std::string& shape, const std::string& ratio,
                const std::string& interval, const std::string& gate, const std::string& verdict) {
  std::string row =
      absl::StrFormat("%-*s  %-*s  %8s  %-20s  %5s  %s", kToggleColumn, Fit(toggle, kToggleColumn),
                      kShapeColumn, Fit(shape, kShapeColumn), ratio, interval, gate, verdict);
  return row + "\n";
}

std::string IntervalText(const Json& item) {
  if (!item["ci_low"].is_number() || !item["ci_high"].is_number()) return "-";
  return absl::StrCat("[", Number(item["ci_low"]), ", ", Number(item["ci_high"]), "]");
}

absl::Status Require(const Json& summary, const char* list,
                     std::initializer_list<const char*> texts,
                     std::initializer_list<const char*> figures) {
  if (!summary.is_object() || !summary.contains(list) || !summary[list].is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(list, ": missing; is this a summary.json?"));
  }
  for (size_t i = 0; i < summary[list].size(); ++i) {
    const Json& item = summary[list][i];
    const auto fail = [&](const char* field) {
      return absl::InvalidArgumentError(
          absl::StrCat(list, "[", i, "].", field, ": missing or of the wrong type"));
    };
    if (!item.is_object()) return fail("");
    for (const char* field : texts) {
      if (!item.contains(field) || !item[field].is_string()) return fail(field);
    }
    for (const char* field : figures) {
      if (!item.contains(field)) return fail(field);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Json> Summarize(const Record& record, const SummarizeOptions& options) {
  if (!(options.confidence > 0.5 && options.confidence < 1) || options.bootstrap_resamples < 100 ||
      !(options.neutral_delta > 0)) {
    return absl::InvalidArgumentError(
        "summarize: confidence must lie in (0.5, 1), there must be at least 100 resamples, and "
        "neutral_delta must be above 0");
  }
  return Summarizer(record, options).Run();
}

absl::StatusOr<std::string> VerdictTable(const Json& summary) {
  absl::Status status = Require(summary, "verdicts", {"toggle", "base", "shape", "verdict"},
                                {"ratio", "ci_low", "ci_high", "gate"});
  if (status.ok()) {
    status = Require(summary, "controls", {"kind", "shape", "verdict", "timing_verdict"},
                     {"ratio", "ci_low", "ci_high"});
  }
  if (!status.ok()) return status;
  std::string table = Row("toggle", "shape", "ratio", "interval", "gate", "verdict");
  std::map<std::pair<std::string, std::string>, int> times_judged;
  for (const Json& v : summary["verdicts"]) {
    ++times_judged[{v["toggle"].get<std::string>(), v["shape"].get<std::string>()}];
  }
  for (const Json& v : summary["verdicts"]) {
    const std::string gate =
        v["gate"].is_number() ? absl::StrFormat("%.2f", v["gate"].get<double>()) : "-";
    absl::StrAppend(
        &table, Row(v["toggle"].get<std::string>(), v["shape"].get<std::string>(),
                    Number(v["ratio"]), IntervalText(v), gate, v["verdict"].get<std::string>()));
    // A factorial judges a toggle in several places.
    if (times_judged[{v["toggle"].get<std::string>(), v["shape"].get<std::string>()}] > 1) {
      absl::StrAppend(&table, "    on ", v["base"].get<std::string>(), "\n");
    }
  }
  for (const Json& c : summary["controls"]) {
    const std::string verdict = c["verdict"].get<std::string>();
    const std::string timing = c["timing_verdict"].get<std::string>();
    absl::StrAppend(&table, Row(absl::StrCat("(control) ", c["kind"].get<std::string>()),
                                c["shape"].get<std::string>(), Number(c["ratio"]), IntervalText(c),
                                "-", verdict));
    if (timing != verdict) absl::StrAppend(&table, "    by its times alone: ", timing, "\n");
  }
  return table;
}

}  // namespace warpledger::ablations
