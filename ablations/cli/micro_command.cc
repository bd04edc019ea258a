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

#include "ablations/base/paths.h"
#include "ablations/cli/command.h"
#include "ablations/cli/flags.h"
#include "ablations/cli/python.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"

namespace warpledger::cli {

absl::StatusOr<int> MicroCommand(absl::Span<const std::string> /*arguments*/) {
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) {
    return absl::InvalidArgumentError("--out=DIR is missing: where the record goes");
  }
  const std::filesystem::path prefix =
      std::filesystem::path(ablations::ExecutablePath()).parent_path() / "..";
  std::error_code error;
  if (!std::filesystem::exists(prefix / "bin" / "warpledger_micro", error)) {
    return absl::UnimplementedError(
        "there is no warpledger_micro beside this program: it is built where CMake finds nvcc and "
        "Google Benchmark (libbenchmark-dev)");
  }
  const absl::StatusOr<std::string> script = ablations::FindProgramFile("micro/record.sh");
  if (!script.ok()) return script.status();
  std::vector<std::string> arguments = {
      *script,         out,
      "--prefix",      prefix.lexically_normal().string(),
      "--filter",      absl::GetFlag(FLAGS_filter),
      "--processes",   absl::StrCat(absl::GetFlag(FLAGS_micro_processes)),
      "--repetitions", absl::StrCat(absl::GetFlag(FLAGS_repetitions)),
      "--python",      PythonInterpreter(),
  };
  if (!absl::GetFlag(FLAGS_plots)) arguments.emplace_back("--noplots");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  // In place of this process: signals and the exit code are the script's, whose codes
  // are this program's.
  execv(argv[0], argv.data());
  return absl::InternalError(absl::StrCat("can't start ", *script, ": ", std::strerror(errno)));
}

}  // namespace warpledger::cli
