// SPDX-License-Identifier: Apache-2.0
// Claims as designs judge them: what is planned, what is declared and what the judge does agree.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ablations/judge/summarize.h"
#include "ablations/subjects/sdpa/subject.h"
#include "gmock/gmock.h"
#include "kernels/sdpa/registry/claims.h"
#include "kernels/sdpa/registry/variant.h"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {
namespace {

// A design's arms as run.json has them, at problems of every kind. One sample makes no pair.
Record Unmeasured(const PlannedDesign& design) {
  Record record;
  record.run = ExampleRun();
  record.run.design = record.run.family = design.name;
  record.run.shapes = *SdpaSubject().ParseProblems(
      "mission_b,fa3_d64_s512_causal,fa3_d128_s512_full,fa3_d256_s512_full,fa3_d128_s512_full_bf16,"
      "decode_b1,fusion_b");
  record.run.arms.clear();
  for (const PlannedArm& arm : design.arms) record.run.arms.push_back(arm.Recorded());
  record.checks = PassingChecks(record.run);
  record.samples = {ExampleSample(0, "mission_b", 0, 0, design.arms[0].name, 1)};
  return record;
}

// The one between the two arms' levels of the toggle.
std::optional<sdpa::Claim> Declared(const RunInfo& run, const summary::Verdict& verdict) {
  const auto config = [&](const std::string& name) {
    return *sdpa::ConfigFromName(
        std::ranges::find_if(run.arms, [&](const Arm& arm) { return arm.name == name; })->config);
  };
  for (const sdpa::Claim& claim : sdpa::DeclaredClaims()) {
    if (claim.row->id == verdict.toggle && config(verdict.base).*claim.row->field == claim.over &&
        config(verdict.candidate).*claim.row->field == claim.level) {
      return claim;
    }
  }
  return std::nullopt;
}

// Where no two arms were sampled, a verdict of a family of n is drawn at 1/n of the whole level.
double Confidence(int64_t family) { return 1 - 0.05 / static_cast<double>(family); }

TEST(Claims, AreJudgedInTheFamiliesOfTestsThatTheyDeclareAndEachOneInSomeDesign) {
  std::set<std::string> judged;
  for (const PlannedDesign& design : SdpaSubject().Designs()) {
    const Record record = Unmeasured(design);
    const absl::StatusOr<summary::Summary> summary = Summarize(record, SdpaSubject());
    ASSERT_TRUE(summary.ok()) << design.name << ": " << summary.status();
    for (const bool steps : {true, false}) {
      std::map<std::string, std::vector<double>> families;
      for (const summary::Verdict& verdict : steps ? summary->verdicts : summary->comparisons) {
        const std::optional<sdpa::Claim> claim = Declared(record.run, verdict);
        ASSERT_TRUE(claim) << design.name << ": " << verdict.base << " and " << verdict.candidate
                           << " differ by a claim that none declares";
        judged.insert(sdpa::ClaimId(*claim->row, claim->over, claim->level));
        if (!verdict.adjusted_confidence) continue;  // it does not apply to the problem
        families[steps ? std::string(claim->step_family) : claim->pair_family].push_back(
            *verdict.adjusted_confidence);
      }
      for (const auto& [family, levels] : families) {
        EXPECT_THAT(levels, ::testing::Each(::testing::DoubleNear(
                                Confidence(static_cast<int64_t>(levels.size())), 1e-6)))
            << design.name << ": " << family;
      }
    }
    for (const DeclaredPair& pair : SdpaSubject().DeclaredPairs(record.run.arms)) {
      EXPECT_TRUE(judged.contains(pair.family)) << design.name << ": " << pair.family;
    }
  }
  for (const sdpa::Claim& claim : sdpa::DeclaredClaims()) {
    const std::string id = sdpa::ClaimId(*claim.row, claim.over, claim.level);
    EXPECT_TRUE(judged.contains(id)) << "no design judges " << id;
  }
}

TEST(Claims, HoldTheIntervalOfARecordAgainstLaterRecordsAlone) {
  for (const bool later : {false, true}) {
    int held = 0;
    for (const PlannedDesign& design : SdpaSubject().Designs()) {
      Record record = Unmeasured(design);
      record.run.created_utc = later ? "2026-11-26T00:00:01Z" : "2026-11-25T23:59:59Z";
      const absl::StatusOr<summary::Summary> summary = Summarize(record, SdpaSubject());
      ASSERT_TRUE(summary.ok()) << summary.status();
      for (const summary::Verdict& verdict : summary->comparisons) {
        const std::optional<sdpa::Claim> claim = Declared(record.run, verdict);
        if (claim->foreseen != sdpa::Foreseen::kFromRecord || !verdict.predicted_low) continue;
        EXPECT_EQ(verdict.shape, claim->problem);
        EXPECT_EQ(*verdict.predicted_low, claim->low);
        ++held;
      }
    }
    EXPECT_EQ(held > 0, later);
  }
}

}  // namespace
}  // namespace warpledger::ablations
