// SPDX-License-Identifier: Apache-2.0
#include "ablations/summary/summary.h"
#include "absl/status/status.h"
#include "reports/model/options.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using ablations::Each;
using ablations::Must;
using ablations::NotEmpty;

constexpr Must kNamesSomething{"an object that is not empty",
                               [](const auto& named) { return !named.empty(); }};

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

void TreeCode::Visit(auto& f) {
  int version = 1;
  f("schema_version", version, Must{"1", [](int value) { return value == 1; }});
  f("nvcc", nvcc_);
  f("archs", archs_, kNamesSomething, Each{kNamesSomething}, Each<Each<NotEmpty>>{{NotEmpty{}}});
}

absl::StatusOr<TreeCode> ParseTreeCode(const nlohmann::ordered_json& json) {
  absl::StatusOr<TreeCode> code = ablations::FromJson<TreeCode>(json);
  if (code.ok()) return code;
  return absl::InvalidArgumentError(Cat(kTreeCodeFile, ": ", std::string(code.status().message()),
                                        "; write it again as its test says"));
}

}  // namespace warpledger::report
