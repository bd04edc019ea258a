// SPDX-License-Identifier: Apache-2.0
// Reads and writes NumPy's .npy files, the format in which tensors enter and
// leave the command line.
//
// Contract: files of format 1.0, 2.0 and 3.0 that hold fp16 ('<f2') or fp32
// ('<f4') in C order, of any rank, with no empty dimension. What is read is
// exactly one array: short files and trailing bytes are errors, not surprises
// later on. A file is no larger than kLargestFile (files.h). A write is atomic: the path holds its
// old content or the whole new array, never a part of it.
//
// Errors: those of ReadFile; InvalidArgument for a file that isn't such an array, which ends with
// what to do; Unavailable when the system refuses to write. Each message opens with the path.
//
//   absl::StatusOr<NpyArray> q = ReadNpy("q.npy");
//   if (!q.ok()) return q.status();
//   absl::Status fits = CheckNpy("q.npy", *q, NpyType::kFloat16, {1, 8, 512, 64});

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

enum class NpyType { kFloat16, kFloat32 };

// Bytes of one element.
constexpr int64_t NpyTypeBytes(NpyType type) { return type == NpyType::kFloat16 ? 2 : 4; }
// As the file spells it: "<f2" or "<f4".
constexpr const char* NpyDescr(NpyType type) { return type == NpyType::kFloat16 ? "<f2" : "<f4"; }

struct NpyArray {
  std::vector<int64_t> shape;  // empty: a scalar, one element
  NpyType type = NpyType::kFloat16;
  std::vector<std::byte> data;  // little-endian, C order
};

absl::StatusOr<NpyArray> ReadNpy(const std::string& path);

// The array must be of this type and shape. InvalidArgument says which differs.
absl::Status CheckNpy(const std::string& path, const NpyArray& array, NpyType type,
                      absl::Span<const int64_t> shape);

// `data` must hold as many bytes as `shape` and `type` say.
absl::Status WriteNpy(const std::string& path, absl::Span<const int64_t> shape, NpyType type,
                      absl::Span<const std::byte> data);
absl::Status WriteNpy(const std::string& path, const NpyArray& array);

// A shape as Python writes it: "(2, 8, 64)", "(3,)", "()".
std::string NpyShapeString(absl::Span<const int64_t> shape);

}  // namespace warpledger::ablations
