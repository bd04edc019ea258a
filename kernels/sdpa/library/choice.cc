// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/library/choice.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/sdpa/library/costs.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/rules/families.h"

namespace warpledger::sdpa {
namespace {

// A StridedForm takes 1.05 times as long as the kernel, on average over 56 calls of decoding, few
// queries and small problems; 0.91 to 1.17 (reports/decisions/0053-other-gpus.md).
constexpr double kStridedForm = 1.06;

struct NamedStrides {
  const char* name;
  TensorStrides strides;
  int heads;
  int seq;
};

std::array<NamedStrides, 4> Named(const Problem& p, const TensorLayouts& layouts) {
  return {{{"q", layouts.q, p.heads_q, p.seq_q},
           {"k", layouts.k, p.heads_kv, p.seq_kv},
           {"v", layouts.v, p.heads_kv, p.seq_kv},
           {"o", layouts.o, p.heads_q, p.seq_q}}};
}

// Strides of what is there once count for nothing.
bool IsContiguous(const NamedStrides& tensor, const Problem& p) {
  const TensorStrides all = ContiguousStrides(tensor.heads, tensor.seq, p.head_dim);
  return (tensor.seq == 1 || tensor.strides.row == all.row) &&
         (tensor.heads == 1 || tensor.strides.head == all.head) &&
         (p.batch == 1 || tensor.strides.batch == all.batch);
}

// Why the kernel of packed sequences does not do it.
std::string WhyNotPacked(const Problem& p, const TensorLayouts& layouts) {
  if (layouts.packed()) return "";
  int64_t steps[4] = {};
  int64_t* step = steps;
  for (const NamedStrides& tensor : Named(p, layouts)) {
    const std::optional<int64_t> rows = FoldedRows(tensor.strides, p.batch);
    if (!rows) {
      return std::string("the batch stride of ") + tensor.name +
             " is no multiple of its row stride";
    }
    if (*rows * (p.batch - 1) + tensor.seq > std::numeric_limits<int>::max()) {
      return std::string("the rows of ") + tensor.name + " are more than it can number";
    }
    *step++ = *rows;
  }
  return steps[1] == steps[2] ? "" : "k and v have other strides of batches, in rows";
}

// With lengths of their own: the average ones, which the expected time and what a launch holds are
// of. The largest lengths are the caller's word, and may be far off.
Problem Average(Problem p, const TensorLayouts& layouts) {
  if (!layouts.packed()) return p;
  const auto of = [&](int64_t total) {
    return static_cast<int>(std::clamp<int64_t>(total / p.batch, 1, kMostOfOneSize));
  };
  p.seq_q = of(layouts.total_q);
  p.seq_kv = of(layouts.total_kv);
  return p;
}

// Whether it is of the problem's head_dim, dtypes and scales, and may be taken.
bool IsFor(const LibraryKernel& kernel, const Problem& p, const TensorLayouts& layouts,
           const Gpu& gpu) {
  if (!gpu.only.empty() && kernel.name != gpu.only) return false;
  if (kernel.head_dim != p.head_dim || kernel.dtype != p.dtype) return false;
  if (TakesE4m3(kernel) != layouts.scales.has_value()) return false;
  if (WritesE4m3(kernel) != layouts.e4m3_output) return false;
  return !layouts.scales || (kernel.config.wgmma_fp8_block_scale != 0) == layouts.scales->per_block;
}

// Of a CTA.
int SmemOf(const LibraryKernel& kernel) {
  const bool causal = false;  // the mask takes none
  return GeometryOf(Specialise(BuiltForLibrary(kernel), kernel.head_dim, causal, kernel.dtype))
      .smem_bytes;
}

// A tile of queries of which no row sees a key is stored without TMA.
bool HasUnseenRows(const Problem& p) { return p.causal && p.seq_q > p.seq_kv; }

}  // namespace

std::string WhyNot(const LibraryKernel& kernel, const Problem& p, const TensorLayouts& layouts,
                   const Gpu& gpu) {
  if (!Takes(kernel, Average(p, layouts))) return "the problem is beyond what it launches";
  const int smem = SmemOf(kernel);
  if (smem > gpu.smem_bytes) {
    return "it needs " + std::to_string((smem + 1023) >> 10) +
           " KB of shared memory, and a CTA has " + std::to_string(gpu.smem_bytes >> 10) +
           " on this GPU";
  }
  if (kernel.config.strided) {
    if (kernel.config.varlen == layouts.packed()) return "";
    return layouts.packed() ? "it knows one length for all sequences"
                            : "it is for packed sequences alone";
  }
  if (kernel.config.varlen) return WhyNotPacked(p, layouts);
  if (layouts.packed()) return "it knows one length for all sequences";
  if (HasStridedForm(kernel)) return "";
  const bool maps_o = kernel.config.tma_store != 0 && !HasUnseenRows(p);
  for (const NamedStrides& tensor : Named(p, layouts)) {
    if (IsContiguous(tensor, p)) continue;
    const bool stores = tensor.name[0] == 'o';
    if (stores && WritesE4m3(kernel)) continue;  // row by row, by any strides
    if (stores && !maps_o) return "it stores contiguous tensors alone, and o has other strides";
    if (!FoldedHeadStride(tensor.strides, p.batch, tensor.heads)) {
      return std::string("the batch stride of ") + tensor.name +
             " is not its heads times its head stride";
    }
  }
  return "";
}

bool TakesStridedForm(const LibraryKernel& kernel, const Problem& p, const TensorLayouts& layouts) {
  if (!HasStridedForm(kernel)) return false;
  const auto named = Named(p, layouts);
  return !std::all_of(named.begin(), named.end(),
                      [&](const NamedStrides& tensor) { return IsContiguous(tensor, p); });
}

Choice ChoiceOf(const LibraryKernel& kernel, const Problem& problem, const TensorLayouts& layouts,
                const Gpu& gpu) {
  if (!IsFor(kernel, problem, layouts, gpu)) return {};
  for (const int launches : {1, layouts.packed() ? 1 : problem.batch}) {
    const Problem each = Choice::OfLaunch(problem, launches);
    if (!WhyNot(kernel, each, layouts, gpu).empty()) continue;
    const Problem average = Average(each, layouts);
    if (!gpu.has_wgmma) return {&kernel, launches, 0, MmaSteps(kernel, average, gpu)};
    const double form = TakesStridedForm(kernel, each, layouts) ? kStridedForm : 1;
    const double us = launches * ExpectedUs(kernel, average, gpu) * form;
    return {&kernel, launches, us, us};
  }
  return {};
}

Choice ChooseKernel(const Problem& problem, const TensorLayouts& layouts, const Gpu& gpu) {
  Choice best;
  for (const LibraryKernel& kernel : KernelsFor(gpu)) {
    const Choice choice = ChoiceOf(kernel, problem, layouts, gpu);
    if (choice.kernel == nullptr || (best.kernel != nullptr && choice.rank >= best.rank)) continue;
    best = choice;
  }
  return best;
}

std::string Explain(const Problem& problem, const TensorLayouts& layouts, const Gpu& gpu) {
  std::vector<Choice> able;
  std::string unable;
  for (const LibraryKernel& kernel : KernelsFor(gpu)) {
    if (!IsFor(kernel, problem, layouts, gpu)) continue;
    const Choice choice = ChoiceOf(kernel, problem, layouts, gpu);
    if (choice.kernel != nullptr) {
      able.push_back(choice);
      continue;
    }
    const Problem one = layouts.packed() ? problem : Choice::OfLaunch(problem, problem.batch);
    unable +=
        "; " + std::string(kernel.name) + ": not supported: " + WhyNot(kernel, one, layouts, gpu);
  }
  std::stable_sort(able.begin(), able.end(),
                   [](const Choice& a, const Choice& b) { return a.rank < b.rank; });
  std::string text;
  for (const Choice& choice : able) {
    char line[160];
    std::snprintf(line, sizeof line, gpu.has_wgmma ? "; %s: %.1f us" : "; %s: %.0f steps",
                  choice.kernel->name.data(), choice.rank);
    text += line;
    if (choice.launches == 1) continue;
    std::snprintf(line, sizeof line, " in %d launches, for ", choice.launches);
    text += line + WhyNot(*choice.kernel, problem, layouts, gpu);
  }
  text += unable;
  return text.empty() ? text : text.substr(2);
}

}  // namespace warpledger::sdpa
