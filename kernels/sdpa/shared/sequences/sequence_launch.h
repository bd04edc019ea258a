// SPDX-License-Identifier: Apache-2.0
// From a launch of packed sequences to the plan that lists their blocks.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_SEQUENCES_SEQUENCE_LAUNCH_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_SEQUENCES_SEQUENCE_LAUNCH_H_

#include <cstddef>
#include <cstdint>

#include "kernels/sdpa/shared/forward_params.h"
#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/shared/sequence_plan.h"

namespace warpledger::sdpa {

// Whose list lies at `memory.partials`. Of packed sequences it lacks nothing.
//   bytes_of_key: of a head's row of K and of V together
inline SequencePlanParams SequencePlanOf(const ForwardParams& forward, const LaunchMemory& memory,
                                         int tile_m, int64_t bytes_of_key) {
  SequencePlanParams plan;
  plan.cu_seqlens_q = memory.cu_seqlens_q;
  plan.cu_seqlens_kv = memory.cu_seqlens_kv;
  plan.sequences = forward.batch;
  plan.total_q = static_cast<int>(memory.layouts.total_q);
  plan.total_kv = static_cast<int>(memory.layouts.total_kv);
  plan.seq_q = forward.seq_q;
  plan.seq_kv = forward.seq_kv;
  plan.lse_step = int64_t{forward.heads_q} * forward.seq_q;
  plan.tile_m = tile_m;
  plan.heads = forward.heads_q;
  plan.group_size = forward.heads_q / forward.heads_kv;
  plan.bytes_of_key = bytes_of_key;
  plan.capacity = static_cast<int>(
      MostSequenceBlocks(forward.batch, forward.seq_q, memory.layouts.total_q, tile_m));
  plan.block_count = reinterpret_cast<int*>(memory.partials);
  plan.blocks = reinterpret_cast<SequenceBlock*>(memory.partials + kSequencePlanHeaderBytes);
  return plan;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_SEQUENCES_SEQUENCE_LAUNCH_H_
