#include "ablations/correctness.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"

namespace warpledger::ablations {
namespace {

struct Error {
  double max = 0;
  double mean = 0;
  size_t worst = 0;
};

// A NaN anywhere makes both figures NaN, which no limit admits.
template <typename Value>
Error Against(const std::vector<double>& reference, size_t size, Value value) {
  Error error;
  double sum = 0;
  for (size_t i = 0; i < size; ++i) {
    const double difference = std::fabs(value(i) - reference[i]);
    if (!(difference <= error.max)) {
      error.max = difference;
      error.worst = i;
    }
    sum += difference;
    if (std::isnan(difference)) return {difference, difference, i};
  }
  error.mean = size == 0 ? 0 : sum / static_cast<double>(size);
  return error;
}

// Half the spacing of a dtype's numbers at `magnitude`.
double HalfUlp(sdpa::Dtype dtype, double magnitude) {
  const int least = sdpa::SmallestExponent(dtype);
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), least) : least;
  return std::ldexp(0.5, exponent - sdpa::MantissaBits(dtype));
}

// Judges the rows that the reference holds; of the others, that each element was
// written and is finite.
Accuracy JudgeSample(const sdpa::Reference& reference, absl::Span<const sdpa::Bits16> out,
                     absl::Span<const float> lse, double lse_allowance) {
  const size_t head_dim = reference.out.size() / reference.rows.size();
  const auto total = static_cast<size_t>(reference.total_rows);
  Accuracy result;
  if (out.size() != total * head_dim || (!lse.empty() && lse.size() != total)) {
    result.reason = absl::StrFormat("%d output and %d log-sum-exp elements for %d rows of %d",
                                    out.size(), lse.size(), total, head_dim);
    return result;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (std::isfinite(sdpa::ToFloat(reference.dtype, out[i]))) continue;
    result.max_err = result.mean_err = std::numeric_limits<double>::quiet_NaN();
    result.reason = absl::StrFormat("element %d is %g", i, sdpa::ToFloat(reference.dtype, out[i]));
    return result;
  }
  for (size_t i = 0; i < lse.size(); ++i) {
    if (!std::isnan(lse[i])) continue;
    result.reason = absl::StrFormat("log-sum-exp of row %d is NaN", i);
    return result;
  }
  sdpa::Reference sampled = reference;
  sampled.rows.clear();  // its other vectors hold the sample already
  std::vector<sdpa::Bits16> sampled_out;
  std::vector<float> sampled_lse;
  for (const int64_t row : reference.rows) {
    const auto begin = out.begin() + row * static_cast<int64_t>(head_dim);
    sampled_out.insert(sampled_out.end(), begin, begin + static_cast<int64_t>(head_dim));
    if (!lse.empty()) sampled_lse.push_back(lse[static_cast<size_t>(row)]);
  }
  return JudgeAccuracy(sampled, sampled_out, sampled_lse, lse_allowance);
}

}  // namespace

Accuracy JudgeAccuracy(const sdpa::Reference& reference, absl::Span<const sdpa::Bits16> out,
                       absl::Span<const float> lse, double lse_allowance) {
  if (!reference.rows.empty()) return JudgeSample(reference, out, lse, lse_allowance);
  Accuracy result;
  result.rows = static_cast<int64_t>(reference.lse.size());
  result.lse_err = std::numeric_limits<double>::quiet_NaN();
  if (!lse.empty() && lse.size() != reference.lse.size()) {
    result.reason = absl::StrFormat("the log-sum-exp has %d elements, the reference %d", lse.size(),
                                    reference.lse.size());
    return result;
  }
  if (out.size() != reference.out.size()) {
    result.reason = absl::StrFormat("the output has %d elements, the reference %d", out.size(),
                                    reference.out.size());
    return result;
  }
  double max_reference = 0;
  for (const double value : reference.out)
    max_reference = std::max(max_reference, std::fabs(value));

  const Error naive =
      Against(reference.out, out.size(), [&](size_t i) { return double{reference.naive_out[i]}; });
  const Error ours = Against(reference.out, out.size(), [&](size_t i) {
    return double{sdpa::ToFloat(reference.dtype, out[i])};
  });
  result.max_err = ours.max;
  result.mean_err = ours.mean;
  result.max_err_limit = 2 * naive.max + HalfUlp(reference.dtype, max_reference);
  result.mean_err_limit = 1.5 * naive.mean;
  if (!(result.max_err <= result.max_err_limit)) {
    result.reason =
        absl::StrFormat("element %d is %g, the reference %g: error %g over the limit %g",
                        ours.worst, sdpa::ToFloat(reference.dtype, out[ours.worst]),
                        reference.out[ours.worst], ours.max, result.max_err_limit);
  } else if (!(result.mean_err <= result.mean_err_limit)) {
    result.reason =
        absl::StrFormat("mean error %g over the limit %g", result.mean_err, result.mean_err_limit);
  }

  if (!lse.empty()) {
    double magnitude = 1;
    for (const double value : reference.lse) {
      if (std::isfinite(value)) magnitude = std::max(magnitude, std::fabs(value));
    }
    // A score is a sum over head_dim, whose rounding grows with its terms.
    const double terms = static_cast<double>(reference.out.size()) / reference.lse.size();
    result.lse_limit = std::ldexp(magnitude, -18) * std::max(1.0, terms / 64);
    double rounding = 0;
    for (size_t i = 0; i < reference.rounded_lse.size(); ++i) {
      const double error = std::fabs(reference.rounded_lse[i] - reference.lse[i]);
      if (std::isfinite(error)) rounding = std::max(rounding, error);
    }
    result.lse_limit += 2 * rounding + lse_allowance;
    result.lse_err = 0;
    for (size_t i = 0; i < lse.size(); ++i) {
      const bool same_infinity = std::isinf(reference.lse[i]) && lse[i] == reference.lse[i];
      const double error = same_infinity ? 0 : std::fabs(lse[i] - reference.lse[i]);
      if (!(error <= result.lse_limit) && result.reason.empty()) {
        result.reason = absl::StrFormat(
            "log-sum-exp of row %d is %g, the reference %g: error over the limit %g", i, lse[i],
            reference.lse[i], result.lse_limit);
      }
      if (!(error <= result.lse_err)) result.lse_err = error;
      if (std::isnan(error)) break;
    }
  }
  result.correct = result.reason.empty();
  return result;
}

double LseAllowance(const sdpa::Config& config, int seq_kv) {
  constexpr int kHalfPairs = static_cast<int>(sdpa::ExpMethod::kExpHalfPairs);
  double allowance = sdpa::LseAllowance(config);
  if (config.exp_method == kHalfPairs || config.mma_exp == kHalfPairs) {
    allowance += std::ldexp(std::log(static_cast<double>(seq_kv)), -11);
  }
  return allowance;
}

}  // namespace warpledger::ablations
