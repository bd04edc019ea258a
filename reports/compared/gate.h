// SPDX-License-Identifier: Apache-2.0
// What the regression gate says, for a terminal, a pull request and a pipeline.
//
// Contract: pure functions of the result. No errors.
//
//   WriteFileAtomically("gate.xml", GateJUnit(gate));

#pragma once

#include <string>

#include "ablations/summary/gate.h"
#include "nlohmann/json.hpp"

namespace warpledger::report {

const char* GateOutcomeName(summary::GateOutcome outcome);

nlohmann::ordered_json GateJson(const summary::GateResult& result);
std::string GateText(const summary::GateResult& read);
// For a pull request: the sentence, then what is not a PASS, then the rest folded.
std::string GateMarkdown(const summary::GateResult& read);
// One test case per cell, `classname` the shape and `name` the variant. A
// REGRESSION is a failure; BROKEN, MISSING and refused records are errors;
// CANNOT_TELL and NEW are skipped, because they gave no answer (the exit code
// still tells CANNOT_TELL from a pass).
std::string GateJUnit(const summary::GateResult& result);

}  // namespace warpledger::report
