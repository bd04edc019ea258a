// SPDX-License-Identifier: Apache-2.0
// What a GPU's reports answer over all of its records: an index of questions, a page per technique
// and per claim, what the L4 notes said, and names.
//
// Contract: pure functions of the records and the registry; every figure is of a record, and what
// others said is quoted. `records` must not be empty. Links of a page are relative to the folder of
// the GPU's reports.
//
//   std::string page = QuestionsText(records);
//   page = TechniquePage(records, claims, rows);      // at TechniquePath(*rows[0])
//   page = ClaimPage(records, claim, has_picture);    // at ClaimPath(claim)
//   page = L4NotesText(records, MeasuredClaims(records));

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/registry/techniques.h"
#include "nlohmann/json.hpp"
#include "reports/model/derived/measured_claims.h"
#include "reports/model/records.h"

namespace warpledger::report {

inline constexpr char kQuestionsFile[] = "README.md";
inline constexpr char kL4NotesFile[] = "l4_notes.md";
inline constexpr char kNamesFile[] = "names.md";

// Questions that readers have, each with its answer in one sentence and a link.
std::string QuestionsText(const std::vector<ReadRecord>& records);

// The table that opens a README: a row per technique of several families, with its best level on
// Hopper's kernels and on those of the sm_80-class path, and when to use it. `prefix` goes before
// links: "reports/h200/".
std::string TechniqueTable(const std::vector<ReadRecord>& records, std::string_view prefix);
// "always in the WMMA kernel, never in the mma.sync kernel; best where the compute warps lack issue
// slots": each kernel's verdicts on its best claim of the technique. `claims` may be of others too.
std::string UseWhen(const std::vector<MeasuredClaim>& claims, const sdpa::TechniqueRow& technique);

// Every verdict on a toggle, in the order of the records.
std::vector<Judgement> JudgementsOn(const std::vector<ReadRecord>& records,
                                    std::string_view toggle);

// Claims in every kernel family side by side, then each toggle's levels, lesson, microbenchmark,
// and where it can't be. `claims` are those of all toggles; `rows` are the toggles of one
// technique, at least one.
std::string TechniquePage(const std::vector<ReadRecord>& records,
                          const std::vector<MeasuredClaim>& claims,
                          const std::vector<const sdpa::ToggleRow*>& rows);

// Its first screen has the answer, the verdicts by kind of problem, a small picture, the mechanism
// and the lesson; the rest is folded. `has_picture`: one lies beside the page, as ClaimName() and
// ".svg".
std::string ClaimPage(const std::vector<ReadRecord>& records, const MeasuredClaim& claim,
                      bool has_picture);

// The one small picture of a claim's page: its ratios on a logarithmic axis, as SVG. A row for each
// problem, or for each kind of problem where these are many. A mark's shape and colour say the
// verdict, as in every picture of the reports (plots/style.py); a line is the interval of boards of
// the kind. Verdicts without meaning are not drawn. Empty where nothing is left.
std::string ClaimPicture(const MeasuredClaim& claim);

// Every verdict as a row of data: which claim, which problem, what was found. The explorer
// (reports/explorer.py) and scripts of others read it, so that they need no registry. Rows are in
// the order of the registry, levels rising, then of the records; a text is plain, without Markdown.
// A figure that a summary lacks is null.
nlohmann::ordered_json ClaimTable(const std::vector<MeasuredClaim>& claims);

// What the index of questions says of the L4 notes, a sentence each.
std::vector<std::string> L4NotesAnswer(const std::vector<ReadRecord>& records);

// "The L4 notes, claim by claim": each stage, target and open question of an earlier attempt at the
// ladder, and what was found here.
std::string L4NotesText(const std::vector<ReadRecord>& records,
                        const std::vector<MeasuredClaim>& claims);

// What records and older pages call a thing, and what pages call it now.
std::string NamesText(const std::vector<ReadRecord>& records,
                      const std::vector<MeasuredClaim>& claims);

}  // namespace warpledger::report
