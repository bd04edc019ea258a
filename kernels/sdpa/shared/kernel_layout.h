// SPDX-License-Identifier: Apache-2.0
// Where the rows of Q, K, V and O lie. A row's elements lie side by side. Host-safe and constexpr.
//
//   const TensorStrides packed = {seq * 3 * heads * head_dim, head_dim, 3 * heads * head_dim};
//   FoldedHeadStride(packed, /*batch=*/1, heads)  // head_dim

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_KERNEL_LAYOUT_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_KERNEL_LAYOUT_H_

#include <cstdint>
#include <optional>

namespace warpledger::sdpa {

// Elements from one to the next.
struct TensorStrides {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t row = 0;

  friend constexpr bool operator==(const TensorStrides&, const TensorStrides&) = default;
};

// (batch, heads, seq, head_dim) without gaps.
constexpr TensorStrides ContiguousStrides(int heads, int seq, int head_dim) {
  const int64_t head = int64_t{seq} * head_dim;
  return {heads * head, head, head_dim};
}

// From one head to the next where heads are numbered over the whole batch; nothing where no stride
// does it. It is the one way in which kernels number heads.
constexpr std::optional<int64_t> FoldedHeadStride(const TensorStrides& strides, int batch,
                                                  int heads) {
  if (heads == 1) return strides.batch;
  if (batch == 1 || strides.batch == heads * strides.head) return strides.head;
  return std::nullopt;
}

// Rows from one batch to the next, where its stride is so many; nothing where it is no multiple.
constexpr std::optional<int64_t> FoldedRows(const TensorStrides& strides, int batch) {
  if (batch == 1) return 0;
  if (strides.batch % strides.row != 0) return std::nullopt;
  return strides.batch / strides.row;
}

// Of 8-bit Q, K and V: fp32 scales from one head, numbered over the whole batch, to the next; 0:
// all share one.
struct ScaleStrides {
  int q_head = 0;
  int kv_head = 0;
  bool per_block = false;  // a head of K or V has one for each 128 keys, side by side

  friend constexpr bool operator==(const ScaleStrides&, const ScaleStrides&) = default;
};

struct TensorLayouts {
  TensorStrides q;
  TensorStrides k;
  TensorStrides v;
  TensorStrides o;
  // Of packed sequences, which lie one behind another in (rows, heads, head_dim): the rows of q and
  // o, and of k and v. Strides of batches count for nothing. 0: there are none.
  int64_t total_q = 0;
  int64_t total_kv = 0;
  // Where Q, K and V are E4M3; nothing where they have 16 bits.
  std::optional<ScaleStrides> scales = std::nullopt;
  bool e4m3_output = false;  // O too, with one scale

  constexpr bool packed() const { return total_q > 0; }
};

// Of a launch's parameters, or a problem.
template <typename Sizes>
constexpr TensorLayouts ContiguousLayouts(const Sizes& p, int head_dim) {
  const TensorStrides queries = ContiguousStrides(p.heads_q, p.seq_q, head_dim);
  const TensorStrides keys = ContiguousStrides(p.heads_kv, p.seq_kv, head_dim);
  return {queries, keys, keys, queries};
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_KERNEL_LAYOUT_H_
