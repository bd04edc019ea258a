// SPDX-License-Identifier: Apache-2.0
#include "absl/status/status.h"
#include "reports/model/options.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Malformed(std::string_view path, std::string_view problem) {
  return absl::InvalidArgumentError(
      Cat(kTreeCodeFile, ": ", path, " ", problem, "; write it again as its test says"));
}

// "9.0" -> "sm_90"
std::string ArchOf(std::string_view compute_capability) {
  std::string arch = "sm_";
  for (const char c : compute_capability) {
    if (c != '.') arch += c;
  }
  return arch;
}

}  // namespace

bool TreeCode::Covers(std::string_view compute_capability) const {
  const std::string arch = ArchOf(compute_capability);
  return archs_.contains(arch) || archs_.contains(arch + "a");
}

const TreeCode::Instance* TreeCode::Find(std::string_view compute_capability,
                                         absl::Span<const std::string> names) const {
  const std::string arch = ArchOf(compute_capability);
  for (const std::string& name : names) {
    // sm_90a's code runs on sm_90 too; exactly sm_90 goes first.
    for (const std::string& target : {arch, arch + "a"}) {
      const auto hashes = archs_.find(target);
      if (hashes == archs_.end()) continue;
      const auto found = hashes->second.find(name);
      if (found != hashes->second.end()) return &*found;
    }
  }
  return nullptr;
}

absl::StatusOr<TreeCode> ParseTreeCode(const Json& json) {
  TreeCode out;
  if (!json.is_object() || !json.contains("schema_version") || json["schema_version"] != 1) {
    return Malformed("schema_version", "must be 1");
  }
  if (!json.contains("nvcc") || !json["nvcc"].is_string()) {
    return Malformed("nvcc", "must be a string");
  }
  out.nvcc_ = json["nvcc"].get<std::string>();
  if (!json.contains("archs") || !json["archs"].is_object() || json["archs"].empty()) {
    return Malformed("archs", "must be an object that names an architecture");
  }
  for (const auto& [arch, instances] : json["archs"].items()) {
    if (!instances.is_object() || instances.empty()) {
      return Malformed(Cat("archs.", arch), "must be an object that names an instance");
    }
    for (const auto& [instance, hash] : instances.items()) {
      if (!hash.is_string() || hash.get<std::string>().empty()) {
        return Malformed(Cat("archs.", arch, ".", instance), "must be a hash");
      }
      out.archs_[arch][instance] = hash.get<std::string>();
    }
  }
  return out;
}

}  // namespace warpledger::report
