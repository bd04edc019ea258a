// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/correctness.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "absl/strings/str_format.h"
#include "kernels/sdpa/dtype/fp8.h"

namespace warpledger::ablations {
namespace {

struct Error {
  double max = 0;
  double mean = 0;
  size_t worst = 0;  // of the reference's elements
};

// Where the output has the row that the reference holds at a place.
size_t RowOf(const sdpa::Reference& reference, size_t at) {
  return reference.rows.empty() ? at : static_cast<size_t>(reference.rows[at]);
}
// Without log-sum-exps nothing says how long a row is, and each element is one.
size_t HeldRows(const sdpa::Reference& reference) {
  return reference.lse.empty() ? reference.out.size() : reference.lse.size();
}
size_t HeadDimOf(const sdpa::Reference& reference) {
  return reference.lse.empty() ? 1 : reference.out.size() / reference.lse.size();
}
// The same of an element.
size_t ElementOf(const sdpa::Reference& reference, size_t at) {
  const size_t head_dim = HeadDimOf(reference);
  return RowOf(reference, at / head_dim) * head_dim + at % head_dim;
}

// A NaN anywhere makes both figures NaN, which no limit admits. `value` gives what stands
// against the reference's i-th element, which is the output's `at`-th.
template <typename Value>
Error Against(const sdpa::Reference& reference, Value value) {
  Error error;
  double sum = 0;
  const size_t head_dim = HeadDimOf(reference);
  for (size_t row = 0; row < HeldRows(reference); ++row) {
    const size_t begin = RowOf(reference, row) * head_dim;
    for (size_t d = 0; d < head_dim; ++d) {
      const size_t i = row * head_dim + d;
      const double difference = std::fabs(value(i, begin + d) - reference.out[i]);
      if (!(difference <= error.max)) {
        error.max = difference;
        error.worst = i;
      }
      sum += difference;
      if (std::isnan(difference)) return {difference, difference, i};
    }
  }
  error.mean = reference.out.empty() ? 0 : sum / static_cast<double>(reference.out.size());
  return error;
}

// Half the spacing at `magnitude` of numbers whose exponents begin with `least`.
double HalfStep(double magnitude, int least, int mantissa_bits) {
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), least) : least;
  return std::ldexp(0.5, exponent - mantissa_bits);
}

// The rounding that no output escapes, at `magnitude`.
double HalfStepOfOutput(const sdpa::Reference& reference, double magnitude) {
  const float scale = reference.out_scale;
  return scale == 0
             ? HalfStep(magnitude, sdpa::SmallestExponent(reference.dtype),
                        sdpa::MantissaBits(reference.dtype))
             : scale * HalfStep(magnitude / scale, 1 - sdpa::kE4m3.bias, sdpa::kE4m3.mantissa_bits);
}

// The first element that is infinite or NaN; values.size(): none is. Tens of millions are asked
// for each arm, so that it goes by their bits and in chunks without a way out, which compile to
// vector instructions.
size_t FirstNotFinite(sdpa::Dtype dtype, absl::Span<const sdpa::Bits16> values) {
  constexpr size_t kChunk = 4096;
  const auto exponent =
      static_cast<sdpa::Bits16>(0x7fffu & ~((1u << sdpa::MantissaBits(dtype)) - 1));
  const auto is_finite = [&](sdpa::Bits16 bits) { return (bits & exponent) != exponent; };
  for (size_t begin = 0; begin < values.size(); begin += kChunk) {
    const absl::Span<const sdpa::Bits16> chunk = values.subspan(begin, kChunk);
    bool all = true;
    for (const sdpa::Bits16 bits : chunk) all &= is_finite(bits);
    if (!all) {
      return begin + static_cast<size_t>(std::find_if_not(chunk.begin(), chunk.end(), is_finite) -
                                         chunk.begin());
    }
  }
  return values.size();
}

// What is wrong with an output besides its errors: its size, and of rows that the reference
// does not hold an element that was not written or is not finite.
void JudgeShape(const sdpa::Reference& reference, absl::Span<const sdpa::Bits16> out,
                absl::Span<const float> lse, Accuracy* result) {
  const size_t rows =
      reference.rows.empty() ? HeldRows(reference) : static_cast<size_t>(reference.total_rows);
  const size_t head_dim = HeadDimOf(reference);
  if (!lse.empty() && lse.size() != rows) {
    result->reason =
        absl::StrFormat("the log-sum-exp has %d elements, the problem %d rows", lse.size(), rows);
    return;
  }
  if (out.size() != rows * head_dim) {
    result->reason =
        absl::StrFormat("the output has %d elements, the problem %d", out.size(), rows * head_dim);
    return;
  }
  if (reference.rows.empty()) return;
  if (const size_t i = FirstNotFinite(reference.dtype, out); i < out.size()) {
    result->max_err = result->mean_err = std::numeric_limits<double>::quiet_NaN();
    result->reason = absl::StrFormat("element %d is %g", i, sdpa::ToFloat(reference.dtype, out[i]));
    return;
  }
  for (size_t i = 0; i < lse.size(); ++i) {
    if (!std::isnan(lse[i])) continue;
    result->reason = absl::StrFormat("log-sum-exp of row %d is NaN", i);
    return;
  }
}

}  // namespace

Accuracy JudgeAccuracy(const sdpa::Reference& reference, absl::Span<const sdpa::Bits16> out,
                       absl::Span<const float> lse, double lse_allowance) {
  Accuracy result;
  result.rows = static_cast<int64_t>(reference.lse.size());
  result.lse_err = std::numeric_limits<double>::quiet_NaN();
  JudgeShape(reference, out, lse, &result);
  if (!result.reason.empty()) return result;
  double max_reference = 0;
  for (const double value : reference.out)
    max_reference = std::max(max_reference, std::fabs(value));

  const Error naive =
      Against(reference, [&](size_t i, size_t /*at*/) { return double{reference.naive_out[i]}; });
  const Error ours = Against(reference, [&](size_t /*i*/, size_t at) {
    return double{sdpa::ToFloat(reference.dtype, out[at])};
  });
  result.max_err = ours.max;
  result.mean_err = ours.mean;
  result.max_err_limit = 2 * naive.max + HalfStepOfOutput(reference, max_reference);
  result.mean_err_limit = 1.5 * naive.mean;
  if (!(result.max_err <= result.max_err_limit)) {
    result.reason =
        absl::StrFormat("element %d is %g, the reference %g: error %g over the limit %g",
                        ElementOf(reference, ours.worst),
                        sdpa::ToFloat(reference.dtype, out[ElementOf(reference, ours.worst)]),
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
    for (size_t i = 0; i < reference.lse.size(); ++i) {
      const float value = lse[RowOf(reference, i)];
      const bool same_infinity = std::isinf(reference.lse[i]) && value == reference.lse[i];
      const double error = same_infinity ? 0 : std::fabs(value - reference.lse[i]);
      if (!(error <= result.lse_limit) && result.reason.empty()) {
        result.reason = absl::StrFormat(
            "log-sum-exp of row %d is %g, the reference %g: error over the limit %g",
            RowOf(reference, i), value, reference.lse[i], result.lse_limit);
      }
      if (!(error <= result.lse_err)) result.lse_err = error;
      if (std::isnan(error)) break;
    }
  }
  result.correct = result.reason.empty();
  return result;
}

}  // namespace warpledger::ablations
