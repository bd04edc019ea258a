// SPDX-License-Identifier: Apache-2.0
// The C interface: checks, the choice of a kernel, and its launch. Without Abseil, so that the
// library needs nothing but the CUDA runtime that is linked into it.

#include <cuda_runtime_api.h>

#include <atomic>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>

#include "kernels/sdpa/library/costs.h"
#include "kernels/sdpa/library/library_instances.h"
#include "kernels/sdpa/library/warpledger_sdpa.h"
#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/wgmma/params.h"

namespace warpledger::sdpa {
namespace {

// --- Errors ---------------------------------------------------------------------

thread_local char last_error[512] = "";

__attribute__((format(printf, 2, 3))) int Fail(warpledger_sdpa_status status, const char* format,
                                               ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  return status;
}

int FailCuda(cudaError_t error, const char* doing) {
  cudaGetLastError();  // else the caller's next check takes this for its own
  const bool none = error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver;
  return Fail(none ? WARPLEDGER_SDPA_NO_DEVICE : WARPLEDGER_SDPA_CUDA_ERROR, "%s: %s", doing,
              cudaGetErrorString(error));
}

// --- What is asked for ----------------------------------------------------------

int Read(const warpledger_sdpa_problem* given, Problem* p) {
  if (given == nullptr) return Fail(WARPLEDGER_SDPA_INVALID, "problem is null");
  if (given->size != sizeof *given) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "problem.size is %zu; this library's problems have %zu bytes: set it to "
                "sizeof(warpledger_sdpa_problem) and build with this library's header",
                given->size, sizeof *given);
  }
  const struct {
    const char* name;
    int32_t value;
  } sizes[] = {{"batch", given->batch}, {"heads_q", given->heads_q}, {"heads_kv", given->heads_kv},
               {"seq_q", given->seq_q}, {"seq_kv", given->seq_kv},   {"head_dim", given->head_dim}};
  for (const auto& [name, value] : sizes) {
    if (value < 1 || value > kMostOfOneSize) {
      return Fail(WARPLEDGER_SDPA_INVALID, "%s is %d; it must be 1 to %d", name, value,
                  kMostOfOneSize);
    }
  }
  if (given->heads_q % given->heads_kv != 0) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "query heads (%d) must be a multiple of key/value heads (%d)", given->heads_q,
                given->heads_kv);
  }
  if (given->dtype != WARPLEDGER_SDPA_FP16 && given->dtype != WARPLEDGER_SDPA_BF16) {
    return Fail(WARPLEDGER_SDPA_INVALID, "dtype is %d; it must be WARPLEDGER_SDPA_FP16 or _BF16",
                given->dtype);
  }
  if (given->causal != 0 && given->causal != 1) {
    return Fail(WARPLEDGER_SDPA_INVALID, "causal is %d; it must be 0 or 1", given->causal);
  }
  if (!std::isfinite(given->softmax_scale) || given->softmax_scale < 0) {
    return Fail(WARPLEDGER_SDPA_INVALID, "softmax_scale is %g; it must be 0 or more",
                static_cast<double>(given->softmax_scale));
  }
  *p = {given->batch,       given->heads_q,
        given->heads_kv,    given->seq_q,
        given->seq_kv,      given->head_dim,
        given->causal == 1, given->dtype == WARPLEDGER_SDPA_BF16 ? Dtype::kBf16 : Dtype::kFp16};
  return WARPLEDGER_SDPA_OK;
}

// --- What does it ---------------------------------------------------------------

struct Chosen {
  const LibraryKernel* kernel = nullptr;
  const KernelInstance* instance = nullptr;
  int device = 0;
  int sms = 0;
};

size_t PartialBytes(const Config& config) {
  switch (FamilyOf(config)) {
    case Family::kMma:
      return WorkspaceOf(MmaShapeOf(config)).bytes;
    case Family::kWgmma:
      return WorkspaceOf(WgmmaShapeOf(config)).bytes;
    case Family::kResident:
    case Family::kSmem:
      break;
  }
  return 0;
}

int Choose(const Problem& p, Chosen* chosen) {
  int major = 0;
  int minor = 0;
  cudaError_t error = cudaGetDevice(&chosen->device);
  const auto read = [&](cudaDeviceAttr attribute, int* value) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(value, attribute, chosen->device);
  };
  read(cudaDevAttrComputeCapabilityMajor, &major);
  read(cudaDevAttrComputeCapabilityMinor, &minor);
  read(cudaDevAttrMultiProcessorCount, &chosen->sms);
  if (error != cudaSuccess) return FailCuda(error, "asking for the current GPU");
  if (major != 9 || minor != 0) {
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED,
                "the current GPU has compute capability %d.%d; these kernels are for 9.0", major,
                minor);
  }
  chosen->kernel = ChooseKernel(p, chosen->sms);
  if (chosen->kernel == nullptr) {
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED, "no kernel does %s: head_dim is 64, 128 or 256",
                ProblemName(p).c_str());
  }
  const Config wanted = Specialise(chosen->kernel->config, p.head_dim, p.causal, p.dtype);
  for (const KernelInstance& instance : LibraryInstances()) {
    if (instance.config == wanted) chosen->instance = &instance;
  }
  if (chosen->instance == nullptr) {
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED, "this build lacks the kernel %s for %s",
                std::string(chosen->kernel->name).c_str(), ProblemName(p).c_str());
  }
  return WARPLEDGER_SDPA_OK;
}

// Once for each kernel and device: loads its code and lets it have its shared memory.
int Prepare(const Chosen& chosen) {
  constexpr int kMostInstances = 128;
  constexpr int kMostDevices = 64;
  static std::atomic<uint64_t> prepared[kMostInstances];  // a bit a device
  const auto at = static_cast<size_t>(chosen.instance - LibraryInstances().data());
  if (at >= kMostInstances || chosen.device >= kMostDevices) {
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED, "GPU %d is beyond the first %d", chosen.device,
                kMostDevices);
  }
  const uint64_t bit = uint64_t{1} << chosen.device;
  if ((prepared[at].load(std::memory_order_acquire) & bit) != 0) return WARPLEDGER_SDPA_OK;
  const void* code = nullptr;
  cudaError_t error = chosen.instance->code->GetKernel(&code);
  if (error == cudaSuccess) {
    error = cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 GeometryOf(chosen.instance->config).smem_bytes);
  }
  if (error != cudaSuccess) return FailCuda(error, "loading a kernel");
  prepared[at].fetch_or(bit, std::memory_order_release);
  return WARPLEDGER_SDPA_OK;
}

int ReadAndChoose(const warpledger_sdpa_problem* given, Problem* p, Chosen* chosen) {
  if (const int status = Read(given, p); status != WARPLEDGER_SDPA_OK) return status;
  if (const int status = Choose(*p, chosen); status != WARPLEDGER_SDPA_OK) return status;
  return Prepare(*chosen);
}

size_t WorkspaceBytes(const Chosen& chosen) {
  return kCounterBytes + PartialBytes(chosen.instance->config);
}

}  // namespace
}  // namespace warpledger::sdpa

using namespace warpledger::sdpa;  // NOLINT(google-build-using-namespace): C functions follow

const char* warpledger_sdpa_version(void) { return WARPLEDGER_VERSION; }

const char* warpledger_sdpa_last_error(void) { return last_error; }

int warpledger_sdpa_describe(const warpledger_sdpa_problem* problem,
                             warpledger_sdpa_choice* choice) {
  if (choice == nullptr) return Fail(WARPLEDGER_SDPA_INVALID, "choice is null");
  if (choice->size != sizeof *choice) {
    return Fail(WARPLEDGER_SDPA_INVALID, "choice.size is %zu; it must be %zu", choice->size,
                sizeof *choice);
  }
  Problem p;
  Chosen chosen;
  if (const int status = ReadAndChoose(problem, &p, &chosen); status != WARPLEDGER_SDPA_OK) {
    return status;
  }
  choice->kernel = chosen.kernel->name.data();
  choice->expected_us = static_cast<float>(ExpectedUs(*chosen.kernel, p, chosen.sms));
  choice->workspace_bytes = WorkspaceBytes(chosen);
  return WARPLEDGER_SDPA_OK;
}

int warpledger_sdpa_forward(const warpledger_sdpa_problem* problem, const void* q, const void* k,
                            const void* v, void* o, float* lse, void* workspace,
                            size_t workspace_bytes, void* stream) {
  Problem p;
  Chosen chosen;
  if (const int status = ReadAndChoose(problem, &p, &chosen); status != WARPLEDGER_SDPA_OK) {
    return status;
  }
  const struct {
    const char* name;
    const void* value;
  } pointers[] = {{"q", q}, {"k", k}, {"v", v}, {"o", o}, {"workspace", workspace}};
  for (const auto& [name, value] : pointers) {
    if (value == nullptr) return Fail(WARPLEDGER_SDPA_INVALID, "%s is null", name);
    if (reinterpret_cast<uintptr_t>(value) % 16 != 0) {
      return Fail(WARPLEDGER_SDPA_INVALID, "%s is not 16-byte aligned", name);
    }
  }
  if (workspace_bytes < WorkspaceBytes(chosen)) {
    return Fail(WARPLEDGER_SDPA_INVALID, "workspace_bytes is %zu; %s needs %zu", workspace_bytes,
                chosen.kernel->name.data(), WorkspaceBytes(chosen));
  }
  const Config& config = chosen.instance->config;
  ForwardParams params;
  params.q = q;
  params.k = k;
  params.v = v;
  params.o = o;
  params.lse = lse;
  params.batch = p.batch;
  params.heads_q = p.heads_q;
  params.heads_kv = p.heads_kv;
  params.seq_q = p.seq_q;
  params.seq_kv = p.seq_kv;
  const int tile_m = GeometryOf(config).tile_m;
  params.query_tiles = (p.seq_q + tile_m - 1) / tile_m;
  params.causal = p.causal ? 1 : 0;
  params.softmax_scale = problem->softmax_scale > 0
                             ? problem->softmax_scale
                             : 1.0f / std::sqrt(static_cast<float>(p.head_dim));
  auto* const base = static_cast<std::byte*>(workspace);
  const LaunchMemory memory = {.counters = base, .partials = base + kCounterBytes};
  const cudaError_t error = chosen.instance->launch(*chosen.instance, params, 0, &memory,
                                                    static_cast<cudaStream_t>(stream));
  if (error != cudaSuccess) return FailCuda(error, chosen.kernel->name.data());
  return WARPLEDGER_SDPA_OK;
}
