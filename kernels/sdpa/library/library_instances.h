// SPDX-License-Identifier: Apache-2.0
// The compiled instances of the library's kernels: the generated table defines them.

#ifndef WARPLEDGER_KERNELS_SDPA_LIBRARY_LIBRARY_INSTANCES_H_
#define WARPLEDGER_KERNELS_SDPA_LIBRARY_LIBRARY_INSTANCES_H_

#include <span>

#include "kernels/sdpa/shared/kernel_instance.h"

namespace warpledger::sdpa {

std::span<const KernelInstance> LibraryInstances();

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_LIBRARY_INSTANCES_H_
