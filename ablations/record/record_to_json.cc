// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/record.h"
#include "kernels/sdpa/dtype_name.h"

namespace warpledger::ablations {

using Json = nlohmann::ordered_json;

Json ToJson(const ShapeInfo& shape) {
  const sdpa::Problem& p = shape.problem;
  Json json = {{"name", shape.name},     {"batch", p.batch},  {"heads_q", p.heads_q},
               {"heads_kv", p.heads_kv}, {"seq_q", p.seq_q},  {"seq_kv", p.seq_kv},
               {"head_dim", p.head_dim}, {"causal", p.causal}};
  if (p.embed_dim > 0) json["embed_dim"] = p.embed_dim;
  json["flops"] = sdpa::Flops(p);
  json["min_bytes"] = sdpa::MinBytes(p);
  json["exponentials"] = sdpa::Exponentials(p);
  // Where there is none it is fp16, as in records that are older than the choice.
  if (p.dtype != sdpa::Dtype::kFp16) json["dtype"] = sdpa::DtypeName(p.dtype);
  return json;
}

}  // namespace warpledger::ablations
