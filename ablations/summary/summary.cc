// SPDX-License-Identifier: Apache-2.0
#include "ablations/summary/summary.h"

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpledger::summary {
namespace {

// Each name stands once on a shape, and the shape is one of the record's.
template <typename Row, typename NameOf>
absl::Status CheckKeys(const std::set<std::string>& shapes, const char* list,
                       const std::vector<Row>& rows, const NameOf& name_of) {
  std::set<std::pair<std::string, std::string>> seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string name = name_of(rows[i]);
    const std::string& shape = rows[i].shape;
    if (!shapes.contains(shape)) {
      return absl::InvalidArgumentError(
          absl::StrCat(list, "[", i, "].shape is \"", shape, "\", which is not in shapes[]"));
    }
    if (!seen.emplace(name, shape).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(list, "[", i, "] repeats ", name, " at ", shape));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAllKeys(const Summary& s) {
  if (s.problems.empty()) return absl::InvalidArgumentError("shapes must not be empty");
  std::set<std::string> shapes;
  for (const ablations::ShapeInfo& problem : s.problems) shapes.insert(problem.name);
  RETURN_IF_ERROR(CheckKeys(shapes, "cells", s.cells, [](const Cell& c) { return c.variant; }));
  RETURN_IF_ERROR(CheckKeys(shapes, "peers", s.peers, [](const Peer& p) { return p.name; }));
  RETURN_IF_ERROR(CheckKeys(shapes, "floors", s.floors, [](const Floor& f) { return f.name; }));
  // One candidate may be judged against several bases.
  const auto pair_of = [](const Verdict& v) {
    return absl::StrCat(v.candidate, " against ", v.base);
  };
  RETURN_IF_ERROR(CheckKeys(shapes, "verdicts", s.verdicts, pair_of));
  RETURN_IF_ERROR(CheckKeys(shapes, "comparisons", s.comparisons, pair_of));
  // Of arms that were timed alone, one on time and one on joules.
  RETURN_IF_ERROR(CheckKeys(shapes, "controls", s.controls, [](const Control& c) {
    return absl::StrCat(c.candidate, " on ", c.estimand);
  }));
  RETURN_IF_ERROR(CheckKeys(shapes, "attribution", s.attribution,
                            [](const Attribution& a) { return a.toggle; }));
  return CheckKeys(shapes, "interactions", s.interactions,
                   [](const Interaction& i) { return absl::StrCat(i.a, " with ", i.b); });
}

}  // namespace

absl::Status WriteAgain(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("summary.json: ", status.message(),
                                   "; write the summary again with `warpledger judge` of this "
                                   "build"));
}

nlohmann::ordered_json ToJson(const Opcodes& opcodes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Opcodes::Opcode& opcode : opcodes.list) json[opcode.name] = ToJson(opcode.count);
  return json;
}

absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path, Opcodes& opcodes) {
  if (!json.is_object()) return ablations::WrongValue(path, "an object", json);
  opcodes.list.clear();
  for (const auto& [name, count] : json.items()) {
    RETURN_IF_ERROR(FromJson(count, path.Field(name),
                             opcodes.list.emplace_back(Opcodes::Opcode{name, {}}).count));
  }
  return absl::OkStatus();
}

absl::StatusOr<Summary> ReadSummary(const nlohmann::ordered_json& json) {
  ASSIGN_OR_RETURN(Summary summary, Read<Summary>(json));
  if (absl::Status status = CheckAllKeys(summary); !status.ok()) return WriteAgain(status);
  return summary;
}

}  // namespace warpledger::summary
