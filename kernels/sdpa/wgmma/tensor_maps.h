// Host side of the wgmma family: tensor maps and launch geometry.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_TENSOR_MAPS_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_TENSOR_MAPS_H_

#include <cuda_runtime_api.h>

#include "kernels/sdpa/forward_params.h"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// The tensor map of (heads, seq, head_dim) with boxes of 128 bytes of a row by `rows`, 128-byte
// swizzle. Of 16-bit elements, or of bytes. What L2 fetches of a miss is `promotion`.
cudaError_t EncodeTensorMap(const void* tensor, int head_dim, int seq, int64_t heads, int rows,
                            CUtensorMap* map,
                            CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                            CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B);

// What the maps of K and V in a launch's parameters (WgmmaParams, or what derives from it) have L2
// fetch from DRAM at a time: "no L2 promotion", "L2 promotion 64 B", "… 128 B", "… 256 B", or that
// the two differ. Read from the maps' own bits, of which the driver's encoder shows which they are;
// "L2 promotion unknown" where it doesn't.
const char* DescribePromotion(const void* params);

// Fills in everything of `params` but the counter of the dynamic schedule, and says
// how many CTAs to launch, in whole clusters: as many as there are SMs, or tiles if fewer; one
// per tile with tile_per_cta. PrepareRest counts again where CTAs share a tile's keys.
// cudaErrorInvalidValue where the driver refuses a tensor (a pointer that is not
// 16-byte aligned), cudaErrorNotSupported where it has no tensor maps.
cudaError_t PrepareWgmmaLaunch(const ForwardParams& forward, const WgmmaShape& shape,
                               WgmmaParams* params, unsigned* ctas);

// What else the kernel takes, O's map, scales, K's and V's rows, how keys are shared, but no memory
// of the instance's; call it after PrepareWgmmaLaunch.
inline cudaError_t PrepareRest(const ForwardParams&, const WgmmaShape&, WgmmaParams*, unsigned*) {
  return cudaSuccess;
}
cudaError_t PrepareRest(const ForwardParams& forward, const WgmmaShape& shape,
                        WgmmaStoreParams* params, unsigned* ctas);
cudaError_t PrepareRest(const ForwardParams& forward, const WgmmaShape& shape,
                        WgmmaFp8Params* params, unsigned* ctas);
cudaError_t PrepareRest(const ForwardParams& forward, const WgmmaShape& shape,
                        WgmmaCopyParams* params, unsigned* ctas);
cudaError_t PrepareRest(const ForwardParams& forward, const WgmmaShape& shape,
                        WgmmaDecodeParams* params, unsigned* ctas);

// Where CTAs that share keys are a cluster: as many share them as clusters of that size fit the
// GPU at once, so that none waits for another's end.
inline cudaError_t PlaceClusters(const void*, const WgmmaShape&, WgmmaParams*, unsigned*) {
  return cudaSuccess;
}
cudaError_t PlaceClusters(const void* kernel, const WgmmaShape& shape, WgmmaDecodeParams* params,
                          unsigned* ctas);

// CTAs of a cluster.
inline int ClusterOf(const WgmmaShape& shape, const WgmmaParams&) { return shape.cluster; }
inline int ClusterOf(const WgmmaShape& shape, const WgmmaDecodeParams& params) {
  return shape.cluster_join ? params.splits : shape.cluster;
}

// Launches `kernel` over `ctas` CTAs in clusters of `cluster`. LaunchBehind launches what follows
// it: a kernel that joins parts, where there are any.
//   params: what the kernel takes
cudaError_t LaunchWgmma(const void* kernel, const WgmmaShape& shape, unsigned ctas, int cluster,
                        void* params, cudaStream_t stream);
inline cudaError_t LaunchBehind(const WgmmaParams&, const WgmmaShape&, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t LaunchBehind(const WgmmaDecodeParams& params, const WgmmaShape& shape,
                         cudaStream_t stream);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_TENSOR_MAPS_H_
