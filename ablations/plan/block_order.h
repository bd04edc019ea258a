// SPDX-License-Identifier: Apache-2.0
// The order in which a block times its arms: counterbalanced within a process.
//
// Contract
// - Blocks 2k and 2k + 1 of a process and shape are a random order and its mirror.
//   So of any two arms each goes first equally often, to within one where the number
//   of blocks is odd, and the mean place of every arm over a pair of blocks is the
//   middle: neither what one arm leaves behind for the next nor a drift along a
//   block favours an arm.
// - The order follows from the seed, the block and the arms' names alone, so a
//   resumed run draws the same. An arm that drops out leaves the order of the others
//   as it was: pairs of blocks around it are still mirrors.
//
//   const std::vector<int> order = BlockOrder(seed, block, {"a", "b", "floor"});

#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/random.h"

namespace warpledger::ablations {

// Indices into `arms`, whose names differ, in the order in which `block` times them.
// `seed` is of the process and the shape.
inline std::vector<int> BlockOrder(uint64_t seed, int block, const std::vector<std::string>& arms) {
  const uint64_t pair_seed = MixSeed(seed, static_cast<uint64_t>(block / 2));
  std::vector<uint64_t> keys;
  for (const std::string& arm : arms) keys.push_back(MixSeed(pair_seed, HashName(arm)));
  std::vector<int> order(arms.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(keys[static_cast<size_t>(a)], a) < std::pair(keys[static_cast<size_t>(b)], b);
  });
  if (block % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace warpledger::ablations
