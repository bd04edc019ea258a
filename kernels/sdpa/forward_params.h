// The arguments of one SDPA forward launch, as every kernel takes them.

#ifndef WARPLEDGER_KERNELS_SDPA_FORWARD_PARAMS_H_
#define WARPLEDGER_KERNELS_SDPA_FORWARD_PARAMS_H_

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

// Device pointers; layouts as problem.h says. Q, K, V and O are 16-byte aligned.
struct ForwardParams {
  const void* q = nullptr;  // (batch, heads_q, seq_q, head_dim) fp16
  const void* k = nullptr;  // (batch, heads_kv, seq_kv, head_dim) fp16
  const void* v = nullptr;  // (batch, heads_kv, seq_kv, head_dim) fp16
  void* o = nullptr;        // (batch, heads_q, seq_q, head_dim) fp16
  float* lse = nullptr;     // (batch, heads_q, seq_q) fp32, or null
  int batch = 1;
  int heads_q = 1;
  int heads_kv = 1;
  int seq_q = 1;
  int seq_kv = 1;
  int query_tiles = 1;          // ceil(seq_q / tile_m)
  int causal = 0;               // bottom-right aligned
  float softmax_scale = 1.0f;   // multiplies Q K^T
  ProjectionParams projection;  // of a problem that begins with x, whose q, k and v are null
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_FORWARD_PARAMS_H_
