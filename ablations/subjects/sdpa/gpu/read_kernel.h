// SPDX-License-Identifier: Apache-2.0
// A plain read: what a kernel takes that does nothing but read these bytes from DRAM or L2.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace warpledger::ablations {

// Reads `bytes` from `data` once, 16 bytes a load, with a grid that fills `sm_count` SMs
// where there is enough to read.
// Asynchronous.
//   data: 16-byte aligned; `bytes` is a multiple of 16
//   unused: 4 bytes on the GPU, which hardly any input has it write
cudaError_t LaunchRead(const void* data, size_t bytes, int sm_count, unsigned* unused,
                       cudaStream_t stream);

}  // namespace warpledger::ablations
