// SPDX-License-Identifier: Apache-2.0
// The geometry of an mma instance: a value, host-safe. config.h makes it from the
// toggles; kernels and launches see nothing else.
//
//   constexpr MmaShape kShape = {.head_dim = 128, .rows_per_warp = 32, .stages = 2};
//   static_assert(TileM(kShape) == 128);

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_SHAPE_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_SHAPE_H_

#include "kernels/common/bank_model.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/shared/exp_method.h"

namespace warpledger::sdpa {

// Where a 16-byte chunk of a row lies in shared memory.
enum class MmaLayout {
  kLinear = 0,      // rows back to back
  kXorSwizzle = 1,  // chunk index xor row, within the row
  kPadding = 2,     // one chunk of waste behind each row
};

// Which CTA computes which tile of queries.
enum class MmaPersistent {
  kNo = 0,       // one CTA per tile
  kStatic = 1,   // CTAs that fill the GPU once walk over the tiles
  kDynamic = 2,  // the same, fetching tiles from a counter
};

// What K and V are stored as, and how 8 bits become fp16 on the way to the products.
enum class MmaKv {
  kSame = 0,             // 16 bits, as Q
  kUint8Arithmetic = 1,  // integers around 128, by a byte permutation and a subtraction
  kUint8Table = 2,       // the same codes, by a table of 256 fp16 in shared memory
  kE4m3 = 3,
  kE5m2 = 4,
};

// Where Q, K and V come from.
enum class MmaInput {
  kGiven = 0,             // tensors of their own
  kPacked = 1,            // rows of a projection: (batch, seq, columns of Q, K and V)
  kRecomputed = 2,        // from x, each CTA all that it reads
  kClusterProjected = 3,  // from x, each CTA of a cluster its own rows; then as kPacked
};

// What is accumulated in fp16 instead of fp32: bits.
inline constexpr int kFp16Output = 1;
inline constexpr int kFp16Scores = 2;

struct MmaShape {
  int head_dim = 64;
  int row_warps = 4;       // warps side by side along the query rows
  int rows_per_warp = 16;  // 16 or 32
  int tile_n = 64;         // keys per K/V tile
  int key_groups = 1;      // groups of row_warps warps, each with every key_groups-th K/V tile
  int stages = 0;          // K/V tiles in a ring of cp.async; 0: one tile, copied through registers
  MmaLayout layout = MmaLayout::kLinear;
  bool q_registers = false;   // Q's fragments are loaded once
  bool p_registers = false;   // P goes from accumulator to operand without shared memory
  bool v_transposed = false;  // ldmatrix.trans for V
  ExpMethod exp = ExpMethod::kExpf;
  bool softmax_overlap = false;  // a tile's softmax among the products of the next
  bool lazy_rescale = false;
  int fp16_accumulators = 0;
  bool border_mask = false;    // mask only tiles that need it
  int producer_warps = 0;      // warps that only copy
  bool longest_first = false;  // under the causal mask, tiles with the most keys first
  MmaPersistent persistent = MmaPersistent::kNo;
  bool split_kv = false;  // small grids: several CTAs share a tile's keys
  MmaKv kv = MmaKv::kSame;
  bool kv_block_scale = false;  // a scale per K/V tile beside the head's
  bool bf16 = false;            // Q, K, V, P and O are bf16
  MmaInput input = MmaInput::kGiven;
  bool layernorm = false;         // x is normalised where it is projected
  bool dependent_launch = false;  // starts beside the kernel before and waits for its end
  bool bulk_copy = false;         // rows of K and V by TMA, each whole (sm_90)
  bool pack_heads = false;        // a tile's rows are (position, query head of the K/V head)
  bool strided = false;           // tensors lie as MmaStridedParams say
  bool varlen = false;            // and sequences as MmaVarlenParams say

  friend constexpr bool operator==(const MmaShape&, const MmaShape&) = default;
};

// The tiles that the suite compares, by the toggle's level.
struct MmaTile {
  int row_warps;
  int rows_per_warp;
  int tile_n;
};
inline constexpr MmaTile kMmaTiles[] = {
    {4, 16, 64},   // 64 x 64
    {4, 32, 64},   // 128 x 64
    {2, 16, 64},   // 32 x 64, for grids of few rows
    {1, 16, 32},   // 16 x 32, for decoding
    {2, 32, 64},   // 64 x 64, 32 rows a warp
    {8, 16, 64},   // 128 x 64, 16 rows a warp
    {4, 16, 128},  // 64 x 128
    {4, 32, 96},   // 128 x 96
};

constexpr int TileM(const MmaShape& s) { return s.row_warps * s.rows_per_warp; }
constexpr int ConsumerThreads(const MmaShape& s) { return s.row_warps * s.key_groups * 32; }
constexpr int Threads(const MmaShape& s) { return ConsumerThreads(s) + s.producer_warps * 32; }
constexpr int Stages(const MmaShape& s) { return s.stages > 0 ? s.stages : 1; }
constexpr bool ReadsPacked(const MmaShape& s) {
  return s.input == MmaInput::kPacked || s.input == MmaInput::kClusterProjected;
}
constexpr bool Projects(const MmaShape& s) {
  return s.input == MmaInput::kRecomputed || s.input == MmaInput::kClusterProjected;
}
constexpr bool IsPersistent(const MmaShape& s) { return s.persistent != MmaPersistent::kNo; }
constexpr bool Is8Bit(const MmaShape& s) { return s.kv != MmaKv::kSame; }
// A row of K or V, in units of two bytes.
constexpr int KvColumns(const MmaShape& s) { return s.head_dim / (Is8Bit(s) ? 2 : 1); }
// Parts of a row whose loads stand side by side where split keys are joined.
inline constexpr int kJoinedAtOnce = 16;
// O leaves through shared memory where several groups or CTAs hold a part of it.
constexpr bool HasPartialOutputs(const MmaShape& s) { return s.key_groups > 1 || s.split_kv; }

// Registers that a thread's fragments take, in 32-bit words, and about what else
// is live beside them.
constexpr int FragmentRegisters(const MmaShape& s) {
  const int row_blocks = s.rows_per_warp / 16;
  const int output = s.head_dim / 2 / ((s.fp16_accumulators & kFp16Output) ? 2 : 1);
  const int scores = s.tile_n / 2 * (s.softmax_overlap ? 2 : 1);
  return row_blocks * (output + scores + (s.q_registers ? s.head_dim / 4 : 0));
}
constexpr int OtherRegisters(const MmaShape& s) {
  // With overlap, addresses and operands of two products at once: at 64 ptxas spills.
  return s.softmax_overlap ? 104 : 64;
}

constexpr int SmemBytes(const MmaShape& s);  // of a CTA
inline constexpr int kMostSmemPerSm = 228 << 10;

// CTAs that should fit on an SM by registers; ptxas keeps to it.
constexpr int MinCtasPerSm(const MmaShape& s) {
  if (s.input == MmaInput::kRecomputed) return 1;  // as shared memory has it
  constexpr int kMaxRegisters = 255;
  int need = FragmentRegisters(s) + OtherRegisters(s);
  if (need > kMaxRegisters) need = kMaxRegisters;
  int ctas = 65536 / (Threads(s) * need);
  // No more than there is shared memory for: they would take registers from one another.
  if (s.strided && ctas > kMostSmemPerSm / SmemBytes(s)) ctas = kMostSmemPerSm / SmemBytes(s);
  return ctas < 1 ? 1 : ctas;
}

// --- Layout of a tile in shared memory ------------------------------------------

inline constexpr int kMmaChunkBytes = 16;  // what a lane copies, and a row of an ldmatrix matrix

// Bytes from a row of `columns` fp16 to the next.
constexpr int RowBytes(MmaLayout layout, int columns) {
  return columns * 2 + (layout == MmaLayout::kPadding ? kMmaChunkBytes : 0);
}

// The byte at which chunk `chunk` (8 columns) of row `row` lies in its tile.
constexpr int ChunkOffset(MmaLayout layout, int columns, int row, int chunk) {
  if (layout == MmaLayout::kXorSwizzle) {
    chunk = bank_model::XorSwizzle(row, chunk, columns * 2 / kMmaChunkBytes);
  }
  return row * RowBytes(layout, columns) + chunk * kMmaChunkBytes;
}

// --- Layout of a projection in shared memory -------------------------------------

inline constexpr int kProjectionRows = 64;     // of x, and of a slab of W
inline constexpr int kProjectionColumns = 64;  // of E at a time
inline constexpr int kMaxEmbedDim = 512;  // whose W fits beside the tiles, or a row into registers
inline constexpr int kProjectionTileBytes = kProjectionRows * kProjectionColumns * 2;

// Byte offsets of the parts. Tiles are (64, 64) fp16 under the XOR swizzle.
struct ProjectionSmem {
  int x = 0;      // (2) tiles of x
  int w = 0;      // (2, slabs) tiles of W, or (kMaxEmbedDim / 64, slabs) where W stays
  int stats = 0;  // (64, 2) fp32: a row's mean and 1 / width
  int bytes = 0;
};
constexpr ProjectionSmem MakeProjectionSmem(int slabs, bool w_stays) {
  ProjectionSmem m;
  m.w = m.x + 2 * kProjectionTileBytes;
  m.stats = m.w + (w_stays ? kMaxEmbedDim / kProjectionColumns : 2) * slabs * kProjectionTileBytes;
  m.bytes = m.stats + kProjectionRows * 2 * 4;
  return m;
}

// Rows of fp32 that the epilogue stages, padded by 16 bytes.
constexpr int StagedRowFloats(const MmaShape& s) { return s.head_dim + 4; }

// Byte offsets in dynamic shared memory.
struct MmaSmem {
  int q = 0;          // (tile_m, head_dim) fp16
  int k = 0;          // (key_groups, stages, tile_n, head_dim), of 16 or 8 bits
  int v = 0;          // (key_groups, stages, tile_n, head_dim), of 16 or 8 bits
  int kv_bytes = 0;   // of one K or V tile
  int p = 0;          // (row_warps * key_groups, rows_per_warp, tile_n) fp16; without p_registers
  int staged = 0;     // (key_groups, tile_m, head_dim) fp32, over Q, K and V; partial outputs only
  int stats = 0;      // (key_groups, tile_m, 2) fp32: a row's maximum and sum; partial outputs only
  int barriers = 0;   // mbarriers: (3, stages) with producer warps, (key_groups, 2, stages) with
                      // bulk copies
  int next_tile = 0;  // int: the dynamic schedule's, and the last CTA's flag
  int table = 0;      // (256) fp16: the number of each code; kUint8Table only
  // What a projection needs (ProjectionSmem): beside the tiles where it makes them, over
  // them where it is done before.
  int projection = 0;
  int bytes = 0;
};

constexpr MmaSmem MakeSmem(const MmaShape& s) {
  MmaSmem m;
  int end = 0;
  const auto take = [&end](int bytes) {
    const int at = end;
    end += (bytes + 127) / 128 * 128;  // a swizzled row of 64 columns must not straddle
    return at;
  };
  m.kv_bytes = s.tile_n * RowBytes(s.layout, KvColumns(s));
  m.q = take(TileM(s) * RowBytes(s.layout, s.head_dim));
  m.k = take(s.key_groups * Stages(s) * m.kv_bytes);
  m.v = take(s.key_groups * Stages(s) * m.kv_bytes);
  m.p = take(s.p_registers
                 ? 0
                 : s.row_warps * s.key_groups * s.rows_per_warp * RowBytes(s.layout, s.tile_n));
  if (HasPartialOutputs(s)) {
    m.staged = 0;
    const int staged_end = s.key_groups * TileM(s) * StagedRowFloats(s) * 4;
    if (staged_end > end) end = (staged_end + 127) / 128 * 128;
    m.stats = take(s.key_groups * TileM(s) * 2 * 4);
  }
  m.barriers = take(s.producer_warps > 0 ? 3 * Stages(s) * 8
                    : s.bulk_copy        ? s.key_groups * 2 * Stages(s) * 8
                                         : 0);
  m.next_tile = take(s.split_kv || s.persistent == MmaPersistent::kDynamic ? 4 : 0);
  m.table = take(s.kv == MmaKv::kUint8Table ? 256 * 2 : 0);
  if (s.input == MmaInput::kRecomputed) {
    m.projection = take(MakeProjectionSmem(2, true).bytes);
  } else if (s.input == MmaInput::kClusterProjected) {
    const int projection_end = MakeProjectionSmem(3, false).bytes;
    if (projection_end > end) end = (projection_end + 127) / 128 * 128;
  }
  m.bytes = end;
  return m;
}
constexpr int SmemBytes(const MmaShape& s) { return MakeSmem(s).bytes; }

// Why a shape has no kernel; empty when it has one.
constexpr const char* WhyIllegal(const MmaShape& s) {
  if (s.rows_per_warp != 16 && s.rows_per_warp != 32) return "a warp holds 16 or 32 rows";
  if (s.tile_n % 16 != 0) return "a K/V tile is whole fragments of 16 keys";
  if (Is8Bit(s) && s.tile_n % 32 != 0) return "8-bit K is loaded 32 keys at a time";
  if (Is8Bit(s) && !s.v_transposed) return "8-bit V has no load but ldmatrix.trans";
  if (Is8Bit(s) && s.fp16_accumulators != 0) return "sums of unscaled codes leave fp16's range";
  if (s.kv_block_scale && !Is8Bit(s)) return "16-bit K and V have no scale";
  if (s.bf16 && Is8Bit(s)) return "8-bit codes become fp16";
  if (s.bf16 && s.fp16_accumulators != 0) return "bf16 has no 16-bit accumulators";
  if (s.bf16 && s.exp == ExpMethod::kExpHalfPairs) return "packed exponentials are fp16";
  if (s.head_dim != 64 && s.head_dim != 128 && s.head_dim != 256)
    return "head_dim is 64, 128 or 256";
  if (s.stages == 1) return "a ring has at least two stages";
  if (s.producer_warps > 0 && s.stages < 2) return "producer warps need a ring to fill";
  if (s.softmax_overlap && s.stages < 2) return "overlap needs two K tiles at a time";
  if (s.softmax_overlap && s.producer_warps > 0) return "producers fill K and V in step";
  if (s.producer_warps > 0 && s.key_groups > 1) return "producer warps feed a single group";
  if (s.producer_warps > 0 && IsPersistent(s)) return "producer warps serve a single tile";
  if (s.producer_warps > 0 && HasPartialOutputs(s))
    return "producer warps leave before the combine";
  if (s.bulk_copy) {
    if (s.stages < 2) return "bulk copies need a ring to fill";
    if (s.layout == MmaLayout::kXorSwizzle) return "a row that is copied whole keeps its order";
    if (s.producer_warps > 0 || s.softmax_overlap || IsPersistent(s))
      return "bulk copies serve a single tile, in step";
    if (s.input != MmaInput::kGiven) return "bulk copies read tensors of their own";
  }
  if (s.strided && (s.input != MmaInput::kGiven || Is8Bit(s) || s.bulk_copy))
    return "only 16-bit tensors of their own have strides";
  if (s.varlen && (!s.strided || s.pack_heads || HasPartialOutputs(s) || IsPersistent(s) ||
                   s.producer_warps > 0))
    return "a CTA takes tiles of one head of a sequence, one after another";
  if (s.key_groups > 1 && IsPersistent(s)) return "groups stage their outputs over K and V";
  if (Projects(s)) {
    if (s.head_dim != 64 || TileM(s) != kProjectionRows) return "a projection has 64 x 64 tiles";
    if (s.pack_heads || s.split_kv || IsPersistent(s) || s.producer_warps > 0)
      return "a CTA projects the rows of one tile of one head";
    if (s.longest_first) return "the CTAs of a head are neighbours";
  }
  if (s.input != MmaInput::kGiven && (s.bf16 || Is8Bit(s))) return "a projection gives fp16";
  if (s.input == MmaInput::kRecomputed &&
      (s.stages != 0 || s.key_groups != 1 || s.tile_n != kProjectionRows))
    return "K and V that are projected where they are needed are not copied ahead";
  if (s.input == MmaInput::kClusterProjected && s.stages == 0)
    return "rows of other CTAs of the cluster must not come from L1";
  if (s.split_kv && IsPersistent(s)) return "split-KV is for grids that don't fill the GPU";
  return "";
}

// The shape of a configuration of this family.
constexpr MmaShape MmaShapeOf(const Config& c) {
  const MmaTile tile = kMmaTiles[c.mma_tile];
  MmaShape s;
  s.head_dim = c.head_dim;
  s.row_warps = tile.row_warps;
  s.rows_per_warp = tile.rows_per_warp;
  s.tile_n = tile.tile_n;
  s.key_groups = c.mma_key_groups > 0 ? c.mma_key_groups : 1;
  s.stages = c.mma_cp_async_stages;
  s.layout = static_cast<MmaLayout>(c.mma_smem_layout);
  s.q_registers = c.mma_q_registers != 0;
  s.p_registers = c.mma_p_registers != 0;
  s.v_transposed = c.mma_v_ldmatrix_trans != 0;
  s.exp = static_cast<ExpMethod>(c.mma_exp);
  s.softmax_overlap = c.mma_softmax_overlap != 0;
  s.lazy_rescale = c.mma_lazy_rescale != 0;
  s.fp16_accumulators = c.mma_fp16_accumulate;
  s.border_mask = c.mma_border_mask != 0;
  s.producer_warps = c.mma_producer_warps;
  s.longest_first = c.mma_longest_first != 0;
  s.persistent = static_cast<MmaPersistent>(c.mma_persistent);
  s.split_kv = c.mma_split_kv != 0;
  s.pack_heads = c.mma_pack_heads != 0;
  s.strided = c.strided;
  s.varlen = c.varlen;
  s.kv = static_cast<MmaKv>(c.mma_kv_dtype);
  s.kv_block_scale = c.mma_kv_block_scale != 0;
  s.bf16 = c.dtype == Dtype::kBf16;
  s.input = !c.projected             ? MmaInput::kGiven
            : c.fuse_projection == 0 ? MmaInput::kPacked
            : c.fuse_projection == 1 ? MmaInput::kRecomputed
                                     : MmaInput::kClusterProjected;
  s.layernorm = c.projected && c.fuse_projection != 0 && c.fuse_layernorm != 0;
  s.dependent_launch = c.mma_dependent_launch != 0;
  s.bulk_copy = c.mma_bulk_copy != 0;
  return s;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_SHAPE_H_
