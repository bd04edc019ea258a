// `warpledger bundle`: records and all that it takes to judge them again, in one
// tarball. ablations/bundle.py packs; its page says what is inside.

#include <cstdio>
#include <filesystem>

#include "ablations/cli/command.h"
#include "ablations/cli/flags.h"
#include "ablations/cli/python.h"
#include "ablations/paths.h"
#include "ablations/subprocess.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

// Judging and drawing are silent for their time.
constexpr absl::Duration kSilenceLimit = absl::Minutes(15);

}  // namespace

absl::StatusOr<int> BundleCommand(absl::Span<const std::string> /*arguments*/) {
  const std::string records = absl::GetFlag(FLAGS_record);
  const std::string out = absl::GetFlag(FLAGS_out);
  if (records.empty() || out.empty()) {
    return absl::InvalidArgumentError(
        "--record=DIR[,DIR..] and --out=NAME.tar.gz are needed: what to pack, and where to");
  }
  for (const absl::string_view record : absl::StrSplit(records, ',', absl::SkipEmpty())) {
    std::error_code error;
    if (!std::filesystem::is_directory(std::string(record), error)) {
      return absl::NotFoundError(absl::StrCat(record, " is no folder, so no record"));
    }
  }
  const absl::StatusOr<std::string> script = ablations::FindProgramFile("ablations/bundle.py");
  if (!script.ok()) return script.status();
  const absl::StatusOr<std::string> plots = ablations::FindProgramFile("plots/render.py");
  if (!plots.ok()) return plots.status();
  const absl::Status packed = ablations::RunLines(
      {PythonInterpreter(), *script, absl::StrCat("--program=", ablations::ExecutablePath()),
       absl::StrCat("--plots=", std::filesystem::path(*plots).parent_path().string()),
       absl::StrCat("--record=", records), absl::StrCat("--out=", out)},
      "", kSilenceLimit, [](std::string_view line) {
        std::printf("%s\n", std::string(line).c_str());
        return absl::OkStatus();
      });
  RETURN_IF_ERROR(packed);
  return kExitOk;
}

}  // namespace warpledger::cli
