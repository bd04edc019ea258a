// SPDX-License-Identifier: Apache-2.0
// What reads records, fed with one damaged record at a time. Nothing may crash, hang,
// throw or go wrong under the sanitizers: a damaged record is refused with an error
// status, or, where the damage is still a record, used.
//
// An input names a seed, and for each damaged file its name, size and bytes:
//
//   ladder\n
//   samples.jsonl 6\n
//   {"seq"
//
// Any bytes are an input; what names no seed or file does nothing. So the same
// entry point serves the driver of record_fuzz.cc and libFuzzer.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/seeds.h"

namespace warpledger::fuzz {

std::string EncodeInput(const std::string& seed, const Files& damaged);

// Made at the first use, from the records under $WARPLEDGER_FUZZ_DATA, or else those
// of the source tree.
const std::vector<Seed>& TheSeeds();

// "load: OK", "report: INVALID_ARGUMENT", how often so far.
const std::map<std::string, int64_t>& Outcomes();

}  // namespace warpledger::fuzz

// Returns 0. libFuzzer's name and form.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
