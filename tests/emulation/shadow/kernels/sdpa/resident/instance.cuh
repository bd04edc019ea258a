// SPDX-License-Identifier: Apache-2.0
// kernels/sdpa/resident/instance.cuh on the CPU.

#pragma once

#include "kernels/sdpa/resident/forward.cuh"
#include "tests/kernels/sdpa/emulated/emulated_instance.h"

namespace warpledger::sdpa {

unsigned char raw_smem[1];  // what the kernel calls its CTA's shared memory

template <Config kConfig>
void EmulatedBody(const void* params) {
  ResidentForward<ResidentShapeOf(kConfig)>(*static_cast<const WgmmaParams*>(params));
}

}  // namespace warpledger::sdpa
