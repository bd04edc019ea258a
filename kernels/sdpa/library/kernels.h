// SPDX-License-Identifier: Apache-2.0
// The kernels that the library holds, of which it takes one for each problem: kLibraryKernels on
// GPUs of compute capability 9.0, kMmaKernels on all others from 8.0 on. Host-safe and constexpr:
// the designs `library_…` measure those rows of kLibraryKernels that know one length for all, and
// the build compiles all of both.
//
// None is launched as a programmatic dependent: what wrote its inputs may be any kernel. Only what
// joins parts is one, of the kernel that leaves them.

#ifndef WARPLEDGER_KERNELS_SDPA_LIBRARY_KERNELS_H_
#define WARPLEDGER_KERNELS_SDPA_LIBRARY_KERNELS_H_

#include <string_view>

#include "kernels/sdpa/dtype/dtype.h"
#include "kernels/sdpa/registry/config.h"

namespace warpledger::sdpa {

struct LibraryKernel {
  std::string_view name;  // the mechanism; the same for each head_dim and dtype that has it
  int head_dim = 64;
  Dtype dtype = Dtype::kFp16;  // of what is not E4M3
  Config config;               // as the designs measure it
  // The row above it of which it is another form, by one toggle: which is faster, the problem says.
  // Empty: none.
  std::string_view form_of = {};
};

constexpr bool TakesE4m3(const LibraryKernel& kernel) { return kernel.config.wgmma_fp8 != 0; }
constexpr bool WritesE4m3(const LibraryKernel& kernel) {
  return kernel.config.wgmma_fp8_output != 0;
}

// As the library has it. A kernel whose parts another one joins says at its start that the other
// may start, so that its launch is over when the last part is left. In a design that toggle has the
// kernel itself start beside the call before, which is another comparison; here it never does.
// At head_dim 128 it has three stages in place of four: 0.1 to 0.5 us of 17 less. Six took 0.4 more
// than four (reports/decisions/0046-packed-sequences.md). Other head dimensions were not tried.
// Scales of E4M3 are read where the caller has them; in a design they lie as the host prepares
// them.
constexpr Config BuiltForLibrary(const LibraryKernel& kernel) {
  Config config = kernel.config;
  config.scale_strides = TakesE4m3(kernel);
  if (config.wgmma_join_kernel) {
    config.wgmma_dependent_launch = 1;
    if (kernel.head_dim == 128) config.kv_ring_stages = 3;
  }
  return config;
}

// The same kernel where the CTAs that share keys are a cluster and no other one joins their parts
// (WgmmaSharesInCluster says where). Tried at head_dim 128 alone.
constexpr bool HasClusterForm(const LibraryKernel& kernel) {
  return kernel.config.wgmma_join_kernel != 0 && kernel.head_dim == 128;
}
constexpr Config ClusterForm(const LibraryKernel& kernel) {
  Config config = BuiltForLibrary(kernel);
  config.wgmma_join_kernel = 0;
  config.wgmma_dependent_launch = 0;
  config.wgmma_cluster_join = 1;
  return config;
}

constexpr Config Strided(Config config) {
  config.strided = true;
  return config;
}
// The same kernel where tensors lie with strides, which it can't read by tensor maps. Strides of
// batches need not fold into those of heads, so that any strides are one launch.
constexpr bool HasStridedForm(const LibraryKernel& kernel) {
  return FamilyOf(kernel.config) == Family::kMma && !kernel.config.strided;
}
constexpr Config StridedForm(const LibraryKernel& kernel) {
  return Strided(BuiltForLibrary(kernel));
}

// Many rows of queries: a producer warp and two or three warpgroups of rows.
inline constexpr Config kPipelined = {.wgmma = 1,
                                      .kv_ring_stages = 1,
                                      .softmax_overlap = 1,
                                      .consumer_warpgroups = 1,
                                      .dynamic_schedule = 2,
                                      .tma_store = 1,
                                      .wgmma_lazy_rescale = 1,
                                      .wgmma_thread_max = 1,
                                      .wgmma_skip_maxima = 1};
constexpr Config PingPong(Config config) {
  config.ping_pong = 1;
  return config;
}
// Packed sequences, and batches whose strides of heads don't fold but whose rows do.
constexpr Config Varlen(Config config) {
  config.varlen = true;
  return config;
}
// head_dim 64: two warpgroups of rows and 128 keys a tile, in place of three and 112 (96 in E4M3).
constexpr Config TwoWarpgroups(Config config) {
  config.wgmma_tile = 1;
  return config;
}
// head_dim 64 and 128: Q passes to Q K^T in registers, 1.02 to 1.04 at 512 keys and no loss at more
// (reports/decisions/0018-hopper-beyond-its-ladder.md).
constexpr Config QInRegisters(Config config) {
  config.wgmma_q_registers = 1;
  return config;
}
// head_dim 64, up to 768 keys and heads enough to fill the SMs: a head's K and V are read once for
// all its tiles of queries, 1.04 and 1.07 at 512 keys, full and causal
// (reports/decisions/0018-hopper-beyond-its-ladder.md).
constexpr Config KeepKv(Config config) {
  config.wgmma_keep_kv = 1;
  return config;
}
// Under a causal mask each warpgroup begins with its own last tile of keys; in packed sequences,
// where many blocks have no row for a warpgroup, under both masks
// (reports/decisions/0049-forms-of-a-kernel.md).
constexpr Config OwnTiles(Config config) {
  config.wgmma_own_tiles = 1;
  return config;
}
// Two CTAs of a cluster, with neighbouring tiles of queries, read each tile of K and V once.
constexpr Config InPairs(Config config) {
  config.kv_multicast = 2;
  return config;
}
// head_dim 128: 64 keys a tile in place of 128.
constexpr Config ShortTiles(Config config) {
  config.wgmma_tile = 3;
  return config;
}
// Q, K and V in E4M3, O in fp16 or, as a kernel of its own, in E4M3. At head_dim 128 the fastest of
// the design hopper_fp8, or within 1.5% of it (hopper_fp8-20261123T083422Z); at 64 the fastest of
// fastest_fp8_d64 (alone_fp8_d64-20261127T185414Z).
inline constexpr Config kPipelinedE4m3 = {.wgmma = 1,
                                          .kv_ring_stages = 1,
                                          .softmax_overlap = 1,
                                          .wgmma_late_wait = 2,
                                          .consumer_warpgroups = 1,
                                          .dynamic_schedule = 1,
                                          .tma_store = 1,
                                          .wgmma_fp8 = 1,
                                          .wgmma_fp8_two_level = 1};
// head_dim 256: 128 keys a tile in place of 64. Beside O there are then no registers for P V of a
// tile and scores of the next, so that one warpgroup's products run beside the other's softmax.
// 64 keys take 8 to 21% longer (reports/decisions/0015-data-types.md).
constexpr Config WithoutOverlap(Config config) {
  config.softmax_overlap = 0;
  config.wgmma_late_wait = 0;
  config.wgmma_tile = 2;
  return config;
}
// head_dim 256: O, where it is contiguous, by plain stores. By TMA it would leave through Q's
// place, for which the next Q waits: 1.07 and 1.06 times as long at 512 keys, 1.03 at 2k
// (alone_fp8_d256-20261127T185820Z).
constexpr Config PlainStores(Config config) {
  config.tma_store = 0;
  return config;
}
// O in E4M3 too. No kernel stores it by TMA.
constexpr Config OutputInE4m3(Config config) {
  config.tma_store = 0;
  config.wgmma_fp8_output = 1;
  return config;
}
// A scale for each 128 keys of a head of K and V.
constexpr Config BlockScales(Config config) {
  config.wgmma_fp8_block_scale = 1;
  return config;
}
// head_dim 256: 64 keys a tile, and O leaves through registers.
inline constexpr Config kPipelinedD256 = {.wgmma = 1,
                                          .kv_ring_stages = 1,
                                          .softmax_overlap = 1,
                                          .consumer_warpgroups = 1,
                                          .ping_pong = 1,
                                          .dynamic_schedule = 2,
                                          .wgmma_tile = 1,
                                          .wgmma_lazy_rescale = 1,
                                          .wgmma_thread_max = 1,
                                          .wgmma_skip_maxima = 1};
// Few keys: a cluster divides them, and each CTA holds its part whole.
inline constexpr Config kResident = {
    .wgmma = 1, .resident_kv = 1, .cluster_split_kv = 2, .fp16_exchange = 1};
constexpr Config TwoKvWarpgroups(Config config) {
  config.kv_warpgroups = 1;
  return config;
}
// Few rows of queries: the heads of a K/V head share a tile, and several CTAs its keys.
inline constexpr Config kSplitMma = {.mma_sync = 1,
                                     .mma_v_ldmatrix_trans = 1,
                                     .mma_p_registers = 1,
                                     .mma_q_registers = 1,
                                     .mma_smem_layout = 1,
                                     .mma_cp_async_stages = 3,
                                     .mma_exp = 1,
                                     .mma_border_mask = 1,
                                     .mma_tile = 3,
                                     .mma_key_groups = 4,
                                     .mma_split_kv = 1,
                                     .mma_pack_heads = 1};
inline constexpr Config kSplitWgmma = {.wgmma = 1,
                                       .kv_ring_stages = 1,
                                       .softmax_overlap = 1,
                                       .wgmma_tile = 3,
                                       .wgmma_tile_per_cta = 1,
                                       .wgmma_pack_heads = 1,
                                       .wgmma_split_kv = 1,
                                       .wgmma_join_kernel = 1};

inline constexpr LibraryKernel kLibraryKernels[] = {
    {"pipelined", 64, Dtype::kFp16, OwnTiles(QInRegisters(PingPong(kPipelined)))},
    {"pipelined_two_warpgroups", 64, Dtype::kFp16,
     OwnTiles(KeepKv(QInRegisters(TwoWarpgroups(kPipelined))))},
    {"pipelined_two_warpgroups_reread", 64, Dtype::kFp16,
     OwnTiles(QInRegisters(TwoWarpgroups(kPipelined))), "pipelined_two_warpgroups"},
    {"resident", 64, Dtype::kFp16, kResident},
    {"resident_two_warpgroups", 64, Dtype::kFp16, TwoKvWarpgroups(kResident)},
    {"split_mma", 64, Dtype::kFp16, kSplitMma},
    {"split_wgmma", 64, Dtype::kFp16, kSplitWgmma},
    {"pipelined", 64, Dtype::kBf16, OwnTiles(QInRegisters(PingPong(kPipelined)))},
    {"pipelined_two_warpgroups", 64, Dtype::kBf16,
     OwnTiles(KeepKv(QInRegisters(TwoWarpgroups(kPipelined))))},
    {"pipelined_two_warpgroups_reread", 64, Dtype::kBf16,
     OwnTiles(QInRegisters(TwoWarpgroups(kPipelined))), "pipelined_two_warpgroups"},
    {"split_mma", 64, Dtype::kBf16, kSplitMma},
    {"split_wgmma", 64, Dtype::kBf16, kSplitWgmma},
    {"pipelined_e4m3", 64, Dtype::kFp16, OwnTiles(kPipelinedE4m3)},
    {"pipelined_e4m3_output", 64, Dtype::kFp16, OutputInE4m3(OwnTiles(kPipelinedE4m3))},
    {"pipelined_e4m3_blocks", 64, Dtype::kFp16, BlockScales(TwoWarpgroups(kPipelinedE4m3))},
    {"pipelined", 128, Dtype::kFp16, OwnTiles(QInRegisters(kPipelined))},
    {"pipelined_pairs", 128, Dtype::kFp16, InPairs(OwnTiles(QInRegisters(kPipelined))),
     "pipelined"},
    {"pipelined_short", 128, Dtype::kFp16, ShortTiles(OwnTiles(QInRegisters(kPipelined))),
     "pipelined"},
    {"pipelined_short_pairs", 128, Dtype::kFp16,
     InPairs(ShortTiles(OwnTiles(QInRegisters(kPipelined)))), "pipelined_short"},
    {"split_mma", 128, Dtype::kFp16, kSplitMma},
    {"split_wgmma", 128, Dtype::kFp16, kSplitWgmma},
    {"pipelined", 128, Dtype::kBf16, OwnTiles(QInRegisters(kPipelined))},
    {"pipelined_pairs", 128, Dtype::kBf16, InPairs(OwnTiles(QInRegisters(kPipelined))),
     "pipelined"},
    {"pipelined_short", 128, Dtype::kBf16, ShortTiles(OwnTiles(QInRegisters(kPipelined))),
     "pipelined"},
    {"pipelined_short_pairs", 128, Dtype::kBf16,
     InPairs(ShortTiles(OwnTiles(QInRegisters(kPipelined)))), "pipelined_short"},
    {"split_mma", 128, Dtype::kBf16, kSplitMma},
    {"split_wgmma", 128, Dtype::kBf16, kSplitWgmma},
    {"pipelined_e4m3", 128, Dtype::kFp16, OwnTiles(kPipelinedE4m3)},
    {"pipelined_e4m3_output", 128, Dtype::kFp16, OutputInE4m3(OwnTiles(kPipelinedE4m3))},
    {"pipelined_e4m3_blocks", 128, Dtype::kFp16, BlockScales(kPipelinedE4m3)},
    {"pipelined", 256, Dtype::kFp16, OwnTiles(kPipelinedD256)},
    {"pipelined_pairs", 256, Dtype::kFp16, InPairs(OwnTiles(kPipelinedD256)), "pipelined"},
    {"split_wgmma", 256, Dtype::kFp16, kSplitWgmma},
    {"pipelined", 256, Dtype::kBf16, OwnTiles(kPipelinedD256)},
    {"pipelined_pairs", 256, Dtype::kBf16, InPairs(OwnTiles(kPipelinedD256)), "pipelined"},
    {"split_wgmma", 256, Dtype::kBf16, kSplitWgmma},
    {"pipelined_e4m3", 256, Dtype::kFp16, WithoutOverlap(kPipelinedE4m3)},
    {"pipelined_e4m3_contiguous", 256, Dtype::kFp16, PlainStores(WithoutOverlap(kPipelinedE4m3)),
     "pipelined_e4m3"},
    {"pipelined_e4m3_output", 256, Dtype::kFp16, OutputInE4m3(WithoutOverlap(kPipelinedE4m3))},
    {"pipelined_e4m3_blocks", 256, Dtype::kFp16, BlockScales(WithoutOverlap(kPipelinedE4m3))},
    {"pipelined_varlen", 64, Dtype::kFp16, OwnTiles(Varlen(TwoWarpgroups(kPipelined)))},
    {"pipelined_varlen", 64, Dtype::kBf16, OwnTiles(Varlen(TwoWarpgroups(kPipelined)))},
    {"pipelined_varlen", 128, Dtype::kFp16, OwnTiles(Varlen(kPipelined))},
    {"pipelined_varlen", 128, Dtype::kBf16, OwnTiles(Varlen(kPipelined))},
    {"pipelined_varlen", 256, Dtype::kFp16, OwnTiles(Varlen(kPipelinedD256))},
    {"pipelined_varlen", 256, Dtype::kBf16, OwnTiles(Varlen(kPipelinedD256))},
};

// --- Of GPUs without wgmma ---------------------------------------------------------
// They read and write tensors by their strides. From compute capability 8.6 on a CTA may have no
// more than 99 KB of shared memory, except on 8.7.

// Many rows of queries: the end of the mma family's ladder, which has Q in registers at head_dim 64
// (ablations/subjects/sdpa/designs/designs_mma.h).
inline constexpr Config kTiledMma = {.mma_sync = 1,
                                     .mma_v_ldmatrix_trans = 1,
                                     .mma_p_registers = 1,
                                     .mma_smem_layout = 1,
                                     .mma_cp_async_stages = 2,
                                     .mma_exp = 1,
                                     .mma_border_mask = 1,
                                     .mma_tile = 1,
                                     .mma_lazy_rescale = 1,
                                     .mma_longest_first = 1,
                                     .strided = true};
constexpr Config QInMmaRegisters(Config config) {
  config.mma_q_registers = 1;
  return config;
}
// head_dim 256: 64 rows, 16 a warp, beside whose O there are no registers for more.
constexpr Config FewerRows(Config config) {
  config.mma_tile = 0;
  return config;
}
// 64 keys at a time, copied through registers: two stages take 161 KB at head_dim 256. By lazy
// rescaling it would spill among packed sequences.
constexpr Config OneTileOfKeys(Config config) {
  config.mma_cp_async_stages = 0;
  config.mma_lazy_rescale = 0;
  return config;
}
// Tiles for all: the heads of a K/V head share one, and several CTAs its keys where SMs would idle.
constexpr Config SharedKeys(Config config) {
  config.mma_split_kv = 1;
  config.mma_pack_heads = 1;
  return config;
}
// Few rows of queries: 64 KB of K and V.
constexpr Config SplitMma(int key_groups) {
  Config config = Strided(kSplitMma);
  config.mma_cp_async_stages = 2;
  config.mma_key_groups = key_groups;
  return config;
}

inline constexpr LibraryKernel kMmaKernels[] = {
    {"tiled_mma", 64, Dtype::kFp16, QInMmaRegisters(kTiledMma)},
    {"split_mma", 64, Dtype::kFp16, SplitMma(4)},
    {"tiled_mma", 64, Dtype::kBf16, QInMmaRegisters(kTiledMma)},
    {"split_mma", 64, Dtype::kBf16, SplitMma(4)},
    {"tiled_mma", 128, Dtype::kFp16, kTiledMma},
    {"split_mma", 128, Dtype::kFp16, SplitMma(2)},
    {"tiled_mma", 128, Dtype::kBf16, kTiledMma},
    {"split_mma", 128, Dtype::kBf16, SplitMma(2)},
    {"shared_mma", 256, Dtype::kFp16, SharedKeys(FewerRows(kTiledMma))},
    {"shared_mma_one_tile", 256, Dtype::kFp16, OneTileOfKeys(SharedKeys(FewerRows(kTiledMma)))},
    {"shared_mma", 256, Dtype::kBf16, SharedKeys(FewerRows(kTiledMma))},
    {"shared_mma_one_tile", 256, Dtype::kBf16, OneTileOfKeys(SharedKeys(FewerRows(kTiledMma)))},
    {"tiled_mma_varlen", 64, Dtype::kFp16, Varlen(QInMmaRegisters(kTiledMma))},
    {"tiled_mma_varlen", 64, Dtype::kBf16, Varlen(QInMmaRegisters(kTiledMma))},
    {"tiled_mma_varlen", 128, Dtype::kFp16, Varlen(kTiledMma)},
    {"tiled_mma_varlen", 128, Dtype::kBf16, Varlen(kTiledMma)},
    {"tiled_mma_varlen", 256, Dtype::kFp16, Varlen(FewerRows(kTiledMma))},
    {"tiled_mma_varlen_one_tile", 256, Dtype::kFp16, Varlen(OneTileOfKeys(FewerRows(kTiledMma)))},
    {"tiled_mma_varlen", 256, Dtype::kBf16, Varlen(FewerRows(kTiledMma))},
    {"tiled_mma_varlen_one_tile", 256, Dtype::kBf16, Varlen(OneTileOfKeys(FewerRows(kTiledMma)))},
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_KERNELS_H_
