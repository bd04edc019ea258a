// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/calibration.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "ablations/base/files.h"
#include "ablations/base/json_fields.h"
#include "ablations/plan/job.h"
#include "ablations/record/record.h"
#include "ablations/record/record_lines.h"
#include "ablations/record/store.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/common/status_macros.h"
#include "kernels/common/text.h"

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
  ASSIGN_OR_RETURN(const RecordFiles files, RecordFiles::Open(record));
  return ReadJsonFile<CalibrationHeader>(files, kRunFile);
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
    std::string difference = RunDifference(found.run, header.run);
    if (!(found.plan == header.plan)) {
      difference = absl::StrCat("plan was '", PlanText(found.plan), "', now is '",
                                PlanText(header.plan), "'");
    }
    if (!difference.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(dir, " holds another calibration: ", difference, "; name another --out"));
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

namespace {

// "4x" of "4x@120" and the like: what stands before `end`, as a number.
template <typename Number, typename Parse>
bool TakeNumber(absl::string_view* text, absl::string_view end, Parse parse, Number* number) {
  const size_t at = text->find(end);
  if (at == absl::string_view::npos || !parse(text->substr(0, at), number)) return false;
  text->remove_prefix(at + end.size());
  return true;
}

bool ParsePlant(absl::string_view text, Plant* plant) {
  return TakeNumber(
             &text, "%x", [](auto t, double* n) { return absl::SimpleAtod(t, n); },
             &plant->percent) &&
         TakeNumber(
             &text, "@", [](auto t, int* n) { return absl::SimpleAtoi(t, n); }, &plant->arms) &&
         absl::SimpleAtoi(text, &plant->cycles) && plant->percent > 0 && plant->percent < 100 &&
         plant->arms > 0 && plant->cycles > 0;
}

std::string Numbered(const std::string& name, int number) {
  return absl::StrFormat("%s:%02d", name, number);
}

}  // namespace

std::string SizeText(const Plant& plant) { return absl::StrCat(plant.percent, "%"); }

std::string PlanText(const CalibrationPlan& plan) {
  std::string text = absl::StrCat(
      "calibrate:", plan.variant, ";processes=", plan.trial_processes, ";family=", plan.family_size,
      ";nulls=", plan.null_arms,
      plan.aa_family != 2 ? absl::StrCat(";aa_family=", plan.aa_family) : "", ";plants=");
  for (const Plant& plant : plan.plants) {
    absl::StrAppend(&text, &plant == plan.plants.data() ? "" : ",", plant.percent, "%x", plant.arms,
                    "@", plant.cycles);
  }
  return text;
}

absl::Status CheckPlan(const CalibrationPlan& plan) {
  const auto refuse = [](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("no calibration: ", why...));
  };
  if (plan.null_arms < 2 || plan.null_arms % 2 != 0) {
    return refuse(plan.null_arms, " null arms, which are no pairs");
  }
  if (plan.aa_family < 1) return refuse("A/A families of ", plan.aa_family, " trials");
  int64_t arms = plan.null_arms;
  std::set<std::string> sizes;  // as the names of arms print them
  for (const Plant& plant : plan.plants) {
    const std::string size = SizeText(plant);
    if (!sizes.insert(size).second) return refuse("two plants of ", size);
    if (plant.arms > plan.null_arms) {
      return refuse(plant.arms, " arms slowed by ", size, " need as many null arms, not ",
                    plan.null_arms);
    }
    arms += plant.arms + int64_t{1};
  }
  if (arms <= kMostCalibrationArms) return absl::OkStatus();
  return refuse("it has ", arms, " arms; ", kMostCalibrationArms, " are the most");
}

absl::StatusOr<CalibrationPlan> ParsePlan(std::string_view text) {
  const absl::Status malformed = absl::InvalidArgumentError(
      absl::StrCat("'", Text(text),
                   "' is no calibration; one reads "
                   "calibrate:VARIANT;processes=5;family=35;nulls=40;plants=2%x10@40000"));
  if (!IsCalibration(text)) return malformed;
  const std::vector<std::string> parts = absl::StrSplit(Text(text.substr(10)), ';');
  if (parts.size() < 5 || parts.size() > 6 || parts[0].empty()) return malformed;
  CalibrationPlan plan;
  plan.variant = parts[0];
  const auto number = [](absl::string_view part, absl::string_view key, int* value) {
    return absl::ConsumePrefix(&part, key) && absl::SimpleAtoi(part, value) && *value > 0;
  };
  if (parts.size() == 6 && !number(parts[4], "aa_family=", &plan.aa_family)) return malformed;
  absl::string_view plants = parts.back();
  if (!number(parts[1], "processes=", &plan.trial_processes) ||
      !number(parts[2], "family=", &plan.family_size) ||
      !number(parts[3], "nulls=", &plan.null_arms) || !absl::ConsumePrefix(&plants, "plants=")) {
    return malformed;
  }
  for (const absl::string_view part : absl::StrSplit(plants, ',', absl::SkipEmpty())) {
    if (!ParsePlant(part, &plan.plants.emplace_back())) return malformed;
  }
  RETURN_IF_ERROR(CheckPlan(plan));
  return plan;
}

std::vector<PlannedArm> ArmsOf(const CalibrationPlan& plan) {
  std::vector<PlannedArm> arms;
  for (int i = 0; i < plan.null_arms; ++i) {
    const bool partner = i % 2 == 1;
    arms.push_back({.name = Numbered("null", i),
                    .config = plan.variant,
                    .role = partner ? "aa" : "base",
                    .base = partner ? Numbered("null", i - 1) : ""});
  }
  int next_null = 0;
  for (const Plant& plant : plan.plants) {
    const std::string size = SizeText(plant);
    for (int i = 0; i < plant.arms; ++i) {
      arms.push_back({.name = Numbered(absl::StrCat("planted_", size), i),
                      .config = plan.variant,
                      .role = kRolePlanted,
                      .base = Numbered("null", next_null),
                      .spin_cycles = plant.cycles});
      next_null = (next_null + 1) % plan.null_arms;
    }
    arms.push_back({.name = absl::StrCat("delay_", size),
                    .role = kRoleDelay,
                    .spin_cycles = plant.cycles,
                    .spin_alone = true});
  }
  return arms;
}

absl::StatusOr<PlannedDesign> CalibrationDesign(std::string_view text) {
  ASSIGN_OR_RETURN(const CalibrationPlan plan, ParsePlan(text));
  return PlannedDesign{
      .name = std::string(text),
      .label = absl::StrCat("the same kernel many times, some with a known delay: ", plan.variant),
      .arms = ArmsOf(plan),
      .floors = {kFloorArm},
      .peers = false};
}

}  // namespace warpledger::ablations
