// SPDX-License-Identifier: Apache-2.0
// The index of a GPU's reports: questions that readers have, each with its answer in one sentence
// and a link; and the table of techniques that opens a README.
//
// Contract: pure functions of the records and the registry; every figure is of a record, and every
// link of the page is relative to the folder of the GPU's reports. `records` must not be empty.
//
//   std::string page = QuestionsText(records);

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/model/derived/measured_claims.h"
#include "reports/model/records.h"

namespace warpledger::report {

inline constexpr char kQuestionsFile[] = "README.md";

std::string QuestionsText(const std::vector<ReadRecord>& records);

// A row per technique of several families: its best level on Hopper's kernels and on those of the
// sm_80-class path, and when to use it. `prefix` goes before links: "reports/h200/".
std::string TechniqueTable(const std::vector<ReadRecord>& records, std::string_view prefix);

}  // namespace warpledger::report
