// SPDX-License-Identifier: Apache-2.0
// Question: how many stages of asynchronous copies does a CTA need to stream data
// from DRAM or L2 through shared memory, how much of the wait is left exposed, and
// what does a stage cost in occupancy?
//
// Mechanism: cp.async writes shared memory past the registers, so that a thread
// can have several tiles on their way while it works on another. With S stages,
// S tiles are in flight while the CTA waits and S - 1 while it computes. Loads
// through registers keep at most one tile in flight, at the price of its registers.
// On sm_90 one thread can order a whole tile by cp.async.bulk (TMA), which an
// mbarrier reports.
//
// Formula: Little's law, bandwidth per SM = min(CTAs x S x tile / latency, rate of
// the level). Bandwidth = bytes of a launch / its time, one CTA per SM, or as many
// as fit. Exposed wait = slope of the cycles between reaching and leaving the wait
// over the number of tiles, one CTA alone, data in L2; its floor is what the two
// clock reads cost. Occupancy = CTAs per SM that the driver allows for S x tile bytes.
//
// Expected on H200: at 600 to 800 cycles of latency under load, DRAM's 4.3 TB/s are
// 16.5 B/clk/SM, so 10 to 13 KiB must be in flight per SM: two stages of 8 KiB do
// without arithmetic, three with, and further stages give nothing. With all CTAs
// that fit, one stage does. Arithmetic of 64 FMAs per 16 bytes takes 256 cycles
// per tile and hides the L2 latency of 263 cycles (Luo et al., arXiv 2402.13499)
// from two stages on. TMA takes some 100 cycles longer than a load, so its first
// stages are slower.
//
// Falsified if: bandwidth from DRAM still rises by more than 3% past four stages;
// if one stage at full occupancy stays more than 5% below eight stages; if the
// exposed wait doesn't fall to the clock's floor with arithmetic and three stages;
// or if loads through registers with prefetch match four stages, in which case the
// registers, not the asynchrony, were the matter.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/random.h"
#include "kernels/common/status_macros.h"
#include "micro/cp_async_depth.cuh"
#include "micro/harness/microbenchmark.h"
#include "micro/memory_inputs.cuh"

namespace warpledger::cp_async_depth {
namespace {

constexpr int64_t kMiB = 1024 * 1024;

std::string NameOf(const Shape& shape) {
  std::string name;
  switch (shape.copy) {
    case Copy::kAsyncCg16:
      name = "cg16";
      break;
    case Copy::kAsyncCa16:
      name = "ca16";
      break;
    case Copy::kAsyncCa8:
      name = "ca8";
      break;
    case Copy::kAsyncCa4:
      name = "ca4";
      break;
    case Copy::kRegisters:
      name = "registers";
      break;
    case Copy::kRegistersPrefetch:
      name = "registers_prefetch";
      break;
    case Copy::kBulk:
      name = "bulk";
      break;
  }
  if (!IsRegisters(shape.copy)) absl::StrAppend(&name, "_stages_", shape.stages);
  absl::StrAppend(&name, "_fma_", shape.fmas);
  return name;
}

std::vector<harness::Evidence> EvidenceOf(const Shape& shape) {
  const int pieces = kThreadBytes / CopyBytes(shape.copy);
  std::vector<harness::Evidence> evidence;
  switch (shape.copy) {
    case Copy::kAsyncCg16:
      evidence = {{.sass = R"(^LDGSTS\.E\.BYPASS\.(LTC128B\.)?128$)", .at_least = pieces}};
      break;
    case Copy::kAsyncCa16:
      evidence = {{.sass = R"(^LDGSTS\.E\.(LTC128B\.)?128$)", .at_least = pieces}};
      break;
    case Copy::kAsyncCa8:
      evidence = {{.sass = R"(^LDGSTS\.E\.(LTC128B\.)?64$)", .at_least = pieces}};
      break;
    case Copy::kAsyncCa4:
      evidence = {{.sass = R"(^LDGSTS\.E(\.LTC128B)?$)", .at_least = pieces}};
      break;
    case Copy::kRegisters:
    case Copy::kRegistersPrefetch:
      evidence = {{.sass = R"(^STS\.128$)", .at_least = pieces},
                  {.sass = "^LDGSTS", .at_least = 0, .at_most = 0}};
      break;
    case Copy::kBulk:
      evidence = {{.sass = "^UBLKCP", .at_least = 1, .min_cc = 90}};
      break;
  }
  // Tiles are read back from shared memory, and with arithmetic there is that.
  if (shape.copy != Copy::kBulk) {
    evidence.push_back({.sass = "^LDS", .at_least = pieces});
    if (shape.fmas > 0) {
      evidence.push_back({.sass = "^FFMA", .at_least = kThreadBytes / 16 * shape.fmas});
    }
  }
  return evidence;
}

std::vector<harness::Parameter> ParametersOf(const Shape& shape) {
  return {{"stages", static_cast<double>(shape.stages)},
          {"tile_bytes", static_cast<double>(kTileBytes)},
          {"bytes_in_flight_per_cta", static_cast<double>(SmemBytes(shape))},
          {"fmas_per_16_bytes", static_cast<double>(shape.fmas)},
          {"bytes_per_copy",
           static_cast<double>(shape.copy == Copy::kBulk ? kTileBytes : CopyBytes(shape.copy))}};
}

int MinCc(const Shape& shape) { return shape.copy == Copy::kBulk ? 90 : 80; }

// CTAs of the kernel that an SM holds.
absl::StatusOr<int> CtasPerSm(const void* kernel, int smem_bytes) {
  RETURN_IF_CUDA_ERROR(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem_bytes),
      absl::StrCat("asking for ", smem_bytes, " B of shared memory"));
  int ctas = 0;
  RETURN_IF_CUDA_ERROR(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, kernel, kThreads, smem_bytes),
      "asking for the occupancy");
  return ctas;
}

enum class Level { kDram, kL2 };
enum class Grid { kOneCtaPerSm, kFull };

// What a launch reads, and how.
struct StreamPlan {
  const void* kernel = nullptr;  // a StreamKernel
  int smem_bytes = 0;
  Grid grid = Grid::kOneCtaPerSm;
  int64_t footprint_bytes = 0;  // a power of two
  int64_t read_bytes = 0;
};

absl::StatusOr<harness::LaunchFunction> SetUpStream(const StreamPlan& plan,
                                                    const harness::MicroDevice& device) {
  const absl::StatusOr<int> fits = CtasPerSm(plan.kernel, plan.smem_bytes);
  if (!fits.ok()) return fits.status();
  const int ctas = device.facts.sm_count * (plan.grid == Grid::kFull ? *fits : 1);
  // The last 256 bytes are the sink.
  absl::StatusOr<std::shared_ptr<DeviceBuffer>> buffer =
      memory_inputs::SharedRandomWords(plan.footprint_bytes + 256, /*floats=*/true);
  if (!buffer.ok()) return buffer.status();
  auto* data = static_cast<unsigned char*>((*buffer)->data());
  const StreamArgs args = {.data = data,
                           .tiles = static_cast<uint32_t>(plan.read_bytes / kTileBytes),
                           .mask = static_cast<uint32_t>(plan.footprint_bytes / kTileBytes - 1),
                           .sink = reinterpret_cast<uint32_t*>(data + plan.footprint_bytes)};
  return [buffer = *buffer, args, plan, ctas](int index, cudaStream_t stream) {
    StreamArgs mine = args;
    mine.sink_key = static_cast<uint32_t>(SplitMix64(index).Next());
    void* arguments[] = {&mine};
    return CudaStatus(cudaLaunchKernel(plan.kernel, dim3(ctas), dim3(kThreads), arguments,
                                       plan.smem_bytes, stream),
                      "launching a stream through shared memory");
  };
}

void AddBandwidth(const void* kernel, const Shape& shape, Level level, Grid grid) {
  const bool dram = level == Level::kDram;
  const StreamPlan plan = {.kernel = kernel,
                           .smem_bytes = SmemBytes(shape),
                           .grid = grid,
                           .footprint_bytes = (dram ? 2048 : 16) * kMiB,
                           .read_bytes = (dram ? 2048 : 1024) * kMiB};
  std::vector<harness::Parameter> parameters = ParametersOf(shape);
  parameters.push_back({"footprint_bytes", static_cast<double>(plan.footprint_bytes)});
  harness::Limit limit;  // by assignment: a conditional initialiser below crashes nvcc 13.0
  if (dram) limit.resource = harness::Resource::kDramBytesPerSecond;
  harness::Add(harness::TimeCase{
      .about = {.name =
                    absl::StrCat("cp_async_depth/", dram ? "dram_" : "l2_",
                                 grid == Grid::kFull ? "full_" : "", NameOf(shape), "/bandwidth"),
                .measures = absl::StrCat("bytes brought through shared memory per nanosecond, ",
                                         grid == Grid::kFull ? "all CTAs that fit" : "one CTA",
                                         " on each SM"),
                .unit = "GB/s",
                .min_cc = MinCc(shape),
                .limit = limit,
                .peak_case = dram ? "global_memory/dram_16B/bandwidth"
                                  : "global_memory/read_16MiB/bandwidth",
                .evidence = EvidenceOf(shape),
                .parameters = parameters},
      .units = static_cast<double>(plan.read_bytes),
      .rate = true,
      .setup = [plan](const harness::MicroDevice& device) { return SetUpStream(plan, device); },
      .kernels = {kernel}});
}

void AddExposedWait(harness::CycleKernel kernel, const Shape& shape) {
  constexpr int64_t kFootprint = 2 * kMiB;
  harness::Add(harness::CycleCase{
      .about = {.name = absl::StrCat("cp_async_depth/", NameOf(shape), "/exposed_wait"),
                .measures = "cycles that a CTA waits for a tile of 8 KiB in L2, two clock reads "
                            "included",
                .unit = "cycles",
                .min_cc = MinCc(shape),
                .evidence = EvidenceOf(shape),
                .parameters = ParametersOf(shape)},
      .measure = harness::Measure::kLatency,
      .kernel = kernel,
      .units_per_iteration = 1,
      .threads = kThreads,
      .dynamic_smem_bytes = SmemBytes(shape),
      .make_data = [](const harness::MicroDevice&) {
        return memory_inputs::RandomWords(kFootprint, /*floats=*/true);
      }});
}

void AddOccupancy(const void* kernel, const Shape& shape) {
  const int smem_bytes = SmemBytes(shape);
  harness::Add(harness::ValueCase{
      .about = {.name = absl::StrCat("cp_async_depth/stages_", shape.stages, "/ctas_per_sm"),
                .measures = "CTAs of 128 threads that an SM holds with these stages of 8 KiB",
                .unit = "CTAs/SM",
                .parameters = ParametersOf(shape)},
      .compute = [=](const harness::MicroDevice&) -> absl::StatusOr<double> {
        const absl::StatusOr<int> ctas = CtasPerSm(kernel, smem_bytes);
        if (!ctas.ok()) return ctas.status();
        return static_cast<double>(*ctas);
      }});
}

constexpr int kArithmetic = 64;  // FMAs per 16 bytes: 256 cycles per tile of a CTA alone

template <Copy kCopy, int kStages, int kFmas>
const void* StreamKernelOf() {
  return reinterpret_cast<const void*>(&StreamKernel<kCopy, kStages, kFmas>);
}

// All figures of a copy but the occupancy.
template <Copy kCopy, int kStages>
void AddStream() {
  const Shape bare = {.copy = kCopy, .stages = kStages};
  const Shape busy = {.copy = kCopy, .stages = kStages, .fmas = kArithmetic};
  const void* bare_kernel = StreamKernelOf<kCopy, kStages, 0>();
  const void* busy_kernel = StreamKernelOf<kCopy, kStages, kArithmetic>();
  for (const Level level : {Level::kDram, Level::kL2}) {
    AddBandwidth(bare_kernel, bare, level, Grid::kOneCtaPerSm);
    AddBandwidth(busy_kernel, busy, level, Grid::kOneCtaPerSm);
  }
  AddBandwidth(busy_kernel, busy, Level::kDram, Grid::kFull);
  AddExposedWait(ExposedWaitKernel<kCopy, kStages, 0>, bare);
  AddExposedWait(ExposedWaitKernel<kCopy, kStages, kArithmetic>, busy);
}

template <int kStages>
void AddDepth() {
  AddStream<Copy::kAsyncCg16, kStages>();
  AddOccupancy(StreamKernelOf<Copy::kAsyncCg16, kStages, 0>(),
               {.copy = Copy::kAsyncCg16, .stages = kStages});
}

// Width and path of a copy, at a depth that isn't the limit.
template <Copy kCopy>
void AddWidth() {
  constexpr int kStages = 4;
  const Shape shape = {.copy = kCopy, .stages = kStages};
  for (const Level level : {Level::kDram, Level::kL2}) {
    AddBandwidth(StreamKernelOf<kCopy, kStages, 0>(), shape, level, Grid::kOneCtaPerSm);
  }
}

}  // namespace

WARPLEDGER_MICRO(cp_async_depth) {
  AddDepth<1>();
  AddDepth<2>();
  AddDepth<3>();
  AddDepth<4>();
  AddDepth<5>();
  AddDepth<6>();
  AddDepth<7>();
  AddDepth<8>();
  AddStream<Copy::kRegisters, 1>();
  AddStream<Copy::kRegistersPrefetch, 1>();
  AddWidth<Copy::kAsyncCa16>();
  AddWidth<Copy::kAsyncCa8>();
  AddWidth<Copy::kAsyncCa4>();
  AddStream<Copy::kBulk, 1>();
  AddStream<Copy::kBulk, 2>();
  AddStream<Copy::kBulk, 4>();
  AddStream<Copy::kBulk, 8>();
}

}  // namespace warpledger::cp_async_depth
