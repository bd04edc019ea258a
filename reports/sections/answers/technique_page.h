// SPDX-License-Identifier: Apache-2.0
// The page of a technique: its claims in every kernel family side by side, then each toggle's
// levels, lesson, microbenchmark, and where it can't be.
//
// Contract: a pure function of the records and the registry; `records` must not be empty.
//
//   const std::string page = TechniquePage(records, claims, rows);  // at TechniquePath(*rows[0])

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/measured_claims.h"
#include "reports/model/records.h"

namespace warpledger::report {

// Every verdict on a toggle, in the order of the records.
std::vector<Judgement> JudgementsOn(const std::vector<ReadRecord>& records,
                                    std::string_view toggle);

// `claims` are those of all toggles; `rows` are the toggles of one technique, at least one.
std::string TechniquePage(const std::vector<ReadRecord>& records,
                          const std::vector<MeasuredClaim>& claims,
                          const std::vector<const sdpa::ToggleRow*>& rows);

}  // namespace warpledger::report
