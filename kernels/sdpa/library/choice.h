// SPDX-License-Identifier: Apache-2.0
// Which of the library's kernels does a problem whose tensors lie as they do, in how many launches.
// Where Q, K and V are E4M3, the layouts have strides of scales, and the problem's dtype is O's.
// Host-safe.
//
// Kernels of one length for all number heads over the whole batch, so that a stride of heads must
// do for the batch too (FoldedHeadStride). Where it does not, each batch is a launch of its own, or
// the kernel of packed sequences takes the batches as these (FoldedRows).
//
// On a GPU without wgmma no kernel has costs, and the one of the fewest steps is taken (MmaSteps).
//
//   const Choice choice = ChooseKernel(problem, ContiguousLayouts(problem, problem.head_dim),
//                                      {132});

#ifndef WARPLEDGER_KERNELS_SDPA_LIBRARY_CHOICE_H_
#define WARPLEDGER_KERNELS_SDPA_LIBRARY_CHOICE_H_

#include <string>

#include "kernels/sdpa/library/costs.h"
#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/shared/kernel_layout.h"

namespace warpledger::sdpa {

// Why the kernel does not do it in one launch: a clause such as "it stores O without gaps, and o
// has other strides"; "" where it does.
std::string WhyNot(const LibraryKernel& kernel, const Problem& problem,
                   const TensorLayouts& layouts, const Gpu& gpu);

struct Choice {
  const LibraryKernel* kernel = nullptr;  // null where none does it
  int launches = 1;                       // or one for each batch
  double us = 0;                          // expected, for all of them; 0 where nobody knows
  double rank = 0;                        // the least is taken

  // The problem of each launch.
  static Problem OfLaunch(Problem problem, int launches) {
    if (launches > 1) problem.batch = 1;
    return problem;
  }
};

// Whether it is launched in its StridedForm.
bool TakesStridedForm(const LibraryKernel& kernel, const Problem& problem,
                      const TensorLayouts& layouts);

// How the kernel does it; null where it does not.
Choice ChoiceOf(const LibraryKernel& kernel, const Problem& problem, const TensorLayouts& layouts,
                const Gpu& gpu);

// The one of the least time.
Choice ChooseKernel(const Problem& problem, const TensorLayouts& layouts, const Gpu& gpu);

// "pipelined: 12.3 us; resident: 20.1 us; split_mma: not supported: …", the chosen one first. On a
// GPU without wgmma "split_mma: 128 steps; …".
std::string Explain(const Problem& problem, const TensorLayouts& layouts, const Gpu& gpu);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_CHOICE_H_
