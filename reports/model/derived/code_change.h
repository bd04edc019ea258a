// SPDX-License-Identifier: Apache-2.0
// What a toggle did to the kernel, as table cells beside its verdict.
//
// Contract: pure functions of the verdict; kNone where the summary doesn't say.
//
//   ResourceChange(verdict)        "40 → 96 registers, 17.0 KiB shared, 48 → 32 warps / SM"
//   InstructionChange(summary, verdict, 2)  "1204 → 988: `HMMA` 0 → 64, `LDS` 152 → 40, `MUFU` 8 →
//   4"

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "reports/model/summary.h"

namespace warpledger::report {

// Spills are named where there are any.
std::string ResourceChange(const Verdict& verdict);
// Those that the registry names as the toggle's evidence, then the `most` opcodes whose number
// changed most.
std::string InstructionChange(const Summary& summary, const Verdict& verdict, size_t most);

// What the two columns are called, and a sentence that says how to read them.
inline constexpr std::string_view kResourceColumn = "kernel, without → with";
inline constexpr std::string_view kInstructionColumn = "instructions, without → with";
inline constexpr std::string_view kHowToReadChanges =
    "The columns beside a verdict say how the toggle **changed the kernel**: registers per thread, "
    "shared memory per CTA, occupancy (warps that fit on an SM) and instructions. Instructions are "
    "counted in the machine code, not as executed: first those that match the toggle's evidence (a "
    "regular expression in the registry), then the opcodes whose number changed most.";

}  // namespace warpledger::report
