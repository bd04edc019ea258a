// SPDX-License-Identifier: Apache-2.0
// The machine code that this build's kernels are, by codegen.json beside the program.
//
// Errors: NotFound without the file, DataLoss where it is damaged, FailedPrecondition where it
// was collected from other sources than this program's.
//
//   absl::StatusOr<BuiltCode> code = BuiltCode::Load();
//   const std::string hash = code->HashOf("wgmma@causal", "9.0");

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ablations/record/record.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// A build whose last step failed can leave a program beside the facts of an older one: whether
// codegen.json's content, read from `path`, speaks of this program.
absl::Status CheckCodegenOfThisBuild(const std::string& path, const nlohmann::ordered_json& json);

// Knows no code, as it is made.
class BuiltCode {
 public:
  static absl::StatusOr<BuiltCode> Load();

  // SHA-256 of what a GPU of this compute capability ("9.0") runs of an instance; "" if there is
  // none.
  std::string HashOf(std::string_view instance, std::string_view compute_capability) const;

 private:
  Codegen codegen_;
};

}  // namespace warpledger::ablations
