// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/summarize.h"

#include <string>
#include <vector>

#include "ablations/judge/factorial/attribute.h"
#include "ablations/judge/measured.h"
#include "ablations/judge/record_index.h"
#include "ablations/judge/summarize_parts.h"
#include "ablations/plan/known_subjects.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

void AddFraction(const RecordIndex& index, summary::Summary* out) {
  const Fraction fraction = FindFraction(index.subject(), index.run().arms);
  for (const ShapeInfo& shape : index.run().shapes) {
    std::vector<CellData> cells;
    for (const std::string& arm : fraction.arms) {
      cells.push_back({.timings = index.Timings(arm, shape.name),
                       .why_unusable = index.WhyUnusable(index.ArmNamed(arm), shape)});
    }
    AddMainEffects(fraction, shape.name, cells,
                   {.confidence = index.Confidence(shape.name),
                    .bootstrap = index.Bootstrap("effects", index.run().design, shape.name)},
                   &out->effects);
  }
}

absl::Status AddFactorial(const RecordIndex& index, summary::Summary* out) {
  ASSIGN_OR_RETURN(const Factorial factorial, FindFactorial(index.subject(), index.run()));
  for (const ShapeInfo& shape : index.run().shapes) {
    std::vector<CellData> cells;
    for (const Arm* arm : factorial.arms) {
      cells.push_back({.timings = index.Timings(arm->name, shape.name),
                       .why_unusable = index.WhyUnusable(*arm, shape)});
    }
    AddAttribution(factorial, index.run().design, shape.name, cells,
                   {.confidence = index.Confidence(shape.name),
                    .bootstrap = index.Bootstrap("attribution", index.run().design, shape.name)},
                   out);
  }
  out->infeasible = InfeasibleCells(index.subject(), factorial, index.run().design);
  return absl::OkStatus();
}

// The microbenchmarks that are quoted.
absl::Status AddMicro(const MicroRecord& micro, summary::Summary* out) {
  ASSIGN_OR_RETURN(out->provenance.micro, FromJson<summary::MicroSource>(micro.provenance));
  return json_fields::Read(micro.entries, FieldPath(), out->micro);
}

}  // namespace

absl::StatusOr<summary::Summary> Summarize(const Record& record, const Subject& subject,
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
  ASSIGN_OR_RETURN(const RecordIndex index, RecordIndex::Of(record, subject, options));
  const RunInfo& run = record.run;
  summary::Summary out;
  out.run_id = run.run_id;
  out.gpu = run.gpu.slug;
  out.design = run.design;
  out.family = run.family;
  out.provenance = ProvenanceOf(index);
  out.statistics = {
      .confidence = options.confidence,
      .bootstrap_resamples = options.bootstrap_resamples,
      .bootstrap_seed = options.bootstrap_seed,
      .neutral_delta = options.neutral_delta,
      .error_ratio = options.error_ratio,
      .correction = "Benjamini and Yekutieli's false coverage rate, within each claim",
      .interval =
          "the envelope of a cluster bootstrap over whole processes and Student's t on the "
          "processes' medians (from the lower of both lower ends to the higher of both upper ends)",
      .spreads = {},
      .looks = run.stopping ? LooksOf(index) : std::vector<summary::Look>()};
  for (const Regime* regime : kRegimes) {
    if (run.SubjectName() != kFirstSubject) break;
    out.statistics.spreads.push_back(SpreadOf(regime->name, regime->spread));
  }
  out.problems = run.shapes;
  subject.AddShownNames(out.problems);
  const std::vector<PeerRatio> ratios = PeerRatiosOf(index);
  for (const Arm& arm : run.arms) {
    for (const ShapeInfo& shape : run.shapes) {
      if (arm.role == kRoleFloor && !index.Timings(arm.name, shape.name).empty()) {
        summary::Floor& floor = out.floors.emplace_back();
        static_cast<summary::Times&>(floor) = index.TimesOf(arm.name, shape.name);
        floor.n_processes.reset();
        floor.name = arm.name;
        floor.shape = shape.name;
      }
      if (IsMeasuredHere(arm)) out.cells.push_back(CellOf(index, arm, shape, ratios));
    }
  }
  out.peers = PeersOf(index);
  AddVerdicts(index, &out);
  if (options.micro) RETURN_IF_ERROR(AddMicro(*options.micro, &out));
  const DesignKind kind = subject.KindOf(run.design);
  if (kind == DesignKind::kFactorial) {
    RETURN_IF_ERROR(AddFactorial(index, &out));
  } else if (kind == DesignKind::kFractional) {
    AddFraction(index, &out);
  } else {
    // The arms that the design would have if a rule did not forbid them.
    const auto ruled_out = subject.Infeasible(run.design);
    for (const InfeasibleCell& cell : ruled_out.value_or(std::vector<InfeasibleCell>())) {
      out.infeasible.push_back(RuledOut(cell));
    }
  }
  return out;
}

absl::StatusOr<int64_t> MissingBlocks(const Record& record) {
  ASSIGN_OR_RETURN(const Subject* subject, SubjectOf(record.run));
  ASSIGN_OR_RETURN(const RecordIndex index, RecordIndex::Of(record, *subject, {}));
  const summary::Provenance provenance = ProvenanceOf(index);
  return provenance.blocks_missing + provenance.peer_blocks_missing;
}

}  // namespace warpledger::ablations
