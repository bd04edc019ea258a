// SPDX-License-Identifier: Apache-2.0
// The index algebra of 8-bit K and V, on a CPU that plays the GPU: shared memory, ldmatrix
// and mma.m16n8k16 as the PTX ISA describes them, with the kernel's own address functions
// and bit formulas between them.

#include "kernels/sdpa/mma/kv8.h"

#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/common/bank_model.h"
#include "kernels/common/random.h"
#include "kernels/sdpa/dtype/fp16.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "kernels/sdpa/mma/conflicts.h"
#include "kernels/sdpa/problem/kv_quantise.h"

namespace warpledger::sdpa {
namespace {

constexpr int kLanes = 32;
constexpr MmaLayout kLayouts[] = {MmaLayout::kLinear, MmaLayout::kXorSwizzle, MmaLayout::kPadding};

using Memory = std::vector<uint8_t>;
template <int kRegisters>
using Registers = std::array<std::array<uint32_t, kRegisters>, kLanes>;  // [lane][register]

uint32_t Word(const Memory& memory, int address) {
  uint32_t word;
  std::memcpy(&word, &memory[address], 4);
  return word;
}

// ldmatrix.m8n8.x4.b16: lane i gives row i % 8 of matrix i / 8, of 16 bytes. Without .trans
// lane (g, t) gets elements 2t and 2t + 1 of row g; with it, element g of rows 2t, 2t + 1.
Registers<4> LdMatrix(const Memory& memory, const std::array<int, kLanes>& address, bool trans) {
  Registers<4> result{};
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto element = [&](int row, int column) {
      uint16_t bits;
      std::memcpy(&bits, &memory[address[matrix * 8 + row] + column * 2], 2);
      return static_cast<uint32_t>(bits);
    };
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4;
      const int t = lane % 4;
      result[lane][matrix] = trans ? element(2 * t, g) | element(2 * t + 1, g) << 16
                                   : element(g, 2 * t) | element(g, 2 * t + 1) << 16;
    }
  }
  return result;
}

double Half(uint32_t pair, int i) {
  return Fp16ToFloat(static_cast<Fp16>(pair >> 16 * i & 0xffff));
}

// mma.m16n8k16: C (16, 8) += A (16, 16) B (16, 8), by the fragments of the PTX ISA.
using C = std::array<std::array<double, 8>, 16>;
void Mma(const Registers<4>& a, const Registers<2>& b, C& c) {
  double full_a[16][16];
  double full_b[16][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4;
    const int t = lane % 4;
    for (int i = 0; i < 2; ++i) {
      for (int r = 0; r < 4; ++r) {
        full_a[g + r % 2 * 8][2 * t + r / 2 * 8 + i] = Half(a[lane][r], i);
      }
      for (int r = 0; r < 2; ++r) full_b[2 * t + r * 8 + i][g] = Half(b[lane][r], i);
    }
  }
  for (int row = 0; row < 16; ++row) {
    for (int n = 0; n < 8; ++n) {
      for (int k = 0; k < 16; ++k) c[row][n] += full_a[row][k] * full_b[k][n];
    }
  }
}

// A code's fp16 pair as the kernel widens it, bytes `i` and `j` of a word.
uint32_t WidenPair(MmaKv kv, uint32_t word, int i, int j) {
  switch (kv) {
    case MmaKv::kUint8Arithmetic: {
      const uint32_t pair = Uint8PairPlusMagic(word, LowerHalves(i, j));
      const auto minus = [&](int half) {
        return FloatToFp16(static_cast<float>(Half(pair, half)) - kUint8MagicZero);
      };
      return minus(0) | static_cast<uint32_t>(minus(1)) << 16;
    }
    case MmaKv::kE5m2:
      return E5m2PairBits(word, UpperHalves(i, j));
    default:
      return E4m3PairBits(word, UpperHalves(i, j));
  }
}
KvFormat FormatOf(MmaKv kv) {
  return kv == MmaKv::kUint8Arithmetic ? KvFormat::kUint8
         : kv == MmaKv::kE5m2          ? KvFormat::kE5m2
                                       : KvFormat::kE4m3;
}
double UnitOf(MmaKv kv) { return kv == MmaKv::kE4m3 ? kE4m3BitsUnit : 1; }

constexpr MmaKv kFormulas[] = {MmaKv::kUint8Arithmetic, MmaKv::kE4m3, MmaKv::kE5m2};

TEST(BytePermute, PicksBytesOfBothWords) {
  EXPECT_EQ(BytePermute(0x33221100, 0x77665544, 0x7520), 0x77552200u);
  EXPECT_EQ(BytePermute(0x33221100, 0x77665544, 0x3210), 0x33221100u);
}

TEST(Widening, GivesEveryCodesNumberInEveryPlace) {
  for (const MmaKv kv : kFormulas) {
    for (int code = 0; code < 256; ++code) {
      const float number = CodeNumber(FormatOf(kv), static_cast<uint8_t>(code));
      if (!std::isfinite(number)) continue;
      for (int place = 0; place < 4; ++place) {
        const uint32_t word = static_cast<uint32_t>(code) << 8 * place;
        for (int other = 0; other < 4; ++other) {
          EXPECT_EQ(Half(WidenPair(kv, word, place, other), 0) * UnitOf(kv), number);
          EXPECT_EQ(Half(WidenPair(kv, word, other, place), 1) * UnitOf(kv), number);
        }
      }
    }
  }
}

TEST(QkColumn, IsAPermutationThatALaneReadsInOneGo) {
  std::set<int> seen;
  for (int k = 0; k < 16; ++k) seen.insert(QkColumn(k));
  EXPECT_EQ(seen.size(), 16u);
  for (int t = 0; t < 4; ++t) {
    const int of_lane[] = {2 * t, 2 * t + 1, 2 * t + 8, 2 * t + 9};
    for (int i = 0; i < 4; ++i) EXPECT_EQ(QkColumn(of_lane[i]), 4 * t + i);
  }
}

TEST(OutputColumn, IsAPermutationOfTheHead) {
  for (const bool is_8bit : {false, true}) {
    std::set<int> seen;
    for (int block = 0; block < 8; ++block) {
      for (int n = 0; n < 8; ++n) seen.insert(OutputColumn(is_8bit, block, n));
    }
    EXPECT_EQ(seen.size(), 64u);
    EXPECT_EQ(*seen.rbegin(), 63);
  }
  EXPECT_EQ(OutputColumn(false, 3, 5), 29);
}

// What the kernel computes once per lane and moves, against the address itself.
TEST(MovedInRow, ReachesEveryBlockOfEveryLayout) {
  for (const MmaLayout layout : kLayouts) {
    for (const int head_dim : {64, 128}) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const auto key = static_cast<uint32_t>(ChunkOffset(layout, head_dim / 2, lane, 0));
        const int byte = QueryByte(lane, 0);
        const auto query = static_cast<uint32_t>(
            ChunkOffset(layout, head_dim, lane / 4, byte / kMmaChunkBytes) + byte % kMmaChunkBytes);
        for (int depth = 0; depth < head_dim / 16; ++depth) {
          for (const int row : {0, 32, 64}) {
            EXPECT_EQ(MovedInRow(layout, key, depth * kMmaChunkBytes) +
                          row * RowBytes(layout, head_dim / 2),
                      ChunkOffset(layout, head_dim / 2, row + lane, depth));
            const int moved = QueryByte(lane, depth);
            for (const int half : {0, 8}) {
              EXPECT_EQ(
                  MovedInRow(layout, query, QueryByte(0, depth)) +
                      (row + half) * RowBytes(layout, head_dim),
                  ChunkOffset(layout, head_dim, row + half + lane / 4, moved / 16) + moved % 16);
            }
          }
        }
      }
    }
  }
}

// A warp's 16 rows of Q and a tile of 64 keys.
class Tile {
 public:
  Tile(MmaLayout layout, int head_dim, MmaKv kv) : layout_(layout), head_dim_(head_dim), kv_(kv) {
    SplitMix64 random(7);
    const int columns = head_dim / 2;  // of a row of bytes, in units of two
    q_.resize(16 * RowBytes(layout, head_dim));
    codes_.resize(kKeys * RowBytes(layout, columns));
    for (int row = 0; row < 16; ++row) {
      for (int d = 0; d < head_dim; ++d) {
        q_value_[row][d] = RoundToFp16(static_cast<float>(random.Normal()));
        const Fp16 bits = FloatToFp16(q_value_[row][d]);
        std::memcpy(&q_[ChunkOffset(layout, head_dim, row, d / 8) + d % 8 * 2], &bits, 2);
      }
    }
    for (int key = 0; key < kKeys; ++key) {
      for (int d = 0; d < head_dim; ++d) {
        uint8_t code;
        do {
          code = static_cast<uint8_t>(random.Below(256));
        } while (!std::isfinite(CodeNumber(FormatOf(kv), code)));
        number_[key][d] = CodeNumber(FormatOf(kv), code);
        codes_[ChunkOffset(layout, columns, key, d / 16) + d % 16] = code;
      }
    }
  }

  // As AddScoresOfCodes, over all of head_dim: S of 16 rows and all keys.
  std::vector<std::vector<double>> Scores() const {
    std::vector<C> sums(kKeys / 8);
    for (int depth = 0; depth < head_dim_ / 16; ++depth) {
      Registers<4> a;
      for (int lane = 0; lane < kLanes; ++lane) {
        const int byte = QueryByte(lane, depth);
        for (int half = 0; half < 2; ++half) {
          const int at =
              ChunkOffset(layout_, head_dim_, lane / 4 + half * 8, byte / 16) + byte % 16;
          a[lane][half] = Word(q_, at);
          a[lane][half + 2] = Word(q_, at + 4);
        }
      }
      for (int n = 0; n < kKeys / 8; n += kKeysPerByteLoad / 8) {
        std::array<int, kLanes> address;
        for (int lane = 0; lane < kLanes; ++lane) {
          address[lane] = ChunkOffset(layout_, head_dim_ / 2, n * 8 + lane, depth);
        }
        const Registers<4> words = LdMatrix(codes_, address, false);
        for (int j = 0; j < 4; ++j) {
          Registers<2> b;
          for (int lane = 0; lane < kLanes; ++lane) {
            b[lane] = {WidenPair(kv_, words[lane][j], 0, 1), WidenPair(kv_, words[lane][j], 2, 3)};
          }
          Mma(a, b, sums[n + j]);
        }
      }
    }
    std::vector<std::vector<double>> scores(16, std::vector<double>(kKeys));
    for (int row = 0; row < 16; ++row) {
      for (int key = 0; key < kKeys; ++key)
        scores[row][key] = sums[key / 8][row][key % 8] * UnitOf(kv_);
    }
    return scores;
  }

  // As AccumulateCodes, with Q's first kKeys columns' stand-in for P: O of 16 rows.
  std::vector<std::vector<double>> Output(const std::vector<std::vector<float>>& probs) const {
    std::vector<C> out(head_dim_ / 8);
    for (int k = 0; k < kKeys / 16; ++k) {
      Registers<4> a;
      for (int lane = 0; lane < kLanes; ++lane) {
        const int g = lane / 4;
        const int t = lane % 4;
        for (int r = 0; r < 4; ++r) {
          const auto at = [&](int i) {
            return static_cast<uint32_t>(
                FloatToFp16(probs[g + r % 2 * 8][k * 16 + 2 * t + r / 2 * 8 + i]));
          };
          a[lane][r] = at(0) | at(1) << 16;
        }
      }
      for (int d = 0; d < head_dim_ / 8; d += 4) {
        std::array<int, kLanes> address;
        for (int lane = 0; lane < kLanes; ++lane) {
          address[lane] =
              ChunkOffset(layout_, head_dim_ / 2, k * 16 + lane % 16, d / 4 * 2 + lane / 16);
        }
        const Registers<4> words = LdMatrix(codes_, address, true);
        for (int half = 0; half < 2; ++half) {
          Registers<2> even;
          Registers<2> odd;
          for (int lane = 0; lane < kLanes; ++lane) {
            for (int i = 0; i < 2; ++i) {
              even[lane][i] = WidenPair(kv_, words[lane][2 * half + i], 0, 2);
              odd[lane][i] = WidenPair(kv_, words[lane][2 * half + i], 1, 3);
            }
          }
          Mma(a, even, out[d + 2 * half]);
          Mma(a, odd, out[d + 2 * half + 1]);
        }
      }
    }
    std::vector<std::vector<double>> result(16, std::vector<double>(head_dim_));
    for (int row = 0; row < 16; ++row) {
      for (int block = 0; block < head_dim_ / 8; ++block) {
        for (int n = 0; n < 8; ++n) {
          result[row][OutputColumn(true, block, n)] = out[block][row][n] * UnitOf(kv_);
        }
      }
    }
    return result;
  }

  static constexpr int kKeys = 64;
  float q_value_[16][128];
  float number_[kKeys][128];

 private:
  MmaLayout layout_;
  int head_dim_;
  MmaKv kv_;
  Memory q_;
  Memory codes_;
};

TEST(Kv8Fragments, GiveQkTOfPlainArithmetic) {
  for (const MmaLayout layout : kLayouts) {
    for (const int head_dim : {64, 128}) {
      for (const MmaKv kv : kFormulas) {
        const Tile tile(layout, head_dim, kv);
        const auto scores = tile.Scores();
        for (int row = 0; row < 16; ++row) {
          for (int key = 0; key < Tile::kKeys; ++key) {
            double expected = 0;
            double size = 0;
            for (int d = 0; d < head_dim; ++d) {
              const double term = double{tile.q_value_[row][d]} * tile.number_[key][d];
              expected += term;
              size += std::fabs(term);
            }
            ASSERT_NEAR(scores[row][key], expected, 1e-12 * size) << row << " " << key;
          }
        }
      }
    }
  }
}

TEST(Kv8Fragments, GivePvOfPlainArithmetic) {
  SplitMix64 random(8);
  std::vector<std::vector<float>> probs(16, std::vector<float>(Tile::kKeys));
  for (auto& row : probs) {
    for (float& p : row) p = RoundToFp16(static_cast<float>(random.Uniform()));
  }
  for (const MmaLayout layout : kLayouts) {
    for (const int head_dim : {64, 128}) {
      for (const MmaKv kv : kFormulas) {
        const Tile tile(layout, head_dim, kv);
        const auto out = tile.Output(probs);
        for (int row = 0; row < 16; ++row) {
          for (int d = 0; d < head_dim; ++d) {
            double expected = 0;
            double size = 0;
            for (int key = 0; key < Tile::kKeys; ++key) {
              const double term = double{probs[row][key]} * tile.number_[key][d];
              expected += term;
              size += std::fabs(term);
            }
            ASSERT_NEAR(out[row][d], expected, 1e-12 * size) << row << " " << d;
          }
        }
      }
    }
  }
}

// The swizzle and the padding keep 8-bit tiles free of conflicts too.
TEST(Kv8Loads, AreFreeOfConflictsUnderSwizzleAndPadding) {
  for (const int head_dim : {64, 128}) {
    for (const MmaLayout layout : {MmaLayout::kXorSwizzle, MmaLayout::kPadding}) {
      for (int depth = 0; depth < head_dim / 16; ++depth) {
        bank_model::LaneAddresses keys{};
        for (int lane = 0; lane < kLanes; ++lane) {
          keys[lane] = ChunkOffset(layout, head_dim / 2, lane, depth);
        }
        EXPECT_EQ(bank_model::Wavefronts(keys, kMmaChunkBytes), 4) << head_dim << " " << depth;
      }
      for (int block = 0; block < head_dim / 32; ++block) {
        EXPECT_EQ(bank_model::Wavefronts(BlockLoad(layout, head_dim / 2, true, 16, block),
                                         kMmaChunkBytes),
                  4);
      }
    }
  }
}

TEST(Kv8Shape, HalvesTheTilesOfKAndV) {
  MmaShape s = {.stages = 2, .layout = MmaLayout::kXorSwizzle, .v_transposed = true};
  const int wide = MakeSmem(s).kv_bytes;
  for (const MmaKv kv : {MmaKv::kUint8Arithmetic, MmaKv::kUint8Table, MmaKv::kE4m3, MmaKv::kE5m2}) {
    s.kv = kv;
    EXPECT_STREQ(WhyIllegal(s), "");
    EXPECT_EQ(MakeSmem(s).kv_bytes, wide / 2);
  }
  s.kv = MmaKv::kUint8Arithmetic;
  const int without_table = MakeSmem(s).bytes;
  s.kv = MmaKv::kUint8Table;
  EXPECT_EQ(MakeSmem(s).bytes, without_table + 512);
}

TEST(Kv8Shape, RefusesWhatItCannotLoadOrSum) {
  const MmaShape good = {.v_transposed = true, .kv = MmaKv::kE4m3};
  EXPECT_STREQ(WhyIllegal(good), "");
  for (const auto change :
       {+[](MmaShape& s) { s.v_transposed = false; },
        +[](MmaShape& s) { s.fp16_accumulators = kFp16Output; },
        +[](MmaShape& s) { s.tile_n = 48; }, +[](MmaShape& s) { s.bf16 = true; }}) {
    MmaShape bad = good;
    change(bad);
    EXPECT_STRNE(WhyIllegal(bad), "");
  }
}

}  // namespace
}  // namespace warpledger::sdpa
