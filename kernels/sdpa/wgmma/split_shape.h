// The geometry of the split-KV kernel of the wgmma family: a value, host-safe.
//
// Parts divide the keys of 64 query rows between them: `warpgroups` of a CTA times
// `cluster` CTAs. Each takes every Parts-th chunk of the keys.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SPLIT_SHAPE_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SPLIT_SHAPE_H_

#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

struct SplitShape {
  int head_dim = 64;
  int warpgroups = 1;          // of a CTA, all with the same 64 query rows
  int cluster = 1;             // CTAs that divide the keys
  int half = 64;               // keys per product; a chunk is two of them
  int stages = 1;              // chunks of a part in shared memory
  bool causal = false;         // bottom-right aligned
  bool fp16_exchange = false;  // parts exchange their share of O as fp16, not fp32
  bool dependent_launch = false;

  friend constexpr bool operator==(const SplitShape&, const SplitShape&) = default;
};

constexpr int Parts(const SplitShape& s) { return s.warpgroups * s.cluster; }
constexpr int ChunkKeys(const SplitShape& s) { return 2 * s.half; }
constexpr int Threads(const SplitShape& s) { return s.warpgroups * kWarpgroup; }

// How parts join. Up to eight exchange shares of O held in registers. More, up to 32,
// leave O in their own shared memory and each CTA gathers a range of columns: work in
// proportion to the rows that exist, which suits decoding.
constexpr bool GatherJoin(const SplitShape& s) { return Parts(s) > 8 || s.stages > 1; }

// Registers that a thread sends to each other part: its share of two rows of O,
// head_dim / 2 values, over the parts.
constexpr int ExchangedRegisters(const SplitShape& s) {
  if (GatherJoin(s)) return 4;  // no such exchange
  return s.head_dim / 2 / Parts(s) / (s.fp16_exchange ? 2 : 1);
}

// Byte offsets in dynamic shared memory; tiles are 1024-byte aligned.
struct SplitSmem {
  int q = 0;               // (head_dim / 64, 64, 64) fp16, swizzled
  int k = 0;               // (warpgroups, stages, head_dim / 64, chunk, 64) fp16, swizzled
  int v = 0;               // likewise
  int statistics = 0;      // (warpgroups, parts, 4 warps, 8) of {max, max, sum, sum} fp32
  int outputs = 0;         // (warpgroups, parts - 1, registers / 4, 128) of 16 bytes
  int barriers = 0;        // BarriersPerPart per warpgroup
  int q_bytes = 0;
  int kv_bytes = 0;          // of a chunk of K or V
  int statistics_bytes = 0;  // of one part
  int outputs_bytes = 0;     // of one part
  int bytes = 0;             // with room to align the base to 1024
};

inline constexpr int kFixedBarriers = 3;  // Q, statistics, outputs
constexpr int BarriersPerPart(const SplitShape& s) { return kFixedBarriers + 2 * s.stages; }

constexpr SplitSmem MakeSmem(const SplitShape& s) {
  SplitSmem m;
  m.q_bytes = kRowsPerConsumer * s.head_dim * 2;
  m.kv_bytes = ChunkKeys(s) * s.head_dim * 2;
  m.statistics_bytes = 4 * 8 * 16;
  m.outputs_bytes = ExchangedRegisters(s) * 4 * kWarpgroup;
  m.k = m.q + m.q_bytes;
  m.v = m.k + s.warpgroups * s.stages * m.kv_bytes;
  m.statistics = m.v + s.warpgroups * s.stages * m.kv_bytes;
  if (GatherJoin(s)) {
    // O takes the place of the part's K and V, which it has read by then.
    m.statistics_bytes = kRowsPerConsumer * 8;
    m.outputs = m.k;
    m.outputs_bytes = kRowsPerConsumer * s.head_dim * 4;
    m.barriers = m.statistics + s.warpgroups * m.statistics_bytes;
  } else {
    m.outputs = m.statistics + s.warpgroups * Parts(s) * m.statistics_bytes;
    m.barriers = m.outputs + s.warpgroups * (Parts(s) - 1) * m.outputs_bytes;
  }
  m.bytes = m.barriers + s.warpgroups * BarriersPerPart(s) * 8 + 1024;
  return m;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SPLIT_SHAPE_H_
