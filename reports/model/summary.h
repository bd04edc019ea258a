// SPDX-License-Identifier: Apache-2.0
// summary.json as typed values: what a page knows of a record.
//
// A JSON null, where the schema (reports/RECORD.md) allows it, is an empty optional.
//
//   const Cell* cell = summary.FindCell("ladder:wmma_pv", "mission_b");

#ifndef WARPLEDGER_REPORTS_MODEL_SUMMARY_H_
#define WARPLEDGER_REPORTS_MODEL_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warpledger::report {

inline constexpr int64_t kSummarySchemaVersion = 1;

// The provenance's `cache` where each launch finds an L2 that has forgotten its inputs.
inline constexpr std::string_view kColdCache = "cold";

// In the order in which the report lists them.
inline constexpr std::string_view kVerdictNames[] = {
    "ADOPT",        "REAL_BELOW_GATE", "NEUTRAL", "REGRESSION",
    "INCONCLUSIVE", "BROKEN",          "INVALID", "NOT_APPLICABLE",
};

// A figure and its confidence interval, in the unit of the field it belongs to.
struct Estimate {
  std::optional<double> value;
  std::optional<double> low;
  std::optional<double> high;
};

struct Shape {
  std::string name;
  int64_t batch = 0;
  int64_t heads_q = 0;
  int64_t heads_kv = 0;
  int64_t seq_q = 0;
  int64_t seq_kv = 0;
  int64_t head_dim = 0;
  std::string dtype = "fp16";
  bool causal = false;
  bool projected = false;  // begins in front of SDPA, with a projection
  double flops = 0;
  double min_bytes = 0;
  double exponentials = 0;
};

struct Cell {
  std::string variant;  // the arm's name
  std::string config;
  int64_t kv_bits = 16;  // of an element of K and V as its kernels read them
  std::string role;
  std::string toggle;
  std::string label;
  std::string shape;
  std::optional<bool> correct;  // empty: never checked on this shape
  std::optional<double> max_err;
  std::string max_err_limit;  // as text: the record may hold a figure or a rule
  Estimate p50_us;
  std::optional<double> tflops;
  Estimate speedup_over_first;  // ratio
  std::optional<int64_t> registers;
  std::optional<int64_t> smem_bytes;
  std::optional<int64_t> spill_bytes;
  std::optional<int64_t> ctas_per_sm;
  std::string code_sha256;  // of its machine code; empty where the record doesn't know
  std::string reason;
};

struct Peer {
  std::string name;
  std::string version;
  std::string shape;
  bool available = false;
  std::optional<bool> correct;
  std::string reason;
  Estimate p50_us;
};

inline constexpr char kEmptyFloor[] = "floor:empty_kernel";
inline constexpr char kReadFloor[] = "floor:read_kv";

struct Floor {
  std::string name;
  std::string shape;
  Estimate p50_us;
};

// A figure of the kernel without a toggle, and of that with it.
struct BeforeAfter {
  std::optional<int64_t> before;
  std::optional<int64_t> after;
};

// What a toggle did to the kernel; counts of instructions are those of the machine
// code, not of what is executed.
struct CodeChange {
  struct Opcode {
    std::string name;  // up to its first dot
    BeforeAfter count;
  };
  BeforeAfter registers;
  BeforeAfter smem_bytes;
  BeforeAfter spill_bytes;
  BeforeAfter warps_per_sm;
  BeforeAfter instructions;
  BeforeAfter evidence;         // of the opcodes that the registry names for the toggle
  std::vector<Opcode> opcodes;  // whose number changed most, largest change first
};

// Errors without a toggle and with it, on inputs of one kind; empty where there is no finite
// number.
struct ErrorChange {
  struct Both {
    std::optional<double> before;
    std::optional<double> after;
  };
  std::string inputs;
  Both mean_err;
  Both mean_share;  // of the limit that the rule of correctness gives the mean error
  Both max_share;
  Both lse_share;  // empty too where there is no log-sum-exp
  bool correct_before = false;
  bool correct_after = false;
};

// How far the log-ratios of pairs scatter within a process, and processes beyond that;
// empty in older summaries.
struct Spread {
  std::optional<double> within;
  std::optional<double> between;
};

struct Verdict {
  std::string toggle;
  std::string base;
  std::string candidate;
  std::string shape;
  std::optional<int64_t> n_pairs;
  Estimate ratio;  // time(base) / time(candidate)
  std::optional<double> adjusted_confidence;
  double gate = 0;
  std::string verdict;
  std::string reason;
  std::optional<double> mde_ratio;
  std::optional<double> predicted_low;
  std::optional<double> predicted_high;
  std::optional<bool> prediction_held;
  Spread spread;
  std::optional<CodeChange> change;  // empty in older summaries
  std::vector<ErrorChange> errors;   // where a check failed or the errors differ; else empty
};

struct Control {
  std::string kind;
  std::string shape;
  std::string candidate;
  Estimate ratio;
  bool holds_one = false;  // whether the interval contains 1
  std::string timing_verdict;
  std::string verdict;
  bool false_verdict = false;
  std::optional<double> mde_ratio;  // empty in older summaries
  Spread spread;
};

// What one toggle of a factorial contributes on one shape; RECORD.md has the
// definitions. Values are ratios but for the Shapley logs.
struct Attribution {
  std::string shape;
  std::string toggle;
  int64_t n_pairs = 0;
  Estimate main_effect;
  std::optional<double> shapley_share;  // of the whole gain; can be below 0 or above 1
  std::optional<double> shapley_log;
  std::optional<double> shapley_log_low;
  std::optional<double> shapley_log_high;
  std::optional<double> total_log;
  std::string first_base;  // the cell that `first` adds the toggle to
  Estimate first;
  std::string last_base;
  Estimate last;
  std::string reason;
};

struct Interaction {
  std::string shape;
  std::string a;
  std::string b;
  int64_t n_quadruples = 0;
  Estimate ratio;
  std::optional<double> a_without_b;
  std::optional<double> a_with_b;
  std::optional<double> b_without_a;
  std::optional<double> b_with_a;
  std::string reason;
};

// A combination that the rules forbid: `toggle` needs `missing`.
struct InfeasibleCell {
  std::string variant;
  std::string toggle;
  std::string missing;  // which it needs; with `why`, which excludes it
  std::string why;      // empty in a factorial, whose cells lack needs
};

// One case of the microbenchmarks of the same GPU, which the summary quotes.
struct MicroValue {
  std::string name;
  std::string unit;
  double value = 0;
  std::optional<double> percent_of_limit;
};

struct Statistics {
  double confidence = 0;
  int64_t bootstrap_resamples = 0;
  uint64_t bootstrap_seed = 0;
  double neutral_delta = 0;
  // The factor from which on errors count as different; empty in older summaries.
  std::optional<double> error_ratio;
  int64_t family_size = 0;
  std::string correction;
  std::string interval;  // how intervals are made; empty in records that do not say
};

struct Provenance {
  std::string created_utc;
  int64_t processes = 0;
  int64_t blocks_per_process = 0;
  // What of the plan is there; a block counts once per process and shape.
  int64_t processes_found = 0;
  int64_t blocks_planned = 0;
  int64_t blocks_missing = 0;
  int64_t peer_blocks_planned = 0;
  int64_t peer_blocks_missing = 0;
  std::string cache;
  std::string git_sha;
  bool git_dirty = false;
  std::string registry_sha256;
  std::string kernel_source_sha256;
  std::string nvcc;  // that made the kernels; empty where the record doesn't know
  std::string compute_capability;
  std::string gpu_name;
  int64_t sm_count = 0;
  std::optional<double> max_sm_clock_mhz;
  std::optional<int64_t> n_samples;
  std::optional<int64_t> throttled_samples;  // empty: no sample says
  int64_t unknown_throttle_samples = 0;
  std::optional<double> sm_mhz_p50;
  // Everything the record says of its origin, flattened: {"gpu.name", "…"}.
  std::vector<std::pair<std::string, std::string>> rows;
};

struct Summary {
  std::string run_id;
  std::string gpu_slug;
  std::string design;
  std::string family;
  Provenance provenance;
  Statistics statistics;
  std::vector<Shape> shapes;
  std::vector<Cell> cells;
  std::vector<Peer> peers;
  std::vector<Floor> floors;
  std::vector<Verdict> verdicts;
  std::vector<Control> controls;
  // Of a factorial; empty for other designs.
  std::vector<Attribution> attribution;
  std::vector<Interaction> interactions;
  std::vector<InfeasibleCell> infeasible;
  std::vector<MicroValue> micro;
  std::string micro_run_id;  // whose values these are; empty where there are none
  int64_t control_trials = 0;
  int64_t control_false_verdicts = 0;
  int64_t control_intervals_holding_one = 0;

  // The ladder at a shape: the base and its steps, in ladder order.
  std::vector<const Cell*> Ladder(std::string_view shape) const;
  // Null where the record has none.
  const Cell* FindCell(std::string_view variant, std::string_view shape) const;
  const Verdict* FindVerdict(std::string_view candidate, std::string_view shape) const;
  const Floor* FindFloor(std::string_view shape, std::string_view name = kEmptyFloor) const;
  const MicroValue* FindMicro(std::string_view name) const;

  bool IsCold() const { return provenance.cache == kColdCache; }

  // mission_b where the record has it, else the record's last shape.
  const Shape& MainShape() const;

  // Whether a cell may be compared with others: it passed correctness, it was
  // timed, and its verdict does not say that the timing means nothing.
  bool IsRanked(const Cell& cell) const;
  // Of the ranked cells of a shape's ladder; null when there is none.
  const Cell* FastestStep(std::string_view shape) const;
  const Cell* LastStep(std::string_view shape) const;
  // Of the peers that ran and were found right; null when there is none.
  const Peer* FastestPeer(std::string_view shape) const;
};

}  // namespace warpledger::report

#endif  // WARPLEDGER_REPORTS_MODEL_SUMMARY_H_
