// SPDX-License-Identifier: Apache-2.0
// What records say of each other: two compared, a gate of one against another, several boards
// together.
//
// Contract: pure functions of the values. No errors.
//
//   std::cout << ComparisonText(comparison);
//   WriteFileAtomically("gate.xml", GateJUnit(gate));

#pragma once

#include <string>

#include "ablations/summary/compared.h"
#include "nlohmann/json.hpp"

namespace warpledger::report {

std::string ComparisonText(const summary::Comparison& compared);
std::string ComparisonMarkdown(const summary::Comparison& compared);

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

std::string PooledText(const summary::Pooled& read);
std::string CoverageText(const summary::Coverage& coverage);

}  // namespace warpledger::report
