// SPDX-License-Identifier: Apache-2.0
// What a study's kernels are called through: version 1.
//
// A study's sources define warpledger_call(), and may define warpledger_prepare(). Both return 0,
// or any other number for an error, such as a cudaError_t.
//
// Contract
// - warpledger_call() puts one call's work on call->stream and does not wait for it. It is captured
//   into a CUDA graph: it allocates nothing and asks for nothing that a capture forbids.
// - Every element of every output is written; inputs are only read. Pointers are aligned to 256
//   bytes and lie between guard bands.
// - warpledger_prepare() is called before the first call on a problem, untimed, outside of any
//   capture. What it makes it keeps itself.
// - What a call launches is read from the graph; nothing counts its kernels by hand.
// - On the CPU (device = "cpu") pointers are the host's, stream is null, and a call computes at
//   once.
//
//   #include <warpledger/study.h>
//   extern "C" int warpledger_call(const WarpledgerCall* call) {
//     const long long n = warpledger_parameter(call, "n");
//     Scale<<<(n + 255) / 256, 256, 0, (cudaStream_t)call->stream>>>(
//         (const float*)call->inputs[0], (float*)call->outputs[0], n);
//     return cudaGetLastError();
//   }

#pragma once

#include <stddef.h>
#include <string.h>

#define WARPLEDGER_STUDY_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct WarpledgerCall {
  int version;  // WARPLEDGER_STUDY_VERSION of the program that calls
  int parameter_count;
  const char* const* parameter_names;
  const long long* parameter_values;
  const void* const* inputs;  // in the order of study.toml
  void* const* outputs;
  void* workspace;  // null where study.toml asks for none; its content is arbitrary
  size_t workspace_bytes;
  void* stream;  // a cudaStream_t
} WarpledgerCall;

int warpledger_call(const WarpledgerCall* call);
int warpledger_prepare(const WarpledgerCall* call);  // optional

// How the program knows which version of this file a library was compiled with.
__attribute__((weak, visibility("default"))) int warpledger_study_version(void) {
  return WARPLEDGER_STUDY_VERSION;
}

// A parameter of the problem; -1: study.toml has none of that name.
static inline long long warpledger_parameter(const WarpledgerCall* call, const char* name) {
  for (int i = 0; i < call->parameter_count; ++i) {
    if (strcmp(call->parameter_names[i], name) == 0) return call->parameter_values[i];
  }
  return -1;
}

#ifdef __cplusplus
}
#endif
