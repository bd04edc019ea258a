// SPDX-License-Identifier: Apache-2.0
// What a planted fault does (planted_faults.h). Apart from it, so that nvcc reads no JSON.

#pragma once

namespace warpledger::ablations {

enum class Fault { kNone, kTrap, kSpin, kWriteOutside, kWriteUnmapped };

inline constexpr int kSpinSeconds = 30;

}  // namespace warpledger::ablations
