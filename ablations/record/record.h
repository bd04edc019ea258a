// SPDX-License-Identifier: Apache-2.0
// What a run writes down: a struct for each object of its files, with the description of its
// fields that writes, reads, checks and documents it (json_fields.h).
//
// Contract: reports/RECORD.md's tables are printed from these descriptions. Equal structs give
// equal bytes.
//
// Figures that do not exist (no NVML reading, no LSE, an error that is NaN) are
// `null` in JSON. For optionals that is nullopt; for the doubles of a Check it
// is NaN, and an infinity is written as null too.
//
//   absl::StatusOr<Sample> sample = FromJson<Sample>(json);
//   std::string line = DumpLine(ToJson(*sample)) + "\n";

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/base/json_fields.h"
#include "ablations/record/record.h"
#include "absl/status/status.h"
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

// The subject of records that name none.
inline constexpr char kFirstSubject[] = "sdpa";

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

  void Visit(auto& f) {
    f("name", name, PlainName{});
    f("slug", slug, PlainName{});
    f("uuid", uuid, PlainName{});
    f("compute_capability", compute_capability, PlainName{});
    FIELDS(sm_count, l2_bytes, memory_bytes);
    f("driver", driver, PlainName{});
    f("cuda_runtime", cuda_runtime, PlainName{});
    FIELDS(ecc, max_sm_clock_mhz, max_memory_clock_mhz, power_limit_w);
  }
  friend bool operator==(const GpuInfo&, const GpuInfo&) = default;
};

struct Toolchain {
  std::string nvcc;
  std::string host_compiler;
  std::string build_type;
  std::string cuda_flags;
  std::string architectures;

  DESCRIBE_FIELDS(nvcc, host_compiler, build_type, cuda_flags, architectures)
  friend bool operator==(const Toolchain&, const Toolchain&) = default;
};

struct GitInfo {
  std::string sha;
  bool dirty = false;

  DESCRIBE_FIELDS(sha, dirty)
  friend bool operator==(const GitInfo&, const GitInfo&) = default;
};

// A problem as its subject describes it: parameters (whole numbers, yes or no, words) and the
// work that it declares, in the order in which a record keeps them. Every subject declares
// `flops` and `min_bytes`: the operations of a call, and the bytes that it moves at least.
struct ShapeInfo {
  std::string name;
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();  // all but the name

  double flops() const { return fields.at("flops").get<double>(); }
  double min_bytes() const { return fields.at("min_bytes").get<double>(); }
  friend bool operator==(const ShapeInfo&, const ShapeInfo&) = default;
};
nlohmann::ordered_json ToJson(const ShapeInfo& shape);
absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path, ShapeInfo& shape);

// What a subject that is no part of the program is made from (plan/known_subjects.h).
struct SubjectDefinition {
  nlohmann::ordered_json json = nullptr;  // null: it is a part of the program
  friend bool operator==(const SubjectDefinition&, const SubjectDefinition&) = default;
};
nlohmann::ordered_json ToJson(const SubjectDefinition& definition);
absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path,
                      SubjectDefinition& definition);

struct Arm {
  std::string name;
  std::string config;  // printed configuration; empty for peers and floors
  std::string role;    // one of kRole…
  std::string toggle;  // the registry id that a step, or a null control, adds
  std::string base;    // the arm that it is judged against; empty for none

  void Visit(auto& f) {
    f("name", name, PlainName{});
    f("config", config, PlainName{}, "the printed configuration; empty for peers and floors");
    f("role", role,
      OneOf(kRoleBase, kRoleStep, kRoleWithout, kRoleAa, kRoleNull, kRolePeer, kRoleFloor,
            kRoleCell, kRolePlanted, kRoleDelay));
    f("toggle", toggle, PlainName{}, "what a step, or a null control, adds");
    f("base", base, PlainName{}, "the arm that it is judged against");
  }
  friend bool operator==(const Arm&, const Arm&) = default;
};

// A fault that a test of the harness plants in one arm; a run that names one is no
// measurement of that arm.
struct PlantedFault {
  std::string fault;  // one of kFaults (planted_faults.h)
  std::string arm;
  std::string shape;  // empty: on every shape

  void Visit(auto& f) {
    FIELDS(fault, arm);
    f("shape", shape, "empty: on every shape");
  }
  friend bool operator==(const PlantedFault&, const PlantedFault&) = default;
};

// When a run may end on a shape before all its processes ran; stopping.h has the
// rule and why it keeps its level.
struct StoppingRule {
  double half_width = 0;             // of each claim's interval, relative to its ratio
  double confidence = 0;             // of all looks together
  std::vector<int> looks;            // after so many processes, ascending; the last is all of them
  std::vector<double> alpha_shares;  // of 1 - confidence, one for each look; they add up to 1

  // Whether the looks are a schedule that a verdict can be based on.
  std::string WhyInvalid() const;

  void Visit(auto& f) {
    f("half_width", half_width, Above{0});
    f("confidence", confidence,
      Must{"a number between 0.5 and 1", [](double value) { return value > 0.5 && value < 1; }});
    f("looks", looks, "after so many processes");
    f("alpha_shares", alpha_shares, "each look's share of 1 - confidence");
  }
  friend bool operator==(const StoppingRule&, const StoppingRule&) = default;
};

// Of a run that times each arm alone (decisions/0045): how long its clock is given to stand, and
// how long it is timed then, at least.
struct AlonePlan {
  double settle_s = 0.5;
  double window_s = 1;

  void Visit(auto& f) {
    constexpr Must kSeconds{"seconds, a minute at most",
                            [](double value) { return value >= 0 && value <= 60; }};
    f("settle_s", settle_s, kSeconds);
    f("window_s", window_s, kSeconds);
  }
  friend bool operator==(const AlonePlan&, const AlonePlan&) = default;
};

struct RunInfo {
  int schema_version = kSchemaVersion;
  std::string run_id;
  std::string created_utc;
  std::string subject;  // what was measured (plan/subject.h); empty: kFirstSubject
  SubjectDefinition definition;
  std::string design;
  std::string family;
  std::vector<std::string> argv;
  uint64_t seed = 0;
  int processes = 0;
  int blocks_per_process = 0;
  std::string cache;                          // kCacheWarm or kCacheCold
  std::optional<double> replay_us;            // wanted length of a replay; empty in older records
  std::optional<int> max_launches;            // most launches in a replay; likewise
  std::optional<AlonePlan> alone;             // absent: arms take turns within a block
  std::map<std::string, std::string> chosen;  // by shape, of such a run
  std::optional<StoppingRule> stopping;       // absent: every process runs
  std::vector<PlantedFault> planted;          // of tests of the harness; empty in measurements
  std::vector<ShapeInfo> shapes;
  std::vector<Arm> arms;
  GitInfo git;
  std::string registry_sha256;
  std::string kernel_source_sha256;
  std::string protocol_sha256;  // of what times the samples; empty in older records
  Toolchain toolchain;
  GpuInfo gpu;

  std::string_view SubjectName() const {
    return subject.empty() ? std::string_view(kFirstSubject) : subject;
  }

  void Visit(auto& f) {
    f("schema_version", schema_version, SchemaUpTo{kSchemaVersion});
    f("run_id", run_id, PlainName{});
    f("created_utc", created_utc, PlainName{});
    f("subject", subject, PlainName{}, kOnlyWhereSet,
      "what was measured; where it is absent, sdpa");
    f("definition", definition, kOnlyWhereSet, "of a study: study.toml and its libraries");
    f("design", design, PlainName{});
    f("family", family, PlainName{},
      "of the design; older programs adjusted its verdicts together");
    FIELDS(argv, seed);
    f("processes", processes, Within{1, kMostProcesses});
    f("blocks_per_process", blocks_per_process, Within{1, kMostBlocks});
    f("cache", cache, OneOf(kCacheWarm, kCacheCold), "see samples.jsonl");
    f("replay_us", replay_us, kOnlyWhereSet, "wanted length of a replay; older records lack it");
    f("max_launches", max_launches, kOnlyWhereSet,
      "the most launches in a replay; older records lack it");
    f("alone", alone, kOnlyWhereSet, "only with --alone: a sample is a visit; decisions/0045");
    f("chosen", chosen, kOnlyWhereSet,
      "with it: by shape, the configuration that the library takes (kernels/sdpa/library)");
    f("stopping", stopping, kOnlyWhereSet, "only with --stop; decisions/0012");
    f("planted", planted, kOnlyWhereSet, "faults that a test of the harness planted");
    f("shapes", shapes);
    f("arms", arms, "in the order of the ladder; see below");
    FIELDS(git, registry_sha256, kernel_source_sha256);
    f("protocol_sha256", protocol_sha256, kOnlyWhereSet,
      "of the timer, worker, runner and the peers' program; older records lack it");
    FIELDS(toolchain, gpu);
  }
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
  // Of a visit, in a run that times each arm alone. The rest is of its window.
  std::optional<double> window_s;
  std::optional<double> idle_share;
  std::optional<double> energy_j;
  std::optional<double> energy_s;

  // Where the machine waited longer for the host, its clock and its time are not the arm's.
  static constexpr double kMostIdle = 0.01;

  bool IsVisit() const { return window_s.has_value(); }
  bool IsStarved() const { return idle_share.value_or(0) > kMostIdle; }
  // By the energy counter; nullopt where there is none.
  std::optional<double> Watts() const {
    return energy_j && energy_s ? std::optional(*energy_j / *energy_s) : std::nullopt;
  }
  std::optional<double> JoulesPerCall() const {
    const std::optional<double> watts = Watts();
    return watts ? std::optional(*watts * us * 1e-6) : std::nullopt;
  }

  void Visit(auto& f) {
    f("seq", seq, "counts without gaps");
    f("process", process, AtLeast{0});
    f("shape", shape);
    f("block", block, AtLeast{0});
    f("order", order, "place in the block's order, from 0");
    // A peer's own lines lack it until they are stored.
    f("of", of, kOlderRecordsLack, "samples in the block");
    f("arm", arm);
    f("launches", launches, AtLeast{1}, "in the replay");
    f("us", us, Above{0, "a time"}, "the replay's time divided by launches");
    f("sm_mhz", sm_mhz, Above{0, "a clock"});
    FIELDS(temp_c, power_w);
    f("throttle", throttle, "NVML's bit mask of clock event reasons");
    f("cache", cache, "that of run.json");
    f("window_s", window_s, kOnlyWhereSet, Above{0}, "of a visit: how long its calls were timed");
    f("idle_share", idle_share, kOnlyWhereSet,
      Must{"a share of 1", [](double value) { return value >= 0 && value <= 1; }},
      "of the window: the GPU waited for the host, at most so long");
    f("energy_j", energy_j, kOnlyWhereSet, Above{0},
      "between two steps of NVML's total-energy counter");
    f("energy_s", energy_s, kOnlyWhereSet, Above{0}, "between these steps");
  }
  friend bool operator==(const Sample&, const Sample&) = default;
};

// Samples that were taken together. Peers run in a process of their own, so
// they have blocks of their own under the same numbers. A visit is on its own.
struct BlockKey {
  int process = 0;
  std::string shape;
  int block = 0;
  bool peers = false;
  std::string arm = "";  // of a visit

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

  void Visit(auto& f) {
    FIELDS(process, arm, shape);
    f("inputs", inputs, "the distribution, see below");
    FIELDS(seed, correct);
    f("max_err", max_err, kNullIsNan);
    f("max_err_limit", max_err_limit, kNullIsNan);
    f("mean_err", mean_err, kNullIsNan);
    f("mean_err_limit", mean_err_limit, kNullIsNan);
    f("lse_err", lse_err, kNullIsNan, "null where no log-sum-exp is produced");
    f("lse_limit", lse_limit, kNullIsNan);
    FIELDS(guards_intact, bit_identical, reason);
    f("rows", rows, kOlderRecordsLack, "query rows held against the reference; 0: all");
  }
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

  void Visit(auto& f) {
    FIELDS(process, arm, shape);
    f("kind", kind, NotEmpty{}, "see below");
    f("doing", doing, "what the worker did with the arm then");
    f("reason", reason, NotEmpty{}, "for people");
  }
  friend bool operator==(const BrokenArm&, const BrokenArm&) = default;
};

// --- calls.jsonl -------------------------------------------------------------

// What one call of an arm launches on a shape, read back from what is timed: how the
// calls are launched ("by graph"), then a line per kernel, in order.
struct LaunchedCall {
  std::string arm;
  std::string shape;
  std::vector<std::string> lines;

  void Visit(auto& f) {
    FIELDS(arm, shape);
    f("lines", lines, Each{AtMostBytes{kMostMatchedBytes}},
      Must{"at least how the calls are launched", [](const auto& all) { return !all.empty(); }});
  }
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

  void Visit(auto& f) {
    FIELDS(variant, arch, registers);
    f("static_smem_bytes", static_smem_bytes, ByteCount{});
    f("stack_bytes", stack_bytes, ByteCount{});
    f("spill_store_bytes", spill_store_bytes, ByteCount{});
    f("spill_load_bytes", spill_load_bytes, ByteCount{});
  }
};

struct ResourcesFile {
  std::vector<InstanceResources> instances;

  void Visit(auto& f) {
    VisitSchema(f, kSchemaVersion);
    f("instances", instances);
  }
};

struct InstanceCodegen {
  std::string variant;
  std::string arch;
  std::string code_sha256;
  std::string ptx_sha256;
  std::map<std::string, int64_t> opcodes;  // empty when there was no disassembler

  void Visit(auto& f) {
    f("variant", variant, "the printed configuration");
    f("arch", arch, "sm_90 and so on");
    f("code_sha256", code_sha256, "of the machine code (ELF sections .text.* and constants)");
    f("ptx_sha256", ptx_sha256);
    f("opcodes", opcodes, EachName{AtMostBytes{kMostMatchedBytes}},
      Each{Within{0, kMostInstructions}}, "empty where there was no disassembler");
  }
};

struct Codegen {
  std::string disassembler;
  std::vector<InstanceCodegen> instances;

  void Visit(auto& f) {
    VisitSchema(f, kSchemaVersion);
    f("disassembler", disassembler, "empty: there was none");
    f("instances", instances);
  }
};

struct InstanceLaunch {
  std::string variant;
  int64_t dynamic_smem_bytes = 0;
  int64_t static_smem_bytes = 0;
  int registers = 0;
  int threads = 0;
  int ctas_per_sm = 0;

  void Visit(auto& f) {
    f("variant", variant);
    f("dynamic_smem_bytes", dynamic_smem_bytes, ByteCount{});
    f("static_smem_bytes", static_smem_bytes, ByteCount{});
    FIELDS(registers, threads, ctas_per_sm);
  }
};

struct LaunchFile {
  std::vector<InstanceLaunch> instances;

  void Visit(auto& f) {
    VisitSchema(f, kSchemaVersion);
    f("instances", instances);
  }
};

struct PeerCheck {
  std::string shape;
  bool correct = false;
  double max_err = 0;
  double max_err_limit = 0;

  void Visit(auto& f) {
    FIELDS(shape, correct);
    f("max_err", max_err, kNullIsNan);
    f("max_err_limit", max_err_limit, kNullIsNan);
  }
};

struct PeerInfo {
  std::string name;
  std::string version;
  bool available = false;
  std::string reason;
  std::vector<PeerCheck> checks;

  void Visit(auto& f) {
    f("name", name, PlainName{});
    f("version", version, PlainName{});
    FIELDS(available, reason, checks);
  }
};

struct PeersFile {
  std::vector<PeerInfo> peers;

  // Of two lines of one peer either could be shown.
  std::string WhyInvalid() const;

  void Visit(auto& f) {
    VisitSchema(f, kSchemaVersion);
    f("peers", peers);
  }
};

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

// Records that were made in a way that turned out to be wrong.
//
// Contract: by cause, never by outcome. A flaw is a protocol (RunInfo::protocol_sha256) and what an
// arm of the run must have for the fault to act; decisions/ says how it was found. All comparisons
// of such a record are INVALID.
//
// Why no comparison of the run is what it says; empty where no flaw is known.
std::string WhyFlawed(const RunInfo& run);

}  // namespace warpledger::ablations
