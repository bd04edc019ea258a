// SPDX-License-Identifier: Apache-2.0
// What several summaries have in common: figures, and how they are read.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ablations/base/json_fields.h"
#include "ablations/base/json_text.h"
#include "absl/status/status.h"
#include "kernels/common/status_macros.h"
#include "nlohmann/json.hpp"

namespace warpledger::summary {

using ablations::Above;
using ablations::FieldPath;
using ablations::kOlderRecordsLack;
using ablations::kOnlyWhereSet;
using ablations::Must;
using ablations::OneOf;
using ablations::SixDigits;

// So that the difference of two is a number too.
inline constexpr ablations::Within kCount{0, int64_t{1} << 53};

// In the order in which pages list them.
inline constexpr std::string_view kVerdictNames[] = {
    "ADOPT",        "REAL_BELOW_GATE", "NEUTRAL", "REGRESSION",
    "INCONCLUSIVE", "BROKEN",          "INVALID", "NOT_APPLICABLE",
};

inline constexpr Must kIsVerdict{"a verdict that this program knows", [](std::string_view name) {
                                   return std::find(std::begin(kVerdictNames),
                                                    std::end(kVerdictNames),
                                                    name) != std::end(kVerdictNames);
                                 }};

// A figure and its confidence interval, in the unit of the field it belongs to. Logarithms and
// quotients are taken of it, so all three are above 0; null where there is no such figure.
struct Estimate {
  std::optional<double> value;
  std::optional<double> low;
  std::optional<double> high;

  friend bool operator==(const Estimate&, const Estimate&) = default;

  void VisitAs(auto& f, const char* value_name, const char* low_name, const char* high_name) {
    f(value_name, value, Above{0});
    f(low_name, low, Above{0});
    f(high_name, high, Above{0});
  }
  // As a ratio of times: above 1 the candidate is faster.
  void Visit(auto& f) { VisitAs(f, "ratio", "ci_low", "ci_high"); }
};

// exp() of a log-ratio and its bounds.
inline Estimate RatioOfLogs(double value, double low, double high) {
  return {SixDigits(std::exp(value)), SixDigits(std::exp(low)), SixDigits(std::exp(high))};
}

// Whether the power limit acted in most samples of both arms; there without clocks of samples.
inline constexpr char kNotCapped[] = "not_capped";
inline constexpr char kCapped[] = "capped";
inline constexpr char kCappedTime[] = "capped_time";
inline constexpr auto kIsRegime = OneOf(kNotCapped, kCapped, kCappedTime);

// What is compared: time, or SM cycles, which is time at equal clocks; of arms that are timed
// alone, time at the clock that each one's own power allows, or joules.
inline constexpr char kTime[] = "time";
inline constexpr char kCycles[] = "cycles";
inline constexpr char kOwnPower[] = "own_power";
inline constexpr char kJoules[] = "joules";
inline constexpr auto kIsEstimand = OneOf(kTime, kCycles, kOwnPower, kJoules);

// How boards differ in a regime (stats/random_effects.h).
struct BoardSpread {
  std::string regime;
  double floor = 0;
  double scale = 0;
  double df = 0;
  double slope = 0;

  void Visit(auto& f) {
    f("regime", regime, kIsRegime);
    f("floor_sd", floor, "of log-ratios, between boards whose records have no error");
    f("scale", scale, "of the variance within records");
    f("df", df);
    f("slope", slope, ablations::kOlderRecordsLack, "of the deviation, by the size of the effect");
  }
};

// How far the log-ratios of pairs scatter within a process, and processes beyond that.
struct Spread {
  std::optional<double> within;
  std::optional<double> between;

  void Visit(auto& f) {
    f("within_process_sd", within, kOlderRecordsLack);
    f("between_process_sd", between, kOlderRecordsLack);
  }
};

// A figure of the kernel without a toggle, and of that with it. [before, after] in JSON.
template <typename T>
struct Both {
  std::optional<T> before;
  std::optional<T> after;
};

template <typename T>
nlohmann::ordered_json ToJson(const Both<T>& both) {
  return ablations::json_fields::Write(std::pair(both.before, both.after));
}

template <typename T>
absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path, Both<T>& both) {
  std::pair<std::optional<T>, std::optional<T>> pair;
  RETURN_IF_ERROR(ablations::json_fields::Read(json, path, pair));
  if constexpr (std::is_same_v<T, int64_t>) {
    // So that the difference of two is a number too.
    constexpr int64_t kMost = int64_t{1} << 53;
    for (const std::optional<int64_t>& count : {pair.first, pair.second}) {
      if (count && (*count < -kMost || *count > kMost)) {
        return ablations::WrongValue(path, "two counts", json);
      }
    }
  }
  both = {pair.first, pair.second};
  return absl::OkStatus();
}

// Calls a visitor with all fields but those that `left_out` names.
template <typename F>
class AllBut {
 public:
  AllBut(F& f, std::initializer_list<std::string_view> left_out) : f_(f), left_out_(left_out) {}

  template <typename T, typename... Rules>
  void operator()(const char* name, T& value, const Rules&... rules) {
    if (std::find(left_out_.begin(), left_out_.end(), name) == left_out_.end()) {
      f_(name, value, rules...);
    }
  }

 private:
  F& f_;
  std::vector<std::string_view> left_out_;
};

// The conditions of a run: medians over its samples; null where no sample says.
struct Conditions {
  std::optional<double> sm_mhz_p50;
  std::optional<double> temp_c_p50;
  std::optional<double> power_w_p50;

  DESCRIBE_FIELDS(sm_mhz_p50, temp_c_p50, power_w_p50)
};

}  // namespace warpledger::summary
