// SPDX-License-Identifier: Apache-2.0
// The geometry of a wgmma instance: a value, host-safe.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SHAPE_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SHAPE_H_

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/geometry.h"
#include "kernels/sdpa/shared/exp_method.h"
#include "kernels/sdpa/shared/warpgroup.h"

namespace warpledger::sdpa {

// In which order the tiles of queries are handed out.
enum class WgmmaTileOrder {
  kLongestFirst,   // under the causal mask, among the heads whose K and V fit into L2 together
  kShortestFirst,  // the same, each head's tiles backwards
  kHeadsAbreast,   // longest first, among all heads
};

// When a warpgroup lets the next one have the tensor cores.
enum class WgmmaTurns : unsigned char {
  kNone,     // there are no turns
  kStarted,  // once the products of its step are started
  kScored,   // once its scores have come
};

// Which tiles rescale O and the sums.
enum class WgmmaRescale : unsigned char {
  kEachTile,
  kRowRises,     // where some row of a warp outgrows its maximum by far
  kThreadRises,  // the same by each thread's own part of a row: no shuffles where it doesn't
  kSumRises,     // by the sum of its probabilities where no mask is: no maxima where it doesn't
};

struct WgmmaShape {
  int head_dim = 64;
  bool causal = false;
  bool bf16 = false;           // Q, K, V, P and O; else fp16
  bool fp8 = false;            // Q, K, V and P in E4M3; the producers transpose V
  bool two_level = false;      // with fp8: P V of each tile apart, added to O in fp32
  bool block_scale = false;    // with two_level: a scale of K and of V for each tile of keys
  bool fp8_output = false;     // with fp8: O in E4M3 too, in units of the launch's o_scale
  bool scale_strides = false;  // with fp8: the launch says how far scales lie apart
  int consumers = 1;           // warpgroups that compute, 64 query rows each
  int tile_n = 128;            // keys per K/V tile
  int stages = 1;              // K/V tiles in shared memory
  bool overlap = false;        // softmax of a tile beside P V of the one before
  int late_wait = 0;           // with overlap: a level of wgmma_late_wait
  WgmmaTurns turns = WgmmaTurns::kNone;  // at the tensor cores
  bool dynamic_schedule = false;         // CTAs fetch query tiles from a counter as they go
  bool fetch_ahead = false;              // and ask for the next before the last loads of this one
  bool tma_store = false;                // O leaves through shared memory by TMA
  ExpMethod exp = ExpMethod::kExpFolded;
  int cluster = 1;      // CTAs that share each K/V tile, for neighbouring query tiles
  bool p_smem = false;  // P passes to P V through shared memory
  WgmmaRescale rescale = WgmmaRescale::kEachTile;  // of O and the sums
  bool mask_all = false;                           // not only tiles that the mask's border crosses
  bool q_registers = false;                        // Q passes to Q K^T in registers
  bool tile_per_cta = false;                       // a CTA ends after one tile of queries
  WgmmaTileOrder tile_order = WgmmaTileOrder::kLongestFirst;
  bool equal_registers = false;   // none are moved from the producer to the consumers
  bool more_registers = false;    // with two consumers: eight more a thread are moved to them
  bool inline_loads = false;      // no producer: a consumer asks for tiles
  bool cp_async = false;          // K and V come by the producers' own copies, 16 bytes each
  bool pack_heads = false;        // a tile holds the query heads that share a K/V head
  bool split_kv = false;          // CTAs share a tile's keys where tiles are few
  bool join_kernel = false;       // whose parts of O a second kernel joins, not the last of them
  bool cluster_join = false;      // whose parts of O they join as a cluster
  bool dependent_launch = false;  // the kernel begins beside the end of the one before
  bool varlen = false;            // a block is of the sequence that the plan says (varlen/)
  bool keep_k = false;            // K stays in shared memory for all tiles of queries of a head,
  bool keep_v = false;            // and so does V
  bool own_tiles = false;         // each warpgroup begins with the last tile that its rows see
  int k_stages = 0;               // with keep_k alone: K's tiles in shared memory; V's are `stages`

  friend constexpr bool operator==(const WgmmaShape&, const WgmmaShape&) = default;
};

// Warps of the producer warpgroup that transpose 8-bit V; its first warp asks for tiles.
inline constexpr int kTransposingWarps = 3;

// Of Q, K and V.
constexpr int ElementBytes(const WgmmaShape& s) { return s.fp8 ? 1 : 2; }
constexpr int OutputBytes(const WgmmaShape& s) { return s.fp8_output ? 1 : 2; }
// Whether the launch says where rows of 8-bit O lie.
constexpr bool StridedOutput(const WgmmaShape& s) { return s.fp8_output && s.scale_strides; }
// A swizzled row of Q, K and V as TMA brings them: 8-bit rows of head_dim 64 are no longer.
constexpr int RowBytes(const WgmmaShape& s) {
  return s.head_dim * ElementBytes(s) < kSwizzleBytes ? s.head_dim * ElementBytes(s)
                                                      : kSwizzleBytes;
}
constexpr int SwizzleColumns(const WgmmaShape& s) { return RowBytes(s) / ElementBytes(s); }
// A swizzled row of 8-bit V transposed: so many keys. The shorter one where the longer one would
// leave half of the last rows empty.
constexpr int TransposedRowBytes(const WgmmaShape& s) {
  return s.tile_n % kSwizzleBytes == 64 ? 64 : kSwizzleBytes;
}
// With two levels: of how many parts of O's columns P V is summed one after another. At head_dim
// 256 a second O has no registers.
constexpr int OutputParts(const WgmmaShape& s) { return s.two_level && s.head_dim == 256 ? 4 : 1; }

// A CTA's tile: 64 query rows per consumer, and K/V in tiles of tile_n keys.
struct WgmmaTile {
  int consumers;
  int tile_n;
  int stages;  // with the ring on
};

// Keys that share a scale of 8-bit K and V, where a head has several.
inline constexpr int kFp8BlockKeys = 128;

// With 8-bit operands, the tile at a level of wgmma_tile. Keys come in products of 32.
constexpr WgmmaTile Fp8TileOf(int level, int head_dim) {
  switch (head_dim) {
    case 64:  // three consumers' registers are enough for 96 keys, and two consumers' for 192
      return level == 1   ? WgmmaTile{2, 128, 4}
             : level == 2 ? WgmmaTile{2, 192, 4}
                          : WgmmaTile{3, 96, 4};
    case 256:  // as many keys as have registers beside P V, and without it
      return level == 2 ? WgmmaTile{2, 128, 2} : WgmmaTile{2, 64, 4};
    default:
      return {2, 128, 3};
  }
}

// The tile at a level of wgmma_tile. What bounds the stages is shared memory: MakeSmem.
constexpr WgmmaTile WgmmaTileOf(int level, bool all_consumers, int head_dim) {
  // One consumer: tiles for problems that don't fill the GPU.
  if (!all_consumers && level == 3) return {1, 64, head_dim == 256 ? 2 : 4};
  if (!all_consumers) return {1, head_dim == 256 ? 80 : 128, head_dim == 64 ? 4 : 2};
  switch (level) {
    case 1:  // rows and keys divide powers of two
      return head_dim == 64    ? WgmmaTile{2, 128, 4}
             : head_dim == 128 ? WgmmaTile{2, 128, 3}
                               : WgmmaTile{2, 64, 2};
    case 2:  // as many keys as two consumers have registers for
      return {2, 176, head_dim == 64 ? 3 : 2};
    case 3:  // fewer: shorter steps, more of them
      return {2, 64, 4};
    case 4:
      return {2, 96, head_dim == 64 ? 4 : 3};
    default:
      // Three consumers have 160 registers a thread: at 128 keys the scores, the
      // probabilities and O leave too few, and ptxas spills. O of a wider head takes
      // the registers of the third. At head_dim 256 shared memory holds two stages of 80
      // keys beside 128 rows of Q.
      return head_dim == 64    ? WgmmaTile{3, 112, 4}
             : head_dim == 128 ? WgmmaTile{2, 128, 2}
                               : WgmmaTile{2, 80, 2};
  }
}

constexpr int KStages(const WgmmaShape& s) { return s.k_stages > 0 ? s.k_stages : s.stages; }
constexpr int TileM(const WgmmaShape& s) { return s.consumers * kRowsPerConsumer; }
constexpr int Threads(const WgmmaShape& s) {
  return (s.consumers + (s.inline_loads ? 0 : 1)) * kWarpgroup;
}

constexpr bool MovesRegisters(const WgmmaShape& s) {
  return s.consumers > 1 && !s.equal_registers && !s.inline_loads;
}
// Registers per thread after setmaxnreg, within the SM's 65536. With one consumer
// warpgroup there are enough for all and nothing is moved.
constexpr int ProducerRegisters(const WgmmaShape& s) {
  return s.consumers == 3 ? 32 : s.more_registers ? 24 : 40;
}
constexpr int ConsumerRegisters(const WgmmaShape& s) {
  return s.consumers == 3 ? 160 : s.more_registers ? 240 : 232;
}

// By the level of wgmma_exp.
inline constexpr ExpMethod kWgmmaExpMethods[] = {ExpMethod::kExpFolded, ExpMethod::kExpMixed,
                                                 ExpMethod::kExpIntrinsic,
                                                 ExpMethod::kExpHalfPairs};

// Query tiles that the producer may be ahead of the consumers.
inline constexpr int kWorkSlots = 2;
// What a slot says of a tile of packed sequences (PackedWork in schedule.cuh).
inline constexpr int kPackedWorkBytes = 32;

// Byte offsets in dynamic shared memory; tiles are 1024-byte aligned. C is SwizzleColumns: 64
// 16-bit elements, or 128 8-bit ones (64 at head_dim 64); T is TransposedRowBytes.
struct WgmmaSmem {
  int q = 0;         // (head_dim / C, tile_m, C), swizzled
  int k = 0;         // (KStages, head_dim / C, tile_n, C), swizzled
  int v = 0;         // as k, stages; with fp8 transposed: (stages, ceil(tile_n / T), head_dim, T)
  int raw = 0;       // with fp8: V as it came, as k
  int p = 0;         // (consumers, ceil(tile_n / 64), 64, 64), swizzled; if p_smem
  int o = 0;         // (head_dim / 64, tile_m, 64), swizzled: O on the way out, in a place of its
                     // own or, without room, in q's, in OutputRounds
  int q_bytes = 0;   // of one tile
  int o_bytes = 0;   // of one tile
  int kv_bytes = 0;  // of one K or V tile as TMA brings it
  int v_bytes = 0;   // of one V tile as products read it
  int p_bytes = 0;   // of one warpgroup's P
  int barriers = 0;
  int bytes = 0;  // with room to align the base to 1024
};

constexpr WgmmaSmem MakeSmem(const WgmmaShape& s) {
  WgmmaSmem m;
  const int v_row = TransposedRowBytes(s);
  m.q_bytes = TileM(s) * s.head_dim * ElementBytes(s);
  m.o_bytes = TileM(s) * s.head_dim * 2;
  m.kv_bytes = s.tile_n * s.head_dim * ElementBytes(s);
  m.v_bytes = s.fp8 ? (s.tile_n + v_row - 1) / v_row * s.head_dim * v_row : m.kv_bytes;
  m.k = m.q + m.q_bytes;
  m.v = m.k + KStages(s) * m.kv_bytes;
  m.raw = m.v + s.stages * m.v_bytes;
  m.p = m.raw + (s.fp8 ? s.stages * m.kv_bytes : 0);
  const int p_blocks = (s.tile_n + kSwizzleColumns - 1) / kSwizzleColumns;
  m.p_bytes = s.p_smem ? p_blocks * kRowsPerConsumer * kSwizzleColumns * 2 : 0;
  const int tiles_end = m.p + s.consumers * m.p_bytes;
  const int barriers_per_stage = s.fp8 ? 4 : 2;  // of V's
  const int slot_words = 2 + (s.varlen ? kPackedWorkBytes / 8 : 1);
  const int words = 2 + 2 * KStages(s) + barriers_per_stage * s.stages + slot_words * kWorkSlots;
  const int others = words * 8 + 1024;
  const bool apart = s.tma_store && tiles_end + m.o_bytes + others <= kMaxCtaSmemBytes;
  m.o = apart ? tiles_end : m.q;
  m.barriers = apart ? m.o + m.o_bytes : tiles_end;
  m.bytes = m.barriers + others;
  return m;
}

// What is kept has as many stages as shared memory has room for.
constexpr int MostStages(WgmmaShape s) {
  int& kept = s.keep_v ? s.stages : s.k_stages;
  for (kept = s.stages + 1; MakeSmem(s).bytes <= kMaxCtaSmemBytes; ++kept) {
  }
  return kept - 1;
}

// Where a cluster joins, each CTA leaves its rows of O and their statistics, 8 bytes a row, in the
// place of K and V. Rows lie 32 bytes further apart than they are long, so that half a warp's
// stores, of four rows, meet no bank twice.
constexpr int JoinRowBytes(const WgmmaShape& s) { return s.head_dim * 4 + 32; }
constexpr bool JoinFitsInRing(const WgmmaShape& s) {
  const WgmmaSmem m = MakeSmem(s);
  return TileM(s) * (JoinRowBytes(s) + 8) <= s.stages * (m.kv_bytes + m.v_bytes);
}

// Whether O passes through Q's place, so that the next tile's Q waits for it.
constexpr bool StoresThroughQ(const WgmmaShape& s) {
  return s.tma_store && MakeSmem(s).o == MakeSmem(s).q;
}

// In how many parts of columns O passes through there: a warpgroup's rows of a part lie where its
// rows of Q lay.
constexpr int OutputRounds(const WgmmaShape& s) {
  return StoresThroughQ(s) ? MakeSmem(s).o_bytes / MakeSmem(s).q_bytes : 1;
}

// The tile of a configuration of this family.
constexpr WgmmaTile WgmmaTileFor(const Config& c) {
  return c.wgmma_fp8 ? Fp8TileOf(c.wgmma_tile, c.head_dim)
                     : WgmmaTileOf(c.wgmma_tile, c.consumer_warpgroups != 0, c.head_dim);
}

// The shape of a configuration of this family.
constexpr WgmmaShape WgmmaShapeOf(const Config& c) {
  WgmmaShape s;
  s.head_dim = c.head_dim;
  s.causal = c.mask == Mask::kCausal;
  s.bf16 = c.dtype == Dtype::kBf16;
  s.fp8 = c.wgmma_fp8 != 0;
  s.two_level = c.wgmma_fp8_two_level != 0;
  s.block_scale = c.wgmma_fp8_block_scale != 0;
  s.fp8_output = c.wgmma_fp8_output != 0;
  s.scale_strides = c.scale_strides;
  const WgmmaTile tile = WgmmaTileFor(c);
  s.consumers = tile.consumers;
  s.tile_n = tile.tile_n;
  s.stages = c.kv_ring_stages == 0 ? 1 : c.kv_ring_stages == 1 ? tile.stages : c.kv_ring_stages;
  s.overlap = c.softmax_overlap != 0;
  s.late_wait = c.wgmma_late_wait;
  s.turns = static_cast<WgmmaTurns>(c.ping_pong);
  s.dynamic_schedule = c.dynamic_schedule != 0;
  s.fetch_ahead = c.dynamic_schedule == 2;
  s.tma_store = c.tma_store != 0;
  s.exp = kWgmmaExpMethods[c.wgmma_exp];
  s.rescale = c.wgmma_skip_maxima    ? WgmmaRescale::kSumRises
              : c.wgmma_thread_max   ? WgmmaRescale::kThreadRises
              : c.wgmma_lazy_rescale ? WgmmaRescale::kRowRises
                                     : WgmmaRescale::kEachTile;
  s.mask_all = c.wgmma_mask_all != 0;
  s.q_registers = c.wgmma_q_registers != 0;
  s.tile_per_cta = c.wgmma_tile_per_cta != 0;
  s.tile_order = static_cast<WgmmaTileOrder>(c.wgmma_tile_order);
  s.cp_async = c.wgmma_cp_async != 0;
  s.inline_loads = c.wgmma_inline_loads != 0;
  s.equal_registers = c.wgmma_equal_registers != 0;
  s.more_registers = c.wgmma_more_registers != 0;
  s.cluster = c.kv_multicast ? c.kv_multicast : 1;
  s.pack_heads = c.wgmma_pack_heads != 0;
  s.split_kv = c.wgmma_split_kv != 0;
  s.join_kernel = c.wgmma_join_kernel != 0;
  s.cluster_join = c.wgmma_cluster_join != 0;
  s.dependent_launch = c.wgmma_dependent_launch != 0;
  s.varlen = c.varlen;
  s.own_tiles = c.wgmma_own_tiles != 0;
  if (c.wgmma_keep_kv) {
    s.keep_k = true;
    s.keep_v = s.head_dim == 64;  // at 128 K alone fits
    (s.keep_v ? s.stages : s.k_stages) = MostStages(s);
  }
  s.p_smem = c.wgmma_p_smem != 0;
  if (s.p_smem) {
    // P's place is taken from keys at head_dim 256, where there is no other; else from the
    // ring, if it must be.
    if (s.head_dim == 256) s.tile_n = 64;
    while (MakeSmem(s).bytes > kMaxCtaSmemBytes && s.stages > 1) --s.stages;
  }
  return s;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SHAPE_H_
