// SPDX-License-Identifier: Apache-2.0
// What one call of a captured chain of equal calls launches, read back from the graph:
// the evidence that a kernel, an attribute or a kind of dependency was launched and not
// only asked for.
//
// A line per node, in order:
//   kernel <symbol> grid 64x1x1 block 128x1x1 smem 49152 B [cluster 8x1x1]
//       [window 1048576 B hit 1.00] [what `describe` says] [after programmatic]
// Other nodes are called by their type. "after programmatic": the dependency on the node
// before is one of programmatic dependent launch, not a full one.
//
//   absl::StatusOr<std::vector<std::string>> lines = CallLines(graph, launches);

#ifndef WARPLEDGER_MICRO_HARNESS_CALL_LINES_H_
#define WARPLEDGER_MICRO_HARNESS_CALL_LINES_H_

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "micro/harness/replay.h"

namespace warpledger::harness {

// The lines of the second of `calls` calls (of the first where there is one): the first
// has nothing in front of it. FailedPrecondition where the graph is no chain, or its
// nodes are no multiple of `calls`.
absl::StatusOr<std::vector<std::string>> CallLines(cudaGraph_t graph, int calls,
                                                   const DescribeParameter& describe = nullptr);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_CALL_LINES_H_
