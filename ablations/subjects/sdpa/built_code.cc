// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/built_code.h"

#include <utility>

#include "ablations/base/files.h"
#include "ablations/record/store.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"
#include "warpledger_source_hashes.h"

namespace warpledger::ablations {

absl::Status CheckCodegenOfThisBuild(const std::string& path, const nlohmann::ordered_json& json) {
  if (json.contains("kernel_source_sha256") &&
      json["kernel_source_sha256"] == kKernelSourceSha256) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   " was collected from other kernel sources than this program's, so the record "
                   "would prove the wrong machine code. Build everything (cmake --build), then "
                   "install again."));
}

absl::StatusOr<BuiltCode> BuiltCode::Load() {
  ASSIGN_OR_RETURN(const std::string path, FindProgramFile(absl::StrCat("codegen/", kCodegenFile)));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto damaged = [&](const absl::Status& why) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged: ", why.message(), ". Build again."));
  };
  const absl::StatusOr<nlohmann::ordered_json> json = ParseJson(text);
  if (!json.ok()) return damaged(json.status());
  absl::StatusOr<Codegen> codegen = FromJson<Codegen>(*json);
  if (!codegen.ok()) return damaged(codegen.status());
  RETURN_IF_ERROR(CheckCodegenOfThisBuild(path, *json));
  BuiltCode out;
  out.codegen_ = *std::move(codegen);
  return out;
}

std::string BuiltCode::HashOf(std::string_view instance,
                              std::string_view compute_capability) const {
  GpuInfo gpu;
  gpu.compute_capability = std::string(compute_capability);
  const InstanceCodegen* found = CodeFor(ArchOf(gpu), codegen_.instances, instance);
  return found != nullptr ? found->code_sha256 : "";
}

}  // namespace warpledger::ablations
