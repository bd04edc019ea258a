// SPDX-License-Identifier: Apache-2.0
// kernels/sdpa/wgmma/instance.cuh on the CPU.

#pragma once

#include "kernels/sdpa/wgmma/forward.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "tests/kernels/sdpa/emulated/emulated_instance.h"

namespace warpledger::sdpa {

unsigned char raw_smem[1];  // what the kernel calls its CTA's shared memory

template <Config kConfig>
void EmulatedBody(const void* params) {
  constexpr WgmmaShape kShape = WgmmaShapeOf(kConfig);
  WgmmaForward<kShape>(*static_cast<const WgmmaParamsOf<kShape>*>(params));
}

}  // namespace warpledger::sdpa
