// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablations/base/rounded.h"
#include "ablations/judge/summarize_parts.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using analysis::ClusterMedian;
using analysis::Interval;
using analysis::Pair;
using analysis::Timing;

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string Label(const RecordIndex& index, const Arm& arm) {
  if (arm.role == kRoleAa) return "Same kernel again (A/A control)";
  if (const Claim* claim = index.ClaimOf(arm)) {
    return absl::StrCat(arm.role == kRoleWithout ? "Without: " : "", std::string(claim->label));
  }
  const std::string label = index.subject().LabelOf(arm.config);
  return label.empty() ? arm.name : label;
}

Json SpeedupOverFirst(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape) {
  if (index.first() == nullptr) return nullptr;
  // Nothing that fails is ranked, nor anything against it.
  if (!index.Checks(arm.name, shape.name).correct().value_or(false)) return nullptr;
  if (!index.Checks(index.first()->name, shape.name).correct().value_or(false)) return nullptr;
  if (&arm == index.first()) {
    if (index.Timings(arm.name, shape.name).empty()) return nullptr;
    return {{"ratio", 1.0}, {"ci_low", 1.0}, {"ci_high", 1.0}};
  }
  const std::vector<Pair> pairs = index.Pairs(index.first()->name, arm.name, shape.name);
  if (pairs.empty()) return nullptr;
  const ClusterMedian log_ratio(analysis::LogRatiosByProcess(pairs),
                                index.Bootstrap("over_first", arm.name, shape.name));
  const Interval interval = log_ratio.Envelope(index.Confidence(shape.name));
  return {{"ratio", Rounded(std::exp(log_ratio.estimate()))},
          {"ci_low", Rounded(std::exp(interval.low))},
          {"ci_high", Rounded(std::exp(interval.high))}};
}

}  // namespace

Json CellOf(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape) {
  const CheckFacts checks = index.Checks(arm.name, shape.name);
  Json cell;
  cell["variant"] = arm.name;
  cell["config"] = arm.config;
  index.subject().DescribeVariant(arm.config, &cell);
  cell["role"] = arm.role;
  cell["toggle"] = arm.toggle;
  cell["label"] = Label(index, arm);
  cell["shape"] = shape.name;
  cell["correct"] = checks.correct() ? Json(*checks.correct()) : Json(nullptr);
  cell["max_err"] = checks.worst ? Rounded(checks.worst->max_err) : Json(nullptr);
  cell["max_err_rule"] = checks.worst ? Rounded(checks.worst->max_err_limit) : Json(nullptr);
  cell["n_checks"] = checks.count;
  index.AddTimes(arm.name, shape.name, /*with_processes=*/true, &cell);
  const double us = cell["p50_us"].is_null() ? 0 : cell["p50_us"].get<double>();
  cell["tflops"] = us > 0 ? Rounded(shape.flops() / us * 1e-6) : Json(nullptr);
  cell["speedup_over_first"] = SpeedupOverFirst(index, arm, shape);
  cell.update(ResourcesOf(index, arm, shape));
  cell["code_sha256"] = TextOrNull(index.CodeHash(arm, shape));
  std::vector<double> sm_mhz;
  for (const Timing& timing : index.Timings(arm.name, shape.name)) {
    if (timing.sm_mhz > 0) sm_mhz.push_back(timing.sm_mhz);
  }
  cell["sm_mhz_p50"] = MedianOrNull(std::move(sm_mhz));
  cell["reason"] = checks.WhyBroken();
  return cell;
}

void AddFloor(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape, Json* floors) {
  if (index.Timings(arm.name, shape.name).empty()) return;
  Json floor;
  floor["name"] = arm.name;
  floor["shape"] = shape.name;
  index.AddTimes(arm.name, shape.name, /*with_processes=*/false, &floor);
  floors->push_back(std::move(floor));
}

}  // namespace warpledger::ablations
