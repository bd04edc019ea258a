// SPDX-License-Identifier: Apache-2.0
// `warpledger bundle`: records and all that it takes to judge them again, in one
// tarball. ablations/cli/archive/bundle.py packs; its page says what is inside.
// `warpledger verify`: a bundle, checked by a program that is none of its files.
// ablations/cli/archive/bundle_verify.py does it; its page says how.

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/base/subprocess.h"
#include "ablations/cli/flags.h"
#include "ablations/cli/records/summaries.h"
#include "ablations/plan/calibration.h"
#include "ablations/record/profile.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct BundleFlags : FlagSet {
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<std::string> out{this, "out", "", kOutHelp};
  PythonFlag python{this};
};

struct VerifyFlags : FlagSet {
  Flag<std::string> manifest_sha256{
      this, "manifest_sha256", "",
      "what `warpledger bundle` printed; a bundle that was rebuilt whole has another"};
  PythonFlag python{this};
};

// Judging and drawing are silent for their time.
constexpr absl::Duration kSilenceLimit = absl::Minutes(15);

// Runs a script of this folder, which gets the paths of this program and of the plots too.
absl::Status RunArchiveScript(const PythonFlag& python, const std::string& name,
                              const std::vector<std::string>& arguments,
                              ablations::ProcessEnd* end = nullptr) {
  ASSIGN_OR_RETURN(const std::string script,
                   ablations::FindProgramFile(absl::StrCat("ablations/cli/archive/", name)));
  ASSIGN_OR_RETURN(const std::string plots, ablations::FindProgramFile("plots/render.py"));
  std::vector<std::string> argv = {
      python.Interpreter(), script, absl::StrCat("--program=", ablations::ExecutablePath()),
      absl::StrCat("--plots=", std::filesystem::path(plots).parent_path().string())};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return ablations::RunLines(
      argv, "", [] { return kSilenceLimit; },
      [](std::string_view line) {
        absl::PrintF("%s\n", line);
        return absl::OkStatus();
      },
      end);
}

// The last part of the path of a folder, whether or not it ends in a slash, or of a pack.
std::string NameOf(const std::string& record) {
  return std::filesystem::path(ablations::WithoutPackSuffix(record)).filename().string();
}

// How a record is judged and reported again.
absl::StatusOr<std::string> KindOf(const ablations::RecordFiles& record) {
  for (const auto& [file, kind] : {std::pair{ablations::kRunFile, "run"},
                                   {ablations::kProfileFile, "profile"},
                                   {ablations::kMicroFile, "micro"}}) {
    if (record.Has(file)) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(record.path(), " is no record: it has no run.json, profile.json or micro.json"));
}

// The microbenchmarks that judging the records quotes, unless they are packed anyway:
// what lies beside the tree must not be needed to judge a bundle.
absl::StatusOr<std::set<std::string>> QuotedBeside(const std::vector<std::string>& records) {
  std::set<std::string> packed;
  for (const std::string& record : records) packed.insert(NameOf(record));
  std::set<std::string> beside;
  for (const std::string& dir : records) {
    if (!ablations::HasRecordFile(dir, ablations::kRunFile) || ablations::IsCalibrationRecord(dir))
      continue;
    ASSIGN_OR_RETURN(const ablations::Record record, ablations::LoadRecord(dir));
    ASSIGN_OR_RETURN(const std::optional<ablations::MicroRecord> micro,
                     FindMicroRecord(dir, record.run.gpu.slug));
    if (micro && !packed.contains(NameOf(micro->dir))) beside.insert(micro->dir);
  }
  return beside;
}

absl::StatusOr<int> Bundle(const BundleFlags& flags) {
  if (!flags.record.given || !flags.out.given) {
    return absl::InvalidArgumentError(
        "--record=DIR[,DIR..] and --out=NAME.tar.gz are needed: what to pack, and where to");
  }
  ASSIGN_OR_RETURN(std::vector<std::string> dirs, NamesIn(flags.record));
  ASSIGN_OR_RETURN(const std::set<std::string> quoted, QuotedBeside(dirs));
  dirs.insert(dirs.end(), quoted.begin(), quoted.end());
  std::vector<std::string> kinds;
  for (std::string& dir : dirs) {
    ASSIGN_OR_RETURN(const ablations::RecordFiles record, ablations::RecordFiles::Open(dir));
    ASSIGN_OR_RETURN(const std::string kind, KindOf(record));
    dir = record.path();
    kinds.push_back(kind);
  }
  RETURN_IF_ERROR(RunArchiveScript(
      flags.python, "bundle.py",
      {absl::StrCat("--record=", absl::StrJoin(dirs, ",")),
       absl::StrCat("--kind=", absl::StrJoin(kinds, ",")), absl::StrCat("--out=", *flags.out)}));
  return kExitOk;
}

absl::StatusOr<int> Verify(const VerifyFlags& flags) {
  if (flags.arguments.size() != 1) {
    return absl::InvalidArgumentError("name one bundle: NAME.tar.gz, or the folder it unpacks to");
  }
  ablations::ProcessEnd end;
  const absl::Status done =
      RunArchiveScript(flags.python, "bundle_verify.py",
                       {absl::StrCat("--bundle=", flags.arguments[0]),
                        absl::StrCat("--manifest_sha256=", *flags.manifest_sha256)},
                       &end);
  if (end.exit_code == kExitFinding || end.exit_code == kExitUsage) return end.exit_code;
  RETURN_IF_ERROR(done);
  return kExitOk;
}

}  // namespace

Command BundleCommand() {
  return Runs(
      &Bundle,
      {.name = "bundle",
       .arguments = "--record=DIR[,DIR..] --out=NAME.tar.gz",
       .summary = "Packs records, program and results into a tarball that checks itself",
       .details =
           "Unpack it anywhere. `python3 NAME/replay.py` names every file that was changed, and "
           "computes verdicts,\nreports and pictures again. Verdicts and reports must be the same "
           "bytes, and pictures must show the same.\nThe manifest has the SHA-256 of every file."});
}

Command VerifyCommand() {
  return Runs(
      &Verify,
      {.name = "verify",
       .arguments = "BUNDLE [--manifest_sha256=HASH]",
       .summary = "Checks a bundle from outside: nothing in the bundle is run",
       .details =
           "Makes the checks of the bundle's replay.py with this program's own scripts: every "
           "file, "
           "then verdicts,\nreports and pictures. Names each file that differs; then the exit code "
           "is 1.",
       .takes_arguments = true});
}

}  // namespace warpledger::cli
