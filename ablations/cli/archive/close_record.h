// SPDX-License-Identifier: Apache-2.0
// Closes a record's folder into a pack, and opens a pack into a folder again.
//
// Contract
// - PackRecord takes finished records of every kind that reports/RECORD.md names. It refuses
//   one that does not load, that lacks blocks, that another process writes, or whose folder
//   holds a file that its kind does not have. summary.json stays out: it is computed.
// - The pack is written under another name, read back, compared with the folder's files and
//   renamed; only then the folder goes, file by file. A kill at any moment leaves the
//   folder or the pack whole; the same call goes on.
// - UnpackRecord leaves the pack, and makes the whole folder or none.
//
// Errors: those of loading; InvalidArgument for a path that is no folder or no pack,
// FailedPrecondition for what is refused, AlreadyExists for another file or folder in the
// place, Unavailable for a record in use.
//
//   absl::StatusOr<PackResult> packed = PackRecord("out/mine", {});

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace warpledger::ablations {

struct PackOptions {
  std::string out = {};     // empty: the folder's path with .tar.zst
  bool keep = false;        // the folder
  bool unfinished = false;  // take a record that lacks blocks
};

struct PackResult {
  std::string path;  // the pack, or the folder that was unpacked
  size_t files = 0;
  size_t plain_bytes = 0;
  size_t packed_bytes = 0;

  double plain_mib() const { return static_cast<double>(plain_bytes) / (1 << 20); }
  double packed_mib() const { return static_cast<double>(packed_bytes) / (1 << 20); }
};

absl::StatusOr<PackResult> PackRecord(const std::string& dir, const PackOptions& options);
// `out` is a folder that does not exist; empty: the pack's path without .tar.zst.
absl::StatusOr<PackResult> UnpackRecord(const std::string& pack, const std::string& out);

}  // namespace warpledger::ablations
