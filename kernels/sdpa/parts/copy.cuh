// Copies of tiles from global to shared memory, and the K/V pipeline.

#ifndef WARPLEDGER_KERNELS_SDPA_PARTS_COPY_CUH_
#define WARPLEDGER_KERNELS_SDPA_PARTS_COPY_CUH_

#include <cuda_fp16.h>

#include "kernels/common/ptx.cuh"
#include "kernels/sdpa/config.h"
#include "kernels/sdpa/parts/schedule.cuh"
#include "kernels/sdpa/smem_layout.h"

namespace warpledger::sdpa {

inline constexpr int kVectorHalves = 8;  // fp16 in 16 bytes

// Copies a tile with the CTA's threads, through registers.
//   src: (kRows, head_dim) fp16, row stride head_dim
//   dst: (kRows, head_dim) fp16, row stride ld_tile
// Rows at or past `valid_rows` are zero-filled. No barrier inside.
template <Config kConfig, int kRows>
__device__ void CopyTile(half* dst, const half* __restrict__ src, int valid_rows) {
  constexpr int kLd = MakeSmemLayout(kConfig).ld_tile;
  if constexpr (kConfig.vector_loads) {
    constexpr int kChunks = kConfig.head_dim / kVectorHalves;
    for (int i = threadIdx.x; i < kRows * kChunks; i += Threads(kConfig)) {
      const int row = i / kChunks;
      const int col = i % kChunks * kVectorHalves;
      uint4 chunk = make_uint4(0, 0, 0, 0);
      if (row < valid_rows)
        chunk = *reinterpret_cast<const uint4*>(src + row * kConfig.head_dim + col);
      *reinterpret_cast<uint4*>(dst + row * kLd + col) = chunk;
    }
  } else {
    for (int i = threadIdx.x; i < kRows * kConfig.head_dim; i += Threads(kConfig)) {
      const int row = i / kConfig.head_dim;
      const int col = i % kConfig.head_dim;
      dst[row * kLd + col] =
          row < valid_rows ? src[row * kConfig.head_dim + col] : __ushort_as_half(0);
    }
  }
}

// The same copy, asynchronously: the caller commits, waits and synchronises.
template <Config kConfig, int kRows>
__device__ void CopyTileAsync(half* dst, const half* __restrict__ src, int valid_rows) {
  constexpr int kLd = MakeSmemLayout(kConfig).ld_tile;
  constexpr int kChunks = kConfig.head_dim / kVectorHalves;
  for (int i = threadIdx.x; i < kRows * kChunks; i += Threads(kConfig)) {
    const int row = i / kChunks;
    const int col = i % kChunks * kVectorHalves;
    const bool valid = row < valid_rows;
    // The address of a row that is not read must still be one inside the tensor.
    const half* from = src + (valid ? row : 0) * kConfig.head_dim + col;
    ptx::CpAsync16(dst + row * kLd + col, from, valid);
  }
}

// The K and V tile that the CTA works on now.
struct KvTile {
  const half* k;  // (tile_n, head_dim) fp16
  const half* v;  // (tile_n, head_dim) fp16
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

 private:
  static constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);

  __device__ half* Slot(int base, int slot) const {
    return reinterpret_cast<half*>(smem_ + base) + slot * TileN(kConfig) * kSmem.ld_tile;
  }

  // Starts the copies of one tile and commits them as one group. Past the last
  // tile the group is empty: the count of groups, which Acquire waits by, stays right.
  __device__ void Fetch(int tile) {
    if (tile < work_.kv_tiles) {
      const int slot = tile % Stages(kConfig);
      const int first_key = tile * TileN(kConfig);
      const int valid = work_.seq_kv - first_key;
      const int64_t offset = int64_t{first_key} * kConfig.head_dim;
      CopyTileAsync<kConfig, TileN(kConfig)>(Slot(kSmem.k, slot), work_.k + offset, valid);
      CopyTileAsync<kConfig, TileN(kConfig)>(Slot(kSmem.v, slot), work_.v + offset, valid);
    }
    ptx::CpAsyncCommit();
  }

  unsigned char* smem_;
  const Work& work_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PARTS_COPY_CUH_
