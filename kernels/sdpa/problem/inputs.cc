// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/types/span.h"
#include "kernels/common/parallel.h"
#include "kernels/common/random.h"
#include "kernels/sdpa/problem/draw_normals.h"

namespace warpledger::sdpa {
namespace {

std::vector<Bits16> Draw(Dtype dtype, int64_t elements, double outlier_share, double scale,
                         uint64_t seed) {
  constexpr double kOutlierScale = 10.0;
  // Each chunk has a stream of its own, so that the values do not depend on the
  // number of threads.
  constexpr int64_t kChunk = 1 << 20;
  std::vector<Bits16> values(elements);
  const int64_t chunks = (elements + kChunk - 1) / kChunk;
  ParallelFor(chunks, [&](int64_t chunk) {
    SplitMix64 random(chunk == 0 ? seed : MixSeed(seed, static_cast<uint64_t>(chunk)));
    const int64_t begin = chunk * kChunk;
    const int64_t end = std::min(begin + kChunk, elements);
    if (outlier_share == 0) {
      DrawNormals(dtype, scale, random, absl::MakeSpan(&values[begin], end - begin));
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      double x = random.Normal() * scale;
      if (random.Uniform() < outlier_share) x += random.Normal() * kOutlierScale;
      values[i] = FromFloat(dtype, static_cast<float>(x));
    }
  });
  return values;
}

void RepeatFirstRow(std::vector<Bits16>& values, int64_t row_elements) {
  for (size_t at = row_elements; at < values.size(); at += row_elements) {
    std::copy_n(values.begin(), row_elements, values.begin() + static_cast<int64_t>(at));
  }
}

// Gives each row of x a mean of its own, N(0, 1), and a width from 0.5 to 2: what a
// layernorm takes out again.
void MoveRows(std::vector<Fp16>& x, int64_t row_elements, uint64_t seed) {
  SplitMix64 random(seed);
  for (size_t at = 0; at < x.size(); at += row_elements) {
    const double mean = random.Normal();
    const double width = 0.5 + 1.5 * random.Uniform();
    for (int64_t e = 0; e < row_elements; ++e) {
      x[at + e] = FloatToFp16(static_cast<float>(mean + width * Fp16ToFloat(x[at + e])));
    }
  }
}

// What Q, K and V come from, so that they are about N(0, 1), or N(0, 64) as the kind says.
Inputs MakeEmbedded(const Problem& p, double outliers, double qk_scale, bool constant,
                    uint64_t seed) {
  Inputs inputs;
  inputs.x = Draw(Dtype::kFp16, EmbeddedElements(p), outliers, 1.0, MixSeed(seed, 4));
  MoveRows(inputs.x, p.embed_dim, MixSeed(seed, 5));
  if (constant) RepeatFirstRow(inputs.x, p.embed_dim);
  inputs.gamma = Draw(Dtype::kFp16, p.embed_dim, 0.0, 0.1, MixSeed(seed, 6));
  for (Fp16& gamma : inputs.gamma) gamma = FloatToFp16(1.0f + Fp16ToFloat(gamma));
  inputs.beta = Draw(Dtype::kFp16, p.embed_dim, 0.0, 0.1, MixSeed(seed, 7));
  inputs.w = Draw(Dtype::kFp16, ProjectionRows(p) * p.embed_dim, 0.0, 1.0, MixSeed(seed, 8));
  const auto qk_elements =
      static_cast<size_t>((int64_t{p.heads_q} + p.heads_kv) * p.head_dim * p.embed_dim);
  const double unit = 1.0 / std::sqrt(static_cast<double>(p.embed_dim));
  for (size_t i = 0; i < inputs.w.size(); ++i) {
    const double scale = i < qk_elements ? unit * qk_scale : unit;
    inputs.w[i] = FloatToFp16(static_cast<float>(scale * Fp16ToFloat(inputs.w[i])));
  }
  return inputs;
}

}  // namespace

Inputs MakeInputs(const Problem& p, InputKind kind, uint64_t seed) {
  const double outliers = kind == InputKind::kOutliers ? 0.001 : 0.0;
  const double qk_scale = kind == InputKind::kLargeLogits ? 8.0 : 1.0;
  if (p.embed_dim > 0) {
    return MakeEmbedded(p, outliers, qk_scale, kind == InputKind::kConstant, seed);
  }
  Inputs inputs;
  inputs.q = Draw(p.dtype, QueryElements(p), outliers, qk_scale, MixSeed(seed, 1));
  inputs.k = Draw(p.dtype, KeyElements(p), outliers, qk_scale, MixSeed(seed, 2));
  inputs.v = Draw(p.dtype, KeyElements(p), outliers, 1.0, MixSeed(seed, 3));
  if (kind == InputKind::kConstant) {
    RepeatFirstRow(inputs.k, p.head_dim);
    RepeatFirstRow(inputs.v, p.head_dim);
  }
  return inputs;
}

}  // namespace warpledger::sdpa
