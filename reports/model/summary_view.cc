// SPDX-License-Identifier: Apache-2.0
#include "reports/model/summary_view.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "reports/model/summary_reader.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using Json = nlohmann::ordered_json;

void Flatten(const std::string& prefix, const Json& json,
             std::vector<std::pair<std::string, std::string>>& rows) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      Flatten(SummaryReader::Join(prefix, key), value, rows);
    return;
  }
  if (json.is_array()) {
    std::string joined;
    for (const Json& element : json) {
      if (!joined.empty()) joined += ' ';
      joined += element.is_string() ? element.get<std::string>() : element.dump();
    }
    rows.emplace_back(prefix, joined);
    return;
  }
  rows.emplace_back(prefix, json.is_string() ? json.get<std::string>()
                            : json.is_null() ? std::string(kNone)
                                             : json.dump());
}

Provenance ParseProvenance(SummaryReader& reader, const Json& json) {
  Provenance out;
  const Json& p = reader.Object(json, "", "provenance");
  out.created_utc = reader.String(p, "provenance", "created_utc");
  out.processes = reader.Integer(p, "provenance", "processes");
  out.blocks_per_process = reader.Integer(p, "provenance", "blocks_per_process");
  out.processes_found = reader.Integer(p, "provenance", "processes_found");
  out.blocks_planned = reader.Integer(p, "provenance", "blocks_planned");
  out.blocks_missing = reader.Integer(p, "provenance", "blocks_missing");
  out.peer_blocks_planned = reader.Integer(p, "provenance", "peer_blocks_planned");
  out.peer_blocks_missing = reader.Integer(p, "provenance", "peer_blocks_missing");
  out.cache = reader.String(p, "provenance", "cache");
  const Json& git = reader.Object(p, "provenance", "git");
  out.git_sha = reader.String(git, "provenance.git", "sha");
  out.git_dirty = reader.Bool(git, "provenance.git", "dirty");
  out.registry_sha256 = reader.String(p, "provenance", "registry_sha256");
  out.kernel_source_sha256 = reader.String(p, "provenance", "kernel_source_sha256");
  const Json& toolchain = reader.Object(p, "provenance", "toolchain");
  out.nvcc = reader.String(toolchain, "provenance.toolchain", "nvcc");
  const Json& gpu = reader.Object(p, "provenance", "gpu");
  out.compute_capability = reader.String(gpu, "provenance.gpu", "compute_capability");
  out.gpu_name = reader.String(gpu, "provenance.gpu", "name");
  out.sm_count = reader.Integer(gpu, "provenance.gpu", "sm_count");
  out.max_sm_clock_mhz = reader.NumberOrNull(gpu, "provenance.gpu", "max_sm_clock_mhz");
  out.n_samples = reader.IntegerOrNull(p, "provenance", "n_samples");
  out.throttled_samples = reader.IntegerOrNull(p, "provenance", "throttled_samples");
  out.unknown_throttle_samples = reader.Integer(p, "provenance", "unknown_throttle_samples");
  out.sm_mhz_p50 = reader.NumberOrNull(p, "provenance", "sm_mhz_p50");
  if (p.is_object()) Flatten("", p, out.rows);
  return out;
}

Statistics ParseStatistics(SummaryReader& reader, const Json& json) {
  const char* path = "statistics";
  const Json& s = reader.Object(json, "", path);
  Statistics out;
  out.confidence = reader.Number(s, path, "confidence");
  out.bootstrap_resamples = reader.Integer(s, path, "bootstrap_resamples");
  out.bootstrap_seed = reader.Unsigned(s, path, "bootstrap_seed");
  out.neutral_delta = reader.Number(s, path, "neutral_delta");
  out.family_size = reader.Integer(s, path, "family_size");
  out.correction = reader.String(s, path, "correction");
  if (s.is_object() && s.contains("interval")) {
    out.interval = reader.String(s, path, "interval");
  }
  if (s.is_object() && s.contains("error_ratio")) {
    out.error_ratio = reader.Number(s, path, "error_ratio");
    if (*out.error_ratio <= 1) {
      reader.Fail("statistics.error_ratio", Cat("must be above 1, but is ", *out.error_ratio));
    }
  }
  if (out.confidence <= 0 || out.confidence >= 1) {
    reader.Fail("statistics.confidence", Cat("must lie between 0 and 1, but is ", out.confidence));
  }
  return out;
}

Shape ParseShape(SummaryReader& reader, const Json& j, const std::string& path) {
  Shape out;
  out.name = reader.String(j, path, "name");
  out.batch = reader.Integer(j, path, "batch");
  out.heads_q = reader.Integer(j, path, "heads_q");
  out.heads_kv = reader.Integer(j, path, "heads_kv");
  out.seq_q = reader.Integer(j, path, "seq_q");
  out.seq_kv = reader.Integer(j, path, "seq_kv");
  out.head_dim = reader.Integer(j, path, "head_dim");
  out.causal = reader.Bool(j, path, "causal");
  if (j.contains("dtype")) out.dtype = reader.String(j, path, "dtype");
  out.projected = j.contains("embed_dim") && reader.Integer(j, path, "embed_dim") > 0;
  out.flops = reader.Number(j, path, "flops");
  out.min_bytes = reader.Number(j, path, "min_bytes");
  out.exponentials = reader.Number(j, path, "exponentials");
  return out;
}

Cell ParseCell(SummaryReader& reader, const Json& j, const std::string& path) {
  Cell out;
  out.variant = reader.String(j, path, "variant");
  out.config = reader.String(j, path, "config");
  if (j.is_object() && j.contains("kv_bits")) out.kv_bits = reader.Integer(j, path, "kv_bits");
  out.role = reader.String(j, path, "role");
  out.toggle = reader.StringOrNull(j, path, "toggle");
  out.label = reader.StringOrNull(j, path, "label");
  out.shape = reader.String(j, path, "shape");
  out.correct = reader.BoolOrNull(j, path, "correct");
  out.max_err = reader.NumberOrNull(j, path, "max_err");
  // A figure (the limit) or a text (the rule with its limit), by the record's age.
  if (j.is_object() && j.contains("max_err_rule") && j["max_err_rule"].is_number()) {
    out.max_err_limit = FormatError(j["max_err_rule"].get<double>());
  } else {
    out.max_err_limit = reader.StringOrNull(j, path, "max_err_rule");
  }
  out.p50_us = reader.Positive(j, path, "p50_us", "ci_low_us", "ci_high_us");
  out.tflops = reader.NumberOrNull(j, path, "tflops");
  if (!j.is_object() || !j.contains("speedup_over_first") || !j["speedup_over_first"].is_null()) {
    const std::string speedup_path = path + ".speedup_over_first";
    out.speedup_over_first = reader.Positive(reader.Object(j, path, "speedup_over_first"),
                                             speedup_path, "ratio", "ci_low", "ci_high");
  }
  out.registers = reader.IntegerOrNull(j, path, "registers");
  out.smem_bytes = reader.IntegerOrNull(j, path, "smem_bytes");
  out.spill_bytes = reader.IntegerOrNull(j, path, "spill_bytes");
  out.ctas_per_sm = reader.IntegerOrNull(j, path, "ctas_per_sm");
  out.code_sha256 = reader.StringOrNull(j, path, "code_sha256");
  out.reason = reader.StringOrNull(j, path, "reason");
  return out;
}

Peer ParsePeer(SummaryReader& reader, const Json& j, const std::string& path) {
  Peer out;
  out.name = reader.String(j, path, "name");
  out.version = reader.StringOrNull(j, path, "version");
  out.shape = reader.String(j, path, "shape");
  out.available = reader.Bool(j, path, "available");
  out.correct = reader.BoolOrNull(j, path, "correct");
  out.reason = reader.StringOrNull(j, path, "reason");
  out.p50_us = reader.Positive(j, path, "p50_us", "ci_low_us", "ci_high_us");
  return out;
}

Floor ParseFloor(SummaryReader& reader, const Json& j, const std::string& path) {
  Floor out;
  out.name = reader.String(j, path, "name");
  out.shape = reader.String(j, path, "shape");
  out.p50_us = reader.Positive(j, path, "p50_us", "ci_low_us", "ci_high_us");
  return out;
}

Spread ParseSpread(SummaryReader& reader, const Json& j, const std::string& path) {
  const auto field = [&](const char* key) -> std::optional<double> {
    if (!j.is_object() || !j.contains(key)) return std::nullopt;
    return reader.NumberOrNull(j, path, key);
  };
  return {.within = field("within_process_sd"), .between = field("between_process_sd")};
}

CodeChange ParseChange(SummaryReader& reader, const Json& j, const std::string& path) {
  CodeChange out;
  out.registers = reader.Both(j, path, "registers");
  out.smem_bytes = reader.Both(j, path, "smem_bytes");
  out.spill_bytes = reader.Both(j, path, "spill_bytes");
  out.warps_per_sm = reader.Both(j, path, "warps_per_sm");
  out.instructions = reader.Both(j, path, "instructions");
  out.evidence = reader.Both(j, path, "evidence");
  if (!j.contains("opcodes") || j["opcodes"].is_null()) return out;
  const Json& opcodes = reader.Object(j, path, "opcodes");
  const std::string opcodes_path = path + ".opcodes";
  for (const auto& [name, unused] : opcodes.items()) {
    out.opcodes.push_back({name, reader.Both(opcodes, opcodes_path, name.c_str())});
  }
  return out;
}

ErrorChange ParseErrors(SummaryReader& reader, const Json& j, const std::string& path) {
  ErrorChange out;
  out.inputs = reader.String(j, path, "inputs");
  out.mean_err = reader.BothNumbers(j, path, "mean_err");
  out.mean_share = reader.BothNumbers(j, path, "mean_share");
  out.max_share = reader.BothNumbers(j, path, "max_share");
  out.lse_share = reader.BothNumbers(j, path, "lse_share");
  std::tie(out.correct_before, out.correct_after) = reader.BothBools(j, path, "correct");
  return out;
}

Verdict ParseVerdict(SummaryReader& reader, const Json& j, const std::string& path) {
  Verdict out;
  out.toggle = reader.String(j, path, "toggle");
  out.base = reader.String(j, path, "base");
  out.candidate = reader.String(j, path, "candidate");
  out.shape = reader.String(j, path, "shape");
  out.n_pairs = reader.IntegerOrNull(j, path, "n_pairs");
  out.ratio = reader.Positive(j, path, "ratio", "ci_low", "ci_high");
  out.adjusted_confidence = reader.NumberOrNull(j, path, "adjusted_confidence");
  out.gate = reader.Number(j, path, "gate");
  out.verdict = reader.OneOf(j, path, "verdict", kVerdictNames);
  out.reason = reader.StringOrNull(j, path, "reason");
  out.mde_ratio = reader.NumberOrNull(j, path, "mde_ratio");
  out.predicted_low = reader.NumberOrNull(j, path, "predicted_low");
  out.predicted_high = reader.NumberOrNull(j, path, "predicted_high");
  out.prediction_held = reader.BoolOrNull(j, path, "prediction_held");
  out.spread = ParseSpread(reader, j, path);
  if (j.is_object() && j.contains("change")) {
    out.change = ParseChange(reader, reader.Object(j, path, "change"), path + ".change");
  }
  if (j.is_object() && j.contains("errors")) {
    const Json& errors = reader.Array(j, path, "errors");
    for (size_t i = 0; i < errors.size(); ++i) {
      out.errors.push_back(ParseErrors(reader, errors[i], Cat(path, ".errors[", i, "]")));
    }
  }
  return out;
}

Control ParseControl(SummaryReader& reader, const Json& j, const std::string& path) {
  static constexpr std::string_view kKinds[] = {"aa", "null"};
  Control out;
  out.kind = reader.OneOf(j, path, "kind", kKinds);
  out.shape = reader.String(j, path, "shape");
  out.candidate = reader.String(j, path, "candidate");
  out.ratio = reader.Positive(j, path, "ratio", "ci_low", "ci_high");
  out.holds_one = reader.Bool(j, path, "holds_one");
  out.timing_verdict = reader.OneOf(j, path, "timing_verdict", kVerdictNames);
  out.verdict = reader.OneOf(j, path, "verdict", kVerdictNames);
  out.false_verdict = reader.Bool(j, path, "false_verdict");
  if (j.is_object() && j.contains("mde_ratio")) {
    out.mde_ratio = reader.NumberOrNull(j, path, "mde_ratio");
  }
  out.spread = ParseSpread(reader, j, path);
  return out;
}

Attribution ParseAttribution(SummaryReader& reader, const Json& j, const std::string& path) {
  Attribution out;
  out.shape = reader.String(j, path, "shape");
  out.toggle = reader.String(j, path, "toggle");
  out.n_pairs = reader.Integer(j, path, "n_pairs");
  out.main_effect = reader.Positive(j, path, "main_effect_ratio", "ci_low", "ci_high");
  out.shapley_share = reader.NumberOrNull(j, path, "shapley_share");
  out.shapley_log = reader.NumberOrNull(j, path, "shapley_log");
  out.shapley_log_low = reader.NumberOrNull(j, path, "shapley_log_low");
  out.shapley_log_high = reader.NumberOrNull(j, path, "shapley_log_high");
  out.total_log = reader.NumberOrNull(j, path, "total_log");
  out.first_base = reader.StringOrNull(j, path, "first_base");
  out.first = reader.Positive(j, path, "first_ratio", "first_low", "first_high");
  out.last_base = reader.StringOrNull(j, path, "last_base");
  out.last = reader.Positive(j, path, "last_ratio", "last_low", "last_high");
  out.reason = reader.StringOrNull(j, path, "reason");
  return out;
}

Interaction ParseInteraction(SummaryReader& reader, const Json& j, const std::string& path) {
  Interaction out;
  out.shape = reader.String(j, path, "shape");
  out.a = reader.String(j, path, "a");
  out.b = reader.String(j, path, "b");
  out.n_quadruples = reader.Integer(j, path, "n_quadruples");
  out.ratio = reader.Positive(j, path, "interaction_ratio", "ci_low", "ci_high");
  out.a_without_b = reader.NumberOrNull(j, path, "a_without_b");
  out.a_with_b = reader.NumberOrNull(j, path, "a_with_b");
  out.b_without_a = reader.NumberOrNull(j, path, "b_without_a");
  out.b_with_a = reader.NumberOrNull(j, path, "b_with_a");
  out.reason = reader.StringOrNull(j, path, "reason");
  return out;
}

InfeasibleCell ParseInfeasible(SummaryReader& reader, const Json& j, const std::string& path) {
  return {.variant = reader.String(j, path, "variant"),
          .toggle = reader.StringOrNull(j, path, "toggle"),
          .missing = reader.StringOrNull(j, path, "missing"),
          .why = j.is_object() && j.contains("why") ? reader.String(j, path, "why") : ""};
}

// Each (name, shape) stands once, and the shape is one of the record's.
class KeyCheck {
 public:
  KeyCheck(SummaryReader& reader, const std::vector<Shape>& shapes) : reader_(reader) {
    for (const Shape& shape : shapes) shapes_.insert(shape.name);
  }
  void Check(const std::string& path, const std::string& name, const std::string& shape) {
    if (!reader_.status().ok()) return;
    if (!shapes_.contains(shape)) {
      reader_.Fail(path + ".shape", Cat("is \"", shape, "\", which is not in shapes[]"));
    } else if (!seen_.emplace(name, shape).second) {
      reader_.Fail(path, Cat("repeats ", name, " at ", shape));
    }
  }

 private:
  SummaryReader& reader_;
  std::set<std::string> shapes_;
  std::set<std::pair<std::string, std::string>> seen_;
};

}  // namespace

absl::StatusOr<Summary> ParseSummary(const Json& json) {
  SummaryReader reader;
  const int64_t version = reader.Integer(json, "", "schema_version");
  if (reader.status().ok() && version > kSummarySchemaVersion) {
    return absl::InvalidArgumentError(
        Cat("summary.json: schema_version is ", version, ", but this build knows versions up to ",
            kSummarySchemaVersion, "; build a newer warpledger to read it"));
  }
  Summary out;
  out.run_id = reader.String(json, "", "run_id");
  out.gpu_slug = reader.String(json, "", "gpu");
  out.design = reader.String(json, "", "design");
  out.family = reader.String(json, "", "family");
  out.provenance = ParseProvenance(reader, json);
  out.statistics = ParseStatistics(reader, json);
  ForEach(reader, json, "shapes", [&](const Json& j, const std::string& path) {
    out.shapes.push_back(ParseShape(reader, j, path));
  });
  if (reader.status().ok() && out.shapes.empty()) reader.Fail("shapes", "must not be empty");
  KeyCheck cells(reader, out.shapes);
  ForEach(reader, json, "cells", [&](const Json& j, const std::string& path) {
    out.cells.push_back(ParseCell(reader, j, path));
    cells.Check(path, out.cells.back().variant, out.cells.back().shape);
  });
  KeyCheck peers(reader, out.shapes);
  ForEach(reader, json, "peers", [&](const Json& j, const std::string& path) {
    out.peers.push_back(ParsePeer(reader, j, path));
    peers.Check(path, out.peers.back().name, out.peers.back().shape);
  });
  KeyCheck floors(reader, out.shapes);
  ForEach(reader, json, "floors", [&](const Json& j, const std::string& path) {
    out.floors.push_back(ParseFloor(reader, j, path));
    floors.Check(path, out.floors.back().name, out.floors.back().shape);
  });
  KeyCheck verdicts(reader, out.shapes);
  ForEach(reader, json, "verdicts", [&](const Json& j, const std::string& path) {
    out.verdicts.push_back(ParseVerdict(reader, j, path));
    // One candidate may be judged against several bases.
    verdicts.Check(path, Cat(out.verdicts.back().candidate, " against ", out.verdicts.back().base),
                   out.verdicts.back().shape);
  });
  KeyCheck controls(reader, out.shapes);
  ForEach(reader, json, "controls", [&](const Json& j, const std::string& path) {
    out.controls.push_back(ParseControl(reader, j, path));
    controls.Check(path, out.controls.back().candidate, out.controls.back().shape);
  });
  // Only a factorial has these.
  if (json.is_object() && json.contains("attribution")) {
    KeyCheck attribution(reader, out.shapes);
    ForEach(reader, json, "attribution", [&](const Json& j, const std::string& path) {
      out.attribution.push_back(ParseAttribution(reader, j, path));
      attribution.Check(path, out.attribution.back().toggle, out.attribution.back().shape);
    });
    KeyCheck interactions(reader, out.shapes);
    ForEach(reader, json, "interactions", [&](const Json& j, const std::string& path) {
      out.interactions.push_back(ParseInteraction(reader, j, path));
      const Interaction& last = out.interactions.back();
      interactions.Check(path, Cat(last.a, " with ", last.b), last.shape);
    });
  }
  if (json.is_object() && (json.contains("attribution") || json.contains("infeasible"))) {
    ForEach(reader, json, "infeasible", [&](const Json& j, const std::string& path) {
      out.infeasible.push_back(ParseInfeasible(reader, j, path));
    });
  }
  ForEach(reader, json, "micro", [&](const Json& j, const std::string& path) {
    MicroValue row;
    row.name = reader.String(j, path, "name");
    row.unit = reader.String(j, path, "unit");
    row.value = reader.Number(j, path, "value");
    row.percent_of_limit = reader.NumberOrNull(j, path, "percent_of_limit");
    out.micro.push_back(std::move(row));
  });
  if (!out.micro.empty()) {
    const Json& provenance = reader.Object(json, "", "provenance");
    const Json& micro = reader.Object(provenance, "provenance", "micro");
    out.micro_run_id = reader.String(micro, "provenance.micro", "run_id");
  }
  const Json& controls_summary = reader.Object(json, "", "controls_summary");
  out.control_trials = reader.Integer(controls_summary, "controls_summary", "trials");
  out.control_false_verdicts =
      reader.Integer(controls_summary, "controls_summary", "false_verdicts");
  out.control_intervals_holding_one =
      reader.Integer(controls_summary, "controls_summary", "intervals_holding_one");
  if (!reader.status().ok()) return reader.status();
  return out;
}

}  // namespace warpledger::report
