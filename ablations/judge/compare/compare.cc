// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "ablations/base/json_fields.h"
#include "ablations/base/rounded.h"
#include "ablations/stats/proportion.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using analysis::Interval;

template <typename T>
Json ValueOrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

struct Outcome {
  std::string name;
  std::string reason;
};

Outcome OutcomeOf(const MatchedCell& cell, double alpha, double neutral_delta) {
  if (!cell.missing.empty()) return {"NOT_COMPARED", cell.missing};
  if (!cell.broken.empty()) return {"NOT_COMPARED", cell.broken};
  if (!cell.unusable.empty()) return {"CANNOT_TELL", cell.unusable};
  const double delta = std::log1p(neutral_delta);
  const Interval equivalence = cell.log_ratio->Envelope(1 - 2 * alpha);
  if (equivalence.low >= -delta && equivalence.high <= delta) {
    return {"SAME",
            absl::StrFormat("the difference is under %.2g%% either way", 100 * neutral_delta)};
  }
  const Interval interval = cell.log_ratio->Envelope(1 - alpha);
  const std::string by = cell.SameCode() ? ", though the machine code is the same" : "";
  if (interval.low > 0) return {"FASTER", absl::StrCat("B is faster", by)};
  if (interval.high < 0) return {"SLOWER", absl::StrCat("B is slower", by)};
  return {"CANNOT_TELL", "the interval holds 1, and more than the neutral zone"};
}

Json BothSides(const MatchedCell& cell, std::optional<int64_t> CellFacts::*field) {
  return {{"a", cell.a ? ValueOrNull((*cell.a).*field) : Json(nullptr)},
          {"b", cell.b ? ValueOrNull((*cell.b).*field) : Json(nullptr)}};
}

std::string CodeState(const MatchedCell& cell) {
  if (!cell.a || !cell.b || cell.a->code_sha256.empty() || cell.b->code_sha256.empty()) {
    return "unknown";
  }
  return cell.SameCode() ? "same" : "changed";
}

Json CellJson(const MatchedCell& cell, double alpha, double neutral_delta) {
  const Outcome outcome = OutcomeOf(cell, alpha, neutral_delta);
  Json json = {{"variant", cell.variant},
               {"variant_b", cell.b ? Json(cell.b->arm) : Json(nullptr)},
               {"config", cell.config},
               {"shape", cell.shape},
               {"n_processes_a", cell.a ? cell.a->n_processes : 0},
               {"n_processes_b", cell.b ? cell.b->n_processes : 0},
               {"p50_us_a", cell.a ? Rounded(cell.a->p50_us) : Json(nullptr)},
               {"p50_us_b", cell.b ? Rounded(cell.b->p50_us) : Json(nullptr)}};
  const bool has_ratio = cell.log_ratio && cell.missing.empty();
  const Interval interval = has_ratio ? cell.log_ratio->Envelope(1 - alpha) : Interval{};
  json["ratio"] = has_ratio ? Rounded(std::exp(cell.log_ratio->estimate())) : Json(nullptr);
  // With one process on a side there is no bound.
  const bool bounded = has_ratio && std::isfinite(interval.high);
  json["ci_low"] = bounded ? Rounded(std::exp(interval.low)) : Json(nullptr);
  json["ci_high"] = bounded ? Rounded(std::exp(interval.high)) : Json(nullptr);
  json["adjusted_confidence"] = has_ratio ? Rounded(1 - alpha) : Json(nullptr);
  json["outcome"] = outcome.name;
  json["reason"] = outcome.reason;
  json["registers"] = BothSides(cell, &CellFacts::registers);
  json["smem_bytes"] = BothSides(cell, &CellFacts::smem_bytes);
  json["spill_bytes"] = BothSides(cell, &CellFacts::spill_bytes);
  json["stack_bytes"] = BothSides(cell, &CellFacts::stack_bytes);
  json["code"] = CodeState(cell);
  return json;
}

// --- Verdicts ------------------------------------------------------------------

// What a verdict is about, in words that both records understand.
using VerdictKey = std::array<std::string, 4>;  // toggle, base's and candidate's config, shape

std::map<VerdictKey, Json> VerdictsOf(const JudgedRecord& judged, std::vector<VerdictKey>* order) {
  std::map<std::string, std::string> configs;
  for (const Arm& arm : judged.record.run.arms) configs[arm.name] = arm.config;
  std::map<VerdictKey, Json> verdicts;
  for (const Json& verdict : judged.summary["verdicts"]) {
    const VerdictKey key = {TextOf(verdict, "toggle"), configs[TextOf(verdict, "base")],
                            configs[TextOf(verdict, "candidate")], TextOf(verdict, "shape")};
    if (verdicts.emplace(key, verdict).second) order->push_back(key);
  }
  return verdicts;
}

int SignOf(const Json& verdict) {
  const std::string name = TextOf(verdict, "verdict");
  if (name == analysis::VerdictName(analysis::Verdict::kRegression)) return -1;
  return name == analysis::VerdictName(analysis::Verdict::kAdopt) ||
                 name == analysis::VerdictName(analysis::Verdict::kRealBelowGate)
             ? 1
             : 0;
}

bool Decides(const Json& verdict) {
  const std::string name = TextOf(verdict, "verdict");
  return SignOf(verdict) != 0 || name == analysis::VerdictName(analysis::Verdict::kNeutral);
}

// Timings spoke for the toggle: it is not INVALID, BROKEN or NOT_APPLICABLE.
bool Answers(const Json& verdict) {
  return Decides(verdict) ||
         TextOf(verdict, "verdict") == analysis::VerdictName(analysis::Verdict::kInconclusive);
}

// Of the share of verdicts that agree, were they independent.
double OneSidedLowerBound(int64_t agreed, int64_t decided) {
  return analysis::ClopperPearson(static_cast<int>(agreed), static_cast<int>(decided),
                                  2 * kAgreementConfidence - 1)
      .low;
}

Json CompareVerdicts(const JudgedRecord& a, const JudgedRecord& b) {
  std::vector<VerdictKey> order;
  std::vector<VerdictKey> unused;
  const std::map<VerdictKey, Json> of_a = VerdictsOf(a, &order);
  const std::map<VerdictKey, Json> of_b = VerdictsOf(b, &unused);
  Json changed = Json::array();
  int64_t compared = 0;
  int64_t unanswered = 0;
  int64_t decided = 0;
  int64_t agreed = 0;
  int64_t flips = 0;
  for (const VerdictKey& key : order) {
    const auto other = of_b.find(key);
    if (other == of_b.end()) continue;
    ++compared;
    const Json& in_a = of_a.at(key);
    const Json& in_b = other->second;
    unanswered += Answers(in_a) && Answers(in_b) ? 0 : 1;
    // A run that can't tell, or that could not ask, neither agrees nor disagrees.
    if (Decides(in_a) && Decides(in_b)) {
      ++decided;
      agreed += in_a["verdict"] == in_b["verdict"] ? 1 : 0;
    }
    if (in_a["verdict"] == in_b["verdict"]) continue;
    const bool flip = SignOf(in_a) * SignOf(in_b) < 0;
    flips += flip ? 1 : 0;
    changed.push_back({{"toggle", key[0]},
                       {"shape", key[3]},
                       {"base", key[1]},
                       {"candidate", key[2]},
                       {"verdict_a", in_a["verdict"]},
                       {"ratio_a", in_a["ratio"]},
                       {"verdict_b", in_b["verdict"]},
                       {"ratio_b", in_b["ratio"]},
                       {"sign_flip", flip}});
  }
  return {{"compared", compared},
          {"unanswered", unanswered},
          {"decided", decided},
          {"agreed", agreed},
          {"agreed_at_least", decided > 0 ? Rounded(OneSidedLowerBound(agreed, decided)) : Json()},
          {"only_a", static_cast<int64_t>(of_a.size()) - compared},
          {"only_b", static_cast<int64_t>(of_b.size()) - compared},
          {"sign_flips", flips},
          {"changed", std::move(changed)}};
}

}  // namespace

Json Compare(const JudgedRecord& a, const JudgedRecord& b, const SummarizeOptions& options) {
  const MatchOptions match = {.confidence = options.confidence,
                              .bootstrap_resamples = options.bootstrap_resamples,
                              .bootstrap_seed = options.bootstrap_seed};
  const std::vector<MatchedCell> cells = MatchCells(a, b, match);
  const std::vector<analysis::HolmLevel> levels = LevelsAgainst(cells, 0, options.confidence);
  const auto side = [](const RunInfo& run) -> Json {
    return {{"run_id", run.run_id},
            {"gpu", run.gpu.name},
            {"created_utc", run.created_utc},
            {"git_sha", run.git.sha},
            {"kernel_source_sha256", run.kernel_source_sha256}};
  };
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["a"] = side(a.record.run);
  json["b"] = side(b.record.run);
  json["differences"] = Json::array();
  for (const Difference& difference : Differences(a.record.run, b.record.run)) {
    json["differences"].push_back(
        {{"what", difference.what}, {"a", difference.a}, {"b", difference.b}});
  }
  const auto members = std::count_if(cells.begin(), cells.end(),
                                     [](const MatchedCell& cell) { return cell.missing.empty(); });
  json["statistics"] = {{"confidence", options.confidence},
                        {"family_size", members},
                        {"correction", "Holm"},
                        {"neutral_delta", options.neutral_delta},
                        {"interval",
                         "unpaired: the wider of Welch's on the processes' medians and a cluster "
                         "bootstrap of each record"}};
  json["cells"] = Json::array();
  for (size_t i = 0; i < cells.size(); ++i) {
    json["cells"].push_back(CellJson(cells[i], levels[i].alpha, options.neutral_delta));
  }
  json["references"] = Json::array();
  for (const Reference& r : MatchReferences(a, b, match, options.neutral_delta)) {
    json["references"].push_back({{"name", r.name},
                                  {"shape", r.shape},
                                  {"ratio", Rounded(r.ratio)},
                                  {"ci_low", Rounded(r.interval.low)},
                                  {"ci_high", Rounded(r.interval.high)},
                                  {"moved", r.moved}});
  }
  json["verdicts"] = CompareVerdicts(a, b);
  return json;
}

}  // namespace warpledger::ablations
