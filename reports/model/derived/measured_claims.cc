// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/measured_claims.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/registry/techniques.h"
#include "kernels/sdpa/registry/variant.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

std::optional<sdpa::Config> ConfigOf(const Summary& summary, const std::string& arm,
                                     const std::string& shape) {
  const Cell* cell = summary.FindCell(arm, shape);
  return cell == nullptr ? std::nullopt : sdpa::ConfigFromName(cell->config);
}

std::vector<const Verdict*> Verdicts(const MeasuredClaim& claim) {
  std::vector<const Verdict*> out;
  for (const Judgement& judgement : claim.judged) out.push_back(judgement.verdict);
  return out;
}

}  // namespace

std::string TechniqueName(const sdpa::ToggleRow& row) {
  const sdpa::TechniqueRow* shared = sdpa::FindTechnique(row.technique);
  return std::string(shared == nullptr ? row.label : shared->name);
}

std::string TechniquePath(const sdpa::ToggleRow& row) {
  const sdpa::TechniqueRow* shared = sdpa::FindTechnique(row.technique);
  if (shared == nullptr) return Cat("techniques/", row.id, ".md");
  std::string file;
  for (const char c : shared->name) {
    if (absl::ascii_isalnum(c)) file += absl::ascii_tolower(c);
    if (c == ' ' || c == '-') file += '_';
  }
  return Cat("techniques/", file, ".md");
}

std::string ClaimName(const MeasuredClaim& claim) {
  std::string name = sdpa::ClaimId(*claim.row, claim.from, claim.to);
  const auto families =
      std::count_if(std::begin(kFamilies), std::end(kFamilies),
                    [&](sdpa::Family family) { return Includes(claim.row->families, family); });
  if (families > 1) Append(&name, ".", sdpa::FamilyName(claim.family));
  return name;
}

std::string ClaimPath(const MeasuredClaim& claim) {
  return Cat("claims/", ClaimName(claim), ".md");
}

std::string_view LabelOf(const MeasuredClaim& claim) { return sdpa::LabelOf(*claim.row, claim.to); }

std::string ClaimTitle(const MeasuredClaim& claim) {
  std::string title(LabelOf(claim));
  if (claim.row->levels.count > 2) Append(&title, ": ", LevelWords(claim));
  return title;
}

std::string ClaimLink(const MeasuredClaim& claim, std::string_view prefix) {
  std::string out = Cat("[", LabelOf(claim), "](", prefix, ClaimPath(claim), ")");
  if (claim.row->levels.count > 2) Append(&out, ", ", LevelWords(claim));
  return out;
}

bool RestsOnOlderCode(const MeasuredClaim& claim) {
  return std::any_of(claim.judged.begin(), claim.judged.end(), [](const Judgement& judgement) {
    return judgement.record->staleness.IsStaleFor(
        {judgement.verdict->base, judgement.verdict->candidate});
  });
}

sdpa::Claim DeclaredOf(const MeasuredClaim& claim) {
  for (sdpa::Claim& each : sdpa::DeclaredClaims()) {
    if (each.row != claim.row || each.over != claim.from || each.level != claim.to) continue;
    each.problem = sdpa::ShownName(each.problem);
    return each;
  }
  return {.row = claim.row,
          .over = claim.from,
          .level = claim.to,
          .problem = sdpa::ShownName(claim.row->predicted.shape),
          .step_family = claim.row->id};
}

std::string_view FamilyTitle(sdpa::Family family) {
  switch (family) {
    case sdpa::Family::kSmem:
      return "WMMA kernel";
    case sdpa::Family::kMma:
      return "mma.sync kernel";
    case sdpa::Family::kWgmma:
      return "Hopper kernel";
    case sdpa::Family::kResident:
      return "small-problem kernel";
  }
  return "";
}

std::string RegimeOf(const Attention& problem) {
  if (problem.projected()) return "projection in front";
  if (problem.seq_q == 1) return "decoding";
  return Cat(problem.seq_kv <= 1024 ? "short" : "long",
             problem.causal ? ", causal" : ", full mask");
}

std::string RegimeOf(const sdpa::Claim& claim) {
  for (const sdpa::NamedShape& shape : sdpa::kShapes) {
    if (sdpa::ShownName(shape.name) != claim.problem) continue;
    const sdpa::Problem& p = shape.problem;
    return RegimeOf(Attention{
        .seq_q = p.seq_q, .seq_kv = p.seq_kv, .embed_dim = p.embed_dim, .causal = p.causal});
  }
  return "";
}

const Attention* ProblemOf(const Judgement& judgement) {
  for (const Shape& shape : judgement.record->summary.shapes) {
    if (shape.name == judgement.verdict->shape && shape.attention) return &*shape.attention;
  }
  return nullptr;
}

std::vector<MeasuredClaim> MeasuredClaims(const std::vector<ReadRecord>& records) {
  // By the row's place in the registry.
  std::map<std::tuple<const sdpa::ToggleRow*, sdpa::Family, int, int>, MeasuredClaim> claims;
  const auto add = [&](const ReadRecord& record, const std::vector<Verdict>& verdicts, bool steps) {
    for (const Verdict& verdict : verdicts) {
      const auto base = ConfigOf(record.summary, verdict.base, verdict.shape);
      const auto candidate = ConfigOf(record.summary, verdict.candidate, verdict.shape);
      if (!base || !candidate) continue;
      for (const sdpa::ToggleRow& row : sdpa::kToggles) {
        if (row.id != verdict.toggle || row.control) continue;
        const sdpa::Family family = sdpa::FamilyOf(*candidate);
        const int from = (*base).*row.field;
        const int to = (*candidate).*row.field;
        MeasuredClaim& claim = claims[{&row, family, from, to}];
        claim.row = &row;
        claim.family = family;
        claim.from = from;
        claim.to = to;
        claim.judged.push_back({&record, &verdict, steps});
      }
    }
  };
  for (const ReadRecord& record : records) {
    add(record, record.summary.verdicts, true);
    add(record, record.summary.comparisons, false);
  }
  std::vector<MeasuredClaim> out;
  for (auto& [key, claim] : claims) out.push_back(std::move(claim));
  return out;
}

std::vector<MeasuredClaim> Restricted(const std::vector<MeasuredClaim>& claims,
                                      absl::FunctionRef<bool(const Judgement&)> counts) {
  std::vector<MeasuredClaim> out;
  for (MeasuredClaim claim : claims) {
    std::erase_if(claim.judged, [&](const Judgement& judgement) { return !counts(judgement); });
    if (!claim.judged.empty()) out.push_back(std::move(claim));
  }
  return out;
}

std::string LevelWords(const MeasuredClaim& claim) {
  const sdpa::LevelList& levels = claim.row->levels;
  if (levels.count == 2) return std::string(levels.NameOf(claim.to));
  return Cat(Code(levels.NameOf(claim.to)), " over ", Code(levels.NameOf(claim.from)));
}

std::string ClaimText(const Summary& summary, const Verdict& verdict) {
  const auto base = ConfigOf(summary, verdict.base, verdict.shape);
  const auto candidate = ConfigOf(summary, verdict.candidate, verdict.shape);
  if (!base || !candidate) return "";
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.id != verdict.toggle || row.levels.count == 2) continue;
    return Cat(row.id, ": ", row.levels.NameOf((*candidate).*row.field), " over ",
               row.levels.NameOf((*base).*row.field));
  }
  return "";
}

Tally TallyOf(const MeasuredClaim& claim) {
  Tally tally;
  std::vector<double> ratios;
  for (const Verdict* verdict : Verdicts(claim)) {
    if (!HasMeaning(*verdict) || !verdict->ratio.value) continue;
    ratios.push_back(*verdict->ratio.value);
    tally.faster += verdict->verdict == "ADOPT" || verdict->verdict == "REAL_BELOW_GATE";
    tally.slower += verdict->verdict == "REGRESSION";
    tally.neutral += verdict->verdict == "NEUTRAL";
  }
  tally.n = static_cast<int64_t>(ratios.size());
  if (ratios.empty()) return tally;
  std::sort(ratios.begin(), ratios.end());
  const size_t middle = ratios.size() / 2;
  tally.median =
      ratios.size() % 2 == 1 ? ratios[middle] : (ratios[middle - 1] + ratios[middle]) / 2;
  return tally;
}

std::string AnswerOf(const Tally& tally) {
  if (tally.n == 0) return "No sound measurement yet";
  const std::string of =
      Cat(tally.n == 1 ? "the one" : Cat("all ", tally.n), " verdict", tally.n == 1 ? "" : "s");
  if (tally.faster == tally.n) return Cat("Faster in ", of);
  if (tally.slower == tally.n) return Cat("Slower in ", of);
  if (tally.faster == 0 && tally.slower == 0) {
    const std::string_view what = tally.neutral > 0 ? "No difference in " : "Not decided in ";
    if (tally.neutral > 0 && tally.undecided() > 0) {
      return Cat(what, tally.neutral, " of ", tally.n, " verdicts, not decided in ",
                 tally.undecided());
    }
    return Cat(what, tally.n == 1 ? "the one verdict" : Cat("any of ", tally.n, " verdicts"));
  }
  const bool faster = tally.faster > 0;
  std::string out = Cat(faster ? "Faster in " : "Slower in ", faster ? tally.faster : tally.slower,
                        " of ", tally.n, " verdicts, ", faster ? "slower in " : "faster in ");
  Append(&out, faster && tally.slower > 0 ? Cat(tally.slower) : std::string("none"));
  return out;
}

std::string CountVerdicts(const std::vector<const Verdict*>& verdicts) {
  std::vector<std::string> parts;
  for (const std::string_view name : kVerdictNames) {
    const auto n = std::count_if(verdicts.begin(), verdicts.end(),
                                 [&](const Verdict* v) { return v->verdict == name; });
    if (n > 0) parts.push_back(Cat(n, " ", name));
  }
  return JoinWords(parts);
}

std::string RatioRange(const std::vector<const Verdict*>& verdicts) {
  std::vector<double> ratios;
  for (const Verdict* verdict : verdicts) {
    if (HasMeaning(*verdict) && verdict->ratio.value) ratios.push_back(*verdict->ratio.value);
  }
  if (ratios.empty()) return "";
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  if (*low == *high) return FormatRatio(*low);
  return Cat(FormatRatio(*low), " to ", FormatRatio(*high));
}

std::string Outcome(const MeasuredClaim& claim) {
  const Tally tally = TallyOf(claim);
  if (tally.n == 0) return "no sound measurement";
  std::string out = RatioRange(Verdicts(claim));
  if (tally.faster == 0 && tally.slower == 0) {
    const bool both = tally.neutral > 0 && tally.undecided() > 0;
    if (tally.neutral > 0) Append(&out, ", no difference in ", tally.neutral, " of ", tally.n);
    if (tally.undecided() > 0) {
      Append(&out, both ? " and" : ",", " not decided in ", tally.undecided(),
             both ? "" : Cat(" of ", tally.n));
    }
    return out;
  }
  if (tally.faster > 0) Append(&out, ", faster in ", tally.faster, " of ", tally.n);
  if (tally.slower > 0) {
    Append(&out, tally.faster > 0 ? " and" : ",", " slower in ", tally.slower,
           tally.faster > 0 ? "" : Cat(" of ", tally.n));
  }
  return out;
}

}  // namespace warpledger::report
