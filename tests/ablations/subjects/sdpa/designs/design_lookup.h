// SPDX-License-Identifier: Apache-2.0
// For tests of designs: finding an arm, and what two configurations differ in.

#pragma once

#include <set>
#include <string>

#include "ablations/subjects/sdpa/designs/designs.h"
#include "gtest/gtest.h"

namespace warpledger::ablations {

inline const DesignArm& ArmNamed(const Design& design, const std::string& name) {
  for (const DesignArm& arm : design.arms) {
    if (arm.name == name) return arm;
  }
  ADD_FAILURE() << "no arm " << name;
  return design.arms.front();
}

// The toggles whose levels differ between two configurations.
inline std::set<std::string> Differences(const sdpa::Config& a, const sdpa::Config& b) {
  std::set<std::string> ids;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (a.*row.field != b.*row.field) ids.insert(std::string(row.id));
  }
  return ids;
}

inline std::set<std::string> Differences(const Design& design, const std::string& a,
                                         const std::string& b) {
  return Differences(ArmNamed(design, a).config, ArmNamed(design, b).config);
}

}  // namespace warpledger::ablations
