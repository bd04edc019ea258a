// SPDX-License-Identifier: Apache-2.0
// How a microbenchmark says what it measures: one or more cases, registered at
// namespace scope of its micro/<name>.cu, run by the program warpledger_micro.
//
// A case is one of three kinds.
//   CycleCase   cycles inside a kernel, as the slope over several lengths of the
//               timed loop: a latency, or a throughput per clock and SM
//   TimeCase    the time of a whole launch, by GraphTimer: bandwidths, launches
//   ValueCase   a figure that is computed, not timed: an error, a count
// The harness alone decides on warm-up, repeats, clocks, fits and files; a case
// declares its operations or bytes, its limit, the published figures that it is
// to be compared with, and the machine code that proves that it measures what it
// says (tests/micro/micro_codegen_test.py checks that, without a GPU).
//
// A complete benchmark; the kernel's parts are in micro/harness/cycles.cuh:
//
//   struct Sqrt : harness::FloatOp {  // in an anonymous namespace
//     static __device__ float Step(float x) {  // one link of the dependent chain
//       asm("sqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
//       return x;
//     }
//   };
//   WARPLEDGER_MICRO(sqrt_cost) {
//     harness::Add(harness::CycleCase{
//         .about = {.name = "sqrt_cost/sqrt_approx_f32/throughput",
//                   .measures = "square roots per clock and SM",
//                   .unit = "sqrt/clk/SM",
//                   .limit = {.resource = harness::Resource::kMufu},
//                   .published = {{.cc = 90, .value = 16, .source = "CUDA C++ Programming Guide"}},
//                   .evidence = {{.sass = R"(^MUFU\.SQRT)", .at_least = 32}}},
//         .measure = harness::Measure::kThroughput,
//         .kernel = harness::ChainKernel<Sqrt, /*kChains=*/4, /*kUnroll=*/8>,
//         .units_per_iteration = 4 * 8});
//   }
//
// Errors: Add() takes any case; what is wrong with it (a name twice, fewer than
// four lengths, no evidence …) is told by CheckCases(), which the program calls
// first, --warpledger_list and with it tests/micro/micro_codegen_test.py included.

#ifndef WARPLEDGER_MICRO_HARNESS_MICROBENCHMARK_H_
#define WARPLEDGER_MICRO_HARNESS_MICROBENCHMARK_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/common/device.h"
#include "micro/harness/cycle_args.h"
#include "micro/harness/graph_timer.h"
#include "micro/harness/limits.h"

namespace warpledger::harness {

// A figure that someone else measured or promised. `cc` is the compute capability
// that it speaks of, as 10 * major + minor; 0 speaks of every GPU of the table.
struct Published {
  int cc = 0;
  double value = 0;         // in the case's unit
  std::string source = {};  // author and place, short enough for a table
  // Why ours may differ, for the report; written where the two differ by more than
  // 10%, and never before that was seen.
  std::string why = {};
};

// Machine code that the case's kernel must hold. In SASS, where the kernel reads
// the clock twice, only what lies between the first and the last read counts.
// Opcodes are matched with their modifiers and without predicate and operands,
// PTX by whole lines; both by Python's re.search. An empty pattern isn't checked.
struct Evidence {
  std::string sass = {};  // R"(^MUFU\.EX2)"
  std::string ptx = {};   // R"(ex2\.approx\.ftz\.f32)"; the whole kernel counts
  int at_least = 1;
  int at_most = -1;  // -1: no upper bound. 0, with at_least 0: must be absent
  int min_cc = 0;    // holds from this compute capability on …
  int max_cc = 0;    // … to this one; 0: no bound
};

// A number that goes with the case into every record: stages, bytes, wavefronts.
struct Parameter {
  std::string name = {};
  double value = 0;
};

// What every kind of case says of itself.
struct CaseInfo {
  std::string name = {};       // "<benchmark>/<subject>/<measure>", unique in the program
  std::string measures = {};   // what the value is, in a phrase
  std::string unit = {};       // "cycles", "exp/clk/SM", "GB/s", "us", "" for a bare number
  int min_cc = 80;             // runs from this compute capability on …
  int max_cc = 0;              // … to this one; 0: no bound
  Limit limit = {};            // what the hardware can't exceed
  std::string peak_case = {};  // name of the case whose value is the measured peak, or ""
  std::vector<Published> published = {};
  std::vector<Evidence> evidence = {};
  std::vector<Parameter> parameters = {};
};

// What a setup function may ask about the GPU.
struct MicroDevice {
  DeviceFacts facts = {};
  int cc = 0;  // 10 * major + minor
};

// Makes a case's input before it runs: device memory, filled.
using MakeData = std::function<absl::StatusOr<DeviceBuffer>(const MicroDevice&)>;

enum class Measure {
  kLatency,     // value = cycles per unit, seen by one CTA alone on the GPU
  kThroughput,  // value = units per clock and SM, all SMs at work
};

using CycleKernel = void (*)(CycleArgs);

struct CycleCase {
  CaseInfo about = {};
  Measure measure = Measure::kLatency;
  CycleKernel kernel = nullptr;  // reads the clock as cycles.cuh does
  // Latency: links of the dependent chain per iteration of the timed loop.
  // Throughput: units (results, bytes, FLOP …) per iteration and *thread*.
  double units_per_iteration = 1;
  // Threads of a CTA. 0: 32 for a latency, 512 for a throughput (four warps for
  // each scheduler of the SM).
  int threads = 0;
  // CTAs of the launch. 0: 1 for a latency; one on each SM for a throughput. A
  // latency over a cluster names the cluster's size here.
  int ctas = 0;
  int ctas_per_sm = 1;  // throughput only; the harness checks %smid
  int dynamic_smem_bytes = 0;
  // Iterations of the timed loop, rising, at least four.
  std::vector<int> lengths = {32, 64, 96, 128, 160};
  MakeData make_data = {};         // optional; CycleArgs::data
  std::vector<int64_t> args = {};  // up to kMaxCycleParams; CycleArgs::params
};

struct TimeCase {
  // What the launches and the event timer need; owns its memory.
  using Setup = std::function<absl::StatusOr<LaunchFunction>(const MicroDevice&)>;

  CaseInfo about = {};
  // Units per launch: with `rate` false the value is microseconds per launch
  // divided by `units` (unit "us"); true: units / nanosecond, which is GB/s for
  // bytes and Gop/s for operations.
  double units = 1;
  bool rate = false;
  Setup setup = {};
  ReplayPlan plan = {};
  // The kernels whose machine code `about.evidence` speaks of, as
  // reinterpret_cast<const void*>(&Kernel). Each must hold it.
  std::vector<const void*> kernels = {};
};

struct ValueCase {
  using Compute = std::function<absl::StatusOr<double>(const MicroDevice&)>;

  CaseInfo about = {};
  Compute compute = {};
  std::vector<const void*> kernels = {};  // as in TimeCase
};

using MicroCase = std::variant<CycleCase, TimeCase, ValueCase>;

// Adds a case to the program. Call it from WARPLEDGER_MICRO only.
void Add(MicroCase micro_case);

// All cases in the order of their registration, files by link order.
const std::vector<MicroCase>& AllCases();

const CaseInfo& InfoOf(const MicroCase& micro_case);

// InvalidArgument that names the first case with something wrong, and what.
absl::Status CheckCases(const std::vector<MicroCase>& cases);

// Runs a function before main(); the value of WARPLEDGER_MICRO.
struct Registrar {
  explicit Registrar(void (*add_cases)()) { add_cases(); }
};

}  // namespace warpledger::harness

// Opens the function that registers a file's cases: once per file, at namespace
// scope, with the file's name without .cu.
#define WARPLEDGER_MICRO(name)                                                        \
  static void AddCasesOf_##name();                                                    \
  [[maybe_unused]] static const ::warpledger::harness::Registrar kRegistrarOf_##name( \
      &AddCasesOf_##name);                                                            \
  static void AddCasesOf_##name()

#endif  // WARPLEDGER_MICRO_HARNESS_MICROBENCHMARK_H_
