// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>

#include "absl/strings/str_format.h"
#include "kernels/sdpa/mma/conflicts.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/rules.h"
#include "reports/model/derived/counters.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

using ablations::ShapeInfo;

// Far beyond what was ever run; below it no count overflows.
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr double kMaxScores = 1e15;

// 0 where it is no size.
int Size(const ShapeInfo& shape, const char* key) {
  const auto found = shape.fields.find(key);
  if (found == shape.fields.end() || !found->is_number_integer()) return 0;
  const auto size = found->get<int64_t>();
  return size > 0 && size <= kMaxSize ? static_cast<int>(size) : 0;
}

// Nothing where a size is not there.
std::optional<sdpa::Problem> ProblemOf(const ShapeInfo& shape) {
  sdpa::Problem p = {.batch = Size(shape, "batch"),
                     .heads_q = Size(shape, "heads_q"),
                     .heads_kv = Size(shape, "heads_kv"),
                     .seq_q = Size(shape, "seq_q"),
                     .seq_kv = Size(shape, "seq_kv"),
                     .head_dim = Size(shape, "head_dim"),
                     .causal = shape.fields.value("causal", false)};
  const double scores = 1.0 * p.batch * p.heads_q * p.seq_q * p.seq_kv;
  if (scores <= 0 || scores > kMaxScores || p.head_dim == 0) return std::nullopt;
  return p;
}

std::optional<sdpa::SharedReads> Predict(const std::string& printed, const ShapeInfo& shape) {
  const std::optional<sdpa::Problem> problem = ProblemOf(shape);
  const std::optional<sdpa::Config> config = sdpa::ConfigFromName(printed);
  if (!problem || !config || sdpa::FamilyOf(*config) != sdpa::Family::kMma) return std::nullopt;
  const sdpa::Config instance =
      sdpa::Specialise(*config, problem->head_dim, problem->causal, problem->dtype);
  if (sdpa::WhyInvalid(instance)) return std::nullopt;
  return sdpa::PredictReads(sdpa::MmaShapeOf(instance), *problem);
}

std::string Whole(double value) { return absl::StrFormat("%.0f", value); }

}  // namespace

std::string SharedReadsSection(const summary::ProfileSummary& summary) {
  Table table(
      "shape | variant | ldmatrix: | wavefronts each: | predicted: | counted: | counted / "
      "predicted:");
  bool any = false;
  for (const ShapeInfo& shape : summary.provenance.shapes) {
    for (const summary::TimedProfile& profile : summary.profiles) {
      if (profile.shape != shape.name) continue;
      const auto predicted = Predict(profile.config, shape);
      const auto counted = SharedLoadWavefronts(profile);
      if (!predicted || !counted || predicted->wavefronts == 0) continue;
      any = true;
      const auto wavefronts = static_cast<double>(predicted->wavefronts);
      table.AddRow({Code(shape.name), Code(profile.variant),
                    Whole(static_cast<double>(predicted->instructions)),
                    FormatSignificant(wavefronts / static_cast<double>(predicted->instructions), 3),
                    Whole(wavefronts), Whole(*counted),
                    absl::StrFormat("%.4f", *counted / wavefronts)});
    }
  }
  if (!any) return "";
  return Cat(
      "## Bank conflicts: the model and the counter\n\nThe model predicts from the layout of a "
      "tile how many wavefronts each `ldmatrix` takes: 4 without a bank conflict, 32 if the rows "
      "of a matrix share their banks. The counter is "
      "`l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld`. The model covers only kernels of the "
      "mma family under a full mask, with Q and P in registers.\n\n",
      table.ToMarkdown());
}

}  // namespace warpledger::report
