// SPDX-License-Identifier: Apache-2.0
// Names of dtypes, apart from dtype.h so that no kernel includes <string_view>.

#ifndef WARPLEDGER_KERNELS_SDPA_DTYPE_DTYPE_NAME_H_
#define WARPLEDGER_KERNELS_SDPA_DTYPE_DTYPE_NAME_H_

#include <string_view>

#include "kernels/sdpa/dtype/dtype.h"

namespace warpledger::sdpa {

// As records, names of instances and the command line spell it.
constexpr std::string_view DtypeName(Dtype dtype) {
  return dtype == Dtype::kBf16 ? "bf16" : "fp16";
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_DTYPE_DTYPE_NAME_H_
