// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/describe_run.h"

#include "absl/strings/str_cat.h"
#include "kernels/common/nvml.h"
#include "warpledger_build_info.h"
#include "warpledger_git_info.h"
#include "warpledger_source_hashes.h"

namespace warpledger::ablations {
namespace {

std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

GpuInfo DescribeGpu(const DeviceFacts& device) {
  GpuInfo gpu;
  gpu.name = device.name;
  gpu.slug = device.slug;
  gpu.uuid = device.uuid;
  gpu.compute_capability = absl::StrCat(device.compute_major, ".", device.compute_minor);
  gpu.sm_count = device.sm_count;
  gpu.l2_bytes = device.l2_bytes;
  gpu.memory_bytes = device.memory_bytes;
  gpu.driver = absl::StrCat("CUDA ", CudaVersion(device.driver_version));
  gpu.cuda_runtime = CudaVersion(device.runtime_version);
  if (const auto nvml = NvmlDevice::Open(device.uuid); nvml.ok()) {
    if (const auto facts = nvml->Facts(); facts.ok()) {
      gpu.driver = absl::StrCat(facts->driver_version, " (", gpu.driver, ")");
      gpu.ecc = facts->ecc;
      gpu.max_sm_clock_mhz = facts->max_sm_clock_mhz;
      gpu.max_memory_clock_mhz = facts->max_memory_clock_mhz;
      gpu.power_limit_w = facts->power_limit_w;
    }
  }
  return gpu;
}

void DescribeBuild(RunInfo* run) {
  run->git = {kGitSha, kGitDirty};
  run->registry_sha256 = kRegistrySha256;
  run->kernel_source_sha256 = kKernelSourceSha256;
  run->protocol_sha256 = kProtocolSha256;
  run->toolchain = {build_info::kNvcc, build_info::kHostCompiler, build_info::kBuildType,
                    build_info::kCudaFlags, build_info::kCudaArchitectures};
}

}  // namespace warpledger::ablations
