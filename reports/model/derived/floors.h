// SPDX-License-Identifier: Apache-2.0
// What arithmetic alone says a kernel can't beat.
//
// Contract: a floor is operations over the unit's rate. The DRAM floor supposes
// that nothing is in L2 yet. Rates exist for GPUs
// whose datasheet and instruction rates are known; for others ArithmeticRates()
// is empty and the report prints no floor rather than a guessed one.
//
//   std::optional<Rates> rates = ArithmeticRates("h200", 132, 1980);
//   ArithmeticFloor floor = FloorOf(shape, *rates);  // microseconds

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reports/model/summary.h"

namespace warpledger::report {

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
