// SPDX-License-Identifier: Apache-2.0
// CUDA's mma.h on the CPU: 16x16x16 WMMA fragments of fp16 with fp32 accumulators.
//
// Which elements a lane holds is what kernels/sdpa/smem/wmma/fragment_layout.h says, which a GPU
// test holds against the API. Of matrix_b nobody asks; a lane holds half a row there.

#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/sdpa/smem/wmma/fragment_layout.h"
#include "tests/emulation/cuda_on_cpu.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

inline constexpr int kEdge = 16;
inline constexpr int kElementsOfB = kEdge * kEdge / 32;

// In which row and column of its matrix element `i` of the calling lane's fragment lies.
template <typename Use>
warpledger::sdpa::smem::FragmentPlace Place(int i) {
  const int lane = warpledger::emulation::current->lane;
  if constexpr (std::is_same_v<Use, matrix_a>) {
    return warpledger::sdpa::smem::MatrixAPlace(lane, i);
  } else if constexpr (std::is_same_v<Use, matrix_b>) {
    return {lane / 2, lane % 2 * kElementsOfB + i};
  } else {
    return warpledger::sdpa::smem::AccumulatorPlace(lane, i);
  }
}

template <typename Use, int kM, int kN, int kK, typename T, typename Layout = void>
struct fragment {
  static_assert(kM == kEdge && kN == kEdge && kK == kEdge);
  static constexpr int num_elements = std::is_same_v<Use, matrix_a> ? 16 : 8;
  T x[num_elements];
};

template <typename Use, typename T, typename Layout>
void fill_fragment(fragment<Use, 16, 16, 16, T, Layout>& f, float value) {
  for (T& x : f.x) x = value;
}

// Element (row, column) of a matrix in shared memory, whose first must be 32-byte aligned
// and whose rows or columns are a whole number of 16 bytes apart.
template <typename T>
T* ElementAt(T* first, unsigned ld, bool rows_apart,
             const warpledger::sdpa::smem::FragmentPlace& place) {
  namespace emulation = warpledger::emulation;
  if (ld * sizeof(T) % 16 != 0) emulation::Die("a leading dimension of no whole 16 bytes");
  if (reinterpret_cast<uintptr_t>(first) % 32 != 0) emulation::Die("a misaligned fragment");
  const unsigned row = static_cast<unsigned>(rows_apart ? place.row : place.col);
  T* at = first + row * ld + static_cast<unsigned>(rows_apart ? place.col : place.row);
  emulation::Smem(static_cast<uint32_t>(__cvta_generic_to_shared(at)), sizeof(T));  // or dies
  return at;
}

template <typename Use, typename Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, half, Layout>& f, const half* from, unsigned ld) {
  for (int i = 0; i < f.num_elements; ++i) {
    f.x[i] = *ElementAt(from, ld, std::is_same_v<Layout, row_major>, Place<Use>(i));
  }
}
inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, float>& f, const float* from,
                             unsigned ld, layout_t layout) {
  for (int i = 0; i < f.num_elements; ++i) {
    f.x[i] = *ElementAt(from, ld, layout == mem_row_major, Place<accumulator>(i));
  }
}
inline void store_matrix_sync(float* to, const fragment<accumulator, 16, 16, 16, float>& f,
                              unsigned ld, layout_t layout) {
  for (int i = 0; i < f.num_elements; ++i) {
    *ElementAt(to, ld, layout == mem_row_major, Place<accumulator>(i)) = f.x[i];
  }
}

// Sums in FP64, rounded once.
template <typename LayoutA, typename LayoutB>
void mma_sync(fragment<accumulator, 16, 16, 16, float>& d,
              const fragment<matrix_a, 16, 16, 16, half, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 16, half, LayoutB>& b,
              const fragment<accumulator, 16, 16, 16, float>& c) {
  namespace emulation = warpledger::emulation;
  struct Operands {
    __half_raw a[16];
    __half_raw b[kElementsOfB];
  } mine;
  for (int i = 0; i < 16; ++i) mine.a[i] = a.x[i];
  for (int i = 0; i < kElementsOfB; ++i) mine.b[i] = b.x[i];
  const auto all = emulation::Exchange(mine);
  float of_a[kEdge][kEdge];
  float of_b[kEdge][kEdge];
  for (int lane = 0; lane < 32; ++lane) {
    const Operands& other = all[static_cast<size_t>(lane)];
    for (int i = 0; i < 16; ++i) {
      const auto place = warpledger::sdpa::smem::MatrixAPlace(lane, i);
      of_a[place.row][place.col] = __half2float(half(other.a[i]));
      // The API keeps two copies of A, and it is open which one is read.
      if (other.a[i].x != other.a[i % 8].x) emulation::Die("two copies of A that differ");
    }
    for (int i = 0; i < kElementsOfB; ++i) {
      of_b[lane / 2][lane % 2 * kElementsOfB + i] = __half2float(half(other.b[i]));
    }
  }
  for (int i = 0; i < d.num_elements; ++i) {
    const auto place = Place<accumulator>(i);
    double sum = c.x[i];
    for (int k = 0; k < kEdge; ++k) {
      sum += static_cast<double>(of_a[place.row][k]) * of_b[k][place.col];
    }
    d.x[i] = static_cast<float>(sum);
  }
}

}  // namespace nvcuda::wmma
