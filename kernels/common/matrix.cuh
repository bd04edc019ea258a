// SPDX-License-Identifier: Apache-2.0
// 8 x 8 matrices of 16-bit elements between shared memory and a warp's registers, four at
// once (PTX ISA, "ldmatrix" and "stmatrix"). Lane i gives the address of row i % 8 of matrix
// i / 8, 16 bytes aligned; of each matrix a lane holds row lane / 4, columns 2 (lane % 4) and
// the next. All lanes of the warp call them.

#ifndef WARPLEDGER_KERNELS_COMMON_MATRIX_CUH_
#define WARPLEDGER_KERNELS_COMMON_MATRIX_CUH_

#include <cstdint>

namespace warpledger::ptx {

__device__ inline void LdMatrix(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
// A lane holds column lane / 4 of each matrix in place of its row.
__device__ inline void LdMatrixTransposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__device__ inline void StMatrix(uint32_t address, uint32_t r0, uint32_t r1, uint32_t r2,
                                uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address),
               "r"(r0), "r"(r1), "r"(r2), "r"(r3)
               : "memory");
}
#endif

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_MATRIX_CUH_
