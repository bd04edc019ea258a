// SPDX-License-Identifier: Apache-2.0
// What a planted fault does (planted_faults.h). Apart from it, so that nvcc reads no JSON.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_FAULT_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_FAULT_H_

namespace warpledger::ablations {

enum class Fault { kNone, kTrap, kSpin, kWriteOutside, kWriteUnmapped };

inline constexpr int kSpinSeconds = 30;

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_FAULT_H_
