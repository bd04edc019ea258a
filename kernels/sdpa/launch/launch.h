// SPDX-License-Identifier: Apache-2.0
// The compiled kernel instances and how to launch one.
//
// The code of an instance is embedded and loaded on its first use (kernel_instance.h). Nothing here
// allocates device memory; all pointers in LaunchParams are the caller's.
//
//   const KernelInstance* kernel = FindInstance(config, problem);
//   RETURN_IF_ERROR(CheckLaunchable(*kernel, problem, device));
//   RETURN_IF_ERROR(Launch(*kernel, params, problem, stream));

#ifndef WARPLEDGER_KERNELS_SDPA_LAUNCH_LAUNCH_H_
#define WARPLEDGER_KERNELS_SDPA_LAUNCH_LAUNCH_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/common/device_facts.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/shared/forward_params.h"
#include "kernels/sdpa/shared/kernel_instance.h"

namespace warpledger::sdpa {

// Every instance that this build holds, in the order in which they were asked for. Defined by the
// table of whoever has instances compiled: cmake/kernel_instances.cmake.
absl::Span<const KernelInstance* const> AllInstances();

// What of a configuration an instance for the problem is compiled for.
constexpr Config SpecialiseFor(const Config& config, const Problem& problem) {
  return Specialise(config, problem.head_dim, problem.causal, problem.dtype, problem.embed_dim > 0);
}

// The instance of `config` for the problem's head_dim, mask and dtype. Null where the build
// holds none.
inline const KernelInstance* FindInstance(const Config& config, const Problem& problem) {
  const Config wanted = SpecialiseFor(config, problem);
  for (const KernelInstance* instance : AllInstances()) {
    if (instance->config == wanted) return instance;
  }
  return nullptr;
}

// OK if the shape makes sense and some kernel's head_dim fits; InvalidArgument else.
absl::Status CheckProblem(const Problem& problem);

// OK if the kernel can run this problem on this device. InvalidArgument for a
// shape that the instance was not compiled for or can't do, FailedPrecondition for too
// little shared memory; the message says what, why and what to try.
absl::Status CheckLaunchable(const Config& config, const Problem& problem,
                             const DeviceFacts& device);

// FailedPrecondition for an instance whose code this build does not hold for the GPU; the
// message says what the build is for and how to configure one that has it.
absl::Status MissingCode(const Config& config, const DeviceFacts& device);

// Raises the kernel's shared-memory limit where it needs more than 48 KB; once
// per device, before the first launch. MissingCode where there is no code for the device.
absl::Status PrepareInstance(const KernelInstance& instance);

// Fills in the geometry of `params` from `problem` (the caller sets pointers),
// with the usual softmax scale 1 / sqrt(head_dim).
LaunchParams MakeParams(const Config& config, const Problem& problem);

// Launches once on `stream` and checks the launch. Does not synchronise. Launches of one instance
// must not overlap on a device, by two streams or by branches of a graph: the dynamic schedule's
// counter and the places of partial results are the instance's, and two launches would mix them.
absl::Status Launch(const KernelInstance& instance, const LaunchParams& params,
                    const Problem& problem, cudaStream_t stream);

// What the driver says of the loaded kernel.
struct KernelAttributes {
  int registers = 0;
  int static_smem_bytes = 0;
  int dynamic_smem_bytes = 0;
  int local_bytes = 0;  // stack and spills, per thread
  int threads = 0;
  int ctas_per_sm = 0;
};
absl::StatusOr<KernelAttributes> GetKernelAttributes(const KernelInstance& instance);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LAUNCH_LAUNCH_H_
