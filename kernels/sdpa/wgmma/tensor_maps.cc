#include "kernels/sdpa/wgmma/tensor_maps.h"

#include <cuda.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "kernels/sdpa/wgmma/join_kernel.h"
#include "kernels/sdpa/wgmma/plan.h"

namespace warpledger::sdpa {
namespace {

// What K's and V's maps ask L2 to fetch at a time, by the level of wgmma_l2_promotion: a box's
// row, two of them, or as it likes.
constexpr CUtensorMapL2promotion kPromotions[] = {CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                                  CU_TENSOR_MAP_L2_PROMOTION_NONE};

// The driver's encoder, looked up so that the program needs no libcuda to start.
decltype(&cuTensorMapEncodeTiled) FindEncoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

// Of O, and of the other tensors unless they are 8-bit.
CUtensorMapDataType OutputType(const WgmmaShape& shape) {
  return shape.bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

// Of `rank` dimensions, innermost first; `strides` are in bytes, from the second dimension on.
cudaError_t Encode(const void* tensor, CUtensorMapDataType type, cuuint32_t rank,
                   const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                   CUtensorMap* map,
                   CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B) {
  static const auto encode = FindEncoder();
  if (encode == nullptr) return cudaErrorNotSupported;
  const cuuint32_t element_strides[] = {1, 1, 1, 1};
  const CUresult result =
      encode(map, type, rank, const_cast<void*>(tensor), sizes, strides, box, element_strides,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, promotion,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

// Of Q where the heads of a group are packed: boxes of `positions` of all of the group's heads,
// a position's heads side by side.
cudaError_t EncodePackedQueries(const ForwardParams& forward, const WgmmaShape& shape,
                                int positions, CUtensorMap* map) {
  const int group = forward.heads_q / forward.heads_kv;
  const auto seq = static_cast<cuuint64_t>(forward.seq_q);
  const auto row_bytes = static_cast<cuuint64_t>(shape.head_dim * ElementBytes(shape));
  const cuuint64_t sizes[] = {
      static_cast<cuuint64_t>(shape.head_dim), static_cast<cuuint64_t>(group), seq,
      static_cast<cuuint64_t>(forward.batch) * static_cast<cuuint64_t>(forward.heads_kv)};
  const cuuint64_t strides[] = {row_bytes * seq, row_bytes,
                                row_bytes * seq * static_cast<cuuint64_t>(group)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(SwizzleColumns(shape)),
                            static_cast<cuuint32_t>(group), static_cast<cuuint32_t>(positions), 1};
  return Encode(forward.q, OutputType(shape), 4, sizes, strides, box, map);
}

cudaLaunchAttribute ClusterAttribute(unsigned ctas) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = ctas;
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  return attribute;
}

cudaLaunchConfig_t ConfigOf(const WgmmaShape& shape, unsigned ctas) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(ctas);
  config.blockDim = dim3(static_cast<unsigned>(Threads(shape)));
  config.dynamicSmemBytes = static_cast<size_t>(MakeSmem(shape).bytes);
  return config;
}

}  // namespace

cudaError_t EncodeTensorMap(const void* tensor, int head_dim, int seq, int64_t heads, int rows,
                            CUtensorMap* map, CUtensorMapDataType type,
                            CUtensorMapL2promotion promotion) {
  const int bytes = type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : 2;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(head_dim), static_cast<cuuint64_t>(seq),
                              static_cast<cuuint64_t>(heads)};
  const cuuint64_t row_bytes = static_cast<cuuint64_t>(head_dim * bytes);
  const cuuint64_t strides[] = {row_bytes, row_bytes * static_cast<cuuint64_t>(seq)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(kSwizzleBytes / bytes),
                            static_cast<cuuint32_t>(rows), 1};
  return Encode(tensor, type, 3, sizes, strides, box, map, promotion);
}

const char* DescribePromotion(const void* params) {
  constexpr const char* kUnknown = "L2 promotion unknown";
  constexpr const char* kNames[] = {"no L2 promotion", "L2 promotion 64 B", "L2 promotion 128 B",
                                    "L2 promotion 256 B"};
  using Words = std::array<uint32_t, sizeof(CUtensorMap) / sizeof(uint32_t)>;
  alignas(16) static const std::byte kTensor[1024] = {};
  std::array<Words, std::size(kNames)> encoded;
  for (size_t level = 0; level < encoded.size(); ++level) {
    CUtensorMap map;
    const auto promotion = static_cast<CUtensorMapL2promotion>(level);
    if (EncodeTensorMap(kTensor, 64, 8, 1, 8, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, promotion) !=
        cudaSuccess) {
      return kUnknown;
    }
    encoded[level] = std::bit_cast<Words>(map);
  }
  // The bits in which the encodings differ say what is fetched.
  Words field = {};
  for (const Words& words : encoded) {
    for (size_t i = 0; i < field.size(); ++i) field[i] |= words[i] ^ encoded[0][i];
  }
  if (field == Words{}) return kUnknown;
  const auto name_of = [&](size_t offset) {
    Words launched;  // a copy, for copied parameters need not be aligned as they are
    std::memcpy(launched.data(), static_cast<const std::byte*>(params) + offset, sizeof(launched));
    for (size_t level = 0; level < encoded.size(); ++level) {
      bool same = true;
      for (size_t i = 0; i < field.size(); ++i) {
        same = same && ((launched[i] ^ encoded[level][i]) & field[i]) == 0;
      }
      if (same) return kNames[level];
    }
    return kUnknown;
  };
  const char* of_k = name_of(offsetof(WgmmaParams, k));
  const char* of_v = name_of(offsetof(WgmmaParams, v));
  return of_k == of_v ? of_k : "L2 promotion of K and of V differ";
}

cudaError_t PrepareWgmmaLaunch(const ForwardParams& forward, const WgmmaShape& shape,
                               WgmmaParams* params, unsigned* ctas) {
  const int64_t heads_q = int64_t{forward.batch} * forward.heads_q;
  const int64_t heads_kv = int64_t{forward.batch} * forward.heads_kv;
  const CUtensorMapDataType type = shape.fp8 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : OutputType(shape);
  const int group = forward.heads_q / forward.heads_kv;
  const int positions = WgmmaPositions(shape, group);
  cudaError_t error = shape.pack_heads ? EncodePackedQueries(forward, shape, positions, &params->q)
                                       : EncodeTensorMap(forward.q, shape.head_dim, forward.seq_q,
                                                         heads_q, TileM(shape), &params->q, type);
  if (error != cudaSuccess) return error;
  const int kv_rows = shape.tile_n / shape.cluster;  // a CTA's share of a tile
  if (forward.l2_promotion < 0 || forward.l2_promotion >= int{std::size(kPromotions)}) {
    return cudaErrorInvalidValue;
  }
  const CUtensorMapL2promotion promotion = kPromotions[forward.l2_promotion];
  error = EncodeTensorMap(forward.k, shape.head_dim, forward.seq_kv, heads_kv, kv_rows, &params->k,
                          type, promotion);
  if (error != cudaSuccess) return error;
  error = EncodeTensorMap(forward.v, shape.head_dim, forward.seq_kv, heads_kv, kv_rows, &params->v,
                          type, promotion);
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

  int device = 0;
  int sm_count = 0;
  error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  const int64_t clusters =
      (int64_t{params->query_tiles} + shape.cluster - 1) / shape.cluster * params->heads;
  const int64_t at_once = shape.tile_per_cta ? clusters : sm_count / shape.cluster;
  *ctas = static_cast<unsigned>(std::min(clusters, at_once) * shape.cluster);
  return cudaSuccess;
}

cudaError_t PrepareRest(const ForwardParams& forward, const WgmmaShape& shape,
                        WgmmaStoreParams* params, unsigned*) {
  return EncodeTensorMap(forward.o, shape.head_dim, forward.seq_q, params->heads, kRowsPerConsumer,
                         &params->o_map, OutputType(shape));
}

cudaError_t PrepareRest(const ForwardParams& forward, const WgmmaShape& shape,
                        WgmmaFp8Params* params, unsigned* ctas) {
  params->q_scales = forward.q_scales;
  params->k_scales = forward.k_scales;
  params->v_scales = forward.v_scales;
  params->scale_stride = forward.kv_scale_stride;
  if (!shape.tma_store) return cudaSuccess;
  return PrepareRest(forward, shape, static_cast<WgmmaStoreParams*>(params), ctas);
}

cudaError_t PrepareRest(const ForwardParams& forward, const WgmmaShape&, WgmmaCopyParams* params,
                        unsigned*) {
  params->k_rows = forward.k;
  params->v_rows = forward.v;
  return cudaSuccess;
}

cudaError_t PrepareRest(const ForwardParams& forward, const WgmmaShape& shape,
                        WgmmaDecodeParams* params, unsigned* ctas) {
  params->positions = WgmmaPositions(shape, params->group_size);
  params->splits = 1;
  if (!shape.split_kv) return cudaSuccess;
  int device = 0;
  int sm_count = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  const int tiles = params->query_tiles * params->heads;
  const int rows =
      std::min(TileM(shape), forward.seq_q * (shape.pack_heads ? params->group_size : 1));
  params->splits = WgmmaSplits(shape, tiles, rows, forward.seq_kv, sm_count);
  *ctas = static_cast<unsigned>(tiles * params->splits);
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
    cudaLaunchAttribute attribute = ClusterAttribute(splits);
    cudaLaunchConfig_t config = ConfigOf(shape, tiles * splits);
    config.attrs = &attribute;
    config.numAttrs = 1;
    int at_once = 0;
    error = cudaOccupancyMaxActiveClusters(&at_once, kernel, &config);
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

cudaError_t LaunchWgmma(const void* kernel, const WgmmaShape& shape, unsigned ctas, int cluster,
                        void* params, cudaStream_t stream) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = ConfigOf(shape, ctas);
  if (cluster > 1) {
    attributes[config.numAttrs++] = ClusterAttribute(static_cast<unsigned>(cluster));
  }
  if (shape.dependent_launch) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
    ++config.numAttrs;
  }
  config.stream = stream;
  config.attrs = attributes;
  void* arguments[] = {params};
  return cudaLaunchKernelExC(&config, kernel, arguments);
}

cudaError_t LaunchBehind(const WgmmaDecodeParams& params, const WgmmaShape& shape,
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
                    shape.head_dim, shape.bf16, shape.dependent_launch, stream);
}

}  // namespace warpledger::sdpa
