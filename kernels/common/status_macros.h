// SPDX-License-Identifier: Apache-2.0
// Early return of a failed absl::Status or absl::StatusOr.
//
//   ASSIGN_OR_RETURN(const Record record, LoadRecord(path));  // from a StatusOr<Record>
//   RETURN_IF_ERROR(Check(record));                           // from a Status

#ifndef WARPLEDGER_KERNELS_COMMON_STATUS_MACROS_H_
#define WARPLEDGER_KERNELS_COMMON_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"

#define RETURN_IF_ERROR(expression)                           \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

// `left` is a variable that exists or the declaration of one. Two statements: not the only one
// under an `if`. A type with a comma needs `auto`.
#define ASSIGN_OR_RETURN(left, ...) ASSIGN_OR_RETURN_ON_(__LINE__, left, __VA_ARGS__)
#define ASSIGN_OR_RETURN_ON_(line, left, ...) ASSIGN_OR_RETURN_AS_(line, left, __VA_ARGS__)
#define ASSIGN_OR_RETURN_AS_(line, left, ...)     \
  auto or_##line = (__VA_ARGS__);                 \
  if (!or_##line.ok()) return or_##line.status(); \
  left = *std::move(or_##line)

#endif  // WARPLEDGER_KERNELS_COMMON_STATUS_MACROS_H_
