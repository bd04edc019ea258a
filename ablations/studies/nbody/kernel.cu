// SPDX-License-Identifier: Apache-2.0
// The acceleration of n bodies by the first `sources` of them: n * sources interactions of some
// twenty operations.

#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

constexpr int kThreads = 128;
constexpr float kSoftening = 0.01f;
#ifdef BODIES
constexpr int kBodies = BODIES;  // of a thread
#else
constexpr int kBodies = 1;
#endif

// Adds what a body at `by` of mass by.w does to one at `of`.
__device__ void Attract(float4 of, float4 by, float3& sum) {
  const float x = by.x - of.x, y = by.y - of.y, z = by.z - of.z;
  const float square = x * x + y * y + z * z + kSoftening;
#ifdef RSQRT
  const float inverse = rsqrtf(square);
  const float scale = by.w * inverse * inverse * inverse;
#else
  const float scale = by.w / (square * sqrtf(square));
#endif
  sum.x += scale * x;
  sum.y += scale * y;
  sum.z += scale * z;
}

__device__ float4 BodyOf(const float* bodies, int i) {
#ifdef VECTOR_LOADS
  return reinterpret_cast<const float4*>(bodies)[i];
#else
  return {bodies[4 * i], bodies[4 * i + 1], bodies[4 * i + 2], bodies[4 * i + 3]};
#endif
}

// bodies: (n, 4): x, y, z and mass; out: (n, 3). n is a multiple of a block's bodies,
// sources of kThreads.
#ifdef LAUNCH_BOUNDS
__global__ void __launch_bounds__(kThreads, 16)
#else
__global__ void
#endif
    Accelerations(const float* bodies, float* out, int sources) {
  const int first = blockIdx.x * kThreads * kBodies + threadIdx.x;
  float4 mine[kBodies];
  float3 sums[kBodies] = {};
  for (int b = 0; b < kBodies; ++b) mine[b] = BodyOf(bodies, first + b * kThreads);
#ifdef SHARED_TILE
  __shared__ float4 tile[kThreads];
  for (int start = 0; start < sources; start += kThreads) {
    tile[threadIdx.x] = BodyOf(bodies, start + threadIdx.x);
    __syncthreads();
    const int end = kThreads;
    const auto body = [&](int i) { return tile[i]; };
#else
  {
    const int end = sources;
    const auto body = [&](int i) { return BodyOf(bodies, i); };
#endif
#ifdef UNROLL
#pragma unroll 8
#else
#pragma unroll 1
#endif
    for (int i = 0; i < end; ++i) {
      const float4 other = body(i);
      for (int b = 0; b < kBodies; ++b) Attract(mine[b], other, sums[b]);
    }
#ifdef SHARED_TILE
    __syncthreads();
#endif
  }
  for (int b = 0; b < kBodies; ++b) {
    float* to = out + 3 * (first + b * kThreads);
    to[0] = sums[b].x;
    to[1] = sums[b].y;
    to[2] = sums[b].z;
  }
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  const int n = static_cast<int>(warpledger_parameter(call, "n"));
  Accelerations<<<n / (kThreads * kBodies), kThreads, 0, static_cast<cudaStream_t>(call->stream)>>>(
      static_cast<const float*>(call->inputs[0]), static_cast<float*>(call->outputs[0]),
      static_cast<int>(warpledger_parameter(call, "sources")));
  return cudaGetLastError();
}
