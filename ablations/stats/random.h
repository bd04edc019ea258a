// SPDX-License-Identifier: Apache-2.0
// The random numbers of the analysis: the same on every compiler and library.
//
// Contract: xoshiro256** (Blackman and Vigna, 2018, public domain), its state
// filled by SplitMix64. The distributions of <random> are left out on purpose:
// their algorithms are the implementer's choice, so a record would get other
// intervals from another standard library.
//
//   Random random(StreamSeed(20240601, "verdict:wmma_pv:mission_b"));
//   uint32_t index = random.Below(24);

#pragma once

#include <cstdint>
#include <string_view>

namespace warpledger::analysis {

// Advances `state` and returns the next number of the SplitMix64 sequence.
constexpr uint64_t SplitMix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// A seed of its own for each named figure, so that adding an arm or a shape to a
// record leaves the other figures' bytes as they were. FNV-1a over the name.
constexpr uint64_t StreamSeed(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  uint64_t state = seed ^ hash;
  return SplitMix64(state);
}

class Random {
 public:
  explicit constexpr Random(uint64_t seed) {
    for (uint64_t& word : state_) word = SplitMix64(seed);
  }

  constexpr uint64_t Next() {
    const uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = RotateLeft(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), without bias; bound > 0 (Lemire, 2019).
  constexpr uint32_t Below(uint32_t bound) {
    uint64_t product = (Next() >> 32) * bound;
    uint32_t low = static_cast<uint32_t>(product);
    if (low < bound) {
      const uint32_t threshold = (0u - bound) % bound;
      while (low < threshold) {
        product = (Next() >> 32) * bound;
        low = static_cast<uint32_t>(product);
      }
    }
    return static_cast<uint32_t>(product >> 32);
  }

  // Uniform in [0, 1).
  constexpr double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  static constexpr uint64_t RotateLeft(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  uint64_t state_[4] = {};
};

}  // namespace warpledger::analysis
