#include "ablations/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "ablations/analysis/paired.h"
#include "ablations/analysis/random.h"
#include "ablations/analysis/verdict.h"
#include "ablations/rounded.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/common/nvml.h"
#include "reports/text.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using analysis::Interval;
using analysis::Timing;
using analysis::UnpairedLogRatio;
using ArmShape = std::pair<std::string, std::string>;
using report::Table;

std::map<ArmShape, std::vector<Timing>> TimingsOf(const Record& record) {
  std::map<ArmShape, std::vector<Timing>> timings;
  for (const Sample& sample : record.samples) {
    timings[{sample.arm, sample.shape}].push_back(
        {.process = sample.process,
         .block = sample.block,
         .us = sample.us,
         .sm_mhz = sample.sm_mhz.value_or(0),
         .throttled = IsThrottledBesidesPowerCap(sample.throttle.value_or(0)),
         .power_capped = IsPowerCapped(sample.throttle.value_or(0))});
  }
  return timings;
}

template <typename T>
std::optional<T> Figure(const Json& item, const char* field) {
  const auto found = item.find(field);
  if (found == item.end() || !found->is_number()) return std::nullopt;
  return found->get<T>();
}

std::string TextOf(const Json& item, const char* field) {
  const auto found = item.find(field);
  return found != item.end() && found->is_string() ? found->get<std::string>() : "";
}

bool IsCell(const Json& cell) {
  const std::string role = TextOf(cell, "role");
  return role != kRoleAa && role != kRoleNull;
}

// `cell` is one of summary.json's.
CellFacts FactsOf(const Json& cell, const std::vector<Timing>& timings) {
  CellFacts facts;
  facts.arm = TextOf(cell, "variant");
  if (!(cell["correct"].is_boolean() && cell["correct"].get<bool>())) {
    facts.why_broken = TextOf(cell, "reason");
  }
  facts.n_processes = Figure<int>(cell, "n_processes").value_or(0);
  facts.n_samples = static_cast<int64_t>(timings.size());
  facts.n_throttled =
      std::count_if(timings.begin(), timings.end(), [](const Timing& t) { return t.throttled; });
  facts.n_power_capped =
      std::count_if(timings.begin(), timings.end(), [](const Timing& t) { return t.power_capped; });
  facts.p50_us = Figure<double>(cell, "p50_us");
  facts.sm_mhz = Figure<double>(cell, "sm_mhz_p50");
  facts.registers = Figure<int64_t>(cell, "registers");
  facts.smem_bytes = Figure<int64_t>(cell, "smem_bytes");
  facts.spill_bytes = Figure<int64_t>(cell, "spill_bytes");
  facts.stack_bytes = Figure<int64_t>(cell, "stack_bytes");
  facts.code_sha256 = TextOf(cell, "code_sha256");
  return facts;
}

const ShapeInfo* FindShape(const RunInfo& run, const std::string& name) {
  for (const ShapeInfo& shape : run.shapes) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

std::string WhyMissing(const MatchedCell& cell, const RunInfo& a, const RunInfo& b) {
  if (!cell.a) return "only B has this cell";
  if (!cell.b) return "B has no such configuration on this shape";
  if (!(FindShape(a, cell.shape)->problem == FindShape(b, cell.shape)->problem)) {
    return "the two records mean different problems by this shape";
  }
  for (const auto& [side, facts] : {std::pair("A", &*cell.a), std::pair("B", &*cell.b)}) {
    if (facts->n_samples == 0) return absl::StrCat(side, " has no samples of it");
  }
  return "";
}

std::string WhyBroken(const MatchedCell& cell) {
  for (const auto& [side, facts] : {std::pair("A", &cell.a), std::pair("B", &cell.b)}) {
    if (*facts && !(*facts)->why_broken.empty()) {
      return absl::StrCat(side, ": ", (*facts)->why_broken);
    }
  }
  return "";
}

std::string WhyUnusable(const MatchedCell& cell, bool same_gpu_model) {
  for (const auto& [side, facts] : {std::pair("A", &*cell.a), std::pair("B", &*cell.b)}) {
    if (facts->n_processes < analysis::kMinProcesses) {
      return absl::StrCat(side, " has samples of ", facts->n_processes,
                          " process only: how far processes differ is unknown");
    }
    if (2 * facts->n_throttled > facts->n_samples) {
      return absl::StrCat(side, " was throttled in ", facts->n_throttled, " of ", facts->n_samples,
                          " samples");
    }
  }
  // As between the arms of a pair: a power limit that held both sides alike is part
  // of what is compared.
  const auto capped = [](const CellFacts& facts) {
    return static_cast<double>(facts.n_power_capped) / static_cast<double>(facts.n_samples);
  };
  if (same_gpu_model &&
      std::fabs(capped(*cell.a) - capped(*cell.b)) > analysis::kMaxPowerCapDifference) {
    return absl::StrCat("the power limit held one side more than the other: A in ",
                        cell.a->n_power_capped, " of ", cell.a->n_samples, " samples, B in ",
                        cell.b->n_power_capped, " of ", cell.b->n_samples);
  }
  // Between two kinds of GPU the clock is part of what is compared.
  if (same_gpu_model && cell.a->sm_mhz && cell.b->sm_mhz) {
    const double a = *cell.a->sm_mhz;
    const double b = *cell.b->sm_mhz;
    if (std::fabs(a - b) > analysis::kMaxClockDifference * std::min(a, b)) {
      return absl::StrFormat("the clocks differ: A ran at %.0f MHz, B at %.0f MHz", a, b);
    }
  }
  return "";
}

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

Json CompareVerdicts(const JudgedRecord& a, const JudgedRecord& b) {
  std::vector<VerdictKey> order;
  std::vector<VerdictKey> unused;
  const std::map<VerdictKey, Json> of_a = VerdictsOf(a, &order);
  const std::map<VerdictKey, Json> of_b = VerdictsOf(b, &unused);
  Json changed = Json::array();
  int64_t compared = 0;
  int64_t decided = 0;
  int64_t agreed = 0;
  int64_t flips = 0;
  for (const VerdictKey& key : order) {
    const auto other = of_b.find(key);
    if (other == of_b.end()) continue;
    ++compared;
    const Json& in_a = of_a.at(key);
    const Json& in_b = other->second;
    // A run that can't tell neither agrees nor disagrees.
    const auto undecided = [](const Json& verdict) {
      return TextOf(verdict, "verdict") == analysis::VerdictName(analysis::Verdict::kInconclusive);
    };
    if (!undecided(in_a) && !undecided(in_b)) {
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
          {"decided", decided},
          {"agreed", agreed},
          {"only_a", static_cast<int64_t>(of_a.size()) - compared},
          {"only_b", static_cast<int64_t>(of_b.size()) - compared},
          {"sign_flips", flips},
          {"changed", std::move(changed)}};
}

// --- Text ----------------------------------------------------------------------

std::string Fit(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

std::string RatioText(const Json& item) {
  return item["ratio"].is_number() ? absl::StrFormat("%.3f", item["ratio"].get<double>()) : "-";
}

std::string IntervalText(const Json& item) {
  if (!item["ci_low"].is_number() || !item["ci_high"].is_number()) return "-";
  return absl::StrFormat("[%.3f, %.3f]", item["ci_low"].get<double>(),
                         item["ci_high"].get<double>());
}

std::string Us(const Json& value) {
  return value.is_number() ? report::FormatUs(value.get<double>()) : "-";
}

// "registers 116 -> 118", for each resource that differs; "machine code changed"
// where nothing else shows it.
std::vector<std::string> ResourceChanges(const Json& cell) {
  constexpr std::pair<const char*, const char*> kResources[] = {{"registers", "registers"},
                                                                {"smem_bytes", "shared memory, B"},
                                                                {"spill_bytes", "spills, B"},
                                                                {"stack_bytes", "stack, B"}};
  std::vector<std::string> changes;
  for (const auto& [field, label] : kResources) {
    const Json& both = cell[field];
    if (both["a"].is_null() || both["b"].is_null() || both["a"] == both["b"]) continue;
    changes.push_back(
        absl::StrCat(label, " ", both["a"].get<int64_t>(), " -> ", both["b"].get<int64_t>()));
  }
  if (changes.empty() && cell["code"] == "changed") changes.push_back("machine code only");
  return changes;
}

// One line per configuration, in order; resources do not depend on the shape.
std::vector<std::pair<std::string, std::string>> ResourceLines(const Json& comparison) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::set<std::string> seen;
  for (const Json& cell : comparison["cells"]) {
    if (!seen.insert(TextOf(cell, "config")).second) continue;
    const std::vector<std::string> changes = ResourceChanges(cell);
    if (!changes.empty()) {
      lines.emplace_back(TextOf(cell, "variant"), absl::StrJoin(changes, ", "));
    }
  }
  return lines;
}

std::string Counts(const Json& comparison) {
  std::map<std::string, int> counts;
  for (const Json& cell : comparison["cells"]) ++counts[TextOf(cell, "outcome")];
  std::vector<std::string> words;
  for (const auto& [outcome, word] :
       {std::pair("FASTER", "faster"), std::pair("SLOWER", "slower"), std::pair("SAME", "the same"),
        std::pair("CANNOT_TELL", "can't be told"), std::pair("NOT_COMPARED", "not compared")}) {
    if (counts[outcome] > 0) words.push_back(absl::StrCat(counts[outcome], " ", word));
  }
  return words.empty() ? "there is no cell" : report::JoinWords(words);
}

std::string RunName(const Json& side) {
  return absl::StrCat(TextOf(side, "run_id"), " (", TextOf(side, "gpu"), ", ",
                      TextOf(side, "created_utc").substr(0, 10), ")");
}

std::string AgreementSentence(const Json& verdicts) {
  const int64_t decided = verdicts["decided"].get<int64_t>();
  const int64_t agreed = verdicts["agreed"].get<int64_t>();
  if (decided == 0) return "No verdict was decided in both.";
  return absl::StrCat(
      "Of ", decided, " that neither leaves INCONCLUSIVE, ", agreed, " agree (",
      report::FormatPercent(static_cast<double>(agreed) / static_cast<double>(decided)), ").");
}

std::string VerdictSentence(const Json& verdicts) {
  return absl::StrCat(verdicts["changed"].size(), " of ", verdicts["compared"].get<int64_t>(),
                      " verdicts differ; ", verdicts["sign_flips"].get<int64_t>(),
                      " of them by sign. ", AgreementSentence(verdicts));
}

std::string VerdictText(const Json& change, const char* verdict, const char* ratio) {
  const Json& value = change[ratio];
  return absl::StrCat(
      TextOf(change, verdict), " ",
      report::FormatRatio(value.is_number() ? std::optional(value.get<double>()) : std::nullopt));
}

}  // namespace

absl::StatusOr<JudgedRecord> LoadJudged(const std::string& dir, const SummarizeOptions& options) {
  absl::StatusOr<Record> record = LoadRecord(dir);
  if (!record.ok()) return record.status();
  absl::StatusOr<Json> summary = Summarize(*record, options);
  if (!summary.ok()) {
    return absl::Status(summary.status().code(),
                        absl::StrCat(dir, ": ", std::string(summary.status().message())));
  }
  return JudgedRecord{*std::move(record), *std::move(summary)};
}

std::vector<MatchedCell> MatchCells(const JudgedRecord& a, const JudgedRecord& b,
                                    const MatchOptions& options) {
  const std::map<ArmShape, std::vector<Timing>> timings_a = TimingsOf(a.record);
  const std::map<ArmShape, std::vector<Timing>> timings_b = TimingsOf(b.record);
  const auto timings_of = [](const std::map<ArmShape, std::vector<Timing>>& timings,
                             const Json& cell) {
    const auto found = timings.find({TextOf(cell, "variant"), TextOf(cell, "shape")});
    return found == timings.end() ? std::vector<Timing>{} : found->second;
  };
  std::vector<MatchedCell> cells;
  std::set<const Json*> used;
  for (const Json& cell : a.summary["cells"]) {
    if (!IsCell(cell)) continue;
    const Json* match = nullptr;
    for (const Json& other : b.summary["cells"]) {
      if (!IsCell(other) || other["config"] != cell["config"] || other["shape"] != cell["shape"]) {
        continue;
      }
      if (match == nullptr || other["variant"] == cell["variant"]) match = &other;
    }
    MatchedCell matched;
    matched.variant = TextOf(cell, "variant");
    matched.config = TextOf(cell, "config");
    matched.shape = TextOf(cell, "shape");
    matched.a = FactsOf(cell, timings_of(timings_a, cell));
    if (match != nullptr) {
      used.insert(match);
      matched.b = FactsOf(*match, timings_of(timings_b, *match));
    }
    cells.push_back(std::move(matched));
  }
  const size_t family = cells.size();
  for (const Json& cell : b.summary["cells"]) {
    if (!IsCell(cell) || used.contains(&cell)) continue;
    MatchedCell matched;
    matched.variant = TextOf(cell, "variant");
    matched.config = TextOf(cell, "config");
    matched.shape = TextOf(cell, "shape");
    matched.b = FactsOf(cell, timings_of(timings_b, cell));
    cells.push_back(std::move(matched));
  }

  // Enough resamples that the smallest p-value can pass Holm's first level.
  const int resamples =
      std::max(options.bootstrap_resamples,
               static_cast<int>(4 * static_cast<double>(family) / (1 - options.confidence)));
  const bool same_model = a.record.run.gpu.name == b.record.run.gpu.name;
  for (MatchedCell& cell : cells) {
    cell.missing = WhyMissing(cell, a.record.run, b.record.run);
    cell.broken = WhyBroken(cell);
    if (!cell.missing.empty()) continue;
    cell.unusable = WhyUnusable(cell, same_model);
    cell.log_ratio.emplace(
        analysis::LogTimesByProcess(timings_a.at({cell.a->arm, cell.shape})),
        analysis::LogTimesByProcess(timings_b.at({cell.b->arm, cell.shape})),
        analysis::BootstrapOptions{
            .resamples = resamples,
            .seed = analysis::StreamSeed(options.bootstrap_seed,
                                         absl::StrCat("compare:", cell.config, ":", cell.shape))});
  }
  return cells;
}

std::vector<analysis::HolmLevel> LevelsAgainst(const std::vector<MatchedCell>& cells, double null,
                                               double confidence) {
  std::vector<double> p_values;
  for (const MatchedCell& cell : cells) {
    if (!cell.missing.empty()) continue;
    const bool usable = cell.broken.empty() && cell.unusable.empty();
    p_values.push_back(usable ? cell.log_ratio->PValue(null) : 1);
  }
  const std::vector<analysis::HolmLevel> of_members = analysis::Holm(p_values, 1 - confidence);
  std::vector<analysis::HolmLevel> levels;
  size_t member = 0;
  for (const MatchedCell& cell : cells) {
    levels.push_back(cell.missing.empty() ? of_members[member++] : analysis::HolmLevel{});
  }
  return levels;
}

std::vector<Reference> MatchReferences(const JudgedRecord& a, const JudgedRecord& b,
                                       const MatchOptions& options, double neutral_delta) {
  const std::map<ArmShape, std::vector<Timing>> timings_a = TimingsOf(a.record);
  const std::map<ArmShape, std::vector<Timing>> timings_b = TimingsOf(b.record);
  // A peer of another version is another kernel.
  std::set<std::string> names;
  for (const Json& floor : a.summary["floors"]) names.insert(TextOf(floor, "name"));
  for (const Json& peer : a.summary["peers"]) {
    for (const Json& other : b.summary["peers"]) {
      if (peer["name"] == other["name"] && peer["version"] == other["version"]) {
        names.insert(TextOf(peer, "name"));
      }
    }
  }
  std::vector<Reference> references;
  for (const auto& [key, timings] : timings_a) {
    const auto& [arm, shape] = key;
    const auto other = timings_b.find(key);
    const ShapeInfo* shape_a = FindShape(a.record.run, shape);
    const ShapeInfo* shape_b = FindShape(b.record.run, shape);
    if (!names.contains(arm) || other == timings_b.end() || shape_b == nullptr ||
        !(shape_a->problem == shape_b->problem)) {
      continue;
    }
    const UnpairedLogRatio log_ratio(
        analysis::LogTimesByProcess(timings), analysis::LogTimesByProcess(other->second),
        {.resamples = options.bootstrap_resamples,
         .seed = analysis::StreamSeed(options.bootstrap_seed,
                                      absl::StrCat("reference:", arm, ":", shape))});
    if (log_ratio.n_clusters() < analysis::kMinProcesses) continue;
    const Interval interval = log_ratio.Envelope(options.confidence);
    const double delta = std::log1p(neutral_delta);
    references.push_back({.name = arm,
                          .shape = shape,
                          .ratio = std::exp(log_ratio.estimate()),
                          .interval = {std::exp(interval.low), std::exp(interval.high)},
                          .moved = interval.low > delta || interval.high < -delta});
  }
  return references;
}

std::vector<Difference> Differences(const RunInfo& a, const RunInfo& b) {
  const Json before = ToJson(a);
  const Json after = ToJson(b);
  std::vector<Difference> differences;
  const auto add = [&](const std::string& what, const Json& in_a, const Json& in_b) {
    if (in_a == in_b) return;
    const auto text = [](const Json& value) {
      return value.is_string() ? value.get<std::string>() : DumpLine(value);
    };
    differences.push_back({what, text(in_a), text(in_b)});
  };
  for (const char* field : {"design", "cache", "registry_sha256", "kernel_source_sha256"}) {
    add(field, before[field], after[field]);
  }
  for (const char* object : {"git", "toolchain", "gpu"}) {
    for (const auto& [field, value] : before[object].items()) {
      if (field == "slug" || field == "memory_bytes") continue;  // as the name says, nearly
      add(absl::StrCat(object, ".", field), value, after[object][field]);
    }
  }
  return differences;
}

bool SameGpu(const RunInfo& a, const RunInfo& b) {
  return a.gpu.name == b.gpu.name && a.gpu.uuid == b.gpu.uuid;
}

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

std::string ComparisonText(const Json& comparison) {
  std::string text =
      absl::StrCat("A: ", RunName(comparison["a"]), "\nB: ", RunName(comparison["b"]),
                   "\nRatios are time(A) / time(B): above 1 B is faster.\n\n");
  const auto row = [&text](const std::string& variant, const std::string& shape,
                           const std::string& a, const std::string& b, const std::string& ratio,
                           const std::string& interval, const std::string& outcome) {
    absl::StrAppend(&text, absl::StrFormat("%-26s %-16s %9s %9s %8s %-18s %s\n", Fit(variant, 26),
                                           Fit(shape, 16), a, b, ratio, interval, outcome));
  };
  row("variant", "shape", "A, us", "B, us", "ratio", "interval", "outcome");
  for (const Json& cell : comparison["cells"]) {
    row(TextOf(cell, "variant"), TextOf(cell, "shape"), Us(cell["p50_us_a"]), Us(cell["p50_us_b"]),
        RatioText(cell), IntervalText(cell), TextOf(cell, "outcome"));
    if (TextOf(cell, "outcome") == "NOT_COMPARED" || TextOf(cell, "outcome") == "CANNOT_TELL") {
      absl::StrAppend(&text, "    ", TextOf(cell, "reason"), "\n");
    }
  }
  absl::StrAppend(&text, "\n", comparison["cells"].size(), " cells: ", Counts(comparison), ".\n");
  for (const auto& [variant, changes] : ResourceLines(comparison)) {
    absl::StrAppend(&text, "  ", variant, ": ", changes, "\n");
  }
  const Json& verdicts = comparison["verdicts"];
  absl::StrAppend(&text, "\n", VerdictSentence(verdicts), "\n");
  for (const Json& change : verdicts["changed"]) {
    absl::StrAppend(&text, "  ", change["sign_flip"].get<bool>() ? "SIGN FLIP " : "",
                    TextOf(change, "toggle"), " on ", TextOf(change, "shape"), ": ",
                    VerdictText(change, "verdict_a", "ratio_a"), " -> ",
                    VerdictText(change, "verdict_b", "ratio_b"), "\n");
  }
  for (const Json& reference : comparison["references"]) {
    if (!reference["moved"].get<bool>()) continue;
    absl::StrAppend(&text, "\n", TextOf(reference, "name"), " on ", TextOf(reference, "shape"),
                    ", which no kernel of ours can change, has ratio ", RatioText(reference), " ",
                    IntervalText(reference), ": the runs differ in more than their kernels.");
  }
  absl::StrAppend(&text, "\nWhat differs between the runs:",
                  comparison["differences"].empty() ? " nothing on record" : "", "\n");
  for (const Json& difference : comparison["differences"]) {
    absl::StrAppend(&text, "  ", TextOf(difference, "what"), ": ", TextOf(difference, "a"), " -> ",
                    TextOf(difference, "b"), "\n");
  }
  return text;
}

std::string ComparisonMarkdown(const Json& comparison) {
  using Align = Table::Align;
  const auto code = [](const std::string& text) {
    return absl::StrCat("`", report::EscapeCell(text), "`");
  };
  const auto ratio = [](const Json& item) {
    return item["ratio"].is_number() ? report::FormatRatio(item["ratio"].get<double>())
                                     : std::string(report::kNone);
  };
  const auto interval = [](const Json& item) {
    return item["ci_low"].is_number() ? report::FormatRatioInterval(item["ci_low"].get<double>(),
                                                                    item["ci_high"].get<double>())
                                      : std::string(report::kNone);
  };
  std::string text = absl::StrCat(
      "# Two records compared\n\nA is ", code(RunName(comparison["a"])), ", B is ",
      code(RunName(comparison["b"])), ". A ratio is time(A) / time(B): above 1 B is faster. Of ",
      comparison["cells"].size(), " cells, ", Counts(comparison), ". ",
      VerdictSentence(comparison["verdicts"]),
      "\n\nThe samples of two records have no partners, so the intervals rest on how much whole "
      "processes differ, and are wider than those inside one record. They are at ",
      report::FormatPercent(comparison["statistics"]["confidence"].get<double>()),
      " before Holm's correction over ", comparison["statistics"]["family_size"].get<int64_t>(),
      " cells.\n\n## Times\n\n");
  Table times({{"variant"},
               {"shape"},
               {"A, µs", Align::kRight},
               {"B, µs", Align::kRight},
               {"ratio", Align::kRight},
               {"interval"},
               {"outcome"}});
  for (const Json& cell : comparison["cells"]) {
    std::string outcome = TextOf(cell, "outcome");
    if (outcome == "NOT_COMPARED" || outcome == "CANNOT_TELL") {
      absl::StrAppend(&outcome, " (", report::EscapeCell(TextOf(cell, "reason")), ")");
    }
    times.AddRow({code(TextOf(cell, "variant")), code(TextOf(cell, "shape")), Us(cell["p50_us_a"]),
                  Us(cell["p50_us_b"]), ratio(cell), interval(cell), outcome});
  }
  absl::StrAppend(&text, times.ToMarkdown(), "\n## Resources and machine code\n\n");
  Table resources({{"variant"}, {"change"}});
  for (const auto& [variant, changes] : ResourceLines(comparison)) {
    resources.AddRow({code(variant), changes});
  }
  absl::StrAppend(&text, resources.empty() ? "No difference on record.\n" : resources.ToMarkdown(),
                  "\n## Verdicts that differ\n\n");
  Table verdicts({{"toggle"}, {"shape"}, {"in A"}, {"in B"}, {"sign"}});
  for (const Json& change : comparison["verdicts"]["changed"]) {
    verdicts.AddRow({code(TextOf(change, "toggle")), code(TextOf(change, "shape")),
                     VerdictText(change, "verdict_a", "ratio_a"),
                     VerdictText(change, "verdict_b", "ratio_b"),
                     change["sign_flip"].get<bool>() ? "**flips**" : "keeps"});
  }
  absl::StrAppend(
      &text, verdicts.empty() ? "None.\n" : verdicts.ToMarkdown(),
      "\n## References\n\nNo kernel of ours can change these. Where one moved, the runs "
      "differ in more than their kernels.\n\n");
  Table references({{"reference"},
                    {"shape"},
                    {"ratio", Align::kRight},
                    {"interval"},
                    {absl::StrCat("moved by over ",
                                  report::FormatPercent(
                                      comparison["statistics"]["neutral_delta"].get<double>()))}});
  for (const Json& reference : comparison["references"]) {
    references.AddRow({code(TextOf(reference, "name")), code(TextOf(reference, "shape")),
                       ratio(reference), interval(reference),
                       reference["moved"].get<bool>() ? "**yes**" : "not shown"});
  }
  absl::StrAppend(&text, references.empty() ? "The records share none.\n" : references.ToMarkdown(),
                  "\n## What differs between the runs\n\n");
  Table differences({{"what"}, {"A"}, {"B"}});
  for (const Json& difference : comparison["differences"]) {
    differences.AddRow({report::EscapeCell(TextOf(difference, "what")),
                        code(TextOf(difference, "a")), code(TextOf(difference, "b"))});
  }
  absl::StrAppend(&text, differences.empty() ? "Nothing on record.\n" : differences.ToMarkdown());
  return text;
}

}  // namespace warpledger::ablations
