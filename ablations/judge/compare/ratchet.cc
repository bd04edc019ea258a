// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/ratchet.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"
#include "kernels/common/text.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using InstanceKey = std::pair<std::string, std::string>;  // configuration, architecture

constexpr const char* kRegisters = "registers";
constexpr const char* kSpills = "spill_bytes";
constexpr const char* kStack = "stack_bytes";
constexpr const char* kShared = "smem_bytes";

std::string Name(const InstanceKey& key) { return absl::StrCat(key.first, " on ", key.second); }

struct Measured {
  const char* resource;
  int64_t before;
  int64_t now;
};

std::vector<Measured> Measure(const BuildFacts& baseline, const InstanceResources& before,
                              const BuildFacts& build, const InstanceResources& now) {
  int64_t smem_before = before.static_smem_bytes;
  int64_t smem_now = now.static_smem_bytes;
  const auto dynamic_before = baseline.dynamic_smem_bytes.find(before.variant);
  const auto dynamic_now = build.dynamic_smem_bytes.find(now.variant);
  if (dynamic_before != baseline.dynamic_smem_bytes.end() &&
      dynamic_now != build.dynamic_smem_bytes.end()) {
    smem_before += dynamic_before->second;
    smem_now += dynamic_now->second;
  }
  return {{kRegisters, before.registers, now.registers},
          {kSpills, before.spill_store_bytes + before.spill_load_bytes,
           now.spill_store_bytes + now.spill_load_bytes},
          {kStack, before.stack_bytes, now.stack_bytes},
          {kShared, smem_before, smem_now}};
}

std::map<InstanceKey, std::string> CodeHashes(const BuildFacts& facts) {
  std::map<InstanceKey, std::string> hashes;
  if (!facts.codegen) return hashes;
  for (const InstanceCodegen& instance : facts.codegen->instances) {
    if (!instance.code_sha256.empty()) {
      hashes[{instance.variant, instance.arch}] = instance.code_sha256;
    }
  }
  return hashes;
}

// A study's compiler says its own name.
std::string CompilerOf(const BuildFacts& facts) {
  return absl::StrCat(absl::ascii_isdigit(facts.nvcc[0]) ? "nvcc " : "", facts.nvcc);
}

std::string ToolchainNote(const BuildFacts& baseline, const BuildFacts& build) {
  if (baseline.nvcc.empty() || build.nvcc.empty()) {
    return "which compiler made one of the two is unknown, and other compilers give other "
           "resources";
  }
  if (baseline.nvcc != build.nvcc) {
    return absl::StrCat("the baseline was compiled by ", CompilerOf(baseline), ", this build by ",
                        CompilerOf(build));
  }
  if (baseline.cuda_flags != build.cuda_flags) {
    return absl::StrCat("the baseline was compiled with '", baseline.cuda_flags,
                        "', this build with '", build.cuda_flags, "'");
  }
  return "";
}

std::string ChangeText(const ResourceChange& change) {
  return absl::StrCat(change.config, " on ", change.arch, ": ", change.resource, " ", change.before,
                      " -> ", change.now,
                      change.waived.empty() ? "" : absl::StrCat(" (waived: ", change.waived, ")"));
}

// Of an instance that stands twice either could be compared.
absl::Status EachOnce(const std::vector<InstanceResources>& instances, const std::string& path) {
  std::set<InstanceKey> seen;
  for (const InstanceResources& instance : instances) {
    const InstanceKey key = {instance.variant, instance.arch};
    if (!seen.insert(key).second) {
      return absl::DataLossError(absl::StrCat(path, ": ", Name(key), " stands twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BuildFacts> FactsOfRecord(const std::string& dir) {
  absl::StatusOr<Record> record = LoadRecord(dir);
  if (!record.ok()) return record.status();
  if (!record->resources) {
    return absl::NotFoundError(absl::StrCat(dir, ": this record has no ", kResourcesFile,
                                            ", so there is nothing to hold a build against"));
  }
  RETURN_IF_ERROR(EachOnce(*record->resources, absl::StrCat(dir, "/", kResourcesFile)));
  BuildFacts facts;
  facts.name = record->run.run_id;
  facts.resources = *std::move(record->resources);
  facts.codegen = std::move(record->codegen);
  facts.nvcc = record->run.toolchain.nvcc;
  facts.cuda_flags = record->run.toolchain.cuda_flags;
  // A study's kernels are compiled by what its definition names.
  const nlohmann::ordered_json& definition = record->run.definition.json;
  if (const auto study = definition.find("study"); study != definition.end()) {
    facts.nvcc = TextOf(definition, "compiler");
    std::vector<std::string> flags;
    if (const auto list = study->find("flags"); list != study->end()) {
      for (const Json& flag : *list)
        flags.push_back(flag.is_string() ? flag.get<std::string>() : "");
    }
    facts.cuda_flags = absl::StrJoin(flags, " ");
  }
  if (record->launch) {
    for (const InstanceLaunch& launch : *record->launch) {
      facts.dynamic_smem_bytes[launch.variant] = launch.dynamic_smem_bytes;
    }
  }
  return facts;
}

}  // namespace

absl::StatusOr<BuildFacts> LoadBaselineFacts(const std::string& path) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  if (!is_file || absl::EndsWith(path, kPackSuffix)) return FactsOfRecord(path);
  ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  absl::StatusOr<ResourcesFile> resources = FromText<ResourcesFile>(text);
  if (!resources.ok()) {
    return absl::Status(
        resources.status().code(),
        absl::StrCat(path, ": ", std::string(resources.status().message()),
                     ". --baseline is a record's folder or a file like its ", kResourcesFile));
  }
  RETURN_IF_ERROR(EachOnce(resources->instances, path));
  BuildFacts facts;
  facts.name = path;
  facts.resources = std::move(resources->instances);
  return facts;
}

absl::StatusOr<std::vector<Waiver>> ParseWaivers(std::string_view text) {
  std::vector<Waiver> waivers;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(Text(text), '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    Waiver waiver;
    if (words.size() < 5 || !absl::SimpleAtoi(words[3], &waiver.limit)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number,
                       " of the waivers: expected CONFIG ARCH RESOURCE LIMIT and "
                       "a reason, found '",
                       line, "'"));
    }
    waiver.config = words[0];
    waiver.arch = words[1];
    waiver.resource = words[2];
    waiver.reason = absl::StrJoin(words.begin() + 4, words.end(), " ");
    const bool known = waiver.resource == kRegisters || waiver.resource == kSpills ||
                       waiver.resource == kStack || waiver.resource == kShared;
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " of the waivers: '",
                                                     waiver.resource, "' is none of ", kRegisters,
                                                     ", ", kSpills, ", ", kStack, ", ", kShared));
    }
    waivers.push_back(std::move(waiver));
  }
  return waivers;
}

Ratchet RunRatchet(const BuildFacts& baseline, const BuildFacts& build,
                   const std::vector<Waiver>& waivers) {
  Ratchet ratchet;
  ratchet.baseline = baseline.name;
  ratchet.build = build.name;
  ratchet.toolchain_note = ToolchainNote(baseline, build);
  std::map<InstanceKey, const InstanceResources*> now;
  std::set<std::string> archs;
  std::set<std::string> variants;
  for (const InstanceResources& instance : build.resources) {
    now[{instance.variant, instance.arch}] = &instance;
    archs.insert(instance.arch);
    variants.insert(instance.variant);
  }
  const std::map<InstanceKey, std::string> hashes_before = CodeHashes(baseline);
  const std::map<InstanceKey, std::string> hashes_now = CodeHashes(build);
  std::set<InstanceKey> in_baseline;
  std::set<std::string> left_out;
  std::vector<bool> used(waivers.size(), false);
  const auto waived = [&](const ResourceChange& change) -> std::string {
    for (size_t i = 0; i < waivers.size(); ++i) {
      const Waiver& waiver = waivers[i];
      if (waiver.config != change.config || waiver.resource != change.resource ||
          (waiver.arch != "*" && waiver.arch != change.arch) || change.now > waiver.limit) {
        continue;
      }
      used[i] = true;
      return waiver.reason;
    }
    return "";
  };

  for (const InstanceResources& before : baseline.resources) {
    const InstanceKey key = {before.variant, before.arch};
    in_baseline.insert(key);
    if (!archs.contains(before.arch)) {
      left_out.insert(before.arch);
      continue;
    }
    const auto found = now.find(key);
    if (found == now.end()) {
      // The cumulative ladders alone are compiled for every architecture of a build.
      (variants.contains(before.variant) ? ratchet.instances_left_out : ratchet.gone)
          .push_back(Name(key));
      continue;
    }
    ++ratchet.compared;
    for (const Measured& m : Measure(baseline, before, build, *found->second)) {
      if (m.before == m.now) continue;
      ResourceChange change = {key.first, key.second, m.resource, m.before, m.now, ""};
      if (m.now > m.before) change.waived = waived(change);
      (m.now > m.before ? ratchet.grew : ratchet.shrank).push_back(std::move(change));
    }
    const auto hash_before = hashes_before.find(key);
    const auto hash_now = hashes_now.find(key);
    if (hash_before == hashes_before.end() || hash_now == hashes_now.end()) continue;
    ++ratchet.code_compared;
    if (hash_before->second != hash_now->second) ratchet.code_changed.push_back(Name(key));
  }
  for (const InstanceResources& instance : build.resources) {
    const InstanceKey key = {instance.variant, instance.arch};
    if (!in_baseline.contains(key)) ratchet.added.push_back(Name(key));
  }
  ratchet.archs_left_out.assign(left_out.begin(), left_out.end());
  for (size_t i = 0; i < waivers.size(); ++i) {
    if (used[i]) continue;
    ratchet.idle_waivers.push_back(
        absl::StrCat(waivers[i].config, " ", waivers[i].arch, " ", waivers[i].resource));
  }

  const bool grew = std::any_of(ratchet.grew.begin(), ratchet.grew.end(),
                                [](const ResourceChange& change) { return change.waived.empty(); });
  // What was shown to grow grew, whatever else could not be compared.
  if (grew) {
    ratchet.exit = kRatchetGrew;
  } else if (ratchet.compared == 0 || !ratchet.gone.empty()) {
    ratchet.exit = kRatchetNotCompared;
  }
  return ratchet;
}

std::string RatchetText(const Ratchet& ratchet) {
  std::string text =
      absl::StrCat("Resources of ", ratchet.build, " against ", ratchet.baseline, "\n");
  const auto add = [&text](const char* what, const std::string& line) {
    absl::StrAppend(&text, "  ", what, "  ", line, "\n");
  };
  for (const ResourceChange& change : ratchet.grew) {
    add(change.waived.empty() ? "GREW   " : "waived ", ChangeText(change));
  }
  for (const std::string& name : ratchet.gone) add("GONE   ", name);
  for (const ResourceChange& change : ratchet.shrank) add("shrank ", ChangeText(change));
  for (const std::string& name : ratchet.code_changed) add("code   ", name);
  for (const std::string& name : ratchet.added) add("new    ", name);
  for (const std::string& name : ratchet.idle_waivers)
    add("idle   ", absl::StrCat("waiver ", name));
  if (!ratchet.archs_left_out.empty()) {
    add("note   ", absl::StrCat("not built here: ", absl::StrJoin(ratchet.archs_left_out, ", ")));
  }
  if (!ratchet.instances_left_out.empty()) {
    add("note   ", absl::StrCat("built here for other architectures alone: ",
                                ratchet.instances_left_out.size(), " instances, ",
                                ratchet.instances_left_out.front(), " among them"));
  }
  if (!ratchet.toolchain_note.empty()) add("note   ", ratchet.toolchain_note);
  const auto waived = std::count_if(ratchet.grew.begin(), ratchet.grew.end(),
                                    [](const ResourceChange& c) { return !c.waived.empty(); });
  absl::StrAppend(&text, ratchet.compared,
                  " instances compared: ", ratchet.grew.size() - static_cast<size_t>(waived),
                  " resources grew, ", waived, " grew by waiver, ", ratchet.shrank.size(),
                  " shrank; the machine code of ", ratchet.code_changed.size(), " of ",
                  ratchet.code_compared, " changed; ", ratchet.gone.size(), " instances are gone, ",
                  ratchet.added.size(), " are new.\n");
  return text;
}

}  // namespace warpledger::ablations
