// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/pack/sha256.h"

#include <sys/types.h>
// After it: libmd's header needs its types.
#include <sha2.h>

#include <array>
#include <cstddef>
#include <cstdint>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace warpledger::ablations {
namespace {

#ifdef __x86_64__

constexpr size_t kShaBlockBytes = 64;
// The first 32 bits behind the point of the cube roots of the first 64 primes (FIPS 180-4).
alignas(16) constexpr uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

bool HasShaInstructions() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

// state: a to h, 32 bits each; data: whole blocks of 64 bytes
__attribute__((target("sha,sse4.1"))) void AddBlocks(uint32_t* state, const char* data,
                                                     size_t blocks) {
  const auto load = [](const void* from) __attribute__((target("sha,sse4.1"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  // The instructions want a, b, e, f in one register and c, d, g, h in another.
  const __m128i cdab = _mm_shuffle_epi32(load(state), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(load(state + 4), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; blocks > 0; --blocks, data += kShaBlockBytes) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i words[4];  // the last 16 of the message schedule
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {  // four rounds each
      __m128i& now = words[i % 4];
      if (i < 4) {
        now = _mm_shuffle_epi8(load(data + 16 * i), big_endian);
      } else {
        const __m128i last = words[(i + 3) % 4];
        now = _mm_add_epi32(_mm_sha256msg1_epu32(now, words[(i + 1) % 4]),
                            _mm_alignr_epi8(last, words[(i + 2) % 4], 4));
        now = _mm_sha256msg2_epu32(now, last);
      }
      const __m128i sum = _mm_add_epi32(now, load(kRoundConstants + 4 * i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  auto* to = reinterpret_cast<__m128i*>(state);
  _mm_storeu_si128(to, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(to + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#endif

}  // namespace

std::string Sha256ByLibmd(std::string_view bytes) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> digits = {};
  SHA256Data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digits.data());
  return digits.data();
}

std::string Sha256(std::string_view bytes) {
#ifdef __x86_64__
  static const bool has_instructions = HasShaInstructions();
  if (has_instructions) {
    // libmd begins, and ends with the last block and the padding.
    SHA2_CTX context;
    SHA256Init(&context);
    const size_t blocks = bytes.size() / kShaBlockBytes;
    AddBlocks(context.state.st32, bytes.data(), blocks);
    context.bitcount[0] = 8 * kShaBlockBytes * blocks;
    bytes.remove_prefix(blocks * kShaBlockBytes);
    SHA256Update(&context, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    std::array<char, SHA256_DIGEST_STRING_LENGTH> digits = {};
    SHA256End(&context, digits.data());
    return digits.data();
  }
#endif
  return Sha256ByLibmd(bytes);
}

}  // namespace warpledger::ablations
