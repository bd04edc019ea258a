// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "ablations/record/record.h"
#include "kernels/sdpa/dtype_name.h"

namespace warpledger::ablations {

using Json = nlohmann::ordered_json;

absl::Status FromJson(const Json& json, const FieldPath& path, ShapeInfo& shape) {
  sdpa::Problem& p = shape.problem;
  FieldReader fields(json, path);
  fields("name", shape.name);
  fields("batch", p.batch);
  fields("heads_q", p.heads_q);
  fields("heads_kv", p.heads_kv);
  fields("seq_q", p.seq_q);
  fields("seq_kv", p.seq_kv);
  fields("head_dim", p.head_dim);
  fields("causal", p.causal);
  std::string dtype(sdpa::DtypeName(p.dtype));
  fields("dtype", dtype, kOlderRecordsLack);
  bool known = false;
  for (const sdpa::Dtype each : sdpa::kDtypes) {
    if (dtype != sdpa::DtypeName(each)) continue;
    p.dtype = each;
    known = true;
  }
  fields.Require(known, "dtype", "fp16 or bf16");
  if (json.is_object() && json.contains("embed_dim")) {
    fields("embed_dim", p.embed_dim);
    fields.Require(p.embed_dim >= 1 && p.embed_dim <= 1 << 20, "embed_dim",
                   "a size from 1 to 1048576");
  }
  // Larger ones overflow what is computed from them, or take for ever.
  constexpr int kMostOfOne = 1 << 20;
  constexpr double kMostElements = 0x1p60;
  const std::pair<const char*, int> sizes[] = {{"batch", p.batch},       {"heads_q", p.heads_q},
                                               {"heads_kv", p.heads_kv}, {"seq_q", p.seq_q},
                                               {"seq_kv", p.seq_kv},     {"head_dim", p.head_dim}};
  double elements = 1;
  for (const auto& [name, size] : sizes) {
    fields.Require(size >= 1 && size <= kMostOfOne, name, "a size from 1 to 1048576");
    elements *= size;
  }
  fields.Require(elements <= kMostElements, "batch", "a problem that fits into a GPU");
  return fields.status();
}

}  // namespace warpledger::ablations
