// SPDX-License-Identifier: Apache-2.0
// Buffers compared where they lie: a replay's outputs of large problems would take
// longer to copy to the host than to compute.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace warpledger::ablations {

// Both add to *count, which is on the GPU.

// The 16-byte words in which two buffers differ; `bytes` is a multiple of 16, and so are
// the addresses.
cudaError_t LaunchCountDifferences(const void* a, const void* b, size_t bytes,
                                   unsigned long long* count, cudaStream_t stream);
// The bytes that are not `value`.
cudaError_t LaunchCountOthers(const void* data, size_t bytes, unsigned char value,
                              unsigned long long* count, cudaStream_t stream);

}  // namespace warpledger::ablations
