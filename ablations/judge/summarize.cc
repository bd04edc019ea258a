// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/summarize.h"

#include <string>
#include <utility>
#include <vector>

#include "ablations/judge/attribute.h"
#include "ablations/judge/fractional_effects.h"
#include "ablations/judge/record_index.h"
#include "ablations/judge/summarize_parts.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

void AddFraction(const RecordIndex& index, Json* summary) {
  const Fraction fraction = FindFraction(index.subject(), index.run().arms);
  (*summary)["effects"] = Json::array();
  for (const ShapeInfo& shape : index.run().shapes) {
    std::vector<CellData> cells;
    for (const std::string& arm : fraction.arms) {
      cells.push_back({.timings = index.Timings(arm, shape.name),
                       .why_unusable = index.WhyUnusable(index.ArmNamed(arm), shape)});
    }
    AddMainEffects(fraction, shape.name, cells,
                   {.confidence = index.Confidence(shape.name),
                    .bootstrap = index.Bootstrap("effects", index.run().design, shape.name)},
                   summary);
  }
}

// The arms that the design would have if a rule did not forbid them.
void AddNotApplicable(const RecordIndex& index, Json* summary) {
  const std::optional<std::vector<InfeasibleCell>> ruled_out =
      index.subject().Infeasible(index.run().design);
  if (!ruled_out || ruled_out->empty()) return;
  Json cells = Json::array();
  for (const InfeasibleCell& cell : *ruled_out) {
    cells.push_back({{"variant", cell.name},
                     {"toggle", cell.toggle},
                     {"missing", cell.missing},
                     {"why", cell.why},
                     {"verdict", VerdictName(analysis::Verdict::kNotApplicable)}});
  }
  (*summary)["infeasible"] = std::move(cells);
}

absl::Status AddFactorial(const RecordIndex& index, Json* summary) {
  const absl::StatusOr<Factorial> factorial = FindFactorial(index.subject(), index.run());
  if (!factorial.ok()) return factorial.status();
  (*summary)["attribution"] = Json::array();
  (*summary)["interactions"] = Json::array();
  for (const ShapeInfo& shape : index.run().shapes) {
    std::vector<CellData> cells;
    for (const Arm* arm : factorial->arms) {
      cells.push_back({.timings = index.Timings(arm->name, shape.name),
                       .why_unusable = index.WhyUnusable(*arm, shape)});
    }
    AddAttribution(*factorial, index.run().design, shape.name, cells,
                   {.confidence = index.Confidence(shape.name),
                    .bootstrap = index.Bootstrap("attribution", index.run().design, shape.name)},
                   summary);
  }
  (*summary)["infeasible"] = InfeasibleCells(index.subject(), *factorial, index.run().design);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Json> Summarize(const Record& record, const Subject& subject,
                               const SummarizeOptions& options) {
  if (!(options.confidence > 0.5 && options.confidence < 1) || options.bootstrap_resamples < 100 ||
      !(options.neutral_delta > 0) || !(options.error_ratio > 1)) {
    return absl::InvalidArgumentError(
        "summarize: confidence must lie in (0.5, 1), there must be at least 100 resamples, "
        "neutral_delta must be above 0, and error_ratio above 1");
  }
  if (record.samples.empty()) {
    return absl::DataLossError(
        absl::StrCat(kSamplesFile,
                     ": holds no sample, so there is nothing to judge. `warpledger run` on the "
                     "record's folder measures what is missing."));
  }
  const absl::StatusOr<RecordIndex> indexed = RecordIndex::Of(record, subject, options);
  if (!indexed.ok()) return indexed.status();
  const RecordIndex& index = *indexed;
  const RunInfo& run = record.run;
  Json cells = Json::array();
  Json floors = Json::array();
  Json controls = Json::array();
  for (const Arm& arm : run.arms) {
    for (const ShapeInfo& shape : run.shapes) {
      if (arm.role == kRoleFloor) AddFloor(index, arm, shape, &floors);
      if (IsMeasuredHere(arm)) cells.push_back(CellOf(index, arm, shape));
      if (IsControl(arm)) AddControl(index, arm, shape, &controls);
    }
  }
  int false_verdicts = 0;
  int intervals_holding_one = 0;
  for (const Json& control : controls) {
    if (control["false_verdict"].get<bool>()) ++false_verdicts;
    if (control["holds_one"].get<bool>()) ++intervals_holding_one;
  }
  int family_size = 0;
  Json verdicts = VerdictsOf(index, &family_size);

  Json summary;
  summary["schema_version"] = kSchemaVersion;
  summary["run_id"] = run.run_id;
  summary["gpu"] = run.gpu.slug;
  summary["design"] = run.design;
  summary["family"] = run.family;
  summary["provenance"] = ProvenanceOf(index);
  summary["statistics"] = {
      {"confidence", options.confidence},
      {"bootstrap_resamples", options.bootstrap_resamples},
      {"bootstrap_seed", options.bootstrap_seed},
      {"neutral_delta", options.neutral_delta},
      {"error_ratio", options.error_ratio},
      {"family_size", family_size},
      {"correction", "Holm"},
      {"interval",
       "the wider of a cluster bootstrap over whole processes and Student's t on the processes' "
       "medians"}};
  if (run.stopping) summary["statistics"]["looks"] = LooksOf(index);
  summary["shapes"] = Json::array();
  for (const ShapeInfo& shape : run.shapes) summary["shapes"].push_back(ToJson(shape));
  summary["cells"] = std::move(cells);
  summary["peers"] = PeersOf(index);
  summary["floors"] = std::move(floors);
  summary["verdicts"] = std::move(verdicts);
  summary["controls_summary"] = {{"trials", controls.size()},
                                 {"false_verdicts", false_verdicts},
                                 {"intervals_holding_one", intervals_holding_one}};
  summary["controls"] = std::move(controls);
  summary["micro"] = options.micro ? options.micro->entries : Json::array();
  if (options.micro) summary["provenance"]["micro"] = options.micro->provenance;
  const DesignKind kind = subject.KindOf(run.design);
  if (kind == DesignKind::kFactorial) {
    if (absl::Status status = AddFactorial(index, &summary); !status.ok()) return status;
  } else if (kind == DesignKind::kFractional) {
    AddFraction(index, &summary);
  } else {
    AddNotApplicable(index, &summary);
  }
  return summary;
}

}  // namespace warpledger::ablations
