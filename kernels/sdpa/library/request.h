// SPDX-License-Identifier: Apache-2.0
// What a caller of the C interface asks for: its structures, read and checked. Functions return a
// warpledger_sdpa_status, and leave a sentence where it is an error.

#ifndef WARPLEDGER_KERNELS_SDPA_LIBRARY_REQUEST_H_
#define WARPLEDGER_KERNELS_SDPA_LIBRARY_REQUEST_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "kernels/sdpa/library/warpledger_sdpa.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/shared/kernel_layout.h"

namespace warpledger::sdpa {

// The thread's last sentence.
const char* LastError();

// Leave a sentence, and return the status.
__attribute__((format(printf, 2, 3))) int Fail(warpledger_sdpa_status status, const char* format,
                                               ...);
int FailCuda(cudaError_t error, const char* doing);

// Of callers that were built with headers whose structures ended there.
inline constexpr size_t kProblemSizes[] = {
    sizeof(warpledger_sdpa_problem), offsetof(warpledger_sdpa_problem, o_dtype),
    offsetof(warpledger_sdpa_problem, q_scale_scope), offsetof(warpledger_sdpa_problem, total_q),
    offsetof(warpledger_sdpa_problem, q)};
inline constexpr size_t kChoiceSizes[] = {sizeof(warpledger_sdpa_choice),
                                          offsetof(warpledger_sdpa_choice, launches)};

// Copies what the caller's structure has; the rest of `*own` stays.
template <typename T>
int ReadSized(const T* given, const char* name, std::span<const size_t> sizes, T* own) {
  if (given == nullptr) return Fail(WARPLEDGER_SDPA_INVALID, "%s is null", name);
  if (std::find(sizes.begin(), sizes.end(), given->size) == sizes.end()) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "%s.size is %zu; it must be %zu, or %zu as in the first header: set it to "
                "sizeof(warpledger_sdpa_%s) and build with this library's header",
                name, given->size, sizes.front(), sizes.back(), name);
  }
  std::memcpy(own, given, given->size);
  return WARPLEDGER_SDPA_OK;
}

// Of an element of q, k and v, and of o.
inline int InputBytes(const TensorLayouts& layouts) { return layouts.scales ? 1 : 2; }
inline int OutputBytes(const TensorLayouts& layouts) { return layouts.e4m3_output ? 1 : 2; }

int Read(const warpledger_sdpa_problem* given, Problem* p, TensorLayouts* layouts,
         float* softmax_scale);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_REQUEST_H_
