// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/bank_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>

#include "kernels/common/random.h"

namespace warpledger::bank_model {
namespace {

// The rule again, in the words of the specification and with sets instead of
// counters, so that a slip in one of the two shows.
int WavefrontsBySets(const LaneAddresses& addresses, int access_bytes, uint32_t active) {
  std::map<int, std::map<int, std::set<uint32_t>>> rows;  // phase, bank -> rows
  for (int lane = 0; lane < 32; ++lane) {
    if ((active & (1u << lane)) == 0) continue;
    const int phase = lane * access_bytes / 128;
    for (uint32_t byte = addresses[lane]; byte < addresses[lane] + access_bytes; ++byte) {
      rows[phase][byte % 128 / 4].insert(byte / 128);
    }
  }
  int total = 0;
  for (const auto& [phase, banks] : rows) {
    size_t busiest = 0;
    for (const auto& [bank, distinct] : banks) busiest = std::max(busiest, distinct.size());
    total += static_cast<int>(busiest);
  }
  return total;
}

TEST(BankModel, AgreesWithSetsOnRandomAddresses) {
  SplitMix64 random(20251);
  for (const int bytes : {4, 8, 16}) {
    for (const uint32_t span : {128u, 512u, 4096u, 200u * 1024u}) {
      for (int round = 0; round < 2000; ++round) {
        LaneAddresses addresses{};
        for (uint32_t& address : addresses.bytes) {
          address = static_cast<uint32_t>(random.Below(span / bytes)) * bytes;
        }
        const auto active = static_cast<uint32_t>(round % 2 ? random.Next() : 0xffffffffu);
        ASSERT_EQ(Wavefronts(addresses, bytes, active), WavefrontsBySets(addresses, bytes, active))
            << bytes << " bytes per lane, span " << span << ", round " << round;
      }
    }
  }
}

// Lanes n units apart hit 32 banks (or half, or quarter the lanes of a phase)
// gcd(n, lanes of a phase) deep: the textbook rule, for every stride and base.
TEST(BankModel, GivesTheGreatestCommonDivisorForEveryStride) {
  for (const int bytes : {4, 8, 16}) {
    const int phase_lanes = LanesPerPhase(bytes);
    const int phases = 32 / phase_lanes;
    EXPECT_EQ(Wavefronts(Strided(0), bytes), phases) << "one word for all lanes is a broadcast";
    for (int units = 1; units <= 256; ++units) {
      for (int base = 0; base < 128; base += bytes) {
        ASSERT_EQ(Wavefronts(Strided(units * bytes, base), bytes),
                  phases * std::gcd(units, phase_lanes))
            << bytes << " bytes per lane, stride " << units << " units, base " << base;
      }
    }
  }
}

TEST(BankModel, CountsAWordThatSeveralLanesReadOnce) {
  LaneAddresses pairs{};
  for (int lane = 0; lane < 32; ++lane) pairs[lane] = lane / 2 * 4;
  EXPECT_EQ(Wavefronts(pairs, 4), 1);
  LaneAddresses two_rows{};  // 31 lanes share a word, one reads the row below
  two_rows[31] = 128;
  EXPECT_EQ(Wavefronts(two_rows, 4), 2);
}

TEST(BankModel, LeavesInactiveLanesOut) {
  const LaneAddresses column = Strided(128);
  EXPECT_EQ(Wavefronts(column, 4), 32);
  for (int lanes = 0; lanes < 32; ++lanes) {
    EXPECT_EQ(Wavefronts(column, 4, (1u << lanes) - 1), lanes);
  }
}

TEST(BankModel, RefusesWhatTheHardwareFaultsOn) {
  EXPECT_EQ(Wavefronts(Strided(2), 2), kInvalidAccess);
  EXPECT_EQ(Wavefronts(Strided(32), 32), kInvalidAccess);
  for (const int bytes : {4, 8, 16}) {
    for (int lane = 0; lane < 32; ++lane) {
      LaneAddresses addresses = Strided(bytes);
      addresses[lane] += bytes / 2;
      EXPECT_EQ(Wavefronts(addresses, bytes), kInvalidAccess);
      EXPECT_NE(Wavefronts(addresses, bytes, ~(1u << lane)), kInvalidAccess) << "lane is off";
    }
  }
}

TEST(IdealWavefronts, Moves128BytesPerWavefront) {
  for (const int bytes : {4, 8, 16}) EXPECT_EQ(IdealWavefronts(bytes), 32 * bytes / 128);
  for (const int matrices : {1, 2, 4}) {
    EXPECT_EQ(IdealWavefronts(16, LdmatrixLanes(matrices)), matrices);
  }
}

// What the leading dimensions of the fragment benchmark should show: rows that
// are an odd number of 16-byte chunks apart are free of conflicts.
TEST(LdmatrixRows, ConflictsFollowTheLeadingDimension) {
  for (int ld_chunks = 2; ld_chunks <= 64; ++ld_chunks) {
    const int ways = std::gcd(ld_chunks, 8);
    for (int first_chunk = 0; first_chunk + 2 <= ld_chunks; ++first_chunk) {
      for (const int first_row : {0, 8, 16, 48}) {
        const LaneAddresses rows = LdmatrixRows(
            {.ld_bytes = ld_chunks * 16, .first_row = first_row, .first_chunk = first_chunk});
        for (const int matrices : {1, 2, 4}) {
          ASSERT_EQ(Wavefronts(rows, 16, LdmatrixLanes(matrices)), ways * matrices)
              << ld_chunks << " chunks per row, " << matrices << " matrices";
        }
      }
    }
  }
}

TEST(LdmatrixRows, AnXorSwizzleIsFreeOfConflictsForEveryPowerOfTwo) {
  for (int ld_chunks = 2; ld_chunks <= 64; ld_chunks *= 2) {
    for (int first_chunk = 0; first_chunk + 2 <= ld_chunks; ++first_chunk) {
      for (int first_row = 0; first_row < 64; first_row += 8) {
        const LaneAddresses rows = LdmatrixRows({.ld_bytes = ld_chunks * 16,
                                                 .first_row = first_row,
                                                 .first_chunk = first_chunk,
                                                 .swizzle = true});
        ASSERT_EQ(Wavefronts(rows, 16), 4) << ld_chunks << " chunks per row, row " << first_row;
      }
    }
  }
}

TEST(XorSwizzle, PermutesEachRow) {
  for (int row_chunks = 1; row_chunks <= 64; row_chunks *= 2) {
    for (int row = 0; row < 64; ++row) {
      std::set<int> places;
      for (int chunk = 0; chunk < row_chunks; ++chunk) {
        const int place = XorSwizzle(row, chunk, row_chunks);
        EXPECT_GE(place, 0);
        EXPECT_LT(place, row_chunks);
        places.insert(place);
      }
      EXPECT_EQ(places.size(), static_cast<size_t>(row_chunks)) << "row " << row;
    }
  }
}

// Usable in static_assert, which is how a kernel would hold its layout to it.
static_assert(Wavefronts(LdmatrixRows({.ld_bytes = 128}), 16) == 32);
static_assert(Wavefronts(LdmatrixRows({.ld_bytes = 144}), 16) == 4);
static_assert(Wavefronts(LdmatrixRows({.ld_bytes = 128, .swizzle = true}), 16) == 4);

}  // namespace
}  // namespace warpledger::bank_model
