// SPDX-License-Identifier: Apache-2.0
// The geometry of an instance of the resident family: a value, host-safe.
//
// 64 query rows belong to a cluster. Parts divide the keys between them: the
// warpgroups of its CTAs. Each part takes one chunk of K/V at a time, whole.

#ifndef WARPLEDGER_KERNELS_SDPA_RESIDENT_SHAPE_H_
#define WARPLEDGER_KERNELS_SDPA_RESIDENT_SHAPE_H_

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/shared/warpgroup.h"

namespace warpledger::sdpa {

struct ResidentShape {
  int head_dim = 64;
  int warpgroups = 1;             // of a CTA
  int cluster = 1;                // CTAs that divide the keys
  int half = 64;                  // keys per product; a chunk is two of them
  bool causal = false;            // bottom-right aligned
  bool fp16_exchange = false;     // parts exchange O as fp16, not as fp32
  bool dependent_launch = false;  // starts before the kernel before it has ended

  friend constexpr bool operator==(const ResidentShape&, const ResidentShape&) = default;
};

constexpr int Parts(const ResidentShape& s) { return s.warpgroups * s.cluster; }
constexpr int ChunkKeys(const ResidentShape& s) { return 2 * s.half; }
constexpr int Threads(const ResidentShape& s) { return s.warpgroups * kWarpgroup; }

// Registers of O that a thread sends to each other part: head_dim / 2 values, over
// the parts.
constexpr int ExchangedRegisters(const ResidentShape& s) {
  return s.head_dim / 2 / Parts(s) / (s.fp16_exchange ? 2 : 1);
}

// mbarriers of each warpgroup: Q (the first one's alone), K, V, K and V read,
// statistics, outputs.
inline constexpr int kResidentBarriers = 6;

// With room for several CTAs on an SM the next kernel's pile up on the SMs that end
// first, and in the next round one SM has two of them to work on. This much leaves room
// for one: 2.65 us at mission_a with one warpgroup, 3.27 with 78 KB (two), 5.1 with
// what the tiles take (three; an earlier kernel that took 4.6 without).
inline constexpr int kDependentSmemBytes = 120 * 1024;

// Byte offsets in dynamic shared memory; tiles are 1024-byte aligned.
struct ResidentSmem {
  int q = 0;           // (head_dim / 64, 64, 64) fp16, swizzled
  int k = 0;           // (warpgroups, head_dim / 64, chunk, 64) fp16, swizzled
  int v = 0;           // likewise
  int statistics = 0;  // (warpgroups, parts, 4 warps, 8) of {max, max, sum, sum} fp32
  int outputs = 0;     // (warpgroups, parts - 1, registers / 4, 128) of 16 bytes
  int barriers = 0;    // (warpgroups, kResidentBarriers)
  int q_bytes = 0;
  int kv_bytes = 0;          // of a chunk of K or V
  int statistics_bytes = 0;  // of one part
  int outputs_bytes = 0;     // of one part
  int bytes = 0;             // with room to align the base to 1024
};

constexpr ResidentSmem MakeSmem(const ResidentShape& s) {
  ResidentSmem m;
  m.q_bytes = kRowsPerConsumer * s.head_dim * 2;
  m.kv_bytes = ChunkKeys(s) * s.head_dim * 2;
  m.statistics_bytes = 4 * 8 * 16;
  m.outputs_bytes = ExchangedRegisters(s) * 4 * kWarpgroup;
  m.k = m.q + m.q_bytes;
  m.v = m.k + s.warpgroups * m.kv_bytes;
  m.statistics = m.v + s.warpgroups * m.kv_bytes;
  m.outputs = m.statistics + s.warpgroups * Parts(s) * m.statistics_bytes;
  m.barriers = m.outputs + s.warpgroups * (Parts(s) - 1) * m.outputs_bytes;
  m.bytes = m.barriers + s.warpgroups * kResidentBarriers * 8 + 1024;
  if (s.dependent_launch && m.bytes < kDependentSmemBytes) m.bytes = kDependentSmemBytes;
  return m;
}

// The shape of a configuration of this family.
constexpr ResidentShape ResidentShapeOf(const Config& c) {
  ResidentShape s;
  s.head_dim = c.head_dim;
  s.causal = c.mask == Mask::kCausal;
  s.warpgroups = c.kv_warpgroups ? 2 : 1;
  s.cluster = c.cluster_split_kv > 0 ? c.cluster_split_kv : 1;
  s.fp16_exchange = c.fp16_exchange != 0;
  s.dependent_launch = c.dependent_launch != 0;
  return s;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_RESIDENT_SHAPE_H_
