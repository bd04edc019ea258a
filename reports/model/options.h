// SPDX-License-Identifier: Apache-2.0
// What a page is made with besides its records.
//
//   RenderReport(summary, {.picture_prefix = "plots/"})

#pragma once

#include <string>

#include "reports/model/tree_code.h"

namespace warpledger::report {

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
