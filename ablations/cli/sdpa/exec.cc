// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/sdpa/exec.h"

#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "ablations/base/npy.h"
#include "ablations/cli/sdpa/compiled_instance.h"
#include "ablations/subjects/sdpa/gpu/sdpa_runner.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/tensor_npy.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/dtype/dtype_name.h"

namespace warpledger::cli {

absl::StatusOr<int> Exec(const ExecFlags& flags) {
  if (!flags.variant.given) {
    return absl::InvalidArgumentError("--variant is missing; `warpledger list variants` shows all");
  }
  ASSIGN_OR_RETURN(const auto variant, ablations::FindVariant(*flags.variant));
  if (!flags.out.given)
    return absl::InvalidArgumentError("--out is missing: the .npy file to write");

  struct Array {
    std::string path;
    ablations::NpyArray npy;
  };
  Array arrays[] = {{*flags.q, {}}, {*flags.k, {}}, {*flags.v, {}}};
  for (const Flag<std::string>* flag : {&flags.q, &flags.k, &flags.v}) {
    if (flag->given) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " is missing"));
  }
  for (Array& array : arrays) {
    ASSIGN_OR_RETURN(ablations::NpyArray npy, ablations::ReadNpy(array.path));
    if (npy.shape.size() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat(array.path, ": shape ", ablations::NpyShapeString(npy.shape),
                       "; (batch, heads, sequence, head_dim) is needed"));
    }
    for (const int64_t size : npy.shape) {
      if (size > std::numeric_limits<int>::max()) {
        return absl::InvalidArgumentError(absl::StrCat(array.path, ": a dimension of ", size,
                                                       " is more than a kernel can address"));
      }
    }
    array.npy = std::move(npy);
  }
  auto& [q, k, v] = arrays;
  sdpa::Problem problem;
  problem.batch = static_cast<int>(q.npy.shape[0]);
  problem.heads_q = static_cast<int>(q.npy.shape[1]);
  problem.seq_q = static_cast<int>(q.npy.shape[2]);
  problem.head_dim = static_cast<int>(q.npy.shape[3]);
  problem.heads_kv = static_cast<int>(k.npy.shape[1]);
  problem.seq_kv = static_cast<int>(k.npy.shape[2]);
  problem.causal = *flags.causal;
  const auto* known = absl::c_find_if(
      sdpa::kDtypes, [&](sdpa::Dtype each) { return sdpa::DtypeName(each) == *flags.dtype; });
  if (known == std::end(sdpa::kDtypes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", *flags.dtype, ": it is fp16 or bf16"));
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
  ASSIGN_OR_RETURN(const sdpa::KernelInstance* instance, CompiledInstance(variant, problem));

  const auto values = [&](const Array& array) {
    return ablations::TensorFromNpy(array.npy, problem.dtype);
  };
  const sdpa::Inputs inputs = {values(q), values(k), values(v)};
  ASSIGN_OR_RETURN(ablations::SdpaRunner runner, ablations::SdpaRunner::Create(problem, {inputs}));
  ASSIGN_OR_RETURN(const ablations::RunOutput output, runner.Run(*instance, 0, &variant.config));
  if (!output.guards_intact) {
    return absl::InternalError(absl::StrCat(variant.name,
                                            " wrote outside its output; nothing is "
                                            "written. Please report the shape."));
  }
  RETURN_IF_ERROR(ablations::WriteNpy(
      *flags.out, ablations::NpyFromTensor(q.npy.shape, output.out, problem.dtype)));
  const std::string& lse = *flags.lse;
  if (flags.lse.given) {
    RETURN_IF_ERROR(ablations::WriteNpy(
        lse, {problem.batch, problem.heads_q, problem.seq_q}, ablations::NpyType::kFloat32,
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(output.lse.data()),
                            output.lse.size() * sizeof(float))));
  }
  absl::PrintF("Wrote %s%s%s\n", *flags.out, lse.empty() ? "" : " and ", lse);
  return kExitOk;
}

}  // namespace warpledger::cli
