// SPDX-License-Identifier: Apache-2.0
// `warpledger verify`: a bundle, checked by a program that is none of its files.
// ablations/cli/archive/bundle_verify.py does it; its page says how.

#include <filesystem>
#include <string>
#include <string_view>

#include "ablations/base/files.h"
#include "ablations/base/subprocess.h"
#include "ablations/cli/flags.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct VerifyFlags : FlagSet {
  Flag<std::string> manifest_sha256{
      this, "manifest_sha256", "",
      "what `warpledger bundle` printed; a bundle that was rebuilt whole has another"};
  PythonFlag python{this};
};

// Judging and drawing are silent for their time.
constexpr absl::Duration kSilenceLimit = absl::Minutes(15);

absl::StatusOr<int> Verify(const VerifyFlags& flags) {
  if (flags.arguments.size() != 1) {
    return absl::InvalidArgumentError("name one bundle: NAME.tar.gz, or the folder it unpacks to");
  }
  ASSIGN_OR_RETURN(const std::string script,
                   ablations::FindProgramFile("ablations/cli/archive/bundle_verify.py"));
  ASSIGN_OR_RETURN(const std::string plots, ablations::FindProgramFile("plots/render.py"));
  ablations::ProcessEnd end;
  const absl::Status done = ablations::RunLines(
      {flags.python.Interpreter(), script, absl::StrCat("--program=", ablations::ExecutablePath()),
       absl::StrCat("--plots=", std::filesystem::path(plots).parent_path().string()),
       absl::StrCat("--bundle=", flags.arguments[0]),
       absl::StrCat("--manifest_sha256=", *flags.manifest_sha256)},
      "", [] { return kSilenceLimit; },
      [](std::string_view line) {
        absl::PrintF("%s\n", line);
        return absl::OkStatus();
      },
      &end);
  if (end.exit_code == kExitFinding || end.exit_code == kExitUsage) return end.exit_code;
  RETURN_IF_ERROR(done);
  return kExitOk;
}

}  // namespace

Command VerifyCommand() {
  return Runs(
      &Verify,
      {.name = "verify",
       .arguments = "BUNDLE [--manifest_sha256=HASH]",
       .summary = "Checks a bundle from outside: nothing that it holds is run",
       .details =
           "What the bundle's replay.py checks, by this program's own scripts: every file, and "
           "verdicts, reports and\npictures once more. Exit code 1 where something differs; each "
           "file is named.",
       .takes_arguments = true});
}

}  // namespace warpledger::cli
