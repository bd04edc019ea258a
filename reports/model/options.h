// SPDX-License-Identifier: Apache-2.0
// What a page is made with besides its records.
//
//   RenderReport(summary, {.picture_prefix = "plots/"})

#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::report {

// What the instances of this tree compile to: kernels/sdpa/machine_code.json, which a codegen test
// holds to every build.
//
// Errors: ParseTreeCode() gives InvalidArgument with the path and what was found there.
//
//   absl::StatusOr<TreeCode> tree = ParseTreeCode(json);
//   if (const TreeCode::Instance* now = tree->Find("9.0", {"wgmma@causal", "wgmma"})) …

// From the root of the sources.
inline constexpr char kTreeCodeFile[] = "kernels/sdpa/machine_code.json";

// Empty, as it is made, where nothing is known of this tree.
class TreeCode {
 public:
  // As nvcc names itself: "13.0.88".
  const std::string& nvcc() const { return nvcc_; }
  // Whether it speaks of GPUs of this compute capability ("9.0") at all.
  bool Covers(std::string_view compute_capability) const;
  using Instance = std::pair<const std::string, std::string>;  // name, hash of its machine code
  // What runs there under the first of these names that exists; null where none does.
  const Instance* Find(std::string_view compute_capability,
                       absl::Span<const std::string> names) const;
  void Visit(auto& f);  // the file's fields

 private:
  using Hashes = std::map<std::string, std::string, std::less<>>;
  std::string nvcc_;
  std::map<std::string, Hashes, std::less<>> archs_;  // {"sm_90a", {instance, hash}}
};

// The file's content: {"schema_version": 1, "nvcc", "archs": {"sm_90": {instance: hash}}}.
absl::StatusOr<TreeCode> ParseTreeCode(const nlohmann::ordered_json& json);

struct RenderOptions {
  // What this tree is. Where the record is of another, the text opens with a warning
  // (staleness.h). Empty: not compared.
  std::string kernel_source_sha256 = "";
  std::string registry_sha256 = "";
  TreeCode tree_code = {};
  // Put before the pictures' file names, e.g. "plots/". A relative path.
  std::string picture_prefix = "";
};

}  // namespace warpledger::report
