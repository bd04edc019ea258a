// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/projection.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/parallel.h"

namespace warpledger::sdpa {
namespace {

// One row of layernorm(x). float stands for the naive computation, which rounds it.
template <typename T>
void NormaliseRow(const Problem& p, const Inputs& in, int64_t row, T* out) {
  const Fp16* x = &in.x[row * p.embed_dim];
  T sum = 0;
  for (int e = 0; e < p.embed_dim; ++e) sum += static_cast<T>(Fp16ToFloat(x[e]));
  const T mean = sum / static_cast<T>(p.embed_dim);
  T squares = 0;
  for (int e = 0; e < p.embed_dim; ++e) {
    const T d = static_cast<T>(Fp16ToFloat(x[e])) - mean;
    squares += d * d;
  }
  const T scale =
      T{1} / std::sqrt(squares / static_cast<T>(p.embed_dim) + static_cast<T>(kLayerNormEpsilon));
  for (int e = 0; e < p.embed_dim; ++e) {
    const T gamma = static_cast<T>(Fp16ToFloat(in.gamma[e]));
    const T beta = static_cast<T>(Fp16ToFloat(in.beta[e]));
    out[e] = (static_cast<T>(Fp16ToFloat(x[e])) - mean) * scale * gamma + beta;
    if constexpr (std::is_same_v<T, float>) out[e] = RoundToFp16(out[e]);
  }
}

// Where column `n` of the product of row (b, s) belongs.
template <typename Out>
void Scatter(const Problem& p, int64_t row, const auto* columns, Projected<Out>* result) {
  const int64_t b = row / p.seq_q;
  const int64_t s = row % p.seq_q;
  const auto* at = columns;
  const auto put = [&](std::vector<Out>& tensor, int heads) {
    for (int h = 0; h < heads; ++h) {
      Out* to = &tensor[((b * heads + h) * p.seq_q + s) * p.head_dim];
      for (int d = 0; d < p.head_dim; ++d, ++at) {
        if constexpr (std::is_same_v<Out, Fp16>) {
          to[d] = FloatToFp16(*at);
        } else {
          to[d] = *at;
        }
      }
    }
  };
  put(result->q, p.heads_q);
  put(result->k, p.heads_kv);
  put(result->v, p.heads_kv);
}

template <typename T, typename Out>
Projected<Out> Project(const Problem& p, const Inputs& in) {
  const int64_t columns = ProjectionRows(p);
  // Transposed, the inner loop runs over contiguous columns without reordering a sum.
  std::vector<T> w(static_cast<size_t>(columns) * p.embed_dim);  // (embed_dim, columns)
  for (int64_t n = 0; n < columns; ++n) {
    for (int e = 0; e < p.embed_dim; ++e) {
      w[e * columns + n] = static_cast<T>(Fp16ToFloat(in.w[n * p.embed_dim + e]));
    }
  }
  Projected<Out> result;
  result.q.resize(QueryElements(p));
  result.k.resize(KeyElements(p));
  result.v.resize(KeyElements(p));

  constexpr int64_t kRowsPerChunk = 8;  // which share each row of `w` while it is in cache
  const int64_t rows = EmbeddedRows(p);
  const int64_t chunks = (rows + kRowsPerChunk - 1) / kRowsPerChunk;
  ParallelForWith(chunks, [&] {
    return [&, normalised = std::vector<T>(kRowsPerChunk * p.embed_dim),
            sums = std::vector<T>(kRowsPerChunk * columns)](int64_t chunk) mutable {
      const int64_t first = chunk * kRowsPerChunk;
      const int64_t count = std::min(kRowsPerChunk, rows - first);
      std::fill(sums.begin(), sums.end(), T{0});
      for (int64_t r = 0; r < count; ++r) {
        NormaliseRow(p, in, first + r, &normalised[r * p.embed_dim]);
      }
      for (int e = 0; e < p.embed_dim; ++e) {
        const T* w_row = &w[e * columns];
        for (int64_t r = 0; r < count; ++r) {
          const T x = normalised[r * p.embed_dim + e];
          T* sum = &sums[r * columns];
          for (int64_t n = 0; n < columns; ++n) sum[n] += x * w_row[n];
        }
      }
      for (int64_t r = 0; r < count; ++r) Scatter(p, first + r, &sums[r * columns], &result);
    };
  });
  return result;
}

}  // namespace

Projected<double> ProjectExact(const Problem& problem, const Inputs& inputs) {
  return Project<double, double>(problem, inputs);
}

Projected<Fp16> ProjectNaive(const Problem& problem, const Inputs& inputs) {
  return Project<float, Fp16>(problem, inputs);
}

}  // namespace warpledger::sdpa
