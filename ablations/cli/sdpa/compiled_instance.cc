// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/sdpa/compiled_instance.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/sdpa/dtype/dtype_name.h"

namespace warpledger::cli {
namespace {

// Whether this build holds the configuration for some problem.
bool IsCompiledForSome(const sdpa::Config& config) {
  return absl::c_any_of(sdpa::AllInstances(), [&](const sdpa::KernelInstance* instance) {
    const sdpa::Config& c = instance->config;
    const bool causal = c.mask == sdpa::Mask::kCausal;
    return sdpa::Specialise(config, c.head_dim, causal, c.dtype, c.projected) == c;
  });
}

}  // namespace

absl::StatusOr<const sdpa::KernelInstance*> CompiledInstance(const ablations::NamedVariant& variant,
                                                             const sdpa::Problem& problem) {
  const sdpa::KernelInstance* instance = sdpa::FindInstance(variant.config, problem);
  if (instance != nullptr) return instance;
  if (IsCompiledForSome(variant.config)) {
    return absl::NotFoundError(absl::StrCat("variant '", variant.name,
                                            "' is not compiled for head_dim ", problem.head_dim,
                                            " in ", std::string(sdpa::DtypeName(problem.dtype)),
                                            problem.embed_dim > 0 ? " behind a projection" : "",
                                            "; `warpledger list designs` shows which designs are"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("variant '", variant.name,
                   "' is legal, but no design names it, so this build holds no kernel for it; "
                   "`warpledger list variants` shows those it holds"));
}

}  // namespace warpledger::cli
