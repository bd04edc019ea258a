// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/resident/launch.h"

#include <cstdint>

#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/shared/kernel_launch.h"
#include "kernels/sdpa/shared/tensor_maps.h"
#include "kernels/sdpa/shared/warpgroup.h"
#include "kernels/sdpa/shared/wgmma_params.h"

namespace warpledger::sdpa {

dim3 ResidentGrid(const ForwardParams& forward, const ResidentShape& shape) {
  const int tiles = (forward.seq_q + kRowsPerConsumer - 1) / kRowsPerConsumer;
  return dim3(static_cast<unsigned>(tiles * shape.cluster),
              static_cast<unsigned>(forward.heads_q / forward.heads_kv),
              static_cast<unsigned>(forward.batch * forward.heads_kv));
}

// With its cluster and, where the shape asks for it, as a programmatic dependent of the kernel
// before it in the stream.
cudaError_t LaunchResident(const KernelInstance& instance, const LaunchParams& forward, unsigned,
                           const LaunchMemory* memory, cudaStream_t stream) {
  const ResidentShape shape = ResidentShapeOf(instance.config);
  const void* kernel = nullptr;
  WgmmaParams params;
  const TensorLayouts layouts =
      memory != nullptr ? memory->layouts : ContiguousLayouts(forward, shape.head_dim);
  const auto encode = [&](const void* tensor, const TensorStrides& strides, int heads, int seq,
                          int rows, CUtensorMap* map) {
    return EncodeTensorMap(MappedWith(strides, tensor, shape.head_dim, seq, forward.batch, heads),
                           rows, map);
  };
  const int chunk = ChunkKeys(shape);
  cudaError_t error = instance.code->GetKernel(&kernel);
  if (error != cudaSuccess) return error;
  error = encode(forward.q, layouts.q, forward.heads_q, forward.seq_q, kRowsPerConsumer, &params.q);
  if (error != cudaSuccess) return error;
  error = encode(forward.k, layouts.k, forward.heads_kv, forward.seq_kv, chunk, &params.k);
  if (error != cudaSuccess) return error;
  error = encode(forward.v, layouts.v, forward.heads_kv, forward.seq_kv, chunk, &params.v);
  if (error != cudaSuccess) return error;
  params.o = forward.o;
  params.lse = forward.lse;
  params.heads = forward.batch * forward.heads_q;
  params.group_size = forward.heads_q / forward.heads_kv;
  params.seq_q = forward.seq_q;
  params.seq_kv = forward.seq_kv;
  params.softmax_scale = forward.softmax_scale;

  KernelLaunch launch(ResidentGrid(forward, shape), Threads(shape), MakeSmem(shape).bytes, stream);
  if (shape.cluster > 1) launch.InClusters(shape.cluster);
  if (shape.dependent_launch) launch.BesidePriorKernel();
  return launch.Run(kernel, &params);
}

}  // namespace warpledger::sdpa
