// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "ablations/base/json_fields.h"
#include "ablations/record/record.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/dtype_name.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::string> ReadString(const Json& json, const std::string& path) {
  std::string value;
  if (absl::Status status = json_fields::Convert(json, path, &value); !status.ok()) return status;
  return value;
}

// Of what regular expressions are held against.
absl::Status CheckLength(const std::string& text, const std::string& path) {
  if (text.size() <= kMostMatchedBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected at most ", kMostMatchedBytes, " bytes, found ", text.size()));
}

absl::StatusOr<std::string> ReadCallLine(const Json& json, const std::string& path) {
  absl::StatusOr<std::string> line = ReadString(json, path);
  if (line.ok()) RETURN_IF_ERROR(CheckLength(*line, path));
  return line;
}

// Fails when the file was written by a later schema than this program knows.
absl::Status CheckSchema(const Json& json, int* version_out = nullptr) {
  int version = 0;
  Fields fields(json, "");
  fields.Get("schema_version", &version);
  fields.Require(version >= 1, "schema_version", "a schema version >= 1");
  if (!fields.status().ok()) return fields.status();
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "schema_version: this record has schema ", version, ", this program reads up to ",
        kSchemaVersion, "; judge it with the version that wrote it, or update"));
  }
  if (version_out != nullptr) *version_out = version;
  return absl::OkStatus();
}

absl::StatusOr<ShapeInfo> ReadShape(const Json& json, const std::string& path) {
  ShapeInfo shape;
  sdpa::Problem& p = shape.problem;
  Fields fields(json, path);
  fields.Get("name", &shape.name)
      .Get("batch", &p.batch)
      .Get("heads_q", &p.heads_q)
      .Get("heads_kv", &p.heads_kv)
      .Get("seq_q", &p.seq_q)
      .Get("seq_kv", &p.seq_kv)
      .Get("head_dim", &p.head_dim)
      .Get("causal", &p.causal);
  std::string dtype(sdpa::DtypeName(p.dtype));
  fields.GetIfPresent("dtype", &dtype);
  bool known = false;
  for (const sdpa::Dtype each : sdpa::kDtypes) {
    if (dtype != sdpa::DtypeName(each)) continue;
    p.dtype = each;
    known = true;
  }
  fields.Require(known, "dtype", "fp16 or bf16");
  if (json.is_object() && json.contains("embed_dim")) {
    fields.Get("embed_dim", &p.embed_dim);
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
  return fields.Result(std::move(shape));
}

absl::StatusOr<Arm> ReadArm(const Json& json, const std::string& path) {
  Arm arm;
  Fields fields(json, path);
  fields.Get("name", &arm.name)
      .Get("config", &arm.config)
      .Get("role", &arm.role)
      .Get("toggle", &arm.toggle)
      .Get("base", &arm.base);
  fields.Require(arm.role == kRoleBase || arm.role == kRoleStep || arm.role == kRoleWithout ||
                     arm.role == kRoleAa || arm.role == kRoleNull || arm.role == kRolePeer ||
                     arm.role == kRoleFloor || arm.role == kRoleCell || arm.role == kRolePlanted ||
                     arm.role == kRoleDelay,
                 "role", "one of base, step, without, aa, null, peer, floor, cell, planted, delay");
  return fields.Result(std::move(arm));
}

absl::StatusOr<GpuInfo> ReadGpu(const Json& json, const std::string& path) {
  GpuInfo gpu;
  Fields fields(json, path);
  fields.Get("name", &gpu.name)
      .Get("slug", &gpu.slug)
      .Get("uuid", &gpu.uuid)
      .Get("compute_capability", &gpu.compute_capability)
      .Get("sm_count", &gpu.sm_count)
      .Get("l2_bytes", &gpu.l2_bytes)
      .Get("memory_bytes", &gpu.memory_bytes)
      .Get("driver", &gpu.driver)
      .Get("cuda_runtime", &gpu.cuda_runtime)
      .Get("ecc", &gpu.ecc)
      .Get("max_sm_clock_mhz", &gpu.max_sm_clock_mhz)
      .Get("max_memory_clock_mhz", &gpu.max_memory_clock_mhz)
      .Get("power_limit_w", &gpu.power_limit_w);
  return fields.Result(std::move(gpu));
}

absl::StatusOr<Toolchain> ReadToolchain(const Json& json, const std::string& path) {
  Toolchain toolchain;
  Fields fields(json, path);
  fields.Get("nvcc", &toolchain.nvcc)
      .Get("host_compiler", &toolchain.host_compiler)
      .Get("build_type", &toolchain.build_type)
      .Get("cuda_flags", &toolchain.cuda_flags)
      .Get("architectures", &toolchain.architectures);
  return fields.Result(std::move(toolchain));
}

absl::StatusOr<GitInfo> ReadGit(const Json& json, const std::string& path) {
  GitInfo git;
  Fields fields(json, path);
  fields.Get("sha", &git.sha).Get("dirty", &git.dirty);
  return fields.Result(std::move(git));
}

absl::StatusOr<PlantedFault> ReadPlanted(const Json& json, const std::string& path) {
  PlantedFault planted;
  Fields fields(json, path);
  fields.Get("fault", &planted.fault).Get("arm", &planted.arm).Get("shape", &planted.shape);
  return fields.Result(std::move(planted));
}

absl::StatusOr<int> ReadInt(const Json& json, const std::string& path) {
  int value = 0;
  if (absl::Status status = json_fields::Convert(json, path, &value); !status.ok()) return status;
  return value;
}

absl::StatusOr<double> ReadDouble(const Json& json, const std::string& path) {
  double value = 0;
  if (absl::Status status = json_fields::Convert(json, path, &value); !status.ok()) return status;
  return value;
}

// Whether the looks are a schedule that a verdict can be based on.
bool IsSchedule(const StoppingRule& rule) {
  if (rule.looks.empty() || rule.looks.size() != rule.alpha_shares.size()) return false;
  double sum = 0;
  for (size_t i = 0; i < rule.looks.size(); ++i) {
    if (rule.looks[i] < 1 || (i > 0 && rule.looks[i] <= rule.looks[i - 1])) return false;
    if (!(rule.alpha_shares[i] > 0)) return false;
    sum += rule.alpha_shares[i];
  }
  return sum <= 1 + 1e-9;
}

absl::StatusOr<std::optional<StoppingRule>> ReadStopping(const Json& json,
                                                         const std::string& path) {
  StoppingRule rule;
  Fields fields(json, path);
  fields.Get("half_width", &rule.half_width)
      .Get("confidence", &rule.confidence)
      .GetList("looks", &rule.looks, ReadInt)
      .GetList("alpha_shares", &rule.alpha_shares, ReadDouble);
  fields.Require(rule.half_width > 0, "half_width", "a number above 0");
  fields.Require(rule.confidence > 0.5 && rule.confidence < 1, "confidence",
                 "a number between 0.5 and 1");
  fields.Require(IsSchedule(rule), "alpha_shares",
                 "one share above 0 for each ascending look, at most 1 in all");
  return fields.Result(std::optional<StoppingRule>(std::move(rule)));
}

absl::StatusOr<InstanceResources> ReadResources(const Json& json, const std::string& path) {
  InstanceResources r;
  Fields fields(json, path);
  fields.Get("variant", &r.variant)
      .Get("arch", &r.arch)
      .Get("registers", &r.registers)
      .GetBytes("static_smem_bytes", &r.static_smem_bytes)
      .GetBytes("stack_bytes", &r.stack_bytes)
      .GetBytes("spill_store_bytes", &r.spill_store_bytes)
      .GetBytes("spill_load_bytes", &r.spill_load_bytes);
  return fields.Result(std::move(r));
}

absl::StatusOr<InstanceCodegen> ReadCodegen(const Json& json, const std::string& path) {
  InstanceCodegen c;
  Fields fields(json, path);
  fields.Get("variant", &c.variant)
      .Get("arch", &c.arch)
      .Get("code_sha256", &c.code_sha256)
      .Get("ptx_sha256", &c.ptx_sha256)
      .Get("opcodes", &c.opcodes);
  for (const auto& [opcode, count] : c.opcodes) {
    RETURN_IF_ERROR(CheckLength(opcode, absl::StrCat(path, ".opcodes")));
    // A sum of them must be a number too.
    if (count < 0 || count > kMostInstructions) {
      return absl::DataLossError(absl::StrCat(path, ": opcodes: a number from 0 to ",
                                              kMostInstructions, " of ", opcode, ", not ", count));
    }
  }
  return fields.Result(std::move(c));
}

absl::StatusOr<InstanceLaunch> ReadLaunch(const Json& json, const std::string& path) {
  InstanceLaunch l;
  Fields fields(json, path);
  fields.Get("variant", &l.variant)
      .GetBytes("dynamic_smem_bytes", &l.dynamic_smem_bytes)
      .GetBytes("static_smem_bytes", &l.static_smem_bytes)
      .Get("registers", &l.registers)
      .Get("threads", &l.threads)
      .Get("ctas_per_sm", &l.ctas_per_sm);
  return fields.Result(std::move(l));
}

absl::StatusOr<PeerCheck> ReadPeerCheck(const Json& json, const std::string& path) {
  PeerCheck check;
  Fields fields(json, path);
  fields.Get("shape", &check.shape)
      .Get("correct", &check.correct)
      .GetOrNan("max_err", &check.max_err)
      .GetOrNan("max_err_limit", &check.max_err_limit);
  return fields.Result(std::move(check));
}

absl::StatusOr<PeerInfo> ReadPeer(const Json& json, const std::string& path) {
  PeerInfo peer;
  Fields fields(json, path);
  fields.Get("name", &peer.name)
      .Get("version", &peer.version)
      .Get("available", &peer.available)
      .Get("reason", &peer.reason)
      .GetList("checks", &peer.checks, ReadPeerCheck);
  return fields.Result(std::move(peer));
}

template <typename T, typename Read>
absl::StatusOr<std::vector<T>> ReadFileList(const Json& json, const char* name, Read read) {
  if (absl::Status status = CheckSchema(json); !status.ok()) return status;
  std::vector<T> list;
  Fields fields(json, "");
  fields.GetList(name, &list, read);
  return fields.Result(std::move(list));
}

}  // namespace

absl::StatusOr<RunInfo> RunInfoFromJson(const Json& json) {
  RunInfo run;
  if (absl::Status status = CheckSchema(json, &run.schema_version); !status.ok()) return status;
  Fields fields(json, "");
  fields.Get("run_id", &run.run_id)
      .Get("created_utc", &run.created_utc)
      .Get("design", &run.design)
      .Get("family", &run.family)
      .GetList("argv", &run.argv, ReadString)
      .Get("seed", &run.seed)
      .Get("processes", &run.processes)
      .Get("blocks_per_process", &run.blocks_per_process)
      .Get("cache", &run.cache)
      .GetIfPresent("replay_us", &run.replay_us)
      .GetIfPresent("max_launches", &run.max_launches);
  fields.RequireCount(run.processes, kMostProcesses, "processes");
  fields.RequireCount(run.blocks_per_process, kMostBlocks, "blocks_per_process");
  fields.Require(run.cache == kCacheWarm || run.cache == kCacheCold, "cache", "warm or cold");
  if (json.contains("stopping")) fields.GetObject("stopping", &run.stopping, ReadStopping);
  if (json.contains("planted")) fields.GetList("planted", &run.planted, ReadPlanted);
  fields.GetList("shapes", &run.shapes, ReadShape)
      .GetList("arms", &run.arms, ReadArm)
      .GetObject("git", &run.git, ReadGit)
      .Get("registry_sha256", &run.registry_sha256)
      .Get("kernel_source_sha256", &run.kernel_source_sha256)
      .GetIfPresent("protocol_sha256", &run.protocol_sha256)
      .GetObject("toolchain", &run.toolchain, ReadToolchain)
      .GetObject("gpu", &run.gpu, ReadGpu);
  return fields.Result(std::move(run));
}

absl::StatusOr<Sample> SampleFromJson(const Json& json) {
  Sample sample;
  Fields fields(json, "");
  fields.Get("seq", &sample.seq)
      .Get("process", &sample.process)
      .Get("shape", &sample.shape)
      .Get("block", &sample.block)
      .Get("order", &sample.order)
      .GetIfPresent("of", &sample.of)
      .Get("arm", &sample.arm)
      .Get("launches", &sample.launches)
      .Get("us", &sample.us)
      .Get("sm_mhz", &sample.sm_mhz)
      .Get("temp_c", &sample.temp_c)
      .Get("power_w", &sample.power_w)
      .Get("throttle", &sample.throttle)
      .Get("cache", &sample.cache);
  fields.Require(sample.process >= 0, "process", "a number from 0");
  fields.Require(sample.block >= 0, "block", "a number from 0");
  fields.Require(sample.us > 0 && std::isfinite(sample.us), "us", "a time above 0");
  return fields.Result(std::move(sample));
}

absl::StatusOr<Check> CheckFromJson(const Json& json) {
  Check check;
  Fields fields(json, "");
  fields.Get("process", &check.process)
      .Get("arm", &check.arm)
      .Get("shape", &check.shape)
      .Get("inputs", &check.inputs)
      .Get("seed", &check.seed)
      .Get("correct", &check.correct)
      .GetOrNan("max_err", &check.max_err)
      .GetOrNan("max_err_limit", &check.max_err_limit)
      .GetOrNan("mean_err", &check.mean_err)
      .GetOrNan("mean_err_limit", &check.mean_err_limit)
      .GetOrNan("lse_err", &check.lse_err)
      .GetOrNan("lse_limit", &check.lse_limit)
      .Get("guards_intact", &check.guards_intact)
      .Get("bit_identical", &check.bit_identical)
      .Get("reason", &check.reason);
  if (json.contains("rows")) fields.Get("rows", &check.rows);
  return fields.Result(std::move(check));
}

absl::StatusOr<BrokenArm> BrokenArmFromJson(const Json& json) {
  BrokenArm broken;
  Fields fields(json, "");
  fields.Get("process", &broken.process)
      .Get("arm", &broken.arm)
      .Get("shape", &broken.shape)
      .Get("kind", &broken.kind)
      .Get("doing", &broken.doing)
      .Get("reason", &broken.reason);
  fields.Require(!broken.kind.empty(), "kind", "a text that is not empty");
  fields.Require(!broken.reason.empty(), "reason", "a text that is not empty");
  return fields.Result(std::move(broken));
}

absl::StatusOr<LaunchedCall> LaunchedCallFromJson(const Json& json) {
  LaunchedCall call;
  Fields fields(json, "");
  fields.Get("arm", &call.arm)
      .Get("shape", &call.shape)
      .GetList("lines", &call.lines, ReadCallLine);
  fields.Require(!call.lines.empty(), "lines", "at least how the calls are launched");
  return fields.Result(std::move(call));
}

absl::StatusOr<PlantedFault> PlantedFaultFromJson(const Json& json) {
  return ReadPlanted(json, "");
}

absl::StatusOr<std::vector<InstanceResources>> ResourcesFromJson(const Json& json) {
  return ReadFileList<InstanceResources>(json, "instances", ReadResources);
}

absl::StatusOr<Codegen> CodegenFromJson(const Json& json) {
  if (absl::Status status = CheckSchema(json); !status.ok()) return status;
  Codegen codegen;
  Fields fields(json, "");
  fields.Get("disassembler", &codegen.disassembler)
      .GetList("instances", &codegen.instances, ReadCodegen);
  return fields.Result(std::move(codegen));
}

absl::StatusOr<std::vector<InstanceLaunch>> LaunchFromJson(const Json& json) {
  return ReadFileList<InstanceLaunch>(json, "instances", ReadLaunch);
}

absl::StatusOr<std::vector<PeerInfo>> PeersFromJson(const Json& json) {
  return ReadFileList<PeerInfo>(json, "peers", ReadPeer);
}

absl::StatusOr<PeerInfo> PeerInfoFromJson(const Json& json) { return ReadPeer(json, ""); }

}  // namespace warpledger::ablations
