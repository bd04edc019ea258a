// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/sdpa/check.h"

#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "ablations/base/progress.h"
#include "ablations/cli/sdpa/compiled_instance.h"
#include "ablations/record/record.h"
#include "ablations/subjects/sdpa/built_code.h"
#include "ablations/subjects/sdpa/gpu/sdpa_runner.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/references.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/device.h"
#include "kernels/common/random.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

using ablations::NamedVariant;

// --shard=K/N: every N-th of all pairs of a shape and a variant, from the K-th.
struct Shard {
  int64_t index = 1;
  int64_t of = 1;
};

absl::StatusOr<Shard> ParseShard(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  Shard shard;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &shard.index) ||
      !absl::SimpleAtoi(parts[1], &shard.of) || shard.index < 1 || shard.index > shard.of) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shard=", text, ": it is K/N, the K-th of N parts, say 1/8"));
  }
  return shard;
}

// The hashes of this build's machine code on this GPU.
struct CodeHere {
  std::string compute_capability;
  ablations::BuiltCode code;

  std::string HashOf(const sdpa::KernelInstance& instance) const {
    return code.HashOf(sdpa::InstanceName(instance.config), compute_capability);
  }
};

absl::StatusOr<CodeHere> LoadCodeHere() {
  ASSIGN_OR_RETURN(const DeviceFacts device, QueryDevice());
  ASSIGN_OR_RETURN(ablations::BuiltCode code, ablations::BuiltCode::Load());
  return CodeHere{absl::StrCat(device.compute_major, ".", device.compute_minor), std::move(code)};
}

// --known=FILE: machine code that needs no check, a hash a line.
class KnownCode {
 public:
  // From `path`; empty: none is known.
  static absl::StatusOr<KnownCode> Read(const std::string& path) {
    KnownCode known;
    if (path.empty()) return known;
    std::ifstream file(path);
    if (!file) return absl::InvalidArgumentError(absl::StrCat("--known=", path, " can't be read"));
    for (std::string line; std::getline(file, line);) {
      if (line.empty()) continue;
      const bool is_hash =
          line.size() == 64 && line.find_first_not_of("0123456789abcdef") == std::string::npos;
      if (!is_hash) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--known=", path, ": '", line, "' is no SHA-256, as --out writes it in code_sha256"));
      }
      known.hashes_.insert(line);
    }
    ASSIGN_OR_RETURN(known.code_, LoadCodeHere());
    return known;
  }
  bool Holds(const sdpa::KernelInstance& instance) const {
    return !hashes_.empty() && hashes_.contains(code_.HashOf(instance));
  }

 private:
  std::set<std::string> hashes_;
  CodeHere code_;
};

// A line of JSON per check, written as it ends.
class CheckLog {
 public:
  // Appends to `path`; empty: logs nothing.
  static absl::StatusOr<CheckLog> Open(const std::string& path) {
    CheckLog log;
    if (path.empty()) return log;
    ASSIGN_OR_RETURN(log.code_, LoadCodeHere());
    log.path_ = path;
    log.file_.open(path, std::ios::app);
    if (!log.file_) return absl::InvalidArgumentError(absl::StrCat(path, " can't be written"));
    return log;
  }

  absl::Status Add(const NamedVariant& variant, const sdpa::KernelInstance& instance,
                   const sdpa::NamedShape& shape, std::string_view inputs, uint64_t seed,
                   const ablations::CheckOutcome& outcome) {
    if (path_.empty()) return absl::OkStatus();
    const std::string name = sdpa::InstanceName(instance.config);
    const nlohmann::ordered_json line = {
        {"variant", variant.name},
        {"instance", name},
        {"code_sha256", code_.HashOf(instance)},
        {"shape", std::string(shape.name)},
        {"inputs", std::string(inputs)},
        {"seed", seed},
        {"correct", outcome.correct},
        {"reason", outcome.reason},
    };
    file_ << ablations::DumpLine(line) << std::endl;
    if (!file_) return absl::InternalError(absl::StrCat(path_, " can't be written to its end"));
    return absl::OkStatus();
  }

 private:
  std::string path_;
  CodeHere code_;
  std::ofstream file_;
};

struct Checks {
  int64_t done = 0;
  int64_t failed = 0;
  int64_t inaccurate = 0;  // where a toggle says that it may be
  CheckLog log;
};

// A shape with the variants to check on it.
struct Plan {
  sdpa::NamedShape shape;
  std::vector<NamedVariant> variants;
};

// Whether variants and shapes were asked for by name: who asks for a group wants what there is.
bool PairsAreNamed(const CheckFlags& flags) {
  const std::string& shapes = *flags.problems.shapes;
  const bool is_group = shapes == "all" || shapes == "ladder" || shapes == "fa3";
  return *flags.variants != "all" && (flags.problems.problem.given || !is_group);
}

// `lines`: a shape with its variants each.
void SaySkipped(int64_t skipped, int64_t pairs, const std::vector<std::string>& lines) {
  absl::FPrintF(stderr, "Skipped, for want of a kernel: %d of %d pairs\n", skipped, pairs);
  for (const std::string& line : lines) absl::FPrintF(stderr, "  %s\n", line);
}

// Where a variant is not made for a shape's head_dim or dtype, there is nothing to check, and
// who named both is told.
absl::StatusOr<std::vector<Plan>> PlanChecks(const std::vector<NamedVariant>& variants,
                                             const std::vector<sdpa::NamedShape>& shapes,
                                             const KnownCode& known, const Shard& shard,
                                             const CheckFlags& flags) {
  for (const NamedVariant& variant : variants) {
    if (*flags.variants == "all") break;  // of those that this build holds
    const auto instance = CompiledInstance(variant, sdpa::Problem{});
    if (!instance.ok() && !absl::IsNotFound(instance.status())) return instance.status();
  }
  std::vector<Plan> plans;
  std::vector<std::string> skipped_lines;
  int64_t compiled = 0;
  int64_t skipped = 0;
  int64_t pairs = 0;
  for (const sdpa::NamedShape& shape : shapes) {
    Plan plan = {.shape = shape, .variants = {}};
    std::vector<std::string> without;
    for (const NamedVariant& variant : variants) {
      const auto instance = CompiledInstance(variant, shape.problem);
      if (!instance.ok()) {
        without.push_back(variant.name);
        continue;
      }
      ++compiled;
      if (known.Holds(**instance)) continue;
      if (pairs++ % shard.of == shard.index - 1) plan.variants.push_back(variant);
    }
    if (!plan.variants.empty()) plans.push_back(std::move(plan));
    if (without.empty()) continue;
    skipped += static_cast<int64_t>(without.size());
    skipped_lines.push_back(
        absl::StrCat(std::string(shape.name), ": ", absl::StrJoin(without, ", ")));
  }
  if (compiled > 0) {
    if (skipped > 0 && PairsAreNamed(flags)) SaySkipped(skipped, compiled + skipped, skipped_lines);
    return plans;
  }
  return absl::InvalidArgumentError(
      "none of these variants is compiled for the head_dim and dtype of these shapes");
}

absl::Status CheckShape(const Plan& plan, const sdpa::NamedInputKind& kind, uint64_t seed,
                        Checks& checks, ablations::Progress& progress) {
  const sdpa::NamedShape& shape = plan.shape;
  const sdpa::Inputs inputs = sdpa::MakeInputs(shape.problem, kind.kind, seed);
  ablations::References references(shape.problem, inputs);
  ASSIGN_OR_RETURN(ablations::SdpaRunner runner,
                   ablations::SdpaRunner::Create(shape.problem, {inputs}));
  for (const NamedVariant& variant : plan.variants) {
    ASSIGN_OR_RETURN(const sdpa::KernelInstance* instance,
                     CompiledInstance(variant, shape.problem));
    // What stands in front of attention may need a library, which a check does without.
    const sdpa::Config* launched_as = shape.problem.embed_dim > 0 ? nullptr : &variant.config;
    ASSIGN_OR_RETURN(const ablations::CheckOutcome outcome,
                     runner.Check(*instance, 0, references.For(instance->config), launched_as));
    ++checks.done;
    RETURN_IF_ERROR(checks.log.Add(variant, *instance, shape, kind.name, seed, outcome));
    const std::string where = absl::StrCat(variant.name, " on ", std::string(shape.name), ", ",
                                           std::string(kind.name), ", seed ", seed);
    if (!outcome.correct && outcome.guards_intact && outcome.bit_identical &&
        sdpa::MayBreak(instance->config)) {
      ++checks.inaccurate;
      progress.Note(absl::StrCat("inaccurate, as its toggle warns: ", where, ": ", outcome.reason));
    } else if (!outcome.correct) {
      ++checks.failed;
      progress.Note(absl::StrCat("WRONG: ", where, ": ", outcome.reason));
    }
    progress.Step(where);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> Check(const CheckFlags& flags) {
  ASSIGN_OR_RETURN(const auto variants, ablations::ParseVariants(*flags.variants));
  ASSIGN_OR_RETURN(const std::string problems, flags.problems.List());
  ASSIGN_OR_RETURN(const auto shapes, ablations::ParseShapes(problems));
  ASSIGN_OR_RETURN(const auto kinds, ablations::ParseInputKinds(*flags.inputs));
  if (*flags.seeds < 1) return absl::InvalidArgumentError("--seeds must be at least 1");
  ASSIGN_OR_RETURN(const Shard shard, ParseShard(*flags.shard));
  ASSIGN_OR_RETURN(const KnownCode known, KnownCode::Read(*flags.known));
  ASSIGN_OR_RETURN(const std::vector<Plan> plans,
                   PlanChecks(variants, shapes, known, shard, flags));
  int64_t pairs = 0;
  for (const Plan& plan : plans) pairs += static_cast<int64_t>(plan.variants.size());
  const int64_t planned = pairs * static_cast<int64_t>(kinds.size()) * *flags.seeds;
  if (*flags.dry_run) {
    absl::PrintF("%d checks\n", planned);
    return kExitOk;
  }
  if (const auto device = QueryDevice(); !device.ok()) return device.status();

  Checks checks;
  ASSIGN_OR_RETURN(checks.log, CheckLog::Open(*flags.out));
  ablations::Progress progress("checks", planned);
  for (const Plan& plan : plans) {
    for (const sdpa::NamedInputKind& kind : kinds) {
      for (int i = 0; i < *flags.seeds; ++i) {
        const uint64_t seed = MixSeed(*flags.seed, i);
        RETURN_IF_ERROR(CheckShape(plan, kind, seed, checks, progress));
      }
    }
  }
  absl::PrintF("%d checks, %d wrong", checks.done, checks.failed);
  if (checks.inaccurate > 0) {
    absl::PrintF(", %d inaccurate as their toggles warn", checks.inaccurate);
  }
  absl::PrintF("\n");
  return checks.failed == 0 ? kExitOk : kExitFinding;
}

}  // namespace warpledger::cli
