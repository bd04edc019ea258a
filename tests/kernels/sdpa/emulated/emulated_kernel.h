// SPDX-License-Identifier: Apache-2.0
// Kernels from the launch on, run on the CPU (tests/emulation) and held against the reference by
// the rule of all variants. Problems begin with Q, K and V.

#pragma once

#include <string>

#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/registry/config.h"

namespace warpledger::sdpa {

// A kernel that was compiled for the CPU.
struct EmulatedKernel {
  Config config;                               // specialised
  void (*body)(const void* params) = nullptr;  // what each thread runs, as the launch gives it
};

enum class LaunchedBy {
  kDesign,   // in the instance's own memory, with scales of 8 bits as the host prepares them
  kLibrary,  // in the caller's memory, with scales as the caller has them
};

// Empty where the kernel is right in all orders of threads and copies; else what is wrong. A
// barrier that not all threads reach, or an access outside of shared memory, ends the program.
std::string WhyWrong(const EmulatedKernel& kernel, const Problem& problem, InputKind kind,
                     LaunchedBy launched_by);
// The same of packed sequences of one head: shorter and longer than a tile, and empty. `kernel` has
// varlen.
std::string WhyWrongPacked(const EmulatedKernel& kernel);

}  // namespace warpledger::sdpa
