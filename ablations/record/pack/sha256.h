// SPDX-License-Identifier: Apache-2.0
// SHA-256, which every file of a pack is checked by whenever the pack is opened.
//
// Contract: any bytes, any length. By the processor's own instructions where it has them (x86 since
// 2017 or so), and else by libmd, which takes eight times as long.
//
//   std::string digits = Sha256("abc");  // "ba7816bf…", 64 of them

#pragma once

#include <string>
#include <string_view>

namespace warpledger::ablations {

// In hexadecimal digits.
std::string Sha256(std::string_view bytes);

// The same by libmd alone, which the test holds the other against.
std::string Sha256ByLibmd(std::string_view bytes);

}  // namespace warpledger::ablations
