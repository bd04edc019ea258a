// SPDX-License-Identifier: Apache-2.0
// The files of a record, whether it is a folder or a pack (record_pack.h): the one way in
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

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/record/record_pack.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

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
