// SPDX-License-Identifier: Apache-2.0
// `warpledger study`: makes a study of somebody's own kernels, and checks one without a GPU.

#include "ablations/subjects/study/study.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/cli/flags.h"
#include "ablations/subjects/study/build.h"
#include "ablations/subjects/study/data.h"
#include "ablations/subjects/study/rig/study_rig.h"
#include "ablations/subjects/study/study_subject.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

namespace fs = std::filesystem;
using ablations::StudyFile;
using ablations::StudySubject;

const ablations::SubjectKindRegistrar kStudies(ablations::StudyKind());

struct StudyFlags : FlagSet {};

// A file of the template as the new study's: without its licence, which is ours.
std::string Filled(const std::string& text, const std::string& name) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::erase_if(lines, [](const std::string& line) {
    return absl::StrContains(line, "SPDX-License-Identifier");
  });
  return absl::StrReplaceAll(absl::StrJoin(lines, "\n"), {{"STUDY_NAME", name}});
}

absl::StatusOr<int> NewStudy(const std::string& folder) {
  std::error_code error;
  const fs::path target = fs::absolute(folder, error).lexically_normal();
  const std::string name =
      target.has_filename() ? target.filename().string() : target.parent_path().filename().string();
  if (!ablations::PlainName().Holds(name) || name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", folder, "': a study's name has no quotes, brackets or control characters"));
  }
  if (fs::exists(target, error)) {
    return absl::AlreadyExistsError(absl::StrCat(folder, ": there is something already"));
  }
  ASSIGN_OR_RETURN(const std::string templates,
                   ablations::FindProgramFile("ablations/subjects/study/template"));
  std::vector<std::pair<std::string, std::string>> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(templates, error)) {
    if (!entry.is_regular_file(error)) continue;  // pip leaves a __pycache__ beside reference.py
    ASSIGN_OR_RETURN(const std::string text, ablations::ReadFile(entry.path().string()));
    files.emplace_back(entry.path().filename().string(), Filled(text, name));
  }
  RETURN_IF_ERROR(ablations::CreateDirectories(target.string()));
  std::sort(files.begin(), files.end());
  for (const auto& [file, text] : files) {
    RETURN_IF_ERROR(ablations::WriteFileAtomically((target / file).string(), text));
    absl::PrintF("%s\n", (fs::path(folder) / file).string());
  }
  absl::PrintF("Next: warpledger study check %s\n", folder);
  return kExitOk;
}

void PrintLines(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  absl::PrintF("\n%s\n", title);
  for (const std::string& line : lines) absl::PrintF("%s\n", line);
}

absl::Status CheckReference(const StudyFile& file) {
  for (const ablations::StudyProblem& problem : file.study.problem) {
    const auto data =
        ablations::MakeData(file.study, file.folder, problem.parameters, {1}, /*probe=*/true);
    if (!data.ok()) return file.toml.Located(data.status());
    if (file.study.check.reference.empty()) continue;
    absl::PrintF("\nReference on problem '%s':", problem.name);
    for (size_t i = 0; i < data->limits.size(); ++i) {
      absl::PrintF(" %s may be off by %.3g, on average %.3g;", file.study.output[i].name,
                   data->limits[i].first, data->limits[i].second);
    }
    absl::PrintF("\nPlanted errors that this would let through: %s\n",
                 data->let_through.empty() ? "none" : absl::StrJoin(data->let_through, ", "));
    if (data->let_through.empty()) continue;
    absl::PrintF("Warning: %s: check: a result that is so wrong would pass\n",
                 file.toml.PlaceOf("check"));
  }
  if (!file.study.check.variant.empty()) {
    absl::PrintF("\nReference: variant '%s', known when it runs\n", file.study.check.variant);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> CheckStudy(const std::string& folder) {
  ASSIGN_OR_RETURN(const StudyFile file, StudyFile::Load(folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> variants,
                   StudySubject::Of({.study = file.study})->VariantsOf(""));
  ASSIGN_OR_RETURN(const ablations::StudyBuild build, ablations::TryToBuildStudy(file, variants));
  const ablations::BuildReport report = ablations::ReportOn(file, build);
  std::set<std::string> libraries;
  for (const ablations::BuiltVariant& variant : build.variants) {
    if (variant.error.empty()) libraries.insert(variant.library);
  }
  absl::PrintF("Study %s: %d claims, %d variants, %d distinct libraries, by %s\n\n",
               file.study.name, file.study.claim.size(), build.variants.size(), libraries.size(),
               build.compiler);
  for (const std::string& line : report.table) absl::PrintF("%s\n", line);
  PrintLines("Evidence", report.evidence);
  RETURN_IF_ERROR(CheckReference(file));
  PrintLines("Findings", report.findings);
  if (!report.findings.empty()) return kExitFinding;
  absl::PrintF("\nNext: warpledger run --study=%s --out=DIR\n", folder);
  return kExitOk;
}

absl::StatusOr<int> RunStudy(const StudyFlags& flags) {
  const std::vector<std::string>& arguments = flags.arguments;
  if (arguments.size() == 2 && arguments[0] == "new") return NewStudy(arguments[1]);
  if (arguments.size() == 2 && arguments[0] == "check") return CheckStudy(arguments[1]);
  return absl::InvalidArgumentError(
      "it is `study new NAME` or `study check DIR`; a commit is compared with by `run --study=DIR "
      "--design=since:GITREF`");
}

}  // namespace

Command StudyCommand() {
  return Runs(
      &RunStudy,
      {.name = "study",
       .arguments = "new NAME | check DIR",
       .summary = "Makes a study of your own kernels, or checks one without a GPU",
       .details =
           "new writes a folder with a working study: study.toml, kernel.cu, reference.py and a "
           "README that explains them.\ncheck builds each distinct set of definitions once. It "
           "shows registers, shared memory, spills and evidence,\ntechniques that reach no code, "
           "variants that are the same kernel, and definitions that no source reads.\nThen `run "
           "--study=DIR` measures the study; `--design=since:GITREF` compares each variant with "
           "itself at a commit.\nExit codes: 1 a finding, 2 the study is wrong. A study's sources "
           "and reference.py are code: they run with your rights.",
       .takes_arguments = true});
}

}  // namespace warpledger::cli
