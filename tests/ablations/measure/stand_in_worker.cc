// SPDX-License-Identifier: Apache-2.0
// The worker itself on the stand-in subject, with faults that a test asks for.
//
//   stand_in_worker [--slow_us=N] [--fault=KIND:ARM:SHAPE:BLOCK]...
//
// A fault happens in its arm on its shape, in the first block at or past BLOCK that is measured
// (-1: at its check):
//   trap     the call fails as after a sticky CUDA error
//   segv     dies by SIGSEGV          kill     dies by SIGKILL, as from outside
//   hang     says nothing any more    exit     exits with 3
//   wrong    its check says that the results are wrong
//   host     dies by SIGSEGV after saying that no arm runs
//   garbage  prints half a line of JSON
//   short    ends well before its job is done

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "ablations/measure/worker.h"
#include "ablations/subjects/stand_in/stand_in.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace warpledger::ablations {
namespace {

struct Fault {
  std::string kind;
  std::string arm;
  std::string shape;
  int block = -1;
};

absl::Status Commit(const std::string& kind, const StandInStep& step) {
  if (kind == "trap") return absl::InternalError("the kernel trapped");
  if (kind == "segv") raise(SIGSEGV);
  if (kind == "kill") raise(SIGKILL);
  if (kind == "exit") std::_Exit(3);
  if (kind == "short") std::_Exit(0);
  if (kind == "host") {
    std::puts("{\"running\":null}");
    std::fflush(stdout);
    raise(SIGSEGV);
  }
  if (kind == "garbage") {
    std::puts("{\"block\":[{\"seq\":");
    std::fflush(stdout);
  }
  if (kind == "garbage" || kind == "hang") {
    while (true) pause();
  }
  if (kind == "wrong" && step.check != nullptr) {
    step.check->correct = false;
    step.check->reason = "the planted results are wrong";
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::vector<Fault> faults;
  int slow_us = 0;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--slow_us=") && absl::SimpleAtoi(argument, &slow_us)) {
      continue;
    }
    // An arm's name has a colon of its own: kind:arm:arm:shape:block.
    const std::vector<std::string> parts = absl::StrSplit(argument, ':');
    if (!absl::StartsWith(argument, "--fault=") || parts.size() < 4) return 2;
    Fault fault;
    fault.kind = std::string(absl::StripPrefix(parts[0], "--fault="));
    fault.shape = parts[parts.size() - 2];
    if (!absl::SimpleAtoi(parts.back(), &fault.block)) return 2;
    fault.arm = parts[1];
    for (size_t p = 2; p + 2 < parts.size(); ++p) fault.arm += ":" + parts[p];
    faults.push_back(std::move(fault));
  }
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const absl::StatusOr<WorkerJob> job = FromText<WorkerJob>(text);
  if (!job.ok()) return 2;
  StandInRig rig([&](const StandInStep& step) {
    absl::SleepFor(absl::Microseconds(slow_us));
    for (const Fault& fault : faults) {
      if (fault.arm != step.arm || fault.shape != step.shape) continue;
      if (fault.block < 0 ? step.block >= 0 : step.block < fault.block) continue;
      if (absl::Status status = Commit(fault.kind, step); !status.ok()) return status;
    }
    return absl::OkStatus();
  });
  const absl::Status status = RunWorker(*job, StandInSubject(), rig, rig);
  if (status.ok()) return 0;
  std::fprintf(stderr, "stand_in_worker: %s\n", std::string(status.message()).c_str());
  return 2;
}

}  // namespace
}  // namespace warpledger::ablations

int main(int argc, char** argv) { return warpledger::ablations::Main(argc, argv); }
