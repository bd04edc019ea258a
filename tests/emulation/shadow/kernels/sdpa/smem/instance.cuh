// SPDX-License-Identifier: Apache-2.0
// kernels/sdpa/smem/instance.cuh on the CPU.

#pragma once

#include "kernels/sdpa/smem/forward.cuh"
#include "tests/kernels/sdpa/emulated/emulated_instance.h"

namespace warpledger::sdpa {

template <Config kConfig>
void EmulatedBody(const void* params) {
  smem::SdpaForward<kConfig>(*static_cast<const ForwardParams*>(params),
                             emulation::current->cta->smem);
}

}  // namespace warpledger::sdpa
