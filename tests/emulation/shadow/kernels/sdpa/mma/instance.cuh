// SPDX-License-Identifier: Apache-2.0
// kernels/sdpa/mma/instance.cuh on the CPU.

#pragma once

#include "kernels/sdpa/mma/forward.cuh"
#include "kernels/sdpa/mma/params.h"
#include "tests/kernels/sdpa/emulated/emulated_instance.h"

namespace warpledger::sdpa {

template <Config kConfig>
void EmulatedBody(const void* params) {
  MmaForward<MmaShapeOf(kConfig)>(*static_cast<const MmaParamsOf<MmaShapeOf(kConfig)>*>(params),
                                  emulation::current->cta->smem);
}

}  // namespace warpledger::sdpa
