// SPDX-License-Identifier: Apache-2.0
// The device part of 8-bit K and V: loads, and codes to fp16 (kv8.h has the algebra).

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_KV8_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_KV8_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sdpa/mma/fragment.cuh"
#include "kernels/sdpa/mma/instructions.cuh"
#include "kernels/sdpa/mma/kv8.h"
#include "kernels/sdpa/mma/shape.h"

namespace warpledger::sdpa {

// The lane's row address of an ldmatrix.x4 over 32 keys and 16 columns of bytes.
template <MmaLayout kLayout, int kColumns>
class ByteKeyAddress {
 public:
  __device__ ByteKeyAddress() : lane_offset_(ChunkOffset(kLayout, kColumns, threadIdx.x % 32, 0)) {}
  // `row` is a multiple of 32.
  __device__ uint32_t Block(uint32_t tile, int row, int chunk) const {
    return tile + MovedInRow(kLayout, lane_offset_, chunk * kMmaChunkBytes) +
           row * RowBytes(kLayout, kColumns);
  }

 private:
  uint32_t lane_offset_;
};

// A of 16 rows of Q with its columns in QkColumn's order: for each of rows g and g + 8 one
// load of four columns.
template <MmaLayout kLayout, int kHeadDim>
class PermutedQueryAddress {
 public:
  __device__ PermutedQueryAddress() {
    const int lane = threadIdx.x % 32;
    const int byte = QueryByte(lane, 0);
    lane_offset_ =
        ChunkOffset(kLayout, kHeadDim, lane / 4, byte / kMmaChunkBytes) + byte % kMmaChunkBytes;
  }
  // `row` is a multiple of 16.
  __device__ void Load(uint32_t (&a)[4], uint32_t tile, int row, int depth) const {
    const uint32_t upper = tile + MovedInRow(kLayout, lane_offset_, QueryByte(0, depth)) +
                           row * RowBytes(kLayout, kHeadDim);
    const uint32_t lower = upper + 8 * RowBytes(kLayout, kHeadDim);
    LoadSharedPairs(a[0], a[2], upper);
    LoadSharedPairs(a[1], a[3], lower);
  }

 private:
  uint32_t lane_offset_;
};

// Four codes to two packed fp16. A code's number is Unit() times what it gives.
template <MmaKv kKv>
class KvWiden {
 public:
  // `table`: shared-memory address of 256 fp16, with kUint8Table.
  __device__ explicit KvWiden(uint32_t table) : table_(table) {}

  // All threads of a CTA call it once, and a barrier follows before the first use.
  __device__ static void FillTable(uint32_t table, int threads) {
    if constexpr (kKv == MmaKv::kUint8Table) {
      for (int code = threadIdx.x; code < 256; code += threads) {
        const uint16_t bits = __half_as_ushort(__int2half_rn(code - 128));
        StoreSharedHalf(table + code * 2, bits);
      }
    }
  }

  // Bytes 0, 1 and 2, 3.
  __device__ void Neighbours(uint32_t word, uint32_t& first, uint32_t& second) const {
    Widen<0, 1, 2, 3>(word, first, second);
  }
  // Bytes 0, 2 and 1, 3.
  __device__ void Interleaved(uint32_t word, uint32_t& first, uint32_t& second) const {
    Widen<0, 2, 1, 3>(word, first, second);
  }

  __device__ static constexpr float Unit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
    if (kKv == MmaKv::kE4m3) return kE4m3BitsUnit;
#endif
    return 1.0f;
  }

 private:
  template <int kA, int kB, int kC, int kD>
  __device__ void Widen(uint32_t word, uint32_t& first, uint32_t& second) const {
    if constexpr (kKv == MmaKv::kUint8Arithmetic) {
      first = MinusMagic(Uint8PairPlusMagic(word, LowerHalves(kA, kB)));
      second = MinusMagic(Uint8PairPlusMagic(word, LowerHalves(kC, kD)));
    } else if constexpr (kKv == MmaKv::kUint8Table) {
      first = LookUp<kA>(word) | LookUp<kB>(word) << 16;
      second = LookUp<kC>(word) | LookUp<kD>(word) << 16;
    } else if constexpr (kKv == MmaKv::kE5m2) {
      first = E5m2PairBits(word, UpperHalves(kA, kB));
      second = E5m2PairBits(word, UpperHalves(kC, kD));
    } else {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
      first = E4m3PairBits(word, UpperHalves(kA, kB));
      second = E4m3PairBits(word, UpperHalves(kC, kD));
#else
      if constexpr (kB != 1) word = BytePermute(word, 0, kA | kB << 4 | kC << 8 | kD << 12);
      E4m3ToHalves(word, first, second);
#endif
    }
  }

  __device__ static uint32_t MinusMagic(uint32_t pair) {
    const half2 zero = __float2half2_rn(kUint8MagicZero);
    const half2 x = __hsub2(*reinterpret_cast<const half2*>(&pair), zero);
    return *reinterpret_cast<const uint32_t*>(&x);
  }
  template <int kByte>
  __device__ uint32_t LookUp(uint32_t word) const {
    return LoadSharedHalf(table_ + (word >> 8 * kByte & 0xffu) * 2);
  }

  uint32_t table_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_KV8_CUH_
