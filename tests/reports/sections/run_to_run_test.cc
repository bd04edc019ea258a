// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const CalibratedNoise kCalibrated = {.shape = "mission_b",
                                     .config = "fast",
                                     .arms = 86,
                                     .trials = 300,
                                     .within_percent = 0.3,
                                     .between_percent = 0.1,
                                     .mde_percent = 0.15};

Cell CellOf(const char* config, const char* code, double us, double half_width) {
  Cell cell;
  cell.variant = cell.config = config;
  cell.role = "step";
  cell.shape = "mission_b";
  cell.code_sha256 = code;
  cell.p50_us = {us, us - half_width, us + half_width};
  return cell;
}

Verdict VerdictOf(const char* base, const char* candidate, Spread spread, double mde_ratio) {
  Verdict verdict;
  verdict.toggle = candidate;
  verdict.base = base;
  verdict.candidate = candidate;
  verdict.shape = "mission_b";
  verdict.verdict = "ADOPT";
  verdict.spread = spread;
  verdict.mde_ratio = mde_ratio;
  return verdict;
}

// Two steps: slow -> middle -> fast; the second is noisy.
Summary RecordOf(const char* run_id, const char* board, double fast_us) {
  Summary run;
  run.run_id = run_id;
  run.provenance.gpu.uuid = board;
  run.cells = {CellOf("slow", "code-slow", 100, 1), CellOf("middle", "code-middle", 50, 1),
               CellOf("fast", "code-fast", fast_us, 0.2)};
  run.verdicts = {VerdictOf("slow", "middle", {0.001, 0.0005}, 1.002),
                  VerdictOf("middle", "fast", {0.02, 0.009}, 1.0205)};
  Control control;
  control.shape = "mission_b";
  control.spread = {0.015, 0.004};
  control.mde_ratio = 1.01;
  run.controls = {control};
  return run;
}

TEST(RunToRunTest, SetsTheNoiseOfEachRecordBesideTheCalibrations) {
  const std::string text = RunToRunSection(kCalibrated, {{RecordOf("a", "x", 20)}, 0.02});
  EXPECT_THAT(text, HasSubstr("## What it does not cover\n"));
  EXPECT_THAT(text, HasSubstr("| this calibration | identical | 300 | 0.30% | 0.10% | 0.15% |\n"));
  EXPECT_THAT(text, HasSubstr("| `a` | identical (controls) | 1 | 1.50% | 0.40% | 1.00% |\n"));
  EXPECT_THAT(text, HasSubstr("| `a` | judged, this kernel one of the two | 1 | 2.00% | 0.90% | "
                              "2.05% |\n"));
  EXPECT_THAT(text, HasSubstr("| `a` | judged, other kernels | 1 | 0.10% | 0.05% | 0.20% |\n"));
  EXPECT_THAT(text, HasSubstr("No machine code was timed in two of the records"));
}

TEST(RunToRunTest, ShowsTheMedianAndTheLargestOfSeveral) {
  Summary run = RecordOf("a", "x", 20);
  run.verdicts.push_back(VerdictOf("slow", "middle", {0.003, 0.0005}, 1.004));
  run.verdicts.back().toggle = "another";
  EXPECT_THAT(RunToRunSection(kCalibrated, {{run}, 0.02}),
              HasSubstr("other kernels | 2 | 0.20% (0.30%) | 0.05% (0.05%) | 0.30% (0.40%) |"));
}

TEST(RunToRunTest, CountsRepeatsOfTheSameCodeWhoseIntervalsLieApart) {
  // 20 ± 0.2 and 20.6 ± 0.2 µs: 2.9% apart; the other two cells repeat exactly.
  const std::string text =
      RunToRunSection(kCalibrated, {{RecordOf("a", "x", 20), RecordOf("b", "x", 20.6)}, 0.02});
  EXPECT_THAT(text, HasSubstr("| `a`, `b` | the same | 3 | 1 | 0.00% (2.91%) | 1 |\n"));
  EXPECT_THAT(text, HasSubstr("1 of 3 such repeats have intervals of p50 that don't overlap"));
  EXPECT_THAT(text, HasSubstr("The calibrated kernel took 20.00 µs [19.80, 20.20] in `a` and "
                              "20.60 µs [20.40, 20.80] in `b` at `mission_b`."));
  EXPECT_THAT(text, HasSubstr("identical code differed by more in 1 of the 3 repeats"));
}

// Two boards may begin in the same second.
TEST(RunToRunTest, TellsRecordsOfOneNameApartByTheirBoards) {
  const Summary a = RecordOf("a", "GPU-01234567-89ab", 20);
  const Summary b = RecordOf("a", "GPU-89abcdef-0123", 20);
  const std::string text = RunToRunSection(kCalibrated, {{a, b, RecordOf("c", "x", 20)}, 0.02});
  EXPECT_THAT(text, HasSubstr("| `a` of GPU-01234567, `a` of GPU-89abcdef | another |"));
  EXPECT_THAT(text, HasSubstr("| `a` of GPU-89abcdef, `c` | another |"));
  EXPECT_THAT(text, HasSubstr("| `a` of GPU-01234567 | identical (controls) |"));
}

TEST(RunToRunTest, OtherCodeControlsAndCellsWithoutATimeAreNoRepeats) {
  Summary a = RecordOf("a", "x", 20);
  Summary b = RecordOf("b", "y", 20.6);
  b.cells[0].code_sha256 = "other";
  b.cells[1].p50_us = {};
  b.cells[2].role = "aa";
  EXPECT_THAT(RunToRunSection(kCalibrated, {{a, b}, 0.02}),
              HasSubstr("No machine code was timed in two of the records"));
  b.cells[2].role = "step";
  EXPECT_THAT(RunToRunSection(kCalibrated, {{a, b}, 0.02}),
              HasSubstr("| `a`, `b` | another | 1 | 1 | 2.91% | 1 |\n"));
}

TEST(RunToRunTest, OlderSummariesWithoutSpreadsOfControlsHaveNoRowOfThem) {
  Summary run = RecordOf("a", "x", 20);
  run.controls[0].spread = {};
  run.controls[0].mde_ratio.reset();
  EXPECT_THAT(RunToRunSection(kCalibrated, {{run}, 0.02}), Not(HasSubstr("controls")));
}

}  // namespace
}  // namespace warpledger::report
