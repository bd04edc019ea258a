// SPDX-License-Identifier: Apache-2.0
// The page "The L4 notes, claim by claim": each stage, target and open question of an earlier
// attempt at the ladder, and what was found here.
//
// Contract: pure functions of the records; what the notes said is quoted, and every figure of ours
// is of a record.
//
//   std::string page = L4NotesText(records, MeasuredClaims(records));

#pragma once

#include <string>
#include <vector>

#include "reports/model/derived/measured_claims.h"
#include "reports/model/records.h"

namespace warpledger::report {

inline constexpr char kL4NotesFile[] = "l4_notes.md";

// What the index of questions says of them, a sentence each.
std::vector<std::string> L4NotesAnswer(const std::vector<ReadRecord>& records);

std::string L4NotesText(const std::vector<ReadRecord>& records,
                        const std::vector<MeasuredClaim>& claims);

}  // namespace warpledger::report
