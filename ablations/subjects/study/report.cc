// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/report.h"

#include <algorithm>
#include <map>

#include "ablations/stats/opcodes.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace warpledger::ablations {
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
