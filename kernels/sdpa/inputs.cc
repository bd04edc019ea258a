#include "kernels/sdpa/inputs.h"

#include <algorithm>
#include <cstddef>

#include "kernels/common/random.h"

namespace warpledger::sdpa {
namespace {

std::vector<Fp16> Draw(int64_t elements, double outlier_share, double scale, uint64_t seed) {
  constexpr double kOutlierScale = 10.0;
  SplitMix64 random(seed);
  std::vector<Fp16> values(elements);
  for (Fp16& value : values) {
    double x = random.Normal() * scale;
    if (outlier_share > 0 && random.Uniform() < outlier_share) {
      x += random.Normal() * kOutlierScale;
    }
    value = FloatToFp16(static_cast<float>(x));
  }
  return values;
}

void RepeatFirstRow(std::vector<Fp16>& values, int64_t row_elements) {
  for (size_t at = row_elements; at < values.size(); at += row_elements) {
    std::copy_n(values.begin(), row_elements, values.begin() + static_cast<int64_t>(at));
  }
}

}  // namespace

Inputs MakeInputs(const Problem& p, InputKind kind, uint64_t seed) {
  const double outliers = kind == InputKind::kOutliers ? 0.001 : 0.0;
  const double qk_scale = kind == InputKind::kLargeLogits ? 8.0 : 1.0;
  Inputs inputs;
  inputs.q = Draw(QueryElements(p), outliers, qk_scale, MixSeed(seed, 1));
  inputs.k = Draw(KeyElements(p), outliers, qk_scale, MixSeed(seed, 2));
  inputs.v = Draw(KeyElements(p), outliers, 1.0, MixSeed(seed, 3));
  if (kind == InputKind::kConstant) {
    RepeatFirstRow(inputs.k, p.head_dim);
    RepeatFirstRow(inputs.v, p.head_dim);
  }
  return inputs;
}

}  // namespace warpledger::sdpa
