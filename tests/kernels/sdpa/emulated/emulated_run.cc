// SPDX-License-Identifier: Apache-2.0
// Runs one instance that was compiled for the CPU, and says whether it is right.
//
//   emulated_run LIBRARY PROBLEM INPUT
//
// Exit codes: 0 it is right; 1 it is not, and why; 2 there is no such library, problem or input; 3
// it is not, and the registry says that it may miss the rule. A signal: it hung, or left its
// memory.

#include <dlfcn.h>

#include <iostream>
#include <string>

#include "ablations/subjects/sdpa/plan.h"
#include "kernels/sdpa/registry/registry.h"
#include "tests/kernels/sdpa/emulated/emulated_kernel.h"

int main(int count, char** arguments) {
  namespace sdpa = warpledger::sdpa;
  namespace ablations = warpledger::ablations;
  if (count != 4) {
    std::cerr << "emulated_run LIBRARY PROBLEM INPUT\n";
    return 2;
  }
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    std::cerr << dlerror() << "\n";
    return 2;
  }
  const auto instance =
      reinterpret_cast<void (*)(sdpa::EmulatedKernel*)>(dlsym(library, "EmulatedInstance"));
  const auto shapes = ablations::ParseShapes(arguments[2]);
  const auto kinds = ablations::ParseInputKinds(arguments[3]);
  if (instance == nullptr || !shapes.ok() || !kinds.ok()) {
    std::cerr << arguments[1] << " holds no instance, or there is no problem '" << arguments[2]
              << "' or input '" << arguments[3] << "'\n";
    return 2;
  }
  sdpa::EmulatedKernel kernel;
  instance(&kernel);
  const std::string why = sdpa::WhyWrong(kernel, shapes->front().problem, kinds->front().kind,
                                         sdpa::LaunchedBy::kDesign);
  std::cout << (why.empty() ? "right" : why) << "\n";
  return why.empty() ? 0 : sdpa::MayBreak(kernel.config) ? 3 : 1;
}
