// SPDX-License-Identifier: Apache-2.0
// The kernel in front of one that works on packed sequences: it reads their lengths, which the
// device alone knows, and lists their blocks of queries in the order in which they are handed out.
//
// Sequences with the most keys come first, among kPlanThreads of them, so that none of the longest
// blocks begins when the others are done.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_SEQUENCE_PLAN_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_SEQUENCE_PLAN_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace warpledger::sdpa {

// tile_m queries of a sequence, of all heads.
struct alignas(16) SequenceBlock {
  int seq_q = 0;
  int first_block = 0;  // the sequence's, in the list
  int heads_in_flight = 1;
  int first_q = 0;  // the sequence's first row of Q,
  int seq_kv = 0;
  int first_o = 0;        // of O
  int64_t first_lse = 0;  // of its head 0, in LSE
  int first_kv = 0;       // and its first row of K and V
};

struct SequencePlanParams {
  // (sequences + 1) int32: where each one's rows begin, and end; rows that the tensors don't have
  // are left out. Null: all have seq_q and seq_kv rows, and begin q_step, kv_step, o_step rows, and
  // lse_step values, one from the other.
  const int* cu_seqlens_q = nullptr;
  const int* cu_seqlens_kv = nullptr;
  int sequences = 1;
  int total_q = 0;  // rows of the tensors
  int total_kv = 0;
  int seq_q = 0;
  int seq_kv = 0;
  int q_step = 0;
  int kv_step = 0;
  int o_step = 0;
  int64_t lse_step = 0;
  int tile_m = 64;
  int heads = 1;             // of queries
  int group_size = 1;        // of them to a K/V head
  int64_t bytes_of_key = 1;  // of a head's row of K and of V together
  int capacity = 0;          // blocks that the list holds
  SequenceBlock* blocks = nullptr;
  int* block_count = nullptr;
};

// Blocks of `sequences`, of total_q rows together, at the most; or with 0 of seq_q rows each.
constexpr int64_t MostSequenceBlocks(int64_t sequences, int seq_q, int64_t total_q, int tile_m) {
  return total_q > 0 ? total_q / tile_m + sequences : sequences * ((seq_q + tile_m - 1) / tile_m);
}

// The list, behind its length.
inline constexpr size_t kSequencePlanHeaderBytes = 16;
constexpr size_t SequencePlanBytes(int64_t blocks) {
  return kSequencePlanHeaderBytes + static_cast<size_t>(blocks) * sizeof(SequenceBlock);
}

inline constexpr int kPlanThreads = 256;

cudaError_t LaunchSequencePlan(const SequencePlanParams& params, cudaStream_t stream);

// Loads its code on the current device: a launch that is captured into a graph can't.
cudaError_t LoadSequencePlan();

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_SEQUENCE_PLAN_H_
