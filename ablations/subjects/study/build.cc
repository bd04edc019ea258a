// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/build.h"

#include <filesystem>

#include "ablations/base/files.h"
#include "ablations/subjects/study/python.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

std::string NameOf(const std::string& definition) {
  return definition.substr(0, definition.find('='));
}

VariantRequest RequestFor(const Study& study, const std::string& variant) {
  VariantRequest request = {variant, {}, study.flags, study.sources};
  const std::vector<const StudyClaim*> on = ClaimsIn(study, variant);
  for (const StudyClaim& claim : study.claim) {
    const bool is_on = absl::c_linear_search(on, &claim);
    absl::c_copy(is_on ? claim.define : claim.otherwise, std::back_inserter(request.define));
    if (!is_on) continue;
    absl::c_copy(claim.flags, std::back_inserter(request.flags));
    if (!claim.sources.empty()) request.sources = claim.sources;
  }
  return request;
}

}  // namespace

const BuiltVariant* StudyBuild::Find(std::string_view name) const {
  const auto found =
      absl::c_find_if(variants, [&](const BuiltVariant& each) { return each.name == name; });
  return found == variants.end() ? nullptr : &*found;
}

std::string BaseOf(const Study& study, const StudyClaim& claim) {
  const auto found =
      absl::c_find_if(study.claim, [&](const StudyClaim& each) { return each.id == claim.on; });
  return found == study.claim.end() ? kStudyBase : VariantOf(study, *found);
}

std::string VariantOf(const Study& study, const StudyClaim& claim) {
  return claim.on.empty() ? claim.id : absl::StrCat(BaseOf(study, claim), "+", claim.id);
}

std::vector<const StudyClaim*> ClaimsIn(const Study& study, std::string_view variant) {
  const std::vector<std::string> ids = absl::StrSplit(std::string(variant), '+');
  std::vector<const StudyClaim*> on;
  for (const StudyClaim& claim : study.claim) {
    if (absl::c_linear_search(ids, claim.id)) on.push_back(&claim);
  }
  return on;
}

absl::StatusOr<StudyBuild> TryToBuildStudy(const StudyFile& file,
                                           const std::vector<std::string>& variants) {
  const Study& study = file.study;
  ASSIGN_OR_RETURN(const std::string header,
                   FindProgramFile("ablations/subjects/study/include/warpledger/study.h"));
  BuildRequest request = {
      .folder = file.folder,
      .cache = absl::StrCat(file.folder, "/", kStudyCache),
      .include = std::filesystem::path(header).parent_path().parent_path().string(),
      .device = study.device,
      .architectures = study.architectures,
      .variants = {},
      .names = {},
      .ptx = {}};
  for (const std::string& variant : variants) {
    request.variants.push_back(RequestFor(study, variant));
    for (const StudyClaim* claim : ClaimsIn(study, variant)) {
      for (const std::string& definition : claim->define) {
        request.names.emplace_back(NameOf(definition), variant);
      }
    }
  }
  for (const StudyClaim& claim : study.claim) {
    if (!claim.ptx.empty()) request.ptx.push_back(claim.ptx);
  }
  const auto build = AskPython<StudyBuild>("study_build.py", request);
  if (build.ok() || !absl::IsInvalidArgument(build.status())) return build;
  return absl::UnavailableError(build.status().message());
}

absl::Status WhyNotBuilt(const StudyFile& file, const BuiltVariant& variant) {
  const std::vector<const StudyClaim*> on = ClaimsIn(file.study, variant.name);
  std::string path = "sources";
  // The first claim is to blame where there is one alone.
  if (on.size() == 1) {
    path = absl::StrCat("claim[", on.front() - file.study.claim.data(), "]");
  }
  return file.toml.Located(absl::InvalidArgumentError(
      absl::StrCat(path, ": variant '", variant.name, "': ", variant.error)));
}

std::vector<std::string> UnreadDefinitions(const StudyFile& file, const StudyBuild& build) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < file.study.claim.size(); ++i) {
    const std::vector<std::string>& define = file.study.claim[i].define;
    for (size_t k = 0; k < define.size(); ++k) {
      const std::string name = NameOf(define[k]);
      if (!absl::c_linear_search(build.unread, name)) continue;
      const std::string path = absl::StrCat("claim[", i, "].define[", k, "]");
      lines.push_back(
          absl::StrCat(file.toml.PlaceOf(path), ": ", path, ": no source reads ", name));
    }
  }
  return lines;
}

absl::StatusOr<StudyBuild> BuildStudy(const StudyFile& file,
                                      const std::vector<std::string>& variants) {
  ASSIGN_OR_RETURN(StudyBuild build, TryToBuildStudy(file, variants));
  for (const BuiltVariant& variant : build.variants) {
    if (!variant.error.empty()) return WhyNotBuilt(file, variant);
  }
  const std::vector<std::string> unread = UnreadDefinitions(file, build);
  if (!unread.empty()) return absl::InvalidArgumentError(unread.front());
  return build;
}

}  // namespace warpledger::ablations
