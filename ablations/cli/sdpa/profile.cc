// SPDX-License-Identifier: Apache-2.0
// `warpledger profile`: hardware counters of chosen variants of SDPA or of a study, by Nsight
// Compute, which starts `warpledger call`.

#include "ablations/record/profile.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/base/progress.h"
#include "ablations/base/subprocess.h"
#include "ablations/cli/flags.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/built_code.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/study/study_subject.h"
#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"
#include "warpledger_source_hashes.h"

namespace warpledger::cli {
namespace {

using ablations::Profile;
using ablations::ShapeInfo;

struct ProfileFlags : FlagSet {
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<std::string> study{this, "study", "", kStudyHelp};
  Flag<std::string> variants{this, "variants", "all", kVariantsHelp};
  ProblemFlags problems{this};
  Flag<std::string> ncu{this, "ncu", "",
                        "Nsight Compute's program; default: ncu on PATH, else the CUDA toolkit's"};
  Flag<uint64_t> seed{this, "seed", 1, kSeedHelp};
  Flag<int> silence_limit_s{this, "silence_limit_s", 300, kSilenceLimitHelp};
};

constexpr char kToolkitNcu[] = "/usr/local/cuda/bin/ncu";

// The child's lines, kept even when it fails.
struct Output {
  absl::Status status;
  std::string text;
};

Output Call(const std::vector<std::string>& argv, absl::Duration silence_limit) {
  Output output;
  output.status = ablations::RunLines(argv, "", silence_limit, [&](std::string_view line) {
    output.text.append(line).push_back('\n');
    return absl::OkStatus();
  });
  return output;
}

struct Ncu {
  std::string program;
  std::string version;
  std::vector<std::string> metrics;  // that this GPU has
};

absl::StatusOr<Ncu> FindNcu(const std::vector<std::string>& candidates,
                            absl::Duration silence_limit) {
  Ncu ncu;
  for (const std::string& candidate : candidates) {
    const Output said = Call({candidate, "--version"}, silence_limit);
    if (!said.status.ok()) continue;
    ncu.program = candidate;
    for (const absl::string_view line : absl::StrSplit(said.text, '\n', absl::SkipEmpty())) {
      if (absl::StartsWith(line, "Version ")) ncu.version = std::string(line.substr(8));
    }
    break;
  }
  if (ncu.program.empty()) {
    return absl::UnavailableError(
        absl::StrCat("Nsight Compute is not here (tried ", absl::StrJoin(candidates, ", "),
                     "); it comes with the CUDA toolkit. Install it, or name it with --ncu=PATH"));
  }
  const Output query = Call({ncu.program, "--query-metrics"}, silence_limit);
  ncu.metrics = ablations::KnownMetrics(ablations::ProfileMetrics(), query.text);
  bool counts = false;
  for (const std::string& metric : ncu.metrics) {
    counts = counts || metric.starts_with("smsp__") || metric.starts_with("sm__");
  }
  if (!query.status.ok() || !counts) {
    return absl::UnavailableError(
        absl::StrCat(ncu.program, " --query-metrics lists no counters of this machine's GPU",
                     query.status.ok() ? "" : ": ", std::string(query.status.message())));
  }
  return ncu;
}

// What is profiled: variants of a subject on its problems.
struct Profiled {
  const ablations::Subject* subject = nullptr;
  const ablations::StudySubject* study = nullptr;                  // the subject, where it is one
  std::vector<std::pair<std::string, std::string>> variants = {};  // name, configuration
  std::vector<ShapeInfo> shapes = {};
  ablations::BuiltCode code = {};  // of attention

  // A build without its facts still has counters.
  std::string CodeOf(const std::string& config, const ShapeInfo& shape,
                     const std::string& compute_capability) const {
    ablations::GpuInfo gpu;
    gpu.compute_capability = compute_capability;
    for (const std::string& name : subject->CodeNames(config, shape)) {
      if (study == nullptr) {
        if (std::string hash = code.HashOf(name, compute_capability); !hash.empty()) return hash;
      } else if (const auto* found = ablations::CodeFor(ablations::ArchOf(gpu),
                                                        study->build()->codegen.instances, name)) {
        return found->code_sha256;
      }
    }
    return "";
  }
};

absl::StatusOr<Profiled> ProfiledSdpa(const ProfileFlags& flags, const std::string& shapes) {
  Profiled profiled;
  ASSIGN_OR_RETURN(profiled.subject, ablations::FindSubject(ablations::kFirstSubject));
  ASSIGN_OR_RETURN(const auto variants, ablations::ParseVariants(*flags.variants));
  for (const ablations::NamedVariant& variant : variants) {
    profiled.variants.emplace_back(variant.name, sdpa::ConfigName(variant.config));
  }
  ASSIGN_OR_RETURN(profiled.shapes, profiled.subject->ParseProblems(shapes));
  profiled.code = ablations::BuiltCode::Load().value_or(ablations::BuiltCode());
  return profiled;
}

// The variants of the study's own design, or some of them.
absl::StatusOr<Profiled> ProfiledStudy(const ProfileFlags& flags, const std::string& shapes) {
  Profiled profiled;
  ASSIGN_OR_RETURN(profiled.subject, ablations::SubjectIn("study", *flags.study, ""));
  profiled.study = static_cast<const ablations::StudySubject*>(profiled.subject);
  ASSIGN_OR_RETURN(const std::vector<std::string> known, profiled.study->VariantsOf(""));
  std::vector<std::string> names = known;
  if (*flags.variants != "all") {
    ASSIGN_OR_RETURN(names, NamesIn(flags.variants));
  }
  for (const std::string& name : names) {
    const absl::StatusOr<std::string> config = profiled.subject->FindVariant(name);
    if (!config.ok() || !absl::c_linear_search(known, *config)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown variant '", name, "': it is one of ", absl::StrJoin(known, ", ")));
    }
    profiled.variants.emplace_back(name, *config);
  }
  ASSIGN_OR_RETURN(profiled.shapes, profiled.subject->ParseProblems(shapes));
  return profiled;
}

Profile ProfileOne(const Ncu& ncu, const Profiled& profiled, const std::string& variant,
                   const std::string& config, const ShapeInfo& shape, const std::string& out,
                   absl::Duration silence_limit) {
  Profile profile;
  profile.variant = variant;
  profile.config = config;
  profile.shape = shape.name;
  const Output said =
      Call(ablations::NcuCall(
               ncu.program, ncu.metrics,
               {ablations::ExecutablePath(), "call", absl::StrCat("--record=", out),
                absl::StrCat("--variant=", config), absl::StrCat("--shape=", shape.name)}),
           silence_limit);
  const auto launches = ablations::ParseNcuCsv(said.text);
  if (!said.status.ok()) {
    profile.reason = absl::StrCat(std::string(said.status.message()), launches.ok() ? "" : "; ",
                                  launches.ok() ? "" : std::string(launches.status().message()));
  } else if (!launches.ok()) {
    profile.reason = std::string(launches.status().message());
  } else {
    // Of attention it is the kernel whose code the line names; another may join its parts.
    const auto ours = absl::c_find_if(*launches, [&](const ablations::KernelProfile& launch) {
      return profiled.study == nullptr && launch.kernel.starts_with("sdpa_");
    });
    profile.launch = ours != launches->end() ? *ours : ablations::Longest(*launches);
    if (ours == launches->end() && launches->size() > 1) {
      profile.kernels = static_cast<int>(launches->size());
    }
    profile.code_sha256 = profiled.CodeOf(config, shape, profile.launch.compute_capability);
  }
  return profile;
}

ablations::ProfileInfo DescribeProfiles(const Ncu& ncu, uint64_t seed, const Profiled& profiled) {
  ablations::ProfileInfo info;
  const absl::Time now = absl::Now();
  info.run_id = absl::FormatTime("profile-%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  info.created_utc = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
  info.argv = CommandLine();
  info.ncu = ncu.version;
  info.seed = seed;
  info.shapes = profiled.shapes;
  info.metrics = ncu.metrics;
  if (profiled.study == nullptr) {
    info.registry_sha256 = kRegistrySha256;
    info.kernel_source_sha256 = kKernelSourceSha256;
  } else {
    info.subject = profiled.subject->name();
    info.definition.json = profiled.subject->Definition();
  }
  return info;
}

// What a claim of a study says of a counter, held against the profiles of its two sides.
void PrintCounters(const Profiled& profiled, const std::vector<Profile>& profiles) {
  const ablations::Study& study = profiled.study->definition().study;
  const auto value_of = [&](const std::string& config, const std::string& shape,
                            const std::string& metric) -> std::optional<double> {
    for (const Profile& profile : profiles) {
      const auto found = profile.launch.metrics.find(metric);
      if (profile.config == config && profile.shape == shape && profile.reason.empty() &&
          found != profile.launch.metrics.end()) {
        return found->second.value;
      }
    }
    return std::nullopt;
  };
  for (const ablations::StudyClaim& claim : study.claim) {
    const bool rises = claim.lower_counter.empty();
    const std::string& metric = rises ? claim.counter : claim.lower_counter;
    if (metric.empty()) continue;
    for (const ShapeInfo& shape : profiled.shapes) {
      const auto before = value_of(ablations::BaseOf(study, claim), shape.name, metric);
      const auto after = value_of(ablations::VariantOf(study, claim), shape.name, metric);
      if (!before || !after) {
        absl::PrintF("Counter of '%s' on %s: %s is not known\n", claim.id, shape.name, metric);
        continue;
      }
      absl::PrintF("Counter of '%s' on %s: %s %g -> %g, %s\n", claim.id, shape.name, metric,
                   *before, *after,
                   (rises ? *after > *before : *after < *before) ? "as claimed" : "NOT AS CLAIMED");
    }
  }
}

// A record goes on only with what it was started with.
absl::Status CheckSame(const ablations::ProfileInfo& old, const ablations::ProfileInfo& now) {
  const char* what = old.kernel_source_sha256 != now.kernel_source_sha256 ||
                             old.subject != now.subject || old.definition != now.definition
                         ? "other kernels"
                     : old.shapes != now.shapes   ? "other shapes"
                     : old.metrics != now.metrics ? "other counters"
                     : old.seed != now.seed       ? "another seed"
                     : !old.ncu.empty() && !now.ncu.empty() && old.ncu != now.ncu
                         ? "another version of Nsight Compute"
                         : nullptr;
  if (what == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the record ", old.run_id, " was made with ", what,
                   "; give another --out, or the same flags and build"));
}

// The same of the GPU, which only a launch tells.
absl::Status CheckSameGpu(const std::string& run_id, const std::vector<Profile>& known,
                          const Profile& now) {
  for (const Profile& profile : known) {
    const std::string& gpu = profile.launch.gpu;
    if (gpu.empty() || now.launch.gpu.empty() || gpu == now.launch.gpu) continue;
    return absl::FailedPreconditionError(absl::StrCat("the record ", run_id, " is of ", gpu,
                                                      ", this is ", now.launch.gpu,
                                                      "; give another --out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ProfileVariants(const ProfileFlags& flags) {
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the record goes"));
  const std::string& out = *flags.out;
  RETURN_IF_ERROR(ablations::RefusePacked(out));
  ASSIGN_OR_RETURN(const std::string shapes, flags.problems.List());
  ASSIGN_OR_RETURN(const Profiled profiled,
                   flags.study.given ? ProfiledStudy(flags, shapes) : ProfiledSdpa(flags, shapes));
  if (*flags.silence_limit_s < 1) {
    return absl::InvalidArgumentError("--silence_limit_s must be positive");
  }
  const absl::Duration silence_limit = absl::Seconds(*flags.silence_limit_s);
  const std::vector<std::string> candidates =
      flags.ncu.given ? std::vector{*flags.ncu} : std::vector<std::string>{"ncu", kToolkitNcu};
  ASSIGN_OR_RETURN(const Ncu ncu, FindNcu(candidates, silence_limit));

  const ablations::ProfileInfo info = DescribeProfiles(ncu, *flags.seed, profiled);
  std::vector<Profile> known;
  if (ablations::HasProfiles(out)) {
    ASSIGN_OR_RETURN(ablations::ProfileRecord record, ablations::LoadProfiles(out));
    RETURN_IF_ERROR(CheckSame(record.info, info));
    known = std::move(record.profiles);
  } else {
    RETURN_IF_ERROR(ablations::CreateDirectories(out));
    RETURN_IF_ERROR(ablations::WriteFileAtomically(absl::StrCat(out, "/", ablations::kProfileFile),
                                                   ablations::DumpFile(ablations::ToJson(info))));
  }

  ablations::Progress progress(
      "profiles", static_cast<int64_t>(profiled.variants.size() * profiled.shapes.size()));
  std::vector<std::string> failed;
  for (const ShapeInfo& shape : profiled.shapes) {
    for (const auto& [variant, config] : profiled.variants) {
      const std::string where = absl::StrCat(variant, " on ", shape.name);
      const bool done = absl::c_any_of(known, [&, name = variant](const Profile& profile) {
        return profile.variant == name && profile.shape == shape.name && profile.reason.empty();
      });
      if (!done) {
        const Profile profile =
            ProfileOne(ncu, profiled, variant, config, shape, out, silence_limit);
        RETURN_IF_ERROR(CheckSameGpu(info.run_id, known, profile));
        RETURN_IF_ERROR(ablations::AppendProfile(out, profile));
        known.push_back(profile);
        if (!profile.reason.empty()) {
          failed.push_back(where);
          progress.Note(absl::StrCat("NO PROFILE: ", where, ": ", profile.reason));
        }
      }
      progress.Step(where);
    }
  }
  if (profiled.study != nullptr) PrintCounters(profiled, known);
  absl::PrintF("Record: %s, %d profiles, %d failed\nNext: warpledger report --record=%s\n", out,
               profiled.variants.size() * profiled.shapes.size() - failed.size(), failed.size(),
               out);
  return failed.empty() ? kExitOk : kExitFinding;
}

}  // namespace

Command ProfileCommand() {
  return Runs(
      &ProfileVariants,
      {.name = "profile",
       .arguments =
           "--out=DIR [--study=DIR] [--variants=..] [--shapes=..|--problem=..] [--ncu=PATH]",
       .summary = "Reads hardware counters of variants with Nsight Compute (needs a GPU and ncu)",
       .details =
           "Profiles one call of each variant on each shape, in its own process. If a call of "
           "a study has several kernels, the\nlongest counts. The same call on the same "
           "directory profiles missing variants. A profiler changes times, so times\nin the "
           "report come from records of samples. Exit code 1: some variants could not be "
           "profiled; they are named."});
}

}  // namespace warpledger::cli
