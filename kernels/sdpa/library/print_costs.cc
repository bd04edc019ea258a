// SPDX-License-Identifier: Apache-2.0
// Says for each problem that standard input names, by its sizes or as the suite does, what the
// library knows of it on an H200: a line of JSON with the choice, what the terms count,
// and each kernel's configuration, CTAs an SM, terms and expected time. Kernels of E4M3, of which
// the choice is none, are apart. fit_costs.py reads it.

#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

#include "kernels/sdpa/library/choice.h"
#include "kernels/sdpa/library/costs.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/registry/variant.h"

namespace warpledger::sdpa {
namespace {

constexpr Gpu kGpu = {132};

std::optional<Problem> Named(const std::string& name) {
  for (const NamedShape& shape : kShapes) {
    if (shape.name == name) return shape.problem;
  }
  return ProblemFromName(name);
}

// {"pipelined":{…},…} of the kernels that take the problem, all of E4M3 or none.
void PrintKernels(const Problem& problem, bool e4m3) {
  const char* comma = "{";
  for (const LibraryKernel& kernel : kLibraryKernels) {
    if (kernel.config.varlen || TakesE4m3(kernel) != e4m3 || !Takes(kernel, problem)) continue;
    std::printf(
        R"(%s"%s":{"config":"%s","form_of":"%s","costs_of":"%s","ctas_per_sm":%d,"us_by_costs":%.17g,"us":%.17g,"terms":[)",
        comma, std::string(kernel.name).c_str(), ConfigName(kernel.config).c_str(),
        std::string(kernel.form_of).c_str(), std::string(CostsOf(kernel)).c_str(),
        CtasPerSm(kernel, problem, kGpu), UsByCosts(kernel, problem, kGpu),
        ExpectedUs(kernel, problem, kGpu));
    const CostTerms terms = CostTermsOf(kernel, problem, kGpu);
    for (int i = 0; i < kCostTerms; ++i) std::printf("%s%.17g", i == 0 ? "" : ",", terms[i]);
    std::printf("]}");
    comma = ",";
  }
  std::printf("%s}", *comma == '{' ? "{" : "");
}

}  // namespace
}  // namespace warpledger::sdpa

int main() {
  using namespace warpledger::sdpa;  // NOLINT(google-build-using-namespace): a program of 30 lines
  for (std::string name; std::getline(std::cin, name);) {
    const std::optional<Problem> problem = Named(name);
    if (!problem) {
      std::fprintf(stderr, "print_costs: '%s' names no problem\n", name.c_str());
      return 2;
    }
    const LibraryKernel* choice =
        ChooseKernel(*problem, ContiguousLayouts(*problem, problem->head_dim), kGpu).kernel;
    std::printf(R"({"problem":"%s","choice":"%s","counts":[)", name.c_str(),
                choice == nullptr ? "" : std::string(choice->name).c_str());
    for (int i = 0; i < kCostTerms; ++i) {
      std::printf("%s\"%s\"", i == 0 ? "" : ",", kCostTermNames[i]);
    }
    std::printf(R"(],"kernels":)");
    PrintKernels(*problem, false);
    std::printf(R"(,"e4m3":)");
    PrintKernels(*problem, true);
    std::printf("}\n");
  }
  return 0;
}
