// SPDX-License-Identifier: Apache-2.0
// The planted bugs that this build holds: mutants.py writes the table.

#pragma once

#include <span>
#include <string_view>

#include "kernels/sdpa/shared/kernel_instance.h"

namespace warpledger::sdpa {

struct Mutant {
  std::string_view name;
  std::string_view what;     // the bug, in a sentence
  std::string_view kernel;   // the instance that it was made from
  std::string_view problem;  // that must expose it
  std::string_view input;
  std::string_view race;  // why it depends on time whether the bug shows; empty: it does not
  KernelCode* code;
};
std::span<const Mutant> Mutants();

}  // namespace warpledger::sdpa
