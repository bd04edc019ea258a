// SPDX-License-Identifier: Apache-2.0
// A command of `warpledger`: a function of its flags, with their help and its exit codes.
//
// Contract
// - The members of a command's FlagSet are its flags. --name=value or --name value sets one, a bool
//   also --name and --noname; a '-' in a name counts as '_'.
// - Refused in one line that names it: a flag that the command lacks, with the nearest that it has;
//   one that is given twice, without a value, with an empty one, or with one of another type.
// - Main() prints errors, and fails where standard output could not be written.
//
//   struct JudgeFlags : FlagSet {
//     Flag<std::string> record{this, "record", "", "the record: its directory or its pack"};
//   };
//   absl::StatusOr<int> Judge(const JudgeFlags& flags);  // reads *flags.record
//   Command JudgeCommand() { return Runs(&Judge, {.name = "judge", .summary = "…"}); }

#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/flags/marshalling.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace warpledger::cli {

// Exit codes, as `warpledger --help` prints them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFinding = 1;  // the command worked and found something wrong
inline constexpr int kExitUsage = 2;    // unknown names, bad flags, bad input files
inline constexpr int kExitMissing = 3;  // no GPU, driver, CUDA build or Python; record in use
inline constexpr int kExitDamaged = 4;  // the record is damaged
inline constexpr int kExitFailed = 5;   // anything else

// A flag as the parser sees it.
class AnyFlag {
 public:
  AnyFlag(const char* name, const char* help, std::string fallback, bool is_switch)
      : name(name), help(help), fallback(std::move(fallback)), is_switch(is_switch) {}
  AnyFlag(const AnyFlag&) = delete;
  AnyFlag& operator=(const AnyFlag&) = delete;
  virtual ~AnyFlag() = default;
  // InvalidArgument says what the value must be.
  virtual absl::Status Set(const std::string& text) = 0;

  const char* const name;
  const char* const help;
  const std::string fallback;  // as text
  const bool is_switch;        // a bool, which needs no value
  bool given = false;
  std::string text;  // as given
};

struct FlagSet {
  FlagSet() = default;
  FlagSet(const FlagSet&) = delete;
  FlagSet& operator=(const FlagSet&) = delete;

  std::vector<AnyFlag*> all;
  std::vector<std::string> arguments;  // what stands beside the flags
};

// T: bool, int, uint64_t, double or std::string.
template <typename T>
class Flag final : public AnyFlag {
 public:
  Flag(FlagSet* set, const char* name, T fallback, const char* help)
      : AnyFlag(name, help, absl::UnparseFlag(fallback), std::is_same_v<T, bool>),
        value_(std::move(fallback)) {
    set->all.push_back(this);
  }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

  absl::Status Set(const std::string& text) override {
    std::string unused;
    if (absl::ParseFlag(text, &value_, &unused)) return absl::OkStatus();
    if constexpr (std::is_same_v<T, bool>) return absl::InvalidArgumentError("true or false");
    if constexpr (std::is_floating_point_v<T>) return absl::InvalidArgumentError("a number");
    using Limits = std::numeric_limits<T>;
    return absl::InvalidArgumentError(
        absl::StrCat("a whole number from ", Limits::min(), " to ", Limits::max()));
  }

  // For a string without a default. `meaning`: as in "DIR is missing: where the record goes".
  absl::Status Needed(const char* meaning) const {
    if (given) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--", name, "=", meaning));
  }

 private:
  T value_;
};

struct Command {
  const char* name;
  const char* arguments;     // of the usage line
  const char* summary;       // one line
  const char* details = "";  // what `warpledger help NAME` adds
  bool hidden = false;
  bool takes_arguments = false;  // after its name
  // The one exit code of whatever fails, flags included, for commands whose other
  // codes have meanings of their own. 0: as the status says.
  int exit_on_failure = 0;
  // Of Runs().
  std::shared_ptr<FlagSet> flags = nullptr;
  std::function<absl::StatusOr<int>()> run = nullptr;  // the exit code
};

// The command with its function and the flags that this takes.
template <typename Flags>
Command Runs(absl::StatusOr<int> (*function)(const Flags&), Command command) {
  auto flags = std::make_shared<Flags>();
  command.flags = flags;
  command.run = [=] { return function(*flags); };
  return command;
}

// Those that launch kernels have headers of their own.
Command ListCommand();
Command JudgeCommand();
Command ReportCommand();
Command TechniquesCommand();
Command StandingsCommand();
Command MicroCommand();
Command CompareCommand();
Command PoolCommand();
Command GateCommand();
Command RatchetCommand();
Command BundleCommand();
Command PackCommand();
Command UnpackCommand();
Command VerifyCommand();
Command FleetCommand();
Command MergeCommand();
Command ProfileCommand();
Command CallCommand();
Command DtypesCommand();
Command StudyCommand();

// Sets flags of `command` from a line; what stands beside the flags goes to its arguments.
absl::Status SetFlags(const char* command, const std::vector<std::string>& line, FlagSet* set);

// Parses argv, runs the command, prints errors. The whole of main().
int Main(int argc, char** argv);

// argv as given, for run.json.
const std::vector<std::string>& CommandLine();

}  // namespace warpledger::cli
