// SPDX-License-Identifier: Apache-2.0
// The C interface: checks, the choice of a kernel, and its launch. Without Abseil, so that the
// library needs nothing but the CUDA runtime that is linked into it.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <string>

#include "kernels/sdpa/library/choice.h"
#include "kernels/sdpa/library/costs.h"
#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/library/library_instances.h"
#include "kernels/sdpa/library/warpledger_sdpa.h"
#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/shared/kernel_layout.h"
#include "kernels/sdpa/wgmma/join/join_kernel.h"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/varlen/sequence_plan.h"

namespace warpledger::sdpa {
namespace {

// --- Errors ---------------------------------------------------------------------

// The longest sentence lists the kernels with a reason for each.
thread_local char last_error[1024] = "";

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

// Of callers that were built with headers whose structures ended there.
constexpr size_t kProblemSizes[] = {
    sizeof(warpledger_sdpa_problem), offsetof(warpledger_sdpa_problem, q_scale_scope),
    offsetof(warpledger_sdpa_problem, total_q), offsetof(warpledger_sdpa_problem, q)};
constexpr size_t kChoiceSizes[] = {sizeof(warpledger_sdpa_choice),
                                   offsetof(warpledger_sdpa_choice, launches)};

// Copies what the caller's structure has; the rest of `*own` stays.
template <typename T>
int ReadSized(const T* given, const char* name, std::span<const size_t> sizes, T* own) {
  if (given == nullptr) return Fail(WARPLEDGER_SDPA_INVALID, "%s is null", name);
  if (std::find(sizes.begin(), sizes.end(), given->size) == sizes.end()) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "%s.size is %zu; it must be %zu, or %zu as in the first header: set it to "
                "sizeof(warpledger_sdpa_%s) and build with this library's header",
                name, given->size, sizes.front(), sizes.back(), name);
  }
  std::memcpy(own, given, given->size);
  return WARPLEDGER_SDPA_OK;
}

// What is there `count` times, `stride` elements apart.
struct Axis {
  const char* name;
  int64_t count;
  int64_t* stride;
};

// Strides of what is there once, which the caller need not fill in, become what they would be
// without gaps: the driver looks at them.
//   element_bytes: 1 or 2
//   rows: of a head in a batch, or of all packed sequences
int ReadStrides(const warpledger_sdpa_strides& given, const char* tensor, bool is_output,
                int element_bytes, const Problem& p, bool packed, int heads, int64_t rows,
                TensorStrides* strides) {
  const int64_t alignment = 16 / element_bytes;
  const int bits = element_bytes == 1 ? 40 : 39;  // 2^40 bytes are a tensor map's limit
  const bool contiguous = given.batch == 0 && given.head == 0 && given.row == 0;
  if (contiguous) {
    *strides = packed ? TensorStrides{0, p.head_dim, int64_t{heads} * p.head_dim}
                      : ContiguousStrides(heads, static_cast<int>(rows), p.head_dim);
    return WARPLEDGER_SDPA_OK;
  }
  *strides = {given.batch, given.head, given.row};
  Axis axes[] = {{"row", rows, &strides->row},
                 {"head", heads, &strides->head},
                 {"batch", packed ? 1 : p.batch, &strides->batch}};
  int64_t without_gaps = p.head_dim;
  const auto fail_beyond = [&](const Axis& axis) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "the %s stride of %s is %lld elements, so that %s extends beyond 2^63", axis.name,
                tensor, static_cast<long long>(*axis.stride), tensor);
  };
  for (const Axis& axis : axes) {
    if (axis.count == 1) {
      // Nothing steps by it, so that it needs but be one that the driver takes.
      *axis.stride = std::min(without_gaps, (int64_t{1} << bits) - alignment);
      continue;
    }
    const int64_t stride = *axis.stride;
    if (stride < p.head_dim || stride >> bits != 0 || stride % alignment != 0) {
      return Fail(WARPLEDGER_SDPA_INVALID,
                  "the %s stride of %s is %lld elements; it must be a multiple of %lld, at least "
                  "head_dim (%d) and below 2^%d",
                  axis.name, tensor, static_cast<long long>(stride),
                  static_cast<long long>(alignment), p.head_dim, bits);
    }
    if (__builtin_mul_overflow(stride, axis.count, &without_gaps)) return fail_beyond(axis);
  }
  if (!is_output) return WARPLEDGER_SDPA_OK;
  std::sort(std::begin(axes), std::end(axes),
            [](const Axis& a, const Axis& b) { return *a.stride < *b.stride; });
  int64_t extent = p.head_dim;
  for (const Axis& axis : axes) {
    if (axis.count == 1) continue;
    if (*axis.stride < extent) {
      return Fail(WARPLEDGER_SDPA_INVALID,
                  "the %s stride of %s is %lld elements, so that its rows may overlap", axis.name,
                  tensor, static_cast<long long>(*axis.stride));
    }
    int64_t steps = 0;
    if (__builtin_mul_overflow(axis.count - 1, *axis.stride, &steps) ||
        __builtin_add_overflow(extent, steps, &extent)) {
      return fail_beyond(axis);
    }
  }
  return WARPLEDGER_SDPA_OK;
}

// Of an element of q, k and v.
int InputBytes(const TensorLayouts& layouts) { return layouts.scales ? 1 : 2; }

// Where the scales lie. Scopes are 0 where the dtype has no scales.
int ReadScales(const warpledger_sdpa_problem& given, TensorLayouts* layouts) {
  const struct {
    const char* name;
    int32_t value;
    int32_t most;
    const char* may_be;
  } scopes[] = {
      {"q_scale_scope", given.q_scale_scope, WARPLEDGER_SDPA_SCALE_HEAD, "_TENSOR or _HEAD"},
      {"kv_scale_scope", given.kv_scale_scope, WARPLEDGER_SDPA_SCALE_BLOCK,
       "_TENSOR, _HEAD or _BLOCK"}};
  const bool scaled = given.dtype == WARPLEDGER_SDPA_E4M3;
  for (const auto& [name, value, most, may_be] : scopes) {
    if (!scaled && value != 0) {
      return Fail(WARPLEDGER_SDPA_INVALID, "%s is %d; it must be 0, for only E4M3 has scales", name,
                  value);
    }
    if (value < 0 || value > most) {
      return Fail(WARPLEDGER_SDPA_INVALID, "%s is %d; it must be WARPLEDGER_SDPA_SCALE%s", name,
                  value, may_be);
    }
  }
  if (!scaled) return WARPLEDGER_SDPA_OK;
  const bool per_block = given.kv_scale_scope == WARPLEDGER_SDPA_SCALE_BLOCK;
  constexpr int kKeys = kFp8BlockKeys;
  layouts->scales = {.q_head = given.q_scale_scope == WARPLEDGER_SDPA_SCALE_HEAD ? 1 : 0,
                     .kv_head = per_block ? (given.seq_kv + kKeys - 1) / kKeys
                                : given.kv_scale_scope == WARPLEDGER_SDPA_SCALE_HEAD ? 1
                                                                                     : 0,
                     .per_block = per_block};
  return WARPLEDGER_SDPA_OK;
}

int Read(const warpledger_sdpa_problem* given, Problem* p, TensorLayouts* layouts,
         float* softmax_scale) {
  const bool packed = given->total_q != 0 || given->total_kv != 0;
  // Nothing reads the largest lengths of packed sequences, so that the limit is none of theirs.
  const auto length = [&](int32_t value) {
    return packed && value >= 0 ? std::clamp(value, 1, kMostOfOneSize) : value;
  };
  const int32_t seq_q = length(given->seq_q);
  const int32_t seq_kv = length(given->seq_kv);
  const struct {
    const char* name;
    int32_t value;
  } sizes[] = {{"batch", given->batch}, {"heads_q", given->heads_q}, {"heads_kv", given->heads_kv},
               {"seq_q", seq_q},        {"seq_kv", seq_kv},          {"head_dim", given->head_dim}};
  for (const auto& [name, value] : sizes) {
    if (value < 1) {
      return Fail(WARPLEDGER_SDPA_INVALID, "%s is %d; it must be 1 or more", name, value);
    }
    if (value > kMostOfOneSize) {
      return Fail(WARPLEDGER_SDPA_UNSUPPORTED, "%s is %d; the library takes sizes up to %d", name,
                  value, kMostOfOneSize);
    }
  }
  if (given->heads_q % given->heads_kv != 0) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "query heads (%d) must be a multiple of key/value heads (%d)", given->heads_q,
                given->heads_kv);
  }
  if (given->dtype < WARPLEDGER_SDPA_FP16 || given->dtype > WARPLEDGER_SDPA_E4M3) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "dtype is %d; it must be WARPLEDGER_SDPA_FP16, _BF16 or _E4M3", given->dtype);
  }
  if (packed && given->dtype == WARPLEDGER_SDPA_E4M3) {
    return Fail(
        WARPLEDGER_SDPA_UNSUPPORTED,
        "total_q is %lld and dtype E4M3; the library takes packed sequences of fp16 and bf16",
        static_cast<long long>(given->total_q));
  }
  if (const int status = ReadScales(*given, layouts); status != WARPLEDGER_SDPA_OK) return status;
  if (given->causal != 0 && given->causal != 1) {
    return Fail(WARPLEDGER_SDPA_INVALID, "causal is %d; it must be 0 or 1", given->causal);
  }
  if (!std::isfinite(given->softmax_scale) || given->softmax_scale < 0) {
    return Fail(WARPLEDGER_SDPA_INVALID, "softmax_scale is %g; it must be 0 or more",
                static_cast<double>(given->softmax_scale));
  }
  *p = {given->batch,
        given->heads_q,
        given->heads_kv,
        seq_q,
        seq_kv,
        given->head_dim,
        given->causal == 1,
        given->dtype == WARPLEDGER_SDPA_BF16 ? Dtype::kBf16 : Dtype::kFp16};
  *softmax_scale = given->softmax_scale > 0 ? given->softmax_scale
                                            : 1.0f / std::sqrt(static_cast<float>(p->head_dim));
  const struct {
    const char* name;
    int64_t value;
  } totals[] = {{"total_q", given->total_q}, {"total_kv", given->total_kv}};
  for (const auto& [name, value] : totals) {
    if (packed && (value < 1 || value > std::numeric_limits<int32_t>::max())) {
      return Fail(WARPLEDGER_SDPA_INVALID,
                  "%s is %lld; of packed sequences it must be 1 to 2147483647, and of others 0",
                  name, static_cast<long long>(value));
    }
  }
  layouts->total_q = given->total_q;
  layouts->total_kv = given->total_kv;
  const int64_t rows_q = packed ? given->total_q : p->seq_q;
  const int64_t rows_kv = packed ? given->total_kv : p->seq_kv;
  const struct {
    const char* name;
    const warpledger_sdpa_strides* given;
    int heads;
    int64_t rows;
    TensorStrides* strides;
  } tensors[] = {{"q", &given->q, p->heads_q, rows_q, &layouts->q},
                 {"k", &given->k, p->heads_kv, rows_kv, &layouts->k},
                 {"v", &given->v, p->heads_kv, rows_kv, &layouts->v},
                 {"o", &given->o, p->heads_q, rows_q, &layouts->o}};
  for (const auto& tensor : tensors) {
    const bool is_output = tensor.strides == &layouts->o;
    const int status =
        ReadStrides(*tensor.given, tensor.name, is_output, is_output ? 2 : InputBytes(*layouts), *p,
                    packed, tensor.heads, tensor.rows, tensor.strides);
    if (status != WARPLEDGER_SDPA_OK) return status;
  }
  return WARPLEDGER_SDPA_OK;
}

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
  if (error != cudaSuccess) return FailCuda(error, "asking for the current GPU");
  if (major != 9 || minor != 0) {
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED,
                "the current GPU has compute capability %d.%d; these kernels are for 9.0", major,
                minor);
  }
  chosen->choice = ChooseKernel(p, layouts, chosen->gpu);
  const LibraryKernel* const kernel = chosen->choice.kernel;
  if (kernel == nullptr) {
    const std::string why = Explain(p, layouts, chosen->gpu);
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED, "no kernel does %s: %s", ProblemName(p).c_str(),
                !why.empty() ? why.c_str() : "head_dim is 64, 128 or 256");
  }
  const Problem of_launch = Choice::OfLaunch(p, chosen->choice.launches);
  const bool cluster = TakesClusterForm(*kernel, of_launch, chosen->gpu);
  const Config wanted = Specialise(cluster ? ClusterForm(*kernel) : BuiltForLibrary(*kernel),
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

// Of q, k and v in E4M3; null of others.
struct Scales {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
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
  ForwardParams params;
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
    params.o = static_cast<uint16_t*>(o) + batch * layouts.o.batch;
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

const char* warpledger_sdpa_last_error(void) { return last_error; }

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
  if (const int status = ReadAndChoose(problem, &call); status != WARPLEDGER_SDPA_OK) {
    return status;
  }
  if (!call->layouts.scales) {
    return Fail(WARPLEDGER_SDPA_INVALID,
                "dtype is WARPLEDGER_SDPA_%s: it has no scales, and is forward()'s or "
                "forward_varlen()'s",
                call->problem.dtype == Dtype::kBf16 ? "BF16" : "FP16");
  }
  return Forward(*call, q, k, v, {q_scale, k_scale, v_scale}, o, lse, {}, workspace,
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
