// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/kernel_names.h"

#include <map>

namespace warpledger::harness {
namespace {

// Made on first use, which is before main() and any other initialiser.
std::map<const void*, std::string>& Names() {
  static auto* const names = new std::map<const void*, std::string>;
  return *names;
}

}  // namespace

absl::StatusOr<std::string> KernelName(const void* kernel) {
  const auto found = Names().find(kernel);
  if (found == Names().end()) {
    return absl::NotFoundError(
        "no kernel of this program has the address that a case names; is it a __global__ "
        "function, and is the program linked with --wrap=__cudaRegisterFunction?");
  }
  return found->second;
}

}  // namespace warpledger::harness

// Declared by the toolkit's crt/host_runtime.h, which only nvcc's own output includes.
extern "C" {
void __real___cudaRegisterFunction(void** fatbin, const char* host_function, char* device_function,
                                   const char* device_name, int thread_limit, void* tid, void* bid,
                                   void* block, void* grid, int* warp_size);

void __wrap___cudaRegisterFunction(void** fatbin, const char* host_function, char* device_function,
                                   const char* device_name, int thread_limit, void* tid, void* bid,
                                   void* block, void* grid, int* warp_size) {
  warpledger::harness::Names()[host_function] = device_name;
  __real___cudaRegisterFunction(fatbin, host_function, device_function, device_name, thread_limit,
                                tid, bid, block, grid, warp_size);
}
}
