// SPDX-License-Identifier: Apache-2.0
/*
 * Scaled-dot-product attention, forward, on NVIDIA GPUs of compute capability 8.0 and newer. On 9.0
 * one call launches the kernel with the lowest expected time. Other GPUs have kernels of their own,
 * whose times are not known, and no E4M3. C99 and C++.
 *
 *   O = softmax(scale * Q K^T + mask) V
 *
 * Tensors are device memory, 16-byte aligned, of the problem's dtype:
 *   q, o   (batch, heads_q, seq_q, head_dim)
 *   k, v   (batch, heads_kv, seq_kv, head_dim)
 *   lse    (batch, heads_q, seq_q) fp32, contiguous, 4-byte aligned: log(sum(exp(scale * q k))),
 *          in natural-log units; may be null
 * Query head h reads head h / (heads_q / heads_kv) of K and V. The causal mask is aligned to the
 * bottom right, as in FlashAttention since 2.1: query i sees keys j <= i + seq_kv - seq_q. A row
 * that sees no key has O = 0 and LSE = -infinity. A size above 2^20 is refused as unsupported.
 *
 * Layouts: the head_dim elements of a row are contiguous. Batches, heads and rows have strides, in
 * elements: at least head_dim, and in bytes multiples of 16 below 2^40. Rows of o must not overlap:
 * each of its strides must be at least what the dimensions with smaller strides extend over.
 * Strides of 0, 0, 0 mean a contiguous tensor. The stride of a dimension of size 1 is ignored.
 * Examples:
 *   (batch, seq, heads, head_dim)            batch = seq * heads * head_dim, head = head_dim,
 *                                            row = heads * head_dim
 *   a slice of (batch, seq, 3, heads, head_dim)
 *                                            batch and row thrice that
 *   the first seq_kv rows of a cache of most (batch, heads, most, head_dim)
 *                                            batch = heads * most * head_dim,
 *                                            head = most * head_dim, row = head_dim
 * Some kernels need contiguous tensors, or a contiguous o: describe() says which kernel a call
 * launches and why others can't. If a batch stride is neither heads times the head stride nor a
 * multiple of the row stride, forward() may launch its kernel once per batch; choice.launches and
 * choice.expected_us say so.
 *
 * Packed sequences have different lengths and follow each other in memory:
 *   q, o   (total_q, heads_q, head_dim)
 *   k, v   (total_kv, heads_kv, head_dim)
 *   lse    (heads_q, total_q) fp32
 * problem.batch is the number of sequences. seq_q and seq_kv are the largest lengths, exact or
 * estimated; nothing here reads them, so any value of 0 or more is allowed, also above 2^20. Rows
 * and heads have strides. Call warpledger_sdpa_forward_varlen(). A sequence may have no queries, or
 * no keys.
 *
 * E4M3 is FP8 with 4 bits of exponent and 3 of mantissa, without infinities. An element of q, k and
 * v has one byte then, and o is fp16, or E4M3 if problem.o_dtype says so. A value is the element
 * times a scale. Scales are device memory, fp32, 4-byte aligned, above 0 and finite. o has one, and
 * values beyond 448 times it in magnitude become that. problem.q_scale_scope and
 * problem.kv_scale_scope say what shares a scale of q, k and v:
 *   WARPLEDGER_SDPA_SCALE_TENSOR   all values: 1 scale
 *   WARPLEDGER_SDPA_SCALE_HEAD     a head of a batch: (batch, heads), contiguous
 *   WARPLEDGER_SDPA_SCALE_BLOCK    128 keys of a head, k and v alone:
 *                                  (batch, heads_kv, ceil(seq_kv / 128)), contiguous
 * Call warpledger_sdpa_forward_e4m3(), or for o in E4M3 warpledger_sdpa_forward_e4m3_output(). The
 * kernel rounds probabilities to E4M3 too. Packed sequences in E4M3 are unsupported, and so is o in
 * E4M3 with scales per block.
 *
 *   warpledger_sdpa_problem problem = {
 *       sizeof problem, WARPLEDGER_SDPA_FP16, 1, 8, 8, 512, 512, 64, 0, 0};
 *   warpledger_sdpa_choice choice;
 *   choice.size = sizeof choice;
 *   if (warpledger_sdpa_describe(&problem, &choice)) puts(warpledger_sdpa_last_error());
 *   cudaMalloc(&workspace, choice.workspace_bytes);
 *   cudaMemset(workspace, 0, choice.workspace_bytes);
 *   warpledger_sdpa_forward(&problem, q, k, v, o, NULL, workspace, choice.workspace_bytes, stream);
 *
 * No function allocates device memory or waits for the GPU, except that the first use of a kernel
 * on a device loads its code. describe() loads it too, so that forward() may be captured into a
 * graph afterwards. On GPUs newer than 9.0 the driver compiles a kernel when it is loaded first,
 * which takes seconds. All functions use the current device and may be called from any thread. A
 * call may be several launches, so threads that share a stream and a workspace must not call at the
 * same time.
 *
 * To compare kernels, the environment variable WARPLEDGER_SDPA_KERNELS may hold the name of the
 * only kernel to take, or "mma" for the kernels of other GPUs on one of compute capability 9.0, or
 * "mma:" with a name of these. A problem that a thread has called before keeps its kernel.
 */

#ifndef WARPLEDGER_KERNELS_SDPA_LIBRARY_WARPLEDGER_SDPA_H_
#define WARPLEDGER_KERNELS_SDPA_LIBRARY_WARPLEDGER_SDPA_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WARPLEDGER_SDPA_API __attribute__((visibility("default")))

/* The result of a function. */
typedef enum warpledger_sdpa_status {
  WARPLEDGER_SDPA_OK = 0,
  WARPLEDGER_SDPA_INVALID = 1,     /* an argument makes no sense */
  WARPLEDGER_SDPA_UNSUPPORTED = 2, /* a valid call that no kernel supports on this GPU */
  WARPLEDGER_SDPA_NO_DEVICE = 3,   /* no GPU, or no driver */
  WARPLEDGER_SDPA_CUDA_ERROR = 4   /* the CUDA runtime refused */
} warpledger_sdpa_status;

typedef enum warpledger_sdpa_dtype {
  WARPLEDGER_SDPA_FP16 = 0,
  WARPLEDGER_SDPA_BF16 = 1,
  WARPLEDGER_SDPA_E4M3 = 2 /* q, k and v; o is of o_dtype */
} warpledger_sdpa_dtype;

/* What shares a scale in E4M3. */
typedef enum warpledger_sdpa_scale_scope {
  WARPLEDGER_SDPA_SCALE_TENSOR = 0,
  WARPLEDGER_SDPA_SCALE_HEAD = 1,
  WARPLEDGER_SDPA_SCALE_BLOCK = 2
} warpledger_sdpa_scale_scope;

/* Distances in elements; all 0: contiguous. */
typedef struct warpledger_sdpa_strides {
  int64_t batch;
  int64_t head;
  int64_t row;
} warpledger_sdpa_strides;

/* Structures grow at their ends. A caller that was built with an earlier header passes its size. */
typedef struct warpledger_sdpa_problem {
  size_t size;     /* sizeof(warpledger_sdpa_problem) */
  int32_t dtype;   /* a warpledger_sdpa_dtype */
  int32_t batch;   /* 1 to 2^20, as all sizes */
  int32_t heads_q; /* a multiple of heads_kv */
  int32_t heads_kv;
  int32_t seq_q;
  int32_t seq_kv;
  int32_t head_dim;    /* 64, 128 or 256 */
  int32_t causal;      /* 0 or 1 */
  float softmax_scale; /* 0 for 1 / sqrt(head_dim) */
  warpledger_sdpa_strides q;
  warpledger_sdpa_strides k;
  warpledger_sdpa_strides v;
  warpledger_sdpa_strides o;
  int64_t total_q;        /* rows of packed q and o; 0 if sequences are not packed */
  int64_t total_kv;       /* rows of packed k and v; 0 if sequences are not packed */
  int32_t q_scale_scope;  /* in E4M3: WARPLEDGER_SDPA_SCALE_TENSOR or _HEAD; else 0 */
  int32_t kv_scale_scope; /* in E4M3: a warpledger_sdpa_scale_scope, of k and of v; else 0 */
  int32_t o_dtype;        /* in E4M3: WARPLEDGER_SDPA_FP16 or _E4M3; else 0 */
  int32_t reserved;       /* not read */
} warpledger_sdpa_problem;

typedef struct warpledger_sdpa_choice {
  size_t size;             /* sizeof(warpledger_sdpa_choice) */
  const char* kernel;      /* the kernel's name; lives as long as the library */
  float expected_us;       /* time of a call, back to back, from a model fitted on an NVIDIA H200;
                              0 on GPUs of another compute capability than 9.0 */
  size_t workspace_bytes;  /* workspace that forward() needs; at least 1 */
  int32_t launches;        /* of the kernel: 1, or one per batch */
  size_t zeroed_bytes;     /* that many first bytes of the workspace must be 0 */
  const char* explanation; /* kernels with their times, or why not; until this thread's next call */
} warpledger_sdpa_choice;

/* "0.2.0". A later version with the same first number supports every call of this one. */
WARPLEDGER_SDPA_API const char* warpledger_sdpa_version(void);

/* Says which kernel forward() takes, and loads it on the current device. */
WARPLEDGER_SDPA_API int warpledger_sdpa_describe(const warpledger_sdpa_problem* problem,
                                                 warpledger_sdpa_choice* choice);

/* Puts one call on `stream`, a cudaStream_t.
 *
 * workspace: device memory, 16-byte aligned, of at least choice.workspace_bytes. Its first
 *   choice.zeroed_bytes must be 0 before the call, and are 0 again after it. So one workspace that
 *   was set to 0 once serves all calls that follow each other; calls that may run at the same time
 *   need different workspaces. A call may be several launches, so threads that share a stream and a
 *   workspace must not call at the same time. */
WARPLEDGER_SDPA_API int warpledger_sdpa_forward(const warpledger_sdpa_problem* problem,
                                                const void* q, const void* k, const void* v,
                                                void* o, float* lse, void* workspace,
                                                size_t workspace_bytes, void* stream);

/* The same for packed sequences (total_q and total_kv are set).
 *
 * cu_seqlens_q, cu_seqlens_kv: device memory of batch + 1 int32 each, 4-byte aligned. Sequence i
 *   has the rows from cu_seqlens[i] to cu_seqlens[i + 1] - 1. The GPU reads these lengths when the
 *   call runs, so a replayed graph uses the current values. Rows outside of the tensors are left
 *   out, and rows of o that belong to no sequence are not written. */
WARPLEDGER_SDPA_API int warpledger_sdpa_forward_varlen(
    const warpledger_sdpa_problem* problem, const void* q, const void* k, const void* v, void* o,
    float* lse, const int32_t* cu_seqlens_q, const int32_t* cu_seqlens_kv, void* workspace,
    size_t workspace_bytes, void* stream);

/* The same in E4M3, with the scales of q, k and v. The GPU reads them when the call runs, so a
 * replayed graph uses the current values. */
WARPLEDGER_SDPA_API int warpledger_sdpa_forward_e4m3(const warpledger_sdpa_problem* problem,
                                                     const void* q, const void* k, const void* v,
                                                     const float* q_scale, const float* k_scale,
                                                     const float* v_scale, void* o, float* lse,
                                                     void* workspace, size_t workspace_bytes,
                                                     void* stream);

/* The same with o in E4M3 (problem.o_dtype).
 *
 * o_scale: one fp32, which the GPU reads when the call runs. O is the element of o times it. */
WARPLEDGER_SDPA_API int warpledger_sdpa_forward_e4m3_output(
    const warpledger_sdpa_problem* problem, const void* q, const void* k, const void* v,
    const float* q_scale, const float* k_scale, const float* v_scale, const float* o_scale, void* o,
    float* lse, void* workspace, size_t workspace_bytes, void* stream);

/* The error of this thread's last call that did not return OK, in one sentence. */
WARPLEDGER_SDPA_API const char* warpledger_sdpa_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* WARPLEDGER_KERNELS_SDPA_LIBRARY_WARPLEDGER_SDPA_H_ */
