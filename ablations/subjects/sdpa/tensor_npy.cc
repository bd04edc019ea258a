// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/tensor_npy.h"

#include <cstddef>
#include <cstring>

namespace warpledger::ablations {

std::vector<sdpa::Bits16> TensorFromNpy(const NpyArray& array, sdpa::Dtype dtype) {
  std::vector<sdpa::Bits16> values(array.data.size() /
                                   static_cast<size_t>(NpyTypeBytes(array.type)));
  if (array.type == NpyType::kFloat16) {
    std::memcpy(values.data(), array.data.data(), array.data.size());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    float value;
    std::memcpy(&value, &array.data[i * sizeof(float)], sizeof(float));
    values[i] = sdpa::FromFloat(dtype, value);
  }
  return values;
}

NpyArray NpyFromTensor(absl::Span<const int64_t> shape, absl::Span<const sdpa::Bits16> values,
                       sdpa::Dtype dtype) {
  NpyArray array;
  array.shape.assign(shape.begin(), shape.end());
  array.type = NpyTypeOf(dtype);
  array.data.resize(values.size() * static_cast<size_t>(NpyTypeBytes(array.type)));
  if (array.type == NpyType::kFloat16) {
    std::memcpy(array.data.data(), values.data(), array.data.size());
    return array;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = sdpa::ToFloat(dtype, values[i]);
    std::memcpy(&array.data[i * sizeof(float)], &value, sizeof(float));
  }
  return array;
}

}  // namespace warpledger::ablations
