// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/subprocess.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/time/clock.h"
#include "gmock/gmock.h"

namespace warpledger::ablations {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(60);
// Of a child that says something first: a busy machine may take a second to start it.
constexpr absl::Duration kSilence = absl::Seconds(3);

struct Outcome {
  absl::Status status;
  std::vector<std::string> lines;
  absl::Duration took;
};

Outcome RunProgram(const std::vector<std::string>& argv, std::string_view input = "",
                   absl::Duration silence_limit = kPatience) {
  Outcome outcome;
  const absl::Time begin = absl::Now();
  outcome.status = RunLines(argv, input, silence_limit, [&](std::string_view line) {
    outcome.lines.emplace_back(line);
    return absl::OkStatus();
  });
  outcome.took = absl::Now() - begin;
  return outcome;
}

Outcome RunShell(const std::string& script, absl::Duration silence_limit = kPatience) {
  return RunProgram({"sh", "-c", script}, "", silence_limit);
}

TEST(RunLines, HandsOutEachLineWithoutItsNewline) {
  const Outcome outcome = RunShell("echo one; echo; echo '  three '");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.lines, ElementsAre("one", "", "  three "));
}

TEST(RunLines, PassesArgumentsAsTheyAre) {
  EXPECT_THAT(RunProgram({"printf", "%s\\n", "a b", "$HOME", "*", "'"}).lines,
              ElementsAre("a b", "$HOME", "*", "'"));
}

TEST(RunLines, PutsALineTogetherThatCameInSeveralWrites) {
  EXPECT_THAT(RunShell("printf on; sleep 0.1; printf 'e\\ntw'; sleep 0.1; echo o").lines,
              ElementsAre("one", "two"));
}

TEST(RunLines, KeepsALastLineWithoutNewlineToItself) {
  const Outcome outcome = RunShell("echo whole; printf torn");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.lines, ElementsAre("whole"));
}

TEST(RunLines, FeedsAMegabyteThroughCatWithoutADeadlock) {
  std::string input;
  std::vector<std::string> expected;
  for (int i = 0; input.size() < (1 << 20); ++i) {
    expected.push_back("line " + std::to_string(i) + std::string(static_cast<size_t>(i % 97), 'x'));
    input += expected.back() + "\n";
  }
  const Outcome outcome = RunProgram({"cat"}, input);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.lines, expected);
}

TEST(RunLines, HandsOutALineLongerThanAPipeHolds) {
  const std::string line(1 << 20, 'y');
  const Outcome outcome = RunProgram({"cat"}, line + "\n");
  ASSERT_EQ(outcome.lines.size(), 1u);
  EXPECT_TRUE(outcome.lines[0] == line);
}

TEST(RunLines, EndsTheInputSoThatReadersEnd) {
  EXPECT_THAT(RunProgram({"cat"}, "").lines, IsEmpty());
  EXPECT_THAT(RunProgram({"wc", "-c"}, "12345").lines, ElementsAre("5"));
}

TEST(RunLines, SurvivesAChildThatDoesNotReadItsInput) {
  const Outcome outcome = RunProgram({"echo", "done"}, std::string(1 << 20, 'z'));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.lines, ElementsAre("done"));
}

// Or both would wait for each other: `cat` for the end of its input.
TEST(RunLines, EndsTheInputOfAChildThatClosedItsOutput) {
  const Outcome outcome = RunProgram({"sh", "-c", "exec >&-; exec timeout 10 cat >/dev/null"},
                                     std::string(1 << 20, 'z'));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_LT(outcome.took, absl::Seconds(9));
}

TEST(RunLines, ReportsANonZeroExitAfterTheLinesBeforeIt) {
  const Outcome outcome = RunShell("echo partial; exit 3");
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("sh exited with status 3"));
  EXPECT_THAT(outcome.lines, ElementsAre("partial"));
}

TEST(RunLines, ReportsASignal) {
  const Outcome outcome = RunShell("kill -KILL $$");
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("signal 9"));
}

TEST(RunLines, ReportsAProgramThatIsNotThere) {
  for (const char* program : {"warpledger_no_such_program", "/nonexistent/program", "/"}) {
    const Outcome outcome = RunProgram({program});
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kNotFound) << outcome.status;
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr(program));
  }
}

TEST(RunLines, StopsAChildThatSaysNothing) {
  const Outcome outcome = RunProgram({"sleep", "100"}, "", absl::Milliseconds(200));
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("sleep: said nothing for 200ms"));
  EXPECT_GE(outcome.took, absl::Milliseconds(200));
  EXPECT_LT(outcome.took, absl::Seconds(30));
}

TEST(RunLines, StopsAChildThatIgnoresSigterm) {
  const Outcome outcome = RunShell("trap '' TERM; echo up; while :; do sleep 1; done", kSilence);
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(outcome.lines, ElementsAre("up"));
  EXPECT_LT(outcome.took, absl::Seconds(30));
}

TEST(RunLines, LetsAChildLiveThatSpeaksNowAndThen) {
  const Outcome outcome = RunShell("for i in 1 2 3 4 5; do sleep 0.7; echo $i; done", kSilence);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.lines.size(), 5u);
  EXPECT_GT(outcome.took, kSilence);
}

// fsync of a slow disk is no silence of the child.
TEST(RunLines, DoesNotCountTheTimeThatALineTakesToHandle) {
  int lines = 0;
  const absl::Status status =
      RunLines({"sh", "-c", "echo 1; sleep 0.1; echo 2"}, "", kSilence, [&](std::string_view) {
        if (++lines == 1) absl::SleepFor(kSilence + absl::Milliseconds(200));
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(lines, 2);
}

TEST(RunLines, HoldsTheSilenceLimitAfterTheChildClosedItsOutput) {
  const Outcome outcome = RunShell("echo last; exec >&-; exec sleep 20", kSilence);
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDeadlineExceeded) << outcome.status;
  EXPECT_THAT(outcome.lines, ElementsAre("last"));
  EXPECT_LT(outcome.took, absl::Seconds(15));
}

TEST(RunLines, StopsTheChildWhenALineIsRefused) {
  std::string child;
  const absl::Time begin = absl::Now();
  const absl::Status status =
      RunLines({"sh", "-c", "echo $$; exec sleep 100"}, "", kPatience, [&](std::string_view line) {
        child = line;
        return absl::DataLossError("refused");
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("refused"));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
  ASSERT_FALSE(child.empty());
  EXPECT_EQ(kill(std::stoi(child), 0), -1) << "the child is still there";
  EXPECT_EQ(errno, ESRCH);
}

TEST(RunLines, HandsOutNoLineAfterARefusedOne) {
  int lines = 0;
  const absl::Status status =
      RunLines({"sh", "-c", "echo 1; echo 2; echo 3"}, "", kPatience, [&](std::string_view) {
        ++lines;
        return lines == 2 ? absl::InternalError("enough") : absl::OkStatus();
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(lines, 2);
}

TEST(RunLines, LeavesNoZombieAndNoOpenFile) {
  const int before = dup(STDIN_FILENO);
  close(before);
  for (int i = 0; i < 3; ++i) {
    RunProgram({"echo", "x"});
    RunProgram({"warpledger_no_such_program"});
    RunProgram({"sleep", "100"}, "", absl::Milliseconds(50));
  }
  const int after = dup(STDIN_FILENO);
  close(after);
  EXPECT_EQ(after, before) << "descriptors were left open";
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// An ignored signal outlives exec: a child's `yes | head -1` would never end.
TEST(RunLines, GivesTheChildTheDefaultSigpipe) {
  EXPECT_THAT(RunShell("sh -c 'kill -PIPE $$; echo ignored'; echo $?").lines, ElementsAre("141"));
}

}  // namespace
}  // namespace warpledger::ablations
