// SPDX-License-Identifier: Apache-2.0
// How far attention with K/V in fewer bits is from attention with the fp16 inputs, as a
// function of the number of keys: `warpledger dtypes`, on the CPU.
//
// For each input distribution, length and scheme: O in FP64 from the dequantised K and V,
// less O in FP64 from the fp16 ones; or, where the scheme says so, O of the naive fp16
// computation. It is a sample of query rows, over kStudyHeads heads of head_dim 64.
//
// The seed fixes all of it, up to the last digits of exp and log; figures are rounded to
// four significant digits.

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "kernels/sdpa/problem/kv_quantise.h"

namespace warpledger::ablations {

inline constexpr char kDtypesKind[] = "dtypes";

enum class StudyArithmetic {
  kExact,      // FP64 from the stored K and V: the storage's own error
  kNaiveFp16,  // S, P and O in fp16 too: what a kernel adds; with K and V in 8 bits, "mixed"
};

struct StudyScheme {
  std::string_view name;
  std::string_view label;
  bool bf16 = false;       // Q, K and V rounded to bf16
  bool quantised = false;  // K and V by `kv`
  sdpa::KvScheme kv = {};
  StudyArithmetic arithmetic = StudyArithmetic::kExact;
};
std::span<const StudyScheme> StudySchemes();

inline constexpr int kStudyHeads = 4;
inline constexpr int kStudyRowsPerHead = 32;
inline constexpr int kStudyBlockKeys = 64;

struct StudyOptions {
  uint64_t seed = 1;
  int max_seq = 16384;  // lengths are 64, 128 … up to it
};

// The record, as reports/RECORD.md describes it, but for its id, time and command line.
// `say` gets a line of progress per length and distribution.
nlohmann::ordered_json StudyDtypes(const StudyOptions& options,
                                   absl::FunctionRef<void(std::string_view)> say);

}  // namespace warpledger::ablations
