// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/dtypes/dtype_mistakes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/sdpa/dtype/fp16.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "kernels/sdpa/problem/kv_quantise.h"

namespace warpledger::ablations {
namespace {

using sdpa::Fp16;
using sdpa::Fp16ToFloat;
using sdpa::Fp8Overflow;
using sdpa::Problem;
using sdpa::RoundToFp16;

// Where a number of the computation is kept.
float InFp32(float x) { return x; }

using Round = float (*)(float);

float LargestMagnitude(const Fp16* values, int count) {
  float largest = 0;
  for (int i = 0; i < count; ++i) largest = std::max(largest, std::fabs(Fp16ToFloat(values[i])));
  return largest;
}

// K or V of a head as numbers, one per element.
using Tensor = std::vector<float>;  // (seq_kv, head_dim)

// By E4M3 codes; the scale maps the largest magnitude to `target`, 0 for no scale at all.
Tensor ThroughE4m3(const Problem& p, const Fp16* values, float target, Fp8Overflow overflow) {
  const int count = p.seq_kv * p.head_dim;
  const float scale = target == 0 ? 1.0f : LargestMagnitude(values, count) / target;
  Tensor result(count);
  for (int i = 0; i < count; ++i) {
    const uint8_t code = sdpa::FloatToFp8(sdpa::kE4m3, Fp16ToFloat(values[i]) / scale, overflow);
    result[i] = sdpa::Fp8ToFloat(sdpa::kE4m3, code) * scale;
  }
  return result;
}

// Integer codes 1 to 255 and their scale.
struct IntegerCodes {
  Tensor codes;
  float scale;
};
IntegerCodes ThroughUint8(const Problem& p, const Fp16* values) {
  const int count = p.seq_kv * p.head_dim;
  IntegerCodes result{Tensor(count), LargestMagnitude(values, count) / 127};
  for (int i = 0; i < count; ++i) {
    result.codes[i] = std::nearbyint(Fp16ToFloat(values[i]) / result.scale) + sdpa::kUint8Zero;
  }
  return result;
}

std::vector<float> Scores(const Problem& p, const Fp16* q, const Tensor& k) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
  std::vector<float> scores(p.seq_kv, 0.0f);
  for (int j = 0; j < p.seq_kv; ++j) {
    for (int d = 0; d < p.head_dim; ++d) {
      scores[j] += Fp16ToFloat(q[d]) * k[static_cast<size_t>(j) * p.head_dim + d];
    }
    scores[j] *= scale;
  }
  return scores;
}

struct Softmax {
  std::vector<float> probs;  // not divided by the sum
  float sum = 0;
};
Softmax Exponentials(std::vector<float> scores, bool subtract_max, Round round) {
  Softmax result;
  const float max = subtract_max ? *std::max_element(scores.begin(), scores.end()) : 0.0f;
  for (float& s : scores) {
    s = round(std::exp(s - max));
    result.sum = round(result.sum + s);
  }
  result.probs = std::move(scores);
  return result;
}

void WeightedMean(const Problem& p, const Softmax& softmax, const Tensor& v, float* out) {
  for (int d = 0; d < p.head_dim; ++d) {
    float sum = 0;
    for (int j = 0; j < p.seq_kv; ++j) {
      sum += softmax.probs[j] * v[static_cast<size_t>(j) * p.head_dim + d];
    }
    out[d] = RoundToFp16(sum / softmax.sum);
  }
}

// A whole kernel that is right but for how K and V became `k` and `v`.
void AttendTo(const Problem& p, const Fp16* q, const Tensor& k, const Tensor& v, float* out) {
  WeightedMean(p, Exponentials(Scores(p, q, k), true, InFp32), v, out);
}

// 0: without a scale.
template <int kLargest>
void ScaledTo(const Problem& p, const Fp16* q, const Fp16* k, const Fp16* v, float* out) {
  AttendTo(p, q, ThroughE4m3(p, k, kLargest, Fp8Overflow::kSpecial),
           ThroughE4m3(p, v, kLargest, Fp8Overflow::kSpecial), out);
}

void IntegersReadAsE4m3(const Problem& p, const Fp16* q, const Fp16* k, const Fp16* v, float* out) {
  const auto misread = [&](const Fp16* values) {
    IntegerCodes codes = ThroughUint8(p, values);
    for (float& code : codes.codes) {
      code = sdpa::Fp8ToFloat(sdpa::kE4m3, static_cast<uint8_t>(code)) * codes.scale;
    }
    return codes.codes;
  };
  AttendTo(p, q, misread(k), misread(v), out);
}

void Fp16ExpWithoutMax(const Problem& p, const Fp16* q, const Fp16* k, const Fp16* v, float* out) {
  const Softmax softmax = Exponentials(Scores(p, q, ThroughE4m3(p, k, 448, Fp8Overflow::kSaturate)),
                                       false, RoundToFp16);
  WeightedMean(p, softmax, ThroughE4m3(p, v, 448, Fp8Overflow::kSaturate), out);
}

// O = scale * (sum of P * code - 128 * sum of P) / sum of P, all sums in fp16.
template <bool kSubtractMax>
void ZeroPointLast(const Problem& p, const Fp16* q, const Fp16* k, const Fp16* v, float* out) {
  IntegerCodes keys = ThroughUint8(p, k);
  for (float& code : keys.codes) code = (code - sdpa::kUint8Zero) * keys.scale;
  const Softmax softmax = Exponentials(Scores(p, q, keys.codes), kSubtractMax, RoundToFp16);
  const IntegerCodes values = ThroughUint8(p, v);
  const float offset = RoundToFp16(softmax.sum * sdpa::kUint8Zero);
  for (int d = 0; d < p.head_dim; ++d) {
    float sum = 0;
    for (int j = 0; j < p.seq_kv; ++j) {
      sum = RoundToFp16(sum +
                        softmax.probs[j] * values.codes[static_cast<size_t>(j) * p.head_dim + d]);
    }
    out[d] = RoundToFp16(values.scale * RoundToFp16(sum - offset) / softmax.sum);
  }
}

void PaddingIsNan(const Problem& p, const Fp16* q, const Fp16* k, const Fp16* v, float* out) {
  const Tensor keys = ThroughE4m3(p, k, 448, Fp8Overflow::kSaturate);
  Tensor values = ThroughE4m3(p, v, 448, Fp8Overflow::kSaturate);
  Softmax softmax = Exponentials(Scores(p, q, keys), true, InFp32);
  Problem padded = p;
  padded.seq_kv = (p.seq_kv + kMistakeTileKeys - 1) / kMistakeTileKeys * kMistakeTileKeys;
  softmax.probs.resize(padded.seq_kv, 0.0f);
  values.resize(static_cast<size_t>(padded.seq_kv) * p.head_dim,
                sdpa::Fp8ToFloat(sdpa::kE4m3, 0xff));
  WeightedMean(padded, softmax, values, out);
}

constexpr DtypeMistake kMistakes[] = {
    {"none", "Right, with the scale that maps the largest magnitude to 448.",
     sdpa::InputKind::kNormal, false, &ScaledTo<448>},
    {"no_scale", "K and V are cast to E4M3 without any scale.", sdpa::InputKind::kNormal, false,
     &ScaledTo<0>},
    {"scaled_to_480",
     "The scale maps the largest magnitude to 480, as if E4M3 had no NaN, and the cast does not "
     "saturate.",
     sdpa::InputKind::kNormal, true, &ScaledTo<480>},
    {"integers_read_as_e4m3", "Integer codes are read as E4M3, where 127 and 255 are NaN.",
     sdpa::InputKind::kNormal, false, &IntegersReadAsE4m3},
    {"padding_is_nan",
     "Rows behind the last key of a tile are left as bytes 0xff, which is NaN in E4M3, and P = 0 "
     "is trusted to mask them.",
     sdpa::InputKind::kNormal, false, &PaddingIsNan},
    {"fp16_exp_without_max", "exp and its sum in fp16, with no maximum subtracted.",
     sdpa::InputKind::kNormal, false, &Fp16ExpWithoutMax},
    {"fp16_exp_without_max", "exp and its sum in fp16, with no maximum subtracted.",
     sdpa::InputKind::kLargeLogits, false, &Fp16ExpWithoutMax},
    {"zero_point_last_without_max",
     "Integer codes of 0 to 255 are multiplied as they are, their zero of 128 is taken away from "
     "the sum, the sums are fp16, and no maximum is subtracted.",
     sdpa::InputKind::kNormal, false, &ZeroPointLast<false>},
    {"zero_point_last", "The same with the maximum subtracted.", sdpa::InputKind::kNormal, false,
     &ZeroPointLast<true>},
    {"zero_point_last", "The same with the maximum subtracted.", sdpa::InputKind::kConstant, false,
     &ZeroPointLast<true>},
};

}  // namespace

std::span<const DtypeMistake> DtypeMistakes() { return kMistakes; }

int64_t NonFiniteRows(const DtypeMistake& mistake, const Problem& p, const sdpa::Inputs& inputs,
                      int rows) {
  int64_t count = 0;
  std::vector<float> out(p.head_dim);
  const int64_t kv_elements = int64_t{p.seq_kv} * p.head_dim;
  for (int64_t head = 0; head < int64_t{p.batch} * p.heads_q; ++head) {
    const int64_t kv_head =
        head / p.heads_q * p.heads_kv + head % p.heads_q / (p.heads_q / p.heads_kv);
    for (int row = 0; row < std::min(rows, p.seq_q); ++row) {
      mistake.row(p, &inputs.q[(head * p.seq_q + row) * p.head_dim],
                  &inputs.k[kv_head * kv_elements], &inputs.v[kv_head * kv_elements], out.data());
      count += std::any_of(out.begin(), out.end(), [](float x) { return !std::isfinite(x); });
    }
  }
  return count;
}

}  // namespace warpledger::ablations
