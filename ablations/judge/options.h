// SPDX-License-Identifier: Apache-2.0
// How a record is judged: levels, resamples, and what is quoted beside it.

#pragma once

#include <cstdint>
#include <optional>

#include "ablations/record/micro_record.h"

namespace warpledger::ablations {

struct SummarizeOptions {
  double confidence = 0.95;  // of cells, controls and families of verdicts
  int bootstrap_resamples = 20000;
  uint64_t bootstrap_seed = 20240601;
  double neutral_delta = 0.01;
  // Mean errors further apart than this factor are a finding of their own. In the H200's records
  // of 2026-11 what only changes the order of sums, or when they are rescaled, stays within 1.17;
  // every toggle that rounds an intermediate to fp16 reaches 1.28 or more on some inputs. Scales
  // per tile of K and V lie on both sides, 1.18 to 1.36. 1.5 would part one shape of `wmma_pv`
  // (1.48) from the next (1.54).
  double error_ratio = 1.25;
  std::optional<MicroRecord> micro = {};  // of the same GPU; quoted, never judged
};

}  // namespace warpledger::ablations
