// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/subject.h"

#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablations/base/json_fields.h"
#include "ablations/plan/job.h"
#include "ablations/subjects/sdpa/designs/own_designs.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/planted_faults.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/dtype/dtype_name.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/registry/claims.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/families.h"
#include "warpledger_build_info.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Claim> ClaimsOfRegistry() {
  std::vector<Claim> claims;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    const sdpa::Evidence& evidence = row.evidence;
    claims.push_back(
        {.id = row.id,
         .label = row.label,
         .mechanism = row.claim,
         .control = row.control,
         .gate = row.gate,
         .predicted = {row.predicted.shape, row.predicted.low, row.predicted.high,
                       row.predicted.why, row.predicted.blind},
         .evidence = {.opcodes = evidence.sass,
                      .fewer_opcodes = evidence.change == sdpa::EvidenceChange::kShrinks ||
                                       evidence.change == sdpa::EvidenceChange::kVanishes,
                      .launched = evidence.launched,
                      .launched_vanishes = evidence.launched_vanishes},
         .micro = {row.micro, row.micro_off, row.micro_off_factor},
         .prior = row.prior.text,
         .prior_us = row.prior.p50_us,
         .lesson = row.lesson,
         .launch_side = row.launch_side,
         .may_do_nothing = row.causal_only,
         .keeps_bits = sdpa::KeepsBits(row)});
  }
  return claims;
}

// Of what a kernel's products are made: no other unit's peak can be come near, however good it is.
std::string RoofOfConfig(const sdpa::Config& config) {
  if (config.wgmma_fp8) return "wgmma, FP8";
  switch (sdpa::FamilyOf(config)) {
    case sdpa::Family::kWgmma:
    case sdpa::Family::kResident:
      return "wgmma";
    case sdpa::Family::kMma:
      return "mma.sync";
    case sdpa::Family::kSmem:
      break;
  }
  return config.wmma_qk || config.wmma_pv ? "mma.sync" : "fp32 FMA";
}

// Of every kernel that a design's arms may run on.
std::vector<sdpa::Config> ConfigsOf(const Design& design) {
  std::vector<sdpa::Config> configs;
  for (const DesignArm& arm : design.arms) {
    for (const sdpa::Config& config : Specialisations(design, arm)) configs.push_back(config);
  }
  return configs;
}

// Of every kernel that a build with nvcc holds.
const std::vector<sdpa::Config>& InstanceConfigs() {
  static const auto* configs = new std::vector<sdpa::Config>(AllInstanceConfigs());
  return *configs;
}

// The first arm of each configuration that is measured for itself.
std::vector<std::pair<const Arm*, sdpa::Config>> DistinctArms(const std::vector<Arm>& arms) {
  std::vector<std::pair<const Arm*, sdpa::Config>> distinct;
  for (const Arm& arm : arms) {
    if (arm.role != kRoleBase && arm.role != kRoleStep && arm.role != kRoleWithout) continue;
    const std::optional<sdpa::Config> config = sdpa::ConfigFromName(arm.config);
    if (!config ||
        absl::c_any_of(distinct, [&](const auto& other) { return other.second == *config; })) {
      continue;
    }
    distinct.emplace_back(&arm, *config);
  }
  return distinct;
}

std::vector<DeclaredPair> DeclaredPairsOf(const std::vector<Arm>& arms) {
  const auto distinct = DistinctArms(arms);
  const auto config_of = [&](const std::string& name) {
    const auto found = absl::c_find_if(arms, [&](const Arm& arm) { return arm.name == name; });
    return found == arms.end() ? std::nullopt : sdpa::ConfigFromName(found->config);
  };
  std::vector<DeclaredPair> pairs;
  for (const sdpa::Claim& claim : sdpa::DeclaredClaims()) {
    const sdpa::ToggleField field = claim.row->field;
    // A toggle with one on-level is judged where a design says so: its steps are its claims.
    if (claim.row->levels.count == 2) continue;
    const bool is_step = absl::c_any_of(arms, [&](const Arm& arm) {
      if (arm.toggle != claim.row->id || (arm.role != kRoleStep && arm.role != kRoleWithout)) {
        return false;
      }
      const auto one = sdpa::ConfigFromName(arm.config);
      const auto other = config_of(arm.base);
      if (!one || !other) return false;
      const std::pair levels((*one).*field, (*other).*field);
      return levels == std::pair(claim.over, claim.level) ||
             levels == std::pair(claim.level, claim.over);
    });
    if (is_step) continue;
    for (const auto& [base, config] : distinct) {
      if (config.*field != claim.over) continue;
      sdpa::Config wanted = config;
      wanted.*field = claim.level;
      for (const auto& [candidate, other] : distinct) {
        if (!(other == wanted)) continue;
        pairs.push_back({.toggle = std::string(claim.row->id),
                         .family = claim.pair_family,
                         .base = base->name,
                         .candidate = candidate->name,
                         .predicted = {.problem = claim.problem,
                                       .low = claim.low,
                                       .high = claim.high,
                                       .since = sdpa::PredictsSince(claim)}});
      }
    }
  }
  return pairs;
}

class Sdpa final : public Subject {
 public:
  std::string_view name() const override { return kFirstSubject; }

  absl::Span<const Claim> claims() const override { return claims_; }
  std::string_view ClaimsFile() const override { return "kernels/sdpa/registry/toggles.def"; }

  bool IsPredictedFor(const Claim& claim, std::string_view design,
                      std::string_view candidate) const override {
    if (SpanOf(design) == Span::kCumulative) return true;
    const auto row = absl::c_find_if(
        sdpa::kToggles, [&](const sdpa::ToggleRow& each) { return each.id == claim.id; });
    // A record's design may be another one today, and the arm in several.
    return row != std::end(sdpa::kToggles) && absl::c_any_of(designs_, [&](const Design& each) {
             return IsPredicted(each, *row, candidate);
           });
  }

  std::vector<DeclaredPair> DeclaredPairs(const std::vector<Arm>& arms) const override {
    return DeclaredPairsOf(arms);
  }

  std::vector<PlannedDesign> Designs() const override {
    std::vector<PlannedDesign> designs;
    for (const Design& design : AllDesigns()) designs.push_back(Planned(design));
    return designs;
  }

  absl::StatusOr<PlannedDesign> FindDesign(std::string_view name) const override {
    ASSIGN_OR_RETURN(const Design design, ablations::FindDesign(name));
    return Planned(design);
  }

  DesignKind KindOf(std::string_view design) const override {
    switch (SpanOf(design)) {
      case Span::kCumulative:
        return DesignKind::kCumulative;
      case Span::kFactorial:
        return DesignKind::kFactorial;
      case Span::kFractional:
        return DesignKind::kFractional;
      case Span::kWholeKernels:
      case Span::kOther:
        break;
    }
    return DesignKind::kOther;
  }

  std::optional<std::vector<InfeasibleCell>> Infeasible(std::string_view name) const override {
    if (IsOwnDesign(name)) {
      OwnDesign own = ParseOwnDesign(name);
      if (!own.ok()) return std::nullopt;
      return std::move(own.design.infeasible);
    }
    for (Design& design : AllDesigns()) {
      if (design.name == name) return std::move(design.infeasible);
    }
    return std::nullopt;
  }

  absl::StatusOr<std::vector<ShapeInfo>> ParseProblems(std::string_view list) const override {
    ASSIGN_OR_RETURN(const std::vector<sdpa::NamedShape> shapes, ParseShapes(list));
    std::vector<ShapeInfo> problems;
    for (const sdpa::NamedShape& shape : shapes) problems.push_back(ShapeInfoOf(shape));
    return problems;
  }

  absl::Status CheckProblem(const ShapeInfo& problem) const override {
    return ProblemOf(problem).status();
  }

  std::string_view ShownName(std::string_view problem) const override {
    return sdpa::ShownName(problem);
  }

  std::vector<std::string> InputKinds() const override {
    std::vector<std::string> kinds;
    for (const sdpa::NamedInputKind& kind : sdpa::kInputKinds) kinds.emplace_back(kind.name);
    return kinds;
  }

  std::optional<CodeOfDesign> CodeOf(const PlannedDesign& planned) const override {
    const absl::StatusOr<Design> design = ablations::FindDesign(planned.name);
    if (!design.ok()) return std::nullopt;
    CodeOfDesign code = {.any = build_info::kNvcc[0] != '\0', .how_to_build = HowToBuild(*design)};
    std::set<std::string> missing;
    for (const sdpa::Config& config : ConfigsOf(*design)) {
      if (!absl::c_linear_search(InstanceConfigs(), config)) {
        missing.insert(sdpa::InstanceName(config));
      }
    }
    code.missing.assign(missing.begin(), missing.end());
    return code;
  }

  // Else the floors alone would be timed, and the record would say nothing.
  absl::Status CheckMeasurable(const PlannedDesign& design, const ShapeInfo& shape) const override {
    ASSIGN_OR_RETURN(const sdpa::Problem problem, ProblemOf(shape));
    if ((problem.embed_dim > 0) == design.peers) {
      return absl::InvalidArgumentError(
          absl::StrCat("design ", design.name, " is for problems that begin with ",
                       design.peers ? "Q, K and V" : "x", "; ", shape.name,
                       " does not. `warpledger list designs shapes` shows which do."));
    }
    ASSIGN_OR_RETURN(const Design own, ablations::FindDesign(design.name));
    const std::vector<sdpa::Config> own_configs = ConfigsOf(own);
    if (absl::c_any_of(own.arms, [&](const DesignArm& arm) {
          const sdpa::Config wanted = sdpa::Specialise(arm.config, problem.head_dim, problem.causal,
                                                       problem.dtype, problem.embed_dim > 0);
          return !arm.spin_alone && (absl::c_linear_search(own_configs, wanted) ||
                                     absl::c_linear_search(InstanceConfigs(), wanted));
        })) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "design ", design.name, " has no arm that is compiled for ", shape.name, ": head_dim ",
        problem.head_dim, " in ", std::string(sdpa::DtypeName(problem.dtype)),
        ". `warpledger list designs` shows what each is compiled for."));
  }

  std::vector<std::string> Faults() const override {
    std::vector<std::string> names;
    for (const NamedFault& fault : kFaults) names.emplace_back(fault.name);
    return names;
  }

  absl::StatusOr<std::string> FindVariant(std::string_view name) const override {
    ASSIGN_OR_RETURN(const NamedVariant variant, ablations::FindVariant(name));
    return sdpa::ConfigName(variant.config);
  }

  // `peers.py --list` answers the same.
  std::vector<std::string> Peers() const override {
    return {"flash", "cudnn", "efficient", "math", "fa3", "fa4", "flex", "triton", "cudnn_fp8"};
  }
  // PyTorch's own. The others need a library, or minutes to compile.
  std::vector<std::string> PeersUnasked() const override {
    return {"flash", "cudnn", "efficient", "math"};
  }
  std::optional<int64_t> PeerKvBits(std::string_view arm) const override {
    return arm == "peer:cudnn_fp8" ? std::optional<int64_t>(8) : std::nullopt;
  }
  std::string PeersProgram() const override { return "ablations/subjects/sdpa/peers/peers.py"; }

  std::string LabelOf(std::string_view config) const override {
    return config == sdpa::kBaseline.id ? std::string(sdpa::kBaseline.label) : "";
  }

  // Records that are older than instances per mask name one by the configuration alone.
  std::vector<std::string> CodeNames(const std::string& config,
                                     const ShapeInfo& shape) const override {
    const absl::StatusOr<sdpa::Problem> p = ProblemOf(shape);
    if (!p.ok()) return {};
    const auto names =
        sdpa::InstanceNames(config, p->head_dim, p->causal, p->dtype, p->embed_dim > 0);
    return {names.begin(), names.end()};
  }

  bool IsOn(std::string_view config, const Claim& claim) const override {
    while (!config.empty()) {
      const std::string_view part = config.substr(0, config.find('+'));
      if (part.substr(0, part.find('=')) == claim.id) return true;
      config.remove_prefix(std::min(part.size() + 1, config.size()));
    }
    return false;
  }

  std::string WhyNoVariant(const ShapeInfo& shape) const override {
    const absl::StatusOr<sdpa::Problem> problem = ProblemOf(shape);
    if (!problem.ok() || sdpa::EveryDesignRuns(*problem)) return "";
    std::string reason =
        absl::StrCat("no kernel of this design is compiled for head_dim ", problem->head_dim);
    if (problem->dtype != sdpa::Dtype::kFp16) {
      absl::StrAppend(&reason, " in ", std::string(sdpa::DtypeName(problem->dtype)));
    }
    return reason;
  }

  std::optional<int64_t> KvBits(const std::string& name) const override {
    const std::optional<sdpa::Config> config = sdpa::ConfigFromName(name);
    return config && sdpa::KvStorageOf(*config).quantised ? std::optional<int64_t>(8)
                                                          : std::nullopt;
  }

  std::string RoofOf(const std::string& name) const override {
    const std::optional<sdpa::Config> config = sdpa::ConfigFromName(name);
    return config ? RoofOfConfig(*config) : "";
  }

  std::string LaunchPart(const std::string& name) const override {
    const std::optional<sdpa::Config> config = sdpa::ConfigFromName(name);
    if (!config) return "";
    const sdpa::Config compiled = sdpa::CompiledPart(*config);
    sdpa::Config launch;
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (compiled.*row.field != (*config).*row.field) launch.*row.field = (*config).*row.field;
    }
    return sdpa::ConfigName(launch);
  }

 private:
  // Of a listed design, or of one whose name is its formula, also where today's registry has not
  // all that the formula names. A record's design may be neither.
  Span SpanOf(std::string_view name) const {
    const auto listed = absl::c_find_if(designs_, [&](const Design& d) { return d.name == name; });
    return listed != designs_.end() ? listed->span : SpanOfFormula(name);
  }

  const std::vector<Claim> claims_ = ClaimsOfRegistry();
  const std::vector<Design> designs_ = AllDesigns();
};

}  // namespace

const Subject& SdpaSubject() {
  static const Sdpa kSubject;
  return kSubject;
}

PlannedDesign Planned(const Design& design) {
  PlannedDesign planned = {.name = design.name,
                           .label = design.label,
                           .arms = {},
                           .floors = {kFloorArm},
                           // None of them begins with x.
                           .peers = !design.projected};
  if (design.reads_kv) planned.floors.emplace_back(kReadArm);
  for (const DesignArm& arm : design.arms) {
    planned.arms.push_back({.name = arm.name,
                            .config = sdpa::ConfigName(arm.config),
                            .role = arm.role,
                            .toggle = arm.toggle,
                            .base = arm.base,
                            .spin_cycles = arm.spin_cycles,
                            .spin_alone = arm.spin_alone});
  }
  return planned;
}

ShapeInfo ShapeInfoOf(const sdpa::NamedShape& shape) {
  const sdpa::Problem& p = shape.problem;
  Json fields = {{"batch", p.batch},  {"heads_q", p.heads_q}, {"heads_kv", p.heads_kv},
                 {"seq_q", p.seq_q},  {"seq_kv", p.seq_kv},   {"head_dim", p.head_dim},
                 {"causal", p.causal}};
  if (p.embed_dim > 0) fields["embed_dim"] = p.embed_dim;
  fields["flops"] = sdpa::Flops(p);
  fields["min_bytes"] = sdpa::MinBytes(p);
  fields["exponentials"] = sdpa::Exponentials(p);
  // Where there is none it is fp16, as in records that are older than the choice.
  if (p.dtype != sdpa::Dtype::kFp16) fields["dtype"] = sdpa::DtypeName(p.dtype);
  return {std::string(shape.name), std::move(fields)};
}

absl::StatusOr<sdpa::Problem> ProblemOf(const ShapeInfo& shape) {
  sdpa::Problem p;
  const FieldPath path;
  FieldReader fields(shape.fields, path);
  std::string dtype(sdpa::DtypeName(p.dtype));
  fields("causal", p.causal);
  fields("dtype", dtype, kOlderRecordsLack);
  const auto* known = absl::c_find_if(
      sdpa::kDtypes, [&](sdpa::Dtype each) { return sdpa::DtypeName(each) == dtype; });
  fields.Require(known != std::end(sdpa::kDtypes), "dtype", "fp16 or bf16");
  if (fields.status().ok()) p.dtype = *known;
  // Larger ones overflow what is computed from them, or take for ever.
  constexpr int kMostOfOne = 1 << 20;
  constexpr double kMostElements = 0x1p60;
  double elements = 1;
  for (const auto& [name, size] : {std::pair{"batch", &p.batch},
                                   {"heads_q", &p.heads_q},
                                   {"heads_kv", &p.heads_kv},
                                   {"seq_q", &p.seq_q},
                                   {"seq_kv", &p.seq_kv},
                                   {"head_dim", &p.head_dim}}) {
    fields(name, *size, Within{1, kMostOfOne});
    elements *= *size;
  }
  fields.Require(elements <= kMostElements, "batch", "a problem that fits into a GPU");
  if (shape.fields.contains("embed_dim")) {
    fields("embed_dim", p.embed_dim, Within{1, kMostOfOne});
  }
  RETURN_IF_ERROR(fields.status());
  return p;
}

}  // namespace warpledger::ablations
