#include "ablations/run.h"

#include <set>

#include "ablations/designs.h"
#include "ablations/paths.h"
#include "ablations/peers_merge.h"
#include "ablations/plan.h"
#include "ablations/progress.h"
#include "ablations/record.h"
#include "ablations/store.h"
#include "ablations/subprocess.h"
#include "ablations/worker.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "kernels/common/nvml.h"
#include "kernels/sdpa/launch.h"
#include "warpledger_build_info.h"
#include "warpledger_git_info.h"
#include "warpledger_source_hashes.h"

namespace warpledger::ablations {
namespace {

std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

GpuInfo DescribeGpu(const DeviceFacts& device) {
  GpuInfo gpu;
  gpu.name = device.name;
  gpu.slug = device.slug;
  gpu.uuid = device.uuid;
  gpu.compute_capability = absl::StrCat(device.compute_major, ".", device.compute_minor);
  gpu.sm_count = device.sm_count;
  gpu.l2_bytes = device.l2_bytes;
  gpu.memory_bytes = device.memory_bytes;
  gpu.driver = absl::StrCat("CUDA ", CudaVersion(device.driver_version));
  gpu.cuda_runtime = CudaVersion(device.runtime_version);
  if (const auto nvml = NvmlDevice::Open(device.uuid); nvml.ok()) {
    if (const auto facts = nvml->Facts(); facts.ok()) {
      gpu.driver = absl::StrCat(facts->driver_version, " (", gpu.driver, ")");
      gpu.ecc = facts->ecc;
      gpu.max_sm_clock_mhz = facts->max_sm_clock_mhz;
      gpu.max_memory_clock_mhz = facts->max_memory_clock_mhz;
      gpu.power_limit_w = facts->power_limit_w;
    }
  }
  return gpu;
}

class Controller {
 public:
  explicit Controller(const RunOptions& options) : options_(options) {}

  absl::Status Run() {
    absl::StatusOr<Design> design = FindDesign(options_.design);
    if (!design.ok()) return design.status();
    design_ = *std::move(design);
    absl::StatusOr<DeviceFacts> device = QueryDevice();
    if (!device.ok()) return device.status();

    absl::StatusOr<std::unique_ptr<RecordWriter>> writer =
        RecordWriter::Open(options_.out_dir, DescribeRun(*device));
    if (!writer.ok()) return writer.status();
    writer_ = *std::move(writer);
    absl::StatusOr<PeerFindings> peers = LoadPeerFindings(options_.out_dir);
    if (!peers.ok()) return peers.status();
    peers_ = *std::move(peers);
    RETURN_IF_ERROR(WriteBuildFacts());

    const int64_t groups = options_.peers ? 2 : 1;
    const int64_t total = groups * options_.processes *
                          static_cast<int64_t>(options_.shapes.size()) * options_.blocks;
    Progress progress("blocks", total, static_cast<int64_t>(writer_->CompletedBlocks().size()));
    progress_ = &progress;
    if (writer_->dropped().Any()) {
      progress.Note(absl::StrCat("cut off an unfinished block of ", writer_->dropped().sample_lines,
                                 " samples; measuring it again"));
    }
    for (int process = 0; process < options_.processes; ++process) {
      RETURN_IF_ERROR(RunOurs(process));
      if (options_.peers) RETURN_IF_ERROR(RunPeers(process));
    }
    return absl::OkStatus();
  }

 private:
  RunInfo DescribeRun(const DeviceFacts& device) const {
    RunInfo run;
    run.created_utc = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
    run.gpu = DescribeGpu(device);
    run.run_id = absl::StrCat(options_.design, "-",
                              absl::FormatTime("%Y%m%dT%H%M%SZ", absl::Now(), absl::UTCTimeZone()));
    run.design = options_.design;
    run.family = options_.design;
    run.argv = options_.argv;
    run.seed = options_.seed;
    run.processes = options_.processes;
    run.blocks_per_process = options_.blocks;
    run.cache = "warm";
    for (const sdpa::NamedShape& shape : options_.shapes) {
      run.shapes.push_back({std::string(shape.name), shape.problem});
    }
    for (const DesignArm& arm : design_.arms) {
      run.arms.push_back({arm.name, sdpa::ConfigName(arm.config), arm.role, arm.toggle, arm.base});
    }
    run.arms.push_back({kFloorArm, "", kRoleFloor, "", ""});
    if (options_.peers) {
      for (const char* peer : kPeers) {
        run.arms.push_back({absl::StrCat(kPeerPrefix, peer), "", kRolePeer, "", ""});
      }
    }
    run.git = {kGitSha, kGitDirty};
    run.registry_sha256 = kRegistrySha256;
    run.kernel_source_sha256 = kKernelSourceSha256;
    run.protocol_sha256 = kProtocolSha256;
    run.toolchain = {build_info::kNvcc, build_info::kHostCompiler, build_info::kBuildType,
                     build_info::kCudaFlags, build_info::kCudaArchitectures};
    return run;
  }

  std::string InRecord(std::string_view file) const {
    return absl::StrCat(options_.out_dir, "/", std::string(file));
  }

  // resources.json and codegen.json of this very build, launch.json of this GPU.
  absl::Status WriteBuildFacts() const {
    for (const char* file : {kResourcesFile, kCodegenFile}) {
      absl::StatusOr<std::string> path = FindProgramFile(absl::StrCat("codegen/", file));
      if (!path.ok()) return path.status();
      absl::StatusOr<std::string> text = ReadFile(*path);
      if (!text.ok()) return text.status();
      RETURN_IF_ERROR(WriteFileAtomically(InRecord(file), *text));
    }
    std::vector<InstanceLaunch> launches;
    std::set<std::string> seen;
    for (const sdpa::NamedShape& shape : options_.shapes) {
      for (const DesignArm& arm : design_.arms) {
        const sdpa::KernelInstance* instance = sdpa::FindInstance(arm.config, shape.problem);
        if (instance == nullptr && shape.problem.head_dim != sdpa::kDefaultHeadDim) continue;
        if (instance == nullptr) {
          return absl::InternalError(absl::StrCat("this build holds no instance of ",
                                                  sdpa::ConfigName(arm.config), " for shape ",
                                                  std::string(shape.name)));
        }
        const std::string name = sdpa::InstanceName(instance->config);
        if (!seen.insert(name).second) continue;
        absl::StatusOr<sdpa::KernelAttributes> attributes = sdpa::GetKernelAttributes(*instance);
        if (!attributes.ok()) return attributes.status();
        launches.push_back({name, attributes->dynamic_smem_bytes, attributes->static_smem_bytes,
                            attributes->registers, attributes->threads, attributes->ctas_per_sm});
      }
    }
    return WriteFileAtomically(InRecord(kLaunchFile), DumpFile(ablations::ToJson(launches)));
  }

  bool Done(int process, const std::string& shape, int block, bool peers) const {
    return writer_->CompletedBlocks().contains(
        {.process = process, .shape = shape, .block = block, .peers = peers});
  }

  absl::Status Append(std::vector<Sample> samples) {
    const std::string where = absl::StrCat(
        "process ", samples[0].process + 1, " of ", options_.processes, ", ", samples[0].shape,
        absl::StartsWith(samples[0].arm, kPeerPrefix) ? ", peers" : "");
    RETURN_IF_ERROR(writer_->AppendBlock(std::move(samples)));
    progress_->Step(where);
    return absl::OkStatus();
  }

  absl::Status RunOurs(int process) {
    WorkerJob job;
    job.design = options_.design;
    job.process = process;
    job.seed = options_.seed;
    job.blocks = options_.blocks;
    job.replay_us = options_.replay_us;
    job.max_launches = options_.max_launches;
    for (const sdpa::NamedShape& shape : options_.shapes) {
      job.shapes.emplace_back(shape.name);
      for (int block = 0; block < options_.blocks; ++block) {
        if (Done(process, job.shapes.back(), block, false)) {
          job.done.emplace(job.shapes.back(), block);
        }
      }
    }
    if (job.done.size() == job.shapes.size() * static_cast<size_t>(options_.blocks)) {
      return absl::OkStatus();
    }
    return RunLines({ExecutablePath(), "worker"}, job.ToJson(),
                    absl::Seconds(options_.silence_limit_s),
                    [this](std::string_view line) { return TakeWorkerLine(line); });
  }

  absl::Status TakeWorkerLine(std::string_view line) {
    absl::StatusOr<nlohmann::ordered_json> json = ParseJson(line);
    if (!json.ok()) return json.status();
    if (json->contains("check")) {
      absl::StatusOr<Check> check = CheckFromJson((*json)["check"]);
      if (!check.ok()) return check.status();
      if (!check->correct) {
        progress_->Note(
            absl::StrCat("BROKEN: ", check->arm, " on ", check->shape, ": ", check->reason));
      }
      return writer_->AppendCheck(*check);
    }
    if (!json->contains("block")) {
      return absl::InternalError(absl::StrCat(
          "a worker printed what is neither a check nor a block: ", std::string(line)));
    }
    std::vector<Sample> samples;
    for (const auto& entry : (*json)["block"]) {
      absl::StatusOr<Sample> sample = SampleFromJson(entry);
      if (!sample.ok()) return sample.status();
      samples.push_back(*std::move(sample));
    }
    if (samples.empty()) return absl::InternalError("a worker printed a block without samples");
    return Append(std::move(samples));
  }

  // Peers are optional: what goes wrong with them is noted, and our own
  // measurements go on.
  absl::Status RunPeers(int process) {
    const absl::StatusOr<std::string> script = FindProgramFile("ablations/peers.py");
    absl::Status status = script.status();
    if (script.ok()) status = RunPeersScript(*script, process);
    if (!status.ok()) {
      progress_->Note(absl::StrCat("peers not measured: ", status.message()));
      peers_.NotMeasured(std::string(status.message()));
    }
    return WritePeers();
  }

  absl::Status RunPeersScript(const std::string& script, int process) {
    nlohmann::ordered_json shapes = nlohmann::ordered_json::array();
    for (const ShapeInfo& shape : writer_->run().shapes) {
      bool missing = false;
      for (int block = 0; block < options_.blocks; ++block) {
        missing = missing || !Done(process, shape.name, block, true);
      }
      if (missing) shapes.push_back(ablations::ToJson(shape));
    }
    if (shapes.empty()) return absl::OkStatus();
    for (nlohmann::ordered_json& shape : shapes) {
      for (const char* derived : {"flops", "min_bytes", "exponentials"}) shape.erase(derived);
    }
    const nlohmann::ordered_json request = {
        {"shapes", shapes},
        {"process", process},
        {"seed", options_.seed},
        {"blocks", options_.blocks},
        {"input_sets", kInputSets},
        {"target_replay_us", static_cast<int64_t>(options_.replay_us)},
        {"min_launches", kInputSets},
        {"max_launches", options_.max_launches},
        {"peers", kPeers}};
    std::vector<Sample> block;
    const auto flush = [&]() -> absl::Status {
      if (block.empty()) return absl::OkStatus();
      const bool done = Done(process, block[0].shape, block[0].block, true);
      std::vector<Sample> samples = std::move(block);
      block.clear();
      return done ? absl::OkStatus() : Append(std::move(samples));
    };
    RETURN_IF_ERROR(RunLines(
        {options_.python, script}, DumpLine(request), absl::Seconds(options_.silence_limit_s),
        [&](std::string_view line) -> absl::Status {
          absl::StatusOr<nlohmann::ordered_json> json = ParseJson(line);
          if (!json.ok()) return json.status();
          if (json->contains("peer")) return TakePeer((*json)["peer"]);
          absl::StatusOr<Sample> sample = SampleFromJson(*json);
          if (!sample.ok()) return sample.status();
          if (!block.empty() &&
              (block[0].shape != sample->shape || block[0].block != sample->block)) {
            RETURN_IF_ERROR(flush());
          }
          block.push_back(*std::move(sample));
          return absl::OkStatus();
        }));
    return flush();
  }

  // A peer's check is on disk before its first sample is: after a kill, blocks
  // that are done are not asked for again, and neither is their check.
  absl::Status TakePeer(const nlohmann::ordered_json& json) {
    absl::StatusOr<PeerInfo> peer = PeerInfoFromJson(json);
    if (!peer.ok()) return peer.status();
    peers_.Take(*peer);
    return WritePeers();
  }

  absl::Status WritePeers() {
    // A run that had nothing to ask the peers for leaves the file alone.
    if (peers_.empty()) return absl::OkStatus();
    return WriteFileAtomically(InRecord(kPeersFile), DumpFile(ablations::ToJson(peers_.All())));
  }

  const RunOptions& options_;
  Design design_;
  std::unique_ptr<RecordWriter> writer_;
  Progress* progress_ = nullptr;
  PeerFindings peers_;
};

}  // namespace

absl::Status RunDesign(const RunOptions& options) { return Controller(options).Run(); }

}  // namespace warpledger::ablations
