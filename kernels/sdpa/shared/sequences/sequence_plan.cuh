// SPDX-License-Identifier: Apache-2.0
// The body of the kernel that lists packed sequences' blocks (sequence_plan.h).

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_SEQUENCES_SEQUENCE_PLAN_CUH_
#define WARPLEDGER_KERNELS_SDPA_SHARED_SEQUENCES_SEQUENCE_PLAN_CUH_

#include <cstdint>

#include "kernels/sdpa/shared/heads_in_flight.h"
#include "kernels/sdpa/shared/sequence_plan.h"

namespace warpledger::sdpa {

// Rows [first, first + length) of a tensor of `total`.
struct SequenceRows {
  int first;
  int length;
};
__device__ inline SequenceRows RowsOfSequence(const int* cu_seqlens, int i, int total) {
  const int first = min(max(cu_seqlens[i], 0), total);
  return {first, min(max(cu_seqlens[i + 1] - first, 0), total - first)};
}

__device__ inline SequenceBlock SequenceOf(const SequencePlanParams& p, int i) {
  SequenceBlock s;
  s.seq_q = p.seq_q;
  s.seq_kv = p.seq_kv;
  s.first_q = i * p.q_step;
  s.first_kv = i * p.kv_step;
  s.first_o = i * p.o_step;
  s.first_lse = i * p.lse_step;
  if (p.cu_seqlens_q != nullptr) {
    const SequenceRows q = RowsOfSequence(p.cu_seqlens_q, i, p.total_q);
    const SequenceRows kv = RowsOfSequence(p.cu_seqlens_kv, i, p.total_kv);
    s.first_q = s.first_o = q.first;
    s.first_lse = q.first;
    s.seq_q = q.length;
    s.first_kv = kv.first;
    s.seq_kv = kv.length;
  }
  return s;
}

// What the threads share, of up to kPlanThreads sequences at a time.
struct SequencePlanSmem {
  int keys[kPlanThreads];         // by the sequence's number among them
  int sequence[kPlanThreads];     // by its place
  int first_block[kPlanThreads];  // the same, among their blocks
  int running[2][kPlanThreads];   // sums on the way
};

// One CTA of kPlanThreads threads.
__device__ inline void ListSequenceBlocks(const SequencePlanParams& p, SequencePlanSmem& smem) {
  const int thread = static_cast<int>(threadIdx.x);
  int before = 0;  // blocks of earlier sequences
  for (int base = 0; base < p.sequences; base += kPlanThreads) {
    const int count = min(kPlanThreads, p.sequences - base);
    SequenceBlock mine;
    if (thread < count) mine = SequenceOf(p, base + thread);
    smem.keys[thread] = mine.seq_kv;
    smem.running[0][thread] = 0;
    __syncthreads();
    if (thread < count) {
      int place = 0;
      for (int i = 0; i < count; ++i) {
        const int keys = smem.keys[i];
        place += keys > mine.seq_kv || (keys == mine.seq_kv && i < thread) ? 1 : 0;
      }
      smem.sequence[place] = base + thread;
      smem.running[0][place] = (mine.seq_q + p.tile_m - 1) / p.tile_m;
    }
    __syncthreads();
    const int blocks = smem.running[0][thread];
    int from = 0;
    for (int step = 1; step < kPlanThreads; step *= 2, from ^= 1) {
      const int* sums = smem.running[from];
      smem.running[from ^ 1][thread] = sums[thread] + (thread >= step ? sums[thread - step] : 0);
      __syncthreads();
    }
    const int all = smem.running[from][kPlanThreads - 1];
    smem.first_block[thread] = smem.running[from][thread] - blocks;
    __syncthreads();
    for (int i = thread; i < all && before + i < p.capacity; i += kPlanThreads) {
      // The last place whose blocks begin at i or before: those without blocks lie before it.
      int place = 0;
      for (int step = kPlanThreads / 2; step > 0; step /= 2) {
        const int next = place + step;
        if (next < count && smem.first_block[next] <= i) place = next;
      }
      SequenceBlock block = SequenceOf(p, smem.sequence[place]);
      block.first_block = before + smem.first_block[place];
      block.heads_in_flight =
          HeadsInFlight(max(block.seq_kv, 1) * p.bytes_of_key, p.group_size, p.heads);
      p.blocks[before + i] = block;
    }
    before += all;
    __syncthreads();
  }
  if (thread == 0) *p.block_count = min(before, p.capacity);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_SEQUENCES_SEQUENCE_PLAN_CUH_
