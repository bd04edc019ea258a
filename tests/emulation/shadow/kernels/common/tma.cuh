// SPDX-License-Identifier: Apache-2.0
// kernels/common/tma.cuh on the CPU, with the driver's encoder of tensor maps.

#pragma once

#include <cuda.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "kernels/common/mbarrier.cuh"
#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

// What a CUtensorMap holds here.
struct TensorMap {
  uint64_t data;
  uint64_t strides[3];  // bytes, of the second dimension on
  uint32_t sizes[4];
  uint16_t box[4];
  uint16_t rank;
  uint16_t element_bytes;
  uint16_t row_bytes;  // of a box, swizzled
};
static_assert(sizeof(TensorMap) <= sizeof(CUtensorMap));

// In place of cuTensorMapEncodeTiled: of its rules those that the kernels here can break.
inline CUresult EncodeTensorMapOnCpu(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                     void* data, const cuuint64_t* sizes, const cuuint64_t* strides,
                                     const cuuint32_t* box, const cuuint32_t*,
                                     CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  TensorMap m = {};
  m.data = reinterpret_cast<uint64_t>(data);
  m.rank = static_cast<uint16_t>(rank);
  m.element_bytes = type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : 2;
  m.row_bytes = static_cast<uint16_t>(box[0] * m.element_bytes);
  if (m.data % 16 != 0 || rank < 3 || rank > 4) return CUDA_ERROR_INVALID_VALUE;
  if (m.row_bytes != (swizzle == CU_TENSOR_MAP_SWIZZLE_128B ? 128 : 64)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (box[i] == 0 || box[i] > 256) return CUDA_ERROR_INVALID_VALUE;
    if (i > 0 && strides[i - 1] % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
    m.sizes[i] = static_cast<uint32_t>(sizes[i]);
    m.box[i] = static_cast<uint16_t>(box[i]);
    if (i > 0) m.strides[i - 1] = strides[i - 1];
  }
  std::memcpy(map, &m, sizeof(m));
  return CUDA_SUCCESS;
}

// Calls chunk(shared address, place in the tensor or null outside of it, bytes of it that lie
// inside) for each 16 bytes of the box at `at`, innermost dimension first.
template <typename Chunk>
void ForEachChunk(const CUtensorMap* map, uint32_t smem, std::initializer_list<int> at,
                  const Chunk& chunk) {
  TensorMap m;
  std::memcpy(&m, map, sizeof(m));
  if (at.size() != m.rank) emulation::Die("a box of another rank than its tensor map");
  if (smem % (8u * m.row_bytes) != 0) emulation::Die("a box that begins in a swizzle's atom");
  uint32_t rows = 1;
  for (int i = 1; i < m.rank; ++i) rows *= m.box[i];
  const int* first = at.begin();
  for (uint32_t row = 0; row < rows; ++row) {
    uint64_t place = m.data;
    bool inside = true;
    uint32_t left = row;
    for (int i = 1; i < m.rank; ++i) {
      const int64_t index = first[i] + static_cast<int64_t>(left % m.box[i]);
      left /= m.box[i];
      inside = inside && index >= 0 && index < m.sizes[i];
      place += static_cast<uint64_t>(index) * m.strides[i - 1];
    }
    for (uint32_t byte = 0; byte < m.row_bytes; byte += 16) {
      const uint32_t column = static_cast<uint32_t>(first[0]) + byte / m.element_bytes;
      const bool here = inside && column < m.sizes[0];
      uint32_t to = smem + row * m.row_bytes + byte;
      to ^= (to >> 7 & (m.row_bytes / 16 - 1u)) << 4;
      chunk(to,
            here ? reinterpret_cast<unsigned char*>(place + column * m.element_bytes) : nullptr);
    }
  }
}

inline void LoadBox(emulation::Cta& cta, uint32_t smem, const CUtensorMap* map, uint32_t barrier,
                    std::initializer_list<int> at) {
  emulation::BulkCopy copy = {barrier, {}};
  ForEachChunk(map, smem, at, [&](uint32_t to, const void* from) {
    copy.pieces.push_back({emulation::Smem(cta, to, 16), from, 16});
  });
  emulation::CopyBulk(cta, std::move(copy));
}

inline void PrefetchTensorMap(const CUtensorMap*) {}
inline void TmaLoad3d(uint32_t smem, const CUtensorMap* map, uint32_t barrier, int x, int y,
                      int z) {
  LoadBox(*emulation::current->cta, smem, map, barrier, {x, y, z});
}
inline void TmaLoad4d(uint32_t smem, const CUtensorMap* map, uint32_t barrier, int x, int y, int z,
                      int w) {
  LoadBox(*emulation::current->cta, smem, map, barrier, {x, y, z, w});
}
inline void TmaLoad3dMulticast(uint32_t smem, const CUtensorMap* map, uint32_t barrier, int x,
                               int y, int z, uint16_t ctas) {
  for (size_t rank = 0; rank < emulation::world->ctas.size(); ++rank) {
    if (ctas >> rank & 1) {
      LoadBox(*emulation::world->ctas[rank], smem, map, barrier, {x, y, z});
    }
  }
}
inline void TmaStore3d(const CUtensorMap* map, uint32_t smem, int x, int y, int z) {
  std::vector<emulation::Piece> pieces;
  ForEachChunk(map, smem, {x, y, z}, [&](uint32_t from, void* to) {
    if (to != nullptr) pieces.push_back({to, emulation::Smem(from, 16), 16});
  });
  emulation::StoreBulk(std::move(pieces));
}
inline void BulkCommit() { emulation::CommitStores(); }
template <int kPending>
void BulkWait() {
  emulation::WaitForStores(kPending);
}
template <int kPending>
void BulkWaitRead() {
  emulation::WaitForStores(kPending);
}
inline void FenceProxyAsync() {}

inline void BulkLoad(uint32_t smem, const void* global, uint32_t bytes, uint32_t barrier) {
  emulation::CopyBulk(smem, global, bytes, barrier);
}

}  // namespace warpledger::ptx
