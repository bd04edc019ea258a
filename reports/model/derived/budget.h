// SPDX-License-Identifier: Apache-2.0
// What each part of a small problem's kernel takes at least, from measured figures.
//
// Contract: a part's floor is its work over a rate, or a latency, that the microbenchmarks which
// the summary quotes have measured; nothing is from a datasheet. The work follows from the shape
// and the kernel's geometry. Cycles become time at the GPU's highest clock. A part whose
// microbenchmark the summary doesn't quote has no figure, and `missing` names the case. The parts
// may overlap in a kernel, so their sum is no bound; each of them is one.
//
//   absl::StatusOr<Budget> budget = BudgetOf(summary, shape, cell);   // cell.config is parsed
//   for (const BudgetPart& part : budget->parts) Add(part.name, part.us);
//
// Errors: InvalidArgument for a configuration that this build's registry can't read, or a record
// without the GPU's clock or number of SMs.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sdpa/registry/config.h"
#include "reports/model/summary.h"

namespace warpledger::report {

// What a kernel does on a problem.
struct KernelWork {
  int64_t ctas = 0;
  double rounds = 0;          // CTAs that the busiest SM runs, one at a time
  double load_bytes = 0;      // of all CTAs: Q once, K and V once per tile of queries
  double scores = 0;          // of the busiest SM: query rows times keys
  double exchange_bytes = 0;  // that a CTA sends to others of its cluster
  double store_bytes = 0;     // O, all CTAs
  bool dependent_launch = false;
};

// Full masks alone: a causal tile's work depends on where it lies.
KernelWork WorkOf(const Shape& shape, const sdpa::Config& config, int64_t sm_count);

struct BudgetPart {
  std::string_view name;
  std::optional<double> us;
  std::string missing;  // the case that the summary doesn't quote; else empty
};

struct Budget {
  std::vector<BudgetPart> parts;  // in the order in which a call needs them
  double sum_us = 0;              // of the parts that have a figure
  bool complete = true;           // every part has one
};

absl::StatusOr<Budget> BudgetOf(const Summary& summary, const Shape& shape, const Cell& cell);

// The formula of each part, one list item per part, with the cases and their values.
std::string BudgetFormulas(const Summary& summary);

// What arithmetic alone says a kernel can't beat.
//
// Contract: a floor is operations over the unit's rate. The DRAM floor supposes
// that nothing is in L2 yet. Rates exist for GPUs
// whose datasheet and instruction rates are known; for others ArithmeticRates()
// is empty and the report prints no floor rather than a guessed one.
//
//   std::optional<Rates> rates = ArithmeticRates("h200", 132, 1980);
//   ArithmeticFloor floor = FloorOf(shape, *rates);  // microseconds

struct Rates {
  double tensor_flop_per_s = 0;  // dense fp16, fp32 accumulation
  double dram_bytes_per_s = 0;
  double exp_per_s = 0;
  std::string source;  // a sentence that says where each rate comes from
};

std::optional<Rates> ArithmeticRates(std::string_view gpu_slug, int64_t sm_count,
                                     std::optional<double> max_sm_clock_mhz);

struct ArithmeticFloor {
  double tensor_us = 0;
  double dram_us = 0;
  double exp_us = 0;
  double largest_us = 0;
};

ArithmeticFloor FloorOf(const Shape& shape, const Rates& rates);

}  // namespace warpledger::report
