// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/command.h"

#include <algorithm>
#include <cstdio>

#include "ablations/base/nearest.h"
#include "ablations/cli/flags.h"
#include "ablations/judge/compare/gate.h"
#include "ablations/judge/compare/ratchet.h"
#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "warpledger_build_info.h"

namespace warpledger::cli {
namespace {

constexpr char kIntroduction[] =
    R"(warpledger: which GPU optimisations really work, measured on a fused attention kernel.

Every optimisation is a toggle of the kernel. A design says which combinations are
timed against each other; a record holds what was measured; verdicts, report and
plots are computed from the record alone.

Usage: warpledger COMMAND [flags]      warpledger help COMMAND

Commands:
)";

constexpr char kExitCodes[] = R"(
Exit codes: 0 fine; 1 the command worked and found something wrong (a variant that
fails its check); 2 wrong use or bad input; 3 something is missing here (GPU, driver,
CUDA build, Python) or another process writes to the record; 4 the record is damaged; 5 anything else.
`gate` and `ratchet` have codes of their own, which their help explains.

Example: warpledger run --out=out/mine && warpledger report --record=out/mine --out=out/mine
)";

std::vector<std::string>& MutableCommandLine() {
  static std::vector<std::string>* line = new std::vector<std::string>;
  return *line;
}

const Command* FindCommand(std::string_view name) {
  for (const Command& command : AllCommands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : AllCommands()) {
    if (!command.hidden) names.emplace_back(command.name);
  }
  return names;
}

void PrintHelp() {
  std::fputs(kIntroduction, stdout);
  for (const Command& command : AllCommands()) {
    if (command.hidden) continue;
    std::printf("  %-10.*s %.*s\n", static_cast<int>(command.name.size()), command.name.data(),
                static_cast<int>(command.summary.size()), command.summary.data());
  }
  std::fputs(kExitCodes, stdout);
}

void PrintCommandHelp(const Command& command) {
  std::printf("warpledger %s %s\n\n%s.\n", std::string(command.name).c_str(),
              std::string(command.arguments).c_str(), std::string(command.summary).c_str());
  if (!command.details.empty()) std::printf("%s\n", std::string(command.details).c_str());
  if (!command.flags.empty()) std::printf("\nFlags:\n");
  for (const std::string_view name : command.flags) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(std::string(name));
    const std::string fallback = flag->DefaultValue();
    std::printf("  --%-16s %s%s\n", std::string(name).c_str(), flag->Help().c_str(),
                fallback.empty() ? "" : absl::StrCat(" (default: ", fallback, ")").c_str());
  }
}

// Sets the command's flags and returns what is left. Abseil's own parser would
// take every command's flags for every command, and exit with 1 by itself.
absl::StatusOr<std::vector<std::string>> ParseFlags(const Command& command,
                                                    absl::Span<const std::string> arguments) {
  std::vector<std::string> positional;
  const std::vector<std::string> known(command.flags.begin(), command.flags.end());
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view text = arguments[i];
    if (!absl::ConsumePrefix(&text, "--")) {
      positional.push_back(arguments[i]);
      continue;
    }
    const size_t equals = text.find('=');
    std::string name(text.substr(0, equals));
    std::replace(name.begin(), name.end(), '-', '_');
    std::string value(equals == absl::string_view::npos ? "" : text.substr(equals + 1));
    bool has_value = equals != absl::string_view::npos;

    const auto is_known = [&](const std::string& n) {
      return std::find(known.begin(), known.end(), n) != known.end();
    };
    if (!is_known(name) && !has_value && name.starts_with("no") && is_known(name.substr(2)) &&
        absl::FindCommandLineFlag(name.substr(2))->IsOfType<bool>()) {
      name = name.substr(2);
      value = "false";
      has_value = true;
    }
    if (!is_known(name)) {
      const std::vector<std::string> near = ablations::NearestNames(name, known);
      return absl::InvalidArgumentError(
          absl::StrCat("'", std::string(command.name), "' has no flag --", name,
                       near.empty() ? ";" : absl::StrCat("; did you mean --", near[0], "?"),
                       " `warpledger help ", std::string(command.name), "` shows its flags"));
    }
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (!has_value && flag->IsOfType<bool>()) {
      value = "true";
    } else if (!has_value) {
      if (i + 1 == arguments.size() || absl::StartsWith(arguments[i + 1], "--")) {
        return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
      }
      value = arguments[++i];
    }
    std::string error;
    if (!flag->ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, "=", value, ": ", error));
    }
  }
  return positional;
}

int Fail(const absl::Status& status, const Command* command = nullptr) {
  std::fprintf(stderr, "warpledger: %s\n", std::string(status.message()).c_str());
  const bool has_own = command != nullptr && command->exit_on_failure != 0;
  return has_own ? command->exit_on_failure : ExitCode(status);
}

}  // namespace

absl::Span<const Command> AllCommands() {
  static const auto* commands = new std::vector<Command>{
      {.name = "list",
       .arguments = "[toggles|variants|designs|shapes|inputs]",
       .summary = "Shows the toggles, variants, designs, shapes and input distributions",
       .details = "",
       .flags = {"format"},
       .takes_arguments = true,
       .run = &ListCommand},
      {.name = "check",
       .arguments = "[flags]",
       .summary = "Checks variants against the FP64 reference on shapes (needs a GPU)",
       .details =
           "Outputs are poisoned with NaN and lie between guard bands; every run is "
           "repeated and must give the same bits. --out appends a line of JSON for each "
           "check, with "
           "the hash of its\nmachine code; what --known lists of those is left out. --dry_run "
           "says how many checks it would be.",
       .flags = {"variants", "shapes", "inputs", "seeds", "seed", "shard", "known", "out",
                 "dry_run"},
       .run = &CheckCommand},
      {.name = "run",
       .arguments = "--out=DIR [flags]",
       .summary = "Measures a design on shapes and writes a record (needs a GPU)",
       .details =
           "The same call on the same directory resumes a run that was stopped. --dry_run refuses "
           "what a run would refuse,\nand takes the times of an earlier record, --record, for its "
           "estimate.",
       .flags = {"design", "shapes", "out", "processes", "blocks", "seed", "replay_us",
                 "max_launches", "peers", "python", "silence_limit_s", "dry_run", "record",
                 "arm_limit_s", "cache", "stop", "plant"},
       .run = &RunCommand},
      {.name = "calibrate",
       .arguments = "--out=DIR [flags]",
       .summary = "Measures the ledger's own false alarms and its power (needs a GPU)",
       .details = "Times pairs of one kernel whose truth is known, identical or slowed by a known "
                  "delay, as `run` does.\nThe same call on the same directory resumes; `judge` and "
                  "`report` read the record.",
       .flags = {"variant", "shape", "out", "aa_pairs", "aa_family", "plants", "groups",
                 "processes", "blocks", "seed", "replay_us", "max_launches", "silence_limit_s"},
       .run = &CalibrateCommand},
      {.name = "judge",
       .arguments = "--record=DIR [--out=FILE]",
       .summary = "Turns a record into verdicts: summary.json and a table",
       .details =
           "Writes DIR/summary.json unless --out names another file. A packed record needs "
           "--out: nothing is written\ninto a pack. Everywhere a record's DIR may be a pack, "
           "DIR.tar.zst, and stands for it where the folder is absent.",
       .flags = {"record", "out"},
       .run = &JudgeCommand},
      {.name = "report",
       .arguments = "--record=DIR --out=DIR [flags]",
       .summary = "Turns a record into a Markdown report and plots",
       .details = "",
       .flags = {"record", "out", "summary", "plots", "python", "readme", "readme_pictures"},
       .run = &ReportCommand},
      {.name = "techniques",
       .arguments = "--record=DIR[,DIR..] --out=DIR",
       .summary = "Writes a page per technique: what every design says of it",
       .details = "Reads the summary.json of each record. All are of one GPU, at most one of each "
                  "design. Writes\nDIR/techniques.md and DIR/techniques/TOGGLE.md.",
       .flags = {"record", "out"},
       .run = &TechniquesCommand},
      {.name = "standings",
       .arguments = "--record=DIR[,DIR..] --out=DIR [flags]",
       .summary = "Writes where the fastest kernels stand beside their peers, over all designs",
       .details = "Reads the summary.json of each record. All are of one GPU, at most one of each "
                  "design. Writes\nDIR/standings.md, and DIR/throughput.svg where some "
                  "record has a series of lengths in fp16.",
       .flags = {"record", "out", "plots", "python", "readme", "readme_pictures"},
       .run = &StandingsCommand},
      {.name = "micro",
       .arguments = "--out=DIR [--filter=REGEX] [flags]",
       .summary = "Runs the microbenchmarks and writes a record with its pages (needs a GPU)",
       .details = "All cases take about four minutes on an H200; stderr says how far it is. The "
                  "same call on the same directory goes on where a run was stopped. To run a few "
                  "cases without a record, call warpledger_micro itself, which takes Google "
                  "Benchmark's flags.",
       .flags = {"out", "filter", "micro_processes", "repetitions", "plots", "python"},
       .run = &MicroCommand},
      {.name = "compare",
       .arguments = "--a=DIR --b=DIR [--format=json] [--out=FILE.md]",
       .summary = "Holds two records against each other: times, resources, verdicts",
       .details =
           "Samples of two records are never paired, so its intervals are wider than a record's "
           "own.\n--out also writes the comparison as Markdown.",
       .flags = {"a", "b", "format", "out"},
       .run = &CompareCommand},
      {.name = "gate",
       .arguments = "--record=DIR --baseline=DIR [flags]",
       .summary = "Fails when a record is slower than a baseline by more than a tolerance",
       .details = "Exit codes: 0 every cell is shown to be within the tolerance; 1 at least one is "
                  "shown to be slower than\nthat; 2 neither (intervals too wide, or too few "
                  "processes); 3 cells are missing or wrong, the GPU is\nanother one, or the gate "
                  "could not run at all. A regression that was shown goes first, then 3, then 2.",
       .flags = {"record", "baseline", "tolerance", "allow_other_gpu", "junit", "markdown",
                 "format"},
       .exit_on_failure = ablations::kGateNotCompared,
       .run = &GateCommand},
      {.name = "ratchet",
       .arguments = "--baseline=DIR|resources.json [--waivers=FILE] [--format=json]",
       .summary = "Fails when this build's kernels need more resources than a baseline's",
       .details =
           "Registers, spills, stack and shared memory, per variant and architecture; needs "
           "no GPU. Machine code that\nchanged is listed. A file of waivers has lines CONFIG "
           "ARCH RESOURCE LIMIT REASON.\n\nExit codes: 0 nothing grew; 1 something grew; 3 "
           "a kernel of the baseline is gone, or it could not run at all.",
       .flags = {"baseline", "waivers", "format"},
       .exit_on_failure = ablations::kRatchetNotCompared,
       .run = &RatchetCommand},
      {.name = "bundle",
       .arguments = "--record=DIR[,DIR..] --out=NAME.tar.gz",
       .summary = "Packs records, program and results into a tarball that checks itself",
       .details =
           "Unpacked anywhere, `python3 NAME/replay.py` names every file that was changed, and "
           "computes verdicts,\nreports and pictures again: they must come out byte for byte, and "
           "pictures show the same.\nThe manifest has every file's SHA-256.",
       .flags = {"record", "out", "python"},
       .run = &BundleCommand},
      {.name = "pack",
       .arguments = "RECORD.. [--out=FILE.tar.zst] [--keep] [--unfinished]",
       .summary = "Closes finished records: each folder becomes one compressed, verified file",
       .details =
           "Writes RECORD.tar.zst, reads it back, and removes the folder unless --keep is given. "
           "summary.json is\nleft out: `judge` writes it for any record. All commands read packs "
           "as "
           "they read folders.\nOpens anywhere: tar --zstd -xf RUN.tar.zst && cd RUN && sha256sum "
           "-c SHA256SUMS",
       .flags = {"out", "keep", "unfinished"},
       .takes_arguments = true,
       .run = &PackCommand},
      {.name = "unpack",
       .arguments = "RECORD.tar.zst.. [--out=DIR]",
       .summary = "Makes a folder of a packed record again, after every sum was checked",
       .details = "The pack stays. Where both are there, commands that look for records take the "
                  "folder, as `run` may have\ngone on in it. Remove the pack before you pack a "
                  "folder that changed.",
       .flags = {"out"},
       .takes_arguments = true,
       .run = &UnpackCommand},
      {.name = "profile",
       .arguments = "--out=DIR [--variants=..] [--shapes=..] [--ncu=PATH]",
       .summary = "Reads hardware counters of variants with Nsight Compute (needs a GPU and ncu)",
       .details =
           "One launch of each variant on each shape, in a process of its own. The same call on "
           "the same directory\nprofiles what is missing. A profiler changes times: those of the "
           "report come from records of samples.\nExit code 1: some variants could not be "
           "profiled; they are named and the rest is there.",
       .flags = {"out", "variants", "shapes", "ncu", "seed", "silence_limit_s"},
       .run = &ProfileCommand},
      {.name = "dtypes",
       .arguments = "--out=DIR [--seed=N] [--max_seq=N]",
       .summary = "Studies what K and V in 8 bits cost in accuracy (on the CPU)",
       .details = "Error of O against the number of keys, 64 to --max_seq, for uint8, E4M3, E5M2 "
                  "and bf16 with scales per tensor, head\nand block; and which mistakes give NaN. "
                  "About two minutes. `report` makes the page.",
       .flags = {"out", "seed", "max_seq"},
       .run = &DtypesCommand},
      {.name = "exec",
       .arguments = "--variant=V --q=q.npy --k=k.npy --v=v.npy --out=o.npy [--lse=lse.npy]",
       .summary = "Runs one variant on your own NumPy arrays (needs a GPU)",
       .details = "Softmax scale 1/sqrt(head_dim). Variants that read K and V in 8 bits get them "
                  "quantised "
                  "first. The output is written only when the run succeeded.",
       .flags = {"variant", "q", "k", "v", "out", "lse", "causal", "dtype"},
       .run = &ExecCommand},
      {.name = "worker",
       .arguments = "",
       .summary = "Measures for `run`, which starts it",
       .details = "",
       .flags = {},
       .hidden = true,
       .run = &WorkerCommand},
  };
  return *commands;
}

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
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

absl::Span<const std::string> CommandLine() { return MutableCommandLine(); }

int Main(int argc, char** argv) {
  MutableCommandLine().assign(argv, argv + argc);
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const auto is_help = [](const std::string& a) { return a == "--help" || a == "-h"; };
  if (arguments.empty()) {
    PrintHelp();
    return kExitUsage;
  }
  if (is_help(arguments[0]) || (arguments[0] == "help" && arguments.size() == 1)) {
    PrintHelp();
    return kExitOk;
  }
  if (arguments[0] == "--version") {
    std::printf("warpledger %s\n", build_info::kVersion);
    return kExitOk;
  }
  const bool wants_help =
      arguments[0] == "help" || std::any_of(arguments.begin() + 1, arguments.end(), is_help);
  const std::string& name = arguments[0] == "help" ? arguments[1] : arguments[0];
  const Command* command = FindCommand(name);
  if (command == nullptr) {
    const std::vector<std::string> near = ablations::NearestNames(name, CommandNames());
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("unknown command '", name, "'",
                     near.empty() ? ";" : absl::StrCat("; did you mean '", near[0], "'?"),
                     " `warpledger --help` shows all")));
  }
  if (wants_help) {
    PrintCommandHelp(*command);
    return kExitOk;
  }
  const absl::StatusOr<std::vector<std::string>> positional =
      ParseFlags(*command, absl::MakeConstSpan(arguments).subspan(1));
  if (!positional.ok()) return Fail(positional.status(), command);
  if (!positional->empty() && !command->takes_arguments) {
    return Fail(
        absl::InvalidArgumentError(absl::StrCat("'", name, "' takes no argument '",
                                                (*positional)[0], "'; flags start with --")),
        command);
  }
  const absl::StatusOr<int> result = command->run(*positional);
  return result.ok() ? *result : Fail(result.status(), command);
}

}  // namespace warpledger::cli
