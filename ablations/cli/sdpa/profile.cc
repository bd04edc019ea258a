// SPDX-License-Identifier: Apache-2.0
// `warpledger profile`: hardware counters of chosen variants of SDPA, by Nsight Compute, which
// starts `warpledger exec`.

#include "ablations/record/profile.h"

#include <stdlib.h>

#include <filesystem>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/base/npy.h"
#include "ablations/base/paths.h"
#include "ablations/base/progress.h"
#include "ablations/base/subprocess.h"
#include "ablations/cli/flags.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/built_code.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/subject.h"
#include "ablations/subjects/sdpa/tensor_npy.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/dtype/dtype_name.h"
#include "kernels/sdpa/problem/inputs.h"
#include "warpledger_source_hashes.h"

namespace warpledger::cli {
namespace {

namespace fs = std::filesystem;
using ablations::NamedVariant;
using ablations::Profile;

struct ProfileFlags : FlagSet {
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<std::string> variants{this, "variants", "all", kVariantsHelp};
  Flag<std::string> shapes{this, "shapes", "ladder", kShapesHelp};
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

// Q, K and V of a shape as files that `exec` takes; they go away with it.
class InputFiles {
 public:
  static absl::StatusOr<InputFiles> Create(const sdpa::NamedShape& shape, uint64_t seed) {
    if (shape.problem.embed_dim > 0) {
      return absl::UnimplementedError(absl::StrCat(
          std::string(shape.name), " begins with x; only calls on Q, K and V can be profiled"));
    }
    ASSIGN_OR_RETURN(ablations::ScratchFolder folder, ablations::ScratchFolder::Make());
    InputFiles files(std::move(folder));
    const sdpa::Problem& p = shape.problem;
    const sdpa::Inputs inputs = sdpa::MakeInputs(p, sdpa::InputKind::kNormal, seed);
    const std::vector<int64_t> q = {p.batch, p.heads_q, p.seq_q, p.head_dim};
    const std::vector<int64_t> kv = {p.batch, p.heads_kv, p.seq_kv, p.head_dim};
    RETURN_IF_ERROR(files.Write("q", q, inputs.q, p.dtype));
    RETURN_IF_ERROR(files.Write("k", kv, inputs.k, p.dtype));
    RETURN_IF_ERROR(files.Write("v", kv, inputs.v, p.dtype));
    files.arguments_.push_back(absl::StrCat("--dtype=", std::string(sdpa::DtypeName(p.dtype))));
    if (p.causal) files.arguments_.emplace_back("--causal");
    return files;
  }
  std::vector<std::string> ExecCall(const std::string& config) const {
    std::vector<std::string> call = {ablations::ExecutablePath(), "exec",
                                     absl::StrCat("--variant=", config),
                                     absl::StrCat("--out=", folder_.path(), "/o.npy")};
    call.insert(call.end(), arguments_.begin(), arguments_.end());
    return call;
  }

 private:
  explicit InputFiles(ablations::ScratchFolder folder) : folder_(std::move(folder)) {}
  absl::Status Write(const char* name, const std::vector<int64_t>& shape,
                     const std::vector<sdpa::Bits16>& values, sdpa::Dtype dtype) {
    const std::string path = absl::StrCat(folder_.path(), "/", name, ".npy");
    arguments_.push_back(absl::StrCat("--", name, "=", path));
    return ablations::WriteNpy(path, ablations::NpyFromTensor(shape, values, dtype));
  }

  ablations::ScratchFolder folder_;
  std::vector<std::string> arguments_;
};

Profile ProfileOne(const Ncu& ncu, const NamedVariant& variant, const sdpa::NamedShape& shape,
                   const InputFiles& inputs, const ablations::BuiltCode& code,
                   absl::Duration silence_limit) {
  Profile profile;
  profile.variant = variant.name;
  profile.config = sdpa::ConfigName(variant.config);
  profile.shape = shape.name;
  const Output said = Call(
      ablations::NcuCall(ncu.program, ncu.metrics, inputs.ExecCall(profile.config)), silence_limit);
  absl::StatusOr<ablations::KernelProfile> launch = ablations::ParseNcuCsv(said.text);
  if (!said.status.ok()) {
    profile.reason = absl::StrCat(std::string(said.status.message()), launch.ok() ? "" : "; ",
                                  launch.ok() ? "" : std::string(launch.status().message()));
  } else if (!launch.ok()) {
    profile.reason = std::string(launch.status().message());
  } else {
    profile.launch = *std::move(launch);
    const std::string instance = sdpa::InstanceName(
        sdpa::Specialise(variant.config, shape.problem.head_dim, shape.problem.causal,
                         shape.problem.dtype, shape.problem.embed_dim > 0));
    profile.code_sha256 = code.HashOf(instance, profile.launch.compute_capability);
  }
  return profile;
}

ablations::ProfileInfo DescribeProfiles(const std::string& dir, const Ncu& ncu, uint64_t seed,
                                        const std::vector<sdpa::NamedShape>& shapes) {
  ablations::ProfileInfo info;
  info.run_id = fs::path(dir).lexically_normal().filename().string();
  if (info.run_id.empty()) info.run_id = "profile";
  info.created_utc = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  info.argv = CommandLine();
  info.ncu = ncu.version;
  info.seed = seed;
  for (const sdpa::NamedShape& shape : shapes) {
    info.shapes.push_back(ablations::ShapeInfoOf(shape));
  }
  info.metrics = ncu.metrics;
  info.registry_sha256 = kRegistrySha256;
  info.kernel_source_sha256 = kKernelSourceSha256;
  return info;
}

// A record goes on only with what it was started with.
absl::Status CheckSame(const ablations::ProfileInfo& old, const ablations::ProfileInfo& now) {
  const char* what = old.kernel_source_sha256 != now.kernel_source_sha256 ? "other kernels"
                     : old.shapes != now.shapes                           ? "other shapes"
                     : old.metrics != now.metrics                         ? "other counters"
                     : old.seed != now.seed                               ? "another seed"
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
  ASSIGN_OR_RETURN(const auto variants, ablations::ParseVariants(*flags.variants));
  ASSIGN_OR_RETURN(const auto shapes, ablations::ParseShapes(*flags.shapes));
  if (*flags.silence_limit_s < 1) {
    return absl::InvalidArgumentError("--silence_limit_s must be positive");
  }
  const absl::Duration silence_limit = absl::Seconds(*flags.silence_limit_s);
  const std::vector<std::string> candidates =
      flags.ncu.given ? std::vector{*flags.ncu} : std::vector<std::string>{"ncu", kToolkitNcu};
  ASSIGN_OR_RETURN(const Ncu ncu, FindNcu(candidates, silence_limit));

  const ablations::ProfileInfo info = DescribeProfiles(out, ncu, *flags.seed, shapes);
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

  // A build without its facts still has counters.
  const ablations::BuiltCode code = ablations::BuiltCode::Load().value_or(ablations::BuiltCode());
  ablations::Progress progress("profiles", static_cast<int64_t>(variants.size() * shapes.size()));
  std::vector<std::string> failed;
  for (const sdpa::NamedShape& shape : shapes) {
    ASSIGN_OR_RETURN(const InputFiles inputs, InputFiles::Create(shape, info.seed));
    for (const NamedVariant& variant : variants) {
      const std::string where = absl::StrCat(variant.name, " on ", std::string(shape.name));
      bool done = false;
      for (const Profile& profile : known) {
        done = done || (profile.variant == variant.name && profile.shape == shape.name &&
                        profile.reason.empty());
      }
      if (!done) {
        const Profile profile = ProfileOne(ncu, variant, shape, inputs, code, silence_limit);
        RETURN_IF_ERROR(CheckSameGpu(info.run_id, known, profile));
        RETURN_IF_ERROR(ablations::AppendProfile(out, profile));
        if (!profile.reason.empty()) {
          failed.push_back(where);
          progress.Note(absl::StrCat("NO PROFILE: ", where, ": ", profile.reason));
        }
      }
      progress.Step(where);
    }
  }
  absl::PrintF("Record: %s, %d profiles, %d failed\nNext: warpledger report --record=%s\n", out,
               variants.size() * shapes.size() - failed.size(), failed.size(), out);
  return failed.empty() ? kExitOk : kExitFinding;
}

}  // namespace

Command ProfileCommand() {
  return Runs(
      &ProfileVariants,
      {.name = "profile",
       .arguments = "--out=DIR [--variants=..] [--shapes=..] [--ncu=PATH]",
       .summary = "Reads hardware counters of variants with Nsight Compute (needs a GPU and ncu)",
       .details =
           "One launch of each variant on each shape, in a process of its own. The same call on "
           "the same directory\nprofiles what is missing. A profiler changes times: those of the "
           "report come from records of samples.\nExit code 1: some variants could not be "
           "profiled; they are named and the rest is there."});
}

}  // namespace warpledger::cli
