// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/store.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>
#include <utility>

#include "ablations/base/files.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/ablations/record/record_fixture.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StoreTest : public ::testing::Test {
 protected:
  std::string dir() const { return root_.path() + "/h200/run"; }
  std::string File(const char* name) const { return dir() + "/" + name; }
  // As older records have it, so that tests can change a line: without sums.
  std::string Text(const char* name) const {
    return std::regex_replace(ReadFile(File(name)).value(), std::regex(",\"sum\":\"[0-9a-f]{8}\""),
                              "");
  }
  void Overwrite(const char* name, const std::string& text) const {
    std::ofstream(File(name), std::ios::binary | std::ios::trunc) << text;
  }

  // A record of `blocks` blocks of process 0 on "small".
  void MakeRecord(int blocks) const {
    const auto writer = RecordWriter::Create(dir(), ExampleRun()).value();
    for (int block = 0; block < blocks; ++block) {
      ASSERT_EQ(writer->AppendBlock(ExampleBlock(0, "small", block)), absl::OkStatus());
    }
  }

  absl::StatusOr<std::unique_ptr<RecordWriter>> Resume(const RunInfo& run = ExampleRun()) const {
    return RecordWriter::Resume(dir(), run);
  }
  absl::StatusOr<Record> Load() const { return LoadRecord(dir()); }

  ScratchFolder root_ = ScratchFolder::Make().value();
};

TEST_F(StoreTest, WhatIsWrittenIsReadBack) {
  MakeRecord(2);
  {
    const auto writer = Resume().value();
    ASSERT_TRUE(writer->AppendCheck(ExampleCheck("minimal_scalar", "small")).ok());
  }
  const Record record = Load().value();
  EXPECT_EQ(record.run, ExampleRun());
  ASSERT_EQ(record.samples.size(), 2 * ExampleRun().arms.size());
  for (size_t i = 0; i < record.samples.size(); ++i) {
    EXPECT_EQ(record.samples[i].seq, static_cast<int64_t>(i));
    EXPECT_EQ(record.samples[i].of, static_cast<int>(ExampleRun().arms.size()));
  }
  ASSERT_EQ(record.checks.size(), 1u);
  EXPECT_FALSE(record.codegen.has_value());
}

TEST_F(StoreTest, SamplesOfTwoCacheModesNeverShareARecord) {
  MakeRecord(1);
  {
    const auto writer = Resume().value();
    std::vector<Sample> block = ExampleBlock(0, "small", 1);
    block[2].cache = kCacheCold;
    EXPECT_THAT(writer->AppendBlock(block),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("cache mode 'cold', but run.json says 'warm'")));
  }
  std::string text = Text(kSamplesFile);
  text.replace(text.find("\"warm\""), 6, "\"cold\"");
  Overwrite(kSamplesFile, text);
  EXPECT_THAT(Load(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("samples.jsonl:1: cache mode")));
  RunInfo cold = ExampleRun();
  cold.cache = kCacheCold;
  EXPECT_THAT(Resume(cold), StatusIs(_, HasSubstr("cache was")));
}

TEST_F(StoreTest, TheSameCheckIsOneLineAndAnotherAnswerIsAnother) {
  MakeRecord(1);
  Check check = ExampleCheck("minimal_scalar", "small");
  for (int call = 0; call < 2; ++call) {
    const auto writer = Resume().value();
    ASSERT_TRUE(writer->AppendCheck(check).ok());
    ASSERT_TRUE(writer->AppendCheck(check).ok());
  }
  EXPECT_EQ(Load()->checks.size(), 1u);
  check.correct = false;
  check.reason = "it is a race";
  auto writer = Resume();
  ASSERT_TRUE((*writer)->AppendCheck(check).ok());
  EXPECT_EQ(Load()->checks.size(), 2u);
}

TEST_F(StoreTest, BrokenArmsAreReadBackAndATornOneIsMendedByTheNextWriter) {
  MakeRecord(1);
  EXPECT_FALSE(std::filesystem::exists(File(kBrokenFile)));
  const BrokenArm first = {0, "ladder:kv_tiling", "small", "trap", "timing it", "it trapped"};
  const BrokenArm second = {1, "control:aa", "mission_b", "no_answer", "warming up", "no answer"};
  {
    const auto writer = Resume().value();
    ASSERT_TRUE(writer->AppendBroken(first).ok());
    ASSERT_TRUE(writer->AppendBroken(second).ok());
    EXPECT_FALSE(writer->AppendBroken({0, "nobody", "small", "trap", "", "why"}).ok());
    EXPECT_FALSE(writer->AppendBroken({0, "control:aa", "nowhere", "trap", "", "why"}).ok());
  }
  EXPECT_EQ(Load()->broken, (std::vector<BrokenArm>{first, second}));
  const std::string whole = Text(kBrokenFile);
  Overwrite(kBrokenFile, whole.substr(0, whole.size() - 5));
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss));
  const auto writer = Resume().value();
  EXPECT_TRUE(writer->dropped().Any());
  EXPECT_EQ(writer->Broken(), std::vector<BrokenArm>{first});
  ASSERT_TRUE(writer->AppendBroken(second).ok());
  EXPECT_EQ(Text(kBrokenFile), whole);
}

TEST_F(StoreTest, DamageToABrokenArmBeforeTheTailIsAnErrorWithItsLine) {
  MakeRecord(1);
  Overwrite(kBrokenFile, "{\"process\":0}\n");
  EXPECT_THAT(Load(), StatusIs(_, HasSubstr("broken.jsonl:1: arm")));
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(StoreTest, CallsAreReadBackOnceEachAndATornOneIsMendedByTheNextWriter) {
  MakeRecord(1);
  EXPECT_FALSE(std::filesystem::exists(File(kCallsFile)));
  const LaunchedCall first = {"ladder:kv_tiling", "small", {"by graph", "kernel a"}};
  const LaunchedCall other = {"ladder:kv_tiling", "small", {"by graph", "kernel b"}};
  for (int process = 0; process < 2; ++process) {
    const auto writer = Resume().value();
    ASSERT_TRUE(writer->AppendCall(first).ok());
    ASSERT_TRUE(writer->AppendCall(other).ok());
    EXPECT_FALSE(writer->AppendCall({"nobody", "small", {"by graph"}}).ok());
    EXPECT_FALSE(writer->AppendCall({"control:aa", "nowhere", {"by graph"}}).ok());
  }
  EXPECT_EQ(Load()->calls, (std::vector<LaunchedCall>{first, other}));
  const std::string whole = Text(kCallsFile);
  Overwrite(kCallsFile, whole.substr(0, whole.size() - 5));
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss));
  const auto writer = Resume().value();
  EXPECT_TRUE(writer->dropped().Any());
  ASSERT_TRUE(writer->AppendCall(other).ok());
  EXPECT_EQ(Text(kCallsFile), whole);
  Overwrite(kCallsFile, "{\"arm\":\"control:aa\",\"shape\":\"small\",\"lines\":[]}\n");
  EXPECT_THAT(Load(), StatusIs(_, HasSubstr("calls.jsonl:1: lines")));
}

TEST_F(StoreTest, OptionalFilesAreReadWhenTheyAreThere) {
  MakeRecord(1);
  const Codegen codegen = {"", {{"kv_tiling", "sm_90", "c0", "d0", {}}}};
  ASSERT_TRUE(WriteFileAtomically(File(kCodegenFile), DumpFile(ToJson(codegen))).ok());
  const Record record = Load().value();
  ASSERT_TRUE(record.codegen.has_value());
  EXPECT_EQ(record.codegen->instances[0].code_sha256, "c0");

  Overwrite(kLaunchFile, "{\"schema_version\":1}");
  EXPECT_THAT(Load(), StatusIs(_, HasSubstr("launch.json: instances: missing")));
}

TEST_F(StoreTest, CreateRefusesADirectoryThatHoldsARecord) {
  MakeRecord(1);
  EXPECT_THAT(RecordWriter::Create(dir(), ExampleRun()),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(StoreTest, CreateRefusesSamplesWithoutARunFile) {
  MakeRecord(1);
  std::filesystem::remove(File(kRunFile));
  EXPECT_THAT(RecordWriter::Create(dir(), ExampleRun()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(StoreTest, ResumeNamesTheFirstDifferenceFromTheRunOnDisk) {
  MakeRecord(1);
  const std::pair<void (*)(RunInfo&), const char*> kChanges[] = {
      {[](RunInfo& run) { run.seed = 3; }, "seed was '18446744073709551615', now is '3'"},
      {[](RunInfo& run) { run.arms[1].config = "kv_tiling=2"; }, "arms[1] was"},
      {[](RunInfo& run) { run.arms[1].config = "kv_tiling=2"; }, "kv_tiling=2"},
      {[](RunInfo& run) { run.shapes.pop_back(); }, "the number of shapes was '2', now is '1'"},
      {[](RunInfo& run) { run.kernel_source_sha256 = "changed"; }, "kernel_source_sha256"},
      {[](RunInfo& run) { run.protocol_sha256 = "changed"; },
       "protocol_sha256 was '\"cc\"', now is '\"changed\"'"},
      {[](RunInfo& run) { run.gpu.uuid = "GPU-2"; }, "gpu.uuid"},
      {[](RunInfo& run) { run.replay_us = 500; }, "replay_us was '1000.0', now is '500.0'"},
      {[](RunInfo& run) { run.max_launches = 64; }, "max_launches was '256', now is '64'"},
      {[](RunInfo& run) { run.gpu.power_limit_w = 500; },
       "gpu.power_limit_w was '700.0', now is '500.0'"},
      {[](RunInfo& run) { run.gpu.ecc = false; }, "gpu.ecc was 'true', now is 'false'"},
  };
  for (const auto& [change, error] : kChanges) {
    RunInfo other = ExampleRun();
    change(other);
    EXPECT_THAT(Resume(other), StatusIs(_, HasSubstr(error)));
  }
  RunInfo silent = ExampleRun();
  silent.gpu.power_limit_w.reset();
  EXPECT_TRUE(Resume(silent).ok());
}

TEST_F(StoreTest, ARecordFromBeforeItSaidHowLongReplaysAreGoesOn) {
  RunInfo older = ExampleRun();
  older.replay_us.reset();
  older.max_launches.reset();
  { ASSERT_TRUE(RecordWriter::Create(dir(), older).ok()); }
  const auto writer = Resume().value();
  EXPECT_EQ(writer->run(), older);
}

TEST_F(StoreTest, ResumeKeepsTheRunFileOfTheFirstStart) {
  MakeRecord(1);
  const std::string before = Text(kRunFile);
  RunInfo later = ExampleRun();
  later.created_utc = "2026-02-02T00:00:00Z";
  later.argv.push_back("--again");
  {
    const auto writer = Resume(later).value();
    EXPECT_EQ(writer->run().created_utc, ExampleRun().created_utc);
  }
  EXPECT_EQ(Text(kRunFile), before);
}

TEST_F(StoreTest, ResumeGoesOnAfterTheCompletedBlocks) {
  MakeRecord(2);
  {
    const auto writer = RecordWriter::Open(dir(), ExampleRun()).value();
    EXPECT_FALSE(writer->dropped().Any());
    EXPECT_EQ(writer->CompletedBlocks().size(), 2u);
    EXPECT_TRUE(writer->CompletedBlocks().contains({0, "small", 1, false}));
    EXPECT_FALSE(writer->CompletedBlocks().contains({0, "small", 2, false}));
    EXPECT_EQ(writer->next_seq(), 12);
    ASSERT_TRUE(writer->AppendBlock(ExampleBlock(0, "small", 2)).ok());
    EXPECT_TRUE(writer->CompletedBlocks().contains({0, "small", 2, false}));
  }
  EXPECT_TRUE(Load().ok());
}

TEST_F(StoreTest, PeersHaveBlocksOfTheirOwnUnderTheSameNumbers) {
  const auto writer = RecordWriter::Create(dir(), ExampleRun()).value();
  ASSERT_TRUE(writer->AppendBlock(ExampleBlock(0, "small", 0)).ok());
  ASSERT_TRUE(writer
                  ->AppendBlock({ExampleSample(0, "small", 0, 1, "peer:flash", 2),
                                 ExampleSample(0, "small", 0, 0, "peer:cudnn", 2)})
                  .ok());
  EXPECT_TRUE(writer->CompletedBlocks().contains({0, "small", 0, true}));
  EXPECT_TRUE(Load().ok());
}

TEST_F(StoreTest, BlocksThatContradictThemselvesAreNotWritten) {
  const auto writer = RecordWriter::Create(dir(), ExampleRun()).value();
  const auto sample = [](int order, const char* arm = "minimal_scalar", int block = 0,
                         const char* shape = "small",
                         double us = 1) { return ExampleSample(0, shape, block, order, arm, us); };
  const std::pair<std::vector<Sample>, const char*> kBlocks[] = {
      {{}, "without samples"},
      {{sample(0), sample(0, "ladder:kv_tiling")}, "two samples at order 0"},
      {{sample(0), sample(1)}, "times arm 'minimal_scalar' twice"},
      {{sample(0), sample(1, "ladder:kv_tiling", 1)}, "has 1 of its 2 samples"},
      {{sample(1)}, "order 1 of 1"},
      {{sample(0, "ladder:unheard_of")}, "'ladder:unheard_of' is not in run.json"},
      {{sample(0, "minimal_scalar", 0, "huge")}, "'huge' is not in run.json"},
      {{sample(0, "minimal_scalar", 8)}, "block 8, but run.json plans 3 processes of 8 blocks"},
      {{sample(0, "minimal_scalar", 0, "small", 0)}, "us:"}};
  for (const auto& [samples, error] : kBlocks) {
    EXPECT_THAT(writer->AppendBlock(samples), StatusIs(_, HasSubstr(error)));
  }
  EXPECT_EQ(Text(kSamplesFile), "");
  ASSERT_TRUE(writer->AppendBlock(ExampleBlock(0, "small", 0)).ok());
  EXPECT_THAT(writer->AppendBlock(ExampleBlock(0, "small", 0)),
              StatusIs(_, HasSubstr("on disk already")));
}

TEST_F(StoreTest, ACutAtAnyByteOfTheLastBlockLosesThatBlockAndNoMore) {
  MakeRecord(3);
  const std::string whole = Text(kSamplesFile);
  const size_t lines_of_two = 2 * ExampleRun().arms.size();
  size_t two_blocks = 0;
  for (size_t i = 0; i < lines_of_two; ++i) two_blocks = whole.find('\n', two_blocks) + 1;
  const std::string kept = whole.substr(0, two_blocks);
  for (size_t bytes = two_blocks; bytes < whole.size(); ++bytes) {
    Overwrite(kSamplesFile, whole.substr(0, bytes));
    // Whoever only reads must not lose samples in silence.
    if (bytes > two_blocks) {
      EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("samples.jsonl:1"),
                                                                      HasSubstr("warpledger run"))))
          << bytes;
    }
    const auto writer = Resume().value();
    ASSERT_EQ(Text(kSamplesFile), kept) << bytes;
    ASSERT_EQ(writer->dropped().sample_bytes, static_cast<int64_t>(bytes - two_blocks));
    ASSERT_EQ(writer->CompletedBlocks().size(), 2u);
    ASSERT_TRUE(writer->AppendBlock(ExampleBlock(0, "small", 2)).ok());
    ASSERT_EQ(Text(kSamplesFile), whole) << bytes;
  }
}

TEST_F(StoreTest, TheLinesOfADroppedBlockAreCounted) {
  MakeRecord(2);
  const std::string whole = Text(kSamplesFile);
  size_t cut = 0;
  for (size_t i = 0; i < 6 + 3; ++i) cut = whole.find('\n', cut) + 1;
  Overwrite(kSamplesFile, whole.substr(0, cut + 10));
  const auto writer = Resume().value();
  EXPECT_EQ(writer->dropped().sample_lines, 4);
}

TEST_F(StoreTest, ACutCheckIsDroppedWhenTheRunGoesOn) {
  {
    const auto writer = RecordWriter::Create(dir(), ExampleRun()).value();
    ASSERT_TRUE(writer->AppendCheck(ExampleCheck("minimal_scalar", "small")).ok());
    ASSERT_TRUE(writer->AppendCheck(ExampleCheck("ladder:kv_tiling", "small")).ok());
    EXPECT_EQ(writer->Checks().size(), 2u);
  }
  const std::string whole = Text(kChecksFile);
  Overwrite(kChecksFile, whole.substr(0, whole.size() - 5));
  EXPECT_THAT(Load(), StatusIs(_, HasSubstr("correctness.jsonl:2: ")));
  const auto writer = Resume().value();
  EXPECT_GT(writer->dropped().check_bytes, 0);
  EXPECT_EQ(writer->Checks().size(), 1u);
  EXPECT_TRUE(Load().ok());
}

TEST_F(StoreTest, AChangedDigitIsDamage) {
  MakeRecord(2);
  const auto writer = Resume().value();
  ASSERT_TRUE(writer->AppendCheck(ExampleCheck("minimal_scalar", "small")).ok());
  for (const auto& [file, field] :
       {std::pair(kSamplesFile, "\"us\":"), std::pair(kChecksFile, "\"max_err\":")}) {
    const std::string whole = ReadFile(File(file)).value();
    std::string changed = whole;
    char& digit = changed[changed.rfind(field) + std::strlen(field)];
    digit = digit == '9' ? '8' : static_cast<char>(digit + 1);
    Overwrite(file, changed);
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss,
                                 AllOf(HasSubstr(file), HasSubstr("its sum is another"))));
    Overwrite(file, whole);
  }
  EXPECT_TRUE(Load().ok());
}

TEST_F(StoreTest, ARecordFromBeforeLinesHadSumsGoesOnWithThem) {
  MakeRecord(1);
  Overwrite(kSamplesFile, Text(kSamplesFile));
  EXPECT_THAT(ReadFile(File(kSamplesFile)).value(), Not(HasSubstr("sum")));
  ASSERT_TRUE(Resume().value()->AppendBlock(ExampleBlock(0, "small", 1)).ok());
  EXPECT_EQ(Load()->samples.size(), 2 * ExampleRun().arms.size());
  Overwrite(kSamplesFile, ReadFile(File(kSamplesFile)).value() + "{}\n");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the line has no sum")));
}

TEST_F(StoreTest, DamageBeforeTheTailIsAnErrorWithFileAndLine) {
  MakeRecord(3);
  const std::string whole = Text(kSamplesFile);
  const std::vector<std::string> lines = absl::StrSplit(whole, '\n');
  const auto with = [&](size_t index, const std::string& line) {
    std::string text;
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      if (i != index) absl::StrAppend(&text, lines[i], "\n");
      if (i == index && line != "(deleted)") absl::StrAppend(&text, line, "\n");
    }
    return text;
  };
  struct Case {
    std::string text;
    std::string expected;
  };
  std::string other_shape = lines[4];
  other_shape.replace(other_shape.find("\"small\""), 7, "\"huge\"");
  const Case cases[] = {
      {with(4, "{\"seq\":4,"), "samples.jsonl:5: not JSON"},
      {with(4, "{\"seq\":4}"), "samples.jsonl:5: process: missing"},
      {with(4, ""), "samples.jsonl:5: not JSON"},
      {with(4, "(deleted)"), "samples.jsonl:5: seq is 5, expected 4"},
      {with(4, absl::StrReplaceAll(lines[4], {{"\"launches\":64", "\"launches\":0"}})),
       "samples.jsonl:5: launches: expected a number from 1"},
      {with(4, absl::StrReplaceAll(lines[4], {{"\"sm_mhz\":1980.0", "\"sm_mhz\":-1"}})),
       "samples.jsonl:5: sm_mhz: expected a clock above 0"},
      {with(4, absl::StrReplaceAll(lines[4], {{"{", "{\"us\":1,"}})),
       "samples.jsonl:5: not JSON of ours: 'us' stands twice"},
      {with(4, lines[3]), "samples.jsonl:5: "},
      {with(4, absl::StrReplaceAll(lines[4], {{"\"process\":0", "\"process\":3"}})),
       "process 3, shape 'small', block 0, but run.json plans 3 processes of 8 blocks"},
      {with(4, other_shape), "samples.jsonl:5: shape 'huge' is not in run.json"},
      {with(17, "garbage"), "samples.jsonl:18: not JSON"},
  };
  for (const Case& damaged : cases) {
    Overwrite(kSamplesFile, damaged.text);
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(damaged.expected)));
    const absl::Status resumed = Resume().status();
    EXPECT_THAT(resumed, StatusIs(_, HasSubstr(damaged.expected)));
    EXPECT_EQ(Text(kSamplesFile), damaged.text) << "a refused record must stay as it was";
  }
}

TEST_F(StoreTest, AMissingRecordSaysWhatToName) {
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no run.json")));
  EXPECT_FALSE(HasRecord(dir()));
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StoreTest, ARecordThatLostAFileOfLinesIsDamaged) {
  for (const char* file : {kSamplesFile, kChecksFile}) {
    std::filesystem::remove_all(dir());
    MakeRecord(1);
    std::filesystem::remove(File(file));
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(file)));
  }
}

TEST_F(StoreTest, AFileIsNoRecord) {
  MakeRecord(1);
  EXPECT_THAT(LoadRecord(File(kSamplesFile)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name a folder")));
}

TEST_F(StoreTest, ARunWhoseArmsContradictThemselvesIsRefused) {
  RunInfo run = ExampleRun();
  run.arms[2].base = "nothing";
  EXPECT_THAT(RecordWriter::Create(dir(), run), StatusIs(_, HasSubstr("judged against 'nothing'")));
  run = ExampleRun();
  run.arms[1].name = run.arms[0].name;
  EXPECT_THAT(RecordWriter::Create(dir(), run), StatusIs(_, HasSubstr("stands twice")));
}

TEST_F(StoreTest, ANameThatStandsTwiceIsDamage) {
  MakeRecord(1);
  const auto refuses = [&](const char* file, const std::string& text, const char* why) {
    Overwrite(file, text);
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(why)));
    std::filesystem::remove(File(file));
  };
  const PeerInfo flash = {"peer:flash", "torch 2.11.0", true, "", {}};
  refuses(kPeersFile, DumpFile(ToJson(PeersFile{{flash, flash}})),
          "peers.json: peers: 'peer:flash' stands twice");
  RunInfo run = ExampleRun();
  run.shapes[1].name = run.shapes[0].name;
  refuses(kRunFile, DumpFile(ToJson(run)), "run.json: shapes: 'small' stands twice");
  run = ExampleRun();
  run.arms[1].name = run.arms[0].name;
  refuses(kRunFile, DumpFile(ToJson(run)), "run.json: arms: 'minimal_scalar' stands twice");
}

TEST_F(StoreTest, ASecondWriterOfTheSameProcessIsRefused) {
  auto first = RecordWriter::Create(dir(), ExampleRun()).value();
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kUnavailable));
  first.reset();
  EXPECT_TRUE(Resume().ok());
}

// Runs `body` in a child; it must end by _exit or by a signal.
template <typename Body>
pid_t Fork(Body body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  return pid;
}

TEST_F(StoreTest, AWriterInAnotherProcessIsWaitedForAndItsDeathLetsGo) {
  MakeRecord(1);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = Fork([&] {
    auto writer = Resume();
    const char answer = writer.ok() ? 'y' : 'n';
    if (write(ready[1], &answer, 1) != 1) _exit(2);
    pause();
  });
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  EXPECT_THAT(Resume(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another process is writing")));

  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(Resume().ok());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(StoreTest, AWriterKilledWhileAppendingLeavesARecordThatGoesOn) {
  RunInfo run = ExampleRun();
  run.blocks_per_process = 10000;
  ASSERT_TRUE(RecordWriter::Create(dir(), run).ok());
  int64_t blocks_before = 0;
  for (int round = 0; round < 12; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = Fork([&] {
      auto writer = Resume(run);
      if (!writer.ok()) _exit(1);
      int block = static_cast<int>((*writer)->CompletedBlocks().size());
      for (bool first = true;; first = false, ++block) {
        if (!(*writer)->AppendBlock(ExampleBlock(0, "small", block)).ok()) _exit(1);
        if (first && write(ready[1], "r", 1) != 1) _exit(2);
      }
    });
    close(ready[1]);
    char byte = 0;
    const bool started = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    std::this_thread::sleep_for(std::chrono::microseconds(700 * round));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(started && WIFSIGNALED(status)) << "the child failed by itself, round " << round;

    const auto writer = Resume(run).value();
    const int64_t blocks = static_cast<int64_t>(writer->CompletedBlocks().size());
    EXPECT_GT(blocks, blocks_before);
    EXPECT_LT(writer->dropped().sample_lines, 7);
    blocks_before = blocks;
    const Record record = Load().value();
    EXPECT_EQ(record.samples.size(), static_cast<size_t>(blocks) * ExampleRun().arms.size());
  }
}

TEST_F(StoreTest, ABlockThatDoesNotFitOnTheDiskLeavesWhatWasThere) {
  MakeRecord(1);
  const std::string before = Text(kSamplesFile);
  // In a child, because the limit holds for the process.
  const pid_t child = Fork([&] {
    auto writer = Resume();
    if (!writer.ok()) _exit(1);
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {before.size() + 100, before.size() + 100};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    const absl::Status status = (*writer)->AppendBlock(ExampleBlock(0, "small", 1));
    if (status.ok()) _exit(3);
    if ((*writer)->CompletedBlocks().size() != 1) _exit(4);
  });
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Text(kSamplesFile), before);
}

TEST_F(StoreTest, AFileIsReplacedWholeAndLeavesNoTemporary) {
  const std::string path = root_.path() + "/summary.json";
  ASSERT_TRUE(WriteFileAtomically(path, "first").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "second").ok());
  EXPECT_EQ(*ReadFile(path), "second");
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(root_.path())) {
    ++entries;
  }
  EXPECT_EQ(entries, 1u);
}

TEST_F(StoreTest, AFileInAMissingDirectoryIsAnErrorThatNamesIt) {
  const absl::Status status = WriteFileAtomically(root_.path() + "/none/summary.json", "x");
  EXPECT_THAT(status, StatusIs(_, HasSubstr("none/summary.json")));
}

}  // namespace
}  // namespace warpledger::ablations
