// SPDX-License-Identifier: Apache-2.0
// Which element of a 16x16 tile each register of a WMMA fragment holds.
//
// The WMMA API leaves this open. Reducing rows in registers needs it, and so does
// turning an accumulator into the A operand of the next product. It is written
// down here once, and tests/kernels/sdpa/smem/wmma/fragment_layout_gpu_test.cu loads
// matrices of indices through the API and compares: on a GPU whose fragments differ
// that test fails, and every toggle that builds on this page is wrong there.
//
// Derivation: since sm_80 a 16x16x16 product is two mma.m16n8k16 (SASS: HMMA.16816),
// whose layouts the PTX ISA gives. Lane l belongs to group g = l / 4 at place t = l % 4:
//   accumulator  rows g and g + 8; columns 2t, 2t + 1, and the same 8 further on
//   A            rows g and g + 8; columns 2t, 2t + 1, and the same 8 further on
// So a lane holds of A exactly what it holds of the accumulator: P needs no shuffle.
// fragment<matrix_a>::x has 16 elements for 8 places: the API keeps two copies, as
// sm_70 needed them.
//
// Host-safe and constexpr.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_FRAGMENT_LAYOUT_H_
#define WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_FRAGMENT_LAYOUT_H_

namespace warpledger::sdpa::smem {

inline constexpr int kAccumulatorElements = 8;  // fragment<accumulator, 16, 16, 16, float>
inline constexpr int kMatrixAElements = 16;     // fragment<matrix_a, 16, 16, 16, half, row_major>
inline constexpr int kRowsOfLane = 2;           // rows that a lane holds elements of
inline constexpr int kLanesOfRow = 4;           // lanes that share a row: l ^ 1, l ^ 2, l ^ 3

struct FragmentPlace {
  int row = 0;
  int col = 0;
  friend constexpr bool operator==(const FragmentPlace&, const FragmentPlace&) = default;
};

// Which of the lane's two rows element i is of.
constexpr int AccumulatorRowOfLane(int i) { return i / 2 % 2; }

// The first of the lane's rows; the second is 8 further on.
constexpr int FirstRowOfLane(int lane) { return lane / kLanesOfRow; }

constexpr FragmentPlace AccumulatorPlace(int lane, int i) {
  return {FirstRowOfLane(lane) + 8 * AccumulatorRowOfLane(i),
          lane % kLanesOfRow * 2 + i % 2 + i / 4 * 8};
}

// The accumulator's element that stands at the same place as element i of A.
constexpr int AccumulatorElementOfMatrixA(int i) { return i % kAccumulatorElements; }

constexpr FragmentPlace MatrixAPlace(int lane, int i) {
  return AccumulatorPlace(lane, AccumulatorElementOfMatrixA(i));
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_FRAGMENT_LAYOUT_H_
