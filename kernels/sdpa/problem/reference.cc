// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/common/parallel.h"
#include "kernels/common/random.h"
#include "kernels/common/vector_clones.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/projection.h"

namespace warpledger::sdpa {
namespace {

// One K/V head in the layouts that let the inner loops run over contiguous
// memory without reordering any sum: K transposed, V as it is.
template <typename T>
struct Head {
  std::vector<T> k_transposed;  // (head_dim, seq_kv)
  std::vector<T> v;             // (seq_kv, head_dim)

  // `k_at` and `v_at` give an element of the tensors; the head begins at `offset`.
  template <typename At>
  Head(const Problem& p, int64_t offset, const At& k_at, const At& v_at)
      : k_transposed(static_cast<size_t>(p.seq_kv) * p.head_dim),
        v(static_cast<size_t>(p.seq_kv) * p.head_dim) {
    for (int64_t at = 0; at < static_cast<int64_t>(v.size()); ++at) v[at] = v_at(offset + at);
    // Some keys at a time, so that a cache line of the transpose is written at once.
    constexpr int kKeys = 16;
    for (int begin = 0; begin < p.seq_kv; begin += kKeys) {
      const int end = std::min(begin + kKeys, p.seq_kv);
      for (int d = 0; d < p.head_dim; ++d) {
        T* to = &k_transposed[static_cast<size_t>(d) * p.seq_kv];
        for (int j = begin; j < end; ++j) to[j] = k_at(offset + int64_t{j} * p.head_dim + d);
      }
    }
  }
};

// An element of a tensor at an index, from 16 bits or from codes. As float, codes are rounded
// to the dtype, as a kernel that dequantises before its products has them.
template <typename T>
struct ElementAt {
  Dtype dtype;
  const Bits16* bits;
  const QuantisedTensor* codes = nullptr;

  T operator()(int64_t at) const {
    if (codes == nullptr) return static_cast<T>(ToFloat(dtype, bits[at]));
    const double value = Dequantise(*codes, at);
    if constexpr (std::is_same_v<T, float>) return RoundTo(dtype, static_cast<float>(value));
    return static_cast<T>(value);
  }
};

// The same of an array of FP64.
struct ExactAt {
  const double* values;

  double operator()(int64_t at) const { return values[at]; }
};

// Rows of queries that go over a head's keys together, a stretch of keys at a time: K and V of
// a stretch stay in a core's cache for all of them. No sum has another order for that.
constexpr int kRowsAtOnce = 8;
constexpr int kKeysAtOnce = 256;
// Scores takes four columns at a time.
static_assert(std::all_of(std::begin(kHeadDims), std::end(kHeadDims),
                          [](int head_dim) { return head_dim % 4 == 0; }));

struct RowGroup {
  int64_t first;          // of the reference
  int count;              // up to kRowsAtOnce
  int keys[kRowsAtOnce];  // that each of them sees
};

// Calls body(row, begin, end) for the stretches of keys that each row sees.
template <typename Body>
void ForStretches(const RowGroup& rows, const Body& body) {
  const int most = *std::max_element(rows.keys, rows.keys + rows.count);
  for (int begin = 0; begin < most; begin += kKeysAtOnce) {
    for (int row = 0; row < rows.count; ++row) {
      const int end = std::min(begin + kKeysAtOnce, rows.keys[row]);
      if (begin < end) body(row, begin, end);
    }
  }
}

// scores[j] = sum over d of q[d] * k[j][d], for begin <= j < end. Four d at a time, so that a
// score is loaded and stored once for them.
template <typename T>
WARPLEDGER_VECTOR_CLONES void Scores(const Problem& p, const Head<T>& head, const T* q, int begin,
                                     int end, T* __restrict scores) {
  std::fill(scores + begin, scores + end, T{0});
  for (int d = 0; d < p.head_dim; d += 4) {
    const T* k0 = &head.k_transposed[static_cast<size_t>(d) * p.seq_kv];
    const T* k1 = k0 + p.seq_kv;
    const T* k2 = k1 + p.seq_kv;
    const T* k3 = k2 + p.seq_kv;
    for (int j = begin; j < end; ++j) {
      scores[j] = scores[j] + q[d] * k0[j] + q[d + 1] * k1[j] + q[d + 2] * k2[j] + q[d + 3] * k3[j];
    }
  }
}

// out[d] += sum over j of probs[j] * v[j][d], for begin <= j < end; four j at a time.
template <typename T>
WARPLEDGER_VECTOR_CLONES void AddWeighted(const Problem& p, const Head<T>& head, const T* probs,
                                          int begin, int end, T* __restrict out) {
  const int dims = p.head_dim;
  int j = begin;
  for (; j + 4 <= end; j += 4) {
    const T* v = &head.v[static_cast<size_t>(j) * dims];
    for (int d = 0; d < dims; ++d) {
      out[d] = out[d] + probs[j] * v[d] + probs[j + 1] * v[dims + d] +
               probs[j + 2] * v[2 * dims + d] + probs[j + 3] * v[3 * dims + d];
    }
  }
  for (; j < end; ++j) {
    const T* v = &head.v[static_cast<size_t>(j) * dims];
    for (int d = 0; d < dims; ++d) out[d] += probs[j] * v[d];
  }
}

// What gives an element of Q, of K and of V.
template <typename At>
struct Tensors {
  At q;
  At k;
  At v;
};

// `Exact` is what the truth is computed from: the elements that kernels get, or FP64 where
// they get x. The naive computation has the problem's dtype either way.
template <typename Exact>
class HeadWorker {
 public:
  HeadWorker(const Problem& p, const Tensors<Exact>& exact, const Tensors<ElementAt<float>>& naive,
             Reference& result)
      : p_(p),
        fp8_products_(naive.q.codes != nullptr),
        exact_(exact),
        naive_(naive),
        result_(result),
        scores_(static_cast<size_t>(kRowsAtOnce) * p.seq_kv),
        naive_scores_(scores_.size()) {}

  // Rows [begin, end) of the reference, all of one head.
  void Run(int64_t begin, int64_t end) {
    const int64_t head = GlobalRow(begin) / p_.seq_q;
    const int64_t batch = head / p_.heads_q;
    const int64_t kv_head = batch * p_.heads_kv + (head % p_.heads_q) / (p_.heads_q / p_.heads_kv);
    const int64_t offset = kv_head * p_.seq_kv * p_.head_dim;
    const Head<double> exact(p_, offset, exact_.k, exact_.v);
    const Head<float> naive(p_, offset, naive_.k, naive_.v);
    const auto for_rows = [&](auto body) {
      for (int64_t at = begin; at < end; at += kRowsAtOnce) {
        RowGroup rows = {at, static_cast<int>(std::min<int64_t>(kRowsAtOnce, end - at)), {}};
        for (int i = 0; i < rows.count; ++i) {
          rows.keys[i] = Keys(static_cast<int>(GlobalRow(at + i) - head * p_.seq_q));
        }
        body(rows);
      }
    };
    for_rows([&](const RowGroup& rows) {
      ExactRows(exact, rows);
      NaiveRows(naive, rows);
    });
    if (result_.rounded_lse.empty() || fp8_products_) return;
    const Head<double> rounded(p_, offset, naive_.k, naive_.v);
    for_rows([&](const RowGroup& rows) {
      ScoresOf(rounded, naive_.q, rows, scores_);
      for (int i = 0; i < rows.count; ++i) {
        result_.rounded_lse[rows.first + i] = Softmax(ScoresOfRow(scores_, i), rows.keys[i]).lse;
      }
    });
  }

 private:
  int64_t GlobalRow(int64_t at) const { return result_.rows.empty() ? at : result_.rows[at]; }
  // That the row of its head sees.
  int Keys(int row) const {
    return p_.causal ? std::clamp(row + p_.seq_kv - p_.seq_q + 1, 0, p_.seq_kv) : p_.seq_kv;
  }

  template <typename T>
  T* ScoresOfRow(std::vector<T>& scores, int row) const {
    return &scores[static_cast<size_t>(row) * p_.seq_kv];
  }
  template <typename T, typename At>
  void ScoresOf(const Head<T>& head, const At& q_at, const RowGroup& rows,
                std::vector<T>& scores) const {
    std::vector<T> q(static_cast<size_t>(rows.count) * p_.head_dim);
    for (int i = 0; i < rows.count; ++i) {
      const int64_t begin = GlobalRow(rows.first + i) * p_.head_dim;
      for (int d = 0; d < p_.head_dim; ++d) {
        q[static_cast<size_t>(i) * p_.head_dim + d] = static_cast<T>(q_at(begin + d));
      }
    }
    ForStretches(rows, [&](int row, int begin, int end) {
      Scores(p_, head, &q[static_cast<size_t>(row) * p_.head_dim], begin, end,
             ScoresOfRow(scores, row));
    });
  }
  // Into `out`, (rows, head_dim), which is zero.
  template <typename T>
  void WeightedSums(const Head<T>& head, std::vector<T>& probs, const RowGroup& rows,
                    T* out) const {
    ForStretches(rows, [&](int row, int begin, int end) {
      AddWeighted(p_, head, ScoresOfRow(probs, row), begin, end,
                  out + static_cast<ptrdiff_t>(row) * p_.head_dim);
    });
  }

  // Turns scores into exp(scale * score - max).
  struct Sums {
    double sum;
    double lse;
  };
  Sums Softmax(double* scores, int keys) const {
    const double scale = 1.0 / std::sqrt(static_cast<double>(p_.head_dim));
    double max = -std::numeric_limits<double>::infinity();
    for (int j = 0; j < keys; ++j) {
      scores[j] *= scale;
      max = std::max(max, scores[j]);
    }
    double sum = 0;
    for (int j = 0; j < keys; ++j) {
      scores[j] = std::exp(scores[j] - max);
      sum += scores[j];
    }
    return {sum, max + std::log(sum)};
  }

  // In FP64; -infinity where no key is seen.
  static double LogSumExp(const float* scores, int keys) {
    double max = -std::numeric_limits<double>::infinity();
    for (int j = 0; j < keys; ++j) max = std::max(max, double{scores[j]});
    double sum = 0;
    for (int j = 0; j < keys; ++j) sum += std::exp(scores[j] - max);
    return max + std::log(sum);
  }

  // What tensor cores may make of it, at most by half of what the rule allows. They add 32 FP8
  // products at a time to the sum so far, align these at the largest of them, and drop what lies
  // more than 13 bits below it. So a score whose products cancel may be off by 2^-13 of the sum of
  // their magnitudes. By so much each score is raised.
  //
  // Where one product outweighs the others, each of those added with it or after it loses up to
  // 2^-13 of it, or all that it has; the root mean square of such losses is sqrt(1/3) of them. The
  // product of two E4M3 numbers has eight bits, so that one of 2^7 units and more loses nothing.
  // Over keys losses average out by the keys' weights. kRootMeanSquares of what is left are
  // allowed, twice.
  double RoundedLse(const Head<float>& head, int64_t at, const float* naive_scores, int keys) {
    constexpr int kAtOnce = 32;
    constexpr float kWholeFrom = 128;
    constexpr double kRootMeanSquares = 1.05;
    const float scale = 1.0f / std::sqrt(static_cast<float>(p_.head_dim));
    const float bits = std::ldexp(1.0f, -13);
    magnitudes_.assign(keys, 0.0f);
    sums_.assign(keys, 0.0f);
    losses_.assign(keys, 0.0f);
    for (int first = 0; first < p_.head_dim; first += kAtOnce) {
      const auto for_products = [&](auto take) {
        for (int d = first; d < std::min(first + kAtOnce, p_.head_dim); ++d) {
          const float q = naive_.q(GlobalRow(at) * p_.head_dim + d) * scale;
          const float* k = &head.k_transposed[static_cast<size_t>(d) * p_.seq_kv];
          for (int j = 0; j < keys; ++j) take(j, q * k[j]);
        }
      };
      largest_.resize(keys);
      for (int j = 0; j < keys; ++j) largest_[j] = std::fabs(sums_[j]);
      for_products(
          [&](int j, float product) { largest_[j] = std::max(largest_[j], std::fabs(product)); });
      const auto lose = [&](int j, float magnitude) {
        const float loss = std::min(magnitude, bits * largest_[j]);
        losses_[j] += loss * loss;
      };
      for (int j = 0; j < keys; ++j) lose(j, std::fabs(sums_[j]));
      for_products([&](int j, float product) {
        const float magnitude = std::fabs(product);
        if (magnitude < kWholeFrom * bits * largest_[j]) lose(j, magnitude);
        magnitudes_[j] += magnitude;
        sums_[j] += product;
      });
    }
    const double lse = LogSumExp(naive_scores, keys);
    double squares = 0;
    for (int j = 0; j < keys; ++j) {
      const double weight = std::exp(naive_scores[j] - lse);
      squares += weight * weight * losses_[j] / 3;
      magnitudes_[j] = naive_scores[j] + bits * magnitudes_[j];
    }
    return std::max(LogSumExp(magnitudes_.data(), keys),
                    lse + kRootMeanSquares * std::sqrt(squares));
  }

  void ExactRows(const Head<double>& head, const RowGroup& rows) {
    double* out = &result_.out[rows.first * p_.head_dim];
    Sums sums[kRowsAtOnce];
    ScoresOf(head, exact_.q, rows, scores_);
    for (int i = 0; i < rows.count; ++i) {
      sums[i] = Softmax(ScoresOfRow(scores_, i), rows.keys[i]);
      result_.lse[rows.first + i] = sums[i].lse;
    }
    WeightedSums(head, scores_, rows, out);
    for (int i = 0; i < rows.count; ++i, out += p_.head_dim) {
      for (int d = 0; d < p_.head_dim; ++d) out[d] = rows.keys[i] == 0 ? 0.0 : out[d] / sums[i].sum;
    }
  }

  void NaiveRows(const Head<float>& head, const RowGroup& rows) {
    float* out = &result_.naive_out[rows.first * p_.head_dim];
    float sums[kRowsAtOnce];
    ScoresOf(head, naive_.q, rows, naive_scores_);
    for (int i = 0; i < rows.count; ++i) {
      sums[i] =
          NaiveProbabilities(head, rows.first + i, ScoresOfRow(naive_scores_, i), rows.keys[i]);
    }
    WeightedSums(head, naive_scores_, rows, out);
    for (int i = 0; i < rows.count; ++i, out += p_.head_dim) {
      for (int d = 0; d < p_.head_dim; ++d) {
        out[d] = RoundedOutput(rows.keys[i] == 0 ? 0.0f : out[d] / sums[i]);
      }
    }
  }

  float RoundedOutput(float value) const {
    const float scale = result_.out_scale;
    if (scale == 0) return RoundTo(p_.dtype, value);
    return scale * Fp8ToFloat(kE4m3, FloatToFp8(kE4m3, value / scale, Fp8Overflow::kSaturate));
  }

  // Turns raw scores of the reference's row `at` into what P V is taken of, and gives what P V
  // is divided by.
  float NaiveProbabilities(const Head<float>& head, int64_t at, float* scores, int keys) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(p_.head_dim));
    float max = -std::numeric_limits<float>::infinity();
    for (int j = 0; j < keys; ++j) {
      scores[j] = RoundTo(p_.dtype, RoundTo(p_.dtype, scores[j]) * scale);
      max = std::max(max, scores[j]);
    }
    if (fp8_products_) result_.rounded_lse[at] = RoundedLse(head, at, scores, keys);
    float sum = 0;
    for (int j = 0; j < keys; ++j) {
      scores[j] = std::exp(scores[j] - max);
      sum += scores[j];
    }
    if (fp8_products_) {
      constexpr float kRise = 256;
      for (int j = 0; j < keys; ++j) {
        const uint8_t code = FloatToFp8(kE4m3, kRise * scores[j], Fp8Overflow::kSaturate);
        scores[j] = Fp8ToFloat(kE4m3, code);
      }
      return kRise * sum;
    }
    for (int j = 0; j < keys; ++j) scores[j] = RoundTo(p_.dtype, scores[j] / sum);
    return 1.0f;
  }

  const Problem& p_;
  const bool fp8_products_;
  const Tensors<Exact> exact_;
  const Tensors<ElementAt<float>> naive_;
  Reference& result_;
  std::vector<double> scores_;       // (kRowsAtOnce, seq_kv), and then probabilities
  std::vector<float> naive_scores_;  // the same
  std::vector<float> magnitudes_;
  std::vector<float> largest_;
  std::vector<float> losses_;
  std::vector<float> sums_;  // of FP8 products
};

// Fills `result`, whose vectors have their sizes.
template <typename Exact>
void FillReference(const Problem& p, const Tensors<Exact>& exact,
                   const Tensors<ElementAt<float>>& naive, Reference& result) {
  const auto count = static_cast<int64_t>(result.lse.size());
  // Chunks of rows of one head, so that few long heads still spread over many cores.
  constexpr int64_t kRowsPerChunk = 256;
  std::vector<int64_t> begins;
  for (int64_t at = 0, head = -1; at < count; ++at) {
    const int64_t head_of_row = (result.rows.empty() ? at : result.rows[at]) / p.seq_q;
    if (head_of_row == head && at - begins.back() < kRowsPerChunk) continue;
    begins.push_back(at);
    head = head_of_row;
  }
  const int64_t chunks = static_cast<int64_t>(begins.size());
  begins.push_back(count);
  ParallelForWith(chunks, [&] {
    return [&, worker = HeadWorker<Exact>(p, exact, naive, result)](int64_t chunk) mutable {
      worker.Run(begins[chunk], begins[chunk + 1]);
    };
  });
}

// Of Q, K and V that are given.
template <typename T>
Tensors<ElementAt<T>> Given(const Problem& p, const Inputs& inputs) {
  const QuantisedKv* codes = inputs.quantised ? &*inputs.quantised : nullptr;
  const bool queries = codes != nullptr && codes->q.has_value();
  return {{p.dtype, inputs.q.data(), queries ? &*codes->q : nullptr},
          {p.dtype, inputs.k.data(), codes == nullptr ? nullptr : &codes->k},
          {p.dtype, inputs.v.data(), codes == nullptr ? nullptr : &codes->v}};
}

}  // namespace

Inputs WithQuantisedKv(const Problem& p, Inputs inputs, const KvStorage& storage) {
  QuantisedKv& made = inputs.quantised.emplace(
      QuantisedKv{Quantise(p, inputs.k, storage.scheme), Quantise(p, inputs.v, storage.scheme)});
  if (storage.queries) made.q = QuantiseQueries(p, inputs.q, storage.scheme.format);
  if (storage.output) made.out_scale = OutputScale(made.v);
  return inputs;
}

Reference ComputeReference(const Problem& p, const Inputs& inputs, std::vector<int64_t> rows) {
  Reference result;
  result.dtype = p.dtype;
  if (inputs.quantised) result.out_scale = inputs.quantised->out_scale;
  result.rows = std::move(rows);
  result.total_rows = QueryRows(p);
  const int64_t count =
      result.rows.empty() ? QueryRows(p) : static_cast<int64_t>(result.rows.size());
  result.out.resize(count * p.head_dim);
  result.naive_out.resize(count * p.head_dim);
  result.lse.resize(count);
  if (p.embed_dim == 0) {
    if (inputs.quantised && inputs.quantised->q) result.rounded_lse.resize(count);
    FillReference(p, Given<double>(p, inputs), Given<float>(p, inputs), result);
    return result;
  }
  result.rounded_lse.resize(count);
  const Projected<double> exact = ProjectExact(p, inputs);
  const Projected<Fp16> naive = ProjectNaive(p, inputs);
  FillReference<ExactAt>(p, {{exact.q.data()}, {exact.k.data()}, {exact.v.data()}},
                         {{Dtype::kFp16, naive.q.data()},
                          {Dtype::kFp16, naive.k.data()},
                          {Dtype::kFp16, naive.v.data()}},
                         result);
  return result;
}

std::vector<int64_t> SampleRows(const Problem& p, double max_flops, uint64_t seed) {
  std::vector<int64_t> rows;
  const auto stride = static_cast<int>(std::min(std::ceil(Flops(p) / max_flops), 1.0 * p.seq_q));
  if (stride <= 1) return rows;
  SplitMix64 random(seed);
  for (int64_t head = 0; head < int64_t{p.batch} * p.heads_q; ++head) {
    const int64_t first = head * p.seq_q;
    const int64_t last = first + p.seq_q - 1;
    rows.push_back(first);
    for (int run = 0; run < p.seq_q; run += stride) {
      const int64_t row = first + run + random.Below(std::min(stride, p.seq_q - run));
      if (row != first && row != last) rows.push_back(row);
    }
    if (last != first) rows.push_back(last);
  }
  return rows;
}

}  // namespace warpledger::sdpa
