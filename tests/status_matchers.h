// SPDX-License-Identifier: Apache-2.0
// StatusIs, as absl/status/status_matchers.h has it in later releases of Abseil.
//
//   EXPECT_THAT(Parse("x"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 1")));
//   EXPECT_THAT(Parse("x"), StatusIs(_, HasSubstr("line 1")));  // any code but OK's

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace warpledger {

inline const absl::Status& GetStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status& status = GetStatus(arg);
  *result_listener << status << " ";
  return !status.ok() && testing::ExplainMatchResult(code, status.code(), result_listener) &&
         testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}
template <typename Code>
auto StatusIs(Code code) {
  return StatusIs(code, testing::_);
}

}  // namespace warpledger
