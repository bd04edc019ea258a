// SPDX-License-Identifier: Apache-2.0
// Replaces the header of the same name, which nvcc includes before each source, where a kernel is
// compiled for the device alone: types, qualifiers, intrinsics of the device, and those functions
// of the C library that kernels call. `-I` of this folder is all that it takes.

#ifndef WARPLEDGER_KERNELS_LEAN_CUDA_CUDA_RUNTIME_H_
#define WARPLEDGER_KERNELS_LEAN_CUDA_CUDA_RUNTIME_H_

// The parts below are the toolkit's own, which warns where they are included one by one.
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
// The host's interface, which the cache hints (sm_32_intrinsics.h) include and don't use.
#define __CUDA_RUNTIME_API_H__

// In the order in which they need each other.
// clang-format off
#include <stddef.h>
#include <crt/host_config.h>
#include <builtin_types.h>
#include <crt/host_defines.h>
#include <vector_functions.h>
// clang-format on

extern "C" {
extern __host__ __device__ __device_builtin__ __cudart_builtin__ void* memcpy(void*, const void*,
                                                                              size_t) noexcept;
extern __device__ __device_builtin__ int min(int, int);
extern __device__ __device_builtin__ int max(int, int);
extern __device__ __device_builtin__ unsigned umin(unsigned, unsigned);
extern __device__ __device_builtin__ unsigned umax(unsigned, unsigned);
extern __device__ __device_builtin__ float cosf(float);
extern __device__ __device_builtin__ float expf(float);
extern __device__ __device_builtin__ float fabsf(float);
extern __device__ __device_builtin__ float fmaf(float, float, float);
extern __device__ __device_builtin__ float fmaxf(float, float);
extern __device__ __device_builtin__ float logf(float);
extern __device__ __device_builtin__ float rintf(float);
extern __device__ __device_builtin__ float rsqrtf(float);
extern __device__ __device_builtin__ float sinf(float);
extern __device__ __device_builtin__ float tanhf(float);
extern __device__ __device_builtin__ float truncf(float);
}

inline __device__ unsigned min(unsigned a, unsigned b) { return umin(a, b); }
inline __device__ unsigned max(unsigned a, unsigned b) { return umax(a, b); }

#include <crt/device_functions.h>
#include <device_launch_parameters.h>

// A kernel's other types would be converted to these without a word.
template <typename A, typename B>
void min(A, B) = delete;
template <typename A, typename B>
void max(A, B) = delete;

#endif  // WARPLEDGER_KERNELS_LEAN_CUDA_CUDA_RUNTIME_H_
