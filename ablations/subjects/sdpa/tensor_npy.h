// SPDX-License-Identifier: Apache-2.0
// Tensors of a problem's dtype as NumPy arrays. NumPy has no bf16, so a bf16 tensor is an
// fp32 array: rounded on its way in (nearest, ties to even), exact on its way out.

#pragma once

#include <cstdint>
#include <vector>

#include "ablations/base/npy.h"
#include "absl/types/span.h"
#include "kernels/sdpa/dtype/dtype.h"

namespace warpledger::ablations {

constexpr NpyType NpyTypeOf(sdpa::Dtype dtype) {
  return dtype == sdpa::Dtype::kBf16 ? NpyType::kFloat32 : NpyType::kFloat16;
}

// `array` is of NpyTypeOf(dtype).
std::vector<sdpa::Bits16> TensorFromNpy(const NpyArray& array, sdpa::Dtype dtype);

// As many values as the shape says.
NpyArray NpyFromTensor(absl::Span<const int64_t> shape, absl::Span<const sdpa::Bits16> values,
                       sdpa::Dtype dtype);

}  // namespace warpledger::ablations
