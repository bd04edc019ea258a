// SPDX-License-Identifier: Apache-2.0
// kernels/common/matrix.cuh on the CPU.

#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

// The rows of four matrices. Each lane reads its row before it meets the others: behind this, any
// of them may let go of the place.
using MatrixRow = std::array<uint16_t, 8>;
inline std::array<MatrixRow, 32> MatrixRows(uint32_t address) {
  MatrixRow row;
  std::memcpy(row.data(), emulation::Smem(address, sizeof(row)), sizeof(row));
  return emulation::Exchange(row);
}

inline void LdMatrix(uint32_t (&r)[4], uint32_t address) {
  const auto rows = MatrixRows(address);
  const auto lane = static_cast<size_t>(emulation::current->lane);
  for (size_t m = 0; m < 4; ++m) {
    const MatrixRow& row = rows[m * 8 + lane / 4];
    r[m] = row[lane % 4 * 2] | static_cast<uint32_t>(row[lane % 4 * 2 + 1]) << 16;
  }
}
inline void LdMatrixTransposed(uint32_t (&r)[4], uint32_t address) {
  const auto rows = MatrixRows(address);
  const auto lane = static_cast<size_t>(emulation::current->lane);
  for (size_t m = 0; m < 4; ++m) {
    const size_t first = m * 8 + lane % 4 * 2;
    r[m] = rows[first][lane / 4] | static_cast<uint32_t>(rows[first + 1][lane / 4]) << 16;
  }
}
inline void StMatrix(uint32_t address, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3) {
  const auto rows = emulation::Exchange(address);
  const auto lane = static_cast<size_t>(emulation::current->lane);
  const uint32_t r[] = {r0, r1, r2, r3};
  for (size_t m = 0; m < 4; ++m) {
    std::memcpy(emulation::Smem(rows[m * 8 + lane / 4], 16) + lane % 4 * 4, &r[m], 4);
  }
}

}  // namespace warpledger::ptx
