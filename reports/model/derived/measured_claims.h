// SPDX-License-Identifier: Apache-2.0
// What the records say of a claim: a toggle at one level against it at another, in one family.
//
// A verdict names a toggle and two arms; the levels and the family are those of the arms'
// configurations. Verdicts of several designs on the same pair of levels are of one claim.
//
// Contract: pure functions of the records, which must outlive what is returned. No errors: a
// verdict on a toggle or a level that today's registry lacks is of no claim.
//
//   for (const MeasuredClaim& claim : MeasuredClaims(records)) … ClaimName(claim) …

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/sdpa/registry/claims.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "reports/model/records.h"
#include "reports/model/summary.h"

namespace warpledger::report {

inline constexpr char kTechniqueIndexFile[] = "techniques.md";

// The families in the pages' order; a toggle of several stands with its first.
inline constexpr sdpa::Family kFamilies[] = {sdpa::Family::kSmem, sdpa::Family::kMma,
                                             sdpa::Family::kWgmma, sdpa::Family::kResident};

// The page of the toggle's technique, which may be one of several families; below the folder of the
// GPU's reports.
std::string TechniquePath(const sdpa::ToggleRow& row);
std::string TechniqueName(const sdpa::ToggleRow& row);

struct Judgement {
  const ReadRecord* record;
  const Verdict* verdict;
  bool is_step = true;  // of the design; else two of its arms are compared
};

struct MeasuredClaim {
  const sdpa::ToggleRow* row = nullptr;
  sdpa::Family family = sdpa::Family::kSmem;
  int from = 0;  // the level that it is judged against
  int to = 0;
  std::vector<Judgement> judged;
};

// "kv_ring_stages.three_stages_over_two_stages"; the family stands behind it where the toggle is of
// several: "stream_launch.mma".
std::string ClaimName(const MeasuredClaim& claim);
// Its page, below the folder of the GPU's reports.
std::string ClaimPath(const MeasuredClaim& claim);
// "K/V ring"; of the level that is judged, where levels have labels of their own.
std::string_view LabelOf(const MeasuredClaim& claim);
// "K/V ring", and its levels where the toggle has several.
std::string ClaimTitle(const MeasuredClaim& claim);
// "[K/V ring](claims/….md), `three_stages` over `two_stages`". `prefix` goes before the link.
std::string ClaimLink(const MeasuredClaim& claim, std::string_view prefix);
// What was foreseen of it, and when: of claims.def.
sdpa::Claim DeclaredOf(const MeasuredClaim& claim);

// Of steps of the designs and of declared comparisons between their arms; in the registry's order,
// levels rising.
std::vector<MeasuredClaim> MeasuredClaims(const std::vector<ReadRecord>& records);
// The same with those judgements alone that `counts` takes, and without claims that have none left.
std::vector<MeasuredClaim> Restricted(const std::vector<MeasuredClaim>& claims,
                                      absl::FunctionRef<bool(const Judgement&)> counts);

// Of some of its verdicts this tree's kernels have other machine code.
bool RestsOnOlderCode(const MeasuredClaim& claim);

// "three_stages over two_stages"; "on" where the toggle has one level but off.
std::string LevelWords(const MeasuredClaim& claim);

// The kernel of a family, in words: "WMMA kernel".
std::string_view FamilyTitle(sdpa::Family family);

// The kind of problem: "short, full mask" (at most 1024 keys), "long, causal", "decoding",
// "projection in front".
std::string RegimeOf(const Attention& problem);
// In the pages' order.
inline constexpr std::string_view kRegimeNames[] = {"short, full mask", "short, causal",
                                                    "long, full mask",  "long, causal",
                                                    "decoding",         "projection in front"};
// Where the claim should show: the regime of the problem that its prediction names.
std::string RegimeOf(const sdpa::Claim& claim);
// The problem of a verdict; null where it is none of attention.
const Attention* ProblemOf(const Judgement& judgement);

// "softmax_in_registers: scores_and_p over through_smem"; "" where the toggle has one on-level, or
// today's registry lacks it.
std::string ClaimText(const Summary& summary, const Verdict& verdict);

// How verdicts that mean something went.
struct Tally {
  int64_t n = 0;
  int64_t faster = 0;
  int64_t slower = 0;
  int64_t neutral = 0;
  double median = 0;

  int64_t undecided() const { return n - faster - slower - neutral; }
};
Tally TallyOf(const MeasuredClaim& claim);

// "Faster in 7 of 9 verdicts, slower in none". Only NEUTRAL verdicts show no difference; others
// that are neither faster nor slower are not decided.
std::string AnswerOf(const Tally& tally);

// "2 ADOPT and 1 NEUTRAL", in the reports' order of verdicts.
std::string CountVerdicts(const std::vector<const Verdict*>& verdicts);
// "1.020× to 1.310×" over the ratios that mean something; "" where none does.
std::string RatioRange(const std::vector<const Verdict*>& verdicts);
// "1.020× to 1.310×, faster in 7 of 9 and slower in 1".
std::string Outcome(const MeasuredClaim& claim);

}  // namespace warpledger::report
