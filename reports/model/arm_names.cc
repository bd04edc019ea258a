// SPDX-License-Identifier: Apache-2.0
#include "reports/model/arm_names.h"

#include <optional>
#include <set>

#include "absl/strings/str_join.h"
#include "kernels/sdpa/registry/variant.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

const Cell* CellOf(const Summary& summary, const std::string& arm) {
  return FindIn(summary.cells, [&](const Cell& cell) { return cell.variant == arm; });
}

std::vector<std::string> Changes(const sdpa::Config& from, const sdpa::Config& to) {
  std::vector<std::string> changes;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    const int level = to.*row.field;
    if (level == from.*row.field) continue;
    const bool plain = row.levels.count == 2 && level == row.levels.values[1];
    changes.push_back(plain ? std::string(row.id) : Cat(row.id, "=", row.levels.NameOf(level)));
  }
  return changes;
}

}  // namespace

std::string ArmName(const Summary& summary, const std::string& arm) {
  const Cell* cell = CellOf(summary, arm);
  const auto config = cell == nullptr ? std::nullopt : sdpa::ConfigFromName(cell->config);
  if (!config || cell->role == "base") return arm;
  const Cell* base = nullptr;
  std::vector<std::string> changes;
  for (const Cell& each : summary.cells) {
    const auto from = each.role == "base" ? sdpa::ConfigFromName(each.config) : std::nullopt;
    if (!from) continue;
    std::vector<std::string> found = Changes(*from, *config);
    if (base != nullptr && changes.size() <= found.size()) continue;
    base = &each;
    changes = std::move(found);
  }
  if (base == nullptr) return arm;
  return Cat(base->variant, "{", absl::StrJoin(changes, ", "), "}");
}

std::vector<ArmAlias> ArmAliases(const Summary& summary) {
  std::vector<ArmAlias> aliases;
  std::set<std::string> seen;
  for (const Cell& cell : summary.cells) {
    if (cell.role != "step" && cell.role != "without") continue;
    if (!seen.insert(cell.variant).second) continue;
    std::string name = ArmName(summary, cell.variant);
    if (name != cell.variant) aliases.push_back({cell.variant, std::move(name)});
  }
  return aliases;
}

}  // namespace warpledger::report
