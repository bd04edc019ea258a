// SPDX-License-Identifier: Apache-2.0
// main() of the tests labelled gpu. Without a usable GPU it prints the reason
// and exits with 77, which ctest reports as skipped: such a test has neither
// passed nor failed.

#include <cstdio>

#include "cuda_runtime_api.h"
#include "gtest/gtest.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  // Listing needs no GPU.
  if (!::testing::GTEST_FLAG(list_tests)) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
      std::printf("SKIPPED: no usable GPU: %s\n",
                  error != cudaSuccess ? cudaGetErrorString(error) : "the driver lists none");
      return 77;
    }
  }
  return RUN_ALL_TESTS();
}
