// SPDX-License-Identifier: Apache-2.0
// Feeds damaged records to everything that reads one (targets.h).
//
//   record_fuzz [--data=DIR] [--executions=N | --seconds=S] [--seed=K] [--only=I]
//   record_fuzz --corpus=DIR    writes the seeds as inputs for libFuzzer
//
// Execution I of seed K is always the same damage; a crash names both, and
// `--seed=K --only=I` repeats it. Exit code 0: all survived.
//
// GCC has no guidance by coverage: damage is drawn at random, but knows bytes, lines
// and JSON values (mutate.h). The entry point of targets.h is libFuzzer's, and --corpus
// writes inputs for it; the build does not make such a program
// (reports/decisions/0011-fuzzing.md).

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/random.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/targets.h"

ABSL_FLAG(std::string, data, "", "the folder of records; default: the source tree's");
ABSL_FLAG(int64_t, executions, 1000, "how many");
ABSL_FLAG(int64_t, seconds, 0, "as many as fit into so many; 0: --executions");
ABSL_FLAG(uint64_t, seed, 1, "of all damage");
ABSL_FLAG(int64_t, only, -1, "the one execution");
ABSL_FLAG(std::string, corpus, "", "the folder to write inputs into");

namespace warpledger::fuzz {
namespace {

constexpr int kHangSeconds = 120;  // sanitized code on a busy machine

// What the signal handler prints; set before each execution.
char g_current[256] = "start";

void OnSignal(int number) {
  const char* what = number == SIGALRM ? "HANG in " : "CRASH in ";
  // write(2) alone is allowed here; its result could only be reported by it.
  for (const char* text : {what, static_cast<const char*>(g_current), "\n"}) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
  }
  signal(SIGABRT, SIG_DFL);
  std::abort();
}

void CatchSignals() {
  for (const int number : {SIGALRM, SIGABRT}) signal(number, &OnSignal);
#ifndef __SANITIZE_ADDRESS__  // which reports these itself, and better
  // On a stack of its own: too deep a recursion leaves none.
  static char stack[1 << 16];
  const stack_t alternate = {.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  action.sa_flags = SA_ONSTACK;
  if (sigaltstack(&alternate, nullptr) != 0) Die("no stack for signals");
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
#endif
}

const std::string& AnyFile(const Seed& seed, SplitMix64& random) {
  auto file = seed.files.begin();
  std::advance(file, static_cast<int64_t>(random.Below(seed.files.size())));
  return file->first;
}

// One damaged file of a seed, sometimes two.
std::string InputNumber(uint64_t number, uint64_t seed_of_all) {
  SplitMix64 random(MixSeed(seed_of_all, number));
  const std::vector<Seed>& seeds = TheSeeds();
  const Seed& seed = seeds[random.Below(seeds.size())];
  const Seed& donor = seeds[random.Below(seeds.size())];
  Files damaged;
  for (uint64_t n = random.Below(4) == 0 ? 2 : 1; n > 0; --n) {
    const std::string& file = AnyFile(seed, random);
    if (random.Below(32) == 0) {
      damaged[file] = kKinds[random.Below(std::size(kKinds))];
      continue;
    }
    const auto same = donor.files.find(file);
    damaged[file] = Mutate(seed.files.at(file),
                           same == donor.files.end() ? seed.files.at(file) : same->second, random);
  }
  std::snprintf(g_current, sizeof g_current, "execution %llu of seed %llu (%s: %s)",
                static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(seed_of_all), seed.name.c_str(),
                damaged.begin()->first.c_str());
  return EncodeInput(seed.name, damaged);
}

void Execute(uint64_t number, uint64_t seed_of_all) {
  const std::string input = InputNumber(number, seed_of_all);
  alarm(kHangSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// One input for each file of each seed, undamaged.
void WriteCorpus(const std::string& dir) {
  std::filesystem::create_directories(dir);
  for (const Seed& seed : TheSeeds()) {
    for (const auto& [name, text] : seed.files) {
      WriteFileOrDie(dir, absl::StrCat(seed.name, "_", name),
                     EncodeInput(seed.name, {{name, text}}));
    }
  }
}

int Main(int argc, char** argv) {
  if (absl::ParseCommandLine(argc, argv).size() > 1) Die("there are flags alone; see --help");
  if (const std::string data = absl::GetFlag(FLAGS_data); !data.empty()) {
    setenv("WARPLEDGER_FUZZ_DATA", data.c_str(), 1);
  }
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  const int64_t only = absl::GetFlag(FLAGS_only);
  const int64_t most_seconds = absl::GetFlag(FLAGS_seconds);
  CatchSignals();
  const size_t seeds = TheSeeds().size();  // before the clock
  if (const std::string corpus = absl::GetFlag(FLAGS_corpus); !corpus.empty()) {
    WriteCorpus(corpus);
    return 0;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  int64_t executions = 0;
  if (only >= 0) {
    Execute(static_cast<uint64_t>(only), seed);
    executions = 1;
  } else {
    const auto more = [&] {
      return most_seconds > 0 ? seconds() < static_cast<double>(most_seconds)
                              : executions < absl::GetFlag(FLAGS_executions);
    };
    for (; more(); ++executions) Execute(static_cast<uint64_t>(executions), seed);
  }
  alarm(0);
  std::printf("seed %llu: %lld executions over %zu seeds survived in %.0f s\n",
              static_cast<unsigned long long>(seed), static_cast<long long>(executions), seeds,
              seconds());
  for (const auto& [what, count] : Outcomes()) {
    std::printf("  %-36s %8lld\n", what.c_str(), static_cast<long long>(count));
  }
  return 0;
}

}  // namespace
}  // namespace warpledger::fuzz

// A finding aborts, so that the handler above names the execution. Too large an
// allocation must end this process, not the machine.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "hard_rss_limit_mb=4096:abort_on_error=1:handle_abort=0:detect_leaks=1";
}
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1:abort_on_error=1"; }

int main(int argc, char** argv) { return warpledger::fuzz::Main(argc, argv); }
