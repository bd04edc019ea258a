// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "kernels/sdpa/registry/techniques.h"
#include "reports/sections/answers/answers.h"

namespace warpledger::report {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json P50(const Summary& summary, const std::string& arm, const std::string& shape) {
  const Cell* cell = summary.FindCell(arm, shape);
  return cell == nullptr ? Json() : OrNull(cell->p50_us.value);
}

// By which the samples of the record are called.
Json InRecord(const Summary& summary, const std::string& problem) {
  for (const Shape& shape : summary.shapes) {
    if (shape.name == problem) return shape.in_record;
  }
  return problem;
}

Json Row(const MeasuredClaim& claim, const Judgement& judgement) {
  const sdpa::ToggleRow& row = *claim.row;
  const sdpa::TechniqueRow* technique = sdpa::FindTechnique(row.technique);
  const Summary& summary = judgement.record->summary;
  const Verdict& v = *judgement.verdict;
  Json out = {{"gpu", summary.gpu},
              {"gpu_name", summary.provenance.gpu.name},
              {"record", summary.run_id},
              {"design", summary.design},
              {"technique", technique == nullptr ? row.label : technique->name},
              {"toggle", row.id},
              {"label", LabelOf(claim)},
              {"claim", row.claim},
              {"family", FamilyTitle(claim.family)},
              {"level", row.levels.NameOf(claim.to)},
              {"over", row.levels.NameOf(claim.from)},
              {"base", v.base},
              {"candidate", v.candidate},
              {"problem", v.shape},
              {"problem_in_record", InRecord(summary, v.shape)}};
  if (const Attention* problem = ProblemOf(judgement)) {
    out.update({{"regime", RegimeOf(*problem)},
                {"batch", problem->batch},
                {"heads_q", problem->heads_q},
                {"heads_kv", problem->heads_kv},
                {"seq_q", problem->seq_q},
                {"seq_kv", problem->seq_kv},
                {"head_dim", problem->head_dim},
                {"mask", problem->causal ? "causal" : "full"},
                {"dtype", problem->dtype}});
  }
  out.update({{"base_us", P50(summary, v.base, v.shape)},
              {"candidate_us", P50(summary, v.candidate, v.shape)},
              {"ratio", OrNull(v.ratio.value)},
              {"ci_low", OrNull(v.ratio.low)},
              {"ci_high", OrNull(v.ratio.high)},
              {"estimand", v.estimand},
              {"this_board_low", OrNull(v.this_board_low)},
              {"this_board_high", OrNull(v.this_board_high)},
              {"confidence", OrNull(v.adjusted_confidence)},
              {"gate", v.gate},
              {"predicted_low", OrNull(v.predicted_low)},
              {"predicted_high", OrNull(v.predicted_high)},
              {"verdict", v.verdict},
              {"reason", v.reason},
              {"n_pairs", v.n_pairs}});
  return out;
}

}  // namespace

Json ClaimTable(const std::vector<MeasuredClaim>& claims) {
  Json rows = Json::array();
  for (const MeasuredClaim& claim : claims) {
    for (const Judgement& judgement : claim.judged) rows.push_back(Row(claim, judgement));
  }
  return rows;
}

}  // namespace warpledger::report
