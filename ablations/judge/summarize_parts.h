// SPDX-License-Identifier: Apache-2.0
// The parts of a summary (summary/summary.h), each a function of an indexed record.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ablations/judge/measured.h"
#include "ablations/judge/record_index.h"
#include "ablations/summary/summary.h"

namespace warpledger::ablations {

// An arm over a peer, both timed alone, in time and in joules: peer / arm.
struct PeerRatio {
  std::string peer;
  std::string arm;
  std::string shape;
  MeasuredEffect time;
  std::optional<MeasuredEffect> joules;
};
// Of all that were right; their variances are moderated together. None where arms took turns.
std::vector<PeerRatio> PeerRatiosOf(const RecordIndex& index);

summary::Cell CellOf(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape,
                     const std::vector<PeerRatio>& ratios);
summary::Resources ResourcesOf(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape);
summary::CodeChange CodeChangeOf(const RecordIndex& index, const Arm& base, const Arm& candidate,
                                 const ShapeInfo& shape, const Claim& claim);
// The errors of two arms by kind of inputs; empty unless a check of one of them failed or their
// mean errors lie further apart than options().error_ratio.
std::vector<summary::ErrorChange> ErrorsOf(const RecordIndex& index, const std::string& base,
                                           const std::string& candidate, const std::string& shape);

// nullopt where no check of both against the reference on the same inputs is there.
std::optional<summary::SameErrors> SameErrorsOf(const RecordIndex& index, const std::string& base,
                                                const std::string& candidate,
                                                const std::string& shape);

// Verdicts, and the controls that have pairs: what the same samples would have said of a real
// toggle. Both are judged by judge/measured.h, each claim and each control as a family. So are the
// subject's DeclaredPairs(), whose figures no verdict depends on.
void AddVerdicts(const RecordIndex& index, summary::Summary* out);

// Of a run with a stopping rule.
std::vector<summary::Look> LooksOf(const RecordIndex& index);
// Every peer on every shape, with the reason where it was not timed.
std::vector<summary::Peer> PeersOf(const RecordIndex& index);
// run.json, how much of its plan is there, and the run's conditions.
summary::Provenance ProvenanceOf(const RecordIndex& index);

}  // namespace warpledger::ablations
