// SPDX-License-Identifier: Apache-2.0
// The cases of the program as JSON, for the tests and scripts that must know them
// without a GPU and without a list of their own.

#ifndef WARPLEDGER_MICRO_HARNESS_LISTING_H_
#define WARPLEDGER_MICRO_HARNESS_LISTING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "micro/harness/microbenchmark.h"
#include "nlohmann/json.hpp"

namespace warpledger::harness {

// {"schema_version", "cases": [{name, kind ("cycles", "time" or "value"), measures,
//   unit, min_cc, max_cc, peak_case, kernels [symbols],
//   evidence [..], published [..], parameters {..}, limits {"80": {value, source}, ..}}]}
// NotFound when a case names a kernel that the program hasn't got.
absl::StatusOr<nlohmann::ordered_json> ListCases(const std::vector<MicroCase>& cases);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_LISTING_H_
