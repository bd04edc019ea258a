// SPDX-License-Identifier: Apache-2.0
// Whether a record still speaks of this tree's kernels.
//
// A record holds the hash of the machine code of each kernel that it timed, and TreeCode what the
// same instances compile to now: the two tell whether a change of the sources reached a kernel of
// the record. Without either, the hashes of the sources decide, which any change moves.
//
// What this does not see: kernels that are no instance (a library's projection, the peers), and
// what the host does before a launch.
//
// Contract: pure functions of their arguments. No errors.
//
//   const Staleness staleness = StalenessOf(summary, options);
//   if (staleness.IsStale()) Append(&out, WhatChanged(staleness));

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "reports/model/options.h"
#include "reports/model/summary.h"

namespace warpledger::report {

// A kernel that a record timed or profiled: an arm on a problem.
struct TimedKernel {
  std::string arm;
  std::string config;
  int64_t head_dim = 64;
  bool causal = false;
  std::string dtype = "fp16";
  bool projected = false;
  std::string code_sha256;  // empty: the record doesn't know
};

struct MadeOf {
  std::string kernel_source_sha256;
  std::string registry_sha256;
  std::string nvcc;                // empty: unknown
  std::string compute_capability;  // "9.0"
  std::vector<TimedKernel> kernels;
};

struct Staleness {
  enum class State { kSame, kChanged, kGone };
  struct Instance {
    std::string name;               // of the first arm that ran it, and what the problem fixed
    std::vector<std::string> arms;  // that ran it
    State state = State::kSame;
  };
  // Each instance once, in the record's order; none where machine code could not be compared.
  std::vector<Instance> instances;
  bool sources_changed = false;
  bool registry_changed = false;
  // Both empty unless another compiler made the record's kernels.
  std::string nvcc_then;
  std::string nvcc_now;

  // Whether the record speaks of other code than this tree's.
  bool IsStale() const;
  // The same of what these arms ran.
  bool IsStaleFor(absl::Span<const std::string> arms) const;
};

// Where `options` leave a hash empty, it is not compared.
Staleness CompareWithTree(const MadeOf& record, const RenderOptions& options);
Staleness StalenessOf(const Summary& summary, const RenderOptions& options);

// Of a stale record: "the machine code of 3 of its 12 instances changed: `a`, `b` and `c` (gone)",
// or "the kernels' sources changed".
std::string WhatChanged(const Staleness& staleness);

// Changes that don't make a record stale, in quiet sentences; "" where there are none.
std::string HarmlessChanges(const Staleness& staleness);

}  // namespace warpledger::report
