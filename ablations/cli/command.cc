// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/command.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "ablations/base/nearest.h"
#include "ablations/cli/measure/calibrate.h"
#include "ablations/cli/measure/run.h"
#include "ablations/cli/sdpa/check.h"
#include "ablations/cli/sdpa/exec.h"
#include "absl/strings/str_format.h"
#include "kernels/common/standard_streams.h"
#include "warpledger_build_info.h"

namespace warpledger::cli {
namespace {

constexpr char kIntroduction[] =
    R"(warpledger: which GPU optimisations really work, measured on fused attention kernels.

Every optimisation is a toggle of a kernel. A design lists the combinations that are
compared with each other. A record contains the measurements of a run. Verdicts,
reports and plots are computed only from the record.

Usage: warpledger COMMAND [flags]      warpledger help COMMAND

Commands:
)";

constexpr char kExitCodes[] = R"(
Exit codes: 0 fine; 1 the command worked and found something wrong (a variant that
fails its check); 2 wrong use or bad input; 3 something is missing here (GPU, driver,
CUDA build, Python) or another process writes to the record; 4 the record is damaged;
5 any other failure. `gate` and `ratchet` have their own codes; their help explains them.

Example: warpledger run --out=out/mine && warpledger report --record=out/mine --out=out/mine
)";

std::vector<std::string>& MutableCommandLine() {
  static auto* line = new std::vector<std::string>;
  return *line;
}

std::vector<Command> AllCommands() {
  return {ListCommand(),   CheckCommand(),   RunCommand(),        CalibrateCommand(),
          JudgeCommand(),  ReportCommand(),  TechniquesCommand(), StandingsCommand(),
          MicroCommand(),  CompareCommand(), PoolCommand(),       GateCommand(),
          FleetCommand(),  MergeCommand(),   RatchetCommand(),    BundleCommand(),
          PackCommand(),   UnpackCommand(),  VerifyCommand(),     ProfileCommand(),
          DtypesCommand(), StudyCommand(),   ExecCommand(),       WorkerCommand(),
          CallCommand()};
}

int PrintHelp(const std::vector<Command>& commands) {
  std::fputs(kIntroduction, stdout);
  for (const Command& command : commands) {
    if (command.hidden) continue;
    absl::PrintF("  %-10s %s\n", command.name, command.summary);
  }
  std::fputs(kExitCodes, stdout);
  return kExitOk;
}

int PrintCommandHelp(const Command& command) {
  absl::PrintF("warpledger %s %s\n\n%s.\n", command.name, command.arguments, command.summary);
  if (*command.details != '\0') absl::PrintF("%s\n", command.details);
  const std::vector<AnyFlag*>& flags = command.flags->all;
  if (!flags.empty()) absl::PrintF("\nFlags:\n");
  for (const AnyFlag* flag : flags) {
    absl::PrintF("  --%-16s %s", flag->name, flag->help);
    if (!flag->fallback.empty()) absl::PrintF(" (default: %s)", flag->fallback);
    absl::PrintF("\n");
  }
  return kExitOk;
}

// "; did you mean --record?", or a mere ";" where nothing is near.
std::string Suggestion(const std::string& unknown, const std::vector<std::string>& known,
                       const char* before, const char* after) {
  const std::vector<std::string> near = ablations::NearestNames(unknown, known, 1);
  return near.empty() ? ";" : absl::StrCat("; did you mean ", before, near[0], after, "?");
}

AnyFlag* FindFlag(const FlagSet& set, const std::string& name) {
  const auto found = std::find_if(set.all.begin(), set.all.end(),
                                  [&](const AnyFlag* flag) { return name == flag->name; });
  return found == set.all.end() ? nullptr : *found;
}

absl::Status UnknownFlag(const char* command, const FlagSet& set, const std::string& name) {
  std::vector<std::string> known;
  for (const AnyFlag* flag : set.all) known.emplace_back(flag->name);
  return absl::InvalidArgumentError(
      absl::StrCat("'", command, "' has no flag --", name, Suggestion(name, known, "--", ""),
                   " `warpledger help ", command, "` shows its flags"));
}

// The exit code that stands for a failed status.
int ExitCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return kExitUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnimplemented:
      return kExitMissing;
    case absl::StatusCode::kDataLoss:
      return kExitDamaged;
    default:
      return kExitFailed;
  }
}

// Names and paths come from anywhere: no command reaches the terminal, and no screen is filled.
std::string Shown(std::string_view message) {
  constexpr size_t kMostBytes = 4000;
  std::string shown;
  for (const char c : message.substr(0, kMostBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= ' ' && byte != 0x7f) || c == '\n' || c == '\t';
    shown += plain ? std::string(1, c) : absl::StrFormat("\\x%02x", byte);
  }
  if (message.size() > kMostBytes) absl::StrAppend(&shown, "… (", message.size(), " bytes)");
  return shown;
}

int Fail(const absl::Status& status, int exit_on_failure = 0) {
  absl::FPrintF(stderr, "warpledger: %s\n", Shown(std::string(status.message())));
  return exit_on_failure != 0 ? exit_on_failure : ExitCode(status.code());
}

int RunCommandLine(const std::vector<Command>& commands, std::vector<std::string> line,
                   int* exit_on_failure) {
  const auto is_help = [](const std::string& a) { return a == "--help" || a == "-h"; };
  if (line.empty()) {
    PrintHelp(commands);
    return kExitUsage;
  }
  if (is_help(line[0]) || (line[0] == "help" && line.size() == 1)) return PrintHelp(commands);
  if (line[0] == "--version") {
    absl::PrintF("warpledger %s\n", build_info::kVersion);
    return kExitOk;
  }
  const bool wants_help = line[0] == "help" || std::any_of(line.begin() + 1, line.end(), is_help);
  if (line[0] == "help") line.erase(line.begin());
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const Command& each) { return line[0] == each.name; });
  if (command == commands.end()) {
    std::vector<std::string> names;
    for (const Command& each : commands) {
      if (!each.hidden) names.emplace_back(each.name);
    }
    return Fail(absl::InvalidArgumentError(absl::StrCat("unknown command '", line[0], "'",
                                                        Suggestion(line[0], names, "'", "'"),
                                                        " `warpledger --help` shows all")));
  }
  if (wants_help) return PrintCommandHelp(*command);
  *exit_on_failure = command->exit_on_failure;
  line.erase(line.begin());
  absl::Status parsed = SetFlags(command->name, line, command->flags.get());
  if (const auto& arguments = command->flags->arguments;
      parsed.ok() && !arguments.empty() && !command->takes_arguments) {
    parsed = absl::InvalidArgumentError(absl::StrCat("'", command->name, "' takes no argument '",
                                                     arguments[0], "'; flags start with --"));
  }
  if (!parsed.ok()) {
    return Fail(parsed, *exit_on_failure);
  }
  const absl::StatusOr<int> result = command->run();
  return result.ok() ? *result : Fail(result.status(), *exit_on_failure);
}

}  // namespace

const std::vector<std::string>& CommandLine() { return MutableCommandLine(); }

absl::Status SetFlags(const char* command, const std::vector<std::string>& line, FlagSet* set) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (!line[i].starts_with("--")) {
      set->arguments.push_back(line[i]);
      continue;
    }
    const size_t equals = line[i].find('=');
    std::string name = line[i].substr(2, equals - 2);
    std::replace(name.begin(), name.end(), '-', '_');
    AnyFlag* flag = FindFlag(*set, name);
    std::string value = "true";
    if (equals != std::string::npos) {
      value = line[i].substr(equals + 1);
    } else if (flag == nullptr && name.starts_with("no")) {
      flag = FindFlag(*set, name.substr(2));
      if (flag != nullptr && !flag->is_switch) flag = nullptr;
      value = "false";
    } else if (flag != nullptr && !flag->is_switch) {
      value = i + 1 == line.size() || line[i + 1].starts_with("--") ? "" : line[++i];
    }
    if (flag == nullptr) return UnknownFlag(command, *set, name);
    if (flag->given) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " is given twice"));
    }
    if (value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " needs a value"));
    }
    flag->given = true;
    flag->text = value;
    if (const absl::Status set_to = flag->Set(value); !set_to.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, "=", value, ": it is ", set_to.message()));
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  OpenStandardStreams();
  MutableCommandLine().assign(argv, argv + argc);
  int exit_on_failure = 0;
  const int result =
      RunCommandLine(AllCommands(), {argv + std::min(argc, 1), argv + argc}, &exit_on_failure);
  const std::string unwritten = CloseStandardOutput();
  if (unwritten.empty()) return result;
  const int failed = Fail(absl::InternalError(unwritten), exit_on_failure);
  // What was found or failed before goes first, but for a code of the command's own.
  const bool goes_first = result == kExitFinding || (result != kExitOk && exit_on_failure == 0);
  return goes_first ? result : failed;
}

}  // namespace warpledger::cli
