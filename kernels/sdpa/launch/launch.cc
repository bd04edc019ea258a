// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/launch/launch.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "kernels/sdpa/dtype/dtype_name.h"
#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/rules/rules.h"
#include "warpledger_build_info.h"

namespace warpledger::sdpa {
namespace {

constexpr int kMaxClusterCtas = 8;  // that every GPU with clusters has

int64_t QueryTiles(const Config& config, const Problem& p) {
  return (p.seq_q + GeometryOf(config).tile_m - 1) / GeometryOf(config).tile_m;
}

int64_t Ctas(const Config& config, const Problem& p) {
  return QueryTiles(config, p) * p.heads_q * p.batch;
}

// FailedPrecondition where no build could run the instance on this GPU.
absl::Status CheckArchitecture(const Config& config, const DeviceFacts& device) {
  if (config.wgmma && device.compute_major != 9) {
    return absl::FailedPreconditionError(absl::StrCat(
        InstanceName(config), " needs compute capability 9.0 (wgmma, TMA); ", device.name, " has ",
        device.compute_major, ".", device.compute_minor, ". Try ladder:wmma_pv."));
  }
  if (MinArch(config) > 10 * device.compute_major + device.compute_minor) {
    return absl::FailedPreconditionError(absl::StrCat(
        InstanceName(config), " needs compute capability ", MinArch(config) / 10, ".0; ",
        device.name, " has ", device.compute_major, ".", device.compute_minor, "."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckProblem(const Problem& p) {
  if (p.batch < 1 || p.heads_q < 1 || p.heads_kv < 1 || p.seq_q < 1 || p.seq_kv < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch, heads and sequence lengths must be at least 1; got B=", p.batch,
                     " Hq=", p.heads_q, " Hkv=", p.heads_kv, " Sq=", p.seq_q, " Skv=", p.seq_kv));
  }
  if (p.heads_q % p.heads_kv != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "query heads (", p.heads_q, ") must be a multiple of key/value heads (", p.heads_kv, ")"));
  }
  if (p.embed_dim != 0 && (p.seq_q != p.seq_kv || p.head_dim != 64 || p.embed_dim < 0 ||
                           p.embed_dim % kProjectionColumns != 0 || p.embed_dim > kMaxEmbedDim)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a problem that begins with x has as many queries as keys, head_dim 64 and an embed_dim "
        "that is a multiple of ",
        kProjectionColumns, " up to ", kMaxEmbedDim, "; got Sq=", p.seq_q, " Skv=", p.seq_kv,
        " head_dim=", p.head_dim, " embed_dim=", p.embed_dim));
  }
  if (p.embed_dim != 0 && p.dtype != Dtype::kFp16) {
    return absl::InvalidArgumentError(absl::StrCat("a problem that begins with x is in fp16; got ",
                                                   std::string(DtypeName(p.dtype))));
  }
  if (std::find(std::begin(kHeadDims), std::end(kHeadDims), p.head_dim) == std::end(kHeadDims)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "head_dim ", p.head_dim, " has no kernel; these variants do head_dim ",
        absl::StrJoin(kHeadDims, ", "), ". Pad the arrays to the next of them with zeros."));
  }
  return absl::OkStatus();
}

absl::Status CheckLaunchable(const Config& config, const Problem& problem,
                             const DeviceFacts& device) {
  if (absl::Status status = CheckProblem(problem); !status.ok()) return status;
  if (!(config == SpecialiseFor(config, problem))) {
    return absl::InvalidArgumentError(absl::StrCat(
        InstanceName(config),
        " is compiled for another head_dim, mask, dtype or input than head_dim ", problem.head_dim,
        problem.causal ? ", causal, " : ", full, ", std::string(DtypeName(problem.dtype)),
        problem.embed_dim > 0 ? ", from x" : ""));
  }
  if (config.projected && config.fuse_projection == 2 &&
      (QueryTiles(config, problem) > kMaxClusterCtas || problem.heads_q != problem.heads_kv)) {
    return absl::InvalidArgumentError(
        absl::StrCat(InstanceName(config),
                     " makes a cluster of the CTAs of a head with K and V of its own: at "
                     "most ",
                     kMaxClusterCtas, " of ", GeometryOf(config).tile_m,
                     " rows. Try the projection in a kernel "
                     "of its own."));
  }
  if (config.wgmma_pack_heads && problem.heads_q / problem.heads_kv > GeometryOf(config).tile_m) {
    return absl::InvalidArgumentError(absl::StrCat(
        InstanceName(config), " packs the query heads of a key/value head into a tile of ",
        GeometryOf(config).tile_m, " rows; got ", problem.heads_q / problem.heads_kv,
        " of them. Try it without wgmma_pack_heads."));
  }
  if (Ctas(config, problem) > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(InstanceName(config), " needs ", Ctas(config, problem),
                     " CTAs for this shape; a grid holds ", std::numeric_limits<int>::max(),
                     ". Split the batch."));
  }
  // The kernel's y and z: query heads per K/V head, K/V heads.
  constexpr int64_t kMaxGridYz = 65535;
  if (FamilyOf(config) == Family::kResident &&
      (problem.heads_q / problem.heads_kv > kMaxGridYz ||
       int64_t{problem.batch} * problem.heads_kv > kMaxGridYz)) {
    return absl::InvalidArgumentError(
        absl::StrCat(InstanceName(config), " takes at most ", kMaxGridYz,
                     " key/value heads over the batch, and as many query heads to each. Split the "
                     "batch or the heads."));
  }
  if (absl::Status status = CheckArchitecture(config, device); !status.ok()) return status;
  if (GeometryOf(config).smem_bytes > device.max_smem_optin_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        InstanceName(config), " needs ", GeometryOf(config).smem_bytes,
        " bytes of shared memory per CTA; ", device.name, " allows ", device.max_smem_optin_bytes,
        ". Try a variant with fewer stages or smaller tiles."));
  }
  return absl::OkStatus();
}

absl::Status MissingCode(const Config& config, const DeviceFacts& device) {
  if (absl::Status status = CheckArchitecture(config, device); !status.ok()) return status;
  const std::string number = absl::StrCat(device.compute_major, device.compute_minor);
  // The preset's GPUs, and those that run code for them.
  const bool in_preset = device.compute_major == 8 || number == "90";
  return absl::FailedPreconditionError(absl::StrCat(
      "this build holds no code of ", InstanceName(config), " for sm_", number, " (", device.name,
      "). It is for ", build_info::kCudaArchitectures,
      ", where the ladders are the designs `ladder` and `mma`. To have it, configure with ",
      in_preset ? "`cmake --preset all` or " : "", "-DWARPLEDGER_CUDA_ARCHITECTURES=", number,
      "-real."));
}

absl::Status PrepareInstance(const KernelInstance& instance) {
  constexpr int kSmemWithoutAsking = 48 * 1024;
  const bool raise_smem = GeometryOf(instance.config).smem_bytes > kSmemWithoutAsking;
  cudaFuncAttributes attributes;
  const void* kernel = nullptr;
  // One of these finds that there is no code for this GPU, before a launch does in the middle of a
  // capture.
  cudaError_t error = instance.code->GetKernel(&kernel);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel);
  if (error == cudaSuccess && raise_smem) {
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 GeometryOf(instance.config).smem_bytes);
  }
  if (error == cudaSuccess) return absl::OkStatus();
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
      error == cudaErrorInvalidResourceHandle) {
    cudaGetLastError();  // else the next launch returns it
    const absl::StatusOr<DeviceFacts> device = QueryDevice();
    return device.ok() ? MissingCode(instance.config, *device) : device.status();
  }
  return CudaStatus(
      error, absl::StrCat(raise_smem ? "raising the shared memory of " : "reading attributes of ",
                          InstanceName(instance.config)));
}

LaunchParams MakeParams(const Config& config, const Problem& problem) {
  LaunchParams params;
  params.batch = problem.batch;
  params.heads_q = problem.heads_q;
  params.heads_kv = problem.heads_kv;
  params.seq_q = problem.seq_q;
  params.seq_kv = problem.seq_kv;
  params.query_tiles = static_cast<int>(QueryTiles(config, problem));
  params.causal = problem.causal ? 1 : 0;
  params.projection.embed_dim = problem.embed_dim;
  params.projection.columns = problem.embed_dim > 0 ? static_cast<int>(ProjectionRows(problem)) : 0;
  params.softmax_scale = 1.0f / std::sqrt(static_cast<float>(problem.head_dim));
  return params;
}

absl::Status Launch(const KernelInstance& instance, const LaunchParams& params,
                    const Problem& problem, cudaStream_t stream) {
  const auto ctas = static_cast<unsigned>(Ctas(instance.config, problem));
  const cudaError_t error = instance.launch(instance, params, ctas, nullptr, stream);
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // else what asks for it next takes this for its own
  return CudaStatus(error, absl::StrCat("launching ", InstanceName(instance.config)));
}

absl::StatusOr<KernelAttributes> GetKernelAttributes(const KernelInstance& instance) {
  RETURN_IF_ERROR(PrepareInstance(instance));
  const std::string doing = absl::StrCat("reading attributes of ", InstanceName(instance.config));
  cudaFuncAttributes attributes;
  const void* kernel = nullptr;
  RETURN_IF_CUDA_ERROR(instance.code->GetKernel(&kernel), doing);
  RETURN_IF_CUDA_ERROR(cudaFuncGetAttributes(&attributes, kernel), doing);
  KernelAttributes result;
  result.registers = attributes.numRegs;
  result.static_smem_bytes = static_cast<int>(attributes.sharedSizeBytes);
  result.dynamic_smem_bytes = GeometryOf(instance.config).smem_bytes;
  result.local_bytes = static_cast<int>(attributes.localSizeBytes);
  result.threads = GeometryOf(instance.config).threads;
  RETURN_IF_CUDA_ERROR(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&result.ctas_per_sm, kernel, result.threads,
                                                    GeometryOf(instance.config).smem_bytes),
      doing);
  return result;
}

}  // namespace warpledger::sdpa
