// SPDX-License-Identifier: Apache-2.0
// How K and V are stored where it is not the problem's dtype: a value, host-safe.

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_KV_SCHEME_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_KV_SCHEME_H_

namespace warpledger::sdpa {

enum class KvFormat {
  kUint8,  // code - 128 is an integer of -127 to 127: the L4 notes' "simulated FP8"
  kE4m3,
  kE5m2,
};

// What shares a scale.
enum class ScaleScope {
  kTensor,  // everything
  kHead,    // a head of K or V of one batch
  kBlock,   // `block_keys` keys of it, in a row
};

struct KvScheme {
  KvFormat format = KvFormat::kE4m3;
  ScaleScope scope = ScaleScope::kHead;
  int block_keys = 64;  // with kBlock

  friend constexpr bool operator==(const KvScheme&, const KvScheme&) = default;
};

// What a kernel reads K and V as.
struct KvStorage {
  bool quantised = false;  // else the problem's dtype
  KvScheme scheme = {};
  bool queries = false;  // Q too, with a scale per head; and P is rounded to the format
  bool output = false;   // O too, with one scale

  friend constexpr bool operator==(const KvStorage&, const KvStorage&) = default;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_KV_SCHEME_H_
