// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/limits.h"

namespace warpledger::harness {
namespace {

constexpr char kGuide[] =
    "CUDA C++ Programming Guide, throughput of native arithmetic instructions";
constexpr char kBanks[] = "CUDA C++ Programming Guide: 32 banks of 4 bytes per clock";
constexpr char kIssueSource[] =
    "CUDA C++ Programming Guide: four schedulers, one warp instruction each per clock";
constexpr char kTensorSource[] =
    "datasheet of the A100 (312 TFLOP/s, 108 SMs, 1410 MHz), L4 (121, 58, 2040) and H100 SXM "
    "(989.4, 132, 1830), rounded to a power of two per SM and clock";
constexpr char kFp8Source[] =
    "datasheet of the L4 (242 TFLOP/s, 58 SMs, 2040 MHz) and H100 SXM (1979, 132, 1830), rounded "
    "to a power of two per SM and clock";

// Per clock and SM; 0: the architecture hasn't got it.
struct Row {
  Resource resource;
  double cc80, cc89, cc90;
  const char* source;
};
constexpr Row kRows[] = {
    {Resource::kFp32Fma, 64, 128, 128, kGuide},
    {Resource::kFp16Fma, 256, 128, 256, kGuide},
    {Resource::kInt32Add, 64, 64, 64, kGuide},
    {Resource::kMufu, 16, 16, 16, kGuide},
    {Resource::kShuffle, 32, 32, 32, kGuide},
    {Resource::kWarpReduce, 16, 16, 16, kGuide},
    {Resource::kIssue, 128, 128, 128, kIssueSource},
    {Resource::kSharedBytes, 128, 128, 128, kBanks},
    {Resource::kTensorFp16Flop, 2048, 1024, 4096, kTensorSource},
    {Resource::kTensorFp8Flop, 0, 2048, 8192, kFp8Source},
};

}  // namespace

std::optional<LimitFigure> FindLimit(const Limit& limit, int cc, double dram_bytes_per_s) {
  if (limit.own > 0) return LimitFigure{limit.own, limit.own_source};
  if (limit.resource == Resource::kDramBytesPerSecond) {
    if (dram_bytes_per_s <= 0) return std::nullopt;
    return LimitFigure{dram_bytes_per_s / 1e9 * limit.scale,
                       "memory clock and bus width as the driver reports them"};
  }
  for (const Row& row : kRows) {
    if (row.resource != limit.resource) continue;
    const double rate = cc == 80 ? row.cc80 : cc == 89 ? row.cc89 : cc == 90 ? row.cc90 : 0;
    if (rate <= 0) return std::nullopt;
    return LimitFigure{rate * limit.scale, row.source};
  }
  return std::nullopt;
}

}  // namespace warpledger::harness
