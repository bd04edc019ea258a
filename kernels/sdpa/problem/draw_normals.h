// SPDX-License-Identifier: Apache-2.0
// Normal random numbers, rounded to a tensor's type, in bulk.

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_DRAW_NORMALS_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_DRAW_NORMALS_H_

#include "absl/types/span.h"
#include "kernels/common/random.h"
#include "kernels/sdpa/dtype/dtype.h"

namespace warpledger::sdpa {

// Fills `values` with the next draws of `random`: each is
// FromFloat(dtype, static_cast<float>(random.Normal() * scale)), to the last bit, in about a
// fifth of the time.
//   scale: positive and finite
void DrawNormals(Dtype dtype, double scale, SplitMix64& random, absl::Span<Bits16> values);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_DRAW_NORMALS_H_
