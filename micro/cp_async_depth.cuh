// SPDX-License-Identifier: Apache-2.0
// The kernels of cp_async_depth.cu, which says what they are for: a stream of tiles through shared
// memory, by each way to copy and each number of stages.

#ifndef WARPLEDGER_MICRO_CP_ASYNC_DEPTH_CUH_
#define WARPLEDGER_MICRO_CP_ASYNC_DEPTH_CUH_

#include <cstdint>

#include "kernels/common/ptx.cuh"
#include "kernels/common/tma.cuh"
#include "micro/harness/cycles.cuh"

namespace warpledger::cp_async_depth {
namespace {

using harness::CycleArgs;

constexpr int kThreads = 128;
constexpr int kTileBytes = 8 * 1024;  // a (64, 64) fp16 tile of K or V
constexpr int kThreadBytes = kTileBytes / kThreads;

enum class Copy {
  kAsyncCg16,  // cp.async.cg, 16 bytes: past L1
  kAsyncCa16,  // cp.async.ca: through L1
  kAsyncCa8,
  kAsyncCa4,
  kRegisters,          // load, store to shared memory, use
  kRegistersPrefetch,  // the same, with the next tile's loads ahead of the use
  kBulk,               // cp.async.bulk by one thread
};

// What a kernel is compiled for.
struct Shape {
  Copy copy = Copy::kAsyncCg16;
  int stages = 1;  // 1 where the copy goes through registers
  int fmas = 0;    // per 16 bytes of a tile, a multiple of 4
};

constexpr bool IsAsync(Copy copy) { return copy <= Copy::kAsyncCa4; }
constexpr bool IsRegisters(Copy copy) {
  return copy == Copy::kRegisters || copy == Copy::kRegistersPrefetch;
}
constexpr int CopyBytes(Copy copy) {  // per thread and instruction
  return copy == Copy::kAsyncCa4 ? 4 : copy == Copy::kAsyncCa8 ? 8 : 16;
}
constexpr int SmemBytes(const Shape& shape) { return shape.stages * kTileBytes; }

#ifdef __CUDA_ARCH__
constexpr int kArch = __CUDA_ARCH__;
#else
constexpr int kArch = 0;
#endif

// --- instructions ----------------------------------------------------------------

// cp.async.ca (PTX ISA, "cp.async"; sm_80): 4, 8 or 16 bytes through L1.
template <int kBytes>
__device__ void CpAsyncCa(void* smem, const void* global) {
  const auto dst = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(dst), "l"(global), "n"(kBytes)
               : "memory");
}

// Elsewhere than on sm_90 bulk copies trap: their cases have min_cc 90.
__device__ void InitBarriers(uint64_t* barriers, int count) {
  if constexpr (kArch >= 900) {
    for (int i = 0; i < count; ++i) ptx::MbarrierInit(ptx::SharedAddress(barriers + i), 1);
    ptx::MbarrierInitFence();
  } else {
    __trap();
  }
}

// One thread's order of `kTileBytes` bytes, which arrive at `barrier`.
__device__ void BulkCopyTile(void* smem, const void* global, uint64_t* barrier) {
  if constexpr (kArch >= 900) {
    ptx::MbarrierArriveExpectBytes(ptx::SharedAddress(barrier), kTileBytes);
    ptx::BulkLoad(ptx::SharedAddress(smem), global, kTileBytes, ptx::SharedAddress(barrier));
  } else {
    __trap();
  }
}

// --- the stream --------------------------------------------------------------------

template <int kBytes>
struct VectorOf;
template <>
struct VectorOf<4> {
  using Type = uint32_t;
};
template <>
struct VectorOf<8> {
  using Type = uint2;
};
template <>
struct VectorOf<16> {
  using Type = uint4;
};

// Which tiles a CTA reads: `count` of them, the i-th at data + ((first + i * step) &
// mask) * kTileBytes.
struct Tiles {
  const unsigned char* data = nullptr;
  uint32_t first = 0;
  uint32_t step = 1;
  uint32_t count = 0;
  uint32_t mask = 0;
};

// A clock around each wait, or none.
struct NoClock {
  __device__ void Reach() {}
  __device__ void Leave() {}
};
struct WaitClock {
  int64_t reached = 0;
  int64_t waited = 0;
  __device__ void Reach() { reached = harness::ReadClock(); }
  __device__ void Leave() { waited += harness::ReadClock() - reached; }
};

// Brings a CTA's tiles through the ring of kShape.stages tiles and computes on each.
// A thread uses the very pieces that it copied, so that no CTA barrier hides in the
// figures; a bulk copy, which is nobody's own, needs one before its slot is reused.
template <Shape kShape, typename Clock>
class Stream {
 public:
  __device__ Stream(unsigned char* ring, uint64_t* barriers, const Tiles& tiles, Clock& clock)
      : ring_(ring), barriers_(barriers), tiles_(tiles), clock_(clock) {
    for (int i = 0; i < 4; ++i) sums_[i] = 1.0f + static_cast<float>(threadIdx.x) * 0x1p-8f;
  }

  // 32 bits that depend on every byte.
  __device__ uint32_t Run() {
    if constexpr (IsRegisters(kShape.copy)) {
      RunThroughRegisters();
    } else {
      RunAsync();
    }
    for (const float sum : sums_) folded_ = folded_ * 31 + __float_as_uint(sum);
    return folded_;
  }

 private:
  static constexpr int kBytes = CopyBytes(kShape.copy);
  static constexpr int kPieces = kThreadBytes / kBytes;
  using Vector = typename VectorOf<kBytes>::Type;

  __device__ const unsigned char* Source(uint32_t i) const {
    return tiles_.data + int64_t{(tiles_.first + i * tiles_.step) & tiles_.mask} * kTileBytes;
  }
  __device__ static int Piece(int p) {  // its byte offset in a tile
    return (p * kThreads + static_cast<int>(threadIdx.x)) * kBytes;
  }

  __device__ void RunAsync() {
    uint32_t slot = 0;
    uint32_t parity = 0;
    for (int s = 0; s < kShape.stages; ++s) Fetch(s, s);
#pragma unroll 1
    for (uint32_t i = 0; i < tiles_.count; ++i) {
      clock_.Reach();
      if constexpr (kShape.copy == Copy::kBulk) {
        ptx::MbarrierWait(ptx::SharedAddress(barriers_ + slot), parity);
      } else {
        ptx::CpAsyncWait<kShape.stages - 1>();
      }
      clock_.Leave();
      Use(ring_ + slot * kTileBytes);
      if constexpr (kShape.copy == Copy::kBulk) __syncthreads();
      Fetch(slot, i + kShape.stages);
      if (++slot == kShape.stages) {
        slot = 0;
        parity ^= 1;
      }
    }
    if constexpr (IsAsync(kShape.copy)) ptx::CpAsyncWait<0>();
  }

  // Past the last tile a group is empty: the count that the wait goes by stays right.
  __device__ void Fetch(uint32_t slot, uint32_t i) {
    unsigned char* to = ring_ + slot * kTileBytes;
    if constexpr (kShape.copy == Copy::kBulk) {
      if (i < tiles_.count && threadIdx.x == 0) BulkCopyTile(to, Source(i), barriers_ + slot);
    } else {
      if (i < tiles_.count) {
        const unsigned char* from = Source(i) + Piece(0);
        to += Piece(0);
#pragma unroll
        for (int p = 0; p < kPieces; ++p) {
          constexpr int kStride = kThreads * kBytes;
          if constexpr (kShape.copy == Copy::kAsyncCg16) {
            ptx::CpAsync16(to + p * kStride, from + p * kStride, /*valid=*/true);
          } else {
            CpAsyncCa<kBytes>(to + p * kStride, from + p * kStride);
          }
        }
      }
      ptx::CpAsyncCommit();
    }
  }

  __device__ void RunThroughRegisters() {
    constexpr bool kPrefetch = kShape.copy == Copy::kRegistersPrefetch;
    Vector pieces[kPieces];
    if constexpr (kPrefetch) Load(pieces, 0);
#pragma unroll 1
    for (uint32_t i = 0; i < tiles_.count; ++i) {
      if constexpr (!kPrefetch) Load(pieces, i);
      clock_.Reach();
#pragma unroll
      for (int p = 0; p < kPieces; ++p) {
        *reinterpret_cast<Vector*>(ring_ + Piece(p)) = pieces[p];
      }
      clock_.Leave();
      if constexpr (kPrefetch) Load(pieces, min(i + 1, tiles_.count - 1));
      // Keeps the compiler from using the registers in place of what was stored.
      __syncwarp();
      Use(ring_);
      __syncwarp();
    }
  }

  __device__ void Load(Vector (&pieces)[kPieces], uint32_t i) {
    const auto* from = reinterpret_cast<const Vector*>(Source(i) + Piece(0));
#pragma unroll
    for (int p = 0; p < kPieces; ++p) pieces[p] = __ldcg(from + p * kThreads);
  }

  __device__ void Use(const unsigned char* tile) {
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const Vector piece = *reinterpret_cast<const Vector*>(tile + Piece(p));
      const auto* words = reinterpret_cast<const uint32_t*>(&piece);
#pragma unroll
      for (int w = 0; w < kBytes / 4; ++w) {
        if constexpr (kShape.fmas == 0) {
          folded_ ^= words[w];
        } else {
          // Alternating signs: the sum of floats in [1, 2) stays small.
          float& sum = sums_[(p * kBytes / 4 + w) % 4];
#pragma unroll
          for (int f = 0; f < kShape.fmas / 4; ++f) {
            sum = fmaf(__uint_as_float(words[w]), 0.5f, -sum);
          }
        }
      }
    }
  }

  unsigned char* ring_;  // (stages, kTileBytes)
  uint64_t* barriers_;   // (stages), of a bulk copy only
  Tiles tiles_;
  Clock& clock_;
  uint32_t folded_ = 0;
  float sums_[4];
};

// Barriers in shared memory, one for each stage of a bulk copy; null for others.
template <Shape kShape>
__device__ uint64_t* MakeBarriers() {
  if constexpr (kShape.copy == Copy::kBulk) {
    __shared__ uint64_t barriers[kShape.stages];
    if (threadIdx.x == 0) InitBarriers(barriers, kShape.stages);
    __syncthreads();
    return barriers;
  } else {
    return nullptr;
  }
}

struct StreamArgs {
  const unsigned char* data = nullptr;
  uint32_t tiles = 0;  // read by the launch
  uint32_t mask = 0;   // tiles of the footprint, a power of two, minus 1
  uint32_t sink_key = 0;
  uint32_t* sink = nullptr;
};

// All tiles, dealt to the CTAs in turn. (Kernels take the parts of a Shape: host code
// for a kernel template with an argument of class type is beyond nvcc 13.0.)
template <Copy kCopy, int kStages, int kFmas>
__global__ void __launch_bounds__(kThreads) StreamKernel(StreamArgs args) {
  constexpr Shape kShape = {.copy = kCopy, .stages = kStages, .fmas = kFmas};
  extern __shared__ uint4 stream_ring[];
  uint64_t* barriers = MakeBarriers<kShape>();
  const uint32_t count =
      args.tiles > blockIdx.x ? (args.tiles - blockIdx.x - 1) / gridDim.x + 1 : 0;
  NoClock clock;
  Stream<kShape, NoClock> stream(reinterpret_cast<unsigned char*>(stream_ring), barriers,
                                 {.data = args.data,
                                  .first = blockIdx.x,
                                  .step = gridDim.x,
                                  .count = count,
                                  .mask = args.mask},
                                 clock);
  const uint32_t result = stream.Run();
  if (result == args.sink_key) *args.sink = result;
}

// One CTA reads args.iterations tiles that it has brought into L2 before. Its stamps
// hold the time that a warp waited, not when it started and stopped. (The clocks
// around it all tell the test of the machine code where to look.)
template <Copy kCopy, int kStages, int kFmas>
__global__ void __launch_bounds__(kThreads) ExposedWaitKernel(CycleArgs args) {
  constexpr Shape kShape = {.copy = kCopy, .stages = kStages, .fmas = kFmas};
  extern __shared__ uint4 stream_ring[];
  uint64_t* barriers = MakeBarriers<kShape>();
  const auto* data = static_cast<const unsigned char*>(args.data);
  uint32_t folded = 0;
  for (int64_t i = threadIdx.x * 16; i < args.data_bytes; i += kThreads * 16) {
    folded ^= __ldcg(reinterpret_cast<const uint32_t*>(data + i));
  }
  const auto footprint = static_cast<uint32_t>(args.data_bytes / kTileBytes);
  WaitClock clock;
  Stream<kShape, WaitClock> stream(reinterpret_cast<unsigned char*>(stream_ring), barriers,
                                   {.data = data,
                                    .first = args.seed % footprint,
                                    .count = static_cast<uint32_t>(args.iterations),
                                    .mask = footprint - 1},
                                   clock);
  const int64_t start = harness::StartCycles();
  const uint32_t result = stream.Run();
  const int64_t total = harness::ReadClock() - start;
  if (threadIdx.x % 32 == 0) {
    args.stamps[blockIdx.x * (kThreads / 32) + threadIdx.x / 32] =
        harness::WarpStamp{0, clock.waited, harness::ReadSmId(), blockIdx.x};
  }
  harness::KeepAlive(args, folded ^ result ^ static_cast<uint32_t>(total ^ (total >> 32)));
}

}  // namespace
}  // namespace warpledger::cp_async_depth

#endif  // WARPLEDGER_MICRO_CP_ASYNC_DEPTH_CUH_
