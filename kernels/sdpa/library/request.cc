// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/library/request.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>

#include "kernels/sdpa/dtype/dtype.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {
namespace {

// The longest sentence lists the kernels with a reason for each.
thread_local char last_error[1024] = "";

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

// Where the scales lie, and what O is. Scopes are 0 where the dtype has no scales.
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
  if (!scaled && given.o_dtype != 0) {
    return Fail(WARPLEDGER_SDPA_INVALID, "o_dtype is %d; it must be 0, for o is of q's dtype",
                given.o_dtype);
  }
  if (!scaled) return WARPLEDGER_SDPA_OK;
  if (given.o_dtype != WARPLEDGER_SDPA_FP16 && given.o_dtype != WARPLEDGER_SDPA_E4M3) {
    return Fail(WARPLEDGER_SDPA_INVALID, "o_dtype is %d; it must be WARPLEDGER_SDPA_FP16 or _E4M3",
                given.o_dtype);
  }
  layouts->e4m3_output = given.o_dtype == WARPLEDGER_SDPA_E4M3;
  const bool per_block = given.kv_scale_scope == WARPLEDGER_SDPA_SCALE_BLOCK;
  if (per_block && layouts->e4m3_output) {
    return Fail(WARPLEDGER_SDPA_UNSUPPORTED,
                "o_dtype is E4M3 and kv_scale_scope _BLOCK; with scales per block o is fp16");
  }
  constexpr int kKeys = kFp8BlockKeys;
  layouts->scales = {.q_head = given.q_scale_scope == WARPLEDGER_SDPA_SCALE_HEAD ? 1 : 0,
                     .kv_head = per_block ? (given.seq_kv + kKeys - 1) / kKeys
                                : given.kv_scale_scope == WARPLEDGER_SDPA_SCALE_HEAD ? 1
                                                                                     : 0,
                     .per_block = per_block};
  return WARPLEDGER_SDPA_OK;
}

}  // namespace

const char* LastError() { return last_error; }

int Fail(warpledger_sdpa_status status, const char* format, ...) {
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
    const int status = ReadStrides(*tensor.given, tensor.name, is_output,
                                   is_output ? OutputBytes(*layouts) : InputBytes(*layouts), *p,
                                   packed, tensor.heads, tensor.rows, tensor.strides);
    if (status != WARPLEDGER_SDPA_OK) return status;
  }
  return WARPLEDGER_SDPA_OK;
}

}  // namespace warpledger::sdpa
