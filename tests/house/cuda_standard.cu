// SPDX-License-Identifier: Apache-2.0
// Holds the build to C++20 in CUDA files: CMake 3.25 with CUDA 13 falls back to
// C++17 unless it is taught the flag (cmake/cuda.cmake).

static_assert(__cplusplus >= 202002L, "CUDA files must be compiled as C++20; see cmake/cuda.cmake");

struct Value {
  int field = 0;
};
template <Value kValue>
__global__ void TakesAStructuralType() {}
template __global__ void TakesAStructuralType<Value{.field = 1}>();
