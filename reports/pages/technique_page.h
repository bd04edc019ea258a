// SPDX-License-Identifier: Apache-2.0
// What the index and the pages of techniques share (techniques.h), and one such page.
//
// Contract: as techniques.h; pure functions of the records and the registry.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/measured_claims.h"
#include "reports/model/records.h"
#include "reports/model/summary.h"

namespace warpledger::report {

struct Page {
  std::string path;  // below the folder of the GPU's reports
  std::string text;  // Markdown
};

// Every verdict on a toggle, in the order of the records.
std::vector<Judgement> JudgementsOn(const std::vector<ReadRecord>& records,
                                    std::string_view toggle);

// `records` must not be empty.
// `claims` are those of all toggles.
Page TechniquePage(const std::vector<ReadRecord>& records, const std::vector<MeasuredClaim>& claims,
                   const sdpa::ToggleRow& row);

}  // namespace warpledger::report
