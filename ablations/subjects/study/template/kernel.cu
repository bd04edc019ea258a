// SPDX-License-Identifier: Apache-2.0
// y = max(x + bias, 0), with a definition for each claim of study.toml.

#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

#ifdef VECTOR_LOADS
using Element = float4;
__device__ float4 AddAndClamp(float4 x, float4 b) {
  return {fmaxf(x.x + b.x, 0), fmaxf(x.y + b.y, 0), fmaxf(x.z + b.z, 0), fmaxf(x.w + b.w, 0)};
}
#else
using Element = float;
__device__ float AddAndClamp(float x, float b) { return fmaxf(x + b, 0); }
#endif

constexpr int kThreads = 256;

// x, y: (count) elements, rows of `cols`.
__global__ void BiasRelu(const Element* x, const Element* bias, Element* y, int cols, int count) {
  int i = blockIdx.x * kThreads + threadIdx.x;
#ifdef GRID_STRIDE
  for (; i < count; i += gridDim.x * kThreads) y[i] = AddAndClamp(x[i], bias[i % cols]);
#else
  if (i < count) y[i] = AddAndClamp(x[i], bias[i % cols]);
#endif
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  constexpr int kWide = sizeof(Element) / sizeof(float);
  const int cols = static_cast<int>(warpledger_parameter(call, "cols")) / kWide;
  const int count = static_cast<int>(warpledger_parameter(call, "rows")) * cols;
  int blocks = (count + kThreads - 1) / kThreads;
#ifdef GRID_STRIDE
  if (blocks > 1024) blocks = 1024;
#endif
  BiasRelu<<<blocks, kThreads, 0, static_cast<cudaStream_t>(call->stream)>>>(
      static_cast<const Element*>(call->inputs[0]), static_cast<const Element*>(call->inputs[1]),
      static_cast<Element*>(call->outputs[0]), cols, count);
  return cudaGetLastError();
}
