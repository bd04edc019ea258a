// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/floors.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace warpledger::report {

std::optional<Rates> ArithmeticRates(std::string_view gpu_slug, int64_t sm_count,
                                     std::optional<double> max_sm_clock_mhz) {
  if (gpu_slug != "h200" || sm_count <= 0 || max_sm_clock_mhz.value_or(0) <= 0) return std::nullopt;
  constexpr double kTensorFlopPerS = 989e12;
  constexpr double kDramBytesPerS = 4.8e12;
  constexpr double kExpPerClockPerSm = 16;
  Rates rates = {
      .tensor_flop_per_s = kTensorFlopPerS,
      .dram_bytes_per_s = kDramBytesPerS,
      .exp_per_s = kExpPerClockPerSm * static_cast<double>(sm_count) * *max_sm_clock_mhz * 1e6,
      .source = ""};
  rates.source = absl::StrFormat(
      "Rates: %.0f TFLOP/s dense fp16 on tensor cores and %.1f TB/s of DRAM bandwidth (NVIDIA H200 "
      "datasheet); %.2f T exponentials/s = %.0f per clock and SM on the MUFU (CUDA C++ Programming "
      "Guide, throughput of arithmetic instructions) × %d SMs × %.0f MHz, the SMs and the maximum "
      "clock of this record.",
      kTensorFlopPerS / 1e12, kDramBytesPerS / 1e12, rates.exp_per_s / 1e12, kExpPerClockPerSm,
      sm_count, *max_sm_clock_mhz);
  return rates;
}

ArithmeticFloor FloorOf(const Shape& shape, const Rates& rates) {
  ArithmeticFloor out = {
      .tensor_us = shape.flops / rates.tensor_flop_per_s * 1e6,
      .dram_us = shape.min_bytes / rates.dram_bytes_per_s * 1e6,
      .exp_us = shape.attention ? shape.attention->exponentials / rates.exp_per_s * 1e6 : 0};
  out.largest_us = std::max({out.tensor_us, out.dram_us, out.exp_us});
  return out;
}

}  // namespace warpledger::report
