// SPDX-License-Identifier: Apache-2.0
// Designs of one's own, by names that say what they span:
//
//   factorial:a,b[@c,d]     every legal combination of the toggles a and b, on top of
//                           what they need, with c and d on in every cell too
//   fractional:a,b,c,d[@e]  a regular fraction of kMinFractionFactors or more
//   sweep:a[@b]             the levels of one toggle
//
// Contract: a pure function of the name. Refused: a toggle that does not exist or
// is a control, too few or too many of them, a background that needs a toggle which
// the cells switch, two toggles of a factorial that exclude each other, and a level
// that the rules forbid. Standard library only: the
// instance generator makes the kernels of those that a build is asked for
// (WARPLEDGER_EXTRA_DESIGNS); for everything else FindDesign() in plan.h is the door.
//
//   const OwnDesign own = ParseOwnDesign("factorial:warp_shuffle,wmma_pv");
//   if (own.ok()) Use(own.design);

#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/subjects/sdpa/designs/designs.h"
#include "ablations/subjects/sdpa/designs/fractional.h"

namespace warpledger::ablations {

struct OwnDesign {
  Design design;
  std::string error;           // why there is none; empty: there is one
  std::string unknown_toggle;  // with `error`, where that is a name that no technique has

  bool ok() const { return error.empty(); }
};

// Such a name is a formula: what stands before its colon is what is done with the rest.
constexpr std::string_view FormulaOf(std::string_view name) {
  return name.substr(0, std::min(name.find(':'), name.size()));
}
constexpr bool IsFormula(std::string_view name, std::string_view formula) {
  return FormulaOf(name) == formula && name.size() > formula.size();
}
constexpr bool IsFractional(std::string_view name) { return IsFormula(name, "fractional"); }
constexpr bool IsSweep(std::string_view name) { return IsFormula(name, "sweep"); }
constexpr bool IsOwnDesign(std::string_view name) {
  return IsFormula(name, "factorial") || IsFractional(name) || IsSweep(name);
}
constexpr Span SpanOfFormula(std::string_view name) {
  if (IsFormula(name, "factorial")) return Span::kFactorial;
  return IsFractional(name) ? Span::kFractional : Span::kOther;
}

// "a, b,a" is a and b: without spaces around them, empty names and repeats.
inline std::vector<std::string> SplitNames(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    constexpr std::string_view kSpace = " \t\r\n\v\f";
    const std::size_t begin = name.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) continue;
    name = name.substr(begin, name.find_last_not_of(kSpace) + 1 - begin);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

// What keeps `name` from being a kernel, and what to do.
inline std::string DescribeInvalid(std::string_view name, const sdpa::InvalidReason& reason) {
  std::string text = "variant '" + std::string(name) + "': " + std::string(reason.toggle);
  const std::string missing(reason.missing);
  switch (reason.kind) {
    case sdpa::InvalidReason::Kind::kUnknownLevel:
      return text + " has no such level";
    case sdpa::InvalidReason::Kind::kExcluded:
      return text + " can't go with " + missing +
             (reason.why.empty() ? "" : " (" + std::string(reason.why) + ")") +
             "; drop one of them";
    default:
      return text + " needs " + missing + ", which is off; add '" + missing + "'";
  }
}

namespace internal {

struct ToggleList {
  std::vector<sdpa::ToggleField> fields;  // in registry order
  std::string unknown;                    // the first name that no technique has
};

inline ToggleList ParseTechniques(std::string_view text) {
  ToggleList list;
  const std::vector<std::string> names = SplitNames(text);
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!row.control && std::find(names.begin(), names.end(), row.id) != names.end()) {
      list.fields.push_back(row.field);
    }
  }
  for (const std::string& name : names) {
    const bool known = std::any_of(std::begin(sdpa::kToggles), std::end(sdpa::kToggles),
                                   [&](const auto& row) { return !row.control && row.id == name; });
    if (!known && list.unknown.empty()) list.unknown = name;
  }
  return list;
}

// "a,b" and "c" of "factorial:a,b@c".
struct NameParts {
  std::string_view toggles;
  std::string_view background;
};

inline NameParts SplitDesignName(std::string_view name) {
  std::string_view list = name;
  list.remove_prefix(std::min(list.find(':') + 1, list.size()));
  const std::size_t at = list.find('@');
  if (at == std::string_view::npos) return {list, {}};
  return {list.substr(0, at), list.substr(at + 1)};
}

inline sdpa::Config TurnedOn(const std::vector<sdpa::ToggleField>& fields) {
  sdpa::Config config;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (std::find(fields.begin(), fields.end(), row.field) == fields.end()) continue;
    AddNeeds(row.field, &config);
    config.*row.field = FirstOnLevel(row);
  }
  return config;
}

// Two toggles of a factorial that exclude each other though each can be had, else
// nothing. Where there are some, no largest feasible subset of both exists, so their
// gains can't be shared out (analysis/attribution.h).
inline const InfeasibleCell* Rivals(const Design& factorial) {
  const auto on_anywhere = [&](const std::string& toggle) {
    return std::any_of(factorial.arms.begin(), factorial.arms.end(),
                       [&](const DesignArm& arm) { return arm.toggle == toggle; });
  };
  for (const InfeasibleCell& cell : factorial.infeasible) {
    if (!cell.why.empty() && on_anywhere(cell.toggle) && on_anywhere(cell.missing)) {
      return &cell;
    }
  }
  return nullptr;
}

}  // namespace internal

inline OwnDesign ParseOwnDesign(std::string_view name) {
  OwnDesign own;
  const auto refuse = [&](const std::string& why) {
    own.error = "design '" + std::string(name) + "': " + why;
    return own;
  };
  if (!IsOwnDesign(name)) return refuse("it is no factorial:…, fractional:… or sweep:…");
  const internal::NameParts parts = internal::SplitDesignName(name);
  const internal::ToggleList switched = internal::ParseTechniques(parts.toggles);
  const internal::ToggleList fixed = internal::ParseTechniques(parts.background);
  for (const internal::ToggleList* list : {&switched, &fixed}) {
    if (list->unknown.empty()) continue;
    own.unknown_toggle = list->unknown;
    return refuse("unknown toggle '" + list->unknown + "'");
  }
  const std::size_t count = switched.fields.size();
  const sdpa::Config background = internal::TurnedOn(fixed.fields);

  if (IsSweep(name)) {
    if (count != 1) {
      return refuse("it sweeps " + std::to_string(count) + " toggles; name one");
    }
    own.design = SweepDesign(std::string(name), RowOf(switched.fields[0]), background);
    for (const DesignArm& arm : own.design.arms) {
      if (const sdpa::InvalidReason reason = sdpa::WhyInvalid(arm.config)) {
        own.error = DescribeInvalid(arm.name, reason);
        break;
      }
    }
    return own;
  }

  const bool fractional = IsFractional(name);
  const std::size_t least = fractional ? kMinFractionFactors : 1;
  const std::size_t most = fractional ? kMaxFractionFactors : kMaxFactors;
  if (count < least || count > most) {
    return refuse("it spans " + std::to_string(count) + " toggles; name " + std::to_string(least) +
                  " to " + std::to_string(most) +
                  (!fractional && count > most ? ", or a fractional:… of more" : ""));
  }
  for (const sdpa::ToggleField factor : switched.fields) {
    if (background.*factor == 0) continue;
    return refuse(std::string(sdpa::ToggleId(factor)) +
                  " is switched, but its background names it or needs it; drop it from one side "
                  "of '@'");
  }
  own.design = fractional ? FractionalDesign(std::string(name), switched.fields, background)
                          : FactorialDesign(std::string(name), switched.fields, background);
  if (const InfeasibleCell* rivals = fractional ? nullptr : internal::Rivals(own.design)) {
    return refuse(rivals->Reason() +
                  "; a factorial can't share out what two such toggles bring, so span them in two");
  }
  return own;
}

}  // namespace warpledger::ablations
