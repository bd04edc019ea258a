#include "ablations/record.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

absl::Status WrongType(const std::string& path, const char* expected, const Json& found) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected ", expected, ", found ", DumpLine(found).substr(0, 60)));
}

absl::Status Convert(const Json& json, const std::string& path, std::string* out) {
  if (!json.is_string()) return WrongType(path, "a string", json);
  *out = json.get<std::string>();
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, bool* out) {
  if (!json.is_boolean()) return WrongType(path, "true or false", json);
  *out = json.get<bool>();
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, uint64_t* out) {
  if (!json.is_number_unsigned()) return WrongType(path, "an integer >= 0", json);
  *out = json.get<uint64_t>();
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, int64_t* out) {
  // A literal above 2^63-1 is unsigned to the parser and would wrap around.
  if (!json.is_number_integer() ||
      (json.is_number_unsigned() &&
       json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))) {
    return WrongType(path, "an integer", json);
  }
  *out = json.get<int64_t>();
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, int* out) {
  int64_t wide = 0;
  if (absl::Status status = Convert(json, path, &wide); !status.ok()) return status;
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    return WrongType(path, "a 32-bit integer", json);
  }
  *out = static_cast<int>(wide);
  return absl::OkStatus();
}

absl::Status Convert(const Json& json, const std::string& path, double* out) {
  if (!json.is_number()) return WrongType(path, "a number", json);
  *out = json.get<double>();
  return absl::OkStatus();
}

template <typename T>
absl::Status Convert(const Json& json, const std::string& path, std::optional<T>* out) {
  if (json.is_null()) {
    out->reset();
    return absl::OkStatus();
  }
  T value{};
  if (absl::Status status = Convert(json, path, &value); !status.ok()) return status;
  *out = std::move(value);
  return absl::OkStatus();
}

template <typename T>
absl::Status Convert(const Json& json, const std::string& path, std::map<std::string, T>* out) {
  if (!json.is_object()) return WrongType(path, "an object", json);
  for (const auto& [key, value] : json.items()) {
    if (absl::Status status = Convert(value, absl::StrCat(path, ".", key), &(*out)[key]);
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

// Reads the fields of one object; keeps the first error and skips the rest.
class Fields {
 public:
  Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) {
      status_ = WrongType(path_.empty() ? "value" : path_, "an object", json);
    }
  }

  template <typename T>
  Fields& Get(const char* name, T* out) {
    if (const Json* field = Find(name)) status_ = Convert(*field, Path(name), out);
    return *this;
  }

  // null, which stands for "not a finite number", reads as NaN.
  Fields& GetOrNan(const char* name, double* out) {
    std::optional<double> value;
    Get(name, &value);
    if (status_.ok()) *out = value.value_or(std::numeric_limits<double>::quiet_NaN());
    return *this;
  }

  template <typename T>
  Fields& GetIfPresent(const char* name, T* out) {
    if (status_.ok() && json_.contains(name)) Get(name, out);
    return *this;
  }

  // `read(element, path)` returns absl::StatusOr<T>.
  template <typename T, typename Read>
  Fields& GetList(const char* name, std::vector<T>* out, Read read) {
    const Json* field = Find(name);
    if (field == nullptr) return *this;
    if (!field->is_array()) {
      status_ = WrongType(Path(name), "a list", *field);
      return *this;
    }
    out->clear();
    for (size_t i = 0; i < field->size() && status_.ok(); ++i) {
      absl::StatusOr<T> element = read((*field)[i], absl::StrCat(Path(name), "[", i, "]"));
      if (element.ok()) {
        out->push_back(*std::move(element));
      } else {
        status_ = element.status();
      }
    }
    return *this;
  }

  template <typename T, typename Read>
  Fields& GetObject(const char* name, T* out, Read read) {
    const Json* field = Find(name);
    if (field == nullptr) return *this;
    absl::StatusOr<T> value = read(*field, Path(name));
    if (value.ok()) {
      *out = *std::move(value);
    } else {
      status_ = value.status();
    }
    return *this;
  }

  // A size in memory. What no machine has would overflow the sums that use it.
  Fields& GetBytes(const char* name, int64_t* out) {
    constexpr int64_t kMost = int64_t{1} << 50;
    Get(name, out);
    Require(*out >= 0 && *out <= kMost, name, "a number of bytes");
    return *this;
  }

  void Require(bool holds, const char* name, const char* rule) {
    if (status_.ok() && !holds) status_ = WrongType(Path(name), rule, json_[name]);
  }

  const absl::Status& status() const { return status_; }
  template <typename T>
  absl::StatusOr<T> Result(T value) const {
    if (!status_.ok()) return status_;
    return value;
  }

 private:
  std::string Path(const char* name) const {
    return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
  }
  const Json* Find(const char* name) {
    if (!status_.ok()) return nullptr;
    const auto it = json_.find(name);
    if (it == json_.end()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat(Path(name), ": missing; reports/RECORD.md lists the fields of this file"));
      return nullptr;
    }
    return &*it;
  }

  const Json& json_;
  std::string path_;
  absl::Status status_;
};

absl::StatusOr<std::string> ReadString(const Json& json, const std::string& path) {
  std::string value;
  if (absl::Status status = Convert(json, path, &value); !status.ok()) return status;
  return value;
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

// JSON has no NaN or infinity; null says that there is no finite figure.
Json FiniteOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <typename T>
Json ValueOrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
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
  if (absl::Status status = Convert(json, path, &value); !status.ok()) return status;
  return value;
}

absl::StatusOr<double> ReadDouble(const Json& json, const std::string& path) {
  double value = 0;
  if (absl::Status status = Convert(json, path, &value); !status.ok()) return status;
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
      .Get("cache", &run.cache);
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
  fields.Get("arm", &call.arm).Get("shape", &call.shape).GetList("lines", &call.lines, ReadString);
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

absl::StatusOr<Json> ParseJson(std::string_view text) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not JSON: ", error.what()));
  }
}

std::string DumpLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string DumpFile(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ArchOf(const GpuInfo& gpu) {
  std::string digits;
  for (const char c : gpu.compute_capability) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) digits.push_back(c);
  }
  return absl::StrCat("sm_", digits);
}

}  // namespace warpledger::ablations
