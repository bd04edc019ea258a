// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/shared/tensor_maps.h"

#include <cuda.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace warpledger::sdpa {
namespace {

// The driver's encoder, looked up so that the program needs no libcuda to start. One that is not
// found is looked for again by the next call.
using Encoder = decltype(&cuTensorMapEncodeTiled);
Encoder FindEncoder() {
  static std::atomic<Encoder> kept = nullptr;
  if (const Encoder known = kept.load(std::memory_order_relaxed)) return known;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  const auto encoder = reinterpret_cast<Encoder>(function);
  kept.store(encoder, std::memory_order_relaxed);
  return encoder;
}

// Of `rank` dimensions, innermost first; `strides` are in bytes, from the second dimension on.
cudaError_t Encode(const void* tensor, CUtensorMapDataType type, cuuint32_t rank,
                   const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                   CUtensorMapSwizzle swizzle, CUtensorMap* map,
                   CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B) {
  const Encoder encode = FindEncoder();
  if (encode == nullptr) return cudaErrorNotSupported;
  const cuuint32_t element_strides[] = {1, 1, 1, 1};
  const CUresult result =
      encode(map, type, rank, const_cast<void*>(tensor), sizes, strides, box, element_strides,
             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

int BytesOf(CUtensorMapDataType type) { return type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : 2; }

}  // namespace

MappedTensor MappedWith(const TensorStrides& strides, const void* data, int head_dim, int seq,
                        int batch, int heads) {
  return {.data = data,
          .head_dim = head_dim,
          .seq = seq,
          .heads = int64_t{batch} * heads,
          .head_stride = *FoldedHeadStride(strides, batch, heads),
          .row_stride = strides.row};
}

cudaError_t EncodeTensorMap(const MappedTensor& tensor, int rows, CUtensorMap* map,
                            CUtensorMapDataType type, CUtensorMapL2promotion promotion) {
  const int bytes = BytesOf(type);
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(tensor.head_dim),
                              static_cast<cuuint64_t>(tensor.seq),
                              static_cast<cuuint64_t>(tensor.heads)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(tensor.row_stride * bytes),
                                static_cast<cuuint64_t>(tensor.head_stride * bytes)};
  // A row of head_dim 64 in 8 bits is shorter than the longest swizzled one.
  const bool is_short = tensor.head_dim * bytes == 64;
  const cuuint32_t box[] = {static_cast<cuuint32_t>((is_short ? 64 : kSwizzleBytes) / bytes),
                            static_cast<cuuint32_t>(rows), 1};
  const auto swizzle = is_short ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B;
  return Encode(tensor.data, type, 3, sizes, strides, box, swizzle, map, promotion);
}

cudaError_t EncodePackedQueries(const ForwardParams& forward, const TensorStrides& strides,
                                int head_dim, int positions, CUtensorMap* map,
                                CUtensorMapDataType type) {
  const int bytes = BytesOf(type);
  const int group = forward.heads_q / forward.heads_kv;
  const TensorStrides of_groups = {strides.batch, strides.head * group, strides.row};
  const int64_t group_stride = *FoldedHeadStride(of_groups, forward.batch, forward.heads_kv);
  const cuuint64_t sizes[] = {
      static_cast<cuuint64_t>(head_dim), static_cast<cuuint64_t>(group),
      static_cast<cuuint64_t>(forward.seq_q),
      static_cast<cuuint64_t>(forward.batch) * static_cast<cuuint64_t>(forward.heads_kv)};
  const cuuint64_t byte_strides[] = {static_cast<cuuint64_t>(strides.head * bytes),
                                     static_cast<cuuint64_t>(strides.row * bytes),
                                     static_cast<cuuint64_t>(group_stride * bytes)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(kSwizzleBytes / bytes),
                            static_cast<cuuint32_t>(group), static_cast<cuuint32_t>(positions), 1};
  return Encode(forward.q, type, 4, sizes, byte_strides, box, CU_TENSOR_MAP_SWIZZLE_128B, map);
}

const char* DescribePromotion(const void* params) {
  constexpr const char* kUnknown = "L2 promotion unknown";
  constexpr const char* kNames[] = {"no L2 promotion", "L2 promotion 64 B", "L2 promotion 128 B",
                                    "L2 promotion 256 B"};
  using Words = std::array<uint32_t, sizeof(CUtensorMap) / sizeof(uint32_t)>;
  alignas(16) static const std::byte kTensor[1024] = {};
  std::array<Words, std::size(kNames)> encoded;
  for (size_t level = 0; level < encoded.size(); ++level) {
    CUtensorMap map;
    const auto promotion = static_cast<CUtensorMapL2promotion>(level);
    const MappedTensor tensor = {
        .data = kTensor, .head_dim = 64, .seq = 8, .head_stride = 512, .row_stride = 64};
    if (EncodeTensorMap(tensor, 8, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, promotion) !=
        cudaSuccess) {
      return kUnknown;
    }
    encoded[level] = std::bit_cast<Words>(map);
  }
  // The bits in which the encodings differ say what is fetched.
  Words field = {};
  for (const Words& words : encoded) {
    for (size_t i = 0; i < field.size(); ++i) field[i] |= words[i] ^ encoded[0][i];
  }
  if (field == Words{}) return kUnknown;
  const auto name_of = [&](size_t offset) {
    Words launched;  // a copy, for copied parameters need not be aligned as they are
    std::memcpy(launched.data(), static_cast<const std::byte*>(params) + offset, sizeof(launched));
    for (size_t level = 0; level < encoded.size(); ++level) {
      bool same = true;
      for (size_t i = 0; i < field.size(); ++i) {
        same = same && ((launched[i] ^ encoded[level][i]) & field[i]) == 0;
      }
      if (same) return kNames[level];
    }
    return kUnknown;
  };
  const char* of_k = name_of(offsetof(WgmmaParams, k));
  const char* of_v = name_of(offsetof(WgmmaParams, v));
  return of_k == of_v ? of_k : "L2 promotion of K and of V differ";
}

}  // namespace warpledger::sdpa
