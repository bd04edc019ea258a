// SPDX-License-Identifier: Apache-2.0
// The files of a record, whether it is a folder or a pack: the one way in
// which every command reads a record.
//
// Contract
// - Open(DIR) opens the folder, or else the pack DIR.tar.zst; Open(X.tar.zst) the pack, or
//   else the folder X. A pack is verified whole before its first file is read.
// - Each thread keeps the last pack that it opened, so that a command that asks for one
//   record several times decompresses it once.
// - Reading changes nothing. A writer asks RefusePacked first.
//
// Errors: NotFound where there is neither, DataLoss for a damaged pack, InvalidArgument for
// a file that is no pack; Read: NotFound for a file that the record lacks.
//
//   absl::StatusOr<RecordFiles> files = RecordFiles::Open("reports/data/h200/mine");
//   absl::StatusOr<std::string> text = files->Read("run.json");

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/base/json_fields.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {

// A finished record as one compressed file: its bytes, and what is refused.
//
// Contract
// - A pack is a POSIX ustar archive, compressed as one zstd frame. Its first member is
//   RUN/SHA256SUMS in the format of sha256sum, then RUN/FILE for each file, sorted.
// - In place of a file of lines it contains RUN/FILE.columns, the lines by columns (columns.h); the
//   sum is that of FILE. Packs from before 2026-11-27 contain all files unchanged.
// - The same files give the same bytes with the same libzstd: no times, no owners.
// - DecodePack trusts nothing: one frame, regular files only, plain names, no name twice,
//   nothing beside what SHA256SUMS lists, every sum checked, at most kMaxPackBytes.
//
// Errors: DataLoss that names the pack and each member that does not fit; InvalidArgument
// for files that no pack can hold; Internal for libzstd.
//
//   absl::StatusOr<std::string> bytes = EncodePack({"mine", {{"run.json", "{}\n"}}});
//   absl::StatusOr<RecordPack> pack = DecodePack(*bytes, "mine.tar.zst");

inline constexpr char kPackSuffix[] = ".tar.zst";
inline constexpr char kSumsFile[] = "SHA256SUMS";
inline constexpr char kLinesSuffix[] = ".jsonl";      // of a file that is packed by columns
inline constexpr char kColumnsSuffix[] = ".columns";  // behind the name of its member
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

// --- The files -----------------------------------------------------------------

inline constexpr char kBlocksFile[] = "blocks.jsonl";  // of a calibration
inline constexpr char kDtypesFile[] = "dtypes.json";   // of a study of data types, its only one

class RecordFiles {
 public:
  static absl::StatusOr<RecordFiles> Open(const std::string& path);

  absl::StatusOr<std::string> Read(std::string_view file) const;
  bool Has(std::string_view file) const;
  // Names of all that lies in it, sorted: of a folder hidden files and folders too.
  std::vector<std::string> Names() const;

  bool packed() const { return pack_ != nullptr; }
  const std::string& path() const { return path_; }  // the folder or pack that was found
  // What the record is called: the folder's name, or that in the pack.
  std::string name() const;
  // "DIR/run.json", for messages.
  std::string PathOf(std::string_view file) const;

 private:
  RecordFiles(std::string path, std::shared_ptr<const RecordPack> pack)
      : path_(std::move(path)), pack_(std::move(pack)) {}

  std::string path_;
  std::shared_ptr<const RecordPack> pack_;  // null: a folder
};

// Read() of a record that is opened for this.
absl::StatusOr<std::string> ReadRecordFile(const std::string& record, std::string_view file);
// A status about a file of a record, with its path. A file that says the wrong thing is damaged:
// InvalidArgument becomes DataLoss. One of a later schema is not, and stays FailedPrecondition.
absl::Status InFile(const std::string& path, const absl::Status& status);
// A JSON file as the described struct (json_fields.h) that it contains; errors are InFile().
template <typename T>
absl::StatusOr<T> ReadJsonFile(const RecordFiles& files, std::string_view file) {
  ASSIGN_OR_RETURN(const std::string text, files.Read(file));
  absl::StatusOr<T> value = FromText<T>(text);
  if (!value.ok()) return InFile(files.PathOf(file), value.status());
  return value;
}
// Whether there is such a record, and it has such a file.
bool HasRecordFile(const std::string& record, std::string_view file);

// Records in a folder: its folders and packs, sorted by name; where both are there, the folder.
std::vector<std::string> RecordsIn(const std::string& folder);

// The path without a pack's suffix and without a slash at its end.
std::string WithoutPackSuffix(std::string_view path);

// InvalidArgument where `file`, which an output is about to replace, is a pack or belongs to a
// record: only summary.json is computed from one, and may be written again.
absl::Status RefuseRawFile(const std::string& file);

// FailedPrecondition where a writer to `dir` would write beside or into a pack.
absl::Status RefusePacked(const std::string& dir);

}  // namespace warpledger::ablations
