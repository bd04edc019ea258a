// SPDX-License-Identifier: Apache-2.0
// From a problem to a launch of the wgmma family.

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/shared/kernel_launch.h"
#include "kernels/sdpa/shared/tensor_maps.h"
#include "kernels/sdpa/wgmma/join/join_kernel.h"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/plan.h"

namespace warpledger::sdpa {
namespace {

// What K's and V's maps ask L2 to fetch at a time, by the level of wgmma_l2_promotion: a box's
// row, two of them, or as it likes.
constexpr CUtensorMapL2promotion kPromotions[] = {CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                                  CU_TENSOR_MAP_L2_PROMOTION_NONE};

// The element type of O, and of Q, K and V unless they are 8-bit.
CUtensorMapDataType OutputType(const WgmmaShape& shape) {
  return shape.bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

// Fills in everything of `params` but the instance's own memory, and says how many CTAs to launch,
// in whole clusters: as many as there are SMs, or tiles if fewer; one per tile with tile_per_cta.
// PrepareRest counts again where CTAs share a tile's keys.
cudaError_t PrepareWgmmaLaunch(const LaunchParams& forward, const TensorLayouts& layouts,
                               const WgmmaShape& shape, WgmmaParams* params, unsigned* ctas) {
  const int64_t heads_q = int64_t{forward.batch} * forward.heads_q;
  const int64_t heads_kv = int64_t{forward.batch} * forward.heads_kv;
  const CUtensorMapDataType type = shape.fp8 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : OutputType(shape);
  const int group = forward.heads_q / forward.heads_kv;
  const int positions = WgmmaPositions(shape, group);
  cudaError_t error =
      shape.pack_heads
          ? EncodePackedQueries(forward, layouts.q, shape.head_dim, positions, &params->q, type)
          : EncodeTensorMap(MappedWith(layouts.q, forward.q, shape.head_dim, forward.seq_q,
                                       forward.batch, forward.heads_q),
                            TileM(shape), &params->q, type);
  if (error != cudaSuccess) return error;
  const int kv_rows = shape.tile_n / shape.cluster;  // a CTA's share of a tile
  if (forward.l2_promotion < 0 || forward.l2_promotion >= int{std::size(kPromotions)}) {
    return cudaErrorInvalidValue;
  }
  const CUtensorMapL2promotion promotion = kPromotions[forward.l2_promotion];
  const auto encode_keys = [&](const void* tensor, const TensorStrides& strides, CUtensorMap* map) {
    return EncodeTensorMap(MappedWith(strides, tensor, shape.head_dim, forward.seq_kv,
                                      forward.batch, forward.heads_kv),
                           kv_rows, map, type, promotion);
  };
  error = encode_keys(forward.k, layouts.k, &params->k);
  if (error != cudaSuccess) return error;
  error = encode_keys(forward.v, layouts.v, &params->v);
  if (error != cudaSuccess) return error;

  params->o = forward.o;
  params->lse = forward.lse;
  params->heads = static_cast<int>(shape.pack_heads ? heads_kv : heads_q);
  params->group_size = group;
  params->seq_q = forward.seq_q;
  params->seq_kv = forward.seq_kv;
  params->query_tiles = (forward.seq_q + positions - 1) / positions;
  params->softmax_scale = forward.softmax_scale;
  params->heads_in_flight = WgmmaHeadsInFlight(shape, forward.seq_kv, group, params->heads);

  int sm_count = 0;
  error = GetDeviceAttribute(cudaDevAttrMultiProcessorCount, &sm_count);
  if (error != cudaSuccess) return error;
  const int64_t clusters =
      (int64_t{params->query_tiles} + shape.cluster - 1) / shape.cluster * params->heads;
  const int64_t at_once = shape.tile_per_cta ? clusters : sm_count / shape.cluster;
  *ctas = static_cast<unsigned>(std::min(clusters, at_once) * shape.cluster);
  return cudaSuccess;
}

// What else the kernel takes: O's map, scales, K's and V's rows, how CTAs share keys. Called after
// PrepareWgmmaLaunch.
cudaError_t PrepareRest(const LaunchParams&, const TensorLayouts&, const WgmmaShape&, WgmmaParams*,
                        unsigned*) {
  return cudaSuccess;
}

cudaError_t PrepareRest(const LaunchParams& forward, const TensorLayouts& layouts,
                        const WgmmaShape& shape, WgmmaStoreParams* params, unsigned*) {
  return EncodeTensorMap(MappedWith(layouts.o, forward.o, shape.head_dim, forward.seq_q,
                                    forward.batch, forward.heads_q),
                         kRowsPerConsumer, &params->o_map, OutputType(shape));
}

cudaError_t PrepareRest(const LaunchParams& forward, const TensorLayouts& layouts,
                        const WgmmaShape& shape, WgmmaKeepParams* params, unsigned* ctas) {
  int sm_count = 0;
  const cudaError_t error = GetDeviceAttribute(cudaDevAttrMultiProcessorCount, &sm_count);
  if (error != cudaSuccess) return error;
  params->tiles_at_once =
      WgmmaTilesAtOnce(shape, params->query_tiles, params->heads, forward.seq_kv, sm_count);
  if (params->tiles_at_once > 1) {
    *ctas = static_cast<unsigned>(std::min(params->heads, sm_count));
  }
  if (!shape.tma_store) return cudaSuccess;
  return PrepareRest(forward, layouts, shape, static_cast<WgmmaStoreParams*>(params), ctas);
}

cudaError_t PrepareRest(const LaunchParams& forward, const TensorLayouts& layouts,
                        const WgmmaShape& shape, WgmmaFp8Params* params, unsigned* ctas) {
  params->q_scales = forward.q_scales;
  params->k_scales = forward.k_scales;
  params->v_scales = forward.v_scales;
  params->scale_stride = forward.kv_scale_stride;
  if (!shape.tma_store) return cudaSuccess;
  return PrepareRest(forward, layouts, shape, static_cast<WgmmaStoreParams*>(params), ctas);
}

cudaError_t PrepareRest(const LaunchParams& forward, const TensorLayouts& layouts,
                        const WgmmaShape& shape, WgmmaScaledParams* params, unsigned* ctas) {
  if (!layouts.scales || layouts.scales->per_block != shape.block_scale) {
    return cudaErrorInvalidValue;
  }
  params->scale_strides = *layouts.scales;
  return PrepareRest(forward, layouts, shape, static_cast<WgmmaFp8Params*>(params), ctas);
}

cudaError_t PrepareRest(const LaunchParams& forward, const TensorLayouts& layouts,
                        const WgmmaShape& shape, WgmmaFp8OutputParams* params, unsigned* ctas) {
  params->o_scale = forward.o_scale;
  return PrepareRest(forward, layouts, shape, static_cast<WgmmaFp8Params*>(params), ctas);
}

cudaError_t PrepareRest(const LaunchParams& forward, const TensorLayouts& layouts,
                        const WgmmaShape& shape, WgmmaScaledOutputParams* params, unsigned* ctas) {
  params->o_scale = forward.o_scale;
  params->o_strides = layouts.o;
  params->heads_of_batch = forward.heads_q;
  return PrepareRest(forward, layouts, shape, static_cast<WgmmaScaledParams*>(params), ctas);
}

cudaError_t PrepareRest(const LaunchParams& forward, const TensorLayouts&, const WgmmaShape&,
                        WgmmaCopyParams* params, unsigned*) {
  params->k_rows = forward.k;
  params->v_rows = forward.v;
  return cudaSuccess;
}

cudaError_t PrepareRest(const LaunchParams& forward, const TensorLayouts&, const WgmmaShape& shape,
                        WgmmaDecodeParams* params, unsigned* ctas) {
  params->positions = WgmmaPositions(shape, params->group_size);
  params->splits = 1;
  if (!shape.split_kv) return cudaSuccess;
  int sm_count = 0;
  const cudaError_t error = GetDeviceAttribute(cudaDevAttrMultiProcessorCount, &sm_count);
  if (error != cudaSuccess) return error;
  const int tiles = params->query_tiles * params->heads;
  const int rows =
      std::min(TileM(shape), forward.seq_q * (shape.pack_heads ? params->group_size : 1));
  params->splits = WgmmaSplits(shape, tiles, rows, forward.seq_kv, sm_count);
  *ctas = static_cast<unsigned>(tiles * params->splits);
  return cudaSuccess;
}

// The library's kernels: fewer CTAs, if those are faster. The designs' kernels keep the number that
// their records were made with.
cudaError_t SpreadOverPairs(const WgmmaShape&, WgmmaParams*, unsigned*) { return cudaSuccess; }

cudaError_t SpreadOverPairs(const WgmmaShape& shape, WgmmaDecodeParams* params, unsigned* ctas) {
  const bool joined_by_all = shape.join_kernel || shape.cluster_join;
  if (!joined_by_all || !shape.pack_heads || params->query_tiles > 1) return cudaSuccess;
  int sm_count = 0;
  int bus_bits = 0;
  cudaError_t error = GetDeviceAttribute(cudaDevAttrMultiProcessorCount, &sm_count);
  if (error != cudaSuccess) return error;
  error = GetDeviceAttribute(cudaDevAttrGlobalMemoryBusWidth, &bus_bits);
  if (error != cudaSuccess) return error;
  params->splits =
      WgmmaSplitsOverPairs(shape.head_dim, params->heads, params->splits, sm_count, bus_bits);
  *ctas = static_cast<unsigned>(params->heads * params->splits);
  return cudaSuccess;
}

// Where CTAs that share keys are a cluster: as many share them as clusters of that size fit the
// GPU at once, so that none waits for another's end.
cudaError_t PlaceClusters(const void*, const WgmmaShape&, WgmmaParams*, unsigned*) {
  return cudaSuccess;
}

cudaError_t PlaceClusters(const void* kernel, const WgmmaShape& shape, WgmmaDecodeParams* params,
                          unsigned* ctas) {
  if (!shape.cluster_join || params->splits == 1) return cudaSuccess;
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  if (error != cudaSuccess) return error;
  const unsigned tiles = *ctas / static_cast<unsigned>(params->splits);
  // GPCs differ in their SMs, and only the driver knows by how many.
  auto splits = static_cast<unsigned>(params->splits);
  for (; splits > 1; --splits) {
    KernelLaunch launch(dim3(tiles * splits), Threads(shape), MakeSmem(shape).bytes);
    launch.InClusters(static_cast<int>(splits));
    int at_once = 0;
    error = launch.MaxActiveClusters(kernel, &at_once);
    if (error == cudaErrorInvalidClusterSize) {
      cudaGetLastError();  // else the next launch returns it
      continue;
    }
    if (error != cudaSuccess) return error;
    if (at_once >= static_cast<int>(tiles)) break;
  }
  params->splits = static_cast<int>(splits);
  *ctas = tiles * splits;
  return cudaSuccess;
}

// CTAs of a cluster.
int ClusterOf(const WgmmaShape& shape, const WgmmaParams&) { return shape.cluster; }
int ClusterOf(const WgmmaShape& shape, const WgmmaDecodeParams& params) {
  return shape.cluster_join ? params.splits : shape.cluster;
}

// Over `ctas` CTAs in clusters of `cluster`.
//   dependent: it may begin beside the end of the kernel before
//   params: what the kernel takes
cudaError_t LaunchKernel(const void* kernel, const WgmmaShape& shape, unsigned ctas, int cluster,
                         bool dependent, void* params, cudaStream_t stream) {
  KernelLaunch launch(dim3(ctas), Threads(shape), MakeSmem(shape).bytes, stream);
  if (cluster > 1) launch.InClusters(cluster);
  if (dependent) launch.BesidePriorKernel();
  return launch.Run(kernel, params);
}

// What follows the kernel: one that joins partial results, where there are any.
//   dependent: it may begin beside the kernel's end; it waits for that before it reads
cudaError_t LaunchBehind(const WgmmaParams&, const WgmmaShape&, bool, cudaStream_t) {
  return cudaSuccess;
}

cudaError_t LaunchBehind(const WgmmaDecodeParams& params, const WgmmaShape& shape, bool dependent,
                         cudaStream_t stream) {
  if (!shape.join_kernel || params.splits <= 1) return cudaSuccess;
  static_assert(kMaxWgmmaSplits <= kMaxJoinSplits);
  const int rows = params.heads * (shape.pack_heads ? params.group_size : 1) * params.seq_q;
  return LaunchJoin({.parts = params.partial_out,
                     .stats = params.partial_stats,
                     .o = params.o,
                     .lse = params.lse,
                     .rows = rows,
                     .splits = params.splits,
                     .softmax_scale = params.softmax_scale},
                    shape.head_dim, shape.bf16, dependent, stream);
}

// Counters apart from partial results, and the same bytes are counters for every instance.
void AddMemory(const WgmmaShape&, const LaunchMemory& memory, WgmmaParams* params) {
  params->next_tile = reinterpret_cast<int*>(memory.counters);
}
void AddMemory(const WgmmaShape& shape, const LaunchMemory& memory, WgmmaDecodeParams* params) {
  static_assert(kMaxWgmmaPartials * sizeof(int) <= kCounterBytes);
  AddWorkspace(shape, memory.partials, params);
  params->next_tile = reinterpret_cast<int*>(memory.counters);
  params->arrivals = params->next_tile;
}

// Params: WgmmaParamsOf the shape.
template <typename Params>
cudaError_t LaunchWith(const KernelInstance& instance, const WgmmaShape& shape,
                       const LaunchParams& forward, const LaunchMemory* memory,
                       cudaStream_t stream) {
  const void* kernel = nullptr;
  cudaError_t error = instance.code->GetKernel(&kernel);
  if (error != cudaSuccess) return error;
  Params params;
  unsigned ctas = 0;
  const TensorLayouts layouts =
      memory != nullptr ? memory->layouts : ContiguousLayouts(forward, shape.head_dim);
  error = PrepareWgmmaLaunch(forward, layouts, shape, &params, &ctas);
  if (error != cudaSuccess) return error;
  error = PrepareRest(forward, layouts, shape, &params, &ctas);
  if (error != cudaSuccess) return error;
  if (memory != nullptr) {
    AddMemory(shape, *memory, &params);
    // Clusters of these are portable, and those that do not fit at once come one after another:
    // what PlaceClusters asks the driver would take longer than the launch.
    error = SpreadOverPairs(shape, &params, &ctas);
  } else {
    std::byte* workspace = nullptr;
    error = instance.code->GetWorkspace(&workspace);
    if (error != cudaSuccess) return error;
    AddWorkspace(shape, workspace, &params);
    error = PlaceClusters(kernel, shape, &params, &ctas);
  }
  if (error != cudaSuccess) return error;
  // The library's kernels, which are given memory, are launched behind anybody's, so that the
  // stream waits for all before them to its end. That is also what keeps the parts of the call
  // before in this same memory until they are joined.
  const bool dependent = shape.dependent_launch && memory == nullptr;
  error = LaunchKernel(kernel, shape, ctas, ClusterOf(shape, params), dependent, &params, stream);
  if (error != cudaSuccess) return error;
  // What joins their parts is behind theirs. It may start while these are being written, but waits
  // for the kernel's end before it reads; so it ends after it, and who waits for it waits for both.
  return LaunchBehind(params, shape, shape.dependent_launch || memory != nullptr, stream);
}

}  // namespace

cudaError_t LaunchWgmma(const KernelInstance& instance, const LaunchParams& forward, unsigned,
                        const LaunchMemory* memory, cudaStream_t stream) {
  const WgmmaShape shape = WgmmaShapeOf(instance.config);
  switch (ParamsKindOf(shape)) {
    case WgmmaParamsKind::kFp8:
      return LaunchWith<WgmmaFp8Params>(instance, shape, forward, memory, stream);
    case WgmmaParamsKind::kFp8Output:
      return LaunchWith<WgmmaFp8OutputParams>(instance, shape, forward, memory, stream);
    case WgmmaParamsKind::kScaled:
      return LaunchWith<WgmmaScaledParams>(instance, shape, forward, memory, stream);
    case WgmmaParamsKind::kScaledOutput:
      return LaunchWith<WgmmaScaledOutputParams>(instance, shape, forward, memory, stream);
    case WgmmaParamsKind::kVarlen:  // its plan lies in the caller's memory
      return memory == nullptr ? cudaErrorInvalidValue
                               : LaunchWgmmaVarlen(instance, forward, *memory, stream);
    case WgmmaParamsKind::kKeep:
      return LaunchWith<WgmmaKeepParams>(instance, shape, forward, memory, stream);
    case WgmmaParamsKind::kStore:
      return LaunchWith<WgmmaStoreParams>(instance, shape, forward, memory, stream);
    case WgmmaParamsKind::kCopy:
      return LaunchWith<WgmmaCopyParams>(instance, shape, forward, memory, stream);
    case WgmmaParamsKind::kDecode:
      return LaunchWith<WgmmaDecodeParams>(instance, shape, forward, memory, stream);
    case WgmmaParamsKind::kPlain:
      return LaunchWith<WgmmaParams>(instance, shape, forward, memory, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace warpledger::sdpa
