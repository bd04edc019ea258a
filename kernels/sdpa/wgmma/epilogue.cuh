// SPDX-License-Identifier: Apache-2.0
// What a consumer warpgroup does when a tile of queries is done: O and LSE leave.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_EPILOGUE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_EPILOGUE_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/sdpa/shared/exp.cuh"
#include "kernels/sdpa/shared/exp_instructions.cuh"
#include "kernels/sdpa/shared/quad.cuh"
#include "kernels/sdpa/wgmma/fragment_store.cuh"
#include "kernels/sdpa/wgmma/join/cluster_join.cuh"
#include "kernels/sdpa/wgmma/join/split_join.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"
#include "kernels/sdpa/wgmma/softmax.cuh"

namespace warpledger::sdpa {

// One thread's part of it; all threads of the warpgroup call it together.
template <WgmmaShape kShape>
class WgmmaEpilogue {
 public:
  using Params = WgmmaParamsOf<kShape>;
  using Output = std::conditional_t<kShape.fp8_output, uint8_t, uint16_t>;

  //   smem: base of the tiles
  __device__ WgmmaEpilogue(const Params& p, uint32_t smem, int warpgroup, int thread)
      : p_(p), smem_(smem), warpgroup_(warpgroup), thread_(thread) {
    if constexpr (kShape.own_tiles) row_block_.of = warpgroup;
  }

  // Which block of 64 rows of the tile is the warpgroup's.
  __device__ int RowBlock() const {
    if constexpr (kShape.own_tiles) {
      return row_block_.of;
    } else {
      return warpgroup_;
    }
  }
  __device__ void SwapRows() { row_block_.of = kShape.consumers - 1 - row_block_.of; }

  // The thread's first row in the tile; the second is eight rows on.
  __device__ int RowInTile() const {
    return RowBlock() * kRowsPerConsumer + thread_ / 32 * 16 + thread_ % 32 / 4;
  }

  __device__ void Store(const WgmmaWork<kShape>& work, const float (&out)[kShape.head_dim / 2],
                        const WgmmaSoftmax<kShape>& softmax, const WgmmaScales& scales) const {
    if constexpr (kShape.tma_store && kShape.varlen) {
      // TMA would write the next sequence's rows too.
      if (FirstRow(work) + kRowsPerConsumer <= work.seq_q) {
        StoreByCopyEngine(work, out, softmax, scales);
      } else {
        StoreFromRegisters(work, out, softmax, scales);
      }
    } else if constexpr (kShape.tma_store) {
      StoreByCopyEngine(work, out, softmax, scales);
    } else {
      if constexpr (kShape.split_kv) {
        if (p_.splits > 1) return StoreAsPart(work, out, softmax);
      }
      StoreFromRegisters(work, out, softmax, scales);
    }
  }

  // Where the keys of this CTA's part of a block are none.
  __device__ void StoreNoKeys(const WgmmaWork<kShape>& work) const {
    if constexpr (kShape.split_kv) {
      const float out[kShape.head_dim / 2] = {};
      StoreAsPart(work, out, WgmmaSoftmax<kShape>());
    }
  }

  // Before the thread exits: its copies have read shared memory.
  __device__ void Drain() const {
    if constexpr (kShape.tma_store) ptx::BulkWaitRead<0>();
  }

  // O leaves from registers. A quad holds a row's columns in pieces of 16 bytes, a
  // fourth of each piece per lane; the lanes exchange them, so that each stores
  // whole pieces.
  __device__ void StoreFromRegisters(const WgmmaWork<kShape>& work,
                                     const float (&out)[kShape.head_dim / 2],
                                     const WgmmaSoftmax<kShape>& softmax,
                                     const WgmmaScales& scales) const {
    const int lane_in_quad = thread_ % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = work.Row(RowInTile(), 8 * r);
      const float inverse = Inverse(softmax.sum[r], scales);
      if constexpr (kShape.fp8_output) {
        StoreCodes(work, out, r, row, inverse / __ldg(p_.o_scale));
      } else {
        uint16_t* o = static_cast<uint16_t*>(p_.o) + work.OutputOf(p_, row);
#pragma unroll
        for (int chunk = 0; chunk < kShape.head_dim / 8; chunk += 4) {
          uint32_t piece[4];  // of chunk, chunk + 1, …: this lane's fourth
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            piece[c] = PackPair<kShape.bf16>(out[(chunk + c) * 4 + 2 * r] * inverse,
                                             out[(chunk + c) * 4 + 2 * r + 1] * inverse);
          }
          TransposeQuad(piece, lane_in_quad);
          if (work.IsValid(p_, row)) {
            *reinterpret_cast<uint4*>(o + (chunk + lane_in_quad) * 8) =
                make_uint4(piece[0], piece[1], piece[2], piece[3]);
          }
        }
      }
      StoreLse(work, softmax, scales, r);
    }
  }

  // The same of the thread's row `r` in 8 bits: a piece has 16 columns, of which a lane holds two
  // of each eight.
  __device__ void StoreCodes(const WgmmaWork<kShape>& work, const float (&out)[kShape.head_dim / 2],
                             int r, int row, float factor) const {
    const int lane_in_quad = thread_ % 4;
    uint8_t* o = static_cast<uint8_t*>(p_.o) + work.OutputOf(p_, row);
#pragma unroll
    for (int chunk = 0; chunk < kShape.head_dim / 16; chunk += 4) {
      uint32_t piece[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int first = (chunk + c) * 8 + 2 * r;
        piece[c] = PackE4m3(out[first] * factor, out[first + 1] * factor, out[first + 4] * factor,
                            out[first + 5] * factor);
      }
      TransposeQuad(piece, lane_in_quad);
      constexpr unsigned kLow = 0x5410, kHigh = 0x7632;  // the halves of two words
      if (work.IsValid(p_, row)) {
        *reinterpret_cast<uint4*>(o + (chunk + lane_in_quad) * 16) = make_uint4(
            __byte_perm(piece[0], piece[1], kLow), __byte_perm(piece[2], piece[3], kLow),
            __byte_perm(piece[0], piece[1], kHigh), __byte_perm(piece[2], piece[3], kHigh));
      }
    }
  }

  // O leaves as a tile: the warpgroup's rows to shared memory, whence TMA takes
  // them while the warpgroup goes on; rows past the sequence's end it leaves out.
  //
  // The tile is free again when the copies have read it. Only the thread that asked for
  // them can wait for that, so the others meet it at a barrier before they write; where
  // the tile is Q's, that barrier also says that all four warps' last Q K^T is over, and
  // the thread waits at once, because Q is released behind this function. 8-bit Q's place has room
  // for half of O's columns at a time.
  __device__ void StoreByCopyEngine(const WgmmaWork<kShape>& work,
                                    const float (&out)[kShape.head_dim / 2],
                                    const WgmmaSoftmax<kShape>& softmax,
                                    const WgmmaScales& scales) const {
    constexpr WgmmaSmem kSmem = MakeSmem(kShape);
    constexpr int kBlockBytes = TileM(kShape) * 128;
    constexpr int kRounds = OutputRounds(kShape);
    // Elsewhere a copy of the other warpgroup's may still read; but in Q's place it may read Q.
    const int place = StoresThroughQ(kShape) ? RowBlock() : warpgroup_;
    const uint32_t tile = smem_ + kSmem.o + place * kRowsPerConsumer * 128;
    const int barrier = kEpilogueBarrier + warpgroup_;
    const int first_row = FirstRow(work);
    const float inverse[2] = {Inverse(softmax.sum[0], scales), Inverse(softmax.sum[1], scales)};
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      constexpr int kColumns = kShape.head_dim / kRounds;
      const int first = round * kColumns;
      if (thread_ == 0) ptx::BulkWaitRead<0>();
      ptx::NamedBarrierSync(barrier, kWarpgroup);
      StoreFragment<kColumns>(tile, kBlockBytes, thread_, [&](int i) {
        const int at = first / 2 + 2 * i;
        return PackPair<kShape.bf16>(out[at] * inverse[i % 2], out[at + 1] * inverse[i % 2]);
      });
      ptx::FenceProxyAsync();
      ptx::NamedBarrierSync(barrier, kWarpgroup);
      if (thread_ == 0) {
        if (first_row < work.Lengths(p_).seq_q) {
          int row = first_row;
          if constexpr (kShape.varlen) row += work.first_o;
#pragma unroll
          for (int block = 0; block < kColumns / kSwizzleColumns; ++block) {
            ptx::TmaStore3d(&p_.o_map, tile + block * kBlockBytes, first + block * kSwizzleColumns,
                            row, work.head);
          }
        }
        ptx::BulkCommit();
        if constexpr (StoresThroughQ(kShape)) ptx::BulkWaitRead<0>();
      }
    }
    StoreLse(work, softmax, scales, 0);
    StoreLse(work, softmax, scales, 1);
  }

  // Rows that see no key: O = 0, LSE = -inf.
  __device__ void StoreUnseen(const WgmmaWork<kShape>& work) const {
    constexpr int kThreads = kShape.consumers * kWarpgroup;
    const int thread = warpgroup_ * kWarpgroup + thread_;
    static_assert(TileM(kShape) <= kThreads);
    if constexpr (kShape.pack_heads) {
      // Rows of several heads, a thread each.
      if (thread >= work.Rows(p_)) return;
      const int64_t at = work.IndexOf(p_, thread);
      auto* o = reinterpret_cast<uint4*>(static_cast<uint16_t*>(p_.o) + at * kShape.head_dim);
#pragma unroll 1
      for (int i = 0; i < kShape.head_dim / 8; ++i) o[i] = make_uint4(0, 0, 0, 0);
      if (p_.lse != nullptr) p_.lse[at] = -INFINITY;
    } else if constexpr (kShape.varlen || kShape.fp8_output) {
      constexpr int kPieces = kShape.head_dim * OutputBytes(kShape) / 16;
      const int rows = work.Rows(p_);
#pragma unroll 1
      for (int i = thread; i < rows * kPieces; i += kThreads) {
        auto* o = static_cast<Output*>(p_.o) + work.OutputOf(p_, work.first_row + i / kPieces);
        reinterpret_cast<uint4*>(o)[i % kPieces] = make_uint4(0, 0, 0, 0);
      }
      if (thread < rows && p_.lse != nullptr) {
        p_.lse[work.LseOf(p_, work.first_row + thread)] = -INFINITY;
      }
    } else {
      const int rows = min(TileM(kShape), p_.seq_q - work.first_row);
      const int64_t first_row = int64_t{work.head} * p_.seq_q + work.first_row;
      uint16_t* o = static_cast<uint16_t*>(p_.o) + first_row * kShape.head_dim;
#pragma unroll 1  // rare, and the instruction cache is for the mainloop
      for (int i = 0; i < rows * kShape.head_dim / 8; i += kThreads) {
        if (i + thread < rows * kShape.head_dim / 8) {
          reinterpret_cast<uint4*>(o)[i + thread] = make_uint4(0, 0, 0, 0);
        }
      }
      if (thread < rows && p_.lse != nullptr) p_.lse[first_row + thread] = -INFINITY;
    }
  }

 private:
  // Of the warpgroup, in the sequence.
  __device__ int FirstRow(const WgmmaWork<kShape>& work) const {
    return work.first_row + RowBlock() * kRowsPerConsumer;
  }

  // All threads of the warpgroups that compute.
  __device__ void StoreAsPart(const WgmmaWork<kShape>& work,
                              const float (&out)[kShape.head_dim / 2],
                              const WgmmaSoftmax<kShape>& softmax) const {
    if constexpr (kShape.cluster_join) {
      const WgmmaClusterJoin<kShape> join(p_, smem_, warpgroup_ * kWarpgroup + thread_);
      join.Run(work, RowInTile(), out, softmax);
    } else {
      const WgmmaSplitJoin<kShape> join(p_, smem_, warpgroup_ * kWarpgroup + thread_);
      join.Leave(work, RowInTile(), out, softmax);
      if constexpr (!kShape.join_kernel) {
        if (join.IsLast()) join.Join(work);
      }
    }
  }

  // What an output is multiplied by.
  __device__ static float Inverse(float sum, const WgmmaScales& scales) {
    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    return kShape.fp8 ? inverse * scales.out : inverse;
  }

  // Of the thread's row `r`, by one lane of the quad that holds it.
  __device__ void StoreLse(const WgmmaWork<kShape>& work, const WgmmaSoftmax<kShape>& softmax,
                           const WgmmaScales& scales, int r) const {
    const int row = work.Row(RowInTile(), 8 * r);
    if (p_.lse != nullptr && thread_ % 4 == 0 && work.IsValid(p_, row)) {
      p_.lse[work.LseOf(p_, row)] = softmax.max[r] * scales.score + logf(softmax.PlainSum(r));
    }
  }

  const Params& p_;
  const uint32_t smem_;
  const int warpgroup_;
  const int thread_;
  struct Block {
    int of;
  };
  struct NoBlock {};
  [[no_unique_address]] std::conditional_t<kShape.own_tiles, Block, NoBlock> row_block_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_EPILOGUE_CUH_
