// SPDX-License-Identifier: Apache-2.0
// SDPA forward for problems of a few microseconds on Hopper: too few query tiles to
// fill the GPU, too few keys to fill a pipeline.
//
// The keys of 64 query rows are divided between parts: the warpgroups of a CTA, and
// the CTAs of a cluster. There is no producer and no ring: a part asks TMA
// for its chunk of K/V at once and works it off, and the parts join at the end.
//
//   S = Q K^T in two halves of the chunk; the row maximum as each half ends
//   P_0 = exp(S_0 - max);  start O  = P_0 V_0
//   P_1 = exp(S_1 - max);  start O += P_1 V_1     (softmax of a half beside products)
//   send {max, sum};  wait for O;  join           (join.cuh)
//
// A part with more than one chunk takes every Parts-th, one after another.

#ifndef WARPLEDGER_KERNELS_SDPA_RESIDENT_FORWARD_CUH_
#define WARPLEDGER_KERNELS_SDPA_RESIDENT_FORWARD_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/common/cluster.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/common/wgmma.cuh"
#include "kernels/sdpa/resident/join.cuh"
#include "kernels/sdpa/resident/part.cuh"
#include "kernels/sdpa/resident/shape.h"
#include "kernels/sdpa/shared/exp_instructions.cuh"
#include "kernels/sdpa/shared/quad.cuh"
#include "kernels/sdpa/shared/scores.cuh"
#include "kernels/sdpa/shared/warpgroup.h"
#include "kernels/sdpa/shared/wgmma_params.h"

namespace warpledger::sdpa {

template <ResidentShape kShape>
class ResidentWarpgroup {
 public:
  __device__ ResidentWarpgroup(const WgmmaParams& p, uint32_t smem)
      : p_(p), part_(p, smem), join_(p, part_) {}

  __device__ void Run() {
    const bool elected = ptx::ElectLane();
    if (elected) Prepare();
    const int chunks = Chunks();
    int chunk = part_.Index();
    const bool idle = chunk >= chunks;
    if (elected && Role() == kLoadQ && part_.Warpgroup() == 0) LoadQ();
    if (elected && Role() == kLoadK && !idle) LoadChunk(kSmem.k, &p_.k, kKFull, chunk);
    __syncthreads();
    // V only after Q and K of the whole CTA are on their way: it is needed last, and
    // requests before them in the SM's queue would make those late (0.6 us at mission_b).
    if (elected && Role() == kLoadV && !idle) LoadChunk(kSmem.v, &p_.v, kVFull, chunk);
    __syncwarp();  // what follows is for whole warps (.aligned)
    if constexpr (kShape.cluster > 1) ptx::ClusterArriveRelaxed();
#pragma unroll
    for (int i = 0; i < kOut; ++i) out_[i] = 0.0f;
    ptx::MbarrierWait(smem() + kSmem.barriers + kQFull * 8, 0);
    if (idle) {
      SendStatistics();  // that it saw nothing
    } else {
#pragma unroll 1
      while (true) {
        const bool last = chunk + kParts >= chunks;
        RunChunk(chunk, last);
        if (last) break;
        chunk += kParts;
        Reload(chunk);
      }
    }
    join_.Finish(out_, max_, sum_);
  }

 private:
  using Part = ResidentPart<kShape>;
  static constexpr ResidentSmem kSmem = Part::kSmem;
  static constexpr int kParts = Part::kParts;
  static constexpr int kHalf = kShape.half;
  static constexpr int kChunk = ChunkKeys(kShape);
  static constexpr int kScores = kHalf / 2;  // registers of half a chunk
  static constexpr int kOut = kShape.head_dim / 2;
  static constexpr int kBlocks = kShape.head_dim / kSwizzleColumns;
  enum Roles { kLoadK, kLoadQ, kLoadV, kExchange };  // of a warpgroup's warps

  __device__ int Role() const { return part_.warp % 4; }
  __device__ uint32_t smem() const { return part_.smem; }
  __device__ float ScaleLog2() const { return p_.softmax_scale * 1.4426950408889634f; }

  // Row `row` of Q sees keys [0, VisibleKeys).
  __device__ int VisibleKeys(int row) const {
    return kShape.causal ? CausalKeys(p_, row) : p_.seq_kv;
  }
  __device__ int Chunks() const {
    const int last_row = min(part_.first_row + kRowsPerConsumer, p_.seq_q) - 1;
    return (max(VisibleKeys(last_row), 0) + kChunk - 1) / kChunk;
  }

  // --- Loads: one thread of a warp each, so that the descriptors, cold in each launch,
  // are fetched beside one another ---
  __device__ void Prepare() const {
    if (Role() == kLoadK) Prepare(kKFull, &p_.k);
    if (Role() == kLoadQ && part_.Warpgroup() == 0) Prepare(kQFull, &p_.q);
    if (Role() == kLoadV) Prepare(kVFull, &p_.v);
    if (Role() == kExchange) {
      ptx::MbarrierInit(part_.Barrier(kKvRead), kWarpgroup);
      join_.Prepare();
    }
    ptx::MbarrierInitFence();
    if constexpr (kShape.dependent_launch) ptx::AwaitPriorKernel();
  }
  __device__ void Prepare(ResidentBarrier barrier, const CUtensorMap* map) const {
    ptx::PrefetchTensorMap(map);
    ptx::MbarrierInit(part_.Barrier(barrier), 1);
  }
  __device__ void LoadQ() const {
    const uint32_t barrier = part_.Barrier(kQFull);
    ptx::MbarrierArriveExpectBytes(barrier, kSmem.q_bytes);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      ptx::TmaLoad3d(smem() + kSmem.q + block * kRowsPerConsumer * 128, &p_.q, barrier,
                     block * kSwizzleColumns, part_.first_row, part_.head);
    }
  }
  __device__ void LoadChunk(int to, const CUtensorMap* map, ResidentBarrier which,
                            int chunk) const {
    const uint32_t barrier = part_.Barrier(which);
    ptx::MbarrierArriveExpectBytes(barrier, kSmem.kv_bytes);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      ptx::TmaLoad3d(part_.Mine(to, kSmem.kv_bytes) + block * kChunk * 128, map, barrier,
                     block * kSwizzleColumns, chunk * kChunk, blockIdx.z);
    }
  }
  // By an mbarrier and not by a barrier of the warpgroup's threads: compute-sanitizer's
  // racecheck loses count where warps of a CTA pass different numbers of those.
  __device__ void Reload(int chunk) {
    ptx::MbarrierArrive(part_.Barrier(kKvRead));
    if ((Role() == kLoadK || Role() == kLoadV) && ptx::ElectLane()) {
      ptx::MbarrierWait(part_.Barrier(kKvRead), phase_);
      if (Role() == kLoadK) LoadChunk(kSmem.k, &p_.k, kKFull, chunk);
      if (Role() == kLoadV) LoadChunk(kSmem.v, &p_.v, kVFull, chunk);
    }
    __syncwarp();  // for the products
    phase_ ^= 1;
  }

  // --- Products ---
  __device__ void StartScores(float (&scores)[kScores], int half) const {
    const uint64_t q = ptx::SwizzledDescriptor(smem() + kSmem.q);
    const uint64_t k =
        ptx::SwizzledDescriptor(part_.Mine(kSmem.k, kSmem.kv_bytes) + half * kHalf * 128);
    ptx::WgmmaFence();
#pragma unroll
    for (int d = 0; d < kShape.head_dim; d += 16) {
      const int block = d / kSwizzleColumns;
      const int in_row = d % kSwizzleColumns * 2;
      ptx::Wgmma<kHalf>::SS(
          scores, ptx::AdvanceDescriptor(q, block * kRowsPerConsumer * 128 + in_row),
          ptx::AdvanceDescriptor(k, block * kChunk * 128 + in_row), d == 0 ? 0 : 1);
    }
    ptx::WgmmaCommit();
  }
  __device__ void StartOutput(const uint32_t (&probs)[kScores / 2], int half) {
    const uint64_t v = ptx::SwizzledDescriptor(
        part_.Mine(kSmem.v, kSmem.kv_bytes) + half * kHalf * 128, kChunk * 128);
    ptx::WgmmaFence();
#pragma unroll
    for (int key = 0; key < kHalf; key += 16) {
      const uint32_t a[4] = {probs[key / 4], probs[key / 4 + 1], probs[key / 4 + 2],
                             probs[key / 4 + 3]};
      ptx::Wgmma<kShape.head_dim>::RS(out_, a, ptx::AdvanceDescriptor(v, key * 128), 1);
    }
    ptx::WgmmaCommit();
  }

  // --- Softmax of a chunk ---
  // Sets scores of keys that a row does not see to -inf. `key`: the first one's index.
  __device__ void MaskScores(float (&scores)[kScores], int key) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = part_.first_row + part_.RowInTile() + 8 * r;
      MaskRow(scores, r, VisibleKeys(row) - key, part_.Lane() % 4);
    }
  }
  __device__ static void RaiseMax(float (&row_max)[2], const float (&scores)[kScores]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) row_max[r] = ThreadMax(scores, r, row_max[r]);
  }
  __device__ void Exponentials(const float (&scores)[kScores], const float (&subtract)[2],
                               uint32_t (&probs)[kScores / 2]) {
    const float scale_log2 = ScaleLog2();
    float odd[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      const int r = i / 2 % 2;
      const float a = Exp2Approx(fmaf(scores[i], scale_log2, -subtract[r]));
      const float b = Exp2Approx(fmaf(scores[i + 1], scale_log2, -subtract[r]));
      sum_[r] += a;
      odd[r] += b;
      probs[i / 2] = PackHalfPair(a, b);
    }
    sum_[0] += odd[0];
    sum_[1] += odd[1];
  }
  // Takes the maximum over the quad; returns what is subtracted from scaled scores, and
  // in `rescale` what the earlier output must be multiplied by.
  __device__ void UpdateMax(float (&row_max)[2], float (&subtract)[2], float (&rescale)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      row_max[r] = QuadMax(row_max[r]);
      // A row that saw no key yet has maximum -inf; 0 keeps exp of it at 0.
      subtract[r] = row_max[r] == -INFINITY ? 0.0f : __fmul_rn(row_max[r], ScaleLog2());
      // Not fused: exactly one where the maximum stays, however many chunks follow.
      rescale[r] = Exp2Approx(__fmul_rn(max_[r], ScaleLog2()) - subtract[r]);
      max_[r] = row_max[r];
      sum_[r] *= rescale[r];
    }
  }
  __device__ void SumOverQuad() {
#pragma unroll
    for (int r = 0; r < 2; ++r) sum_[r] = QuadSum(sum_[r]);
  }

  __device__ void SendStatistics() const {
    if constexpr (kShape.cluster > 1) ptx::ClusterWait();  // peers' barriers exist
    join_.SendStatistics(max_, sum_);
  }

  __device__ void RunChunk(int chunk, bool last) {
    float scores[2][kScores];
    ptx::MbarrierWait(part_.Barrier(kKFull), phase_);
    StartScores(scores[0], 0);
    StartScores(scores[1], 1);

    const int first_key = chunk * kChunk;
    // Unlikely, so that its code lies behind the rest.
    const bool masked = kShape.causal || __builtin_expect(first_key + kChunk > p_.seq_kv, false);
    float row_max[2] = {max_[0], max_[1]};
    ptx::WgmmaWait<1>();
    ptx::PinRegisters(scores[0]);
    if (masked) MaskScores(scores[0], first_key);
    RaiseMax(row_max, scores[0]);
    ptx::WgmmaWait<0>();
    ptx::PinRegisters(scores[1]);
    if (masked) MaskScores(scores[1], first_key + kHalf);
    RaiseMax(row_max, scores[1]);

    float subtract[2];
    float rescale[2];
    UpdateMax(row_max, subtract, rescale);
    if (chunk >= kParts) {
#pragma unroll
      for (int i = 0; i < kOut; ++i) out_[i] *= rescale[i / 2 % 2];
    }
    uint32_t probs[2][kScores / 2];
    Exponentials(scores[0], subtract, probs[0]);
    ptx::MbarrierWait(part_.Barrier(kVFull), phase_);
    StartOutput(probs[0], 0);
    Exponentials(scores[1], subtract, probs[1]);
    StartOutput(probs[1], 1);
    // Sums are complete before O is: they travel meanwhile.
    if (last) {
      SumOverQuad();
      SendStatistics();
    }
    ptx::WgmmaWait<0>();
    ptx::PinRegisters(out_);
  }

  const WgmmaParams& p_;
  const Part part_;
  const ResidentJoin<kShape> join_;
  uint32_t phase_ = 0;
  float max_[2] = {-INFINITY, -INFINITY};  // in raw score units
  float sum_[2] = {0.0f, 0.0f};            // of this thread's columns, in the end of the quad's
  float out_[kOut];                        // (64, head_dim) of the warpgroup
};

// The kernel's body: a grid of (cluster x query tiles, query heads per K/V head, K/V
// heads) CTAs of Threads(kShape) threads with MakeSmem(kShape).bytes of dynamic shared
// memory.
template <ResidentShape kShape>
__device__ void ResidentForward(const WgmmaParams& p) {
  if constexpr (kShape.dependent_launch) ptx::LaunchDependents();
  extern __shared__ unsigned char raw_smem[];
  // The swizzle's atoms are 1024-byte aligned.
  const uint32_t smem = (ptx::SharedAddress(raw_smem) + 1023) / 1024 * 1024;
  ResidentWarpgroup<kShape>(p, smem).Run();
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_RESIDENT_FORWARD_CUH_
