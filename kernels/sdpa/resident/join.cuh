// SPDX-License-Identifier: Apache-2.0
// How the parts of the resident family join what each has of O.
//
// Each part divides its O by its own sum and sends every peer the share that is the
// peer's to store: rows g or g + 8 of each 16, and a range of columns. {max, sum} go
// ahead while P V still runs, so that a receiver has its peers' weights when their
// shares come. Within a CTA both go through its shared memory and one barrier, between
// CTAs by st.async, which completes on the receiver's mbarrier: about 400 cycles, once.

#ifndef WARPLEDGER_KERNELS_SDPA_RESIDENT_JOIN_CUH_
#define WARPLEDGER_KERNELS_SDPA_RESIDENT_JOIN_CUH_

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

#include "kernels/common/cluster.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/resident/part.cuh"
#include "kernels/sdpa/shared/exp_instructions.cuh"
#include "kernels/sdpa/shared/quad.cuh"
#include "kernels/sdpa/shared/warpgroup.h"
#include "kernels/sdpa/shared/wgmma_params.h"

namespace warpledger::sdpa {

template <ResidentShape kShape>
class ResidentJoin {
 public:
  using Part = ResidentPart<kShape>;
  static constexpr int kParts = Part::kParts;
  static constexpr int kOut = kShape.head_dim / 2;

  __device__ ResidentJoin(const WgmmaParams& p, const Part& part) : p_(p), part_(part) {}

  // One thread, before the cluster's barrier.
  __device__ void Prepare() const {
    if constexpr (kElsewhere > 0) {
      for (const ResidentBarrier barrier : {kStatistics, kOutputs}) {
        ptx::MbarrierInit(part_.Barrier(barrier), 1);
        ptx::MbarrierArriveExpectBytes(
            part_.Barrier(barrier),
            kElsewhere * (barrier == kOutputs ? kSmem.outputs_bytes : kSmem.statistics_bytes));
      }
    }
  }

  // Of this thread's two rows; the four lanes of a quad have the same values.
  __device__ void SendStatistics(const float (&row_max)[2], const float (&row_sum)[2]) const {
    const uint32_t x[4] = {__float_as_uint(row_max[0]), __float_as_uint(row_max[1]),
                           __float_as_uint(row_sum[0]), __float_as_uint(row_sum[1])};
#pragma unroll
    for (int k = 1; k < kParts; ++k) {
      const uint32_t to = part_.Peers(kSmem.statistics, kParts * kSmem.statistics_bytes, k) +
                          k * kSmem.statistics_bytes + StatisticsSlot();
      if (part_.Lane() % 4 == 0) Send(to, kStatistics, k, x);
    }
  }

  // Joins `out`, (64, head_dim) of this part's keys, not yet divided by the sum, with
  // the peers', and stores this part's share. Alone: stores all.
  __device__ void Finish(const float (&out)[kOut], const float (&row_max)[2],
                         const float (&row_sum)[2]) const {
    const float inverse[2] = {Inverse(row_sum[0]), Inverse(row_sum[1])};
    uint32_t shares[kShares][kShare];
    CutShares(out, inverse, shares);
    if constexpr (kParts == 1) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        Store(shares[r], r, 0);
        StoreLse(r, row_max[r], row_sum[r]);
      }
    } else {
      OrderByPeer(shares);
      SendShares(shares);
      // What came from this CTA has come.
      if constexpr (kShape.warpgroups > 1) __syncthreads();
      const int r = part_.Index() % 2;
      float weights[kParts];
      Weigh(r == 0 ? row_max[0] : row_max[1], r == 0 ? row_sum[0] : row_sum[1], weights);
      if constexpr (kElsewhere > 0) ptx::MbarrierWaitForPeers(part_.Barrier(kOutputs), 0);
      StoreJoined(shares[0], weights);
    }
  }

 private:
  static constexpr ResidentSmem kSmem = Part::kSmem;
  static constexpr int kElsewhere = kShape.warpgroups * (kShape.cluster - 1);  // parts
  // Share s of a thread's O: row s % 2 of its two, kColumns columns of it.
  static constexpr int kShares = kParts > 1 ? kParts : 2;
  static constexpr int kColumns = 2 * kShape.head_dim / kShares;
  static constexpr int kPieces = kColumns / 8;  // of two neighbouring columns
  static constexpr bool kHalves = kShape.fp16_exchange || kParts == 1;
  static constexpr int kShare = kPieces * (kHalves ? 1 : 2);  // registers
  static_assert(kShare % 4 == 0 && kPieces % 4 == 0, "shares move in pieces of 16 bytes");

  __device__ static float Inverse(float sum) {
    const float inverse = ReciprocalApprox(sum);
    return sum > 0.0f ? inverse : 0.0f;
  }

  // --- Messages ---
  __device__ void Send(uint32_t to, ResidentBarrier barrier, int k, const uint32_t (&x)[4]) const {
    if (Part::IsHere(k)) {
      ptx::StoreShared(to, x);
    } else {
      ptx::StoreAsync128(to, make_uint4(x[0], x[1], x[2], x[3]), part_.PeersBarrier(barrier, k));
    }
  }
  __device__ uint32_t StatisticsSlot() const {
    return (part_.warp % 4 * 8 + part_.Lane() / 4) * 16;
  }

  // weights[k]: what peer k's O counts in the row whose share this part has, of which
  // this part knows `row_max` and `row_sum`.
  __device__ void Weigh(float row_max, float row_sum, float (&weights)[kParts]) const {
    const int r = part_.Index() % 2;
    float maxima[kParts];
    maxima[0] = row_max;
    weights[0] = row_sum;
    if constexpr (kElsewhere > 0) ptx::MbarrierWaitForPeers(part_.Barrier(kStatistics), 0);
    const uint32_t from = part_.Mine(kSmem.statistics, kParts * kSmem.statistics_bytes);
#pragma unroll
    for (int k = 1; k < kParts; ++k) {
      uint32_t x[4];
      ptx::LoadShared(from + k * kSmem.statistics_bytes + StatisticsSlot(), x);
      maxima[k] = __uint_as_float(r == 0 ? x[0] : x[1]);
      weights[k] = __uint_as_float(r == 0 ? x[2] : x[3]);
    }
    float all_max = maxima[0];
#pragma unroll
    for (int k = 1; k < kParts; ++k) all_max = fmaxf(all_max, maxima[k]);
    const float scale_log2 = p_.softmax_scale * 1.4426950408889634f;
    const float subtract = all_max == -INFINITY ? 0.0f : all_max * scale_log2;
    float all_sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kParts; ++k) {
      weights[k] *= Exp2Approx(fmaf(maxima[k], scale_log2, -subtract));
      all_sum += weights[k];
    }
    const float inverse = Inverse(all_sum);
#pragma unroll
    for (int k = 0; k < kParts; ++k) weights[k] *= inverse;
    if (part_.Index() < 2) StoreLse(r, all_max, all_sum);
  }

  // --- Shares ---
  __device__ static void CutShares(const float (&out)[kOut], const float (&inverse)[2],
                                   uint32_t (&shares)[kShares][kShare]) {
#pragma unroll
    for (int s = 0; s < kShares; ++s) {
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        const int at = 4 * (s / 2 * kPieces + i) + 2 * (s % 2);
        const float a = out[at] * inverse[s % 2];
        const float b = out[at + 1] * inverse[s % 2];
        if constexpr (kHalves) {
          shares[s][i] = PackHalfPair(a, b);
        } else {
          shares[s][2 * i] = __float_as_uint(a);
          shares[s][2 * i + 1] = __float_as_uint(b);
        }
      }
    }
  }
  // Puts the share of part Index() ^ k in place k by constant indices: a swap for each
  // bit of Index().
  __device__ void OrderByPeer(uint32_t (&shares)[kShares][kShare]) const {
#pragma unroll
    for (int bit = 1; bit < kParts; bit *= 2) {
      const bool swap = (part_.Index() & bit) != 0;
#pragma unroll
      for (int s = 0; s < kParts; ++s) {
        if ((s & bit) != 0) continue;
#pragma unroll
        for (int i = 0; i < kShare; ++i) {
          const uint32_t low = shares[s][i];
          const uint32_t high = shares[s | bit][i];
          shares[s][i] = swap ? high : low;
          shares[s | bit][i] = swap ? low : high;
        }
      }
    }
  }
  __device__ void SendShares(const uint32_t (&shares)[kShares][kShare]) const {
#pragma unroll
    for (int k = 1; k < kParts; ++k) {
      const uint32_t to = part_.Peers(kSmem.outputs, (kParts - 1) * kSmem.outputs_bytes, k) +
                          (k - 1) * kSmem.outputs_bytes + threadIdx.x % kWarpgroup * 16;
#pragma unroll
      for (int i = 0; i < kShare; i += 4) {
        const uint32_t piece[4] = {shares[k][i], shares[k][i + 1], shares[k][i + 2],
                                   shares[k][i + 3]};
        Send(to + i / 4 * kWarpgroup * 16, kOutputs, k, piece);
      }
    }
  }
  // Adds what the peers sent to `own`, this part's share, and stores it.
  __device__ void StoreJoined(const uint32_t (&own)[kShare], const float (&weights)[kParts]) const {
    float o[2 * kPieces];
#pragma unroll
    for (int i = 0; i < 2 * kPieces; ++i) o[i] = 0.0f;
    AddShare(own, weights[0], o);
    const uint32_t from = part_.Mine(kSmem.outputs, (kParts - 1) * kSmem.outputs_bytes) +
                          threadIdx.x % kWarpgroup * 16;
#pragma unroll
    for (int k = 1; k < kParts; ++k) {
      uint32_t share[kShare];
#pragma unroll
      for (int i = 0; i < kShare; i += 4) {
        uint32_t piece[4];
        ptx::LoadShared(from + (k - 1) * kSmem.outputs_bytes + i / 4 * kWarpgroup * 16, piece);
#pragma unroll
        for (int j = 0; j < 4; ++j) share[i + j] = piece[j];
      }
      AddShare(share, weights[k], o);
    }
    uint32_t packed[kPieces];
#pragma unroll
    for (int i = 0; i < kPieces; ++i) packed[i] = PackHalfPair(o[2 * i], o[2 * i + 1]);
    Store(packed, part_.Index() % 2, part_.Index() / 2 * kColumns);
  }
  __device__ static void AddShare(const uint32_t (&share)[kShare], float weight,
                                  float (&o)[2 * kPieces]) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      float2 pair;
      if constexpr (kHalves) {
        pair = __half22float2(*reinterpret_cast<const half2*>(&share[i]));
      } else {
        pair = make_float2(__uint_as_float(share[2 * i]), __uint_as_float(share[2 * i + 1]));
      }
      o[2 * i] = fmaf(pair.x, weight, o[2 * i]);
      o[2 * i + 1] = fmaf(pair.y, weight, o[2 * i + 1]);
    }
  }

  // --- Global memory ---
  // Pieces of two columns, 8 columns apart, of row r of this thread's two. The lanes of
  // a quad exchange pieces, so that each stores 16 bytes: with 4-byte stores of its own
  // the kernel ends 0.2 us later.
  __device__ void Store(const uint32_t (&packed)[kPieces], int r, int first_column) const {
    const int lane_in_quad = part_.Lane() % 4;
    const int row = part_.first_row + part_.RowInTile() + 8 * r;
    half* o = static_cast<half*>(p_.o) + (int64_t{part_.head} * p_.seq_q + row) * kShape.head_dim +
              first_column;
#pragma unroll
    for (int c = 0; c < kPieces; c += 4) {
      uint32_t x[4] = {packed[c], packed[c + 1], packed[c + 2], packed[c + 3]};
      TransposeQuad(x, lane_in_quad);
      if (row < p_.seq_q) {
        *reinterpret_cast<uint4*>(o + (c + lane_in_quad) * 8) = make_uint4(x[0], x[1], x[2], x[3]);
      }
    }
  }
  __device__ void StoreLse(int r, float row_max, float row_sum) const {
    const int row = part_.first_row + part_.RowInTile() + 8 * r;
    if (p_.lse == nullptr || part_.Lane() % 4 != 0 || row >= p_.seq_q) return;
    p_.lse[int64_t{part_.head} * p_.seq_q + row] = row_max * p_.softmax_scale + logf(row_sum);
  }

  const WgmmaParams& p_;
  const Part part_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_RESIDENT_JOIN_CUH_
