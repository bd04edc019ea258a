// SPDX-License-Identifier: Apache-2.0
// The symbol under which a kernel's machine code lies in the cubins, found without
// a GPU, so that a test can look the code up.
//
// cudaFuncGetName() needs a driver. But nvcc's start-up code hands every kernel's
// host address and device symbol to __cudaRegisterFunction(); programs that link
// warpledger_micro_harness have that call wrapped (ld --wrap) and noted.

#ifndef WARPLEDGER_MICRO_HARNESS_KERNEL_NAMES_H_
#define WARPLEDGER_MICRO_HARNESS_KERNEL_NAMES_H_

#include <string>

#include "absl/status/statusor.h"

namespace warpledger::harness {

// The mangled symbol of the kernel that host code names `kernel`; NotFound when no
// kernel of this program has that address.
absl::StatusOr<std::string> KernelName(const void* kernel);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_KERNEL_NAMES_H_
