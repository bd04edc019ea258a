// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/flaws.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace warpledger::ablations {
namespace {

struct Flaw {
  const char* protocol_sha256;
  const char* technique;  // of an arm's configuration
  const char* why;
};

// Until 2026-11-21T18:18Z.
constexpr char kL2Aside[] =
    "the part of L2 that one arm sets aside was missing to all of them (decisions/0017)";

constexpr Flaw kFlaws[] = {{"875891fa124f971d53e63de4a3736c16f4ab1973e8c72dcffed59a2867657b81",
                            "l2_persisting_kv", kL2Aside},
                           {"ac06247502fffe91d23514f97f7cd33a66fade35fd22349322755170f780a9d9",
                            "l2_persisting_kv", kL2Aside},
                           {"37f8751e3c8107e68acd58dd8eefe38dfd838081b443e392c03f9169783a02e7",
                            "l2_persisting_kv", kL2Aside}};

}  // namespace

std::string WhyFlawed(const RunInfo& run) {
  for (const Flaw& flaw : kFlaws) {
    if (run.protocol_sha256 != flaw.protocol_sha256) continue;
    const bool acts = std::any_of(run.arms.begin(), run.arms.end(), [&](const Arm& arm) {
      return absl::StrContains(arm.config, flaw.technique);
    });
    if (acts) return flaw.why;
  }
  return "";
}

}  // namespace warpledger::ablations
