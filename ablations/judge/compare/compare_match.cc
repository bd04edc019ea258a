// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "ablations/base/json_fields.h"
#include "ablations/judge/compare/compare.h"
#include "ablations/judge/record_index.h"
#include "ablations/stats/log_ratios.h"
#include "ablations/stats/random.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using analysis::Interval;
using analysis::Timing;
using analysis::UnpairedLogRatio;

// However small a share of alpha is left: what asks for more can't be told.
constexpr double kMostResamples = 1e6;

// What a stopping rule left of a record on a shape; without one all of it.
struct Look {
  int processes = std::numeric_limits<int>::max();  // whose samples count: nobody planned to
                                                    // look behind them
  double alpha_share = 1;
};
using Looks = std::map<std::string, Look>;  // by shape

Looks LooksOf(const JudgedRecord& judged) {
  Looks looks;
  for (const ShapeInfo& shape : judged.record.run.shapes) looks[shape.name] = {};
  for (const summary::Look& look : judged.summary.statistics.looks) {
    looks[look.shape] = {.processes = static_cast<int>(look.processes),
                         .alpha_share = look.alpha_share};
  }
  return looks;
}

// An arm's or a peer's on a shape.
struct Times {
  std::vector<Timing> timings;
  std::string why_starved;  // empty: enough visits are left
};

std::map<ArmShape, Times> TimesOf(const Record& record, const Looks& looks) {
  std::map<ArmShape, Times> times;
  for (const auto& [key, samples] : SamplesByArm(record)) {
    const auto& [arm, shape] = key;
    Times& of_arm = times[key];
    of_arm.why_starved = samples.WhyStarved(arm);
    for (const Sample* sample : samples.counted) {
      if (sample->process < looks.at(shape).processes) of_arm.timings.push_back(TimingOf(*sample));
    }
  }
  return times;
}

Times Find(const std::map<ArmShape, Times>& times, const summary::Cell& cell) {
  const auto found = times.find({cell.variant, cell.shape});
  return found == times.end() ? Times() : found->second;
}

bool IsCell(const summary::Cell& cell) { return cell.role != kRoleAa && cell.role != kRoleNull; }

CellFacts FactsOf(const summary::Cell& cell, const Times& times) {
  const std::vector<Timing>& timings = times.timings;
  CellFacts facts;
  facts.arm = cell.variant;
  facts.why_starved = times.why_starved;
  if (cell.correct != true) facts.why_broken = cell.reason;
  facts.n_processes = static_cast<int>(cell.n_processes.value_or(0));
  facts.n_samples = static_cast<int64_t>(timings.size());
  facts.n_throttled =
      std::count_if(timings.begin(), timings.end(), [](const Timing& t) { return t.throttled; });
  facts.n_power_capped =
      std::count_if(timings.begin(), timings.end(), [](const Timing& t) { return t.power_capped; });
  facts.p50_us = cell.p50_us.value;
  facts.sm_mhz = cell.sm_mhz_p50;
  facts.registers = cell.registers;
  facts.smem_bytes = cell.smem_bytes;
  facts.spill_bytes = cell.spill_bytes;
  facts.stack_bytes = cell.stack_bytes;
  facts.code_sha256 = cell.code_sha256.value_or("");
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
  if (!(FindShape(a, cell.shape)->fields == FindShape(b, cell.shape)->fields)) {
    return "the two records mean different problems by this shape";
  }
  for (const auto& [side, facts, run] :
       {std::tuple("A", &*cell.a, &a), std::tuple("B", &*cell.b, &b)}) {
    if (facts->n_samples > 0 || !facts->why_starved.empty()) continue;
    return absl::StrCat(side, " has no samples of it",
                        run->stopping ? ", or none up to a look that its run had planned" : "");
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

std::string WhyUnusable(const MatchedCell& cell, bool same_gpu_model, bool same_protocol) {
  for (const auto& [side, facts] : {std::pair("A", &*cell.a), std::pair("B", &*cell.b)}) {
    if (!facts->why_starved.empty()) return absl::StrCat(side, ": ", facts->why_starved);
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
  // Between two kinds of GPU the clock is part of what is compared; by two protocols it is
  // not read alike.
  if (same_gpu_model && same_protocol && cell.a->sm_mhz && cell.b->sm_mhz) {
    const double a = *cell.a->sm_mhz;
    const double b = *cell.b->sm_mhz;
    if (std::fabs(a - b) > analysis::kMaxClockDifference * std::min(a, b)) {
      return absl::StrFormat("the clocks differ: A ran at %.0f MHz, B at %.0f MHz", a, b);
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<JudgedRecord> LoadJudged(const std::string& dir, const FindSubjectOf& subject_of,
                                        const SummarizeOptions& options) {
  ASSIGN_OR_RETURN(Record record, LoadRecord(dir));
  ASSIGN_OR_RETURN(const Subject* subject, subject_of(record.run));
  absl::StatusOr<summary::Summary> summary = Summarize(record, *subject, options);
  if (!summary.ok()) {
    return absl::Status(summary.status().code(),
                        absl::StrCat(dir, ": ", std::string(summary.status().message())));
  }
  return JudgedRecord{std::move(record), *std::move(summary)};
}

std::vector<MatchedCell> MatchCells(const JudgedRecord& a, const JudgedRecord& b,
                                    const MatchOptions& options) {
  const Looks looks_a = LooksOf(a);
  const Looks looks_b = LooksOf(b);
  const std::map<ArmShape, Times> times_a = TimesOf(a.record, looks_a);
  const std::map<ArmShape, Times> times_b = TimesOf(b.record, looks_b);
  std::vector<MatchedCell> cells;
  std::set<const summary::Cell*> used;
  for (const summary::Cell& cell : a.summary.cells) {
    if (!IsCell(cell)) continue;
    const summary::Cell* match = nullptr;
    for (const summary::Cell& other : b.summary.cells) {
      if (!IsCell(other) || other.config != cell.config || other.shape != cell.shape) {
        continue;
      }
      if (match == nullptr || other.variant == cell.variant) match = &other;
    }
    MatchedCell matched;
    matched.variant = cell.variant;
    matched.config = cell.config;
    matched.shape = cell.shape;
    matched.a = FactsOf(cell, Find(times_a, cell));
    if (match != nullptr) {
      used.insert(match);
      matched.b = FactsOf(*match, Find(times_b, *match));
    }
    cells.push_back(std::move(matched));
  }
  const size_t family = cells.size();
  for (const summary::Cell& cell : b.summary.cells) {
    if (!IsCell(cell) || used.contains(&cell)) continue;
    MatchedCell matched;
    matched.variant = cell.variant;
    matched.config = cell.config;
    matched.shape = cell.shape;
    matched.b = FactsOf(cell, Find(times_b, cell));
    cells.push_back(std::move(matched));
  }

  // Enough resamples that the smallest p-value can pass Holm's first level.
  const int resamples =
      std::max(options.bootstrap_resamples,
               static_cast<int>(4 * static_cast<double>(family) / (1 - options.confidence)));
  const bool same_model = a.record.run.gpu.name == b.record.run.gpu.name;
  const bool same_protocol = a.record.run.protocol_sha256 == b.record.run.protocol_sha256;
  for (MatchedCell& cell : cells) {
    cell.missing = WhyMissing(cell, a.record.run, b.record.run);
    cell.broken = WhyBroken(cell);
    if (!cell.missing.empty()) continue;
    cell.unusable = WhyUnusable(cell, same_model, same_protocol);
    cell.alpha_share = looks_a.at(cell.shape).alpha_share * looks_b.at(cell.shape).alpha_share;
    if (cell.a->n_samples == 0 || cell.b->n_samples == 0) continue;  // all visits waited
    cell.log_ratio.emplace(
        analysis::LogTimesByProcess(times_a.at({cell.a->arm, cell.shape}).timings),
        analysis::LogTimesByProcess(times_b.at({cell.b->arm, cell.shape}).timings),
        analysis::BootstrapOptions{
            .resamples =
                static_cast<int>(std::min(kMostResamples, std::ceil(resamples / cell.alpha_share))),
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
    p_values.push_back(usable ? std::min(1.0, cell.log_ratio->PValue(null) / cell.alpha_share) : 1);
  }
  const std::vector<analysis::HolmLevel> of_members = analysis::Holm(p_values, 1 - confidence);
  std::vector<analysis::HolmLevel> levels;
  size_t member = 0;
  for (const MatchedCell& cell : cells) {
    levels.push_back(cell.missing.empty() ? of_members[member++] : analysis::HolmLevel{});
    levels.back().alpha *= cell.alpha_share;
  }
  return levels;
}

std::vector<Reference> MatchReferences(const JudgedRecord& a, const JudgedRecord& b,
                                       const MatchOptions& options, double neutral_delta) {
  const Looks looks_a = LooksOf(a);
  const Looks looks_b = LooksOf(b);
  const std::map<ArmShape, Times> times_a = TimesOf(a.record, looks_a);
  const std::map<ArmShape, Times> times_b = TimesOf(b.record, looks_b);
  // A peer of another version is another kernel.
  std::set<std::string> names;
  for (const summary::Floor& floor : a.summary.floors) names.insert(floor.name);
  for (const summary::Peer& peer : a.summary.peers) {
    for (const summary::Peer& other : b.summary.peers) {
      if (peer.name == other.name && peer.version == other.version) names.insert(peer.name);
    }
  }
  std::vector<Reference> references;
  for (const auto& [key, times] : times_a) {
    const auto& [arm, shape] = key;
    const auto other = times_b.find(key);
    const ShapeInfo* shape_a = FindShape(a.record.run, shape);
    const ShapeInfo* shape_b = FindShape(b.record.run, shape);
    if (!names.contains(arm) || other == times_b.end() || shape_b == nullptr ||
        !(shape_a->fields == shape_b->fields)) {
      continue;
    }
    if (!times.why_starved.empty() || !other->second.why_starved.empty()) continue;
    const UnpairedLogRatio log_ratio(
        analysis::LogTimesByProcess(times.timings),
        analysis::LogTimesByProcess(other->second.timings),
        {.resamples = options.bootstrap_resamples,
         .seed = analysis::StreamSeed(options.bootstrap_seed,
                                      absl::StrCat("reference:", arm, ":", shape))});
    if (log_ratio.n_clusters() < analysis::kMinProcesses) continue;
    const double share = looks_a.at(shape).alpha_share * looks_b.at(shape).alpha_share;
    const Interval interval = log_ratio.Envelope(1 - (1 - options.confidence) * share);
    const double delta = std::log1p(neutral_delta);
    references.push_back({.name = arm,
                          .shape = shape,
                          .ratio = std::exp(log_ratio.estimate()),
                          .interval = {std::exp(interval.low), std::exp(interval.high)},
                          .moved = interval.low > delta || interval.high < -delta});
  }
  return references;
}

namespace {

std::string DifferenceText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_structured() ? absl::StrCat(value.size(), " of them") : DumpLine(value);
}

// Down to the values that differ; of lists of different lengths, their lengths.
void AddDifferences(const std::string& path, const Json& a, const Json& b,
                    std::vector<summary::Difference>* differences) {
  if (a == b) return;
  if (a.is_object() && b.is_object()) {
    Json all = a;
    all.update(b);
    for (const auto& [name, unused] : all.items()) {
      AddDifferences(absl::StrCat(path, ".", name), a.value(name, Json()), b.value(name, Json()),
                     differences);
    }
  } else if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (size_t i = 0; i < a.size(); ++i) {
      AddDifferences(absl::StrCat(path, "[", i, "]"), a[i], b[i], differences);
    }
  } else {
    differences->push_back({path, DifferenceText(a), DifferenceText(b)});
  }
}

// What was measured, without where it lay and on what, which the run itself says.
Json ComparedDefinition(Json definition) {
  if (!definition.is_object()) return definition;
  for (const char* place : {"folder", "worker", "gpu"}) definition.erase(place);
  if (const auto libraries = definition.find("libraries"); libraries != definition.end()) {
    for (auto& library : *libraries) {
      if (library.is_array() && library.size() == 2) library = {{"sha256", library[1]}};
    }
  }
  return definition;
}

}  // namespace

std::vector<summary::Difference> Differences(const RunInfo& a, const RunInfo& b) {
  const Json before = ToJson(a);
  const Json after = ToJson(b);
  std::vector<summary::Difference> differences;
  const auto add = [&](const std::string& what, const Json& in_a, const Json& in_b) {
    if (in_a == in_b) return;
    const auto text = [](const Json& value) {
      return value.is_string() ? value.get<std::string>() : DumpLine(value);
    };
    differences.push_back({what, text(in_a), text(in_b)});
  };
  for (const char* field :
       {"design", "cache", "alone", "registry_sha256", "kernel_source_sha256"}) {
    add(field, before.value(field, Json()), after.value(field, Json()));
  }
  for (const char* object : {"git", "toolchain", "gpu"}) {
    for (const auto& [field, value] : before[object].items()) {
      if (field == "slug" || field == "memory_bytes") continue;  // as the name says, nearly
      add(absl::StrCat(object, ".", field), value, after[object][field]);
    }
  }
  for (const char* field : {"subject", "seed", "processes", "blocks_per_process", "replay_us",
                            "max_launches", "stopping", "planted", "protocol_sha256"}) {
    AddDifferences(field, before.value(field, Json()), after.value(field, Json()), &differences);
  }
  AddDifferences("definition", ComparedDefinition(a.definition.json),
                 ComparedDefinition(b.definition.json), &differences);
  return differences;
}

bool SameGpu(const RunInfo& a, const RunInfo& b) {
  return a.gpu.name == b.gpu.name && a.gpu.uuid == b.gpu.uuid;
}

}  // namespace warpledger::ablations
