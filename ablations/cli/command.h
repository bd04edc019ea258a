// SPDX-License-Identifier: Apache-2.0
// The subcommands of `warpledger`, their flags and exit codes.

#ifndef WARPLEDGER_ABLATIONS_CLI_COMMAND_H_
#define WARPLEDGER_ABLATIONS_CLI_COMMAND_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::cli {

// Exit codes, as `warpledger --help` prints them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFinding = 1;  // the command worked and found something wrong
inline constexpr int kExitUsage = 2;    // unknown names, bad flags, bad input files
inline constexpr int kExitMissing = 3;  // no GPU, driver, CUDA build or Python; record in use
inline constexpr int kExitDamaged = 4;  // the record is damaged
inline constexpr int kExitFailed = 5;   // anything else

struct Command {
  std::string_view name;
  std::string_view arguments;  // of the usage line
  std::string_view summary;    // one line
  std::string_view details;    // what `warpledger help NAME` adds
  std::vector<std::string_view> flags;
  bool hidden = false;
  bool takes_arguments = false;  // after its name
  // The one exit code of whatever fails, flags included, for commands whose other
  // codes have meanings of their own. 0: as ExitCode says.
  int exit_on_failure = 0;
  // Positional arguments after the command's name; returns the exit code.
  absl::StatusOr<int> (*run)(absl::Span<const std::string> arguments);
};

absl::Span<const Command> AllCommands();

// The exit code that stands for a failed status.
int ExitCode(const absl::Status& status);

// Parses argv, runs the command, prints errors. The whole of main().
int Main(int argc, char** argv);

// argv as given, for run.json.
absl::Span<const std::string> CommandLine();

absl::StatusOr<int> ListCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> CheckCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> RunCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> CalibrateCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> JudgeCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> ReportCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> TechniquesCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> StandingsCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> MicroCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> CompareCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> GateCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> RatchetCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> BundleCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> PackCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> UnpackCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> ProfileCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> DtypesCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> ExecCommand(absl::Span<const std::string> arguments);
absl::StatusOr<int> WorkerCommand(absl::Span<const std::string> arguments);

}  // namespace warpledger::cli

#endif  // WARPLEDGER_ABLATIONS_CLI_COMMAND_H_
