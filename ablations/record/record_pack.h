// SPDX-License-Identifier: Apache-2.0
// A finished record as one compressed file: its bytes, and what is refused.
//
// Contract
// - A pack is a POSIX ustar archive, compressed as one zstd frame. Its first member is
//   RUN/SHA256SUMS in the format of sha256sum, then RUN/FILE for each file, sorted. So
//   `tar --zstd -xf X.tar.zst && cd RUN && sha256sum -c SHA256SUMS` reads it anywhere.
// - The same files give the same bytes with the same libzstd: no times, no owners.
// - DecodePack trusts nothing: one frame, regular files only, plain names, no name twice,
//   nothing beside what SHA256SUMS lists, every sum checked, at most kMaxPackBytes.
//
// Errors: DataLoss that names the pack and each member that does not fit; InvalidArgument
// for files that no pack can hold; Internal for libzstd.
//
//   absl::StatusOr<std::string> bytes = EncodePack({"mine", {{"run.json", "{}\n"}}});
//   absl::StatusOr<RecordPack> pack = DecodePack(*bytes, "mine.tar.zst");

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace warpledger::ablations {

inline constexpr char kPackSuffix[] = ".tar.zst";
inline constexpr char kSumsFile[] = "SHA256SUMS";
// Of the archive within; the largest record of 2026 has 7 MiB.
inline constexpr size_t kMaxPackBytes = size_t{1} << 28;

struct RecordPack {
  std::string run;                           // what the record is called
  std::map<std::string, std::string> files;  // contents by name, SHA256SUMS not among them
};

absl::StatusOr<std::string> EncodePack(const RecordPack& pack);
// `path` is for messages alone.
absl::StatusOr<RecordPack> DecodePack(std::string_view bytes, const std::string& path);

// Whether a pack can hold a record or a file of this name: letters, digits and "._+-", not
// first a dot or a dash, no longer than 100 characters with both.
bool IsPackName(std::string_view name);

// In hexadecimal digits.
std::string Sha256(std::string_view bytes);

}  // namespace warpledger::ablations
