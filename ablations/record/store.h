// SPDX-License-Identifier: Apache-2.0
// The record on disk: appended block by block while a run goes on, read whole
// when it is judged.
//
// Contract
// - A block of samples is one write() to an O_APPEND file, then fdatasync. A
//   kill at any moment loses at most the block in flight.
// - Opening a record to append repairs its tail: a last line without its
//   newline, and a last block with fewer samples than its `of`, are cut off and
//   reported by `dropped()`. Damage anywhere else is an error.
// - Reading never repairs and never drops: LoadRecord fails on any damage.
// - Samples of two cache modes never share a record: a sample whose `cache` is not
//   that of run.json is refused when written and damage when read.
// - One writer at a time: it holds flock(2) on samples.jsonl until destroyed.
//   The lock lives on the open file, so it also goes when the process is killed;
//   a writer waits a moment for that.
//   A forked child shares it until it execs (the descriptor is close-on-exec).
//
// Errors: DataLoss for damage ("samples.jsonl:17: …"), AlreadyExists and
// FailedPrecondition for a directory that holds another run or is packed, Unavailable when
// another process writes to it, NotFound for no record, Internal for the OS.
//
//   absl::StatusOr<std::unique_ptr<RecordWriter>> writer = RecordWriter::Open(dir, run);
//   if (!(*writer)->CompletedBlocks().contains({.process = 0, .shape = "small", .block = 3}))
//     RETURN_IF_ERROR((*writer)->AppendBlock(samples));

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ablations/record/record.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// What was cut off when a record was opened to append.
struct DroppedTail {
  int64_t sample_lines = 0;  // of an incomplete block, a truncated line included
  int64_t sample_bytes = 0;
  int64_t check_bytes = 0;   // a truncated last line of correctness.jsonl
  int64_t broken_bytes = 0;  // a truncated last line of broken.jsonl
  int64_t call_bytes = 0;    // a truncated last line of calls.jsonl

  bool Any() const {
    return sample_bytes > 0 || check_bytes > 0 || broken_bytes > 0 || call_bytes > 0;
  }
};

class RecordWriter {
 public:
  // Starts a record; AlreadyExists when `dir` holds a run.json.
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Create(const std::string& dir,
                                                              const RunInfo& run);
  // Goes on with a record of the same design, family, arms, shapes, seed,
  // processes, blocks, cache mode, length of replays, stopping rule, kernels, GPU, its power
  // limit and ECC mode; anything else is FailedPrecondition that names the first difference.
  // run.json stays as it was.
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Resume(const std::string& dir,
                                                              const RunInfo& run);
  // Resume when `dir` holds a run.json, Create otherwise.
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Open(const std::string& dir,
                                                            const RunInfo& run);

  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  ~RecordWriter();

  // Appends samples of one (process, shape, block), all peers or all not, each
  // `order` from 0 to n-1 once. Sets their `seq` and `of`. On failure the file
  // is put back to where it was.
  absl::Status AppendBlock(std::vector<Sample> samples);
  // Does nothing when the very same check is on disk: a run that was stopped
  // makes the checks of an unfinished shape again, and one answer is one line.
  absl::Status AppendCheck(const Check& check);
  // Makes broken.jsonl with the first.
  absl::Status AppendBroken(const BrokenArm& broken);
  // Makes calls.jsonl with the first; does nothing when the very same call is on disk.
  absl::Status AppendCall(const LaunchedCall& call);

  // Blocks that are on disk in full, those appended by this writer included.
  const std::set<BlockKey>& CompletedBlocks() const { return completed_; }
  // Checks on disk, for resuming: those appended by this writer included.
  const std::vector<Check>& Checks() const { return checks_; }
  // Arms that could not be run, in this call or an earlier one.
  const std::vector<BrokenArm>& Broken() const { return broken_; }
  const DroppedTail& dropped() const { return dropped_; }
  // The run as run.json holds it.
  const RunInfo& run() const { return run_; }
  const std::string& dir() const { return dir_; }
  int64_t next_seq() const { return next_seq_; }

 private:
  RecordWriter() = default;
  static absl::StatusOr<std::unique_ptr<RecordWriter>> OpenLocked(const std::string& dir);
  absl::Status ReadBack();
  // Of a file of lines that name an arm and a shape, made with its first line.
  template <typename T>
  absl::Status ReadBackArmLines(const char* file, std::vector<T>* values, int64_t* dropped_bytes);
  template <typename T>
  absl::Status AppendArmLine(const T& value, const char* file, int* fd, std::vector<T>* values);

  std::string dir_;
  RunInfo run_;
  int samples_fd_ = -1;
  int checks_fd_ = -1;
  int broken_fd_ = -1;  // until there is a broken arm
  int calls_fd_ = -1;   // until there is a call
  int64_t next_seq_ = 0;
  std::set<BlockKey> completed_;
  std::vector<Check> checks_;
  std::set<std::string> check_lines_;
  std::vector<BrokenArm> broken_;
  std::vector<LaunchedCall> calls_;
  DroppedTail dropped_;
};

// A whole record. The optional parts are absent when their file is.
struct Record {
  RunInfo run;
  std::vector<Sample> samples;
  std::vector<Check> checks;
  std::vector<BrokenArm> broken;    // empty where there is no broken.jsonl
  std::vector<LaunchedCall> calls;  // empty where there is no calls.jsonl
  std::optional<std::vector<InstanceResources>> resources;
  std::optional<Codegen> codegen;
  std::optional<std::vector<InstanceLaunch>> launch;
  std::optional<std::vector<PeerInfo>> peers;
};

// Reads a record without changing it: a folder or a pack (record_files.h).
absl::StatusOr<Record> LoadRecord(const std::string& path);

// The first field in which `now` is another run than the one on disk, or empty. What is compared is
// what makes samples comparable: the plan, the code, the GPU and its settings.
std::string RunDifference(const RunInfo& on_disk, const RunInfo& now);

// True when the folder `dir` holds a run.json.
bool HasRecord(const std::string& dir);

// Names of a record's files.
inline constexpr char kRunFile[] = "run.json";
inline constexpr char kSamplesFile[] = "samples.jsonl";
inline constexpr char kChecksFile[] = "correctness.jsonl";
inline constexpr char kBrokenFile[] = "broken.jsonl";
inline constexpr char kCallsFile[] = "calls.jsonl";
inline constexpr char kResourcesFile[] = "resources.json";
inline constexpr char kCodegenFile[] = "codegen.json";
inline constexpr char kLaunchFile[] = "launch.json";
inline constexpr char kPeersFile[] = "peers.json";
inline constexpr char kSummaryFile[] = "summary.json";

}  // namespace warpledger::ablations
