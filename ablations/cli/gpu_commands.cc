// SPDX-License-Identifier: Apache-2.0
// `warpledger run`, `exec` and the worker that `run` starts.

#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <set>

#include "ablations/base/npy.h"
#include "ablations/cli/command.h"
#include "ablations/cli/compiled_instance.h"
#include "ablations/cli/dry_run.h"
#include "ablations/cli/flags.h"
#include "ablations/cli/run_flags.h"
#include "ablations/measure/run.h"
#include "ablations/measure/worker.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/sdpa_runner.h"
#include "ablations/subjects/sdpa/tensor_npy.h"
#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/dtype_name.h"
#include "warpledger_build_info.h"

namespace warpledger::cli {
namespace {

using ablations::NamedVariant;

// A specialised configuration.
bool IsCompiled(const sdpa::Config& config) {
  return absl::c_any_of(sdpa::AllInstances(), [&](const sdpa::KernelInstance* instance) {
    return instance->config == config;
  });
}

absl::Status CheckCompiled(const ablations::Design& design) {
  const std::set<std::string> missing = MissingKernels(design, &IsCompiled);
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "design '", design.name, "': this build lacks ", missing.size(), " of its kernels, ",
      *missing.begin(), " among them; `warpledger run --dry_run` names all. To build them: ",
      ablations::HowToBuild(design)));
}

}  // namespace

absl::StatusOr<int> RunCommand(absl::Span<const std::string> /*arguments*/) {
  if (absl::GetFlag(FLAGS_dry_run)) return DryRun(&IsCompiled);
  if (std::strcmp(build_info::kBuildType, "Release") != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("this is a ", build_info::kBuildType,
                     " build; times are taken from Release builds only (cmake --preset release)"));
  }
  const absl::StatusOr<RunRequest> request = RunRequestFromFlags();
  if (!request.ok()) return request.status();
  RETURN_IF_ERROR(CheckCompiled(request->design));
  const ablations::RunOptions& options = request->options;
  if (options.out_dir.empty()) {
    return absl::InvalidArgumentError("--out=DIR is missing: where the record goes");
  }
  RETURN_IF_ERROR(ablations::RunDesign(options));
  std::printf("Record: %s\nNext: warpledger judge --record=%s\n", options.out_dir.c_str(),
              options.out_dir.c_str());
  return kExitOk;
}

absl::StatusOr<int> WorkerCommand(absl::Span<const std::string> /*arguments*/) {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  absl::StatusOr<ablations::WorkerJob> job = ablations::WorkerJob::FromJson(text);
  if (!job.ok()) return job.status();
  RETURN_IF_ERROR(ablations::RunWorker(*job));
  return kExitOk;
}

absl::StatusOr<int> ExecCommand(absl::Span<const std::string> /*arguments*/) {
  const std::string variant_name = absl::GetFlag(FLAGS_variant);
  if (variant_name.empty()) {
    return absl::InvalidArgumentError("--variant is missing; `warpledger list variants` shows all");
  }
  const absl::StatusOr<NamedVariant> variant = ablations::FindVariant(variant_name);
  if (!variant.ok()) return variant.status();
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) return absl::InvalidArgumentError("--out is missing: the .npy file to write");

  struct Array {
    const char* flag;
    std::string path;
    ablations::NpyArray npy;
  };
  Array arrays[] = {{"q", absl::GetFlag(FLAGS_q), {}},
                    {"k", absl::GetFlag(FLAGS_k), {}},
                    {"v", absl::GetFlag(FLAGS_v), {}}};
  for (Array& array : arrays) {
    if (array.path.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", array.flag, " is missing"));
    }
    absl::StatusOr<ablations::NpyArray> npy = ablations::ReadNpy(array.path);
    if (!npy.ok()) return npy.status();
    if (npy->shape.size() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat(array.path, ": shape ", ablations::NpyShapeString(npy->shape),
                       "; (batch, heads, sequence, head_dim) is needed"));
    }
    for (const int64_t size : npy->shape) {
      if (size > std::numeric_limits<int>::max()) {
        return absl::InvalidArgumentError(absl::StrCat(array.path, ": a dimension of ", size,
                                                       " is more than a kernel can address"));
      }
    }
    array.npy = *std::move(npy);
  }
  auto& [q, k, v] = arrays;
  sdpa::Problem problem;
  problem.batch = static_cast<int>(q.npy.shape[0]);
  problem.heads_q = static_cast<int>(q.npy.shape[1]);
  problem.seq_q = static_cast<int>(q.npy.shape[2]);
  problem.head_dim = static_cast<int>(q.npy.shape[3]);
  problem.heads_kv = static_cast<int>(k.npy.shape[1]);
  problem.seq_kv = static_cast<int>(k.npy.shape[2]);
  problem.causal = absl::GetFlag(FLAGS_causal);
  const std::string dtype = absl::GetFlag(FLAGS_dtype);
  const auto* known = absl::c_find_if(
      sdpa::kDtypes, [&](sdpa::Dtype each) { return sdpa::DtypeName(each) == dtype; });
  if (known == std::end(sdpa::kDtypes)) {
    return absl::InvalidArgumentError(absl::StrCat("--dtype=", dtype, ": it is fp16 or bf16"));
  }
  problem.dtype = *known;
  const ablations::NpyType type = ablations::NpyTypeOf(problem.dtype);
  RETURN_IF_ERROR(ablations::CheckNpy(q.path, q.npy, type, q.npy.shape));
  // K and V must agree with Q and with each other.
  const std::vector<int64_t> kv_shape = {problem.batch, problem.heads_kv, problem.seq_kv,
                                         problem.head_dim};
  RETURN_IF_ERROR(ablations::CheckNpy(k.path, k.npy, type, kv_shape));
  RETURN_IF_ERROR(ablations::CheckNpy(v.path, v.npy, type, kv_shape));
  RETURN_IF_ERROR(sdpa::CheckProblem(problem));
  const absl::StatusOr<const sdpa::KernelInstance*> instance = CompiledInstance(*variant, problem);
  if (!instance.ok()) return instance.status();

  const auto values = [&](const Array& array) {
    return ablations::TensorFromNpy(array.npy, problem.dtype);
  };
  const sdpa::Inputs inputs = {values(q), values(k), values(v)};
  absl::StatusOr<ablations::SdpaRunner> runner = ablations::SdpaRunner::Create(problem, {inputs});
  if (!runner.ok()) return runner.status();
  const absl::StatusOr<ablations::RunOutput> output = runner->Run(**instance, 0, &variant->config);
  if (!output.ok()) return output.status();
  if (!output->guards_intact) {
    return absl::InternalError(absl::StrCat(variant->name,
                                            " wrote outside its output; nothing is "
                                            "written. Please report the shape."));
  }
  RETURN_IF_ERROR(
      ablations::WriteNpy(out, ablations::NpyFromTensor(q.npy.shape, output->out, problem.dtype)));
  const std::string lse = absl::GetFlag(FLAGS_lse);
  if (!lse.empty()) {
    RETURN_IF_ERROR(ablations::WriteNpy(
        lse, {problem.batch, problem.heads_q, problem.seq_q}, ablations::NpyType::kFloat32,
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(output->lse.data()),
                            output->lse.size() * sizeof(float))));
  }
  std::printf("Wrote %s%s%s\n", out.c_str(), lse.empty() ? "" : " and ", lse.c_str());
  return kExitOk;
}

}  // namespace warpledger::cli
