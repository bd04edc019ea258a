// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/plan.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "ablations/base/nearest.h"
#include "ablations/subjects/sdpa/designs/own_designs.h"
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"
#include "kernels/common/text.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "warpledger_build_info.h"

namespace warpledger::ablations {
namespace {

// The name of a problem by its parameters: "B=1:H=16:S=3000:D=128:causal" is
// b1_h16_s3000_d128_causal.
absl::StatusOr<std::string> NameFromParameters(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("problem '", text, "': ", why,
                     "; it is B=1,H=16,S=3000,D=128 with H=32x8 where K/V have 8 heads, S=1x8192 "
                     "where they have 8192 keys, and causal or bf16 behind"));
  };
  std::map<std::string, std::string> sizes = {{"B", "1"}, {"H", ""}, {"S", ""}, {"D", ""}};
  bool causal = false;
  std::string dtype;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ':'))) {
    const std::pair<std::string, std::string> assigned =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto size = sizes.find(assigned.first);
    if (size != sizes.end() && !assigned.second.empty()) {
      size->second = assigned.second;
    } else if (part == "causal") {
      causal = true;
    } else if (part == "bf16") {
      dtype = "_bf16";
    } else if (part != "fp16") {
      return wrong(absl::StrCat("'", part, "' is none of its parameters"));
    }
  }
  const std::string name = absl::StrCat("b", sizes["B"], "_h", sizes["H"], "_s", sizes["S"], "_d",
                                        sizes["D"], causal ? "_causal" : "", dtype);
  if (sdpa::ProblemFromName(name)) return name;
  return wrong(absl::StrCat("a size is missing, or is none from 1 to ", sdpa::kMostOfOneSize));
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

// The same text for as long as the process lives.
std::string_view Interned(const std::string& text) {
  static auto* const mutex = new std::mutex;
  static auto* const texts = new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(*mutex);
  return *texts->insert(text).first;
}

absl::StatusOr<Design> FindOwnDesign(std::string_view name) {
  OwnDesign own = ParseOwnDesign(name);
  if (own.ok()) return std::move(own.design);
  if (own.unknown_toggle.empty()) return absl::InvalidArgumentError(own.error);
  std::vector<std::string> known;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!row.control) known.emplace_back(row.id);
  }
  return UnknownName("toggle", own.unknown_toggle, known);
}

// The designs that this build was asked for by name.
std::vector<std::string> ExtraDesignNames() {
  return absl::StrSplit(build_info::kExtraDesigns, ';', absl::SkipEmpty());
}

}  // namespace

absl::StatusOr<Design> FindDesign(std::string_view name) {
  if (IsOwnDesign(name)) return FindOwnDesign(name);
  std::vector<std::string> known;
  for (Design& design : AllDesigns()) {
    if (design.name == name) return std::move(design);
    known.push_back(design.name);
  }
  return UnknownName("design", name, known);
}

std::vector<Design> BuiltDesigns() {
  std::vector<Design> designs = AllDesigns();
  for (const std::string& name : ExtraDesignNames()) {
    // The instance generator refused all others when CMake configured the build.
    if (OwnDesign own = ParseOwnDesign(name); own.ok()) designs.push_back(std::move(own.design));
  }
  return designs;
}

std::string HowToBuild(const Design& design) {
  std::vector<std::string> names = ExtraDesignNames();
  names.push_back(design.name);
  return absl::StrCat("cmake --preset release '-DWARPLEDGER_EXTRA_DESIGNS=",
                      absl::StrJoin(names, ";"), "' && cmake --build --preset release");
}

std::vector<NamedVariant> AllVariants() {
  std::vector<NamedVariant> variants;
  for (const Design& design : BuiltDesigns()) {
    for (const DesignArm& arm : design.arms) {
      bool known = false;
      bool name_taken = false;
      for (const NamedVariant& variant : variants) {
        known = known || variant.config == arm.config;
        name_taken = name_taken || variant.name == arm.name;
      }
      // Cells of two factorials can share a name, not a configuration.
      if (!known) {
        variants.push_back({name_taken ? sdpa::ConfigName(arm.config) : arm.name, arm.config});
      }
    }
  }
  return variants;
}

std::vector<sdpa::Config> AllInstanceConfigs() {
  std::vector<sdpa::Config> configs;
  for (const Design& design : BuiltDesigns()) {
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
  std::vector<std::string> arms;
  for (const Design& design : AllDesigns()) {
    for (const DesignArm& arm : design.arms) {
      if (arm.name == name) return NamedVariant{arm.name, arm.config};
      arms.push_back(arm.name);
    }
  }
  // A list of toggles has no colon.
  if (absl::StrContains(Text(name), ':')) return UnknownName("variant", name, arms);
  ASSIGN_OR_RETURN(const sdpa::Config config, ParseConfig(name));
  if (const sdpa::InvalidReason reason = sdpa::WhyInvalid(config)) {
    return absl::InvalidArgumentError(DescribeInvalid(name, reason));
  }
  return NamedVariant{sdpa::ConfigName(config), config};
}

absl::StatusOr<std::vector<NamedVariant>> ParseVariants(std::string_view list) {
  if (list == "all") return AllVariants();
  std::vector<NamedVariant> variants;
  for (const std::string& name : SplitNames(list)) {
    ASSIGN_OR_RETURN(NamedVariant variant, FindVariant(name));
    variants.push_back(std::move(variant));
  }
  if (variants.empty()) {
    return absl::InvalidArgumentError("no variant named; 'all' takes every one");
  }
  return variants;
}

absl::StatusOr<std::vector<sdpa::NamedShape>> ParseShapes(std::string_view list) {
  if (list.find('=') != list.npos) {
    std::vector<std::string> names = SplitNames(list);
    for (std::string& name : names) {
      if (!absl::StrContains(name, '=')) continue;
      ASSIGN_OR_RETURN(name, NameFromParameters(name));
    }
    return ParseShapes(absl::StrJoin(names, ","));
  }
  if (list == "ladder" || list == "fa3") {
    std::vector<sdpa::NamedShape> shapes;
    for (const sdpa::NamedShape& shape : sdpa::kShapes) {
      if (list == "ladder" ? shape.ladder : shape.fa3) shapes.push_back(shape);
    }
    return shapes;
  }
  // Those of the list that no row holds, and the rows.
  std::vector<sdpa::NamedShape> known(std::begin(sdpa::kShapes), std::end(sdpa::kShapes));
  if (list == "all") return known;
  std::vector<std::string> names = SplitNames(list);
  for (std::string& name : names) {
    const auto row =
        absl::c_find_if(known, [&](const sdpa::NamedShape& each) { return each.shown == name; });
    if (row != known.end()) {
      name = row->name;
      continue;
    }
    const std::optional<sdpa::Problem> problem = sdpa::ProblemFromName(name);
    if (!problem) continue;
    if (problem->heads_q % problem->heads_kv != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", name, ": query heads (", problem->heads_q,
                       ") must be a multiple of key/value heads (", problem->heads_kv, ")"));
    }
    known.push_back({Interned(name), *problem, false, "its name says its sizes"});
  }
  return ParseRows("shape", absl::StrJoin(names, ","), known);
}

absl::StatusOr<std::vector<sdpa::NamedInputKind>> ParseInputKinds(std::string_view list) {
  return ParseRows("input", list, sdpa::kInputKinds);
}

}  // namespace warpledger::ablations
