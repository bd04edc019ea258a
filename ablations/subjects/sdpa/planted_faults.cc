// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/planted_faults.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/text.h"

namespace warpledger::ablations {
namespace {

absl::Status Known(const char* kind, const std::string& name,
                   const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no ", kind, " '", name, "' to plant a fault in; ",
                                                 "known are ", absl::StrJoin(known, ", ")));
}

}  // namespace

absl::StatusOr<Fault> FindFault(std::string_view name) {
  std::vector<std::string> known;
  for (const NamedFault& fault : kFaults) {
    if (name == fault.name) return fault.fault;
    known.emplace_back(fault.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no fault '", std::string(name), "'; known are ", absl::StrJoin(known, ", ")));
}

absl::StatusOr<std::vector<PlantedFault>> ParsePlants(std::string_view text,
                                                      const std::vector<std::string>& arms,
                                                      const std::vector<std::string>& shapes) {
  std::vector<PlantedFault> plants;
  if (text.empty()) return plants;
  for (const absl::string_view part : absl::StrSplit(Text(text), ',')) {
    const std::vector<std::string> fields = absl::StrSplit(part, '@');
    if (fields.size() < 2 || fields.size() > 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' is no FAULT@ARM or FAULT@ARM@SHAPE"));
    }
    PlantedFault plant = {fields[0], fields[1], fields.size() == 3 ? fields[2] : ""};
    if (const auto fault = FindFault(plant.fault); !fault.ok()) return fault.status();
    if (absl::Status status = Known("arm", plant.arm, arms); !status.ok()) return status;
    if (!plant.shape.empty()) {
      if (absl::Status status = Known("shape", plant.shape, shapes); !status.ok()) return status;
    }
    plants.push_back(std::move(plant));
  }
  return plants;
}

}  // namespace warpledger::ablations
