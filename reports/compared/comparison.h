// SPDX-License-Identifier: Apache-2.0
// Two records held against each other, for a terminal and as a page.
//
// Contract: pure functions of the comparison. No errors.
//
//   std::cout << ComparisonText(comparison);

#pragma once

#include <string>

#include "ablations/summary/comparison.h"

namespace warpledger::report {

std::string ComparisonText(const summary::Comparison& compared);
std::string ComparisonMarkdown(const summary::Comparison& compared);

}  // namespace warpledger::report
