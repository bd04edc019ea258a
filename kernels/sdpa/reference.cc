#include "kernels/sdpa/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/common/parallel.h"
#include "kernels/common/random.h"
#include "kernels/sdpa/fp8.h"
#include "kernels/sdpa/projection.h"

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
    for (int j = 0; j < p.seq_kv; ++j) {
      for (int d = 0; d < p.head_dim; ++d) {
        const size_t at = static_cast<size_t>(j) * p.head_dim + d;
        k_transposed[static_cast<size_t>(d) * p.seq_kv + j] =
            k_at(offset + static_cast<int64_t>(at));
        v[at] = v_at(offset + static_cast<int64_t>(at));
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

// scores[j] = sum over d of q[d] * k[j][d], for j < keys; the row of Q begins at `q`.
template <typename T, typename At>
void Scores(const Problem& p, const Head<T>& head, const At& q_at, int64_t q, int keys, T* scores) {
  std::fill(scores, scores + keys, T{0});
  for (int d = 0; d < p.head_dim; ++d) {
    const T q_value = q_at(q + d);
    const T* k = &head.k_transposed[static_cast<size_t>(d) * p.seq_kv];
    for (int j = 0; j < keys; ++j) scores[j] += q_value * k[j];
  }
}

// out[d] = sum over j of probs[j] * v[j][d].
template <typename T>
void WeightedSum(const Problem& p, const Head<T>& head, const T* probs, int keys, T* out) {
  std::fill(out, out + p.head_dim, T{0});
  for (int j = 0; j < keys; ++j) {
    const T* v = &head.v[static_cast<size_t>(j) * p.head_dim];
    for (int d = 0; d < p.head_dim; ++d) out[d] += probs[j] * v[d];
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
        scores_(p.seq_kv),
        naive_scores_(p.seq_kv) {}

  // Rows [begin, end) of the reference, all of one head.
  void Run(int64_t begin, int64_t end) {
    const int64_t head = GlobalRow(begin) / p_.seq_q;
    const int64_t batch = head / p_.heads_q;
    const int64_t kv_head = batch * p_.heads_kv + (head % p_.heads_q) / (p_.heads_q / p_.heads_kv);
    const int64_t offset = kv_head * p_.seq_kv * p_.head_dim;
    const Head<double> exact(p_, offset, exact_.k, exact_.v);
    const Head<float> naive(p_, offset, naive_.k, naive_.v);
    for (int64_t at = begin; at < end; ++at) {
      const int row = static_cast<int>(GlobalRow(at) - head * p_.seq_q);
      const int keys = Keys(row);
      ExactRow(exact, at, keys);
      NaiveRow(naive, at, keys);
    }
    if (result_.rounded_lse.empty() || fp8_products_) return;
    const Head<double> rounded(p_, offset, naive_.k, naive_.v);
    for (int64_t at = begin; at < end; ++at) {
      const int row = static_cast<int>(GlobalRow(at) - head * p_.seq_q);
      Scores(p_, rounded, naive_.q, GlobalRow(at) * p_.head_dim, Keys(row), scores_.data());
      result_.rounded_lse[at] = Softmax(Keys(row)).lse;
    }
  }

 private:
  int64_t GlobalRow(int64_t at) const { return result_.rows.empty() ? at : result_.rows[at]; }
  // That the row of its head sees.
  int Keys(int row) const {
    return p_.causal ? std::clamp(row + p_.seq_kv - p_.seq_q + 1, 0, p_.seq_kv) : p_.seq_kv;
  }

  // Turns scores_ into exp(scale * score - max).
  struct Sums {
    double sum;
    double lse;
  };
  Sums Softmax(int keys) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(p_.head_dim));
    double max = -std::numeric_limits<double>::infinity();
    for (int j = 0; j < keys; ++j) {
      scores_[j] *= scale;
      max = std::max(max, scores_[j]);
    }
    double sum = 0;
    for (int j = 0; j < keys; ++j) {
      scores_[j] = std::exp(scores_[j] - max);
      sum += scores_[j];
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

  // Of the naive scores, each raised by 2^-13 of the sum of its products' magnitudes. Tensor
  // cores align FP8 products at the largest of those that they add and drop what lies more
  // than 13 bits below it, so that a score whose products cancel may be off by more than its
  // own size says.
  double RoundedLse(const Head<float>& head, int64_t at, int keys) {
    const float unit = std::ldexp(1.0f / std::sqrt(static_cast<float>(p_.head_dim)), -13);
    raised_.assign(keys, 0.0f);
    for (int d = 0; d < p_.head_dim; ++d) {
      const float q = std::fabs(naive_.q(GlobalRow(at) * p_.head_dim + d)) * unit;
      const float* k = &head.k_transposed[static_cast<size_t>(d) * p_.seq_kv];
      for (int j = 0; j < keys; ++j) raised_[j] += q * std::fabs(k[j]);
    }
    for (int j = 0; j < keys; ++j) raised_[j] += naive_scores_[j];
    return LogSumExp(raised_.data(), keys);
  }

  void ExactRow(const Head<double>& head, int64_t at, int keys) {
    double* out = &result_.out[at * p_.head_dim];
    Scores(p_, head, exact_.q, GlobalRow(at) * p_.head_dim, keys, scores_.data());
    const Sums sums = Softmax(keys);
    WeightedSum(p_, head, scores_.data(), keys, out);
    for (int d = 0; d < p_.head_dim; ++d) out[d] = keys == 0 ? 0.0 : out[d] / sums.sum;
    result_.lse[at] = sums.lse;
  }

  void NaiveRow(const Head<float>& head, int64_t at, int keys) {
    float* out = &result_.naive_out[at * p_.head_dim];
    Scores(p_, head, naive_.q, GlobalRow(at) * p_.head_dim, keys, naive_scores_.data());
    const float scale = 1.0f / std::sqrt(static_cast<float>(p_.head_dim));
    float max = -std::numeric_limits<float>::infinity();
    for (int j = 0; j < keys; ++j) {
      naive_scores_[j] = RoundTo(p_.dtype, RoundTo(p_.dtype, naive_scores_[j]) * scale);
      max = std::max(max, naive_scores_[j]);
    }
    if (fp8_products_) result_.rounded_lse[at] = RoundedLse(head, at, keys);
    float sum = 0;
    for (int j = 0; j < keys; ++j) {
      naive_scores_[j] = std::exp(naive_scores_[j] - max);
      sum += naive_scores_[j];
    }
    if (fp8_products_) {
      constexpr float kRise = 256;
      for (int j = 0; j < keys; ++j) {
        const uint8_t code = FloatToFp8(kE4m3, kRise * naive_scores_[j], Fp8Overflow::kSaturate);
        naive_scores_[j] = Fp8ToFloat(kE4m3, code);
      }
      WeightedSum(p_, head, naive_scores_.data(), keys, out);
      for (int d = 0; d < p_.head_dim; ++d) {
        out[d] = RoundTo(p_.dtype, keys == 0 ? 0.0f : out[d] / (kRise * sum));
      }
      return;
    }
    for (int j = 0; j < keys; ++j) naive_scores_[j] = RoundTo(p_.dtype, naive_scores_[j] / sum);
    WeightedSum(p_, head, naive_scores_.data(), keys, out);
    for (int d = 0; d < p_.head_dim; ++d) out[d] = RoundTo(p_.dtype, out[d]);
  }

  const Problem& p_;
  const bool fp8_products_;
  const Tensors<Exact> exact_;
  const Tensors<ElementAt<float>> naive_;
  Reference& result_;
  std::vector<double> scores_;
  std::vector<float> naive_scores_;
  std::vector<float> raised_;  // of FP8 products
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

Inputs WithQuantisedKv(const Problem& p, Inputs inputs, const KvScheme& scheme, bool queries) {
  inputs.quantised = QuantisedKv{Quantise(p, inputs.k, scheme), Quantise(p, inputs.v, scheme)};
  if (queries) inputs.quantised->q = QuantiseQueries(p, inputs.q, scheme.format);
  return inputs;
}

Reference ComputeReference(const Problem& p, const Inputs& inputs, std::vector<int64_t> rows) {
  Reference result;
  result.dtype = p.dtype;
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
