// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/run.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/base/paths.h"
#include "ablations/measure/built_code.h"
#include "ablations/measure/controller.h"
#include "ablations/measure/describe_run.h"
#include "ablations/measure/peers_merge.h"
#include "ablations/measure/worker.h"
#include "ablations/record/record.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/designs/designs.h"
#include "ablations/subjects/sdpa/plan.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "kernels/sdpa/launch.h"
#include "nlohmann/json.hpp"
#include "warpledger_source_hashes.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

RunInfo DescribeRun(const RunOptions& options, const Design& design, const DeviceFacts& device) {
  RunInfo run;
  run.created_utc = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  run.gpu = DescribeGpu(device);
  run.run_id = absl::StrCat(options.planted.empty() ? "" : "planted-", options.design, "-",
                            absl::FormatTime("%Y%m%dT%H%M%SZ", absl::Now(), absl::UTCTimeZone()));
  run.design = options.design;
  run.family = options.design;
  run.argv = options.argv;
  run.seed = options.seed;
  run.processes = options.processes;
  run.blocks_per_process = options.blocks;
  run.cache = options.cache;
  run.replay_us = options.replay_us;
  run.max_launches = options.max_launches;
  run.stopping = options.stopping;
  run.planted = options.planted;
  for (const sdpa::NamedShape& shape : options.shapes) {
    run.shapes.push_back({std::string(shape.name), shape.problem});
  }
  for (const DesignArm& arm : design.arms) {
    run.arms.push_back({arm.name, sdpa::ConfigName(arm.config), arm.role, arm.toggle, arm.base});
  }
  run.arms.push_back({kFloorArm, "", kRoleFloor, "", ""});
  if (design.reads_kv) run.arms.push_back({kReadArm, "", kRoleFloor, "", ""});
  // No peer begins with x.
  if (!design.projected) {
    for (const std::string& peer : options.peers) {
      run.arms.push_back({absl::StrCat(kPeerPrefix, peer), "", kRolePeer, "", ""});
    }
  }
  DescribeBuild(&run);
  return run;
}

// resources.json and codegen.json of this very build, cut down to these instances.
absl::Status WriteInstanceFacts(const std::set<std::string>& instances, const std::string& dir) {
  for (const char* file : {kCodegenFile, kResourcesFile}) {
    const absl::StatusOr<std::string> path = FindProgramFile(absl::StrCat("codegen/", file));
    if (!path.ok()) return path.status();
    const absl::StatusOr<std::string> text = ReadFile(*path);
    if (!text.ok()) return text.status();
    Json facts = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!facts.is_object() || !facts["instances"].is_array()) {
      return absl::DataLossError(absl::StrCat(*path, " is damaged. Build again."));
    }
    if (std::string_view(file) == kCodegenFile) {
      RETURN_IF_ERROR(CheckCodegenOfThisBuild(*path, facts));
    }
    Json kept = Json::array();
    for (const Json& row : facts["instances"]) {
      if (instances.contains(row.value("variant", ""))) kept.push_back(row);
    }
    facts["instances"] = std::move(kept);
    RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(dir, "/", file), facts.dump(1) + "\n"));
  }
  return absl::OkStatus();
}

// What this build says of the design's instances, and launch.json of this GPU.
absl::Status WriteBuildFacts(const Design& design, const std::vector<sdpa::NamedShape>& shapes,
                             const std::string& dir) {
  std::vector<InstanceLaunch> launches;
  std::set<std::string> seen;
  for (const sdpa::NamedShape& shape : shapes) {
    for (const DesignArm& arm : design.arms) {
      const sdpa::KernelInstance* instance = sdpa::FindInstance(arm.config, shape.problem);
      if (instance == nullptr && !sdpa::EveryDesignRuns(shape.problem)) continue;
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
  RETURN_IF_ERROR(WriteInstanceFacts(seen, dir));
  return WriteFileAtomically(absl::StrCat(dir, "/", kLaunchFile),
                             DumpFile(ablations::ToJson(LaunchFile{launches})));
}

}  // namespace

absl::Status RunDesign(const RunOptions& options) {
  const absl::StatusOr<Design> design = FindDesign(options.design);
  if (!design.ok()) return design.status();
  absl::StatusOr<DeviceFacts> device = QueryDevice();
  if (!device.ok()) return device.status();
  RETURN_IF_ERROR(CheckShapes(*design, options.shapes, options.cache, device->l2_bytes,
                              [](const sdpa::Config& config, const sdpa::Problem& problem) {
                                return sdpa::FindInstance(config, problem) != nullptr;
                              }));
  ControlledRun controlled;
  controlled.run = DescribeRun(options, *design, *device);
  controlled.out_dir = options.out_dir;
  controlled.worker = {ExecutablePath(), "worker"};
  if (!options.peers.empty() && !design->projected) {
    const absl::StatusOr<std::string> script = FindProgramFile("ablations/subjects/sdpa/peers.py");
    if (script.ok()) {
      controlled.peers = {options.python, *script};
    } else {
      controlled.why_no_peers = std::string(script.status().message());
    }
  }
  controlled.replay_us = options.replay_us;
  controlled.max_launches = options.max_launches;
  controlled.silence_limit_s = options.silence_limit_s;
  controlled.arm_limit_s = options.arm_limit_s;
  controlled.write_build_facts = [&](const std::string& dir) {
    return WriteBuildFacts(*design, options.shapes, dir);
  };
  return RunControlled(controlled);
}

}  // namespace warpledger::ablations
