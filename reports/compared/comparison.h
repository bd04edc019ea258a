// SPDX-License-Identifier: Apache-2.0
// Two records held against each other, for a terminal and as a page.
//
// Contract: pure functions of the comparison. No errors.
//
//   std::cout << ComparisonText(comparison);

#ifndef WARPLEDGER_REPORTS_COMPARED_COMPARISON_H_
#define WARPLEDGER_REPORTS_COMPARED_COMPARISON_H_

#include <string>

#include "ablations/summary/comparison.h"

namespace warpledger::report {

std::string ComparisonText(const summary::Comparison& comparison);
std::string ComparisonMarkdown(const summary::Comparison& comparison);

}  // namespace warpledger::report

#endif  // WARPLEDGER_REPORTS_COMPARED_COMPARISON_H_
