// SPDX-License-Identifier: Apache-2.0
// What a run writes down, as plain structs, and their JSON form.
//
// Contract: the structs mirror reports/RECORD.md field by field. `ToJson` keeps
// a fixed field order, so equal structs give equal bytes. The `…FromJson`
// functions accept unknown fields, so that records of newer minor writers load,
// and never throw.
//
// Figures that do not exist (no NVML reading, no LSE, an error that is NaN) are
// `null` in JSON. For optionals that is nullopt; for the doubles of a Check it
// is NaN, and an infinity is written as null too.
//
// Errors: InvalidArgument that names the missing or ill-typed field with its
// path ("arms[2].role: expected a string, found 3"); FailedPrecondition when
// the schema is newer than kSchemaVersion.
//
//   absl::StatusOr<Sample> sample = SampleFromJson(json);
//   std::string line = DumpLine(ToJson(*sample)) + "\n";

#ifndef WARPLEDGER_ABLATIONS_RECORD_RECORD_H_
#define WARPLEDGER_ABLATIONS_RECORD_RECORD_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/base/json_text.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/sdpa/problem.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

inline constexpr int kSchemaVersion = 1;

// The most processes of a run, and the most blocks of each: far beyond any run, so that
// a loop over those of a damaged record ends.
inline constexpr int kMostProcesses = 10'000;
inline constexpr int kMostBlocks = 10'000;
// Of one opcode in a kernel, so that a sum of them is a number too.
inline constexpr int64_t kMostInstructions = 1'000'000'000;
// Of a line of a call and of an opcode's name, which regular expressions are held against:
// libstdc++ recurses for each character, and 30 KB end an 8 MiB stack, 8 KB under the
// sanitizers. The longest real ones have some 300 and 40.
inline constexpr size_t kMostMatchedBytes = 2048;

// Roles of an arm; reports/RECORD.md says what each one is.
inline constexpr char kRoleBase[] = "base";
inline constexpr char kRoleStep[] = "step";
inline constexpr char kRoleWithout[] = "without";
inline constexpr char kRoleAa[] = "aa";
inline constexpr char kRoleNull[] = "null";
inline constexpr char kRolePeer[] = "peer";
inline constexpr char kRoleFloor[] = "floor";
inline constexpr char kRoleCell[] = "cell";        // of a fractional factorial
inline constexpr char kRolePlanted[] = "planted";  // of a calibration
inline constexpr char kRoleDelay[] = "delay";      // likewise

inline constexpr char kPeerPrefix[] = "peer:";  // of the arms that are peers

inline constexpr char kCacheWarm[] = "warm";
inline constexpr char kCacheCold[] = "cold";

// --- run.json ----------------------------------------------------------------

struct GpuInfo {
  std::string name;
  std::string slug;
  std::string uuid;
  std::string compute_capability;  // "9.0"
  int sm_count = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
  std::string driver;
  std::string cuda_runtime;
  std::optional<bool> ecc;
  std::optional<int> max_sm_clock_mhz;
  std::optional<int> max_memory_clock_mhz;
  std::optional<double> power_limit_w;

  friend bool operator==(const GpuInfo&, const GpuInfo&) = default;
};

struct Toolchain {
  std::string nvcc;
  std::string host_compiler;
  std::string build_type;
  std::string cuda_flags;
  std::string architectures;

  friend bool operator==(const Toolchain&, const Toolchain&) = default;
};

struct GitInfo {
  std::string sha;
  bool dirty = false;

  friend bool operator==(const GitInfo&, const GitInfo&) = default;
};

// Operations, bytes and exponentials are derived from `problem` when written.
struct ShapeInfo {
  std::string name;
  sdpa::Problem problem;

  friend bool operator==(const ShapeInfo&, const ShapeInfo&) = default;
};

struct Arm {
  std::string name;
  std::string config;  // printed configuration; empty for peers and floors
  std::string role;    // one of kRole…
  std::string toggle;  // the registry id that a step, or a null control, adds
  std::string base;    // the arm that it is judged against; empty for none

  friend bool operator==(const Arm&, const Arm&) = default;
};

// A fault that a test of the harness plants in one arm; a run that names one is no
// measurement of that arm.
struct PlantedFault {
  std::string fault;  // one of kFaults (planted_faults.h)
  std::string arm;
  std::string shape;  // empty: on every shape

  friend bool operator==(const PlantedFault&, const PlantedFault&) = default;
};

// When a run may end on a shape before all its processes ran; stopping.h has the
// rule and why it keeps its level.
struct StoppingRule {
  double half_width = 0;             // of each claim's interval, relative to its ratio
  double confidence = 0;             // of all looks together
  std::vector<int> looks;            // after so many processes, ascending; the last is all of them
  std::vector<double> alpha_shares;  // of 1 - confidence, one for each look; they add up to 1

  friend bool operator==(const StoppingRule&, const StoppingRule&) = default;
};

struct RunInfo {
  int schema_version = kSchemaVersion;
  std::string run_id;
  std::string created_utc;
  std::string design;
  std::string family;
  std::vector<std::string> argv;
  uint64_t seed = 0;
  int processes = 0;
  int blocks_per_process = 0;
  std::string cache;                     // kCacheWarm or kCacheCold
  std::optional<double> replay_us;       // wanted length of a replay; empty in older records
  std::optional<int> max_launches;       // most launches in a replay; likewise
  std::optional<StoppingRule> stopping;  // absent: every process runs
  std::vector<PlantedFault> planted;     // of tests of the harness; empty in measurements
  std::vector<ShapeInfo> shapes;
  std::vector<Arm> arms;
  GitInfo git;
  std::string registry_sha256;
  std::string kernel_source_sha256;
  std::string protocol_sha256;  // of what times the samples; empty in older records
  Toolchain toolchain;
  GpuInfo gpu;

  friend bool operator==(const RunInfo&, const RunInfo&) = default;
};

// --- samples.jsonl -----------------------------------------------------------

struct Sample {
  int64_t seq = -1;
  int process = 0;
  std::string shape;
  int block = 0;
  int order = 0;  // place in the block's order (block_order.h), from 0
  int of = 0;     // samples in the block; RecordWriter fills it in
  std::string arm;
  int launches = 0;
  double us = 0;
  std::optional<double> sm_mhz;
  std::optional<double> temp_c;
  std::optional<double> power_w;
  std::optional<uint64_t> throttle;  // NVML clock event reasons
  std::string cache;

  friend bool operator==(const Sample&, const Sample&) = default;
};

// Samples that were taken together. Peers run in a process of their own, so
// they have blocks of their own under the same numbers.
struct BlockKey {
  int process = 0;
  std::string shape;
  int block = 0;
  bool peers = false;

  friend auto operator<=>(const BlockKey&, const BlockKey&) = default;
};

// --- correctness.jsonl -------------------------------------------------------

struct Check {
  int process = 0;
  std::string arm;
  std::string shape;
  std::string inputs;
  uint64_t seed = 0;
  bool correct = false;
  double max_err = 0;
  double max_err_limit = 0;
  double mean_err = 0;
  double mean_err_limit = 0;
  double lse_err = 0;  // NaN where no LSE is produced
  double lse_limit = 0;
  bool guards_intact = false;
  bool bit_identical = false;
  std::string reason;
  int64_t rows = 0;  // query rows held against the reference; 0: all, as older records have it
};

// --- broken.jsonl ------------------------------------------------------------

// An arm that could not be run to its end on a shape: it took its process down,
// gave no answer or was refused by the driver. Wrong results are a Check.
struct BrokenArm {
  int process = 0;
  std::string arm;
  std::string shape;
  std::string kind;    // trap, illegal_address, no_answer, …: reports/RECORD.md lists them
  std::string doing;   // what the worker did with the arm then
  std::string reason;  // for people

  friend bool operator==(const BrokenArm&, const BrokenArm&) = default;
};

// --- calls.jsonl -------------------------------------------------------------

// What one call of an arm launches on a shape, read back from what is timed: how the
// calls are launched ("by graph"), then a line per kernel, in order.
struct LaunchedCall {
  std::string arm;
  std::string shape;
  std::vector<std::string> lines;

  friend bool operator==(const LaunchedCall&, const LaunchedCall&) = default;
};

// --- resources.json, codegen.json, launch.json, peers.json ---------------------

struct InstanceResources {
  std::string variant;
  std::string arch;
  int registers = 0;
  int64_t static_smem_bytes = 0;
  int64_t stack_bytes = 0;
  int64_t spill_store_bytes = 0;
  int64_t spill_load_bytes = 0;
};

struct InstanceCodegen {
  std::string variant;
  std::string arch;
  std::string code_sha256;
  std::string ptx_sha256;
  std::map<std::string, int64_t> opcodes;  // empty when there was no disassembler
};

struct Codegen {
  std::string disassembler;
  std::vector<InstanceCodegen> instances;
};

struct InstanceLaunch {
  std::string variant;
  int64_t dynamic_smem_bytes = 0;
  int64_t static_smem_bytes = 0;
  int registers = 0;
  int threads = 0;
  int ctas_per_sm = 0;
};

struct PeerCheck {
  std::string shape;
  bool correct = false;
  double max_err = 0;
  double max_err_limit = 0;
};

struct PeerInfo {
  std::string name;
  std::string version;
  bool available = false;
  std::string reason;
  std::vector<PeerCheck> checks;
};

// --- JSON --------------------------------------------------------------------

nlohmann::ordered_json ToJson(const RunInfo& run);
nlohmann::ordered_json ToJson(const ShapeInfo& shape);
nlohmann::ordered_json ToJson(const GpuInfo& gpu);
nlohmann::ordered_json ToJson(const Sample& sample);
nlohmann::ordered_json ToJson(const Check& check);
nlohmann::ordered_json ToJson(const BrokenArm& broken);
nlohmann::ordered_json ToJson(const LaunchedCall& call);
nlohmann::ordered_json ToJson(const PlantedFault& fault);
// The whole files, with their schema_version.
nlohmann::ordered_json ToJson(const std::vector<InstanceResources>& instances);
nlohmann::ordered_json ToJson(const Codegen& codegen);
nlohmann::ordered_json ToJson(const std::vector<InstanceLaunch>& instances);
nlohmann::ordered_json ToJson(const std::vector<PeerInfo>& peers);

absl::StatusOr<RunInfo> RunInfoFromJson(const nlohmann::ordered_json& json);
// `of` may be absent here (a peer's own lines); a stored sample always has it.
absl::StatusOr<Sample> SampleFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<Check> CheckFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<BrokenArm> BrokenArmFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<LaunchedCall> LaunchedCallFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<PlantedFault> PlantedFaultFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<std::vector<InstanceResources>> ResourcesFromJson(
    const nlohmann::ordered_json& json);
absl::StatusOr<Codegen> CodegenFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<std::vector<InstanceLaunch>> LaunchFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<std::vector<PeerInfo>> PeersFromJson(const nlohmann::ordered_json& json);
// One element of peers.json, as peers.py prints it.
absl::StatusOr<PeerInfo> PeerInfoFromJson(const nlohmann::ordered_json& json);

// "compute capability 9.0" is written "sm_90" in resources.json and codegen.json.
std::string ArchOf(const GpuInfo& gpu);

// How near code for `arch` ("sm_80", "sm_90a") is to a GPU of `gpu_arch`; 0: it doesn't run
// there. Of an instance's code a GPU runs the nearest: its own, else that of the last
// architecture of its generation before it, so that an sm_89 runs what is compiled for
// sm_80; an "a" is for its own architecture alone (CUDA programming guide, "Binary
// Compatibility").
int Nearness(std::string_view arch, std::string_view gpu_arch);

// The row of `instances` (with variant and arch) whose code a GPU of `gpu_arch` runs;
// nullptr: there is none.
template <typename Instance>
const Instance* CodeFor(std::string_view gpu_arch, const std::vector<Instance>& instances,
                        std::string_view variant) {
  const Instance* nearest = nullptr;
  int nearness = 0;
  for (const Instance& instance : instances) {
    if (instance.variant != variant) continue;
    if (const int its = Nearness(instance.arch, gpu_arch); its > nearness) {
      nearest = &instance;
      nearness = its;
    }
  }
  return nearest;
}

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_RECORD_RECORD_H_
