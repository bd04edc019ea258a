// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/rig/study_rig.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <optional>

#include "ablations/base/files.h"
#include "ablations/record/store.h"
#include "ablations/subjects/host/host_rig.h"
#include "ablations/subjects/study/data.h"
#include "ablations/subjects/study/rig/buffers.h"
#include "ablations/subjects/study/rig/library.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

// Two, so that an element that nobody writes differs between two calls, in integers too.
constexpr unsigned char kPoison = 0xff;
constexpr unsigned char kOtherPoison = 0x5a;

// What outputs are held against.
struct Right {
  std::vector<std::vector<double>> outputs;
  std::vector<std::pair<double, double>> limits;
};

class StudyBench;

// "study.toml:38: ", where it states the claim, or the sources; empty where the file is no longer
// what is measured.
std::string PlaceIn(const StudyDefinition& definition, const std::string& path) {
  const absl::StatusOr<StudyFile> file = StudyFile::Load(definition.folder);
  if (!file.ok() || file->study != definition.study) return "";
  const std::string place = file->toml.PlaceOf(path);
  return absl::StrCat(place.substr(place.rfind('/') + 1), ": ");
}

std::string PathOf(const Study& study, const std::string& toggle) {
  for (size_t i = 0; i < study.claim.size(); ++i) {
    if (study.claim[i].id == toggle) return absl::StrCat("claim[", i, "]");
  }
  return "sources";
}

// Planted errors that limits would let through, as study_data.py plants them.
std::vector<std::string> LetThrough(const SizedTensor& tensor, const std::vector<double>& right,
                                    std::pair<double, double> limits) {
  const size_t cols = tensor.shape.size() > 1 ? static_cast<size_t>(tensor.shape.back()) : 1;
  const size_t middle = right.size() / cols / 2;
  const double mean =
      std::accumulate(right.begin(), right.end(), 0.0) / static_cast<double>(right.size());
  const auto planted = [&](size_t i, std::string_view what) {
    const size_t row = i / cols;
    if (what == "the mean everywhere") return mean;
    if (what == "two swapped rows") {
      if (middle == 0 || (row != middle && row != middle - 1)) return right[i];
      return right[row == middle ? i - cols : i + cols];
    }
    return row != middle ? right[i] : what == "a dropped row" ? 0 : 1.05 * right[i];
  };
  std::vector<std::string> found;
  for (const char* what :
       {"a dropped row", "a row scaled by 1.05", "two swapped rows", "the mean everywhere"}) {
    double most = 0;
    double sum = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      const double error = std::abs(planted(i, what) - right[i]);
      most = std::max(most, error);
      sum += error;
    }
    const bool is_seen =
        most > limits.first || sum / static_cast<double>(right.size()) > limits.second;
    if (most > 0 && !is_seen) found.push_back(absl::StrCat(what, " of ", tensor.name));
  }
  return found;
}

class StudyVariant final : public BenchVariant {
 public:
  // `toggle`: the claim that its checks belong to; empty: to none.
  StudyVariant(std::string variant, std::string toggle, StudyBench& bench)
      : variant_(std::move(variant)), toggle_(std::move(toggle)), bench_(bench) {}

  absl::Status Prepare() override;
  absl::StatusOr<Check> CheckCall() override;
  absl::StatusOr<Check> CheckReplay(absl::FunctionRef<absl::Status()> replay) override;
  absl::Status Call(int set, Stream stream) const override;

  // It writes into its inputs, as its check found.
  bool spoils_inputs() const { return spoils_inputs_; }
  // Poisons the set, calls and waits.
  absl::StatusOr<StudyOutput> Run(int set, unsigned char poison) const;

 private:
  Check Placed(Check check) const;

  const std::string variant_;
  const std::string toggle_;
  StudyBench& bench_;
  mutable std::shared_ptr<const StudyLibrary> library_;  // loaded by the first call
  bool spoils_inputs_ = false;
};

class StudyBench final : public Bench {
 public:
  StudyBench(const StudySubject& subject, const Memory& memory, StudyLayout layout)
      : subject_(subject), memory_(memory), layout_(std::move(layout)) {}

  absl::Status Fill(const BenchInputs& wanted) {
    const StudyDefinition& definition = subject_.definition();
    absl::StatusOr<StudyData> made = MakeData(definition.study, definition.folder,
                                              layout_.parameters, wanted.seeds, /*probe=*/false);
    if (!made.ok()) {
      return absl::Status(made.status().code(), absl::StrCat(PlaceIn(definition, "check.reference"),
                                                             std::string(made.status().message())));
    }
    StudyData& data = *made;
    const size_t count = std::max(data.inputs.size(), static_cast<size_t>(wanted.rotation));
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(auto set,
                       StudyBuffers::Create(memory_, layout_, data.inputs[i % data.inputs.size()]));
      sets_.push_back(std::move(set));
    }
    if (!data.reference.empty()) right_ = Right{std::move(data.reference), std::move(data.limits)};
    return absl::OkStatus();
  }

  // Runs the variant that is the reference, where one is.
  absl::Status FindRight() {
    if (right_) return absl::OkStatus();
    const StudyCheck& check = definition().study.check;
    ASSIGN_OR_RETURN(const StudyOutput out, StudyVariant(check.variant, "", *this).Run(0, kPoison));
    Right right;
    for (size_t i = 0; i < layout_.outputs.size(); ++i) {
      const SizedTensor& tensor = layout_.outputs[i];
      const std::vector<double>& values =
          right.outputs.emplace_back(Decode(tensor.dtype, out.tensors[i].data(), tensor.elements));
      double largest = 0;
      for (const double value : values) {
        if (!std::isfinite(value)) {
          return absl::InternalError(absl::StrCat("variant '", check.variant,
                                                  "', the reference, gives NaN or infinity in ",
                                                  tensor.name));
        }
        largest = std::max(largest, std::abs(value));
      }
      const double limit = check.atol + check.rtol * largest;
      right.limits.emplace_back(limit, limit);
      const std::vector<std::string> found = LetThrough(tensor, values, right.limits.back());
      if (found.empty()) continue;
      std::fprintf(stderr, "warpledger: %scheck: `atol` and `rtol` would let through: %s\n",
                   PlaceIn(definition(), "check").c_str(), absl::StrJoin(found, ", ").c_str());
    }
    right_ = std::move(right);
    return absl::OkStatus();
  }

  int sets() const override { return static_cast<int>(sets_.size()); }

  absl::StatusOr<std::unique_ptr<BenchVariant>> Bind(const PlannedArm& arm,
                                                     std::string_view fault) override {
    if (!fault.empty()) return absl::InvalidArgumentError("no fault can be planted in a study");
    return std::make_unique<StudyVariant>(arm.config, arm.toggle, *this);
  }

  // Other arms are timed on the inputs as they were made.
  absl::Status AfterVariant(const BenchVariant* variant) override {
    const auto* ours = static_cast<const StudyVariant*>(variant);
    if (ours == nullptr || !ours->spoils_inputs()) return absl::OkStatus();
    for (const auto& set : sets_) RETURN_IF_ERROR(set->RestoreInputs());
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const StudyLibrary>> Load(const std::string& variant) const {
    const auto& libraries = subject_.definition().libraries;
    const auto found = libraries.find(variant);
    if (found == libraries.end()) {
      return absl::InternalError(absl::StrCat("variant '", variant, "' was not built"));
    }
    return StudyLibrary::Load(found->second.first, found->second.second);
  }

  StudyBuffers& set(int index) const { return *sets_[static_cast<size_t>(index)]; }
  const StudyDefinition& definition() const { return subject_.definition(); }
  const Memory& memory() const { return memory_; }
  const StudyLayout& layout() const { return layout_; }
  const Right& right() const { return *right_; }

 private:
  const StudySubject& subject_;
  const Memory& memory_;
  const StudyLayout layout_;
  std::vector<std::unique_ptr<StudyBuffers>> sets_;
  std::optional<Right> right_;
};

// The output that is furthest off, by its share of what it may be off.
void HoldAgainst(const Right& right, const StudyLayout& layout, const StudyOutput& out,
                 Check* check) {
  double worst = -1;
  for (size_t i = 0; i < layout.outputs.size(); ++i) {
    const SizedTensor& tensor = layout.outputs[i];
    const std::vector<double> given = Decode(tensor.dtype, out.tensors[i].data(), tensor.elements);
    double max_err = 0;
    double sum = 0;
    for (size_t k = 0; k < given.size(); ++k) {
      const double error = std::abs(given[k] - right.outputs[i][k]);
      // Written so that NaN stays.
      if (!(error <= max_err) && !std::isnan(max_err)) max_err = error;
      sum += error;
    }
    const double mean_err = sum / static_cast<double>(given.size());
    const auto [max_limit, mean_limit] = right.limits[i];
    const bool holds = max_err <= max_limit && mean_err <= mean_limit;
    const double share =
        holds ? max_err / std::max(max_limit, 1e-300) : std::numeric_limits<double>::infinity();
    if (share <= worst) continue;
    worst = share;
    check->max_err = max_err;
    check->max_err_limit = max_limit;
    check->mean_err = mean_err;
    check->mean_err_limit = mean_limit;
    if (!holds) {
      check->reason = std::isnan(max_err) ? absl::StrCat("NaN in output '", tensor.name,
                                                         "', which may not have been written")
                                          : absl::StrCat("output '", tensor.name, "' is wrong");
    }
  }
}

Check StudyVariant::Placed(Check check) const {
  if (check.reason.empty()) return check;
  const StudyDefinition& definition = bench_.definition();
  check.reason = absl::StrCat(PlaceIn(definition, PathOf(definition.study, toggle_)), check.reason);
  return check;
}

absl::Status StudyVariant::Prepare() { return bench_.FindRight(); }

absl::Status StudyVariant::Call(int set, Stream stream) const {
  const WarpledgerCall call = bench_.set(set).CallOn(stream);
  if (library_ == nullptr) {
    ASSIGN_OR_RETURN(library_, bench_.Load(variant_));
    RETURN_IF_ERROR(library_->Prepare(call));
  }
  return library_->Call(call);
}

absl::StatusOr<StudyOutput> StudyVariant::Run(int set, unsigned char poison) const {
  RETURN_IF_ERROR(bench_.set(set).Poison(poison));
  RETURN_IF_ERROR(Call(set, nullptr));
  RETURN_IF_ERROR(bench_.memory().WaitForWork());
  return bench_.set(set).ReadBack(poison);
}

absl::StatusOr<Check> StudyVariant::CheckCall() {
  ASSIGN_OR_RETURN(const StudyOutput out, Run(0, kPoison));
  ASSIGN_OR_RETURN(const StudyOutput again, Run(0, kOtherPoison));
  spoils_inputs_ = !out.inputs_intact || !again.inputs_intact;
  Check check;
  check.lse_err = std::nan("");
  check.guards_intact = out.guards_intact && again.guards_intact;
  check.bit_identical = out.tensors == again.tensors;
  HoldAgainst(bench_.right(), bench_.layout(), out, &check);
  if (!check.reason.empty()) {
    // It stands.
  } else if (spoils_inputs_) {
    check.reason = "it wrote into its inputs";
  } else if (!check.guards_intact) {
    check.reason = "it wrote outside its output";
  } else if (!check.bit_identical) {
    check.reason = "two calls on the same inputs differ, or an element was not written";
  }
  check.correct = check.reason.empty();
  return Placed(std::move(check));
}

absl::StatusOr<Check> StudyVariant::CheckReplay(absl::FunctionRef<absl::Status()> replay) {
  for (int set = 0; set < bench_.sets(); ++set) RETURN_IF_ERROR(bench_.set(set).Poison(kPoison));
  RETURN_IF_ERROR(replay());
  Check check;
  check.lse_err = std::nan("");
  check.guards_intact = check.bit_identical = true;
  for (int set = 0; set < bench_.sets(); ++set) {
    ASSIGN_OR_RETURN(const StudyOutput replayed, bench_.set(set).ReadBack(kPoison));
    ASSIGN_OR_RETURN(const StudyOutput called, Run(set, kPoison));
    check.guards_intact = check.guards_intact && replayed.guards_intact;
    if (replayed.tensors == called.tensors) continue;
    check.bit_identical = false;
    check.reason =
        absl::StrCat("what a replay leaves of input set ", set, " differs from a single call");
  }
  if (check.reason.empty() && !check.guards_intact) {
    check.reason = "the replay wrote outside its output";
  }
  check.correct = check.reason.empty();
  return Placed(std::move(check));
}

StudyGpu& TheGpu() {
  static StudyGpu gpu = {};
  return gpu;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Bench>> StudyRig::Open(const ShapeInfo& problem,
                                                      const BenchInputs& inputs) {
  const Study& study = subject_.definition().study;
  StudyLayout layout;
  ASSIGN_OR_RETURN(layout.parameters, subject_.ParametersOf(problem));
  layout.inputs = Sized(study.input, layout.parameters);
  layout.outputs = Sized(study.output, layout.parameters);
  ASSIGN_OR_RETURN(layout.workspace_bytes, EvaluateCount(study.workspace.text, layout.parameters));
  auto bench = std::make_unique<StudyBench>(subject_, *memory_, std::move(layout));
  RETURN_IF_ERROR(bench->Fill(inputs));
  return bench;
}

absl::Status StudyRig::WriteEvidence(const PlannedDesign& /*design*/,
                                     const std::vector<ShapeInfo>& /*problems*/,
                                     const std::string& dir) const {
  const StudyBuild* build = subject_.build();
  if (build == nullptr) return absl::InternalError("the study was not built in this process");
  const auto write = [&](const char* file, const nlohmann::ordered_json& json) {
    return WriteFileAtomically(absl::StrCat(dir, "/", file), DumpFile(json));
  };
  RETURN_IF_ERROR(write(kCodegenFile, ToJson(build->codegen)));
  RETURN_IF_ERROR(write(kResourcesFile, ToJson(build->resources)));
  return write(kLaunchFile, ToJson(LaunchFile{}));
}

void SetStudyGpu(StudyGpu gpu) { TheGpu() = gpu; }

absl::StatusOr<Device> OpenStudyDevice(const Subject& subject) {
  const auto& study = static_cast<const StudySubject&>(subject);
  if (study.definition().study.device == kOnCpu) {
    return Device{std::make_shared<HostMachine>(), std::make_shared<StudyRig>(study, HostMemory())};
  }
  if (TheGpu().machine == nullptr) {
    return absl::UnimplementedError(
        "this program was built without CUDA, so it launches no kernel of a study");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Machine> machine, TheGpu().machine());
  if (const StudyBuild* build = study.build(); build != nullptr) {
    ASSIGN_OR_RETURN(const GpuInfo gpu, machine->Describe());
    if (CodeFor(ArchOf(gpu), build->codegen.instances, kStudyBase) == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          study.definition().folder, "/", kStudyFile,
          ": architectures: none of them runs on this GPU; write [\"", ArchOf(gpu), "\"]"));
    }
  }
  return Device{std::move(machine), std::make_shared<StudyRig>(study, TheGpu().memory())};
}

namespace {

absl::StatusOr<std::unique_ptr<const Subject>> FromFolder(const std::string& folder,
                                                          const std::string& design) {
  ASSIGN_OR_RETURN(const StudyFile file, StudyFile::Load(folder));
  return StudySubject::Build(file, design);
}

absl::StatusOr<std::unique_ptr<const Subject>> FromDefinition(const nlohmann::ordered_json& json) {
  ASSIGN_OR_RETURN(StudyDefinition definition, FromJson<StudyDefinition>(json));
  return StudySubject::Of(std::move(definition));
}

}  // namespace

SubjectKind StudyKind() { return {"study", &FromFolder, &FromDefinition, &OpenStudyDevice}; }

}  // namespace warpledger::ablations
