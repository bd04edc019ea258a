// SPDX-License-Identifier: Apache-2.0
// Early return of a failed absl::Status.

#ifndef WARPLEDGER_KERNELS_COMMON_STATUS_MACROS_H_
#define WARPLEDGER_KERNELS_COMMON_STATUS_MACROS_H_

#include "absl/status/status.h"

#define RETURN_IF_ERROR(expression)                           \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

#endif  // WARPLEDGER_KERNELS_COMMON_STATUS_MACROS_H_
