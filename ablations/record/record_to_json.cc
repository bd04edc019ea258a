// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "ablations/record/record.h"
#include "kernels/sdpa/dtype_name.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN or infinity; null says that there is no finite figure.
Json FiniteOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <typename T>
Json ValueOrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json FileOf(const char* name, Json list) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json[name] = std::move(list);
  return json;
}

}  // namespace

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

Json ToJson(const GpuInfo& gpu) {
  return {{"name", gpu.name},
          {"slug", gpu.slug},
          {"uuid", gpu.uuid},
          {"compute_capability", gpu.compute_capability},
          {"sm_count", gpu.sm_count},
          {"l2_bytes", gpu.l2_bytes},
          {"memory_bytes", gpu.memory_bytes},
          {"driver", gpu.driver},
          {"cuda_runtime", gpu.cuda_runtime},
          {"ecc", ValueOrNull(gpu.ecc)},
          {"max_sm_clock_mhz", ValueOrNull(gpu.max_sm_clock_mhz)},
          {"max_memory_clock_mhz", ValueOrNull(gpu.max_memory_clock_mhz)},
          {"power_limit_w", ValueOrNull(gpu.power_limit_w)}};
}

Json ToJson(const RunInfo& run) {
  Json shapes = Json::array();
  for (const ShapeInfo& shape : run.shapes) shapes.push_back(ToJson(shape));
  Json arms = Json::array();
  for (const Arm& arm : run.arms) {
    arms.push_back({{"name", arm.name},
                    {"config", arm.config},
                    {"role", arm.role},
                    {"toggle", arm.toggle},
                    {"base", arm.base}});
  }
  Json argv = Json::array();
  for (const std::string& argument : run.argv) argv.push_back(argument);
  Json json;
  json["schema_version"] = run.schema_version;
  json["run_id"] = run.run_id;
  json["created_utc"] = run.created_utc;
  json["design"] = run.design;
  json["family"] = run.family;
  json["argv"] = std::move(argv);
  json["seed"] = run.seed;
  json["processes"] = run.processes;
  json["blocks_per_process"] = run.blocks_per_process;
  json["cache"] = run.cache;
  if (run.replay_us) json["replay_us"] = *run.replay_us;
  if (run.max_launches) json["max_launches"] = *run.max_launches;
  if (run.stopping) {
    json["stopping"] = Json{{"half_width", run.stopping->half_width},
                            {"confidence", run.stopping->confidence},
                            {"looks", run.stopping->looks},
                            {"alpha_shares", run.stopping->alpha_shares}};
  }
  if (!run.planted.empty()) {
    json["planted"] = Json::array();
    for (const PlantedFault& planted : run.planted) json["planted"].push_back(ToJson(planted));
  }
  json["shapes"] = std::move(shapes);
  json["arms"] = std::move(arms);
  json["git"] = Json{{"sha", run.git.sha}, {"dirty", run.git.dirty}};
  json["registry_sha256"] = run.registry_sha256;
  json["kernel_source_sha256"] = run.kernel_source_sha256;
  if (!run.protocol_sha256.empty()) json["protocol_sha256"] = run.protocol_sha256;
  json["toolchain"] = Json{{"nvcc", run.toolchain.nvcc},
                           {"host_compiler", run.toolchain.host_compiler},
                           {"build_type", run.toolchain.build_type},
                           {"cuda_flags", run.toolchain.cuda_flags},
                           {"architectures", run.toolchain.architectures}};
  json["gpu"] = ToJson(run.gpu);
  return json;
}

Json ToJson(const Sample& sample) {
  return {{"seq", sample.seq},
          {"process", sample.process},
          {"shape", sample.shape},
          {"block", sample.block},
          {"order", sample.order},
          {"of", sample.of},
          {"arm", sample.arm},
          {"launches", sample.launches},
          {"us", sample.us},
          {"sm_mhz", ValueOrNull(sample.sm_mhz)},
          {"temp_c", ValueOrNull(sample.temp_c)},
          {"power_w", ValueOrNull(sample.power_w)},
          {"throttle", ValueOrNull(sample.throttle)},
          {"cache", sample.cache}};
}

Json ToJson(const Check& check) {
  return {{"process", check.process},
          {"arm", check.arm},
          {"shape", check.shape},
          {"inputs", check.inputs},
          {"seed", check.seed},
          {"correct", check.correct},
          {"max_err", FiniteOrNull(check.max_err)},
          {"max_err_limit", FiniteOrNull(check.max_err_limit)},
          {"mean_err", FiniteOrNull(check.mean_err)},
          {"mean_err_limit", FiniteOrNull(check.mean_err_limit)},
          {"lse_err", FiniteOrNull(check.lse_err)},
          {"lse_limit", FiniteOrNull(check.lse_limit)},
          {"guards_intact", check.guards_intact},
          {"bit_identical", check.bit_identical},
          {"reason", check.reason},
          {"rows", check.rows}};
}

Json ToJson(const BrokenArm& broken) {
  return {{"process", broken.process}, {"arm", broken.arm},     {"shape", broken.shape},
          {"kind", broken.kind},       {"doing", broken.doing}, {"reason", broken.reason}};
}

Json ToJson(const LaunchedCall& call) {
  return {{"arm", call.arm}, {"shape", call.shape}, {"lines", call.lines}};
}

Json ToJson(const PlantedFault& fault) {
  return {{"fault", fault.fault}, {"arm", fault.arm}, {"shape", fault.shape}};
}

Json ToJson(const std::vector<InstanceResources>& instances) {
  Json list = Json::array();
  for (const InstanceResources& r : instances) {
    list.push_back({{"variant", r.variant},
                    {"arch", r.arch},
                    {"registers", r.registers},
                    {"static_smem_bytes", r.static_smem_bytes},
                    {"stack_bytes", r.stack_bytes},
                    {"spill_store_bytes", r.spill_store_bytes},
                    {"spill_load_bytes", r.spill_load_bytes}});
  }
  return FileOf("instances", std::move(list));
}

Json ToJson(const Codegen& codegen) {
  Json list = Json::array();
  for (const InstanceCodegen& c : codegen.instances) {
    Json opcodes = Json::object();
    for (const auto& [opcode, count] : c.opcodes) opcodes[opcode] = count;
    Json instance = {{"variant", c.variant},
                     {"arch", c.arch},
                     {"code_sha256", c.code_sha256},
                     {"ptx_sha256", c.ptx_sha256}};
    instance["opcodes"] = std::move(opcodes);
    list.push_back(std::move(instance));
  }
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["disassembler"] = codegen.disassembler;
  json["instances"] = std::move(list);
  return json;
}

Json ToJson(const std::vector<InstanceLaunch>& instances) {
  Json list = Json::array();
  for (const InstanceLaunch& l : instances) {
    list.push_back({{"variant", l.variant},
                    {"dynamic_smem_bytes", l.dynamic_smem_bytes},
                    {"static_smem_bytes", l.static_smem_bytes},
                    {"registers", l.registers},
                    {"threads", l.threads},
                    {"ctas_per_sm", l.ctas_per_sm}});
  }
  return FileOf("instances", std::move(list));
}

Json ToJson(const std::vector<PeerInfo>& peers) {
  Json list = Json::array();
  for (const PeerInfo& peer : peers) {
    Json checks = Json::array();
    for (const PeerCheck& check : peer.checks) {
      checks.push_back({{"shape", check.shape},
                        {"correct", check.correct},
                        {"max_err", FiniteOrNull(check.max_err)},
                        {"max_err_limit", FiniteOrNull(check.max_err_limit)}});
    }
    Json json = {{"name", peer.name},
                 {"version", peer.version},
                 {"available", peer.available},
                 {"reason", peer.reason}};
    json["checks"] = std::move(checks);
    list.push_back(std::move(json));
  }
  return FileOf("peers", std::move(list));
}

}  // namespace warpledger::ablations
