// SPDX-License-Identifier: Apache-2.0
// The parts of summary.json, each a function of an indexed record.

#ifndef WARPLEDGER_ABLATIONS_JUDGE_SUMMARIZE_PARTS_H_
#define WARPLEDGER_ABLATIONS_JUDGE_SUMMARIZE_PARTS_H_

#include <string>

#include "ablations/judge/record_index.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

// cells[]: one arm on one shape, its times, errors and resources.
nlohmann::ordered_json CellOf(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape);
// What one arm's kernel for a shape takes: {registers, smem_bytes, spill_bytes, stack_bytes,
// threads, ctas_per_sm}, null where the record doesn't say.
nlohmann::ordered_json ResourcesOf(const RecordIndex& index, const Arm& arm,
                                   const ShapeInfo& shape);
// verdicts[].change: what those and the instructions of two arms differ by.
nlohmann::ordered_json CodeChangeOf(const RecordIndex& index, const Arm& base, const Arm& candidate,
                                    const ShapeInfo& shape, const Claim& claim);
// verdicts[].errors: the errors of two arms by kind of inputs; empty unless a check of one of them
// failed or their mean errors lie further apart than options().error_ratio.
nlohmann::ordered_json ErrorsOf(const RecordIndex& index, const std::string& base,
                                const std::string& candidate, const std::string& shape);
// Appends to floors[], where the floor was timed on the shape.
void AddFloor(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape,
              nlohmann::ordered_json* floors);

// Appends to controls[], where there are pairs. A control says what the same samples
// would have said of a real toggle; it stands outside the family, so at the unadjusted level.
void AddControl(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape,
                nlohmann::ordered_json* controls);
// verdicts[]. The declared family is every step on every shape that it applies to, whether
// or not its samples turn out to be usable: what is counted must not depend on the outcome.
nlohmann::ordered_json VerdictsOf(const RecordIndex& index, int* family_size);

// statistics.looks[], of a run with a stopping rule.
nlohmann::ordered_json LooksOf(const RecordIndex& index);
// peers[]: every peer on every shape, with the reason where it was not timed.
nlohmann::ordered_json PeersOf(const RecordIndex& index);
// provenance: run.json, how much of its plan is there, and the run's conditions.
nlohmann::ordered_json ProvenanceOf(const RecordIndex& index);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_JUDGE_SUMMARIZE_PARTS_H_
