// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/archive/close_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/judge/summarize.h"
#include "ablations/plan/calibration.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/record/micro_record.h"
#include "ablations/record/profile.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The fewest resamples: whether a record can be judged does not hang on them.
constexpr int kResamples = 100;

absl::StatusOr<int64_t> CheckRun(const RecordFiles& files) {
  ASSIGN_OR_RETURN(const Record record, LoadRecord(files.path()));
  ASSIGN_OR_RETURN(const Subject* subject, ablations::SubjectOf(record.run));
  ASSIGN_OR_RETURN(const summary::Summary summary,
                   Summarize(record, *subject, {.bootstrap_resamples = kResamples}));
  return summary.provenance.blocks_missing + summary.provenance.peer_blocks_missing;
}

absl::StatusOr<int64_t> CheckCalibration(const RecordFiles& files) {
  ASSIGN_OR_RETURN(const CalibrationRecord record, LoadCalibration(files.path()));
  ASSIGN_OR_RETURN(const summary::CalibrationSummary summary,
                   SummarizeCalibration(record, {.bootstrap_resamples = kResamples}));
  return summary.provenance.blocks_missing;
}

absl::StatusOr<int64_t> CheckProfiles(const RecordFiles& files) {
  RETURN_IF_ERROR(LoadProfiles(files.path()).status());
  return 0;
}

template <const char* kFile>
absl::StatusOr<int64_t> CheckJson(const RecordFiles& files) {
  ASSIGN_OR_RETURN(const std::string text, files.Read(kFile));
  const absl::StatusOr<Json> json = ParseJson(text);
  if (json.ok() && json->is_object()) return 0;
  return absl::DataLossError(absl::StrCat(files.PathOf(kFile), ": is no JSON object"));
}

// The first is computed, and tar leaves the other in a folder that it unpacks.
constexpr const char* kLeftOut[] = {kSummaryFile, kSumsFile};

constexpr char kSanitizersFile[] = "sanitizers.json";
constexpr char kStepSamplesFile[] = "step_samples.json";

// A kind of record: what it holds, and how it is read.
struct Kind {
  const char* marker;              // the file that makes a folder one of this kind
  const char* appended;            // the file that its writer locks; null: none
  std::vector<std::string> files;  // all that it can have besides the marker
  // Whether it can be read, and how many blocks it lacks.
  absl::StatusOr<int64_t> (*check)(const RecordFiles& files);
};

// A calibration has a run's marker, hence goes first.
const std::vector<Kind>& Kinds() {
  static const auto* kinds = new std::vector<Kind>{
      {kBlocksFile, kBlocksFile, {kRunFile, kSummaryFile}, &CheckCalibration},
      {kRunFile,
       kSamplesFile,
       {kSamplesFile, kChecksFile, kBrokenFile, kCallsFile, kResourcesFile, kCodegenFile,
        kLaunchFile, kPeersFile, kSummaryFile, "counters_mission_b.csv", "counters_small.csv",
        "counters_long.csv"},
       &CheckRun},
      {kProfileFile, nullptr, {kProfilesFile}, &CheckProfiles},
      // Older ones have the samples compressed, which a pack does better.
      {kMicroFile,
       nullptr,
       {"cases.json", "micro_raw.jsonl", "micro_raw.jsonl.gz"},
       &CheckJson<kMicroFile>},
      {kSanitizersFile, nullptr, {}, &CheckJson<kSanitizersFile>},
      {kStepSamplesFile, nullptr, {}, &CheckJson<kStepSamplesFile>},
      {kDtypesFile, nullptr, {}, &CheckJson<kDtypesFile>},
  };
  return *kinds;
}

absl::StatusOr<const Kind*> KindOf(const RecordFiles& files) {
  for (const Kind& kind : Kinds()) {
    if (!files.Has(kind.marker)) continue;
    std::set<std::string> known(kind.files.begin(), kind.files.end());
    known.insert(kind.marker);
    known.insert(kSumsFile);
    std::vector<std::string> unknown;
    for (const std::string& name : files.Names()) {
      std::error_code error;
      const bool regular =
          fs::symlink_status(files.PathOf(name), error).type() == fs::file_type::regular;
      if (!known.contains(name) || !regular) unknown.push_back(name);
    }
    if (unknown.empty()) return &kind;
    return absl::FailedPreconditionError(absl::StrCat(
        files.path(), " holds what is no file of such a record: ", absl::StrJoin(unknown, ", "),
        ". Move it away first"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      files.path(), ": is no record: no file there says what it is of (run.json, for one)"));
}

// Held while a record is packed; a writer holds it too.
class WriterLock {
 public:
  WriterLock() = default;
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;
  ~WriterLock() {
    if (fd_ >= 0) close(fd_);
  }
  absl::Status Take(const std::string& path) {
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return OsError(path, "open");
    if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
    if (errno != EWOULDBLOCK) return OsError(path, "lock");
    return absl::UnavailableError(
        absl::StrCat(path, ": another process is writing this record; wait for it to end"));
  }

 private:
  int fd_ = -1;
};

absl::StatusOr<RecordPack> ReadPack(const std::string& path, size_t* bytes) {
  ASSIGN_OR_RETURN(const std::string read, ReadFile(path));
  *bytes = read.size();
  return DecodePack(read, path);
}

bool Same(const RecordPack& a, const RecordPack& b) { return a.run == b.run && a.files == b.files; }

// What was killed left beside the record at `path`.
void RemoveLeftovers(const std::string& path) {
  std::error_code error;
  for (const fs::path& left : Leftovers(path)) fs::remove_all(left, error);
}

// Writes the pack under another name, reads it back, and renames it.
absl::StatusOr<size_t> WriteVerified(const RecordPack& pack, const std::string& out) {
  ASSIGN_OR_RETURN(const std::string bytes, EncodePack(pack));
  const std::string unverified = absl::StrCat(out, ".tmp.", static_cast<int64_t>(getpid()));
  RETURN_IF_ERROR(WriteFileAtomically(unverified, bytes));
  size_t size = 0;
  const absl::StatusOr<RecordPack> again = ReadPack(unverified, &size);
  absl::Status status = again.status();
  if (status.ok() && !Same(*again, pack)) {
    status = absl::InternalError(
        absl::StrCat(unverified, ": what was read back is not what was packed"));
  }
  if (status.ok() && rename(unverified.c_str(), out.c_str()) != 0) {
    status = OsError(out, "rename into place");
  }
  if (!status.ok()) {
    unlink(unverified.c_str());
    return status;
  }
  const std::string parent = fs::path(out).parent_path().string();
  RETURN_IF_ERROR(SyncDirectory(parent.empty() ? "." : parent));
  return size;
}

// What was packed and what a pack leaves out, then the folder: what came since stays, and
// with it the folder.
absl::Status RemoveFolder(const std::string& dir, const RecordPack& pack) {
  const auto remove = [&](const std::string& path) -> absl::Status {
    return std::remove(path.c_str()) == 0 || errno == ENOENT ? absl::OkStatus()
                                                             : OsError(path, "remove");
  };
  // Under another name: a folder that a kill leaves half empty would be read in the pack's place.
  const std::string going =
      absl::StrCat(WithoutPackSuffix(dir), ".tmp.", static_cast<int64_t>(getpid()));
  if (rename(dir.c_str(), going.c_str()) != 0) return OsError(dir, "rename");
  absl::Status status;
  for (const auto& [name, unused] : pack.files) {
    status.Update(remove(absl::StrCat(going, "/", name)));
  }
  for (const char* name : kLeftOut) status.Update(remove(absl::StrCat(going, "/", name)));
  status.Update(remove(going));
  if (!status.ok() && rename(going.c_str(), dir.c_str()) != 0) return OsError(going, "rename");
  return status;
}

}  // namespace

absl::StatusOr<PackResult> PackRecord(const std::string& dir, const PackOptions& options) {
  ASSIGN_OR_RETURN(const RecordFiles files, RecordFiles::Open(dir));
  // Also of a pack: its folder may have been on its way out.
  RemoveLeftovers(WithoutPackSuffix(files.path()));
  if (files.packed()) {
    return absl::InvalidArgumentError(absl::StrCat(files.path(), " is a pack already"));
  }
  const std::string out =
      options.out.empty() ? WithoutPackSuffix(files.path()) + kPackSuffix : options.out;
  if (!absl::EndsWith(out, kPackSuffix)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out=", out, ": a pack's name ends in ", kPackSuffix));
  }
  ASSIGN_OR_RETURN(const Kind* kind, KindOf(files));
  WriterLock lock;
  if (kind->appended != nullptr) {
    RETURN_IF_ERROR(lock.Take(files.PathOf(kind->appended)));
  }
  RemoveLeftovers(out);
  ASSIGN_OR_RETURN(const int64_t missing, kind->check(files));
  if (missing > 0 && !options.unfinished) {
    return absl::FailedPreconditionError(
        absl::StrCat(files.path(), ": is unfinished, ", missing,
                     " blocks are missing. The command that wrote it measures them; --unfinished "
                     "packs it as it is"));
  }
  RecordPack pack = {.run = files.name(), .files = {}};
  PackResult result = {.path = out};
  for (const std::string& name : files.Names()) {
    ASSIGN_OR_RETURN(std::string contents, files.Read(name));
    result.plain_bytes += contents.size();
    if (std::find(std::begin(kLeftOut), std::end(kLeftOut), name) == std::end(kLeftOut)) {
      pack.files[name] = std::move(contents);
    }
  }
  result.files = pack.files.size();
  std::error_code error;
  if (fs::exists(out, error)) {
    const absl::StatusOr<RecordPack> there = ReadPack(out, &result.packed_bytes);
    if (!there.ok() || !Same(*there, pack)) {
      return absl::AlreadyExistsError(absl::StrCat(
          out, " is there already and holds something else; remove it, or name another --out"));
    }
  } else {
    ASSIGN_OR_RETURN(result.packed_bytes, WriteVerified(pack, out));
  }
  if (!options.keep) RETURN_IF_ERROR(RemoveFolder(files.path(), pack));
  return result;
}

absl::StatusOr<PackResult> UnpackRecord(const std::string& path, const std::string& out) {
  const std::string file = WithoutPackSuffix(path) + kPackSuffix;
  PackResult result = {.path = out.empty() ? WithoutPackSuffix(path) : out};
  ASSIGN_OR_RETURN(RecordPack pack, ReadPack(file, &result.packed_bytes));
  std::error_code error;
  if (fs::exists(result.path, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat(result.path, " is there already; name another folder with --out"));
  }
  RemoveLeftovers(WithoutPackSuffix(result.path));
  const std::string partial =
      absl::StrCat(WithoutPackSuffix(result.path), ".tmp.", static_cast<int64_t>(getpid()));
  absl::Status status = CreateDirectories(partial);
  for (const auto& [name, contents] : pack.files) {
    status.Update(WriteFileAtomically(absl::StrCat(partial, "/", name), contents));
    result.plain_bytes += contents.size();
    ++result.files;
  }
  if (status.ok() && rename(partial.c_str(), result.path.c_str()) != 0) {
    status = OsError(result.path, "rename into place");
  }
  if (!status.ok()) {
    fs::remove_all(partial, error);
    return status;
  }
  return result;
}

}  // namespace warpledger::ablations
