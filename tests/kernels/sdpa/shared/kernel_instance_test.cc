// SPDX-License-Identifier: Apache-2.0
// Loading code, with a runtime that fails when the test says so; no GPU needed.

#include "kernels/sdpa/shared/kernel_instance.h"

#include "gtest/gtest.h"

namespace {

struct Runtime {
  cudaError_t load = cudaSuccess;
  cudaError_t count_error = cudaSuccess;
  unsigned count = 1;
  cudaError_t enumerate = cudaSuccess;
  int loads = 0;
  int unloads = 0;
};
Runtime runtime;

char handles[2];
template <typename T>
T Handle(int at) {
  return reinterpret_cast<T>(&handles[at]);
}

}  // namespace

extern "C" {
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void*, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  ++runtime.loads;
  if (runtime.load == cudaSuccess) *library = Handle<cudaLibrary_t>(0);
  return runtime.load;
}
cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t) {
  *count = runtime.count;
  return runtime.count_error;
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned, cudaLibrary_t) {
  if (runtime.enumerate == cudaSuccess) *kernels = Handle<cudaKernel_t>(1);
  return runtime.enumerate;
}
cudaError_t cudaLibraryGetGlobal(void**, size_t*, cudaLibrary_t, const char*) {
  return cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  EXPECT_EQ(library, Handle<cudaLibrary_t>(0));
  ++runtime.unloads;
  return cudaSuccess;
}
}

namespace warpledger::sdpa {
namespace {

TEST(KernelCode, IsLoadedOnce) {
  runtime = {};
  KernelCode code("sdpa_test", nullptr);
  const void* kernel = nullptr;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(code.GetKernel(&kernel), cudaSuccess);
  EXPECT_EQ(kernel, Handle<const void*>(1));
  EXPECT_EQ(runtime.loads, 1);
  EXPECT_EQ(runtime.unloads, 0);
}

TEST(KernelCode, IsLoadedByALaterCallWhereOneFailed) {
  runtime = {};
  runtime.load = cudaErrorStreamCaptureUnsupported;
  KernelCode code("sdpa_test", nullptr);
  const void* kernel = nullptr;
  EXPECT_EQ(code.GetKernel(&kernel), cudaErrorStreamCaptureUnsupported);
  runtime.load = cudaErrorMemoryAllocation;
  std::byte* workspace = nullptr;
  EXPECT_EQ(code.GetWorkspace(&workspace), cudaErrorMemoryAllocation);
  runtime.load = cudaSuccess;
  EXPECT_EQ(code.GetKernel(&kernel), cudaSuccess);
  EXPECT_EQ(kernel, Handle<const void*>(1));
  EXPECT_EQ(code.GetWorkspace(&workspace), cudaSuccess);
  EXPECT_EQ(runtime.loads, 3);
  EXPECT_EQ(runtime.unloads, 0);
}

TEST(KernelCode, IsUnloadedWhereItHasNoKernelToUse) {
  runtime = {};
  KernelCode code("sdpa_test", nullptr);
  const void* kernel = nullptr;
  runtime.count_error = cudaErrorMemoryAllocation;
  EXPECT_EQ(code.GetKernel(&kernel), cudaErrorMemoryAllocation);
  runtime.count_error = cudaSuccess;
  runtime.count = 2;
  EXPECT_EQ(code.GetKernel(&kernel), cudaErrorNoKernelImageForDevice);
  runtime.count = 1;
  runtime.enumerate = cudaErrorMemoryAllocation;
  EXPECT_EQ(code.GetKernel(&kernel), cudaErrorMemoryAllocation);
  EXPECT_EQ(kernel, nullptr);
  EXPECT_EQ(runtime.unloads, 3);
  runtime.enumerate = cudaSuccess;
  EXPECT_EQ(code.GetKernel(&kernel), cudaSuccess);
  EXPECT_EQ(runtime.loads, 4);
  EXPECT_EQ(runtime.unloads, 3);
}

}  // namespace
}  // namespace warpledger::sdpa
