// SPDX-License-Identifier: Apache-2.0
#include "reports/model/records.h"

#include <utility>

#include "absl/status/status.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"

namespace warpledger::report {

absl::StatusOr<std::vector<ReadRecord>> ReadRecords(std::vector<Summary> summaries,
                                                    const RenderOptions& options) {
  if (summaries.empty()) {
    return absl::InvalidArgumentError("no record is given; the pages are of a GPU's records");
  }
  std::vector<ReadRecord> records;
  for (Summary& summary : summaries) {
    if (summary.IsCold()) {
      return absl::InvalidArgumentError(Cat("the record ", summary.run_id,
                                            " was measured with a cold L2, and the pages speak of "
                                            "a warm one; leave it out"));
    }
    for (const ReadRecord& other : records) {
      if (other.summary.gpu != summary.gpu) {
        return absl::InvalidArgumentError(Cat("the records ", other.summary.run_id, " and ",
                                              summary.run_id,
                                              " are of two GPUs; call once per GPU"));
      }
      if (other.summary.design == summary.design && !other.summary.provenance.alone &&
          !summary.provenance.alone) {
        return absl::InvalidArgumentError(Cat("the records ", other.summary.run_id, " and ",
                                              summary.run_id, " are both of design ",
                                              summary.design, "; give the newer one"));
      }
    }
    Staleness staleness = StalenessOf(summary, options);
    records.push_back({std::move(summary), std::move(staleness)});
  }
  return records;
}

std::string StateOf(const ReadRecord& record) {
  const std::string harmless = HarmlessChanges(record.staleness);
  return Cat(record.staleness.IsStale()
                 ? Cat("**older than the kernels: since then ", WhatChanged(record.staleness), "**")
                 : "current",
             harmless.empty() ? "" : ". ", harmless);
}

std::string DesignLink(const Summary& summary, std::string_view up) {
  return Cat("[", summary.design, "](", up, ReportFileName(summary), ")");
}

}  // namespace warpledger::report
