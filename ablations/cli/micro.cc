// SPDX-License-Identifier: Apache-2.0
// `warpledger micro`: the microbenchmarks, by micro/record.sh, which knows how.

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/cli/flags.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct MicroFlags : FlagSet {
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<std::string> filter{
      this, "filter", ".",
      "regular expression of the cases to run, as Google Benchmark's filter; with a '-' in "
      "front, of those to leave out"};
  Flag<int> repetitions{this, "repetitions", 3, "repetitions of each case in a process"};
  Flag<bool> plots{this, "plots", true, kPlotsHelp};
  PythonFlag python{this};
};

absl::StatusOr<int> Micro(const MicroFlags& flags) {
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the record goes"));
  const std::filesystem::path prefix =
      std::filesystem::path(ablations::ExecutablePath()).parent_path() / "..";
  std::error_code error;
  if (!std::filesystem::exists(prefix / "bin" / "warpledger_micro", error)) {
    return absl::UnimplementedError(
        "there is no warpledger_micro beside this program: it is built where CMake finds nvcc and "
        "Google Benchmark (libbenchmark-dev)");
  }
  ASSIGN_OR_RETURN(const std::string script, ablations::FindProgramFile("micro/record.sh"));
  std::vector<std::string> arguments = {
      script,          *flags.out,
      "--prefix",      prefix.lexically_normal().string(),
      "--filter",      *flags.filter,
      "--repetitions", absl::StrCat(*flags.repetitions),
      "--python",      flags.python.Interpreter(),
  };
  if (!*flags.plots) arguments.emplace_back("--noplots");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  // In place of this process: signals and the exit code are the script's, whose codes
  // are this program's.
  execv(argv[0], argv.data());
  return absl::InternalError(absl::StrCat("can't start ", script, ": ", std::strerror(errno)));
}

}  // namespace

Command MicroCommand() {
  return Runs(
      &Micro,
      {.name = "micro",
       .arguments = "--out=DIR [--filter=REGEX] [flags]",
       .summary = "Runs the microbenchmarks and writes a record with its pages (needs a GPU)",
       .details =
           "All cases take about four minutes on an H200; progress is on stderr. The same call on "
           "the same directory continues a run that was stopped. To run a few cases without a "
           "record, call warpledger_micro itself, which takes Google Benchmark's flags."});
}

}  // namespace warpledger::cli
