// SPDX-License-Identifier: Apache-2.0
// What a study's build shows before anything is measured: which techniques reach the machine code,
// which are one kernel, and whether the evidence that each claim names is there.
//
//   const BuildReport report = ReportOn(file, subject, build);
//   for (const std::string& finding : report.findings) …

#pragma once

#include <string>
#include <vector>

#include "ablations/subjects/study/build.h"
#include "ablations/subjects/study/study.h"

namespace warpledger::ablations {

struct BuildReport {
  std::vector<std::string> table;     // a line for each variant of one technique at most
  std::vector<std::string> evidence;  // a line for each pattern of a claim
  std::vector<std::string> findings;  // what is wrong, with its place in the study
};

BuildReport ReportOn(const StudyFile& file, const StudyBuild& build);

}  // namespace warpledger::ablations
