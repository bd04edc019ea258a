// SPDX-License-Identifier: Apache-2.0
// Copies of tiles from global to shared memory, and the K/V pipeline.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_COPY_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_COPY_CUH_

#include <cuda_fp16.h>

#include "kernels/common/ptx.cuh"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/schedule.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/smem_layout.h"

namespace warpledger::sdpa::smem {

inline constexpr int kVectorHalves = kChunkHalves;  // fp16 in 16 bytes

// Where element (row, col) of a tile with kRows rows of head_dim lies, in elements.
template <Config kConfig, int kRows>
__device__ int TilePlace(int row, int col) {
  constexpr TileLayout kLayout = LayoutOf(kConfig);
  return TileOffset(kLayout, kConfig.head_dim, kRows, row, col);
}

// Copies a tile with the CTA's computing threads, through registers.
//   src: (kRows, head_dim) fp16, row stride head_dim
//   dst: (kRows, head_dim) fp16, laid out as LayoutOf(kConfig) says
// Rows at or past `valid_rows` are zero-filled. No barrier inside.
template <Config kConfig, int kRows>
__device__ void CopyTile(half* dst, const half* __restrict__ src, int valid_rows) {
  if constexpr (kConfig.vector_loads) {
    constexpr int kChunks = kConfig.head_dim / kVectorHalves;
    for (int i = threadIdx.x; i < kRows * kChunks; i += ComputeThreads(kConfig)) {
      const int row = i / kChunks;
      const int col = i % kChunks * kVectorHalves;
      uint4 chunk = make_uint4(0, 0, 0, 0);
      if (row < valid_rows) {
        chunk = *reinterpret_cast<const uint4*>(src + row * kConfig.head_dim + col);
      }
      *reinterpret_cast<uint4*>(dst + TilePlace<kConfig, kRows>(row, col)) = chunk;
    }
  } else {
    for (int i = threadIdx.x; i < kRows * kConfig.head_dim; i += ComputeThreads(kConfig)) {
      const int row = i / kConfig.head_dim;
      const int col = i % kConfig.head_dim;
      dst[TilePlace<kConfig, kRows>(row, col)] =
          row < valid_rows ? src[row * kConfig.head_dim + col] : __ushort_as_half(0);
    }
  }
}

// The same copy, asynchronously, by kThreads threads of which the caller is number
// `thread`: the caller commits, waits and synchronises.
template <Config kConfig, int kRows, int kThreads>
__device__ void CopyTileAsync(half* dst, const half* __restrict__ src, int valid_rows, int thread) {
  constexpr int kChunks = kConfig.head_dim / kVectorHalves;
  for (int i = thread; i < kRows * kChunks; i += kThreads) {
    const int row = i / kChunks;
    const int col = i % kChunks * kVectorHalves;
    const bool valid = row < valid_rows;
    // The address of a row that is not read must still be one inside the tensor.
    const half* from = src + (valid ? row : 0) * kConfig.head_dim + col;
    ptx::CpAsync16(dst + TilePlace<kConfig, kRows>(row, col), from, valid);
  }
}

// The K and V tile that the CTA works on now.
struct KvTile {
  const half* k;  // (tile_n, head_dim) fp16, laid out as LayoutOf(kConfig) says
  const half* v;  // (tile_n, head_dim) fp16, likewise
  int ld;         // row stride in elements
  int first_key;
};

// Hands out K/V tiles in order. Acquire(i) is called by all threads for
// i = 0, 1, …, kv_tiles - 1; it holds a CTA barrier, after which tile i is
// readable and everything of tile i - 1, shared scores included, may be
// overwritten.
template <Config kConfig>
class KvPipeline {
 public:
  __device__ KvPipeline(unsigned char* smem, const Work& work) : smem_(smem), work_(work) {
    if constexpr (kConfig.cp_async_stages > 0) {
      for (int tile = 0; tile < kConfig.cp_async_stages - 1; ++tile) Fetch(tile);
    }
  }

  __device__ KvTile Acquire(int tile) {
    const int first_key = tile * TileN(kConfig);
    if constexpr (!kConfig.kv_tiling) {
      __syncthreads();
      return {work_.k + int64_t{first_key} * kConfig.head_dim,
              work_.v + int64_t{first_key} * kConfig.head_dim, kConfig.head_dim, first_key};
    } else if constexpr (kConfig.cp_async_stages > 0) {
      ptx::CpAsyncWait<kConfig.cp_async_stages - 2>();
      __syncthreads();
      // Overwrites the slot of tile - 1, which the barrier has just freed.
      Fetch(tile + kConfig.cp_async_stages - 1);
      const int slot = tile % kConfig.cp_async_stages;
      return {Slot(kSmem.k, slot), Slot(kSmem.v, slot), kSmem.ld_tile, first_key};
    } else {
      __syncthreads();
      const int valid = work_.seq_kv - first_key;
      const int64_t offset = int64_t{first_key} * kConfig.head_dim;
      CopyTile<kConfig, TileN(kConfig)>(Slot(kSmem.k, 0), work_.k + offset, valid);
      CopyTile<kConfig, TileN(kConfig)>(Slot(kSmem.v, 0), work_.v + offset, valid);
      __syncthreads();
      return {Slot(kSmem.k, 0), Slot(kSmem.v, 0), kSmem.ld_tile, first_key};
    }
  }

  // The caller has read the tile. The next Acquire's barrier says so to the others.
  __device__ void Release(int /*tile*/) {}

 private:
  static constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);

  __device__ half* Slot(int base, int slot) const {
    return reinterpret_cast<half*>(smem_ + base) + slot * kSmem.kv_slot;
  }

  // Starts the copies of one tile and commits them as one group. Past the last
  // tile the group is empty: the count of groups, which Acquire waits by, stays right.
  __device__ void Fetch(int tile) {
    if (tile < work_.kv_tiles) {
      const int slot = tile % Stages(kConfig);
      const int first_key = tile * TileN(kConfig);
      const int valid = work_.seq_kv - first_key;
      const int64_t offset = int64_t{first_key} * kConfig.head_dim;
      CopyTileAsync<kConfig, TileN(kConfig), ComputeThreads(kConfig)>(
          Slot(kSmem.k, slot), work_.k + offset, valid, threadIdx.x);
      CopyTileAsync<kConfig, TileN(kConfig), ComputeThreads(kConfig)>(
          Slot(kSmem.v, slot), work_.v + offset, valid, threadIdx.x);
    }
    ptx::CpAsyncCommit();
  }

  unsigned char* smem_;
  const Work& work_;
};

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_COPY_CUH_
