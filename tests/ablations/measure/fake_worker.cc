// SPDX-License-Identifier: Apache-2.0
// A worker without a GPU, for tests of the controller: speaks as worker.h says and
// gives the same figures for the same job, so that records can be compared by bytes.
//
//   fake_worker [--slow_us=N] [--fault=KIND:ARM:SHAPE:BLOCK]...
//
// Arms come from the run's own design, as in the true worker. A fault happens in
// its arm on its shape, in the first block at or past BLOCK that is measured (-1:
// at its check):
//   trap     prints a fault line as after a sticky CUDA error, and ends
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
#include "ablations/record/record.h"
#include "ablations/subjects/sdpa/plan.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/random.h"

namespace warpledger::ablations {
namespace {

struct Fault {
  std::string kind;
  std::string arm;
  std::string shape;
  int block = -1;
};

constexpr int kAtCheck = -1;

class FakeWorker {
 public:
  FakeWorker(WorkerJob job, std::vector<Fault> faults, int slow_us)
      : job_(std::move(job)), faults_(std::move(faults)), slow_us_(slow_us) {}

  int Run() {
    absl::StatusOr<Design> design = FindDesign(job_.design);
    if (!design.ok()) return 5;
    for (const std::string& shape : job_.shapes) {
      int missing = 0;
      for (int block = 0; block < job_.blocks; ++block) {
        missing += job_.done.contains({shape, block}) ? 0 : 1;
      }
      if (missing == 0) continue;
      Print({{"running", nullptr}});
      std::vector<std::string> arms;
      for (const DesignArm& arm : design->arms) {
        if (!job_.excluded.contains({arm.name, shape})) arms.push_back(arm.name);
      }
      for (const std::string& arm : arms) CheckArm(arm, shape);
      arms.push_back(kFloorArm);
      for (int block = 0; block < job_.blocks; ++block) {
        if (!job_.done.contains({shape, block})) RunBlock(arms, shape, block);
      }
    }
    return 0;
  }

 private:
  void Print(const nlohmann::ordered_json& json) const {
    std::fputs((DumpLine(json) + "\n").c_str(), stdout);
    std::fflush(stdout);
    if (slow_us_ > 0) absl::SleepFor(absl::Microseconds(slow_us_));
  }

  uint64_t Number(const std::string& arm, const std::string& shape, int block) const {
    uint64_t seed = MixSeed(job_.seed, static_cast<uint64_t>(job_.process));
    seed = MixSeed(MixSeed(seed, HashName(arm)), HashName(shape));
    return SplitMix64(MixSeed(seed, static_cast<uint64_t>(block + 1))).Next();
  }

  void CheckArm(const std::string& arm, const std::string& shape) const {
    Check check;
    check.process = job_.process;
    check.arm = arm;
    check.shape = shape;
    check.inputs = "normal";
    check.seed = job_.seed;
    check.correct = true;
    check.max_err = 1e-12 * static_cast<double>(Number(arm, shape, kAtCheck) % 1000);
    check.max_err_limit = 1e-6;
    check.guards_intact = true;
    check.bit_identical = true;
    Begin(arm, shape, "checking it", kAtCheck, &check);
    Print({{"check", ablations::ToJson(check)}});
  }

  void RunBlock(const std::vector<std::string>& arms, const std::string& shape, int block) const {
    nlohmann::ordered_json samples = nlohmann::ordered_json::array();
    for (size_t order = 0; order < arms.size(); ++order) {
      const std::string& arm = arms[order];
      Begin(arm, shape, "timing it", block, nullptr);
      Sample sample;
      sample.process = job_.process;
      sample.shape = shape;
      sample.block = block;
      sample.order = static_cast<int>(order);
      sample.of = static_cast<int>(arms.size());
      sample.arm = arm;
      sample.launches = kInputSets;
      sample.us = 10 + 1e-3 * static_cast<double>(Number(arm, shape, block) % 1000);
      sample.sm_mhz = 1980;
      sample.throttle = 0;
      sample.cache = job_.cache;
      samples.push_back(ablations::ToJson(sample));
    }
    Print({{"block", samples}});
  }

  void Begin(const std::string& arm, const std::string& shape, const char* doing, int block,
             Check* check) const {
    const nlohmann::ordered_json what = {{"arm", arm}, {"shape", shape}, {"doing", doing}};
    Print({{"running", what}});
    for (const Fault& fault : faults_) {
      if (fault.arm != arm || fault.shape != shape) continue;
      const bool now = fault.block == kAtCheck ? block == kAtCheck : block >= fault.block;
      if (now) Happen(fault.kind, what, check);
    }
  }

  void Happen(const std::string& kind, nlohmann::ordered_json what, Check* check) const {
    if (kind == "trap") {
      what["kind"] = "trap";
      what["reason"] = "the kernel trapped";
      Print({{"fault", what}});
      std::_Exit(kWorkerFaultExit);
    }
    if (kind == "segv") raise(SIGSEGV);
    if (kind == "kill") raise(SIGKILL);
    if (kind == "hang") {
      while (true) pause();
    }
    if (kind == "exit") std::_Exit(3);
    if (kind == "short") std::_Exit(0);
    if (kind == "host") {
      Print({{"running", nullptr}});
      raise(SIGSEGV);
    }
    if (kind == "garbage") {
      std::fputs("{\"block\":[{\"seq\":\n", stdout);
      std::fflush(stdout);
      while (true) pause();
    }
    if (kind == "wrong" && check != nullptr) {
      check->correct = false;
      check->max_err = 1;
      check->reason = "the planted results are wrong";
    }
  }

  WorkerJob job_;
  std::vector<Fault> faults_;
  int slow_us_;
};

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
  absl::StatusOr<WorkerJob> job = FromText<WorkerJob>(text);
  if (!job.ok()) {
    std::fprintf(stderr, "fake_worker: %s\n", std::string(job.status().message()).c_str());
    return 2;
  }
  return FakeWorker(*std::move(job), std::move(faults), slow_us).Run();
}

}  // namespace
}  // namespace warpledger::ablations

int main(int argc, char** argv) { return warpledger::ablations::Main(argc, argv); }
