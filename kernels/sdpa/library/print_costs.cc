// SPDX-License-Identifier: Apache-2.0
// Says for each problem that standard input names, one a line, what the library knows of it on a
// GPU of 132 SMs: a line of JSON with the choice and each kernel's terms and expected time.
// fit_costs.py reads it.

#include <cstdio>
#include <iostream>
#include <string>

#include "kernels/sdpa/library/choice.h"
#include "kernels/sdpa/library/costs.h"
#include "kernels/sdpa/problem/problem_name.h"

int main() {
  using namespace warpledger::sdpa;  // NOLINT(google-build-using-namespace): a program of 30 lines
  constexpr int kSms = 132;
  for (std::string name; std::getline(std::cin, name);) {
    const auto problem = ProblemFromName(name);
    if (!problem) {
      std::fprintf(stderr, "print_costs: '%s' names no problem\n", name.c_str());
      return 2;
    }
    const LibraryKernel* choice =
        ChooseKernel(*problem, ContiguousLayouts(*problem, problem->head_dim), kSms).kernel;
    std::printf(R"({"problem":"%s","choice":"%s","kernels":{)", name.c_str(),
                choice == nullptr ? "" : std::string(choice->name).c_str());
    const char* comma = "";
    for (const LibraryKernel& kernel : kLibraryKernels) {
      if (kernel.config.varlen || !Takes(kernel, *problem)) continue;
      std::printf(R"(%s"%s":{"us":%.17g,"terms":[)", comma, std::string(kernel.name).c_str(),
                  ExpectedUs(kernel, *problem, kSms));
      const CostTerms terms = CostTermsOf(kernel, *problem, kSms);
      for (int i = 0; i < kCostTerms; ++i) std::printf("%s%.17g", i == 0 ? "" : ",", terms[i]);
      std::printf("]}");
      comma = ",";
    }
    std::printf("}}\n");
  }
  return 0;
}
