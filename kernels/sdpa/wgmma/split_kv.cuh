// Split-KV forward kernel for Hopper, for problems of a few microseconds: too few
// query tiles to fill the GPU, too few keys per tile to fill a pipeline.
//
// 64 query rows belong to a cluster. Its parts (the warpgroups of its CTAs) divide
// the keys between them; each asks the copy engine for its whole chunk at once and
// nobody else's, so there is no producer. A part's own softmax is exact over its
// keys; the parts join at the end:
//
//   S = Q K^T in two products; max as each ends       (K in two halves, so that
//   P_0 = exp(S_0 - max); start O  = P_0 V_0           softmax of one runs beside
//   P_1 = exp(S_1 - max); start O += P_1 V_1           the other's products)
//   send {max, sum} to the other parts, while P V still runs
//   O *= exp(max - max of all) / sum of all            (all know all)
//   send each other part its share of O; add up what arrives; store
//
// Shares: rows g or g + 8 of each 16, and a range of columns. Exchange within a CTA
// goes through its shared memory, between CTAs through st.async, which completes on
// the receiver's mbarrier: no cluster barrier after the first.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SPLIT_KV_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SPLIT_KV_CUH_

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

#include "kernels/common/cluster.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/common/wgmma.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/softmax.cuh"
#include "kernels/sdpa/wgmma/split_shape.h"

#ifndef SPLIT_STAMP
#define SPLIT_STAMP(i)
#endif

namespace warpledger::sdpa {

template <SplitShape kShape>
class SplitPart {
 public:
  // All threads of the CTA.
  __device__ SplitPart(const WgmmaParams& p, uint32_t smem, int rank)
      : p_(p),
        smem_(smem),
        warp_(__shfl_sync(0xffffffffu, threadIdx.x / 32, 0)),
        rank_(rank),
        part_(rank * kShape.warpgroups + Warpgroup()),
        first_row_((kShape.cluster == 1 ? blockIdx.x : blockIdx.x / kShape.cluster) *
                   kRowsPerConsumer),
        head_(blockIdx.z * p.group_size + blockIdx.y) {}

  __device__ void Run() {
    // A warp per barrier and its copy, so that the fetches of the three descriptors,
    // cold in each launch, run beside one another.
    const int role = warp_ % 4;
    const bool elected = ptx::ElectLane();
    if (elected) {
      if (role == kLoadK) Prepare<kShape.stages>(kKFull, &p_.k);
      if (role == kLoadQ && Warpgroup() == 0) Prepare<1>(kQFull, &p_.q);
      if (role == kLoadV) Prepare<kShape.stages>(kVFull, &p_.v);
      if (role == kExchange && kParts > 1 && !kGather) PrepareExchange();
      ptx::MbarrierInitFence();
      if constexpr (kShape.dependent_launch) ptx::AwaitPriorKernel();
      // A part without keys loads zeros past the end and masks them all: its numbers
      // say that it saw nothing.
      if (role == kLoadK) LoadChunk(kSmem.k, &p_.k, kKFull, 0, part_);
      if (role == kLoadQ && Warpgroup() == 0) LoadQ();
    }
    __syncthreads();
    // V only after Q and K of all parts are on their way: it is needed last, and the
    // SM's share of L2 bandwidth makes the requests before it late.
    const int chunks = Chunks();
    if (elected) {
      if (role == kLoadV) LoadChunk(kSmem.v, &p_.v, kVFull, 0, part_);
#pragma unroll
      for (int s = 1; s < kShape.stages; ++s) {
        if (part_ + s * kParts >= chunks) break;
        if (role == kLoadK) LoadChunk(kSmem.k, &p_.k, kKFull, s, part_ + s * kParts);
        if (role == kLoadV) LoadChunk(kSmem.v, &p_.v, kVFull, s, part_ + s * kParts);
      }
    }
    SPLIT_STAMP(1);
    if constexpr (kShape.cluster > 1 && !kGather) ptx::ClusterArriveRelaxed();
#pragma unroll
    for (int i = 0; i < kOut; ++i) out_[i] = 0.0f;
    ptx::MbarrierWait(smem_ + kSmem.barriers + kQFull * 8, 0);
    SPLIT_STAMP(2);
    int chunk = part_;
#pragma unroll 1
    while (true) {
      const bool last = chunk + kParts >= chunks;
      RunChunk(chunk, last);
      if (last) break;
      if (chunk + kShape.stages * kParts < chunks) Reload(chunk + kShape.stages * kParts);
      chunk += kParts;
      if constexpr (kShape.stages == 1) {
        phase_ ^= 1;
      } else if (++slot_ == kShape.stages) {
        slot_ = 0;
        phase_ ^= 1;
      }
    }
    if constexpr (kGather) {
      Gather();
    } else if constexpr (kParts == 1) {
      Finish();
    } else {
      Join();
    }
    SPLIT_STAMP(9);
  }

 private:
  static constexpr SplitSmem kSmem = MakeSmem(kShape);
  static constexpr int kParts = Parts(kShape);
  static constexpr int kBarriers = BarriersPerPart(kShape);
  static constexpr bool kGather = GatherJoin(kShape);
  static constexpr int kHalf = kShape.half;
  static constexpr int kChunk = ChunkKeys(kShape);
  static constexpr int kScores = kHalf / 2;  // registers of half a chunk
  static constexpr int kOut = kShape.head_dim / 2;
  static constexpr int kBlocks = kShape.head_dim / kSwizzleColumns;
  static constexpr int kRemote = kShape.warpgroups * (kShape.cluster - 1);  // parts elsewhere
  static constexpr int kShare = ExchangedRegisters(kShape);
  static_assert(kParts == 1 || kShare % 4 == 0, "a share is sent in pieces of 16 bytes");
  enum { kQFull, kStatistics, kOutputs, kKFull, kVFull = kKFull + kShape.stages };
  enum { kLoadK, kLoadQ, kLoadV, kExchange };  // warps of a warpgroup

  __device__ int Warpgroup() const { return kShape.warpgroups == 1 ? 0 : warp_ / 4; }
  __device__ static int Lane() { return threadIdx.x % 32; }
  __device__ int RowInTile() const { return warp_ % 4 * 16 + Lane() / 4; }
  __device__ uint32_t Barrier(int which) const {
    return smem_ + kSmem.barriers + (Warpgroup() * kBarriers + which) * 8;
  }
  // Keys [0, VisibleKeys) are those that `row` sees.
  __device__ int VisibleKeys(int row) const {
    return kShape.causal ? min(row + p_.seq_kv - p_.seq_q + 1, p_.seq_kv) : p_.seq_kv;
  }
  __device__ int Chunks() const {
    const int last_row = min(first_row_ + kRowsPerConsumer, p_.seq_q) - 1;
    return (max(VisibleKeys(last_row), 0) + kChunk - 1) / kChunk;
  }

  // --- Loads: one thread each ---
  template <int kCount>
  __device__ void Prepare(int barrier, const CUtensorMap* map) const {
    ptx::PrefetchTensorMap(map);
#pragma unroll
    for (int i = 0; i < kCount; ++i) ptx::MbarrierInit(Barrier(barrier + i), 1);
  }
  __device__ void PrepareExchange() const {
    // This thread, and a lane of each warp of the CTA's other parts.
    constexpr int kArrivals = 1 + 4 * (kShape.warpgroups - 1);
    ptx::MbarrierInit(Barrier(kStatistics), kArrivals);
    ptx::MbarrierInit(Barrier(kOutputs), kArrivals);
    Expect(kStatistics, kRemote * kSmem.statistics_bytes);
    Expect(kOutputs, kRemote * kSmem.outputs_bytes);
  }
  __device__ void Expect(int which, int bytes) const {
    if (bytes > 0) {
      ptx::MbarrierArriveExpectBytes(Barrier(which), bytes);
    } else {
      ptx::MbarrierArrive(Barrier(which));
    }
  }
  __device__ void LoadQ() const {
    ptx::MbarrierArriveExpectBytes(Barrier(kQFull), kSmem.q_bytes);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      ptx::TmaLoad3d(smem_ + kSmem.q + block * kRowsPerConsumer * 128, &p_.q, Barrier(kQFull),
                     block * kSwizzleColumns, first_row_, head_);
    }
  }
  __device__ uint32_t Tile(int tensor, int slot) const {
    return smem_ + tensor + (Warpgroup() * kShape.stages + slot) * kSmem.kv_bytes;
  }
  __device__ void LoadChunk(int to, const CUtensorMap* map, int first_barrier, int slot,
                            int chunk) const {
    const uint32_t barrier = Barrier(first_barrier + slot);
    ptx::MbarrierArriveExpectBytes(barrier, kSmem.kv_bytes);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      ptx::TmaLoad3d(Tile(to, slot) + block * kChunk * 128, map, barrier, block * kSwizzleColumns,
                     chunk * kChunk, blockIdx.z);
    }
  }
  // Refills the slot that the part has just read.
  __device__ void Reload(int chunk) {
    ptx::NamedBarrierSync(1 + Warpgroup(), kWarpgroup);
    if (ptx::ElectLane()) {
      if (warp_ % 4 == kLoadK) LoadChunk(kSmem.k, &p_.k, kKFull, slot_, chunk);
      if (warp_ % 4 == kLoadV) LoadChunk(kSmem.v, &p_.v, kVFull, slot_, chunk);
    }
  }

  // --- Products ---
  __device__ void StartScores(float (&scores)[kScores], int half) const {
    const uint64_t q = ptx::SwizzledDescriptor(smem_ + kSmem.q);
    const uint64_t k = ptx::SwizzledDescriptor(Tile(kSmem.k, slot_) + half * kHalf * 128);
    ptx::WgmmaFence();
#pragma unroll
    for (int d = 0; d < kShape.head_dim; d += 16) {
      const int block = d / kSwizzleColumns;
      const int in_row = d % kSwizzleColumns * 2;
      ptx::Wgmma<kHalf>::SS(scores,
                            ptx::AdvanceDescriptor(q, block * kRowsPerConsumer * 128 + in_row),
                            ptx::AdvanceDescriptor(k, block * kChunk * 128 + in_row),
                            d == 0 ? 0 : 1);
    }
    ptx::WgmmaCommit();
  }
  __device__ void StartOutput(const uint32_t (&probs)[kScores / 2], int half) {
    const uint64_t v = ptx::SwizzledDescriptor(Tile(kSmem.v, slot_) + half * kHalf * 128, kChunk * 128);
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
  __device__ void Mask(float (&scores)[kScores], int key) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int visible = VisibleKeys(first_row_ + RowInTile() + 8 * r) - key - Lane() % 4 * 2;
#pragma unroll
      for (int i = 0; i < kScores; i += 4) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          if (i * 2 + j >= visible) scores[i + 2 * r + j] = -INFINITY;
        }
      }
    }
  }
  __device__ static void RaiseMax(float (&row_max)[2], const float (&scores)[kScores]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float even = row_max[r];
      float odd = row_max[r];
#pragma unroll
      for (int i = 0; i < kScores; i += 4) {
        even = fmaxf(even, scores[i + 2 * r]);
        odd = fmaxf(odd, scores[i + 2 * r + 1]);
      }
      row_max[r] = fmaxf(even, odd);
    }
  }
  __device__ void Exponentials(float (&scores)[kScores], const float (&subtract)[2],
                               float scale_log2, uint32_t (&probs)[kScores / 2]) {
    float odd[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      const int r = i / 2 % 2;
      const float a = Exp2(fmaf(scores[i], scale_log2, -subtract[r]));
      const float b = Exp2(fmaf(scores[i + 1], scale_log2, -subtract[r]));
      sum_[r] += a;
      odd[r] += b;
      probs[i / 2] = PackHalves(a, b);
    }
    sum_[0] += odd[0];
    sum_[1] += odd[1];
  }

  __device__ void RunChunk(int chunk, bool last) {
    const float scale_log2 = ScaleLog2();
    float scores[2][kScores];
    ptx::MbarrierWait(Barrier(kKFull + slot_), phase_);
    SPLIT_STAMP(0);
    StartScores(scores[0], 0);
    StartScores(scores[1], 1);
    SPLIT_STAMP(3);

    const int first_key = chunk * kChunk;
    const bool masked = kShape.causal || first_key + kChunk > p_.seq_kv;
    float row_max[2] = {max_[0], max_[1]};
    ptx::WgmmaWait<1>();
    ptx::PinRegisters(scores[0]);
    SPLIT_STAMP(4);
    if (__builtin_expect(masked, false)) Mask(scores[0], first_key);
    RaiseMax(row_max, scores[0]);
    ptx::WgmmaWait<0>();
    ptx::PinRegisters(scores[1]);
    if (__builtin_expect(masked, false)) Mask(scores[1], first_key + kHalf);
    RaiseMax(row_max, scores[1]);

    float subtract[2];
    float rescale[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      row_max[r] = fmaxf(row_max[r], __shfl_xor_sync(0xffffffffu, row_max[r], 1));
      row_max[r] = fmaxf(row_max[r], __shfl_xor_sync(0xffffffffu, row_max[r], 2));
      // A row that saw no key yet has maximum -inf; 0 keeps exp of it at 0.
      subtract[r] = row_max[r] == -INFINITY ? 0.0f : row_max[r] * scale_log2;
      rescale[r] = Exp2(max_[r] * scale_log2 - subtract[r]);
      max_[r] = row_max[r];
      sum_[r] *= rescale[r];
    }
    if (chunk != part_) {
#pragma unroll
      for (int i = 0; i < kOut; ++i) out_[i] *= rescale[i / 2 % 2];
    }
    SPLIT_STAMP(5);

    uint32_t probs[2][kScores / 2];
    Exponentials(scores[0], subtract, scale_log2, probs[0]);
    ptx::MbarrierWait(Barrier(kVFull + slot_), phase_);
    StartOutput(probs[0], 0);
    SPLIT_STAMP(6);
    Exponentials(scores[1], subtract, scale_log2, probs[1]);
    StartOutput(probs[1], 1);
    SPLIT_STAMP(7);
    // Sums are complete before O is: they travel meanwhile.
    if (last) {
      SumOverQuad();
      if constexpr (kParts > 1 && !kGather) {
        if constexpr (kShape.cluster > 1) ptx::ClusterWait();  // peers' barriers exist
        SendStatistics();
      }
    }
    ptx::WgmmaWait<0>();
    ptx::PinRegisters(out_);
  }
  __device__ float ScaleLog2() const { return p_.softmax_scale * 1.4426950408889634f; }

  // --- The end, alone: O = out / sum ---
  __device__ void Finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float inverse = Inverse(sum_[r]);
      uint32_t packed[kOut / 4];
#pragma unroll
      for (int i = 0; i < kOut / 4; ++i) {
        packed[i] = PackHalves(out_[4 * i + 2 * r] * inverse, out_[4 * i + 2 * r + 1] * inverse);
      }
      Store<kOut / 4>(packed, r, 0);
      StoreLse(r, max_[r], sum_[r]);
    }
  }
  __device__ void SumOverQuad() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum_[r] += __shfl_xor_sync(0xffffffffu, sum_[r], 1);
      sum_[r] += __shfl_xor_sync(0xffffffffu, sum_[r], 2);
    }
  }

  // --- The end, together ---
  // Part `part_ ^ k` is peer k of this one, and this one is its peer k.
  __device__ void Join() {
    SPLIT_STAMP(10);
    uint32_t shares[kParts][kShare];
    CutShares(shares);
#pragma unroll
    for (int k = 1; k < kParts; ++k) {
      const uint32_t to = PeerSlot(kSmem.outputs, (kParts - 1) * kSmem.outputs_bytes, k) +
                          (k - 1) * kSmem.outputs_bytes + threadIdx.x % kWarpgroup * 16;
#pragma unroll
      for (int i = 0; i < kShare; i += 4) {
        const uint32_t piece[4] = {shares[k][i], shares[k][i + 1], shares[k][i + 2],
                                   shares[k][i + 3]};
        Send(to + i / 4 * kWarpgroup * 16, kOutputs, k, piece);
      }
      Arrive(kOutputs, k);
    }
    SPLIT_STAMP(8);
    float weights[kParts];
    Weigh(weights);
    SPLIT_STAMP(12);
    ptx::MbarrierWait(Barrier(kOutputs), 0);
    SPLIT_STAMP(11);
    StoreShare(shares[0], weights);
  }

  // `offset` is an array over warpgroups of `stride` bytes each: peer k's element.
  __device__ uint32_t PeerSlot(int offset, int stride, int k) const {
    const uint32_t mine = smem_ + offset + (Warpgroup() ^ k % kShape.warpgroups) * stride;
    if (k < kShape.warpgroups) return mine;
    return ptx::PeerAddress(mine, rank_ ^ k / kShape.warpgroups);
  }
  __device__ void Send(uint32_t to, int barrier, int k, const uint32_t (&x)[4]) const {
    if (k < kShape.warpgroups) {
      ptx::StoreShared(to, x);
    } else {
      ptx::StorePeer(to, PeerSlot(kSmem.barriers + barrier * 8, kBarriers * 8, k), x);
    }
  }
  // Tells a peer of the same CTA that this warp has sent.
  __device__ void Arrive(int barrier, int k) const {
    if (k >= kShape.warpgroups) return;
    __syncwarp();
    if (ptx::ElectLane()) {
      ptx::MbarrierArrive(PeerSlot(kSmem.barriers + barrier * 8, kBarriers * 8, k));
    }
  }

  __device__ uint32_t StatisticsSlot() const { return (warp_ % 4 * 8 + Lane() / 4) * 16; }
  __device__ void SendStatistics() const {
    const uint32_t x[4] = {__float_as_uint(max_[0]), __float_as_uint(max_[1]),
                           __float_as_uint(sum_[0]), __float_as_uint(sum_[1])};
#pragma unroll
    for (int k = 1; k < kParts; ++k) {
      const uint32_t to = PeerSlot(kSmem.statistics, kParts * kSmem.statistics_bytes, k) +
                          k * kSmem.statistics_bytes + StatisticsSlot();
      if (Lane() % 4 == 0) Send(to, kStatistics, k, x);
      Arrive(kStatistics, k);
    }
  }
  // weights[k]: what peer k's O counts in the row whose share this part has.
  __device__ void Weigh(float (&weights)[kParts]) const {
    ptx::MbarrierWait(Barrier(kStatistics), 0);
    const int r = part_ % 2;
    float maxima[kParts];
    maxima[0] = r == 0 ? max_[0] : max_[1];
    weights[0] = r == 0 ? sum_[0] : sum_[1];
#pragma unroll
    for (int k = 1; k < kParts; ++k) {
      uint32_t x[4];
      ptx::LoadShared(smem_ + kSmem.statistics +
                          (Warpgroup() * kParts + k) * kSmem.statistics_bytes + StatisticsSlot(),
                      x);
      maxima[k] = __uint_as_float(r == 0 ? x[0] : x[1]);
      weights[k] = __uint_as_float(r == 0 ? x[2] : x[3]);
    }
    float all_max = maxima[0];
#pragma unroll
    for (int k = 1; k < kParts; ++k) all_max = fmaxf(all_max, maxima[k]);
    const float scale_log2 = ScaleLog2();
    const float subtract = all_max == -INFINITY ? 0.0f : all_max * scale_log2;
    float all_sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kParts; ++k) {
      weights[k] *= Exp2(fmaf(maxima[k], scale_log2, -subtract));
      all_sum += weights[k];
    }
    const float inverse = Inverse(all_sum);
#pragma unroll
    for (int k = 0; k < kParts; ++k) weights[k] *= inverse;
    if (part_ < 2) StoreLse(r, all_max, all_sum);
  }
  __device__ static float Inverse(float sum) {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(sum));
    return sum > 0.0f ? inverse : 0.0f;
  }

  // --- The end, by gathering ---
  // Each part leaves its O, normalised, and its {max, sum} in its CTA's shared memory.
  // CTA `rank_` then has columns [rank_, rank_ + 1) * head_dim / cluster of every row: a
  // warp takes four columns of a row, a lane of it one part.
  __device__ void Gather() {
    constexpr int kWidth = kShape.head_dim / kShape.cluster;
    const int rows = min(kRowsPerConsumer, p_.seq_q - first_row_);
    const uint32_t statistics = smem_ + kSmem.statistics;
    const uint32_t outputs = smem_ + kSmem.outputs;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = RowInTile() + 8 * r;
      if (row >= rows) continue;
      if (Lane() % 4 == 0) {
        ptx::StoreShared(statistics + Warpgroup() * kSmem.statistics_bytes + row * 8, max_[r],
                         sum_[r]);
      }
      const float inverse = Inverse(sum_[r]);
      const uint32_t to = outputs + Warpgroup() * kSmem.outputs_bytes +
                          (row * kShape.head_dim + Lane() % 4 * 2) * 4;
#pragma unroll
      for (int i = 0; i < kOut / 4; ++i) {
        ptx::StoreShared(to + i * 32, out_[4 * i + 2 * r] * inverse,
                         out_[4 * i + 2 * r + 1] * inverse);
      }
    }
    if constexpr (kShape.cluster > 1) {
      ptx::ClusterArrive();
      ptx::ClusterWait();
    } else {
      __syncthreads();
    }
    const int part = Lane() < kParts ? Lane() : 0;
    const uint32_t owner = part / kShape.warpgroups;
    const int of_owner = part % kShape.warpgroups;
    const float scale_log2 = ScaleLog2();
    constexpr int kItems = kWidth / 4;
    for (int item = warp_; item < rows * kItems; item += Threads() / 32) {
      const int row = item / kItems;
      const int column = rank_ * kWidth + item % kItems * 4;
      const uint32_t s = statistics + of_owner * kSmem.statistics_bytes + row * 8;
      const uint32_t x = outputs + of_owner * kSmem.outputs_bytes +
                         (row * kShape.head_dim + column) * 4;
      float2 statistic;
      float4 o;
      if constexpr (kShape.cluster > 1) {
        statistic = ptx::LoadPeer2(ptx::PeerAddress(s, owner));
        o = ptx::LoadPeer4(ptx::PeerAddress(x, owner));
      } else {
        statistic = ptx::LoadPeer2(s);
        o = ptx::LoadPeer4(x);
      }
      if (Lane() >= kParts) statistic = make_float2(-INFINITY, 0.0f);
      const float all_max = ReduceWarp(statistic.x, [](float a, float b) { return fmaxf(a, b); });
      const float subtract = all_max == -INFINITY ? 0.0f : all_max * scale_log2;
      const float weight = statistic.y * Exp2(fmaf(statistic.x, scale_log2, -subtract));
      const auto add = [](float a, float b) { return a + b; };
      const float all_sum = ReduceWarp(weight, add);
      const float share = weight * Inverse(all_sum);
      o.x = ReduceWarp(o.x * share, add);
      o.y = ReduceWarp(o.y * share, add);
      o.z = ReduceWarp(o.z * share, add);
      o.w = ReduceWarp(o.w * share, add);
      if (Lane() == 0) {
        const int64_t at = int64_t{head_} * p_.seq_q + first_row_ + row;
        *reinterpret_cast<uint2*>(static_cast<half*>(p_.o) + at * kShape.head_dim + column) =
            make_uint2(PackHalves(o.x, o.y), PackHalves(o.z, o.w));
        if (p_.lse != nullptr && column == 0) {
          p_.lse[at] = all_max * p_.softmax_scale + logf(all_sum);
        }
      }
    }
    if constexpr (kShape.cluster > 1) {
      // Nobody leaves before its peers have read.
      ptx::ClusterArriveRelaxed();
      ptx::ClusterWait();
    }
  }
  template <typename Op>
  __device__ static float ReduceWarp(float x, Op op) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      x = op(x, __shfl_xor_sync(0xffffffffu, x, offset));
    }
    return x;
  }
  __device__ static constexpr int Threads() { return kShape.warpgroups * kWarpgroup; }

  // Share s of a thread's O: row s % 2 of its two, columns from s / 2 * kColumns.
  static constexpr int kColumns = kParts > 1 && !kGather ? 2 * kShape.head_dim / kParts : 0;
  // shares[k] becomes the share of peer k, shares[0] this part's own.
  __device__ void CutShares(uint32_t (&shares)[kParts][kShare]) const {
    const float inverse[2] = {Inverse(sum_[0]), Inverse(sum_[1])};
    constexpr int kPieces = kColumns / 8;  // of two neighbouring columns
#pragma unroll
    for (int s = 0; s < kParts; ++s) {
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        const int at = 4 * (s / 2 * kPieces + i) + 2 * (s % 2);
        const float a = out_[at] * inverse[s % 2];
        const float b = out_[at + 1] * inverse[s % 2];
        if constexpr (kShape.fp16_exchange) {
          shares[s][i] = PackHalves(a, b);
        } else {
          shares[s][2 * i] = __float_as_uint(a);
          shares[s][2 * i + 1] = __float_as_uint(b);
        }
      }
    }
    // Share part_ ^ k to place k, by constant indices: a swap per bit of part_.
#pragma unroll
    for (int bit = 1; bit < kParts; bit *= 2) {
      const bool swap = (part_ & bit) != 0;
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
  // Adds what the peers sent to `own`, this part's share, and stores it.
  __device__ void StoreShare(const uint32_t (&own)[kShare], const float (&weights)[kParts]) const {
    constexpr int kPieces = kColumns / 8;
    float o[2 * kPieces];
#pragma unroll
    for (int i = 0; i < 2 * kPieces; ++i) o[i] = 0.0f;
    AddShare(own, weights[0], o);
    const uint32_t from = smem_ + kSmem.outputs +
                          Warpgroup() * (kParts - 1) * kSmem.outputs_bytes +
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
    for (int i = 0; i < kPieces; ++i) packed[i] = PackHalves(o[2 * i], o[2 * i + 1]);
    Store<kPieces>(packed, part_ % 2, part_ / 2 * kColumns);
  }
  template <int kCount>
  __device__ static void AddShare(const uint32_t (&share)[kShare], float weight,
                                  float (&o)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      float2 pair;
      if constexpr (kShape.fp16_exchange) {
        half2 h;
        *reinterpret_cast<uint32_t*>(&h) = share[i];
        pair = __half22float2(h);
      } else {
        pair = make_float2(__uint_as_float(share[2 * i]), __uint_as_float(share[2 * i + 1]));
      }
      o[2 * i] = fmaf(pair.x, weight, o[2 * i]);
      o[2 * i + 1] = fmaf(pair.y, weight, o[2 * i + 1]);
    }
  }

  // Stores pieces of two columns, 8 columns apart, of row r of this thread's two. The
  // lanes of a quad exchange pieces, so that each stores 16 bytes: with 4-byte stores
  // of its own the kernel ends 0.2 us later.
  template <int kCount>
  __device__ void Store(const uint32_t (&packed)[kCount], int r, int first_column) const {
    static_assert(kCount % 4 == 0);
    const int lane_in_quad = Lane() % 4;
    const int row = first_row_ + RowInTile() + 8 * r;
    half* o = static_cast<half*>(p_.o) + (int64_t{head_} * p_.seq_q + row) * kShape.head_dim +
              first_column;
#pragma unroll
    for (int c = 0; c < kCount; c += 4) {
      uint32_t x[4] = {packed[c], packed[c + 1], packed[c + 2], packed[c + 3]};
      TransposeQuad(x, lane_in_quad);
      if (row < p_.seq_q) {
        *reinterpret_cast<uint4*>(o + (c + lane_in_quad) * 8) =
            make_uint4(x[0], x[1], x[2], x[3]);
      }
    }
  }
  __device__ void StoreLse(int r, float row_max, float row_sum) const {
    const int row = first_row_ + RowInTile() + 8 * r;
    if (p_.lse == nullptr || Lane() % 4 != 0 || row >= p_.seq_q) return;
    p_.lse[int64_t{head_} * p_.seq_q + row] = row_max * p_.softmax_scale + logf(row_sum);
  }

  const WgmmaParams& p_;
  const uint32_t smem_;  // base of the tiles
  const int warp_;
  const int rank_;  // of the CTA in its cluster
  const int part_;
  const int first_row_;
  const int head_;
  int slot_ = 0;
  uint32_t phase_ = 0;
  float max_[2] = {-INFINITY, -INFINITY};  // in raw score units
  float sum_[2] = {0.0f, 0.0f};            // of this thread's columns, then of the quad's
  float out_[kOut];
};

// The kernel's body: a grid of (cluster x query tiles, query heads per K/V head, K/V
// heads) CTAs of Threads(kShape) threads with MakeSmem(kShape).bytes of dynamic shared
// memory.
template <SplitShape kShape>
__device__ void SplitForward(const WgmmaParams& p) {
  if constexpr (kShape.dependent_launch) ptx::LaunchDependents();
  extern __shared__ unsigned char raw_smem[];
  // The swizzle's atoms are 1024-byte aligned.
  const uint32_t smem = (ptx::SharedAddress(raw_smem) + 1023) / 1024 * 1024;
  SplitPart<kShape>(p, smem, kShape.cluster == 1 ? 0 : blockIdx.x % kShape.cluster).Run();
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SPLIT_KV_CUH_
