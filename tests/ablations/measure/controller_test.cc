// SPDX-License-Identifier: Apache-2.0
// The controller against the stand-in's worker, which crashes, hangs and is killed.

#include "ablations/measure/controller.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "ablations/base/files.h"
#include "ablations/judge/summarize.h"
#include "ablations/measure/worker.h"
#include "ablations/plan/stopping.h"
#include "ablations/record/store.h"
#include "ablations/subjects/stand_in/stand_in.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "kernels/common/random.h"
#include "tests/ablations/record/record_fixture.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::_;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kStep[] = "cell:four_accumulators";
constexpr char kAa[] = "control:aa";

ControlledRun ExamplePlan(const std::string& dir, std::vector<std::string> worker_flags = {}) {
  ControlledRun plan;
  const PlannedDesign design = *StandInSubject().FindDesign("factorial");
  plan.run = ExampleRun();
  plan.run.subject = std::string(StandInSubject().name());
  plan.run.design = plan.run.family = design.name;
  plan.run.processes = 2;
  plan.run.blocks_per_process = 4;
  plan.run.shapes = *StandInSubject().ParseProblems("all");
  plan.run.arms.clear();
  for (const PlannedArm& arm : design.arms) plan.run.arms.push_back(arm.Recorded());
  plan.run.arms.push_back({kFloorArm, "", kRoleFloor, "", ""});
  plan.out_dir = dir;
  plan.worker = {WARPLEDGER_STAND_IN_WORKER};
  // Of thousands of steps one may take seconds on a busy machine; who hangs is waited for.
  plan.arm_limit_s = 30;
  for (std::string& flag : worker_flags) {
    if (absl::StartsWith(flag, "--fault=hang:")) plan.arm_limit_s = 2;
    plan.worker.push_back(std::move(flag));
  }
  plan.silence_limit_s = 30;
  return plan;
}

std::string Fault(const std::string& kind, const std::string& arm, const std::string& shape,
                  int block) {
  return absl::StrCat("--fault=", kind, ":", arm, ":", shape, ":", block);
}

Record Load(const std::string& dir) { return LoadRecord(dir).value(); }

// What a whole run leaves.
Record Measured(std::vector<std::string> worker_flags = {}) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  EXPECT_EQ(RunControlled(ExamplePlan(dir.path(), std::move(worker_flags))), absl::OkStatus());
  return Load(dir.path());
}

// Blocks in which the arm was timed on the shape.
int BlocksOf(const Record& record, const std::string& arm, const std::string& shape) {
  return static_cast<int>(
      std::count_if(record.samples.begin(), record.samples.end(),
                    [&](const Sample& s) { return s.arm == arm && s.shape == shape; }));
}

constexpr int kAllBlocks = 2 * 4;  // of one arm on one shape

TEST(Controller, MeasuresEveryBlockOfEveryProcess) {
  const Record record = Measured();
  for (const Arm& arm : record.run.arms) {
    EXPECT_EQ(BlocksOf(record, arm.name, "sum_1k"), kAllBlocks) << arm.name;
    EXPECT_EQ(BlocksOf(record, arm.name, "sum_64k"), kAllBlocks) << arm.name;
  }
  EXPECT_THAT(record.broken, IsEmpty());
}

struct Death {
  const char* fault;
  const char* kind;
  const char* reason;
};

class ArmThatEndsItsWorker : public ::testing::TestWithParam<Death> {};

TEST_P(ArmThatEndsItsWorker, IsBrokenOnThatShapeAloneAndTheRunGoesOn) {
  for (const int block : {-1, 0, 2}) {
    const Record record = Measured({Fault(GetParam().fault, kStep, "sum_64k", block)});
    // Once: the second process was not asked to try again.
    ASSERT_THAT(record.broken, SizeIs(1));
    EXPECT_EQ(record.broken[0].process, 0);
    EXPECT_EQ(record.broken[0].arm, kStep);
    EXPECT_EQ(record.broken[0].shape, "sum_64k");
    EXPECT_EQ(record.broken[0].kind, GetParam().kind);
    EXPECT_EQ(record.broken[0].doing, block < 0 ? "checking it on inputs 'normal'" : "timing it");
    EXPECT_THAT(record.broken[0].reason, HasSubstr(GetParam().reason));
    // What it gave before stays; everybody else has every block.
    EXPECT_EQ(BlocksOf(record, kStep, "sum_64k"), std::max(0, block));
    EXPECT_EQ(BlocksOf(record, kStep, "sum_1k"), kAllBlocks);
    for (const char* other : {"cell:none", kAa, kFloorArm}) {
      EXPECT_EQ(BlocksOf(record, other, "sum_64k"), kAllBlocks) << other;
    }
  }
}

TEST_P(ArmThatEndsItsWorker, IsJudgedBrokenWithTheReason) {
  const Record record = Measured({Fault(GetParam().fault, kStep, "sum_64k", 2)});
  const summary::Summary summary =
      Summarize(record, StandInSubject(), {.bootstrap_resamples = 200}).value();
  int judged = 0;
  for (const summary::Verdict& verdict : summary.verdicts) {
    const bool of_step = verdict.candidate == kStep || verdict.base == kStep;
    if (verdict.shape != "sum_64k" || !of_step) {
      EXPECT_NE(verdict.verdict, "BROKEN");
      continue;
    }
    ++judged;
    EXPECT_EQ(verdict.verdict, "BROKEN");
    EXPECT_THAT(verdict.reason, HasSubstr(GetParam().reason));
  }
  EXPECT_EQ(judged, 2);  // against its base, and as the base of another
  for (const summary::Cell& cell : summary.cells) {
    if (cell.variant != kStep || cell.shape != "sum_64k") continue;
    EXPECT_EQ(cell.correct, false);
    EXPECT_THAT(cell.reason, HasSubstr(GetParam().reason));
    EXPECT_FALSE(cell.speedup_over_first) << "what is broken is never ranked";
  }
}

INSTANTIATE_TEST_SUITE_P(Deaths, ArmThatEndsItsWorker,
                         ::testing::Values(Death{"trap", "trap", "the kernel trapped"},
                                           Death{"segv", "crash", "Segmentation fault"},
                                           Death{"hang", "no_answer", "no answer within 2 s"}),
                         [](const ::testing::TestParamInfo<Death>& info) {
                           return std::string(info.param.fault);
                         });

TEST(Controller, LeavesOutOneArmAfterAnother) {
  const Record record =
      Measured({Fault("trap", "cell:none", "sum_1k", 1), Fault("segv", kStep, "sum_1k", -1),
                Fault("trap", kAa, "sum_1k", 3), Fault("trap", kStep, "sum_64k", 0)});
  EXPECT_THAT(record.broken, SizeIs(4));
  EXPECT_EQ(BlocksOf(record, "cell:none", "sum_1k"), 1);
  EXPECT_EQ(BlocksOf(record, kStep, "sum_1k"), 0);
  EXPECT_EQ(BlocksOf(record, kAa, "sum_1k"), 3);
  EXPECT_EQ(BlocksOf(record, kFloorArm, "sum_1k"), kAllBlocks);
  EXPECT_EQ(BlocksOf(record, kFloorArm, "sum_64k"), kAllBlocks);
}

TEST(Controller, TimesAnArmWithWrongResultsButJudgesItBroken) {
  const Record record = Measured({Fault("wrong", kStep, "sum_1k", -1)});
  EXPECT_THAT(record.broken, IsEmpty());
  EXPECT_EQ(BlocksOf(record, kStep, "sum_1k"), kAllBlocks);
  const auto summary = Summarize(record, StandInSubject(), {.bootstrap_resamples = 200});
  ASSERT_TRUE(summary.ok()) << summary.status();
  for (const summary::Verdict& verdict : summary->verdicts) {
    if (verdict.shape != "sum_1k" || verdict.candidate != kStep) continue;
    EXPECT_EQ(verdict.verdict, "BROKEN");
    EXPECT_THAT(verdict.reason, HasSubstr("the planted results are wrong"));
  }
}

TEST(Controller, AResumedRunLeavesOutWhatBrokeInTheCallBefore) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  // Ends with an error in the second shape, after an arm broke on the first.
  EXPECT_FALSE(RunControlled(ExamplePlan(dir.path(), {Fault("trap", kStep, "sum_1k", 1),
                                                      Fault("exit", kAa, "sum_64k", 1)}))
                   .ok());
  ASSERT_THAT(Load(dir.path()).broken, SizeIs(1));
  ASSERT_EQ(RunControlled(ExamplePlan(dir.path())), absl::OkStatus());
  const Record record = Load(dir.path());
  EXPECT_THAT(record.broken, SizeIs(1));
  EXPECT_EQ(BlocksOf(record, kStep, "sum_1k"), 1);
  EXPECT_EQ(BlocksOf(record, kStep, "sum_64k"), kAllBlocks);
}

struct Stranger {
  const char* fault;
  const char* message;
};

class EndThatIsNoArmsDoing : public ::testing::TestWithParam<Stranger> {};

TEST_P(EndThatIsNoArmsDoing, EndsTheRunBlamesNobodyAndIsResumed) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  EXPECT_THAT(
      RunControlled(ExamplePlan(dir.path(), {Fault(GetParam().fault, kStep, "sum_64k", 1)})),
      StatusIs(_, HasSubstr(GetParam().message)));
  EXPECT_THAT(Load(dir.path()).broken, IsEmpty());
  ASSERT_TRUE(RunControlled(ExamplePlan(dir.path())).ok());
  EXPECT_EQ(BlocksOf(Load(dir.path()), kStep, "sum_64k"), kAllBlocks);
}

INSTANTIATE_TEST_SUITE_P(
    Ends, EndThatIsNoArmsDoing,
    ::testing::Values(Stranger{"kill", "signal 9"}, Stranger{"host", "signal 11"},
                      Stranger{"exit", "status 3"}, Stranger{"garbage", "not JSON"},
                      Stranger{"short", "without having measured all of its blocks"}),
    [](const ::testing::TestParamInfo<Stranger>& info) { return std::string(info.param.fault); });

TEST(Controller, BlamesNoArmWhenTheFloorDies) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  EXPECT_FALSE(
      RunControlled(ExamplePlan(dir.path(), {Fault("segv", kFloorArm, "sum_1k", 0)})).ok());
  EXPECT_THAT(Load(dir.path()).broken, IsEmpty());
}

TEST(Controller, RefusesToGoOnWithOtherFaultsPlantedThanTheRecordDeclares) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ASSERT_TRUE(RunControlled(ExamplePlan(dir.path())).ok());
  ControlledRun planted = ExamplePlan(dir.path());
  planted.run.planted = {{"trap", kStep, ""}};
  EXPECT_THAT(RunControlled(planted),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("planted")));
}

// The invented times differ by 0.3%: some goals are met at once, some never.
ControlledRun StoppingPlan(const std::string& dir, const std::string& goal) {
  ControlledRun plan = ExamplePlan(dir);
  plan.run.processes = 5;
  plan.run.stopping = *ParseStopping(goal, plan.run.processes);
  return plan;
}

TEST(Controller, EndsAtTheFirstLookWhereTheGoalIsMet) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ASSERT_TRUE(RunControlled(StoppingPlan(dir.path(), "ci:20%")).ok());
  const Record record = Load(dir.path());
  EXPECT_EQ(BlocksOf(record, kStep, "sum_1k"), 3 * 4);
  EXPECT_EQ(BlocksOf(record, kStep, "sum_64k"), 3 * 4);
  // The same call adds nothing: the decision is made from the record alone.
  ASSERT_TRUE(RunControlled(StoppingPlan(dir.path(), "ci:20%")).ok());
  EXPECT_EQ(Load(dir.path()).samples.size(), record.samples.size());
}

TEST(Controller, RunsAllProcessesWhereTheGoalIsNeverMet) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ASSERT_TRUE(RunControlled(StoppingPlan(dir.path(), "ci:0.01%")).ok());
  EXPECT_EQ(BlocksOf(Load(dir.path()), kStep, "sum_1k"), 5 * 4);
}

TEST(Controller, RefusesToGoOnUnderAnotherStoppingRuleThanTheRecordDeclares) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ASSERT_TRUE(RunControlled(StoppingPlan(dir.path(), "ci:20%")).ok());
  EXPECT_THAT(RunControlled(StoppingPlan(dir.path(), "ci:0.01%")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("stopping")));
}

TEST(Controller, SaysAtOnceAndOncePerPeerWhyItIsNotMeasured) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ControlledRun plan = ExamplePlan(dir.path());
  for (const char* peer : {"flash", "cudnn", "fa3"}) {
    plan.known_peers.push_back(peer);
    plan.run.arms.push_back({absl::StrCat(kPeerPrefix, peer), "", kRolePeer, "", ""});
  }
  // In each process it says of both shapes that fa3 is not there; then it fails.
  plan.peers = {"/bin/sh", "-c",
                R"(cat > /dev/null
say() { printf '{"peer":{"name":"peer:%s","version":"1","available":%s,"reason":"%s","checks":[]}}\n' "$@"; }
say flash true ""
for shape in sum_1k sum_64k; do say fa3 false "$shape: the library is empty; get a wheel"; done
exit 3)"};
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(RunControlled(plan), absl::OkStatus());
  const std::vector<std::string> said =
      absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n');
  const std::string why = "peer:fa3 is not measured: sum_1k: the library is empty; get a wheel";
  EXPECT_EQ(std::count(said.begin(), said.end(), why), 1);
  EXPECT_THAT(said, Not(Contains(AnyOf(HasSubstr("peer:flash"), HasSubstr("peer:cudnn")))));
  // Before the first process of the peers ends, and with it what they say at its end.
  const auto ends = [](const std::string& line) { return line.starts_with("peers not measured"); };
  EXPECT_LT(std::find(said.begin(), said.end(), why), std::find_if(said.begin(), said.end(), ends));
  EXPECT_EQ(std::count_if(said.begin(), said.end(), ends), plan.run.processes);
}

TEST(Controller, KeepsOnceWhatACallOfAPeerLaunches) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ControlledRun plan = ExamplePlan(dir.path());
  plan.known_peers = {"cudnn"};
  plan.run.arms.push_back({absl::StrCat(kPeerPrefix, "cudnn"), "", kRolePeer, "", ""});
  plan.peers = {"/bin/sh", "-c", R"(cat > /dev/null
echo '{"call":{"arm":"peer:cudnn","shape":"sum_1k","lines":["by graph","kernel theirs"]}}')"};
  ASSERT_EQ(RunControlled(plan), absl::OkStatus());
  std::vector<std::vector<std::string>> lines;
  for (const LaunchedCall& call : Load(dir.path()).calls) {
    if (call.arm == "peer:cudnn") lines.push_back(call.lines);
  }
  EXPECT_GT(plan.run.processes, 1);  // each of which says it
  EXPECT_THAT(lines, ElementsAre(ElementsAre("by graph", "kernel theirs")));
}

// --- Kills -----------------------------------------------------------------------

using Files = std::map<std::string, std::string>;

// Every file of a record with its bytes.
Files FilesOf(const std::string& dir) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    files[entry.path().filename().string()] = *ReadFile(entry.path().string());
  }
  return files;
}

void WriteFiles(const std::string& dir, const Files& files) {
  for (const auto& [name, bytes] : files) {
    ASSERT_TRUE(WriteFileAtomically(dir + "/" + name, bytes).ok());
  }
}

// What arms do in the runs that are killed: one breaks in the midst of them.
std::vector<std::string> FlagsOfKilledRuns(int slow_us) {
  return {absl::StrCat("--slow_us=", slow_us), Fault("trap", kStep, "sum_64k", 2)};
}

// Runs the controller in a process of its own and kills it after `delay`. True
// when it was killed, false when it had ended well before.
bool RunAndKill(const ControlledRun& plan, absl::Duration delay) {
  const pid_t controller = fork();
  if (controller == 0) {
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
    _exit(RunControlled(plan).ok() ? 0 : 1);
  }
  const absl::Time deadline = absl::Now() + delay;
  int status = 0;
  while (absl::Now() < deadline) {
    if (waitpid(controller, &status, WNOHANG) == controller) break;
    absl::SleepFor(absl::Microseconds(200));
  }
  if (absl::Now() >= deadline) {
    kill(controller, SIGKILL);
    waitpid(controller, &status, 0);
  }
  if (WIFSIGNALED(status)) return true;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "a resumed run failed";
  return false;
}

TEST(ControllerKilledAtRandomMoments, LeavesTheRecordOfARunThatWasNeverKilled) {
  const ScratchFolder reference = ScratchFolder::Make().value();
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(RunControlled(ExamplePlan(reference.path(), FlagsOfKilledRuns(300))).ok());
  const absl::Duration whole = absl::Now() - begin;
  const Files expected = FilesOf(reference.path());
  ASSERT_THAT(Load(reference.path()).broken, SizeIs(1));

  constexpr int kKills = 120;
  SplitMix64 random(20261121);
  int kills = 0;
  int runs = 0;
  std::set<size_t> sizes;  // of samples.jsonl at the kills: where in the run they fell
  while (kills < kKills) {
    ++runs;
    const ScratchFolder dir = ScratchFolder::Make().value();
    const ControlledRun plan = ExamplePlan(dir.path(), FlagsOfKilledRuns(300));
    // A kill at every third of a run on average; a run that goes nowhere would
    // be killed for ever, so after many the rest goes undisturbed.
    int here = 0;
    while (RunAndKill(plan, here < 20 ? random.Uniform() * whole / 1.5 : absl::Seconds(60))) {
      ++here;
      std::error_code none;
      const auto bytes = std::filesystem::file_size(dir.path() + "/" + kSamplesFile, none);
      sizes.insert(none ? 0 : bytes);
    }
    kills += here;
    EXPECT_EQ(FilesOf(dir.path()), expected) << "after " << here << " kills";
    if (HasFailure()) break;
  }
  std::printf("%d kills in %d runs of %s each, at %d different sizes of %s\n", kills, runs,
              absl::FormatDuration(whole).c_str(), static_cast<int>(sizes.size()), kSamplesFile);
  EXPECT_GE(kills, 100);
  EXPECT_GE(sizes.size(), 8u) << "the kills all fell into the same few moments";
}

// A power cut may leave any prefix of what was being appended.
TEST(ControllerAfterATornWrite, MendsAnyLengthOfAnyAppendedFile) {
  const ScratchFolder reference = ScratchFolder::Make().value();
  ASSERT_TRUE(RunControlled(ExamplePlan(reference.path(), FlagsOfKilledRuns(0))).ok());
  const Files expected = FilesOf(reference.path());
  // The first block without the arm that broke: only behind it can both files have
  // been cut by one power cut.
  const std::string& whole = expected.at(kSamplesFile);
  const size_t broke = whole.find("\"block\":2,\"order\":0,\"of\":6");
  ASSERT_NE(broke, std::string::npos);
  const size_t broke_line = whole.rfind('\n', broke) + 1;
  SplitMix64 random(7);
  for (int i = 0; i < 30; ++i) {
    const ScratchFolder dir = ScratchFolder::Make().value();
    WriteFiles(dir.path(), expected);
    std::filesystem::resize_file(dir.path() + "/" + kSamplesFile,
                                 broke_line + random.Below(whole.size() - broke_line));
    ASSERT_TRUE(RunControlled(ExamplePlan(dir.path(), FlagsOfKilledRuns(0))).ok());
    EXPECT_EQ(FilesOf(dir.path()), expected);
  }
  for (size_t cut = 1; cut < expected.at(kBrokenFile).size(); cut += 7) {
    const ScratchFolder dir = ScratchFolder::Make().value();
    WriteFiles(dir.path(), expected);
    // The arm was being written down, so there is no block without it yet.
    std::filesystem::resize_file(dir.path() + "/" + kSamplesFile, broke_line);
    const std::string& broken = expected.at(kBrokenFile);
    std::filesystem::resize_file(dir.path() + "/" + kBrokenFile, broken.size() - cut);
    ASSERT_TRUE(RunControlled(ExamplePlan(dir.path(), FlagsOfKilledRuns(0))).ok());
    EXPECT_EQ(FilesOf(dir.path()).at(kBrokenFile), expected.at(kBrokenFile));
    EXPECT_EQ(FilesOf(dir.path()).at(kSamplesFile), whole);
  }
}

TEST(Controller, RemovesWhatAKilledWriterOfAWholeFileLeftBehind) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ASSERT_TRUE(RunControlled(ExamplePlan(dir.path())).ok());
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/" + kBrokenFile)) << "no arm broke";
  const std::string left = dir.path() + "/" + kRunFile + ".tmp.123.0";
  ASSERT_TRUE(WriteFileAtomically(left, "{\"half").ok());
  ASSERT_TRUE(RunControlled(ExamplePlan(dir.path())).ok());
  EXPECT_FALSE(std::filesystem::exists(left));
}

// --- Each arm alone -----------------------------------------------------------------

ControlledRun AlonePlanOf(const std::string& dir, std::vector<std::string> worker_flags = {}) {
  ControlledRun plan = ExamplePlan(dir, std::move(worker_flags));
  plan.run.alone = AlonePlan{};
  plan.run.processes = 4;
  plan.run.blocks_per_process = 1;
  std::erase_if(plan.run.arms, [](const Arm& arm) { return arm.role == kRoleFloor; });
  return plan;
}

std::string SamplesIn(const std::string& dir) {
  return ReadFile(absl::StrCat(dir, "/", kSamplesFile)).value();
}

// The arms of a shape as a process visited them.
std::vector<std::string> VisitsOf(const Record& record, int process, const std::string& shape) {
  std::vector<std::string> arms;
  for (const Sample& sample : record.samples) {
    if (sample.process == process && sample.shape == shape) arms.push_back(sample.arm);
  }
  return arms;
}

TEST(ControllerAlone, VisitsEachArmOnceARoundAndBackInTheNext) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ASSERT_EQ(RunControlled(AlonePlanOf(dir.path())), absl::OkStatus());
  const Record record = Load(dir.path());
  for (const char* shape : {"sum_1k", "sum_64k"}) {
    for (const int process : {0, 2}) {
      std::vector<std::string> there = VisitsOf(record, process, shape);
      EXPECT_THAT(there, SizeIs(record.run.arms.size()));
      std::reverse(there.begin(), there.end());
      EXPECT_EQ(VisitsOf(record, process + 1, shape), there);
    }
  }
  for (const Sample& sample : record.samples) {
    EXPECT_TRUE(sample.IsVisit());
    EXPECT_GT(sample.Watts().value_or(0), 0);
  }
}

TEST(ControllerAlone, AKillCostsAtMostOneVisitAndTheSameCallResumes) {
  const ScratchFolder whole = ScratchFolder::Make().value();
  ASSERT_EQ(RunControlled(AlonePlanOf(whole.path())), absl::OkStatus());
  const std::string all = SamplesIn(whole.path());
  const ScratchFolder dir = ScratchFolder::Make().value();
  // In the last visit of the first process on its second shape.
  const std::string last = VisitsOf(Load(whole.path()), 0, "sum_64k").back();
  EXPECT_FALSE(RunControlled(AlonePlanOf(dir.path(), {Fault("kill", last, "sum_64k", 0)})).ok());
  const std::string killed = SamplesIn(dir.path());
  EXPECT_EQ(std::count(killed.begin(), killed.end(), '\n'),
            2 * static_cast<int>(Load(whole.path()).run.arms.size()) - 1);
  EXPECT_TRUE(all.starts_with(killed));
  ASSERT_EQ(RunControlled(AlonePlanOf(dir.path())), absl::OkStatus());
  EXPECT_EQ(SamplesIn(dir.path()), all);
}

TEST(ControllerAlone, GoesOnWithoutAnArmThatBreaks) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ASSERT_EQ(RunControlled(AlonePlanOf(dir.path(), {Fault("trap", kStep, "sum_64k", 0)})),
            absl::OkStatus());
  const Record record = Load(dir.path());
  ASSERT_THAT(record.broken, SizeIs(1));
  EXPECT_EQ(record.broken[0].doing, "timing it");
  EXPECT_EQ(BlocksOf(record, kStep, "sum_64k"), 0);
  EXPECT_EQ(BlocksOf(record, kStep, "sum_1k"), 4);
  EXPECT_EQ(BlocksOf(record, kAa, "sum_64k"), 4);
}

TEST(ControllerAlone, ARecordOfArmsInTurnIsNotGoneOnWith) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ControlledRun turns = ExamplePlan(dir.path());
  turns.run.processes = 4;
  turns.run.blocks_per_process = 1;
  ASSERT_EQ(RunControlled(turns), absl::OkStatus());
  EXPECT_THAT(RunControlled(AlonePlanOf(dir.path())),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("alone")));
}

}  // namespace
}  // namespace warpledger::ablations
