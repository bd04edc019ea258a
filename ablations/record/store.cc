// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/record/micro_record.h"
#include "ablations/record/profile.h"
#include "ablations/record/record_files.h"
#include "ablations/record/record_lines.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

std::string Join(const std::string& dir, const char* file) { return absl::StrCat(dir, "/", file); }

absl::StatusOr<RecordFiles> OpenFiles(const std::string& path) {
  absl::StatusOr<RecordFiles> files = RecordFiles::Open(path);
  const bool absent = files.ok() ? !files->Has(kRunFile) : absl::IsNotFound(files.status());
  // Records of other kinds, by a file that only they have.
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {kBlocksFile, "a calibration"},
      {kProfileFile, "a profile"},
      {kMicroFile, "a record of microbenchmarks"},
      {kDtypesFile, "a study of data types"}};
  for (const auto& [file, kind] : kOthers) {
    if (!files.ok() || !files->Has(file) || files->Has(kSamplesFile)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", kind,
                     ", which holds no samples of a design's arms. Name a record of "
                     "`warpledger run`."));
  }
  if (!absent) return files;
  return absl::NotFoundError(absl::StrCat(path, ": no record here, it has no ", kRunFile,
                                          ". Name a folder that `warpledger run` has written."));
}

// How long a writer waits for the lock. A controller that was killed between
// fork and exec of a worker leaves the lock to a child that is about to die.
constexpr absl::Duration kLockPatience = absl::Milliseconds(500);

bool LockWithin(int fd, absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) return false;
    if (absl::Now() >= deadline) {
      errno = EWOULDBLOCK;
      return false;
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

// Durably, so that no tail comes back behind lines that are added later.
absl::Status CutOff(const std::string& path, size_t bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool cut = fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0 && fdatasync(fd) == 0;
  const absl::Status status = cut ? absl::OkStatus() : OsError(path, "cut off the damaged tail");
  if (fd >= 0) close(fd);
  return status;
}

// What WriteFileAtomically leaves behind when it is killed before its rename:
// "run.json.tmp.<pid>.<n>". Nobody else writes there: the caller holds the lock.
void RemoveTemporaries(const std::string& dir) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (absl::StrContains(entry.path().filename().string(), ".json.tmp.")) {
      left.push_back(entry.path());
    }
  }
  for (const std::filesystem::path& path : left) std::filesystem::remove(path, error);
}

// Of a file that a record may lack, what `part` takes out of it.
template <typename File, typename T, typename Part>
absl::Status LoadOptional(const RecordFiles& files, const char* file, std::optional<T>* out,
                          Part part) {
  absl::StatusOr<File> value = ReadJsonFile<File>(files, file);
  if (absl::IsNotFound(value.status())) return absl::OkStatus();
  if (!value.ok()) return value.status();
  *out = std::invoke(part, *std::move(value));
  return absl::OkStatus();
}

}  // namespace

std::string RunDifference(const RunInfo& on_disk, const RunInfo& now) {
  const auto differs = [](const char* field, const std::string& before, const std::string& after) {
    return before == after ? std::string()
                           : absl::StrCat(field, " was '", before, "', now is '", after, "'");
  };
  nlohmann::ordered_json before = ToJson(on_disk);
  nlohmann::ordered_json after = ToJson(now);
  for (const char* field :
       {"design", "family", "seed", "processes", "blocks_per_process", "cache", "alone", "stopping",
        "planted", "registry_sha256", "kernel_source_sha256", "protocol_sha256", "toolchain"}) {
    std::string why = differs(field, DumpLine(before[field]), DumpLine(after[field]));
    if (!why.empty()) return why;
  }
  // Of a study, which is too long to be shown, the content's hash.
  const auto hash_of = [](const nlohmann::ordered_json& json) {
    return json.is_null() ? "" : Sha256(DumpLine(json)).substr(0, 12);
  };
  std::string other =
      differs("definition", hash_of(before["definition"]), hash_of(after["definition"]));
  if (!other.empty()) return other;
  for (const char* field : {"shapes", "arms"}) {
    std::string why =
        differs(absl::StrCat("the number of ", field).c_str(), absl::StrCat(before[field].size()),
                absl::StrCat(after[field].size()));
    for (size_t i = 0; why.empty() && i < before[field].size(); ++i) {
      why = differs(absl::StrCat(field, "[", i, "]").c_str(), DumpLine(before[field][i]),
                    DumpLine(after[field][i]));
    }
    if (!why.empty()) return why;
  }
  std::string why = differs("gpu.uuid", on_disk.gpu.uuid, now.gpu.uuid);
  if (why.empty()) why = differs("gpu.driver", on_disk.gpu.driver, now.gpu.driver);
  // What an older record or a GPU does not say is no difference.
  const auto known_and_differs = [&](const char* field, const nlohmann::ordered_json& was,
                                     const nlohmann::ordered_json& is) {
    if (!why.empty() || was.is_null() || is.is_null()) return;
    why = differs(field, DumpLine(was), DumpLine(is));
  };
  known_and_differs("replay_us", before["replay_us"], after["replay_us"]);
  known_and_differs("max_launches", before["max_launches"], after["max_launches"]);
  known_and_differs("gpu.power_limit_w", before["gpu"]["power_limit_w"],
                    after["gpu"]["power_limit_w"]);
  known_and_differs("gpu.ecc", before["gpu"]["ecc"], after["gpu"]["ecc"]);
  return why;
}

bool HasRecord(const std::string& dir) {
  struct stat info;
  return stat(Join(dir, kRunFile).c_str(), &info) == 0;
}

RecordWriter::~RecordWriter() {
  // Closing samples.jsonl lets go of the lock.
  if (calls_fd_ >= 0) close(calls_fd_);
  if (broken_fd_ >= 0) close(broken_fd_);
  if (checks_fd_ >= 0) close(checks_fd_);
  if (samples_fd_ >= 0) close(samples_fd_);
}

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::OpenLocked(const std::string& dir) {
  std::unique_ptr<RecordWriter> writer(new RecordWriter());
  writer->dir_ = dir;
  constexpr int kFlags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC;
  const std::string samples = Join(dir, kSamplesFile);
  writer->samples_fd_ = open(samples.c_str(), kFlags, 0666);
  if (writer->samples_fd_ < 0) return OsError(samples, "open");
  if (!LockWithin(writer->samples_fd_, kLockPatience)) {
    if (errno != EWOULDBLOCK) return OsError(samples, "lock");
    return absl::UnavailableError(
        absl::StrCat(dir,
                     ": another process is writing this record; wait for it to end, or "
                     "name another directory"));
  }
  RemoveTemporaries(dir);
  const std::string checks = Join(dir, kChecksFile);
  writer->checks_fd_ = open(checks.c_str(), kFlags, 0666);
  if (writer->checks_fd_ < 0) return OsError(checks, "open");
  return writer;
}

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(const std::string& dir,
                                                                   const RunInfo& run) {
  if (absl::StatusOr<Names> names = NamesOf(run); !names.ok()) return names.status();
  RETURN_IF_ERROR(RefusePacked(dir));
  RETURN_IF_ERROR(CreateDirectories(dir));
  absl::StatusOr<std::unique_ptr<RecordWriter>> writer = OpenLocked(dir);
  if (!writer.ok()) return writer;
  // Asked under the lock, or two controllers could both find nothing.
  if (HasRecord(dir)) {
    return absl::AlreadyExistsError(absl::StrCat(
        dir, ": holds a record already; resume it, or name another directory for a new one"));
  }
  if (lseek((*writer)->samples_fd_, 0, SEEK_END) > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        dir, ": holds samples but no ", kRunFile, " that says of what; name another directory"));
  }
  RETURN_IF_ERROR(WriteFileAtomically(Join(dir, kRunFile), DumpFile(ToJson(run))));
  (*writer)->run_ = run;
  return writer;
}

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Resume(const std::string& dir,
                                                                   const RunInfo& run) {
  RETURN_IF_ERROR(RefusePacked(dir));
  ASSIGN_OR_RETURN(RecordFiles files, OpenFiles(dir));
  ASSIGN_OR_RETURN(RunInfo on_disk, ReadJsonFile<RunInfo>(files, kRunFile));
  const std::string difference = RunDifference(on_disk, run);
  if (!difference.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, ": holds another run: ", difference,
                     ". Samples of the two must not mix: name another directory, or give the "
                     "arguments of the run that is there."));
  }
  absl::StatusOr<std::unique_ptr<RecordWriter>> writer = OpenLocked(dir);
  if (!writer.ok()) return writer;
  (*writer)->run_ = std::move(on_disk);
  RETURN_IF_ERROR((*writer)->ReadBack());
  return writer;
}

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Open(const std::string& dir,
                                                                 const RunInfo& run) {
  return HasRecord(dir) ? Resume(dir, run) : Create(dir, run);
}

absl::Status RecordWriter::ReadBack() {
  absl::StatusOr<Names> names = NamesOf(run_);
  if (!names.ok()) return InFile(Join(dir_, kRunFile), names.status());
  ASSIGN_OR_RETURN(std::string text, ReadAll(samples_fd_, Join(dir_, kSamplesFile)));
  ASSIGN_OR_RETURN(SampleLines samples, ParseSamples(text, *names, Tail::kRepair));
  dropped_.sample_lines = samples.dropped_lines;
  dropped_.sample_bytes = static_cast<int64_t>(text.size() - samples.good_bytes);
  if (dropped_.sample_bytes > 0) {
    RETURN_IF_ERROR(CutOff(Join(dir_, kSamplesFile), samples.good_bytes));
  }
  next_seq_ = static_cast<int64_t>(samples.samples.size());
  completed_ = std::move(samples.completed);

  RETURN_IF_ERROR(ReadBackArmLines(kChecksFile, &checks_, &dropped_.check_bytes));
  for (const Check& check : checks_) check_lines_.insert(SummedLine(ToJson(check)));
  RETURN_IF_ERROR(ReadBackArmLines(kBrokenFile, &broken_, &dropped_.broken_bytes));
  return ReadBackArmLines(kCallsFile, &calls_, &dropped_.call_bytes);
}

template <typename T>
absl::Status RecordWriter::ReadBackArmLines(const char* file, std::vector<T>* values,
                                            int64_t* dropped_bytes) {
  const std::string path = Join(dir_, file);
  ASSIGN_OR_RETURN(Names names, NamesOf(run_));
  absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  if (!text.ok()) return text.status();
  ASSIGN_OR_RETURN(ArmLines<T> lines, ParseArmLines<T>(*text, file, names, Tail::kRepair));
  *values = std::move(lines.values);
  *dropped_bytes = static_cast<int64_t>(text->size() - lines.good_bytes);
  return *dropped_bytes == 0 ? absl::OkStatus() : CutOff(path, lines.good_bytes);
}

absl::Status RecordWriter::AppendBlock(std::vector<Sample> samples) {
  if (samples.empty()) return absl::InvalidArgumentError("a block without samples");
  ASSIGN_OR_RETURN(Names names, NamesOf(run_));
  const BlockKey key = KeyOf(samples.front());
  if (completed_.contains(key)) {
    return absl::AlreadyExistsError(absl::StrCat(NameOf(key), " is on disk already"));
  }
  std::string lines;
  std::vector<Sample> before;
  for (Sample& sample : samples) {
    sample.seq = next_seq_ + static_cast<int64_t>(before.size());
    sample.of = static_cast<int>(samples.size());
    std::string why = WhyUnknown(names, sample);
    if (why.empty()) why = WhyNotNext(before, sample);
    if (!why.empty()) return absl::InvalidArgumentError(why);
    const nlohmann::ordered_json json = ToJson(sample);
    // What could not be read back must not be written.
    if (absl::StatusOr<Sample> again = FromJson<Sample>(json); !again.ok()) return again.status();
    lines += SummedLine(json);
    before.push_back(sample);
  }
  RETURN_IF_ERROR(AppendDurably(samples_fd_, Join(dir_, kSamplesFile), lines));
  next_seq_ += static_cast<int64_t>(samples.size());
  completed_.insert(key);
  return absl::OkStatus();
}

absl::Status RecordWriter::AppendCheck(const Check& check) {
  const bool known = std::any_of(run_.arms.begin(), run_.arms.end(),
                                 [&](const Arm& arm) { return arm.name == check.arm; });
  if (!known && !IsPeer(check.arm)) {
    return absl::InvalidArgumentError(
        absl::StrCat("arm '", check.arm, "' of a check is not in ", kRunFile));
  }
  const std::string line = SummedLine(ToJson(check));
  if (check_lines_.contains(line)) return absl::OkStatus();
  RETURN_IF_ERROR(AppendDurably(checks_fd_, Join(dir_, kChecksFile), line));
  check_lines_.insert(line);
  checks_.push_back(check);
  return absl::OkStatus();
}

template <typename T>
absl::Status RecordWriter::AppendArmLine(const T& value, const char* file, int* fd,
                                         std::vector<T>* values) {
  ASSIGN_OR_RETURN(Names names, NamesOf(run_));
  if (!names.arms.contains(value.arm) || !names.shapes.contains(value.shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("arm '", value.arm, "' or shape '", value.shape, "' is not in ", kRunFile));
  }
  const std::string path = Join(dir_, file);
  if (*fd < 0) {
    *fd = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0) return OsError(path, "open");
    RETURN_IF_ERROR(SyncDirectory(dir_));
  }
  absl::Status status = AppendDurably(*fd, path, SummedLine(ToJson(value)));
  if (status.ok()) values->push_back(value);
  return status;
}

absl::Status RecordWriter::AppendBroken(const BrokenArm& broken) {
  return AppendArmLine(broken, kBrokenFile, &broken_fd_, &broken_);
}

absl::Status RecordWriter::AppendCall(const LaunchedCall& call) {
  if (std::find(calls_.begin(), calls_.end(), call) != calls_.end()) return absl::OkStatus();
  return AppendArmLine(call, kCallsFile, &calls_fd_, &calls_);
}

namespace {

// A file that run.json promises: both are made with the record, so one that is
// gone is damage and no wrong path.
absl::StatusOr<std::string> ReadLines(const RecordFiles& files, const char* file) {
  absl::StatusOr<std::string> text = files.Read(file);
  if (!absl::IsNotFound(text.status())) return text;
  return absl::DataLossError(absl::StrCat(files.path(), ": has a ", kRunFile, " but no ", file,
                                          "; the record is not whole. Copy it again."));
}

template <typename T>
absl::Status LoadArmLines(const absl::StatusOr<std::string>& text, const char* file,
                          const Names& names, std::vector<T>* values) {
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  if (!text.ok()) return text.status();
  ASSIGN_OR_RETURN(ArmLines<T> lines, ParseArmLines<T>(*text, file, names, Tail::kStrict));
  *values = std::move(lines.values);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Record> LoadRecord(const std::string& path) {
  ASSIGN_OR_RETURN(const RecordFiles files, OpenFiles(path));
  Record record;
  ASSIGN_OR_RETURN(record.run, ReadJsonFile<RunInfo>(files, kRunFile));
  const absl::StatusOr<Names> names = NamesOf(record.run);
  if (!names.ok()) return InFile(files.PathOf(kRunFile), names.status());

  ASSIGN_OR_RETURN(const std::string text, ReadLines(files, kSamplesFile));
  ASSIGN_OR_RETURN(SampleLines samples, ParseSamples(text, *names, Tail::kStrict));
  record.samples = std::move(samples.samples);

  RETURN_IF_ERROR(LoadArmLines(ReadLines(files, kChecksFile), kChecksFile, *names, &record.checks));
  RETURN_IF_ERROR(LoadArmLines(files.Read(kBrokenFile), kBrokenFile, *names, &record.broken));
  RETURN_IF_ERROR(LoadArmLines(files.Read(kCallsFile), kCallsFile, *names, &record.calls));
  RETURN_IF_ERROR(LoadOptional<ResourcesFile>(files, kResourcesFile, &record.resources,
                                              &ResourcesFile::instances));
  RETURN_IF_ERROR(LoadOptional<Codegen>(files, kCodegenFile, &record.codegen, std::identity()));
  RETURN_IF_ERROR(
      LoadOptional<LaunchFile>(files, kLaunchFile, &record.launch, &LaunchFile::instances));
  RETURN_IF_ERROR(LoadOptional<PeersFile>(files, kPeersFile, &record.peers, &PeersFile::peers));
  return record;
}

}  // namespace warpledger::ablations
