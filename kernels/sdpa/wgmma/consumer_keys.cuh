// SPDX-License-Identifier: Apache-2.0
// A warpgroup's way over the tiles of keys of a tile of queries, from the last one to the first.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_CONSUMER_KEYS_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_CONSUMER_KEYS_CUH_

#include "kernels/common/mbarrier.cuh"
#include "kernels/common/wgmma.cuh"
#include "kernels/sdpa/wgmma/consumer.cuh"
#include "kernels/sdpa/wgmma/scales.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// The tile of keys that the warpgroup begins with. With own_tiles it lets go at once of those
// that none of its rows sees; a warpgroup without a key takes the first tile. The block of rows
// moves from tile to tile, so that each warpgroup has as many steps as the others.
template <WgmmaShape kShape>
__device__ inline int WgmmaConsumer<kShape>::FirstTile(const WgmmaWork<kShape>& work) {
  int tile = work.kv_tiles - 1;
  if constexpr (kShape.own_tiles) {
    const int own = max(OwnKeys(work) - 1, 0) / kShape.tile_n;
#pragma unroll 1
    for (; tile > own; --tile) {
      // A lane that came out of a wait late, behind the arrival, could find the barrier two phases
      // on: here no product keeps a warp's lanes together.
      ptx::MbarrierWait(barriers_.KFull(k_.slot), k_.phase);
      __syncwarp();
      AwaitTurn();
      PassTurn<WgmmaTurns::kStarted>();
      PassTurn<WgmmaTurns::kScored>();
      ReleaseK(tile);
      k_.Advance();
      ptx::MbarrierWait(barriers_.VFull(v_.slot), v_.phase);
      __syncwarp();
      ReleaseV(tile);
      v_.Advance();
    }
  }
  return tile;
}

// Probabilities of the tile that a warpgroup begins with, of its first kKeys keys.
template <WgmmaShape kShape>
template <int kKeys>
__device__ inline void WgmmaConsumer<kShape>::Begin(Tile& t, const WgmmaWork<kShape>& work,
                                                    int first, float (&rescale)[2]) {
  float(&scores)[kKeys / 2] = FirstKeys<kKeys>(t);
  if constexpr (kShape.block_scale) tile_scales_ = ScalesOfTile<kShape>(p_, work, first);
  ptx::MbarrierWait(barriers_.KFull(k_.slot), k_.phase);
  AwaitTurn();
  StartScores<kKeys>(t, k_.slot);
  PassTurn<WgmmaTurns::kStarted>();
  ptx::WgmmaWait<0>();
  ptx::PinRegisters(scores);
  PassTurn<WgmmaTurns::kScored>();
  ReleaseK(first);
  k_.Advance();
  if (kShape.causal || work.Lengths(p_).seq_kv % kShape.tile_n != 0) Mask(scores, work, first);
  t.softmax.Update(scores, ScoreScale(), rescale);
  if constexpr (kShape.two_level) t.carry[0] = t.carry[1] = 0.0f;  // O is 0 yet
  PassProbabilities<kKeys>(t);
  AwaitProbabilities();
  if constexpr (kShape.varlen) ClearBehindLastKey(work, first);
  RefillK();
}

// K/V tiles `first` down to the CTA's first.
template <WgmmaShape kShape>
__device__ inline void WgmmaConsumer<kShape>::RunKeys(Tile& t, const WgmmaWork<kShape>& work,
                                                      int first) {
  float rescale[2];
  int n = first - 1;
  if constexpr (kHalfTiles) {
    constexpr int kHalf = kShape.tile_n / 2;
    if (OwnKeys(work) - first * kShape.tile_n <= kHalf) {
      Begin<kHalf>(t, work, first, rescale);
      if (n < 0) return End<kHalf>(t, 0);
      Step<true, kHalf>(t, work, n--);
    } else {
      Begin(t, work, first, rescale);
    }
  } else {
    Begin(t, work, first, rescale);
  }
  // Below this tile every row of the CTA, or of the warpgroup, sees every key.
  int first_row = work.first_row;
  if constexpr (kShape.own_tiles) first_row += FirstRow();
  int whole = kShape.mask_all ? 0 : max(work.VisibleKeys(p_, first_row), 0) / kShape.tile_n;
  if constexpr (kShape.split_kv) whole = max(whole, work.split_begin);
#pragma unroll 1
  for (; n >= whole; --n) Step<true>(t, work, n);
  if constexpr (kShape.rescale == WgmmaRescale::kSumRises) {
    StepsBySum(t, work, n, kShape.split_kv ? work.split_begin : 0);
  } else if constexpr (!kShape.mask_all) {
#pragma unroll 1
    for (; n >= (kShape.split_kv ? work.split_begin : 0); --n) Step<false>(t, work, n);
  }
  End(t, kShape.split_kv ? work.split_begin : 0);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_CONSUMER_KEYS_CUH_
