// SPDX-License-Identifier: Apache-2.0
// What the hardware can't exceed, per clock and SM, and where that is written.
//
//   std::optional<LimitFigure> peak = FindLimit(limit, /*cc=*/90);
//   if (peak) percent = 100 * measured / peak->value;
//
// The table knows compute capabilities 8.0, 8.9 and 9.0; for others, and for
// Resource::kNone, FindLimit() is empty, and a report shows no percentage rather
// than a guessed one.

#ifndef WARPLEDGER_MICRO_HARNESS_LIMITS_H_
#define WARPLEDGER_MICRO_HARNESS_LIMITS_H_

#include <optional>
#include <string>

namespace warpledger::harness {

enum class Resource {
  kNone,
  kFp32Fma,             // results: one FMA is one result
  kFp16Fma,             // half results: one HFMA2 lane is two
  kInt32Add,            // results
  kMufu,                // results: ex2, rcp, rsqrt, lg2, sin, cos
  kShuffle,             // lanes
  kWarpReduce,          // lanes: redux.sync
  kIssue,               // thread instructions of any kind: 4 schedulers x 32 lanes
  kSharedBytes,         // bytes, loads and stores together
  kTensorFp16Flop,      // dense fp16 or bf16 with fp32 accumulation, FLOP = 2 per FMA
  kTensorFp8Flop,       // dense e4m3/e5m2 with fp32 accumulation
  kDramBytesPerSecond,  // TimeCase: bytes, from the GPU's memory clock and bus width
};

// `scale` is what the case's unit holds of the resource's: a case that counts exp
// where each costs two MUFU results has scale 0.5. Where no resource of the table
// fits, `own` with `own_source` stands instead, in the case's unit.
struct Limit {
  Resource resource = Resource::kNone;
  double scale = 1;
  double own = 0;
  std::string own_source = {};
};

struct LimitFigure {
  double value = 0;  // in the case's unit: per clock and SM, or as `own` says
  std::string source = {};
};

// The limit on a GPU of compute capability `cc` (10 * major + minor).
// `dram_bytes_per_s` is what kDramBytesPerSecond gives; 0 where unknown.
std::optional<LimitFigure> FindLimit(const Limit& limit, int cc, double dram_bytes_per_s = 0);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_LIMITS_H_
