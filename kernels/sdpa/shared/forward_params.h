// SPDX-License-Identifier: Apache-2.0
// The arguments of one SDPA forward launch, as every kernel takes them.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_FORWARD_PARAMS_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_FORWARD_PARAMS_H_

namespace warpledger::sdpa {

// Of a problem that begins with x. All 16-byte aligned.
struct ProjectionParams {
  const void* x = nullptr;      // (batch, seq, embed_dim) fp16; normalised already where the
                                // kernel that takes it does not normalise
  const void* gamma = nullptr;  // (embed_dim) fp16
  const void* beta = nullptr;   // (embed_dim) fp16
  const void* w = nullptr;      // (columns, embed_dim) fp16
  void* qkv = nullptr;          // (batch, seq, columns) fp16: Q's heads, K's, V's
  int embed_dim = 0;
  int columns = 0;
};

// Device pointers; layouts as problem.h says. Q, K, V and O are 16-byte aligned and of the
// problem's dtype; K and V, and perhaps Q, are 8-bit codes where the configuration stores
// them so (KvStorageOf).
struct ForwardParams {
  const void* q = nullptr;  // (batch, heads_q, seq_q, head_dim)
  const void* k = nullptr;  // (batch, heads_kv, seq_kv, head_dim)
  const void* v = nullptr;  // (batch, heads_kv, seq_kv, head_dim)
  void* o = nullptr;        // (batch, heads_q, seq_q, head_dim)
  float* lse = nullptr;     // (batch, heads_q, seq_q) fp32, or null
  int batch = 1;
  int heads_q = 1;
  int heads_kv = 1;
  int seq_q = 1;
  int seq_kv = 1;
  int query_tiles = 1;         // ceil(seq_q / tile_m)
  int causal = 0;              // bottom-right aligned
  float softmax_scale = 1.0f;  // multiplies Q K^T
  // With 8-bit K and V: (batch * heads_kv, kv_scale_stride) fp32. A head's first is its
  // largest scale; with a scale per block, behind it are the blocks' in parts of that one.
  const float* k_scales = nullptr;
  const float* v_scales = nullptr;
  int kv_scale_stride = 1;
  int l2_promotion = 0;             // of K's and V's tensor maps: a level of wgmma_l2_promotion
  ProjectionParams projection;      // of a problem that begins with x, whose q, k and v are null
  const float* q_scales = nullptr;  // with 8-bit Q: (batch * heads_q) fp32
};

// What a launch takes. What only some kernels of one family take is apart, so that the parameters
// of all others are as they were.
struct LaunchParams : ForwardParams {
  const float* o_scale = nullptr;  // where O is 8-bit codes: one fp32, that they are multiplied by
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_FORWARD_PARAMS_H_
