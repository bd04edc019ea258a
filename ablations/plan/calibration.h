// SPDX-License-Identifier: Apache-2.0
// The record of a calibration on disk: run.json, and blocks.jsonl with one line
// per block (reports/RECORD.md). It holds some ten times as many samples as other
// records, hence the denser form; a block is one line, so none is ever half there.
//
// Contract
// - Appending is one write() to an O_APPEND file, then fdatasync: a kill loses at
//   most the block in flight. Opening to append cuts off a last line without its
//   newline; damage anywhere else is an error.
// - Reading never repairs. One writer at a time, by flock(2) on blocks.jsonl.
//
// Errors: DataLoss for damage ("blocks.jsonl:17: …"), FailedPrecondition for a
// directory that holds another calibration, Unavailable when another process
// writes to it, Internal for the OS.
//
//   auto writer = CalibrationWriter::Open(dir, header);
//   if (!(*writer)->Has(process, block)) RETURN_IF_ERROR((*writer)->Append(line));

#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ablations/plan/subject.h"
#include "ablations/record/record.h"
#include "ablations/record/record_files.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// What a calibration times: many arms of one kernel, some of them slowed by a
// known delay, side by side in each block.
//
// Contract
// - Null arms are the same kernel under many names. Null arms 2k and 2k+1 make the
//   A/A trial k, so no two A/A trials share a sample.
// - A planted arm is the kernel with a delay at the end of each replay. It is
//   judged against a null arm of its own: trials of one size share no sample,
//   trials of different sizes, and A/A trials, may share a null arm's.
// - For each size an arm replays the delay alone, which measures the plant itself.
// - A trial is `trial_processes` processes in a row and all blocks of each.
// The plan has a printed form that a record keeps as it is, so that the arms of
// old records stay what they were.
//
// Errors: InvalidArgument for text that is no plan.
//
//   CalibrationPlan plan = {.variant = "kv_tiling", .null_arms = 40,
//                           .plants = {{.percent = 2, .arms = 10, .cycles = 40000}}};
//   absl::StatusOr<Design> design = CalibrationDesign(PlanText(plan));

struct Plant {
  double percent = 0;  // the slow-down that is aimed at
  int arms = 0;
  int64_t cycles = 0;  // of the delay, per replay

  friend bool operator==(const Plant&, const Plant&) = default;
};

// "2%", as the names of arms print it.
std::string SizeText(const Plant& plant);

struct CalibrationPlan {
  std::string variant;  // printed configuration
  int trial_processes = 5;
  int family_size = 1;  // the family that a planted trial is judged in
  int null_arms = 2;    // even
  int aa_family = 2;    // A/A trials that are judged as one family, as a run's controls are
  std::vector<Plant> plants;

  friend bool operator==(const CalibrationPlan&, const CalibrationPlan&) = default;
};

constexpr bool IsCalibration(std::string_view design) {
  return design.substr(0, 10) == "calibrate:";
}

// The most arms that a plan may have, those of the delays included: a block times each.
inline constexpr int kMostCalibrationArms = 10'000;

// InvalidArgument where no calibration can be made of the plan: arms that would be too
// many, share a null arm within one size, or share a name.
absl::Status CheckPlan(const CalibrationPlan& plan);

// "calibrate:kv_tiling;processes=5;family=35;nulls=40;plants=2%x10@40000", and with A/A
// families of another size ";aa_family=4" before the plants.
std::string PlanText(const CalibrationPlan& plan);
absl::StatusOr<CalibrationPlan> ParsePlan(std::string_view text);

// The arms of a plan, each of the plan's variant; the empty kernel is none of them.
std::vector<PlannedArm> ArmsOf(const CalibrationPlan& plan);

// What a worker of a calibration measures.
absl::StatusOr<PlannedDesign> CalibrationDesign(std::string_view text);

// --- Its record -------------------------------------------------------------

inline constexpr char kCalibrateDesign[] = "calibrate";

// What the delays were computed from, before the first block.
struct DelayPilot {
  int launches = 0;         // in a replay
  double replay_us = 0;     // of a null arm's
  double intercept_us = 0;  // what a delay of no cycles adds to a replay
  double us_per_cycle = 0;

  void Visit(auto& f) {
    f("launches", launches, "in a replay");
    f("replay_us", replay_us, "of a null arm's");
    f("intercept_us", intercept_us, "what a delay of no cycles adds to a replay");
    f("us_per_cycle", us_per_cycle);
  }
  friend bool operator==(const DelayPilot&, const DelayPilot&) = default;
};

// run.json: RunInfo's fields, the plan's text and the pilot.
struct CalibrationHeader {
  RunInfo run;  // of one shape; its arms are the plan's, and the floor
  CalibrationPlan plan;
  DelayPilot pilot;

  // Where the arms are not those of the plan, whose names judging relies on.
  std::string WhyInvalid() const;

  void Visit(auto& f) {
    run.Visit(f);
    FIELDS(plan, pilot);
  }
};

// Samples in the order of run.arms.
struct CalibrationBlock {
  int process = 0;
  int block = 0;
  std::vector<int> order;     // arms, as they were timed
  std::vector<int> launches;  // in a replay
  std::vector<double> us;
  std::vector<double> sm_mhz;      // 0: not read
  std::vector<uint64_t> throttle;  // NVML clock event reasons; empty: not read
  double temp_c = 0;               // of the last sample; 0: not read
  double power_w = 0;

  void Visit(auto& f) {
    f("process", process, AtLeast{0});
    f("block", block, AtLeast{0});
    f("order", order, "arms, as they were timed");
    f("launches", launches, kOneForAll, Each{AtLeast{1}});
    f("us", us, Each{Above{0, "a time"}});
    f("sm_mhz", sm_mhz, kOneForAll, "0: not read");
    f("throttle", throttle, kOneForAll, "[] where the GPU does not say");
    f("temp_c", temp_c, "of the last sample; 0: not read");
    f("power_w", power_w);
  }
  friend bool operator==(const CalibrationBlock&, const CalibrationBlock&) = default;
};

// How many correctness checks a process made; a wrong one ends a calibration.
struct CalibrationChecks {
  int process = 0;
  int checks = 0;

  void Visit(auto& f) {
    f("process", process);
    f("checks", checks, Within{0, 1'000'000}, "that the process made; a wrong one ends the run");
  }
};

struct CalibrationRecord {
  CalibrationHeader header;
  std::vector<CalibrationBlock> blocks;
  int64_t checks = 0;
};

// A plan is its text.
nlohmann::ordered_json ToJson(const CalibrationPlan& plan);
absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path,
                      CalibrationPlan& plan);
// `arms`: how many samples the block must have.
absl::StatusOr<CalibrationBlock> CalibrationBlockFromJson(const nlohmann::ordered_json& json,
                                                          size_t arms);

class CalibrationWriter {
 public:
  // Starts a record, or goes on with one of the same plan in which RunDifference() (store.h)
  // finds no difference, whose header then replaces `header`. Blocks without a run.json are
  // FailedPrecondition.
  static absl::StatusOr<std::unique_ptr<CalibrationWriter>> Open(const std::string& dir,
                                                                 const CalibrationHeader& header);
  CalibrationWriter(const CalibrationWriter&) = delete;
  CalibrationWriter& operator=(const CalibrationWriter&) = delete;
  ~CalibrationWriter();

  absl::Status Append(const CalibrationBlock& block);
  absl::Status Append(const CalibrationChecks& checks);
  bool Has(int process, int block) const { return completed_.contains({process, block}); }
  size_t n_blocks() const { return completed_.size(); }
  const CalibrationHeader& header() const { return header_; }

 private:
  CalibrationWriter() = default;

  CalibrationHeader header_;
  std::set<std::pair<int, int>> completed_;
  int fd_ = -1;
};

// True when `dir` holds a calibration's run.json.
bool IsCalibrationRecord(const std::string& record);
absl::StatusOr<CalibrationHeader> LoadCalibrationHeader(const std::string& record);
absl::StatusOr<CalibrationRecord> LoadCalibration(const std::string& record);

}  // namespace warpledger::ablations
