// SPDX-License-Identifier: Apache-2.0
// A small generator whose sequence is the same with every standard library
// (SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014). The standard's distributions are not.

#ifndef WARPLEDGER_KERNELS_COMMON_RANDOM_H_
#define WARPLEDGER_KERNELS_COMMON_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

namespace warpledger {

// N(0, 1) of two uniform numbers in [0, 1) by Box and Muller, one of the pair.
inline double NormalOf(double radius, double angle) {
  return std::sqrt(-2.0 * std::log1p(-radius)) * std::cos(2.0 * std::numbers::pi * angle);
}

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  // Uniform in [0, n), n > 0. The bias, below n / 2^64, does not matter here.
  uint64_t Below(uint64_t n) { return Next() % n; }

  // N(0, 1).
  double Normal() {
    const double radius = Uniform();
    return NormalOf(radius, Uniform());
  }

 private:
  uint64_t state_;
};

// Mixes parts of a seed, so that (seed, process, block) name a stream.
inline uint64_t MixSeed(uint64_t seed, uint64_t part) {
  return SplitMix64(seed ^ (part * 0xd6e8feb86659fd93ull + 0x2545f4914f6cdd1dull)).Next();
}

// FNV-1a, to make a number of a name.
inline uint64_t HashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

// 0, 1, …, n - 1 in random order (Fisher and Yates).
inline std::vector<int> RandomOrder(int n, SplitMix64& random) {
  std::vector<int> order(n);
  for (int i = 0; i < n; ++i) order[i] = i;
  for (int i = n - 1; i > 0; --i) {
    std::swap(order[i], order[random.Below(static_cast<uint64_t>(i) + 1)]);
  }
  return order;
}

}  // namespace warpledger

#endif  // WARPLEDGER_KERNELS_COMMON_RANDOM_H_
