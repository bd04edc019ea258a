// SPDX-License-Identifier: Apache-2.0
// `warpledger compare`, `gate` and `ratchet`: a record or a build against an
// earlier one, without a GPU.

#include <cstdio>

#include "ablations/base/files.h"
#include "ablations/base/paths.h"
#include "ablations/cli/command.h"
#include "ablations/cli/flags.h"
#include "ablations/judge/compare/compare.h"
#include "ablations/judge/compare/gate.h"
#include "ablations/judge/compare/ratchet.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/plan.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/config.h"
#include "kernels/sdpa/smem_layout.h"
#include "warpledger_build_info.h"

namespace warpledger::cli {
namespace {

using ablations::JudgedRecord;

absl::StatusOr<bool> WantsJson() {
  const std::string format = absl::GetFlag(FLAGS_format);
  if (format != "text" && format != "json") {
    return absl::InvalidArgumentError(absl::StrCat("--format=", format, ": it is text or json"));
  }
  return format == "json";
}

absl::StatusOr<std::string> Required(const char* flag, const std::string& value,
                                     const char* meaning) {
  if (!value.empty()) return value;
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", meaning));
}

constexpr char kRecordMissing[] = "DIR is missing: a directory that `warpledger run` wrote";

absl::StatusOr<JudgedRecord> LoadFlagged(const char* flag, const std::string& value,
                                         const ablations::SummarizeOptions& options) {
  const absl::StatusOr<std::string> dir = Required(flag, value, kRecordMissing);
  if (!dir.ok()) return dir.status();
  return ablations::LoadJudged(*dir, options);
}

absl::Status WriteIfAsked(const std::string& path, const std::string& text) {
  return path.empty() ? absl::OkStatus() : ablations::WriteFileAtomically(path, text);
}

// This very build's kernels, from the compile that was linked.
absl::StatusOr<ablations::BuildFacts> FactsOfThisBuild() {
  const absl::StatusOr<std::string> resources =
      ablations::FindProgramFile(absl::StrCat("codegen/", ablations::kResourcesFile));
  if (!resources.ok()) {
    return absl::NotFoundError(absl::StrCat(
        "this build holds no kernels, so it has no resources to compare: ",
        std::string(resources.status().message()), ". Build with nvcc (see README.md)"));
  }
  absl::StatusOr<ablations::BuildFacts> facts = ablations::LoadBaselineFacts(*resources);
  if (!facts.ok()) return facts.status();
  facts->name = "this build";
  facts->nvcc = build_info::kNvcc;
  facts->cuda_flags = build_info::kCudaFlags;
  for (const sdpa::Config& config : ablations::AllInstanceConfigs()) {
    facts->dynamic_smem_bytes[sdpa::InstanceName(config)] = sdpa::SmemBytes(config);
  }
  const absl::StatusOr<std::string> codegen =
      ablations::FindProgramFile(absl::StrCat("codegen/", ablations::kCodegenFile));
  if (!codegen.ok()) return facts;
  const absl::StatusOr<std::string> text = ablations::ReadFile(*codegen);
  if (!text.ok()) return text.status();
  const absl::StatusOr<nlohmann::ordered_json> json = ablations::ParseJson(*text);
  if (!json.ok()) return json.status();
  absl::StatusOr<ablations::Codegen> parsed = ablations::CodegenFromJson(*json);
  if (!parsed.ok()) return parsed.status();
  facts->codegen = *std::move(parsed);
  return facts;
}

}  // namespace

absl::StatusOr<int> CompareCommand(absl::Span<const std::string> /*arguments*/) {
  const absl::StatusOr<bool> json = WantsJson();
  if (!json.ok()) return json.status();
  const absl::StatusOr<JudgedRecord> a = LoadFlagged("a", absl::GetFlag(FLAGS_a), {});
  if (!a.ok()) return a.status();
  const absl::StatusOr<JudgedRecord> b = LoadFlagged("b", absl::GetFlag(FLAGS_b), {});
  if (!b.ok()) return b.status();
  const nlohmann::ordered_json comparison = ablations::Compare(*a, *b);
  RETURN_IF_ERROR(
      WriteIfAsked(absl::GetFlag(FLAGS_out), ablations::ComparisonMarkdown(comparison)));
  const std::string text =
      *json ? ablations::DumpFile(comparison) : ablations::ComparisonText(comparison);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

namespace {

absl::StatusOr<ablations::GateResult> GateFlagged(const ablations::GateOptions& options) {
  // The gate uses a summary's facts alone; its intervals are its own.
  const ablations::SummarizeOptions facts_only = {.bootstrap_resamples = 100};
  const absl::StatusOr<JudgedRecord> baseline =
      LoadFlagged("baseline", absl::GetFlag(FLAGS_baseline), facts_only);
  if (!baseline.ok()) return baseline.status();
  const absl::StatusOr<JudgedRecord> record =
      LoadFlagged("record", absl::GetFlag(FLAGS_record), facts_only);
  if (!record.ok()) return record.status();
  return ablations::Gate(*baseline, *record, options);
}

}  // namespace

absl::StatusOr<int> GateCommand(absl::Span<const std::string> /*arguments*/) {
  const ablations::GateOptions options = {.tolerance = absl::GetFlag(FLAGS_tolerance),
                                          .allow_other_gpu = absl::GetFlag(FLAGS_allow_other_gpu)};
  const absl::StatusOr<bool> json = WantsJson();
  const absl::StatusOr<ablations::GateResult> gate =
      json.ok() ? GateFlagged(options) : absl::StatusOr<ablations::GateResult>(json.status());
  if (!gate.ok()) {
    // A pipeline that reads the files must find why there is no answer.
    const ablations::GateResult refused =
        ablations::RefusedGate(absl::GetFlag(FLAGS_baseline), absl::GetFlag(FLAGS_record),
                               std::string(gate.status().message()), options);
    RETURN_IF_ERROR(WriteIfAsked(absl::GetFlag(FLAGS_junit), ablations::GateJUnit(refused)));
    RETURN_IF_ERROR(WriteIfAsked(absl::GetFlag(FLAGS_markdown), ablations::GateMarkdown(refused)));
    return gate.status();
  }
  RETURN_IF_ERROR(WriteIfAsked(absl::GetFlag(FLAGS_junit), ablations::GateJUnit(*gate)));
  RETURN_IF_ERROR(WriteIfAsked(absl::GetFlag(FLAGS_markdown), ablations::GateMarkdown(*gate)));
  const std::string text =
      *json ? ablations::DumpFile(ablations::GateJson(*gate)) : ablations::GateText(*gate);
  std::fputs(text.c_str(), stdout);
  return gate->exit;
}

absl::StatusOr<int> RatchetCommand(absl::Span<const std::string> /*arguments*/) {
  const absl::StatusOr<bool> json = WantsJson();
  if (!json.ok()) return json.status();
  const absl::StatusOr<std::string> path =
      Required("baseline", absl::GetFlag(FLAGS_baseline),
               "PATH is missing: a record's directory or a resources.json");
  if (!path.ok()) return path.status();
  const absl::StatusOr<ablations::BuildFacts> baseline = ablations::LoadBaselineFacts(*path);
  if (!baseline.ok()) return baseline.status();
  const absl::StatusOr<ablations::BuildFacts> build = FactsOfThisBuild();
  if (!build.ok()) return build.status();
  std::vector<ablations::Waiver> waivers;
  if (const std::string file = absl::GetFlag(FLAGS_waivers); !file.empty()) {
    const absl::StatusOr<std::string> text = ablations::ReadFile(file);
    if (!text.ok()) return text.status();
    absl::StatusOr<std::vector<ablations::Waiver>> parsed = ablations::ParseWaivers(*text);
    if (!parsed.ok()) return parsed.status();
    waivers = *std::move(parsed);
  }
  const ablations::Ratchet ratchet = ablations::RunRatchet(*baseline, *build, waivers);
  const std::string text = *json ? ablations::DumpFile(ablations::RatchetJson(ratchet))
                                 : ablations::RatchetText(ratchet);
  std::fputs(text.c_str(), stdout);
  return ratchet.exit;
}

}  // namespace warpledger::cli
