// SPDX-License-Identifier: Apache-2.0
// A generated source of an instance, as a library that emulated_run loads: what a family's
// instance.cuh is on the CPU. EmulatedBody is what each thread runs.

#pragma once

#include "tests/kernels/sdpa/emulated/emulated_kernel.h"

#define WARPLEDGER_INSTANCE(symbol, ...)                         \
  static constexpr Config symbol##_config = __VA_ARGS__;         \
  extern "C" void EmulatedInstance(EmulatedKernel* kernel) {     \
    *kernel = {symbol##_config, &EmulatedBody<symbol##_config>}; \
  }
