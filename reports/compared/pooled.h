// SPDX-License-Identifier: Apache-2.0
// What records of several boards say together, for a terminal.
//
// Contract: pure functions of the values. No errors.
//
//   std::cout << PooledText(pooled);

#pragma once

#include <string>

#include "ablations/summary/pooled.h"

namespace warpledger::report {

std::string PooledText(const summary::Pooled& read);
std::string CoverageText(const summary::Coverage& coverage);

}  // namespace warpledger::report
