#include "ablations/plan.h"

#include <algorithm>

#include "ablations/calibration_plan.h"
#include "ablations/fractional.h"
#include "ablations/nearest.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/common/text.h"

namespace warpledger::ablations {
namespace {

std::vector<std::string> SplitNames(std::string_view list) {
  std::vector<std::string> names;
  for (const absl::string_view part : absl::StrSplit(Text(list), ',')) {
    const std::string name(absl::StripAsciiWhitespace(part));
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    names.push_back(name);
  }
  return names;
}

absl::Status InvalidConfig(std::string_view name, const sdpa::InvalidReason& reason) {
  if (reason.kind == sdpa::InvalidReason::Kind::kUnknownLevel) {
    return absl::InvalidArgumentError(
        absl::StrCat("variant '", Text(name), "': ", Text(reason.toggle), " has no such level"));
  }
  if (reason.kind == sdpa::InvalidReason::Kind::kExcluded) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variant '", Text(name), "': ", Text(reason.toggle), " can't go with ",
        Text(reason.missing), reason.why.empty() ? "" : absl::StrCat(" (", Text(reason.why), ")"),
        "; drop one of them"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("variant '", Text(name), "': ", Text(reason.toggle), " needs ",
                   Text(reason.missing), ", which is off; add '", Text(reason.missing), "'"));
}

absl::StatusOr<sdpa::Config> ParseConfig(std::string_view name) {
  sdpa::Config config;
  if (name == sdpa::kBaseline.id) return config;
  std::vector<std::string> seen;
  for (const absl::string_view part : absl::StrSplit(Text(name), '+')) {
    const std::pair<std::string, std::string> fields =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto& [id, level_text] = fields;
    const auto row = std::find_if(std::begin(sdpa::kToggles), std::end(sdpa::kToggles),
                                  [&id = id](const auto& toggle) { return toggle.id == id; });
    if (row == std::end(sdpa::kToggles)) {
      std::vector<std::string> known;
      for (const sdpa::ToggleRow& toggle : sdpa::kToggles) known.emplace_back(toggle.id);
      for (const NamedVariant& variant : AllVariants()) known.push_back(variant.name);
      if (id == sdpa::kBaseline.id) {
        return absl::InvalidArgumentError(
            absl::StrCat("variant '", Text(name), "': ", id,
                         " is every toggle off; name the toggles that are on alone"));
      }
      return UnknownName("variant", std::string(part), known);
    }
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("variant '", Text(name), "' names ", id, " twice"));
    }
    seen.push_back(id);
    int level = FirstOnLevel(*row);
    // "kv_tiling" is its first level; "kv_tiling=" is a level left out.
    if (absl::StrContains(part, '=') && !absl::SimpleAtoi(level_text, &level)) {
      return absl::InvalidArgumentError(
          absl::StrCat("variant '", Text(name), "': '", level_text, "' is no level of ", id));
    }
    config.*row->field = level;
  }
  return config;
}

template <typename Rows>
auto ParseRows(std::string_view kind, std::string_view list, const Rows& rows)
    -> absl::StatusOr<std::vector<std::decay_t<decltype(*std::begin(rows))>>> {
  using Row = std::decay_t<decltype(*std::begin(rows))>;
  std::vector<Row> result;
  if (list == "all") return std::vector<Row>(std::begin(rows), std::end(rows));
  std::vector<std::string> known;
  for (const Row& row : rows) known.emplace_back(row.name);
  for (const std::string& name : SplitNames(list)) {
    const auto row = std::find_if(std::begin(rows), std::end(rows),
                                  [&](const Row& r) { return r.name == name; });
    if (row == std::end(rows)) return UnknownName(kind, name, known);
    result.push_back(*row);
  }
  if (result.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no ", Text(kind), " named; 'all' takes every one"));
  }
  return result;
}

absl::StatusOr<std::vector<sdpa::ToggleField>> ParseTechniques(std::string_view list) {
  std::vector<std::string> known;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!row.control) known.emplace_back(row.id);
  }
  std::vector<std::string> names = SplitNames(list);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return UnknownName("toggle", name, known);
    }
  }
  std::vector<sdpa::ToggleField> fields;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (std::find(names.begin(), names.end(), row.id) != names.end()) fields.push_back(row.field);
  }
  return fields;
}

absl::StatusOr<Design> ParseFactorial(std::string_view name) {
  const auto refuse = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("design '", Text(name), "': ", why...));
  };
  std::string_view list = name.substr(name.find(':') + 1);
  const size_t at = list.find('@');
  const std::string_view background_list =
      at == std::string_view::npos ? std::string_view() : list.substr(at + 1);
  const auto factors = ParseTechniques(list.substr(0, at));
  if (!factors.ok()) return factors.status();
  const auto fixed = ParseTechniques(background_list);
  if (!fixed.ok()) return fixed.status();
  const bool fractional = IsFractional(name);
  const size_t least = fractional ? kMinFractionFactors : 1;
  const size_t most = fractional ? kMaxFractionFactors : kMaxFactors;
  if (factors->size() < least || factors->size() > most) {
    return refuse("it spans ", factors->size(), " toggles; name ", least, " to ", most,
                  !fractional && factors->size() > most ? ", or a fractional:… of more" : "");
  }
  sdpa::Config background;
  for (const sdpa::ToggleField field : *fixed) {
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (row.field == field) background.*field = FirstOnLevel(row);
    }
    AddNeeds(field, &background);
  }
  for (const sdpa::ToggleField factor : *factors) {
    if (background.*factor == 0) continue;
    const std::string id(sdpa::ToggleId(factor));
    return refuse(id, " is switched, but its background names it or needs it; drop it from one ",
                  "side of '@'");
  }
  if (fractional) return FractionalDesign(std::string(name), *factors, background);
  return FactorialDesign(std::string(name), *factors, background);
}

absl::StatusOr<Design> ParseSweep(std::string_view name) {
  const std::string_view list = name.substr(name.find(':') + 1);
  const size_t at = list.find('@');
  const auto swept = ParseTechniques(list.substr(0, at));
  if (!swept.ok()) return swept.status();
  const auto fixed =
      ParseTechniques(at == std::string_view::npos ? std::string_view() : list.substr(at + 1));
  if (!fixed.ok()) return fixed.status();
  if (swept->size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("design '", Text(name), "': it sweeps ", swept->size(), " toggles; name one"));
  }
  sdpa::Config background;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (std::find(fixed->begin(), fixed->end(), row.field) == fixed->end()) continue;
    AddNeeds(row.field, &background);
    background.*row.field = FirstOnLevel(row);
  }
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.field != (*swept)[0]) continue;
    Design design = SweepDesign(std::string(name), row, background);
    for (const DesignArm& arm : design.arms) {
      if (const sdpa::InvalidReason reason = sdpa::WhyInvalid(arm.config)) {
        return InvalidConfig(arm.name, reason);
      }
    }
    return design;
  }
  return absl::InternalError("a toggle without a row");
}

}  // namespace

absl::StatusOr<Design> FindDesign(std::string_view name) {
  if (IsFactorial(name) && name.find(':') != std::string_view::npos) return ParseFactorial(name);
  if (IsFractional(name)) return ParseFactorial(name);
  if (IsSweep(name)) return ParseSweep(name);
  if (IsCalibration(name)) return CalibrationDesign(name);
  std::vector<std::string> known;
  for (Design& design : AllDesigns()) {
    if (design.name == name) return std::move(design);
    known.push_back(design.name);
  }
  return UnknownName("design", name, known);
}

std::vector<NamedVariant> AllVariants() {
  std::vector<NamedVariant> variants;
  for (const Design& design : AllDesigns()) {
    for (const DesignArm& arm : design.arms) {
      const bool known = std::any_of(variants.begin(), variants.end(),
                                     [&](const auto& v) { return v.config == arm.config; });
      if (!known) variants.push_back({arm.name, arm.config});
    }
  }
  return variants;
}

std::vector<sdpa::Config> AllInstanceConfigs() {
  std::vector<sdpa::Config> configs;
  for (const Design& design : AllDesigns()) {
    for (const DesignArm& arm : design.arms) {
      for (const sdpa::Config& config : Specialisations(design, arm)) {
        if (std::find(configs.begin(), configs.end(), config) == configs.end()) {
          configs.push_back(config);
        }
      }
    }
  }
  return configs;
}

absl::StatusOr<NamedVariant> FindVariant(std::string_view name) {
  for (const Design& design : AllDesigns()) {
    for (const DesignArm& arm : design.arms) {
      if (arm.name == name) return NamedVariant{arm.name, arm.config};
    }
  }
  const absl::StatusOr<sdpa::Config> config = ParseConfig(name);
  if (!config.ok()) return config.status();
  if (const sdpa::InvalidReason reason = sdpa::WhyInvalid(*config)) {
    return InvalidConfig(name, reason);
  }
  return NamedVariant{sdpa::ConfigName(*config), *config};
}

absl::StatusOr<std::vector<NamedVariant>> ParseVariants(std::string_view list) {
  if (list == "all") return AllVariants();
  std::vector<NamedVariant> variants;
  for (const std::string& name : SplitNames(list)) {
    absl::StatusOr<NamedVariant> variant = FindVariant(name);
    if (!variant.ok()) return variant.status();
    variants.push_back(*std::move(variant));
  }
  if (variants.empty()) {
    return absl::InvalidArgumentError("no variant named; 'all' takes every one");
  }
  return variants;
}

absl::StatusOr<std::vector<sdpa::NamedShape>> ParseShapes(std::string_view list) {
  if (list == "ladder" || list == "fa3") {
    std::vector<sdpa::NamedShape> shapes;
    for (const sdpa::NamedShape& shape : sdpa::kShapes) {
      if (list == "ladder" ? shape.ladder : absl::StartsWith(Text(shape.name), "fa3_")) {
        shapes.push_back(shape);
      }
    }
    return shapes;
  }
  return ParseRows("shape", list, sdpa::kShapes);
}

absl::StatusOr<std::vector<sdpa::NamedInputKind>> ParseInputKinds(std::string_view list) {
  return ParseRows("input", list, sdpa::kInputKinds);
}

}  // namespace warpledger::ablations
