// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/build.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "ablations/base/files.h"
#include "ablations/base/nearest.h"
#include "ablations/stats/opcodes.h"
#include "ablations/subjects/study/python.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
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

std::string UnknownClaimIn(const Study& study, std::string_view variant) {
  if (variant == kStudyBase) return "";
  std::vector<std::string> known;
  for (const StudyClaim& claim : study.claim) known.push_back(claim.id);
  const std::vector<std::string> ids = absl::StrSplit(std::string(variant), '+');
  for (const std::string& id : ids) {
    if (id == kStudyNull || absl::c_linear_search(known, id)) continue;
    if (ids.size() == 1) known.emplace_back(kStudyBase);
    const std::vector<std::string> near = NearestNames(id, known, 1);
    return absl::StrCat("'", id, "' is no claim",
                        near.empty() ? "" : absl::StrCat("; did you mean '", near.front(), "'?"));
  }
  return "";
}

absl::StatusOr<StudyBuild> TryToBuildStudy(const StudyFile& file,
                                           const std::vector<std::string>& variants) {
  const Study& study = file.study;
  for (const std::string& variant : variants) {
    const std::string unknown = UnknownClaimIn(study, variant);
    if (unknown.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("variant '", variant, "': ", unknown));
  }
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

namespace {

constexpr size_t kShownHash = 12;

// The variants that the report is about, by what they are called in it: the base, and each
// technique alone.
std::vector<std::pair<std::string, std::string>> Alone(const Study& study) {
  std::vector<std::pair<std::string, std::string>> variants = {{kStudyBase, kStudyBase}};
  for (const StudyClaim& claim : study.claim) {
    variants.emplace_back(claim.id, VariantOf(study, claim));
  }
  return variants;
}

// `resources`: null where all of its kernels are a library's.
std::string Row(const std::string& name, const InstanceResources* resources,
                const InstanceCodegen& code) {
  if (resources == nullptr) {
    return absl::StrFormat("%-24s %-7s %9s %8s %7s %12s  %s", name, code.arch, "-", "-", "-", "-",
                           "none of its own: told apart by what calls it");
  }
  return absl::StrFormat("%-24s %-7s %9d %8d %7d %12d  %s", name, code.arch, resources->registers,
                         resources->static_smem_bytes,
                         resources->spill_store_bytes + resources->spill_load_bytes,
                         analysis::CountAll(code.opcodes), code.code_sha256.substr(0, kShownHash));
}

// Of each architecture; empty: the variant was not built.
std::string CodeOf(const StudyBuild& build, const std::string& variant) {
  std::vector<std::string> hashes;
  for (const InstanceCodegen& code : build.codegen.instances) {
    if (code.variant == variant) hashes.push_back(absl::StrCat(code.arch, code.code_sha256));
  }
  return absl::StrJoin(hashes, " ");
}

// Instructions that the pattern finds, where they are most.
int64_t Sass(const StudyBuild& build, const std::string& variant, const std::string& pattern) {
  int64_t most = 0;
  for (const InstanceCodegen& code : build.codegen.instances) {
    if (code.variant != variant) continue;
    most = std::max(most, analysis::CountMatching(code.opcodes, pattern));
  }
  return most;
}

class Reporter {
 public:
  Reporter(const StudyFile& file, const StudyBuild& build) : file_(file), build_(build) {}

  BuildReport Report() {
    report_.findings = UnreadDefinitions(file_, build_);
    for (const BuiltVariant& variant : build_.variants) {
      if (!variant.error.empty()) {
        report_.findings.emplace_back(WhyNotBuilt(file_, variant).message());
      }
    }
    Tabulate();
    for (size_t i = 0; i < file_.study.claim.size(); ++i) AddClaim(i);
    AddTwins();
    return std::move(report_);
  }

 private:
  void Find(const std::string& path, const std::string& what) {
    report_.findings.push_back(absl::StrCat(file_.toml.PlaceOf(path), ": ", what));
  }

  void Tabulate() {
    report_.table.push_back(absl::StrFormat("%-24s %-7s %9s %8s %7s %12s  %s", "variant", "arch",
                                            "registers", "shared", "spills", "instructions",
                                            "machine code"));
    for (const auto& [name, variant] : Alone(file_.study)) {
      for (const InstanceCodegen& code : build_.codegen.instances) {
        const auto resources = absl::c_find_if(build_.resources.instances, [&](const auto& each) {
          return each.variant == variant && each.arch == code.arch;
        });
        if (code.variant != variant) continue;
        const bool is_known = resources != build_.resources.instances.end();
        report_.table.push_back(Row(name, is_known ? &*resources : nullptr, code));
      }
    }
  }

  void AddClaim(size_t index) {
    const StudyClaim& claim = file_.study.claim[index];
    const std::string path = absl::StrCat("claim[", index, "]");
    const std::string variant = VariantOf(file_.study, claim);
    const std::string base = BaseOf(file_.study, claim);
    const std::string code = CodeOf(build_, variant);
    if (code.empty() || CodeOf(build_, base).empty()) return;
    if (code == CodeOf(build_, base) && claim.launched.empty()) {
      const bool host = build_.Find(variant)->host_sha256 != build_.Find(base)->host_sha256;
      Find(path, absl::StrCat("'", claim.id, "' reaches no code: its machine code is that of '",
                              NameOfBase(claim), "'",
                              host ? "; the host's side differs, so a claim about the launch names "
                                     "it with `launched`"
                                   : ""));
    }
    AddPattern(path, "sass", claim, claim.sass, false);
    AddPattern(path, "fewer_sass", claim, claim.fewer_sass, true);
    AddPattern(path, "ptx", claim, claim.ptx, false);
  }

  static std::string NameOfBase(const StudyClaim& claim) {
    return claim.on.empty() ? kStudyBase : claim.on;
  }

  void AddPattern(const std::string& path, const char* field, const StudyClaim& claim,
                  const std::string& pattern, bool fewer) {
    if (pattern.empty()) return;
    const bool of_ptx = std::string_view(field) == "ptx";
    const auto count = [&](const std::string& of) {
      return of_ptx ? build_.Find(of)->ptx.at(pattern) : Sass(build_, of, pattern);
    };
    if (!of_ptx && build_.codegen.disassembler.empty()) {
      report_.evidence.push_back(absl::StrFormat("%-24s %s /%s/: not known, there is no nvdisasm",
                                                 claim.id, field, pattern));
      return;
    }
    const int64_t before = count(BaseOf(file_.study, claim));
    const int64_t after = count(VariantOf(file_.study, claim));
    const bool shown = fewer ? after < before : after > before;
    report_.evidence.push_back(absl::StrFormat("%-24s %s /%s/: %d -> %d%s", claim.id, field,
                                               pattern, before, after, shown ? "" : "  NOT THERE"));
    if (!shown) {
      Find(absl::StrCat(path, ".", field),
           absl::StrCat("'", claim.id, "' shows no evidence: /", pattern, "/ is found ", after,
                        " times, and ", before, " times in '", NameOfBase(claim), "'"));
    }
  }

  // Techniques that are one kernel, beside those that are that of what they are on.
  void AddTwins() {
    std::map<std::string, std::string> first = {{CodeOf(build_, kStudyBase), kStudyBase}};
    for (size_t i = 0; i < file_.study.claim.size(); ++i) {
      const StudyClaim& claim = file_.study.claim[i];
      const std::string code = CodeOf(build_, VariantOf(file_.study, claim));
      if (code.empty()) continue;
      const auto [found, is_new] = first.emplace(code, claim.id);
      if (is_new || found->second == kStudyBase || found->second == claim.on) continue;
      Find(absl::StrCat("claim[", i, "]"),
           absl::StrCat("'", claim.id, "' and '", found->second, "' are one kernel"));
    }
  }

  const StudyFile& file_;
  const StudyBuild& build_;
  BuildReport report_;
};

}  // namespace

BuildReport ReportOn(const StudyFile& file, const StudyBuild& build) {
  return Reporter(file, build).Report();
}

}  // namespace warpledger::ablations
