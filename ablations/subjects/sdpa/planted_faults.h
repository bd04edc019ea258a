// SPDX-License-Identifier: Apache-2.0
// Faults that tests of the harness plant in an arm: they show that a broken kernel
// ends as BROKEN in the record and takes nothing else with it. run.json names
// them, and the run's id begins with "planted-".
//
//   trap            the kernel stops itself, as a failed device assertion does
//   spin            it never ends (it does after kSpinSeconds, lest a controller
//                   that fails to stop it leaves a GPU spinning)
//   write_outside   it writes into memory of ours right behind its output
//   write_unmapped  it writes where no memory is
// planted_fault_kernels.h commits them.

#pragma once

#include <string_view>

#include "ablations/subjects/sdpa/fault.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

struct NamedFault {
  const char* name;
  Fault fault;
};

inline constexpr NamedFault kFaults[] = {
    {"trap", Fault::kTrap},
    {"spin", Fault::kSpin},
    {"write_outside", Fault::kWriteOutside},
    {"write_unmapped", Fault::kWriteUnmapped},
};

// InvalidArgument for a name that is none of kFaults.
absl::StatusOr<Fault> FindFault(std::string_view name);

}  // namespace warpledger::ablations
