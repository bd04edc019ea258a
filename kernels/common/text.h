// SPDX-License-Identifier: Apache-2.0
// std::string_view as the string_view of Abseil's functions. Debian's Abseil is
// compiled with a type of its own there, which std::string_view does not
// convert to; where the two are the same type this is the identity.

#ifndef WARPLEDGER_KERNELS_COMMON_TEXT_H_
#define WARPLEDGER_KERNELS_COMMON_TEXT_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace warpledger {

inline absl::string_view Text(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace warpledger

#endif  // WARPLEDGER_KERNELS_COMMON_TEXT_H_
