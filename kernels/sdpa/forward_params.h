// The arguments of one SDPA forward launch, as every kernel takes them.

#ifndef WARPLEDGER_KERNELS_SDPA_FORWARD_PARAMS_H_
#define WARPLEDGER_KERNELS_SDPA_FORWARD_PARAMS_H_

namespace warpledger::sdpa {

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
  int query_tiles = 1;         // ceil(seq_q / tile_m)
  int causal = 0;              // bottom-right aligned
  float softmax_scale = 1.0f;  // multiplies Q K^T
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_FORWARD_PARAMS_H_
