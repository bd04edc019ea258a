// SPDX-License-Identifier: Apache-2.0
// From packed sequences, or batches whose rows lie as theirs would, to a launch of the plan and one
// of the kernel.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/shared/kernel_launch.h"
#include "kernels/sdpa/shared/sequence_plan.h"
#include "kernels/sdpa/shared/sequences/sequence_launch.h"
#include "kernels/sdpa/shared/tensor_maps.h"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/plan.h"

namespace warpledger::sdpa {
namespace {

// A tensor whose sequences lie one behind another.
struct PackedRows {
  TensorStrides strides;
  int step = 0;       // rows from one batch to the next, where all have one length
  int64_t total = 0;  // rows

  // total: of packed sequences; 0 for batches of `seq` rows each
  static PackedRows Of(const TensorStrides& strides, int64_t total, int batch, int seq) {
    if (total > 0) return {strides, 0, total};
    const int64_t step = FoldedRows(strides, batch).value_or(0);
    return {strides, static_cast<int>(step), (batch - 1) * step + seq};
  }
  cudaError_t Encode(const void* data, int head_dim, int heads, int rows, CUtensorMap* map,
                     CUtensorMapDataType type, CUtensorMapL2promotion promotion) const {
    if (total > std::numeric_limits<int>::max()) return cudaErrorInvalidValue;
    return EncodeTensorMap({.data = data,
                            .head_dim = head_dim,
                            .seq = static_cast<int>(total),
                            .heads = heads,
                            .head_stride = strides.head,
                            .row_stride = strides.row},
                           rows, map, type, promotion);
  }
};

}  // namespace

cudaError_t LaunchWgmmaVarlen(const KernelInstance& instance, const LaunchParams& forward,
                              const LaunchMemory& memory, cudaStream_t stream) {
  const WgmmaShape shape = WgmmaShapeOf(instance.config);
  const TensorLayouts& layouts = memory.layouts;
  const auto rows_of = [&](const TensorStrides& strides, int64_t total, int seq) {
    return PackedRows::Of(strides, total, forward.batch, seq);
  };
  const PackedRows q = rows_of(layouts.q, layouts.total_q, forward.seq_q);
  const PackedRows k = rows_of(layouts.k, layouts.total_kv, forward.seq_kv);
  const PackedRows v = rows_of(layouts.v, layouts.total_kv, forward.seq_kv);
  const PackedRows o = rows_of(layouts.o, layouts.total_q, forward.seq_q);
  const void* kernel = nullptr;
  int sm_count = 0;
  cudaError_t error = instance.code->GetKernel(&kernel);
  if (error == cudaSuccess) error = GetDeviceAttribute(cudaDevAttrMultiProcessorCount, &sm_count);

  WgmmaVarlenParams params;
  const CUtensorMapDataType type =
      shape.bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const auto encode = [&](const PackedRows& tensor, const void* data, int heads, int rows,
                          CUtensorMapL2promotion promotion, CUtensorMap* map) {
    if (error != cudaSuccess) return;
    error = tensor.Encode(data, shape.head_dim, heads, rows, map, type, promotion);
  };
  // As with one length for all (wgmma/launch.cc).
  constexpr auto kWide = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  constexpr auto kRow = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  encode(q, forward.q, forward.heads_q, TileM(shape), kWide, &params.q);
  encode(k, forward.k, forward.heads_kv, shape.tile_n, kRow, &params.k);
  encode(v, forward.v, forward.heads_kv, shape.tile_n, kRow, &params.v);
  encode(o, forward.o, forward.heads_q, kRowsPerConsumer, kWide, &params.o_map);
  if (error != cudaSuccess) return error;

  const bool packed = layouts.packed();
  SequencePlanParams plan = SequencePlanOf(forward, memory, TileM(shape), BytesOfKey(shape));
  plan.total_q = static_cast<int>(q.total);
  plan.total_kv = static_cast<int>(std::min(k.total, v.total));
  plan.q_step = q.step;
  plan.kv_step = k.step;
  plan.o_step = o.step;

  params.o = forward.o;
  params.lse = forward.lse;
  params.heads = forward.heads_q;
  params.group_size = plan.group_size;
  params.seq_q = forward.seq_q;
  params.seq_kv = forward.seq_kv;
  params.softmax_scale = forward.softmax_scale;
  params.next_tile = reinterpret_cast<int*>(memory.counters);
  params.blocks = plan.blocks;
  params.block_count = plan.block_count;
  params.o_row_stride = layouts.o.row;
  params.o_head_stride = layouts.o.head;
  params.lse_head_stride = packed ? layouts.total_q : forward.seq_q;

  error = LaunchSequencePlan(plan, stream);
  if (error != cudaSuccess) return error;
  const int64_t ctas = std::clamp<int64_t>(int64_t{plan.capacity} * forward.heads_q, 1, sm_count);
  KernelLaunch launch(dim3(static_cast<unsigned>(ctas)), Threads(shape), MakeSmem(shape).bytes,
                      stream);
  launch.BesidePriorKernel();
  return launch.Run(kernel, &params);
}

}  // namespace warpledger::sdpa
