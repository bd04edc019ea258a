// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/calibration_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "ablations/base/files.h"
#include "ablations/base/json_fields.h"
#include "ablations/record/record_lines.h"
#include "ablations/record/store.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

std::string InDir(const std::string& dir, const char* file) { return absl::StrCat(dir, "/", file); }

double SixDecimals(double value) {
  double rounded = value;
  (void)absl::SimpleAtod(absl::StrFormat("%.6f", value), &rounded);
  return rounded;
}

// The whole lines of blocks.jsonl, and how many bytes they are.
struct Lines {
  std::vector<CalibrationBlock> blocks;
  int64_t checks = 0;
  size_t bytes = 0;
};

absl::StatusOr<Lines> ParseLines(const std::string& text, const CalibrationHeader& header) {
  Lines lines;
  std::set<std::pair<int, int>> seen;
  const RunInfo& run = header.run;
  const auto visit = [&](std::string_view line, int64_t) -> absl::Status {
    ASSIGN_OR_RETURN(const Json json, ParseJson(line));
    if (json.is_object() && json.contains("checks")) {
      ASSIGN_OR_RETURN(const CalibrationChecks checks, FromJson<CalibrationChecks>(json));
      lines.checks += checks.checks;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(CalibrationBlock block, CalibrationBlockFromJson(json, run.arms.size()));
    if (block.process >= run.processes || block.block >= run.blocks_per_process) {
      return absl::DataLossError("a block that run.json does not plan");
    }
    if (!seen.insert({block.process, block.block}).second) {
      return absl::DataLossError("a block that was there before");
    }
    lines.blocks.push_back(std::move(block));
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(lines.bytes, ForEachLine(text, kBlocksFile, Tail::kRepair, visit));
  return lines;
}

// The first thing that keeps `now` from going on with `then`; empty: nothing does.
std::string FirstDifference(const RunInfo& then, const RunInfo& now) {
  if (then.shapes != now.shapes) return "its shape";
  if (then.seed != now.seed) return "its seed";
  if (then.processes != now.processes) return "its number of processes";
  if (then.blocks_per_process != now.blocks_per_process) return "its number of blocks";
  if (then.gpu.uuid != now.gpu.uuid) return "its GPU";
  if (then.kernel_source_sha256 != now.kernel_source_sha256) return "its kernels' sources";
  if (then.protocol_sha256 != now.protocol_sha256) return "its timing protocol's sources";
  // What an older record or a GPU does not say is no difference.
  const auto differ = [](const auto& was, const auto& is) { return was && is && *was != *is; };
  if (differ(then.replay_us, now.replay_us)) return "its --replay_us";
  if (differ(then.max_launches, now.max_launches)) return "its --max_launches";
  if (differ(then.gpu.power_limit_w, now.gpu.power_limit_w)) return "its GPU's power limit";
  if (differ(then.gpu.ecc, now.gpu.ecc)) return "its GPU's ECC mode";
  return "";
}

}  // namespace

Json ToJson(const CalibrationPlan& plan) { return PlanText(plan); }

absl::Status FromJson(const Json& json, const FieldPath& path, CalibrationPlan& plan) {
  std::string text;
  RETURN_IF_ERROR(json_fields::Read(json, path, text));
  absl::StatusOr<CalibrationPlan> parsed = ParsePlan(text);
  if (parsed.ok()) plan = *std::move(parsed);
  return parsed.status();
}

std::string CalibrationHeader::WhyInvalid() const {
  if (run.shapes.size() != 1) return "shapes: a calibration has one shape";
  const std::vector<PlannedArm> planned = ArmsOf(plan);
  const std::vector<Arm>& arms = run.arms;
  if (arms.size() != planned.size() + 1) {
    return absl::StrCat("arms: the plan has ", planned.size() + 1, ", not ", arms.size());
  }
  for (size_t i = 0; i < planned.size(); ++i) {
    if (arms[i].name != planned[i].name || arms[i].role != planned[i].role ||
        arms[i].base != planned[i].base) {
      return absl::StrCat("arms: '", arms[i].name, "' stands where the plan has '", planned[i].name,
                          "'");
    }
  }
  return arms.back().role == kRoleFloor ? "" : "arms: the last is not the empty kernel";
}

absl::StatusOr<CalibrationBlock> CalibrationBlockFromJson(const Json& json, size_t arms) {
  CalibrationBlock block;
  block.launches.resize(arms);
  block.sm_mhz.resize(arms);
  block.throttle.resize(arms);
  RETURN_IF_ERROR(json_fields::Read(json, FieldPath(), block));
  const auto refuse = [](const char* why) { return absl::InvalidArgumentError(why); };
  if (block.us.size() != arms || block.launches.size() != arms || block.sm_mhz.size() != arms ||
      (!block.throttle.empty() && block.throttle.size() != arms)) {
    return refuse("not as many samples as run.json has arms");
  }
  std::vector<int> sorted = block.order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int>(i)) return refuse("order: not each arm once");
  }
  if (sorted.size() != arms) return refuse("order: not each arm once");
  return block;
}

bool IsCalibrationRecord(const std::string& record) {
  const absl::StatusOr<std::string> text = ReadRecordFile(record, kRunFile);
  if (!text.ok()) return false;
  const absl::StatusOr<Json> json = ParseJson(*text);
  return json.ok() && json->is_object() && json->contains("design") &&
         (*json)["design"] == kCalibrateDesign;
}

absl::StatusOr<CalibrationHeader> LoadCalibrationHeader(const std::string& record) {
  ASSIGN_OR_RETURN(const std::string text, ReadRecordFile(record, kRunFile));
  absl::StatusOr<CalibrationHeader> header = FromText<CalibrationHeader>(text);
  if (header.ok()) return header;
  return absl::DataLossError(absl::StrCat(kRunFile, ": ", std::string(header.status().message())));
}

absl::StatusOr<CalibrationRecord> LoadCalibration(const std::string& record) {
  ASSIGN_OR_RETURN(CalibrationHeader header, LoadCalibrationHeader(record));
  ASSIGN_OR_RETURN(const std::string text, ReadRecordFile(record, kBlocksFile));
  ASSIGN_OR_RETURN(Lines lines, ParseLines(text, header));
  if (lines.bytes != text.size()) {
    return absl::DataLossError(absl::StrCat(
        kBlocksFile, ": its last line is cut off; the same `warpledger calibrate` repairs it"));
  }
  return CalibrationRecord{std::move(header), std::move(lines.blocks), lines.checks};
}

absl::StatusOr<std::unique_ptr<CalibrationWriter>> CalibrationWriter::Open(
    const std::string& dir, const CalibrationHeader& header) {
  RETURN_IF_ERROR(RefusePacked(dir));
  RETURN_IF_ERROR(CreateDirectories(dir));
  std::unique_ptr<CalibrationWriter> writer(new CalibrationWriter);
  writer->fd_ =
      open(InDir(dir, kBlocksFile).c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (writer->fd_ < 0) return OsError(InDir(dir, kBlocksFile), "open");
  if (flock(writer->fd_, LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(absl::StrCat("another process writes to ", dir));
  }
  writer->header_ = header;
  if (!HasRecord(dir)) {
    // Of another plan, they would be read as blocks of this one.
    if (lseek(writer->fd_, 0, SEEK_END) > 0) {
      return absl::FailedPreconditionError(absl::StrCat(dir, ": holds blocks but no ", kRunFile,
                                                        " that says of what; name another --out"));
    }
    RETURN_IF_ERROR(WriteFileAtomically(InDir(dir, kRunFile), DumpFile(ToJson(header))));
  } else {
    ASSIGN_OR_RETURN(CalibrationHeader found, LoadCalibrationHeader(dir));
    std::string difference = FirstDifference(found.run, header.run);
    if (!(found.plan == header.plan)) difference = "its plan";
    if (!difference.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          dir, " holds another calibration: ", difference, " differs; name another --out"));
    }
    writer->header_ = std::move(found);
  }
  ASSIGN_OR_RETURN(std::string text, ReadFile(InDir(dir, kBlocksFile)));
  ASSIGN_OR_RETURN(Lines lines, ParseLines(text, writer->header_));
  if (lines.bytes != text.size() && ftruncate(writer->fd_, static_cast<off_t>(lines.bytes)) != 0) {
    return OsError(InDir(dir, kBlocksFile), "cut off an unfinished line");
  }
  for (const CalibrationBlock& block : lines.blocks) {
    writer->completed_.insert({block.process, block.block});
  }
  return writer;
}

CalibrationWriter::~CalibrationWriter() {
  if (fd_ >= 0) close(fd_);
}

absl::Status CalibrationWriter::Append(const CalibrationBlock& block) {
  // A million times finer than what the events resolve.
  CalibrationBlock rounded = block;
  for (double& us : rounded.us) us = SixDecimals(us);
  RETURN_IF_ERROR(AppendDurably(fd_, kBlocksFile, SummedLine(ToJson(rounded))));
  completed_.insert({block.process, block.block});
  return absl::OkStatus();
}

absl::Status CalibrationWriter::Append(const CalibrationChecks& checks) {
  return AppendDurably(fd_, kBlocksFile, SummedLine(ToJson(checks)));
}

}  // namespace warpledger::ablations
