// SPDX-License-Identifier: Apache-2.0
#include "reports/model/summary.h"

namespace warpledger::report {

std::vector<const Cell*> Summary::Ladder(std::string_view shape) const {
  std::vector<const Cell*> out;
  for (const Cell& cell : cells) {
    if (cell.shape == shape && (cell.role == "base" || cell.role == "step")) out.push_back(&cell);
  }
  return out;
}

const Cell* Summary::FindCell(std::string_view variant, std::string_view shape) const {
  for (const Cell& cell : cells) {
    if (cell.variant == variant && cell.shape == shape) return &cell;
  }
  return nullptr;
}

const Verdict* Summary::FindVerdict(std::string_view candidate, std::string_view shape) const {
  for (const Verdict& verdict : verdicts) {
    if (verdict.candidate == candidate && verdict.shape == shape) return &verdict;
  }
  return nullptr;
}

const Floor* Summary::FindFloor(std::string_view shape, std::string_view name) const {
  for (const Floor& floor : floors) {
    if (floor.shape == shape && floor.name == name) return &floor;
  }
  return nullptr;
}

const MicroValue* Summary::FindMicro(std::string_view name) const {
  for (const MicroValue& row : micro) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const Shape& Summary::MainShape() const {
  for (const Shape& shape : shapes) {
    if (shape.name == "mission_b") return shape;
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

const Peer* Summary::FastestPeer(std::string_view shape) const {
  const Peer* fastest = nullptr;
  for (const Peer& peer : peers) {
    if (peer.shape != shape || !peer.available || peer.correct != true) continue;
    if (!peer.p50_us.value) continue;
    if (fastest == nullptr || *peer.p50_us.value < *fastest->p50_us.value) fastest = &peer;
  }
  return fastest;
}

}  // namespace warpledger::report
