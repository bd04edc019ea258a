// SPDX-License-Identifier: Apache-2.0
// Replaces the header of the same name, as cuda_runtime.h beside it does: no kernel uses surfaces.

#ifndef WARPLEDGER_KERNELS_LEAN_CUDA_SURFACE_INDIRECT_FUNCTIONS_H_
#define WARPLEDGER_KERNELS_LEAN_CUDA_SURFACE_INDIRECT_FUNCTIONS_H_
#endif  // WARPLEDGER_KERNELS_LEAN_CUDA_SURFACE_INDIRECT_FUNCTIONS_H_
