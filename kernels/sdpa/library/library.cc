// SPDX-License-Identifier: Apache-2.0
// The C interface: the choice of a kernel, and its launch. Without Abseil, so that the
// library needs nothing but the CUDA runtime that is linked into it.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "kernels/sdpa/library/choice.h"
#include "kernels/sdpa/library/costs.h"
#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/library/library_instances.h"
#include "kernels/sdpa/library/request.h"
#include "kernels/sdpa/library/warpledger_sdpa.h"
#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/shared/kernel_layout.h"
#include "kernels/sdpa/shared/sequence_plan.h"
#include "kernels/sdpa/wgmma/join/join_kernel.h"
#include "kernels/sdpa/wgmma/params.h"

namespace warpledger::sdpa {
namespace {

// --- What does it ---------------------------------------------------------------

struct Chosen {
  Choice choice;
  const KernelInstance* instance = nullptr;
  int device = 0;
  Gpu gpu;
};

size_t PartialBytes(const Config& config, const Problem& p, const TensorLayouts& layouts) {
  if (config.varlen) {
    const int tile_m = TileM(WgmmaShapeOf(config));
    return SequencePlanBytes(MostSequenceBlocks(p.batch, p.seq_q, layouts.total_q, tile_m));
  }
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

// Which kernels the user wants to see, as the header says.
constexpr const char* kKernelsVariable = "WARPLEDGER_SDPA_KERNELS";

int ReadKernelsOfUser(Gpu* gpu) {
  constexpr std::string_view kMma = "mma";
  const char* const set = std::getenv(kKernelsVariable);
  std::string_view wanted = set == nullptr ? "" : set;
  if (wanted == kMma || wanted.starts_with("mma:")) {
    gpu->has_wgmma = false;
    wanted.remove_prefix(std::min(kMma.size() + 1, wanted.size()));
  }
  if (wanted.empty()) return WARPLEDGER_SDPA_OK;
  std::string known;
  for (const LibraryKernel& kernel : KernelsFor(*gpu)) {
    if (kernel.name == wanted) {
      gpu->only = kernel.name;
      return WARPLEDGER_SDPA_OK;
    }
    const std::string name = ", " + std::string(kernel.name);
    if ((known + ",").find(name + ",") == std::string::npos) known += name;
  }
  return Fail(WARPLEDGER_SDPA_INVALID,
              "%s is '%s'; it may be 'mma', or name one of the kernels%s, behind 'mma:' if it is "
              "another GPU's",
              kKernelsVariable, set, known.c_str());
}

// Where no kernel even has the problem's head_dim, dtypes and scales.
std::string WhyNone(const TensorLayouts& layouts, const Gpu& gpu) {
  if (!gpu.only.empty()) {
    return std::string(kKernelsVariable) + " allows " + std::string(gpu.only) + " alone";
  }
  if (layouts.scales && !gpu.has_wgmma) return "E4M3 is for compute capability 9.0";
  return "head_dim is 64, 128 or 256";
}

int Choose(const Problem& p, const TensorLayouts& layouts, Chosen* chosen) {
  int major = 0;
  int minor = 0;
  cudaError_t error = cudaSuccess;
  const auto read = [&](cudaDeviceAttr attribute, int* value) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(value, attribute, chosen->device);
  };
  read(cudaDevAttrComputeCapabilityMajor, &major);
  read(cudaDevAttrComputeCapabilityMinor, &minor);
  read(cudaDevAttrMultiProcessorCount, &chosen->gpu.sms);
  read(cudaDevAttrGlobalMemoryBusWidth, &chosen->gpu.dram_bus_bits);
  read(cudaDevAttrMaxSharedMemoryPerBlockOptin, &chosen->gpu.smem_bytes);
  if (error != cudaSuccess) return FailCuda(error, "asking for the current GPU");
  if (major < 8) {
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED,
                "the current GPU has compute capability %d.%d; these kernels are for 8.0 and newer",
                major, minor);
  }
  chosen->gpu.has_wgmma = major == 9 && minor == 0;
  if (const int status = ReadKernelsOfUser(&chosen->gpu); status != WARPLEDGER_SDPA_OK) {
    return status;
  }
  chosen->choice = ChooseKernel(p, layouts, chosen->gpu);
  const LibraryKernel* const kernel = chosen->choice.kernel;
  if (kernel == nullptr) {
    const std::string why = Explain(p, layouts, chosen->gpu);
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED, "no kernel does %s: %s", ProblemName(p).c_str(),
                why.empty() ? WhyNone(layouts, chosen->gpu).c_str() : why.c_str());
  }
  const Problem of_launch = Choice::OfLaunch(p, chosen->choice.launches);
  const bool cluster = TakesClusterForm(*kernel, of_launch, chosen->gpu);
  const bool strided = TakesStridedForm(*kernel, of_launch, layouts);
  const Config wanted = Specialise(cluster   ? ClusterForm(*kernel)
                                   : strided ? StridedForm(*kernel)
                                             : BuiltForLibrary(*kernel),
                                   p.head_dim, p.causal, p.dtype);
  for (const KernelInstance& instance : LibraryInstances()) {
    if (instance.config == wanted) chosen->instance = &instance;
  }
  if (chosen->instance == nullptr) {
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED, "this build lacks the kernel %s for %s",
                kernel->name.data(), ProblemName(p).c_str());
  }
  return WARPLEDGER_SDPA_OK;
}

// Once for each kernel and device: loads its code, and that of what it launches beside it, and lets
// it have its shared memory.
int Prepare(const Chosen& chosen) {
  constexpr int kMostInstances = 256;
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
  const Config& config = chosen.instance->config;
  if (error == cudaSuccess && config.varlen) error = LoadSequencePlan();
  if (error == cudaSuccess && config.wgmma_join_kernel != 0) {
    error = LoadJoin(config.head_dim, config.dtype == Dtype::kBf16);
  }
  if (error != cudaSuccess) return FailCuda(error, "loading a kernel");
  prepared[at].fetch_or(bit, std::memory_order_release);
  return WARPLEDGER_SDPA_OK;
}

// A call as it was read, and what does it.
struct Call {
  Problem problem;
  TensorLayouts layouts;
  float softmax_scale = 1;
  Chosen chosen;
};

// A problem that this thread has called before on the current device is looked up: to read and to
// choose anew takes longer than the launch.
struct Known {
  warpledger_sdpa_problem given = {};
  int device = -1;
  Call call;
};

int ReadAndChoose(const warpledger_sdpa_problem* callers, const Call** call) {
  constexpr size_t kKept = 32;
  static thread_local Known kept[kKept];
  warpledger_sdpa_problem given = {};
  int status = ReadSized(callers, "problem", kProblemSizes, &given);
  if (status != WARPLEDGER_SDPA_OK) return status;
  given.size = sizeof given;
  // Behind the scale the caller's structure has bytes of no field, which may be anything.
  constexpr size_t kBehindScale = offsetof(warpledger_sdpa_problem, softmax_scale) + sizeof(float);
  std::memset(reinterpret_cast<std::byte*>(&given) + kBehindScale, 0,
              offsetof(warpledger_sdpa_problem, q) - kBehindScale);
  given.reserved = 0;
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) cudaGetLastError();
  uint64_t hash = static_cast<uint64_t>(device);
  uint64_t words[sizeof given / sizeof(uint64_t)];
  static_assert(sizeof words == sizeof given);
  std::memcpy(words, &given, sizeof given);
  for (const uint64_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  Known& known = kept[hash >> 59];
  static_assert(kKept == size_t{1} << (64 - 59));
  if (error == cudaSuccess && known.device == device &&
      std::memcmp(&known.given, &given, sizeof given) == 0) {
    *call = &known.call;
    return WARPLEDGER_SDPA_OK;
  }
  known.device = -1;
  Call& made = known.call = {};
  status = Read(&given, &made.problem, &made.layouts, &made.softmax_scale);
  if (status != WARPLEDGER_SDPA_OK) return status;
  if (error != cudaSuccess) return FailCuda(error, "asking for the current GPU");
  made.chosen.device = device;
  status = Choose(made.problem, made.layouts, &made.chosen);
  if (status == WARPLEDGER_SDPA_OK) status = Prepare(made.chosen);
  if (status != WARPLEDGER_SDPA_OK) return status;
  known.given = given;
  known.device = device;
  *call = &made;
  return WARPLEDGER_SDPA_OK;
}

size_t CounterBytes(const Chosen& chosen) {
  return FamilyOf(chosen.instance->config) == Family::kResident ? 0 : kCounterBytes;
}
size_t WorkspaceBytes(const Call& call) {
  return kCounterBytes + PartialBytes(call.chosen.instance->config, call.problem, call.layouts);
}

// The cumulative lengths of packed sequences; null of others.
struct CuSeqlens {
  const int32_t* q = nullptr;
  const int32_t* kv = nullptr;
};

int ReadE4m3(const warpledger_sdpa_problem* problem, const Call** call) {
  if (const int status = ReadAndChoose(problem, call); status != WARPLEDGER_SDPA_OK) return status;
  if ((*call)->layouts.scales) return WARPLEDGER_SDPA_OK;
  return Fail(WARPLEDGER_SDPA_INVALID,
              "dtype is WARPLEDGER_SDPA_%s: it has no scales, and is forward()'s or "
              "forward_varlen()'s",
              (*call)->problem.dtype == Dtype::kBf16 ? "BF16" : "FP16");
}

// Of what is in E4M3; null of others.
struct Scales {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* o = nullptr;
};

int Forward(const Call& call, const void* q, const void* k, const void* v, const Scales& scales,
            void* o, float* lse, const CuSeqlens& cu_seqlens, void* workspace,
            size_t workspace_bytes, void* stream) {
  const bool scaled = call.layouts.scales.has_value();
  const Chosen& chosen = call.chosen;
  const char* const name_of_kernel = chosen.choice.kernel->name.data();
  const struct {
    const char* name;
    const void* value;
    unsigned alignment;
    bool may_be_null = false;
  } pointers[] = {{"q", q, 16},
                  {"k", k, 16},
                  {"v", v, 16},
                  {"o", o, 16},
                  {"workspace", workspace, 16},
                  {"lse", lse, 4, true},
                  {"q_scale", scales.q, 4, !scaled},
                  {"k_scale", scales.k, 4, !scaled},
                  {"v_scale", scales.v, 4, !scaled},
                  {"o_scale", scales.o, 4, !call.layouts.e4m3_output},
                  {"cu_seqlens_q", cu_seqlens.q, 4, true},
                  {"cu_seqlens_kv", cu_seqlens.kv, 4, true}};
  for (const auto& [name, value, alignment, may_be_null] : pointers) {
    if (value == nullptr && !may_be_null) {
      return Fail(WARPLEDGER_SDPA_INVALID, "%s is null", name);
    }
    if (reinterpret_cast<uintptr_t>(value) % alignment != 0) {
      return Fail(WARPLEDGER_SDPA_INVALID, "%s is not %u-byte aligned", name, alignment);
    }
  }
  if (workspace_bytes < WorkspaceBytes(call)) {
    return Fail(WARPLEDGER_SDPA_INVALID, "workspace_bytes is %zu; %s needs %zu", workspace_bytes,
                name_of_kernel, WorkspaceBytes(call));
  }
  const Problem p = Choice::OfLaunch(call.problem, chosen.choice.launches);
  LaunchParams params;
  params.batch = p.batch;
  params.heads_q = p.heads_q;
  params.heads_kv = p.heads_kv;
  params.seq_q = p.seq_q;
  params.seq_kv = p.seq_kv;
  const int tile_m = GeometryOf(chosen.instance->config).tile_m;
  params.query_tiles = (p.seq_q + tile_m - 1) / tile_m;
  params.causal = p.causal ? 1 : 0;
  params.softmax_scale = call.softmax_scale;
  const TensorLayouts& layouts = call.layouts;
  auto* const base = static_cast<std::byte*>(workspace);
  const LaunchMemory memory = {.counters = base,
                               .partials = base + kCounterBytes,
                               .layouts = layouts,
                               .cu_seqlens_q = cu_seqlens.q,
                               .cu_seqlens_kv = cu_seqlens.kv};
  const int input_bytes = InputBytes(layouts);
  params.o_scale = scales.o;
  const ScaleStrides strides = layouts.scales.value_or(ScaleStrides{});
  for (int batch = 0; batch < chosen.choice.launches; ++batch) {
    params.q = static_cast<const std::byte*>(q) + batch * layouts.q.batch * input_bytes;
    params.k = static_cast<const std::byte*>(k) + batch * layouts.k.batch * input_bytes;
    params.v = static_cast<const std::byte*>(v) + batch * layouts.v.batch * input_bytes;
    if (scaled) {
      const int64_t kv_at = int64_t{batch} * p.heads_kv * strides.kv_head;
      params.q_scales = scales.q + int64_t{batch} * p.heads_q * strides.q_head;
      params.k_scales = scales.k + kv_at;
      params.v_scales = scales.v + kv_at;
    }
    params.o = static_cast<std::byte*>(o) + batch * layouts.o.batch * OutputBytes(layouts);
    params.lse = lse == nullptr ? nullptr : lse + int64_t{batch} * p.heads_q * p.seq_q;
    const cudaError_t error = chosen.instance->launch(*chosen.instance, params, 0, &memory,
                                                      static_cast<cudaStream_t>(stream));
    if (error != cudaSuccess) return FailCuda(error, name_of_kernel);
  }
  return WARPLEDGER_SDPA_OK;
}

}  // namespace
}  // namespace warpledger::sdpa

using namespace warpledger::sdpa;  // NOLINT(google-build-using-namespace): C functions follow

const char* warpledger_sdpa_version(void) { return WARPLEDGER_VERSION; }

const char* warpledger_sdpa_last_error(void) { return warpledger::sdpa::LastError(); }

int warpledger_sdpa_describe(const warpledger_sdpa_problem* problem,
                             warpledger_sdpa_choice* choice) {
  static thread_local std::string explanation;
  warpledger_sdpa_choice filled = {};
  int status = ReadSized(choice, "choice", kChoiceSizes, &filled);
  if (status != WARPLEDGER_SDPA_OK) return status;
  const Call* call = nullptr;
  status = ReadAndChoose(problem, &call);
  if (status != WARPLEDGER_SDPA_OK) return status;
  const Chosen& chosen = call->chosen;
  filled.kernel = chosen.choice.kernel->name.data();
  filled.expected_us = static_cast<float>(chosen.choice.us);
  filled.workspace_bytes = WorkspaceBytes(*call);
  filled.launches = chosen.choice.launches;
  filled.zeroed_bytes = CounterBytes(chosen);
  explanation = Explain(call->problem, call->layouts, chosen.gpu);
  filled.explanation = explanation.c_str();
  std::memcpy(choice, &filled, filled.size);
  return WARPLEDGER_SDPA_OK;
}

int warpledger_sdpa_forward(const warpledger_sdpa_problem* problem, const void* q, const void* k,
                            const void* v, void* o, float* lse, void* workspace,
                            size_t workspace_bytes, void* stream) {
  const Call* call = nullptr;
  if (const int status = ReadAndChoose(problem, &call); status != WARPLEDGER_SDPA_OK) {
    return status;
  }
  if (call->layouts.packed()) {
    return Fail(
        WARPLEDGER_SDPA_INVALID,
        "total_q is %lld: packed sequences are forward_varlen()'s, which takes their lengths",
        static_cast<long long>(call->layouts.total_q));
  }
  if (call->layouts.scales) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "dtype is WARPLEDGER_SDPA_E4M3: it is forward_e4m3()'s, which takes scales");
  }
  return Forward(*call, q, k, v, {}, o, lse, {}, workspace, workspace_bytes, stream);
}

int warpledger_sdpa_forward_e4m3(const warpledger_sdpa_problem* problem, const void* q,
                                 const void* k, const void* v, const float* q_scale,
                                 const float* k_scale, const float* v_scale, void* o, float* lse,
                                 void* workspace, size_t workspace_bytes, void* stream) {
  const Call* call = nullptr;
  if (const int status = ReadE4m3(problem, &call); status != WARPLEDGER_SDPA_OK) return status;
  if (call->layouts.e4m3_output) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "o_dtype is WARPLEDGER_SDPA_E4M3: it is forward_e4m3_output()'s, which takes o's "
                "scale");
  }
  return Forward(*call, q, k, v, {q_scale, k_scale, v_scale}, o, lse, {}, workspace,
                 workspace_bytes, stream);
}

int warpledger_sdpa_forward_e4m3_output(const warpledger_sdpa_problem* problem, const void* q,
                                        const void* k, const void* v, const float* q_scale,
                                        const float* k_scale, const float* v_scale,
                                        const float* o_scale, void* o, float* lse, void* workspace,
                                        size_t workspace_bytes, void* stream) {
  const Call* call = nullptr;
  if (const int status = ReadE4m3(problem, &call); status != WARPLEDGER_SDPA_OK) return status;
  if (!call->layouts.e4m3_output) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "o_dtype is WARPLEDGER_SDPA_FP16: it has no scale, and is forward_e4m3()'s");
  }
  return Forward(*call, q, k, v, {q_scale, k_scale, v_scale, o_scale}, o, lse, {}, workspace,
                 workspace_bytes, stream);
}

int warpledger_sdpa_forward_varlen(const warpledger_sdpa_problem* problem, const void* q,
                                   const void* k, const void* v, void* o, float* lse,
                                   const int32_t* cu_seqlens_q, const int32_t* cu_seqlens_kv,
                                   void* workspace, size_t workspace_bytes, void* stream) {
  const Call* call = nullptr;
  if (const int status = ReadAndChoose(problem, &call); status != WARPLEDGER_SDPA_OK) {
    return status;
  }
  if (!call->layouts.packed()) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "total_q and total_kv are 0: sequences that are not packed are forward()'s");
  }
  if (cu_seqlens_q == nullptr || cu_seqlens_kv == nullptr) {
    return Fail(WARPLEDGER_SDPA_INVALID, "%s is null",
                cu_seqlens_q == nullptr ? "cu_seqlens_q" : "cu_seqlens_kv");
  }
  return Forward(*call, q, k, v, {}, o, lse, {cu_seqlens_q, cu_seqlens_kv}, workspace,
                 workspace_bytes, stream);
}
