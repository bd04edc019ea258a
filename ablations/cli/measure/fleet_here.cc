// SPDX-License-Identifier: Apache-2.0
// The tasks of a fleet on the GPUs of this machine.

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/base/subprocess.h"
#include "ablations/cli/measure/fleet.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

using ablations::FleetTask;

constexpr int kMostFailures = 2;  // in a row, of a GPU
// A task has limits of its own.
constexpr absl::Duration kPatience = absl::Hours(24 * 365);

struct Gpu {
  std::string visible;  // CUDA_VISIBLE_DEVICES; empty: as it is
  std::string board;    // its UUID; empty where it could not be asked
  std::vector<int> cores;
};

// `command` of this program on a GPU; its errors are among its lines.
absl::Status Call(const Gpu& gpu, const std::vector<std::string>& command,
                  const std::function<void(std::string_view)>& on_line,
                  ablations::ProcessEnd* end) {
  std::vector<std::string> argv = {"env"};
  if (!gpu.visible.empty()) argv.push_back(absl::StrCat("CUDA_VISIBLE_DEVICES=", gpu.visible));
  argv.insert(argv.end(), {"sh", "-c", "exec \"$@\" 2>&1", "sh", ablations::ExecutablePath()});
  argv.insert(argv.end(), command.begin(), command.end());
  return ablations::RunLines(
      argv, "", [] { return kPatience; },
      [&](std::string_view line) {
        on_line(line);
        return absl::OkStatus();
      },
      end);
}

std::vector<std::string> VisibleGpus() {
  const char* variable = std::getenv("CUDA_VISIBLE_DEVICES");
  if (variable != nullptr && *variable != '\0') return absl::StrSplit(variable, ',');
  std::vector<std::string> listed;
  const absl::Status asked =
      ablations::RunLines({"nvidia-smi", "--query-gpu=index", "--format=csv,noheader"}, "",
                          absl::Seconds(60), [&](std::string_view line) {
                            listed.emplace_back(line);
                            return absl::OkStatus();
                          });
  return asked.ok() ? listed : std::vector<std::string>{};
}

// Workers make inputs and references on all cores that they may use, so that GPUs that share cores
// hold each other up.
std::vector<int> CoresOf(size_t place, size_t gpus) {
  cpu_set_t usable;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &usable)) cores.push_back(core);
  }
  const size_t share = std::max<size_t>(1, cores.size() / gpus);
  std::vector<int> mine;
  for (size_t i = 0; i < share; ++i) mine.push_back(cores[(place * share + i) % cores.size()]);
  return mine;
}

// What this thread starts runs on these.
void StayOn(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  for (const int core : cores) CPU_SET(core, &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

absl::StatusOr<std::vector<Gpu>> GpusHere(const std::string& dir, int count) {
  if (count == 1) return std::vector<Gpu>(1);
  const std::vector<std::string> visible = VisibleGpus();
  if (count < 1 || count > std::ssize(visible)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpus=", count,
        ", but there are these: ", visible.empty() ? "none" : absl::StrJoin(visible, ",")));
  }
  std::vector<Gpu> gpus(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < gpus.size(); ++i) {
    Gpu& gpu = gpus[i];
    gpu.visible = visible[i];
    gpu.cores = CoresOf(i, gpus.size());
    threads.emplace_back([&gpu, &dir] {
      std::string last;
      ablations::ProcessEnd end;
      const absl::Status asked = Call(
          gpu, {"fleet", absl::StrCat("--work=", dir), "--board"},
          [&](std::string_view line) { last = std::string(line); }, &end);
      if (asked.ok()) gpu.board = last;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return gpus;
}

class Workers {
 public:
  Workers(std::string dir, std::vector<const FleetTask*> tasks, std::vector<Gpu> gpus)
      : dir_(std::move(dir)), gpus_(std::move(gpus)), left_(std::move(tasks)) {
    for (const Gpu& gpu : gpus_) boards_.insert(gpu.board);
  }

  int Work() {
    const size_t planned = left_.size();
    std::vector<std::thread> threads;
    for (size_t place = 0; place < gpus_.size(); ++place) {
      threads.emplace_back([this, place] { Stream(place); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const FleetTask* task : left_) failed_.insert(task->name);
    if (failed_.empty()) {
      absl::PrintF("All %d tasks are whole.\n", planned);
      return kExitOk;
    }
    absl::FPrintF(stderr, "warpledger: failed: %s\n", absl::StrJoin(failed_, " "));
    return kExitFinding;
  }

 private:
  // The next task that no GPU has taken and none of the others has begun.
  const FleetTask* Take(const Gpu& gpu) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = absl::c_find_if(left_, [&](const FleetTask* task) {
      bool others = false;
      for (const std::string& record : ablations::RecordsOf(dir_, *task)) {
        const std::string board = ablations::BoardOf(record);
        if (board == gpu.board) return true;
        others = others || boards_.contains(board);
      }
      return !others;
    });
    if (found == left_.end()) return nullptr;
    const FleetTask* task = *found;
    left_.erase(found);
    return task;
  }

  void Say(size_t place, std::string_view line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (gpus_.size() > 1) absl::PrintF("[%d] ", place);
    absl::PrintF("%s\n", line);
    std::fflush(stdout);
  }

  void Stream(size_t place) {
    const Gpu& gpu = gpus_[place];
    StayOn(gpu.cores);
    for (int failures = 0; failures < kMostFailures;) {
      const FleetTask* task = Take(gpu);
      if (task == nullptr) return;
      Say(place, absl::StrCat("== ", task->name, ": ", absl::StrJoin(task->flags, " ")));
      const absl::Time started = absl::Now();
      ablations::ProcessEnd end;
      const absl::Status done = Call(
          gpu, {"fleet", absl::StrCat("--work=", dir_), absl::StrCat("--task=", task->name)},
          [&](std::string_view line) { Say(place, line); }, &end);
      const std::string how = end.exit_code >= 0 ? absl::StrCat("exit code ", end.exit_code)
                                                 : std::string(done.message());
      Say(place, absl::StrFormat("== %s: %s after %.0f s", task->name, how,
                                 absl::ToDoubleSeconds(absl::Now() - started)));
      failures = done.ok() ? 0 : failures + 1;
      if (done.ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      failed_.insert(task->name);
    }
  }

  const std::string dir_;
  const std::vector<Gpu> gpus_;
  std::set<std::string> boards_;
  std::mutex mutex_;
  std::vector<const FleetTask*> left_;
  std::set<std::string> failed_;
};

}  // namespace

absl::StatusOr<int> WorkHere(const std::string& dir, const std::vector<const FleetTask*>& tasks,
                             int gpus) {
  ASSIGN_OR_RETURN(std::vector<Gpu> here, GpusHere(dir, gpus));
  return Workers(dir, tasks, std::move(here)).Work();
}

}  // namespace warpledger::cli
