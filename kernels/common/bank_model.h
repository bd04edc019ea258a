// SPDX-License-Identifier: Apache-2.0
// How many wavefronts a warp's access to shared memory takes: its bank conflicts,
// predicted on the host from the lanes' addresses.
//
// Model. Shared memory has 32 banks of 4 bytes, and successive words lie in
// successive banks (CUDA C++ Programming Guide, "Shared Memory" of compute
// capability 5.x and later). A warp's access runs in phases: all 32 lanes at once
// for 4 bytes per lane, half-warps for 8, quarter-warps of 8 lanes for 16 (GTC
// 2019, S9593, "cuTENSOR", slides on conflict-free loads). A phase takes one
// wavefront for each distinct word that its busiest bank holds; lanes that read
// the same word share it. ldmatrix reads 8 rows of 16 bytes per matrix, whose
// addresses come from 8 neighbouring lanes (PTX ISA, "ldmatrix"): to the banks it
// is a 16-byte access by the lanes that carry addresses.
//
// Limit: words shared between two phases are counted in both. The hardware may
// merge such phases, so for broadcasts of 8 and 16 bytes this is an upper bound.
// micro/shared_memory.cu holds the model against measured cycles.
//
//   constexpr auto rows = bank_model::LdmatrixRows({.ld_bytes = 128});
//   static_assert(bank_model::Wavefronts(rows, 16) == 32);  // 8-way, 4 matrices

#ifndef WARPLEDGER_KERNELS_COMMON_BANK_MODEL_H_
#define WARPLEDGER_KERNELS_COMMON_BANK_MODEL_H_

#include <cstdint>

namespace warpledger::bank_model {

inline constexpr int kLanes = 32;
inline constexpr int kBanks = 32;
inline constexpr int kBankBytes = 4;
inline constexpr int kRowBytes = kBanks * kBankBytes;  // one word of every bank
inline constexpr int kChunkBytes = 16;                 // a row of an ldmatrix matrix

// What Wavefronts returns for an access that the hardware would fault on.
inline constexpr int kInvalidAccess = -1;

// Byte addresses in shared memory, by lane.
// No std::array: with <array> each kernel would read a dozen of the library's headers.
struct LaneAddresses {
  uint32_t bytes[kLanes];

  constexpr uint32_t& operator[](int lane) { return bytes[lane]; }
  constexpr const uint32_t& operator[](int lane) const { return bytes[lane]; }
};

// Lanes served together, for 4, 8 or 16 bytes per lane; 0 for any other width.
constexpr int LanesPerPhase(int access_bytes) {
  return access_bytes == 4 || access_bytes == 8 || access_bytes == 16
             ? kLanes * kBankBytes / access_bytes
             : 0;
}

// Wavefronts of one access of `access_bytes` (4, 8 or 16) per lane by the lanes
// in `active`. kInvalidAccess for another width or an address that isn't a
// multiple of it.
constexpr int Wavefronts(const LaneAddresses& addresses, int access_bytes,
                         uint32_t active = 0xffffffffu) {
  const int phase_lanes = LanesPerPhase(access_bytes);
  if (phase_lanes == 0) return kInvalidAccess;
  const int words_per_lane = access_bytes / kBankBytes;
  int wavefronts = 0;
  for (int first = 0; first < kLanes; first += phase_lanes) {
    uint32_t seen[kLanes] = {};  // distinct words of this phase
    int load[kBanks] = {};       // distinct words of each bank
    int distinct = 0;
    int busiest = 0;
    for (int lane = first; lane < first + phase_lanes; ++lane) {
      if ((active >> lane & 1u) == 0) continue;
      if (addresses[lane] % access_bytes != 0) return kInvalidAccess;
      for (int i = 0; i < words_per_lane; ++i) {
        const uint32_t word = addresses[lane] / kBankBytes + i;
        bool known = false;
        for (int j = 0; j < distinct && !known; ++j) known = seen[j] == word;
        if (known) continue;
        seen[distinct++] = word;
        const int words = ++load[word % kBanks];
        if (words > busiest) busiest = words;
      }
    }
    wavefronts += busiest;
  }
  return wavefronts;
}

// Wavefronts of the same access without a conflict.
constexpr int IdealWavefronts(int access_bytes, uint32_t active = 0xffffffffu) {
  LaneAddresses linear{};
  for (int lane = 0; lane < kLanes; ++lane) linear[lane] = lane * access_bytes;
  return Wavefronts(linear, access_bytes, active);
}

// Lane i at base + i * stride.
constexpr LaneAddresses Strided(uint32_t stride_bytes, uint32_t base = 0) {
  LaneAddresses addresses{};
  for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base + lane * stride_bytes;
  return addresses;
}

// The 16-byte chunk of its row at which an XOR swizzle keeps chunk `chunk` of row
// `row`, in rows of `row_chunks` chunks (a power of two). Any 8 rows in a row that
// starts at a multiple of 8 then spread over all 8 chunk-wide groups of banks. A
// permutation within the row: no byte is wasted, but row and column no longer
// give the address by one leading dimension, so wmma::load_matrix_sync, which
// takes only that, can't read it; ldmatrix, with an address per row, can.
constexpr int XorSwizzle(int row, int chunk, int row_chunks) {
  constexpr int kGroups = kRowBytes / kChunkBytes;
  const int rows_per_line = row_chunks < kGroups ? kGroups / row_chunks : 1;
  const int mask = (row_chunks < kGroups ? row_chunks : kGroups) - 1;
  return chunk ^ (row / rows_per_line & mask);
}

// A 16 x 16 fp16 block of a tile in shared memory, as ldmatrix.x4 reads it.
struct FragmentBlock {
  int ld_bytes = 0;      // bytes between rows, a multiple of 16
  int first_row = 0;     // a multiple of 8
  int first_chunk = 0;   // the block's first column / 8
  bool swizzle = false;  // XorSwizzle; then ld_bytes is a power of two
};

// The row addresses by lane: lanes 0 to 15 carry rows 0 to 15 at the first chunk,
// lanes 16 to 31 the same rows one chunk on. That is what ptxas emits for
// wmma::load_matrix_sync of a row-major A or a column-major B, m16n16k16, and,
// with .trans, of the other two. For .x2 the first 16 lanes count, for .x1 8.
constexpr LaneAddresses LdmatrixRows(const FragmentBlock& block) {
  LaneAddresses addresses{};
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = block.first_row + lane % 16;
    int chunk = block.first_chunk + lane / 16;
    if (block.swizzle) chunk = XorSwizzle(row, chunk, block.ld_bytes / kChunkBytes);
    addresses[lane] = row * block.ld_bytes + chunk * kChunkBytes;
  }
  return addresses;
}

// Lanes that carry addresses for ldmatrix of 1, 2 or 4 matrices.
constexpr uint32_t LdmatrixLanes(int matrices) {
  return matrices == 4 ? 0xffffffffu : (1u << matrices * 8) - 1;
}

}  // namespace warpledger::bank_model

#endif  // WARPLEDGER_KERNELS_COMMON_BANK_MODEL_H_
