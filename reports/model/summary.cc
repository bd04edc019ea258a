// SPDX-License-Identifier: Apache-2.0
#include "reports/model/summary.h"

#include "kernels/common/status_macros.h"
#include "reports/model/lists.h"
#include "reports/model/plain.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using Json = nlohmann::ordered_json;

void Flatten(const std::string& prefix, const Json& json,
             std::vector<std::pair<std::string, std::string>>& rows) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      Flatten(prefix.empty() ? key : Cat(prefix, ".", key), value, rows);
    return;
  }
  if (json.is_array()) {
    std::string joined;
    for (const Json& element : json) {
      if (!joined.empty()) joined += ' ';
      joined += element.is_string() ? element.get<std::string>() : element.dump();
    }
    rows.emplace_back(prefix, joined);
    return;
  }
  rows.emplace_back(prefix, json.is_string() ? json.get<std::string>()
                            : json.is_null() ? std::string(kNone)
                                             : json.dump());
}

}  // namespace

absl::StatusOr<Summary> ViewOf(summary::Summary summary, const ablations::Subject& subject) {
  Summary view;
  const std::vector<ablations::ShapeInfo> recorded = summary.problems;
  static_cast<summary::Summary&>(view) = Plain(std::move(summary));
  view.subject = &subject;
  for (size_t i = 0; i < recorded.size(); ++i) {
    const ablations::ShapeInfo& problem = view.problems[i];
    Shape& shape = view.shapes.emplace_back();
    shape.name = problem.name;
    shape.in_record = recorded[i].name;
    shape.flops = problem.flops();
    shape.min_bytes = problem.min_bytes();
    if (subject.name() == ablations::kFirstSubject) {
      ASSIGN_OR_RETURN(Attention read, ablations::FromJson<Attention>(problem.fields));
      shape.attention = Plain(std::move(read));
      continue;
    }
    for (const auto& [name, value] : problem.fields.items()) {
      if (name == "flops" || name == "min_bytes" || name == "shown") continue;
      Append(&shape.parameters, shape.parameters.empty() ? "" : ", ", name, " ",
             PlainText(value.dump()));
    }
  }
  return view;
}

std::vector<std::pair<std::string, std::string>> ProvenanceRows(const Summary& summary) {
  std::vector<std::pair<std::string, std::string>> rows;
  Flatten("", ablations::ToJson(summary.provenance), rows);
  return rows;
}

std::vector<const Cell*> Summary::Ladder(std::string_view shape) const {
  std::vector<const Cell*> out;
  for (const Cell& cell : cells) {
    if (cell.shape == shape && (cell.role == "base" || cell.role == "step")) out.push_back(&cell);
  }
  return out;
}

const Cell* Summary::FindCell(std::string_view variant, std::string_view shape) const {
  return FindIn(cells,
                [&](const Cell& cell) { return cell.variant == variant && cell.shape == shape; });
}

const Verdict* Summary::FindVerdict(std::string_view candidate, std::string_view shape) const {
  return FindIn(verdicts, [&](const Verdict& verdict) {
    return verdict.candidate == candidate && verdict.shape == shape;
  });
}

const Floor* Summary::FindFloor(std::string_view shape, std::string_view name) const {
  return FindIn(floors,
                [&](const Floor& floor) { return floor.shape == shape && floor.name == name; });
}

const MicroValue* Summary::FindMicro(std::string_view name) const {
  return FindIn(micro, [&](const MicroValue& row) { return row.name == name; });
}

const Shape& Summary::MainShape() const {
  for (const Shape& shape : shapes) {
    if (shape.name == "b1_h8_s512_d64") return shape;
  }
  return shapes.back();
}

bool Summary::IsRanked(const Cell& cell) const {
  if (cell.correct != true || !cell.p50_us.value) return false;
  const Verdict* verdict = FindVerdict(cell.variant, cell.shape);
  return verdict == nullptr || verdict->verdict != "INVALID";
}

const Cell* Summary::FastestStep(std::string_view shape) const {
  const Cell* fastest = nullptr;
  for (const Cell* cell : Ladder(shape)) {
    if (!IsRanked(*cell)) continue;
    if (fastest == nullptr || *cell->p50_us.value < *fastest->p50_us.value) fastest = cell;
  }
  return fastest;
}

const Cell* Summary::LastStep(std::string_view shape) const {
  const Cell* last = nullptr;
  for (const Cell* cell : Ladder(shape)) {
    if (IsRanked(*cell)) last = cell;
  }
  return last;
}

const Peer* Summary::FastestPeer(std::string_view shape, int64_t kv_bits) const {
  const Peer* fastest = nullptr;
  for (const Peer& peer : peers) {
    if (peer.shape != shape || !peer.available || peer.correct != true) continue;
    if (!peer.p50_us.value || peer.kv_bits.value_or(16) != kv_bits) continue;
    if (fastest == nullptr || *peer.p50_us.value < *fastest->p50_us.value) fastest = &peer;
  }
  return fastest;
}

}  // namespace warpledger::report
