// SPDX-License-Identifier: Apache-2.0
// `warpledger list`: the registry of SDPA, as text for people and as JSON for scripts.

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "ablations/base/nearest.h"
#include "ablations/cli/flags.h"
#include "ablations/record/record.h"
#include "ablations/subjects/sdpa/designs/designs.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/subject.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/common/status_macros.h"
#include "kernels/common/text.h"
#include "kernels/sdpa/dtype/dtype_name.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::sdpa {

NLOHMANN_JSON_SERIALIZE_ENUM(EvidenceChange,
                             {{EvidenceChange::kNone, "none"},
                              {EvidenceChange::kAppears, "appears"},
                              {EvidenceChange::kGrows, "grows"},
                              {EvidenceChange::kShrinks, "shrinks"},
                              {EvidenceChange::kVanishes, "vanishes"},
                              {EvidenceChange::kDiffers, "differs"},
                              {EvidenceChange::kShrinksInLoops, "shrinks_in_loops"}})

}  // namespace warpledger::sdpa

namespace warpledger::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int> Levels(const sdpa::ToggleRow& row) {
  return {row.levels.values.begin(),
          row.levels.values.begin() + static_cast<int64_t>(row.levels.count)};
}

std::vector<std::string> Needs(const sdpa::ToggleRow& row) {
  std::vector<std::string> needs;
  for (const sdpa::ToggleField need : row.needs) {
    if (need != nullptr) needs.emplace_back(sdpa::ToggleId(need));
  }
  return needs;
}

Json ToggleJson(const sdpa::ToggleRow& row) {
  return {{"id", row.id},
          {"label", row.label},
          {"levels", Levels(row)},
          {"needs", Needs(row)},
          {"control", row.control},
          {"claim", row.claim},
          {"predicted",
           {{"shape", row.predicted.shape},
            {"low", row.predicted.low},
            {"high", row.predicted.high},
            {"blind", row.predicted.blind},
            {"why", row.predicted.why}}},
          {"gate", row.gate},
          {"evidence",
           {{"change", row.evidence.change},
            {"ptx", row.evidence.ptx},
            {"sass", row.evidence.sass},
            {"launched", row.evidence.launched}}},
          {"launch_side", row.launch_side},
          {"causal_only", row.causal_only},
          {"micro", row.micro},
          {"micro_off", row.micro_off},
          {"prior",
           {{"text", row.prior.text}, {"p50_us", row.prior.p50_us}, {"ratio", row.prior.ratio}}}};
}

// One per problem that the arm is compiled for, in the order of Specialisations().
std::vector<std::string> InstanceNames(const ablations::Design& design,
                                       const ablations::DesignArm& arm) {
  std::vector<std::string> names;
  for (const sdpa::Config& config : Specialisations(design, arm)) {
    names.push_back(sdpa::InstanceName(config));
  }
  return names;
}

// Head dimensions that a built design has the configuration at.
std::set<int> HeadDims(const sdpa::Config& config) {
  std::set<int> head_dims;
  for (const ablations::Design& design : ablations::BuiltDesigns()) {
    const bool holds =
        std::any_of(design.arms.begin(), design.arms.end(),
                    [&](const ablations::DesignArm& arm) { return arm.config == config; });
    if (holds) head_dims.insert(design.head_dims.begin(), design.head_dims.end());
  }
  return head_dims;
}

Json GeometryJson(const sdpa::Config& config) {
  const sdpa::Geometry geometry = sdpa::GeometryOf(config);
  return {{"tile_m", geometry.tile_m},
          {"tile_n", geometry.tile_n},
          {"threads", geometry.threads},
          {"stages", geometry.stages},
          {"smem_bytes", geometry.smem_bytes}};
}

Json RegistryJson() {
  Json toggles = Json::array();
  for (const sdpa::ToggleRow& row : sdpa::kToggles) toggles.push_back(ToggleJson(row));
  Json designs = Json::array();
  for (const ablations::Design& design : ablations::BuiltDesigns()) {
    Json arms = Json::array();
    for (const ablations::DesignArm& arm : design.arms) {
      arms.push_back({{"name", arm.name},
                      {"config", sdpa::ConfigName(arm.config)},
                      {"instances", InstanceNames(design, arm)},
                      {"role", arm.role},
                      {"toggle", arm.toggle},
                      {"base", arm.base}});
    }
    designs.push_back({{"name", design.name},
                       {"label", design.label},
                       {"head_dims", design.head_dims},
                       {"projected", design.projected},
                       {"whole_kernels", design.span == ablations::Span::kWholeKernels},
                       {"arms", arms}});
  }
  Json variants = Json::array();
  for (const ablations::NamedVariant& variant : ablations::AllVariants()) {
    variants.push_back({{"name", variant.name},
                        {"config", sdpa::ConfigName(variant.config)},
                        {"family", sdpa::FamilyName(sdpa::FamilyOf(variant.config))},
                        {"head_dims", HeadDims(variant.config)}});
    variants.back().update(GeometryJson(variant.config));
  }
  Json instances = Json::array();
  for (const sdpa::Config& config : ablations::AllInstanceConfigs()) {
    instances.push_back({{"name", sdpa::InstanceName(config)},
                         {"config", sdpa::ConfigName(config)},
                         {"family", sdpa::FamilyName(sdpa::FamilyOf(config))},
                         {"head_dim", config.head_dim},
                         {"dtype", sdpa::DtypeName(config.dtype)},
                         {"min_arch", sdpa::MinArch(config)}});
    instances.back().update(GeometryJson(config));
  }
  Json shapes = Json::array();
  for (const sdpa::NamedShape& shape : sdpa::kShapes) {
    shapes.push_back(ablations::ToJson(ablations::ShapeInfoOf(shape)));
    shapes.back()["shown"] = sdpa::ShownName(shape.name);
  }
  Json inputs = Json::array();
  for (const sdpa::NamedInputKind& kind : sdpa::kInputKinds) inputs.push_back(kind.name);
  return {{"toggles", toggles},     {"designs", designs}, {"variants", variants},
          {"instances", instances}, {"shapes", shapes},   {"inputs", inputs}};
}

void PrintToggles() {
  absl::PrintF("Toggles (in ladder order; each is off by default)\n");
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    std::string needs;
    for (const std::string& need : Needs(row))
      absl::StrAppend(&needs, needs.empty() ? "" : ", ", need);
    absl::PrintF("\n  %s: %s\n    claim:     %s\n", row.id, row.label, row.claim);
    absl::PrintF("    predicted: %.2fx to %.2fx at %s; gate %.2fx\n", row.predicted.low,
                 row.predicted.high, sdpa::ShownName(row.predicted.shape), row.gate);
    if (!needs.empty()) absl::PrintF("    needs:     %s\n", needs);
    absl::PrintF("    prior:     %s\n", row.prior.text);
  }
}

void PrintVariants() {
  absl::PrintF("Variants (name; tile_m x tile_n, threads, shared memory; configuration)\n");
  for (const ablations::NamedVariant& variant : ablations::AllVariants()) {
    const sdpa::Geometry geometry = sdpa::GeometryOf(variant.config);
    std::printf("  %-24s %2dx%-3d %4d threads %6d B  %s\n", variant.name.c_str(), geometry.tile_m,
                geometry.tile_n, geometry.threads, geometry.smem_bytes,
                sdpa::ConfigName(variant.config).c_str());
  }
}

void PrintDesigns() {
  absl::PrintF("Designs\n");
  for (const ablations::Design& design : ablations::BuiltDesigns()) {
    absl::PrintF("  %s: %s (head_dim %s%s)\n", design.name, design.label,
                 absl::StrJoin(design.head_dims, ", "),
                 design.projected ? ", problems that begin with x" : "");
    for (const ablations::DesignArm& arm : design.arms) {
      absl::PrintF("    %-26s %-5s%s\n", arm.name, arm.role,
                   arm.base.empty() ? "" : absl::StrCat(" against ", arm.base));
    }
  }
}

void PrintShapes() {
  absl::PrintF("Shapes (* timed by the ladder)\n");
  for (const sdpa::NamedShape& shape : sdpa::kShapes) {
    const sdpa::Problem& p = shape.problem;
    absl::PrintF("  %-22s%s B%d Hq%d Hkv%d Sq%d Skv%d D%d%s%s%s: %s%s\n",
                 sdpa::ShownName(shape.name), shape.ladder ? "*" : " ", p.batch, p.heads_q,
                 p.heads_kv, p.seq_q, p.seq_kv, p.head_dim, p.causal ? " causal" : "",
                 p.dtype == sdpa::Dtype::kFp16 ? "" : " bf16",
                 p.embed_dim > 0 ? absl::StrCat(" from x, E", p.embed_dim) : "", shape.why,
                 shape.shown.empty() ? "" : absl::StrCat("; ", Text(shape.name), " in records"));
  }
}

void PrintInputs() {
  absl::PrintF("Input distributions\n");
  for (const sdpa::NamedInputKind& kind : sdpa::kInputKinds) {
    absl::PrintF("  %s\n", kind.name);
  }
}

struct Section {
  std::string_view name;
  void (*print)();
};
constexpr Section kSections[] = {{"toggles", &PrintToggles},
                                 {"variants", &PrintVariants},
                                 {"designs", &PrintDesigns},
                                 {"shapes", &PrintShapes},
                                 {"inputs", &PrintInputs}};

struct ListFlags : FlagSet {
  FormatFlag format{this};
};

absl::StatusOr<int> List(const ListFlags& flags) {
  ASSIGN_OR_RETURN(const bool wants_json, flags.format.WantsJson());
  const std::vector<std::string>& wanted = flags.arguments;
  std::vector<std::string> known;
  for (const Section& section : kSections) known.emplace_back(section.name);
  for (const std::string& name : wanted) {
    if (absl::c_linear_search(known, name)) continue;
    const std::vector<std::string> near = ablations::NearestNames(name, known);
    return absl::InvalidArgumentError(
        absl::StrCat("unknown section '", name, "'; ",
                     near.empty() ? "" : absl::StrCat("did you mean '", near[0], "'? "),
                     "`warpledger help list` names them"));
  }
  if (wants_json) {
    Json json = RegistryJson();
    Json chosen;
    for (const std::string& name : wanted) chosen[name] = json[name];
    std::fputs(ablations::DumpFile(wanted.empty() ? json : chosen).c_str(), stdout);
    return kExitOk;
  }
  bool first = true;
  for (const Section& section : kSections) {
    if (!wanted.empty() && !absl::c_linear_search(wanted, section.name)) continue;
    if (!first) absl::PrintF("\n");
    first = false;
    section.print();
  }
  return kExitOk;
}

}  // namespace

Command ListCommand() {
  return Runs(&List,
              {.name = "list",
               .arguments = "[toggles|variants|designs|shapes|inputs]",
               .summary = "Shows the toggles, variants, designs, shapes and input distributions",
               .takes_arguments = true});
}

}  // namespace warpledger::cli
