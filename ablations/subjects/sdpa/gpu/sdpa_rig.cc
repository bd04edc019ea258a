// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/gpu/sdpa_rig.h"

#include <optional>
#include <set>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/plan/job.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/built_code.h"
#include "ablations/subjects/sdpa/gpu/sdpa_runner.h"
#include "ablations/subjects/sdpa/planted_faults.h"
#include "ablations/subjects/sdpa/references.h"
#include "ablations/subjects/sdpa/subject.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "kernels/common/status_macros.h"
#include "kernels/common/text.h"
#include "kernels/sdpa/launch/launch.h"
#include "kernels/sdpa/library/choice.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/shared/tensor_maps.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

// The part of L2 that is set aside for arms whose K and V persist in it, and nothing for any
// other: what is set aside is missing to everything else (reports/decisions/0017).
class L2Aside {
 public:
  absl::Status SetFor(bool wanted) {
    if (wanted == is_set_) return absl::OkStatus();
    int device = 0;
    int most = 0;
    RETURN_IF_CUDA_ERROR(cudaGetDevice(&device), "asking for the device");
    RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, device),
                         "asking for how much of L2 may persist");
    RETURN_IF_CUDA_ERROR(
        cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, wanted ? static_cast<size_t>(most) : 0),
        "setting a part of L2 aside");
    is_set_ = wanted;
    return absl::OkStatus();
  }

 private:
  bool is_set_ = false;
};

Check CheckOf(const CheckOutcome& outcome) {
  const Accuracy& accuracy = outcome.accuracy;
  Check check;
  check.correct = outcome.correct;
  check.max_err = accuracy.max_err;
  check.max_err_limit = accuracy.max_err_limit;
  check.mean_err = accuracy.mean_err;
  check.mean_err_limit = accuracy.mean_err_limit;
  check.lse_err = accuracy.lse_err;
  check.lse_limit = accuracy.lse_limit;
  check.guards_intact = outcome.guards_intact;
  check.bit_identical = outcome.bit_identical;
  check.reason = outcome.reason;
  check.rows = accuracy.rows;
  return check;
}

class SdpaVariant final : public BenchVariant {
 public:
  SdpaVariant(const sdpa::Config& config, const sdpa::KernelInstance& instance, Fault fault,
              SdpaRunner& runner, References& references)
      : config_(config),
        instance_(instance),
        fault_(fault),
        runner_(runner),
        references_(references) {}

  const sdpa::Config& config() const { return config_; }

  absl::Status Prepare() override {
    references_.For(instance_.config);
    return runner_.AddStorage(instance_.config);
  }
  absl::StatusOr<Check> CheckCall() override {
    return Checked(runner_.Check(instance_, 0, references_.For(instance_.config), &config_));
  }
  absl::StatusOr<Check> CheckReplay(absl::FunctionRef<absl::Status()> replay) override {
    return Checked(runner_.CheckReplay(instance_, replay, &config_));
  }
  absl::Status Call(int set, Stream stream) const override {
    return runner_.Launch(instance_, set, stream, &config_);
  }
  bool IsSubmittedOneByOne() const override { return config_.stream_launch != 0; }
  std::string DescribeLaunch(std::string_view symbol, const void* parameter) const override {
    const bool has_maps = sdpa::FamilyOf(config_) == sdpa::Family::kWgmma &&
                          !config_.wgmma_cp_async &&
                          symbol.find("sdpa_wgmma") != symbol.npos;  // none that joins parts
    return has_maps ? sdpa::DescribePromotion(parameter) : "";
  }
  void PlantFault() const { runner_.PlantFault(fault_); }

 private:
  static absl::StatusOr<Check> Checked(const absl::StatusOr<CheckOutcome>& outcome) {
    if (!outcome.ok()) return outcome.status();
    return CheckOf(*outcome);
  }

  const sdpa::Config config_;
  const sdpa::KernelInstance& instance_;
  const Fault fault_;
  SdpaRunner& runner_;
  References& references_;
};

class SdpaBench final : public Bench {
 public:
  SdpaBench(const sdpa::Problem& problem, std::vector<sdpa::Inputs> inputs, SdpaRunner runner,
            uint64_t sample_seed, L2Aside& l2_aside)
      : problem_(problem),
        inputs_(std::move(inputs)),
        runner_(std::move(runner)),
        references_(problem_, inputs_.front(),
                    sdpa::SampleRows(problem_, kMaxReferenceFlops, sample_seed)),
        l2_aside_(l2_aside) {}

  int sets() const override { return runner_.sets(); }

  absl::StatusOr<std::unique_ptr<BenchVariant>> Bind(const PlannedArm& arm,
                                                     std::string_view fault_name) override {
    Fault fault = Fault::kNone;
    if (!fault_name.empty()) {
      ASSIGN_OR_RETURN(fault, FindFault(fault_name));
    }
    const std::optional<sdpa::Config> config = sdpa::ConfigFromName(arm.config);
    const sdpa::KernelInstance* instance = config ? sdpa::FindInstance(*config, problem_) : nullptr;
    if (instance == nullptr) {
      if (!sdpa::EveryDesignRuns(problem_)) return nullptr;
      return absl::InternalError(absl::StrCat("this build holds no instance for ", arm.name));
    }
    return std::make_unique<SdpaVariant>(*config, *instance, fault, runner_, references_);
  }

  absl::Status CallFloor(std::string_view name, int set, Stream stream) const override {
    if (name == kReadArm) return runner_.LaunchReadOfKv(set, stream);
    return absl::InternalError(absl::StrCat("there is no floor ", Text(name)));
  }

  absl::Status BeforeVariant(const BenchVariant* variant) override {
    const auto* ours = static_cast<const SdpaVariant*>(variant);
    if (ours != nullptr) ours->PlantFault();
    return l2_aside_.SetFor(ours != nullptr && ours->config().l2_persisting_kv != 0);
  }
  // What an arm's window keeps in L2 would be missing to the arms after it.
  absl::Status AfterVariant(const BenchVariant* variant) override {
    const auto* ours = static_cast<const SdpaVariant*>(variant);
    if (ours == nullptr || ours->config().l2_persisting_kv == 0) return absl::OkStatus();
    RETURN_IF_CUDA_ERROR(cudaCtxResetPersistingL2Cache(), "giving persisting lines of L2 back");
    return absl::OkStatus();
  }

 private:
  const sdpa::Problem problem_;
  const std::vector<sdpa::Inputs> inputs_;
  SdpaRunner runner_;
  References references_;
  L2Aside& l2_aside_;
};

// resources.json and codegen.json of this very build, cut down to these instances.
absl::Status WriteInstanceFacts(const std::set<std::string>& instances, const std::string& dir) {
  for (const char* file : {kCodegenFile, kResourcesFile}) {
    ASSIGN_OR_RETURN(const std::string path, FindProgramFile(absl::StrCat("codegen/", file)));
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    Json facts = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!facts.is_object() || !facts["instances"].is_array()) {
      return absl::DataLossError(absl::StrCat(path, " is damaged. Build again."));
    }
    if (std::string_view(file) == kCodegenFile) {
      RETURN_IF_ERROR(CheckCodegenOfThisBuild(path, facts));
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

class SdpaRig final : public Rig {
 public:
  absl::StatusOr<std::unique_ptr<Bench>> Open(const ShapeInfo& shape,
                                              const BenchInputs& wanted) override {
    ASSIGN_OR_RETURN(const sdpa::Problem problem, ProblemOf(shape));
    const auto* kind = absl::c_find_if(sdpa::kInputKinds, [&](const sdpa::NamedInputKind& each) {
      return each.name == wanted.kind;
    });
    if (kind == std::end(sdpa::kInputKinds)) {
      return absl::InvalidArgumentError(absl::StrCat("there are no inputs '", wanted.kind, "'"));
    }
    std::vector<sdpa::Inputs> inputs;
    for (const uint64_t seed : wanted.seeds) {
      inputs.push_back(sdpa::MakeInputs(problem, kind->kind, seed));
    }
    ASSIGN_OR_RETURN(SdpaRunner runner, SdpaRunner::Create(problem, inputs, wanted.rotation));
    return std::make_unique<SdpaBench>(problem, std::move(inputs), std::move(runner),
                                       wanted.sample_seed, l2_aside_);
  }

  // The library's: of E4M3 where the design's kernels take it.
  std::string ChosenFor(const PlannedDesign& design, const ShapeInfo& shape,
                        int sm_count) const override {
    const absl::StatusOr<sdpa::Problem> problem = ProblemOf(shape);
    if (!problem.ok() || problem->embed_dim > 0) return "";
    sdpa::Gpu gpu = {sm_count};
    int device = 0;
    if (cudaGetDevice(&device) == cudaSuccess) {
      cudaDeviceGetAttribute(&gpu.dram_bus_bits, cudaDevAttrGlobalMemoryBusWidth, device);
    }
    sdpa::TensorLayouts layouts = sdpa::ContiguousLayouts(*problem, problem->head_dim);
    const std::optional<sdpa::Config> first =
        design.arms.empty() ? std::nullopt : sdpa::ConfigFromName(design.arms.front().config);
    if (first && first->wgmma_fp8) {
      layouts.scales.emplace();
      layouts.scales->per_block = first->wgmma_fp8_block_scale != 0;
      // As the peer writes it, if the design has a kernel that does.
      layouts.e4m3_output = absl::c_any_of(design.arms, [](const PlannedArm& arm) {
        const std::optional<sdpa::Config> config = sdpa::ConfigFromName(arm.config);
        return config && config->wgmma_fp8_output;
      });
    }
    const sdpa::Choice choice = sdpa::ChooseKernel(*problem, layouts, gpu);
    return choice.kernel == nullptr ? "" : sdpa::ConfigName(choice.kernel->config);
  }

  absl::Status WriteEvidence(const PlannedDesign& design, const std::vector<ShapeInfo>& shapes,
                             const std::string& dir) const override {
    std::vector<InstanceLaunch> launches;
    std::set<std::string> seen;
    for (const ShapeInfo& shape : shapes) {
      ASSIGN_OR_RETURN(const sdpa::Problem problem, ProblemOf(shape));
      for (const PlannedArm& arm : design.arms) {
        const std::optional<sdpa::Config> config = sdpa::ConfigFromName(arm.config);
        const sdpa::KernelInstance* instance =
            config ? sdpa::FindInstance(*config, problem) : nullptr;
        if (instance == nullptr && !sdpa::EveryDesignRuns(problem)) continue;
        if (instance == nullptr) {
          return absl::InternalError(absl::StrCat("this build holds no instance of ", arm.config,
                                                  " for shape ", shape.name));
        }
        const std::string name = sdpa::InstanceName(instance->config);
        if (!seen.insert(name).second) continue;
        ASSIGN_OR_RETURN(sdpa::KernelAttributes attributes, sdpa::GetKernelAttributes(*instance));
        launches.push_back({name, attributes.dynamic_smem_bytes, attributes.static_smem_bytes,
                            attributes.registers, attributes.threads, attributes.ctas_per_sm});
      }
    }
    RETURN_IF_ERROR(WriteInstanceFacts(seen, dir));
    return WriteFileAtomically(absl::StrCat(dir, "/", kLaunchFile),
                               DumpFile(ToJson(LaunchFile{launches})));
  }

 private:
  L2Aside l2_aside_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Rig>> OpenSdpaRig() {
  if (const absl::StatusOr<DeviceFacts> device = QueryDevice(); !device.ok()) {
    return device.status();
  }
  return std::make_unique<SdpaRig>();
}

}  // namespace warpledger::ablations
