// SPDX-License-Identifier: Apache-2.0
// Three warps of the producer warpgroup that turn 8-bit V on its way from TMA to the
// products, which take it with keys along the rows (fp8_layout.h has the layouts).

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_TRANSPOSE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_TRANSPOSE_CUH_

#include <cstdint>

#include "kernels/common/cluster.cuh"
#include "kernels/common/matrix.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/sdpa/wgmma/load/fp8_layout.h"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

template <WgmmaShape kShape>
class VTransposer {
 public:
  using Barriers = WgmmaBarriers<kShape>;

  //   warp: below kTransposingWarps, the same in all lanes
  __device__ VTransposer(const WgmmaParamsOf<kShape>& p, uint32_t smem, Barriers barriers, int warp)
      : p_(p), smem_(smem), barriers_(barriers), warp_(warp) {}

  // All lanes of the warp.
  __device__ void Run() {
    TileQueue<kShape> queue(p_, barriers_);
    for (int tile; (tile = queue.template Next<false>()) >= 0;) {
      const WgmmaWork<kShape> work = DecodeWork<kShape>(p_, tile);
#pragma unroll 1
      for (int n = work.kv_tiles; n > 0; --n) {
        ptx::MbarrierWait(barriers_.RawFull(slot_.slot), slot_.phase);
        ptx::MbarrierWait(barriers_.VEmpty(slot_.slot), slot_.phase ^ 1);
        Transpose(smem_ + kSmem.raw + slot_.slot * kSmem.kv_bytes,
                  smem_ + kSmem.v + slot_.slot * kSmem.v_bytes);
        // The products read through another proxy. Each lane's writes, then all lanes'.
        ptx::FenceProxyAsync();
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
          ptx::MbarrierArrive(barriers_.VFull(slot_.slot));
          if constexpr (kShape.cluster == 1) ptx::MbarrierArrive(barriers_.RawEmpty(slot_.slot));
        }
        if constexpr (kShape.cluster > 1) {
          // To the producers of all CTAs. Relaxed: what was read has been stored above.
          if (threadIdx.x % 32 < kShape.cluster) {
            ptx::MbarrierArriveClusterRelaxed(
                ptx::MapShared(barriers_.RawEmpty(slot_.slot), threadIdx.x % 32));
          }
        }
        slot_.Advance();
      }
    }
  }

 private:
  static constexpr WgmmaSmem kSmem = MakeSmem(kShape);
  static constexpr int kChunks = kShape.head_dim / 16;
  static constexpr int kKeys = fp8::kKeysPerProduct;  // of a block
  static_assert(kShape.tile_n % kKeys == 0);
  static constexpr int kFromRow = RowBytes(kShape);
  static constexpr int kToRow = TransposedRowBytes(kShape);
  // What is dealt out to warps: chunks of columns with all their keys; or, at head_dim 64, which
  // has four of them, pieces of keys with all their columns, one for each warp if that comes out.
  static constexpr bool kByColumns = kShape.head_dim > 64;
  static constexpr int kPiece =
      kShape.tile_n % (kTransposingWarps * kKeys) == 0 ? kShape.tile_n / kTransposingWarps : kKeys;
  static constexpr int kUnits = kByColumns ? kChunks : kShape.tile_n / kPiece;
  static constexpr int kBlocks = kByColumns ? kShape.tile_n / kKeys : kChunks * (kPiece / kKeys);

  // The warp's share of a tile: every third unit, so that where its blocks lie is known when this
  // is compiled but for one number a unit. With blocks dealt out one by one it took three times as
  // many instructions.
  __device__ void Transpose(uint32_t from, uint32_t to) const {
    const int lane = threadIdx.x % 32;
    const uint32_t first = fp8::FirstSelector(lane);
    const uint32_t second = fp8::SecondSelector(lane);
    const uint32_t load = from + fp8::LaneLoadByte(lane, kFromRow);
    const uint32_t store = to + fp8::LaneStoreByte(lane, kToRow);
    // Several at once, so that their loads' latencies pass together; more don't fit into the
    // producer's registers. Loads first: the compiler keeps the order of what is written.
    constexpr int kAtOnce = 4;
#pragma unroll 1
    for (uint32_t unit = warp_; unit < kUnits; unit += kTransposingWarps) {
      const auto key_of = [&](int block) {
        return kByColumns ? block * kKeys
                          : static_cast<int>(unit) * kPiece + block / kChunks * kKeys;
      };
      const auto chunk_of = [&](int block) -> uint32_t {
        return kByColumns ? unit : block % kChunks;
      };
#pragma unroll
      for (int first_block = 0; first_block < kBlocks; first_block += kAtOnce) {
        uint32_t keys[kAtOnce][4];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int block = first_block + i;
          if (block >= kBlocks) break;
          ptx::LdMatrixTransposed(keys[i], fp8::LoadByte(load, key_of(block), chunk_of(block),
                                                         kShape.tile_n, kFromRow));
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int block = first_block + i;
          if (block >= kBlocks) break;
          ptx::StMatrix(
              fp8::StoreByte(store, key_of(block), chunk_of(block), kShape.head_dim, kToRow),
              __byte_perm(keys[i][0], keys[i][1], first),
              __byte_perm(keys[i][0], keys[i][1], second),
              __byte_perm(keys[i][2], keys[i][3], first),
              __byte_perm(keys[i][2], keys[i][3], second));
        }
      }
    }
  }

  const WgmmaParamsOf<kShape>& p_;
  const uint32_t smem_;  // base of the tiles
  const Barriers barriers_;
  const int warp_;
  RingCursor<kShape.stages> slot_;  // of both rings
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_TRANSPOSE_CUH_
