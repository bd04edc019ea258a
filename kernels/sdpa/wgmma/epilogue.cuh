// What a consumer warpgroup does when a tile of queries is done: O and LSE leave.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_EPILOGUE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_EPILOGUE_CUH_

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/quad.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"
#include "kernels/sdpa/wgmma/softmax.cuh"

namespace warpledger::sdpa {

// One thread's part of it; all threads of the warpgroup call it together.
template <WgmmaShape kShape>
class WgmmaEpilogue {
 public:
  __device__ WgmmaEpilogue(const WgmmaParams& p, int warpgroup, int thread)
      : p_(p), warpgroup_(warpgroup), thread_(thread) {}

  // The thread's first row in the tile; the second is eight rows on.
  __device__ int RowInTile() const {
    return warpgroup_ * kRowsPerConsumer + thread_ / 32 * 16 + thread_ % 32 / 4;
  }

  // O leaves from registers. A quad holds a row's columns in pieces of 16 bytes, a
  // fourth of each piece per lane; the lanes exchange them, so that each stores
  // whole pieces.
  __device__ void Store(const WgmmaWork& work, const float (&out)[kShape.head_dim / 2],
                        const RowPairSoftmax& softmax) const {
    const int lane_in_quad = thread_ % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = work.first_row + RowInTile() + 8 * r;
      const float inverse = softmax.sum[r] > 0.0f ? 1.0f / softmax.sum[r] : 0.0f;
      const int64_t at = int64_t{work.head} * p_.seq_q + row;
      half* o = static_cast<half*>(p_.o) + at * kShape.head_dim;
#pragma unroll
      for (int chunk = 0; chunk < kShape.head_dim / 8; chunk += 4) {
        uint32_t piece[4];  // of chunk, chunk + 1, …: this lane's fourth
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          piece[c] = PackHalves(out[(chunk + c) * 4 + 2 * r] * inverse,
                                out[(chunk + c) * 4 + 2 * r + 1] * inverse);
        }
        TransposeQuad(piece, lane_in_quad);
        if (row < p_.seq_q) {
          *reinterpret_cast<uint4*>(o + (chunk + lane_in_quad) * 8) =
              make_uint4(piece[0], piece[1], piece[2], piece[3]);
        }
      }
      if (p_.lse != nullptr && lane_in_quad == 0 && row < p_.seq_q) {
        p_.lse[at] = softmax.max[r] * p_.softmax_scale + logf(softmax.sum[r]);
      }
    }
  }

  // Rows that see no key: O = 0, LSE = -inf.
  __device__ void StoreUnseen(const WgmmaWork& work) const {
    const int rows = min(TileM(kShape), p_.seq_q - work.first_row);
    half* o = static_cast<half*>(p_.o) +
              (int64_t{work.head} * p_.seq_q + work.first_row) * kShape.head_dim;
    const int thread = warpgroup_ * kWarpgroup + thread_;
    for (int i = thread; i < rows * kShape.head_dim / 8; i += kShape.consumers * kWarpgroup) {
      reinterpret_cast<uint4*>(o)[i] = make_uint4(0, 0, 0, 0);
    }
    for (int i = thread; i < rows && p_.lse != nullptr; i += kShape.consumers * kWarpgroup) {
      p_.lse[int64_t{work.head} * p_.seq_q + work.first_row + i] = -INFINITY;
    }
  }

 private:
  const WgmmaParams& p_;
  const int warpgroup_;
  const int thread_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_EPILOGUE_CUH_
