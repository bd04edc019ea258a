// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/budget.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/families.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

// The cases that the floors rest on.
constexpr std::string_view kEmptyNode = "launch/empty_one_cta_per_sm/graph";
constexpr std::string_view kSmallNode = "launch/add_one_one_cta_per_sm/graph";
constexpr std::string_view kDependentNode = "launch/add_one_one_cta_per_sm/programmatic";
constexpr std::string_view kL2Latency = "global_memory/chase_past_l1_8MiB/latency";
constexpr std::string_view kDramLatency = "global_memory/chase_past_l1_1GiB/latency";
constexpr std::string_view kL2Rate = "global_memory/read_16MiB/bandwidth";
constexpr std::string_view kDramRate = "global_memory/dram_16B/bandwidth";
constexpr std::string_view kQkRate = "wgmma/m64n128k16_f16_ss/throughput/warpgroups_1";
constexpr std::string_view kPvRate = "wgmma/m64n64k16_f16_rs/throughput/warpgroups_1";
constexpr std::string_view kExpRate = "exp_cost/ex2_approx_ftz_f32/throughput";
constexpr std::string_view kHopLatency = "dsmem/st_async_512B/latency";
constexpr std::string_view kExchangeRate = "dsmem/st_async_16B/throughput";

constexpr double kFp16Bytes = 2;

// Takes cases from a summary and remembers the first that it doesn't quote.
class Cases {
 public:
  explicit Cases(const Summary& summary) : summary_(summary) {}
  // The value, above 0; 1 where there is none, which missing() then says.
  double operator()(std::string_view name) {
    const MicroValue* row = summary_.FindMicro(name);
    if (row != nullptr && row->value > 0) return row->value;
    if (missing_.empty()) missing_ = name;
    return 1;
  }
  const std::string& missing() const { return missing_; }

 private:
  const Summary& summary_;
  std::string missing_;
};

// Microseconds of a part by name; `c` is asked for every case that it needs.
double PartUs(std::string_view part, const Summary& summary, const Shape& shape,
              const KernelWork& work, Cases& c) {
  const double us_per_cycle = 1.0 / *summary.provenance.gpu.max_sm_clock_mhz;
  const double head_dim = static_cast<double>(shape.attention->head_dim);
  const auto bytes_us = [](double bytes, double gb_per_s) { return bytes / gb_per_s / 1e3; };
  if (part == "launch") {
    if (work.dependent_launch) return c(kDependentNode) - (c(kSmallNode) - c(kEmptyNode));
    // The record's own, of an empty kernel that was timed among the arms, is nearer.
    const Floor* floor = summary.FindFloor(shape.name);
    return floor != nullptr && floor->p50_us.value ? *floor->p50_us.value : c(kEmptyNode);
  }
  if (part == "first load") return c(summary.IsCold() ? kDramLatency : kL2Latency) * us_per_cycle;
  if (part == "loads") {
    const double l2_us = bytes_us(work.load_bytes, c(kL2Rate));
    if (!summary.IsCold()) return l2_us;
    return std::max(l2_us, bytes_us(shape.min_bytes - work.store_bytes, c(kDramRate)));
  }
  if (part == "Q Kᵀ") return 2 * work.scores * head_dim / c(kQkRate) * us_per_cycle;
  if (part == "softmax") return work.scores / c(kExpRate) * us_per_cycle;
  if (part == "P V") return 2 * work.scores * head_dim / c(kPvRate) * us_per_cycle;
  if (part == "combine") {
    if (work.exchange_bytes == 0) return 0;
    return (c(kHopLatency) + work.rounds * work.exchange_bytes / c(kExchangeRate)) * us_per_cycle;
  }
  return bytes_us(work.store_bytes, c(kL2Rate));  // "store"
}

constexpr std::string_view kParts[] = {"launch",  "first load", "loads",   "Q Kᵀ",
                                       "softmax", "P V",        "combine", "store"};

}  // namespace

KernelWork WorkOf(const Shape& shape, const sdpa::Config& config, int64_t sm_count) {
  const bool resident = config.resident_kv != 0;
  const sdpa::ResidentShape parts = sdpa::ResidentShapeOf(config);
  const int cluster = resident ? parts.cluster : 1;
  const double rows = sdpa::GeometryOf(config).tile_m;
  const double head_dim = static_cast<double>(shape.attention->head_dim);
  const double keys = static_cast<double>(shape.attention->seq_kv);
  const int64_t heads = shape.attention->batch * shape.attention->heads_q;
  const int64_t tiles =
      heads * static_cast<int64_t>(std::ceil(static_cast<double>(shape.attention->seq_q) / rows));
  KernelWork work;
  work.ctas = tiles * cluster;
  work.rounds = std::ceil(static_cast<double>(work.ctas) / static_cast<double>(sm_count));
  const double q_bytes =
      static_cast<double>(heads * shape.attention->seq_q) * head_dim * kFp16Bytes;
  work.load_bytes = q_bytes + static_cast<double>(tiles) * 2 * keys * head_dim * kFp16Bytes;
  work.scores = work.rounds * rows * keys / cluster;
  if (cluster > 1) {
    // Each part keeps its share of O and sends the other parts theirs; those of its own CTA don't
    // leave the SM.
    const double all = sdpa::Parts(parts);
    work.exchange_bytes = parts.warpgroups * (all - parts.warpgroups) / all * rows * head_dim *
                          (parts.fp16_exchange ? kFp16Bytes : 4);
  }
  work.store_bytes = q_bytes;
  work.dependent_launch = resident && parts.dependent_launch;
  return work;
}

absl::StatusOr<Budget> BudgetOf(const Summary& summary, const Shape& shape, const Cell& cell) {
  const std::optional<sdpa::Config> config = sdpa::ConfigFromName(cell.config);
  if (!config || !shape.attention) {
    return absl::InvalidArgumentError(
        Cat("this build's registry can't read the configuration `", cell.config, "`"));
  }
  if (summary.provenance.gpu.sm_count <= 0 ||
      summary.provenance.gpu.max_sm_clock_mhz.value_or(0) <= 0) {
    return absl::InvalidArgumentError("the record has no clock or no number of SMs");
  }
  sdpa::Config instance = *config;
  instance.head_dim = static_cast<int>(shape.attention->head_dim);
  const KernelWork work = WorkOf(shape, instance, summary.provenance.gpu.sm_count);
  Budget budget;
  for (const std::string_view name : kParts) {
    Cases cases(summary);
    const double us = PartUs(name, summary, shape, work, cases);
    BudgetPart part = {.name = name, .us = std::nullopt, .missing = cases.missing()};
    if (part.missing.empty()) {
      part.us = us;
      budget.sum_us += us;
    } else {
      budget.complete = false;
    }
    budget.parts.push_back(std::move(part));
  }
  return budget;
}

std::string BudgetFormulas(const Summary& summary) {
  const auto value = [&](std::string_view name) {
    const MicroValue* row = summary.FindMicro(name);
    return row == nullptr
               ? Cat(Code(name), " (not quoted)")
               : Cat(Code(name), " (", FormatSignificant(row->value, 4), " ", row->unit, ")");
  };
  const bool cold = summary.IsCold();
  return Cat(
      "- **launch**: the record's own empty kernel in a graph, else ", value(kEmptyNode),
      ". With dependent launch what is left of it: ", value(kDependentNode), " less the work of ",
      "that kernel, which is ", value(kSmallNode), " less ", value(kEmptyNode), ".\n",
      "- **first load**: one dependent load, ", value(cold ? kDramLatency : kL2Latency), ".\n",
      "- **loads**: Q once, K and V once per tile of queries, over ", value(kL2Rate),
      cold ? Cat(", and each input once over ", value(kDramRate), ", whichever is longer") : "",
      ".\n", "- **Q Kᵀ**: 2 · rows · keys · head_dim of the busiest SM, over ", value(kQkRate),
      ".\n", "- **softmax**: rows · keys of the busiest SM, over ", value(kExpRate), ".\n",
      "- **P V**: as many operations as Q Kᵀ, over ", value(kPvRate), ".\n",
      "- **combine**: where a cluster divides the keys, ", value(kHopLatency),
      " and the part of O that leaves a CTA, over ", value(kExchangeRate), ".\n",
      "- **store**: O over ", value(kL2Rate), ".\n");
}

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
