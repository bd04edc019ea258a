// SPDX-License-Identifier: Apache-2.0
// Renders the summary of a profile record as Markdown: what bounds each kernel,
// where it stands under the roofs that the microbenchmarks measured, why its
// warps wait, and what each toggle's claim says of a counter against what the
// counter did.
//
// Contract: the only inputs are the summary (ablations/summary/profile.h), the registry and the
// options. The same inputs give the
// same bytes. A figure that is not there is an en dash; a claim without its
// counters is said to be unread, never held. No errors.
//
//   std::string page = RenderProfileReport(summary, {});

#pragma once

#include <string>

#include "ablations/summary/profile.h"
#include "reports/model/options.h"

namespace warpledger::report {

inline constexpr char kProfileReportFile[] = "profile.md";

// "tensor cores 71%", "latency: wait 35%", "idle SMs: 24 CTAs, 15% busy".
// What bounds a kernel, by the rule that the page states.
std::string BoundBy(const ablations::Profile& profile);

std::string RenderProfileReport(const summary::ProfileSummary& read, const RenderOptions& options);

}  // namespace warpledger::report
