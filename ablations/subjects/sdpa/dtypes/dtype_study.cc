// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/dtypes/dtype_study.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "ablations/subjects/sdpa/dtypes/dtype_mistakes.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/random.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/reference.h"

namespace warpledger::ablations {
namespace {

using sdpa::InputKind;
using sdpa::Inputs;
using sdpa::KvFormat;
using sdpa::Problem;
using sdpa::Reference;
using sdpa::ScaleScope;
using Json = nlohmann::ordered_json;

constexpr StudyScheme Stored(std::string_view name, std::string_view label, KvFormat format,
                             ScaleScope scope,
                             StudyArithmetic arithmetic = StudyArithmetic::kExact) {
  sdpa::KvScheme kv = {format, scope};
  if (scope == ScaleScope::kBlock) kv.block_keys = kStudyBlockKeys;
  return {.name = name, .label = label, .quantised = true, .kv = kv, .arithmetic = arithmetic};
}
constexpr StudyScheme kSchemes[] = {
    {.name = "fp16", .label = "fp16, naive", .arithmetic = StudyArithmetic::kNaiveFp16},
    {.name = "bf16", .label = "bf16", .bf16 = true},
    Stored("uint8_head", "uint8, scale per head", KvFormat::kUint8, ScaleScope::kHead),
    Stored("uint8_block", "uint8, scale per block", KvFormat::kUint8, ScaleScope::kBlock),
    Stored("e4m3_tensor", "E4M3, scale per tensor", KvFormat::kE4m3, ScaleScope::kTensor),
    Stored("e4m3_head", "E4M3, scale per head", KvFormat::kE4m3, ScaleScope::kHead),
    Stored("e4m3_block", "E4M3, scale per block", KvFormat::kE4m3, ScaleScope::kBlock),
    Stored("e4m3_head_fp16", "mixed: E4M3, scale per head", KvFormat::kE4m3, ScaleScope::kHead,
           StudyArithmetic::kNaiveFp16),
    Stored("e4m3_block_fp16", "mixed: E4M3, scale per block", KvFormat::kE4m3, ScaleScope::kBlock,
           StudyArithmetic::kNaiveFp16),
    Stored("e5m2_tensor", "E5M2, scale per tensor", KvFormat::kE5m2, ScaleScope::kTensor),
    Stored("e5m2_head", "E5M2, scale per head", KvFormat::kE5m2, ScaleScope::kHead),
    Stored("e5m2_block", "E5M2, scale per block", KvFormat::kE5m2, ScaleScope::kBlock),
    Stored("e5m2_head_fp16", "mixed: E5M2, scale per head", KvFormat::kE5m2, ScaleScope::kHead,
           StudyArithmetic::kNaiveFp16),
    Stored("e5m2_block_fp16", "mixed: E5M2, scale per block", KvFormat::kE5m2, ScaleScope::kBlock,
           StudyArithmetic::kNaiveFp16),
};

constexpr InputKind kKinds[] = {InputKind::kNormal, InputKind::kOutliers, InputKind::kLargeLogits};
// A mistake shows in every row or in hardly any, and each row quantises K and V again.
constexpr int kMistakeRowsPerHead = 4;
// One is ragged: 500 is no multiple of a tile.
constexpr int kMistakeLengths[] = {64, 128, 256, 500, 512, 1024};

std::string_view KindName(InputKind kind) {
  for (const sdpa::NamedInputKind& named : sdpa::kInputKinds) {
    if (named.kind == kind) return named.name;
  }
  return "";
}

// Four significant digits: libm's last ones differ between machines.
double Four(double value) { return std::strtod(absl::StrFormat("%.3e", value).c_str(), nullptr); }

Problem StudyProblem(int seq) {
  return {.batch = 1,
          .heads_q = kStudyHeads,
          .heads_kv = kStudyHeads,
          .seq_q = kStudyRowsPerHead,
          .seq_kv = seq,
          .head_dim = 64};
}

uint64_t InputSeed(uint64_t seed, InputKind kind, int seq) {
  return MixSeed(MixSeed(seed, HashName(KindName(kind))), static_cast<uint64_t>(seq));
}

struct Outputs {
  std::vector<double> values;
  bool finite = true;
};

Outputs RunScheme(const StudyScheme& scheme, Problem problem, const Inputs& fp16) {
  Reference reference;
  if (scheme.bf16) {
    problem.dtype = sdpa::Dtype::kBf16;
    Inputs inputs = fp16;
    for (auto* values : {&inputs.q, &inputs.k, &inputs.v}) {
      for (sdpa::Bits16& bits : *values) bits = sdpa::FloatToBf16(sdpa::Fp16ToFloat(bits));
    }
    reference = sdpa::ComputeReference(problem, inputs);
  } else if (scheme.quantised) {
    reference = sdpa::ComputeReference(problem,
                                       sdpa::WithQuantisedKv(problem, fp16, {.scheme = scheme.kv}));
  } else {
    reference = sdpa::ComputeReference(problem, fp16);
  }
  Outputs result;
  if (scheme.arithmetic == StudyArithmetic::kNaiveFp16) {
    result.values.assign(reference.naive_out.begin(), reference.naive_out.end());
  } else {
    result.values = std::move(reference.out);
  }
  for (const double value : result.values) result.finite &= std::isfinite(value);
  return result;
}

Json ErrorCell(const StudyScheme& scheme, const Outputs& out, const std::vector<double>& truth) {
  double max = 0;
  double sum = 0;
  double squares = 0;
  double truth_squares = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double error = std::fabs(out.values[i] - truth[i]);
    max = std::max(max, error);
    sum += error;
    squares += error * error;
    truth_squares += truth[i] * truth[i];
  }
  Json cell;
  cell["scheme"] = scheme.name;
  cell["finite"] = out.finite;
  if (!out.finite) return cell;
  cell["max_err"] = Four(max);
  cell["mean_err"] = Four(sum / static_cast<double>(truth.size()));
  cell["relative_rms"] = Four(std::sqrt(squares / truth_squares));
  return cell;
}

Json StudyMistakes(uint64_t seed) {
  Json mistakes = Json::array();
  for (const DtypeMistake& mistake : DtypeMistakes()) {
    Json json = {{"name", mistake.name},
                 {"what", mistake.what},
                 {"inputs", KindName(mistake.inputs)},
                 {"leaves_fp8_range", mistake.leaves_fp8_range},
                 {"cells", Json::array()}};
    for (const int seq : kMistakeLengths) {
      const Problem problem = StudyProblem(seq);
      const Inputs inputs =
          sdpa::MakeInputs(problem, mistake.inputs, InputSeed(seed, mistake.inputs, seq));
      json["cells"].push_back(
          {{"seq", seq},
           {"non_finite_rows", NonFiniteRows(mistake, problem, inputs, kMistakeRowsPerHead)},
           {"rows", kStudyHeads * kMistakeRowsPerHead}});
    }
    mistakes.push_back(std::move(json));
  }
  return mistakes;
}

}  // namespace

std::span<const StudyScheme> StudySchemes() { return kSchemes; }

Json StudyDtypes(const StudyOptions& options, absl::FunctionRef<void(std::string_view)> say) {
  Json record;
  record["schema_version"] = 1;
  record["kind"] = kDtypesKind;
  record["seed"] = options.seed;
  record["head_dim"] = 64;
  record["heads"] = kStudyHeads;
  record["rows_per_head"] = kStudyRowsPerHead;
  record["block_keys"] = kStudyBlockKeys;
  record["schemes"] = Json::array();
  for (const StudyScheme& scheme : kSchemes) {
    const bool naive = scheme.arithmetic == StudyArithmetic::kNaiveFp16;
    record["schemes"].push_back({{"name", scheme.name},
                                 {"label", scheme.label},
                                 {"kv_bits", scheme.quantised ? 8 : 16},
                                 {"products", naive ? "fp16" : "FP64"}});
  }
  record["cells"] = Json::array();
  for (const InputKind kind : kKinds) {
    for (int seq = 64; seq <= options.max_seq; seq *= 2) {
      say(absl::StrCat(std::string(KindName(kind)), ", ", seq, " keys"));
      const Problem problem = StudyProblem(seq);
      const uint64_t seed = InputSeed(options.seed, kind, seq);
      const Inputs fp16 = sdpa::MakeInputs(problem, kind, seed);
      const std::vector<double> truth = sdpa::ComputeReference(problem, fp16).out;
      for (const StudyScheme& scheme : kSchemes) {
        Json cell = {{"inputs", KindName(kind)}, {"seq", seq}};
        cell.update(ErrorCell(scheme, RunScheme(scheme, problem, fp16), truth));
        record["cells"].push_back(std::move(cell));
      }
    }
  }
  say("mistakes");
  record["mistakes"] = StudyMistakes(options.seed);
  return record;
}

}  // namespace warpledger::ablations
