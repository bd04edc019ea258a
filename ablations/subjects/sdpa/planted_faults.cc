// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/planted_faults.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpledger::ablations {
absl::StatusOr<Fault> FindFault(std::string_view name) {
  std::vector<std::string> known;
  for (const NamedFault& fault : kFaults) {
    if (name == fault.name) return fault.fault;
    known.emplace_back(fault.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no fault '", std::string(name), "'; known are ", absl::StrJoin(known, ", ")));
}

}  // namespace warpledger::ablations
