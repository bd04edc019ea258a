// SPDX-License-Identifier: Apache-2.0
// The systematic name of a problem, which says its sizes: "b2_h8_s256_d64" has batch 2, 8 heads of
// Q and of K/V, 256 queries and keys, head_dim 64; "b1_h32x8_s1x8192_d128_causal_bf16" 32 heads of
// Q over 8 of K/V and 1 query over 8192 keys.
//
//   ProblemFromName("b1_h8_s512_d64")->seq_kv == 512

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_PROBLEM_NAME_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_PROBLEM_NAME_H_

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/sdpa/dtype/dtype_name.h"
#include "kernels/sdpa/problem/problem.h"

namespace warpledger::sdpa {

// The largest of a problem's sizes that a name may hold.
inline constexpr int kMostOfOneSize = 1 << 20;

// Of a problem that begins with Q, K and V.
inline std::string ProblemName(const Problem& p) {
  std::string name;
  const auto add = [&name](std::string_view what, int size) {
    name.append(what).append(std::to_string(size));
  };
  add("b", p.batch);
  add("_h", p.heads_q);
  if (p.heads_kv != p.heads_q) add("x", p.heads_kv);
  add("_s", p.seq_q);
  if (p.seq_kv != p.seq_q) add("x", p.seq_kv);
  add("_d", p.head_dim);
  if (p.causal) name.append("_causal");
  if (p.dtype != Problem{}.dtype) name.append("_").append(DtypeName(p.dtype));
  return name;
}

// The inverse. Nothing for what ProblemName does not give, and for a size above kMostOfOneSize.
// Whether a kernel does the problem is another question.
inline std::optional<Problem> ProblemFromName(std::string_view name) {
  Problem p;
  std::string_view rest = name;
  const auto take = [&rest](std::string_view word) {
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    return true;
  };
  const auto size = [&rest](int* value) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *value);
    if (error != std::errc() || *value < 1 || *value > kMostOfOneSize) return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return true;
  };
  const auto sizes = [&](std::string_view what, int* q, int* kv) {
    if (!take(what) || !size(q)) return false;
    *kv = *q;
    return !take("x") || size(kv);
  };
  if (!take("b") || !size(&p.batch) || !sizes("_h", &p.heads_q, &p.heads_kv) ||
      !sizes("_s", &p.seq_q, &p.seq_kv) || !take("_d") || !size(&p.head_dim)) {
    return std::nullopt;
  }
  p.causal = take("_causal");
  for (const Dtype dtype : kDtypes) {
    if (dtype != p.dtype && take(std::string("_").append(DtypeName(dtype)))) p.dtype = dtype;
  }
  // "b02" and "s256x256" have another spelling, which is the name.
  if (ProblemName(p) != name) return std::nullopt;
  return p;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_PROBLEM_NAME_H_
