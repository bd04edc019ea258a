// SPDX-License-Identifier: Apache-2.0
// The summary of a run: what a record says, in figures and verdicts. The judge fills it, pages read
// it, and summary.json, the one file that pictures and outside scripts read, is its JSON form.
//
// Contract: equal summaries give equal bytes, and reading what was written gives the same summary.
// Derived figures carry six significant digits. Optionals are null in JSON.
//
//   nlohmann::ordered_json json = ablations::ToJson(summary);
//   absl::StatusOr<Summary> again = ablations::FromJson<Summary>(json);
//
// Errors of reading: InvalidArgument with the JSON path ("cells[3].p50_us") and what was found
// there; FailedPrecondition for a newer schema.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablations/record/record.h"
#include "ablations/summary/factorial.h"
#include "ablations/summary/parts.h"
#include "nlohmann/json.hpp"

namespace warpledger::summary {

// A time per call. p10 and p90 are quantiles of all samples: the spread of single replays.
struct Times {
  int64_t n_samples = 0;
  std::optional<int64_t> n_processes;  // of floors empty
  Estimate p50_us;
  std::optional<double> p10_us;
  std::optional<double> p90_us;

  void Visit(auto& f) {
    f("n_samples", n_samples, kCount);
    f("n_processes", n_processes, kOnlyWhereSet);
    p50_us.VisitAs(f, "p50_us", "ci_low_us", "ci_high_us");
    FIELDS(p10_us, p90_us);
  }
};

// Of a contender that was timed alone: medians of its visits.
struct Alone {
  std::optional<double> sm_mhz;
  std::optional<double> watts;
  Estimate joules;  // per call

  void Visit(auto& f) {
    f("sm_mhz", sm_mhz, "the SM clock by the SMs' counters, of ours and of peers");
    f("watts", watts, "by the energy counter; null where there is none, as the next three");
    joules.VisitAs(f, "joules", "joules_low", "joules_high");
  }
};

// A variant and a peer, each alone in the same record: peer / variant, above 1 ours is better. On
// this board, whose other records may say something else.
struct OverPeer {
  std::string peer;
  Estimate time;
  std::optional<Estimate> joules;

  void Visit(auto& f) {
    f("peer", peer);
    time.Visit(f);
    f("joules", joules, kOnlyWhereSet);
  }
};

// The other verdict on a claim whose arms were timed alone: of joules per call. Level, family and
// intervals are as those of the time.
struct EnergyVerdict {
  Estimate ratio;
  std::optional<double> adjusted_confidence;
  std::string verdict;
  std::string reason;

  void Visit(auto& f) {
    ratio.Visit(f);
    FIELDS(adjusted_confidence);
    f("verdict", verdict, kIsVerdict);
    FIELDS(reason);
  }
};

// What a kernel takes; empty where the record doesn't say.
struct Resources {
  std::optional<int64_t> registers;
  std::optional<int64_t> smem_bytes;
  std::optional<int64_t> spill_bytes;
  std::optional<int64_t> stack_bytes;
  std::optional<int64_t> threads;
  std::optional<int64_t> ctas_per_sm;

  DESCRIBE_FIELDS(registers, smem_bytes, spill_bytes, stack_bytes, threads, ctas_per_sm)
};

// One arm on one shape.
struct Cell : Times, Resources {
  std::string variant;  // the arm's name
  std::string config;
  std::optional<int64_t> kv_bits;
  std::string role;
  std::string toggle;
  std::string label;
  std::string shape;
  std::optional<bool> correct;
  std::optional<double> max_err;
  std::optional<double> max_err_rule;
  int64_t n_checks = 0;
  std::optional<double> tflops;
  std::optional<Estimate> speedup_over_first;
  std::optional<std::string> code_sha256;
  std::optional<double> sm_mhz_p50;
  std::string reason;
  std::optional<Alone> alone;
  std::vector<OverPeer> over_peers;

  void Visit(auto& f) {
    f("variant", variant, "the arm's name");
    f("config", config);
    f("kv_bits", kv_bits, kOnlyWhereSet, "8 where kernels read K and V so, else absent");
    FIELDS(role, toggle, label, shape);
    f("correct", correct, "null: never checked on this shape");
    f("max_err", max_err);
    f("max_err_rule", max_err_rule, "the limit");
    f("n_checks", n_checks);
    Times::Visit(f);
    FIELDS(tflops, speedup_over_first);
    Resources::Visit(f);
    f("code_sha256", code_sha256, "of its machine code; null where the record doesn't know");
    FIELDS(sm_mhz_p50, reason);
    f("alone", alone, kOnlyWhereSet, "where each arm was timed alone; decisions/0045");
    f("over_peers", over_peers, kOnlyWhereSet, "likewise");
  }
};

struct Peer : Times {
  std::string name;
  std::string version;
  std::string shape;
  bool available = false;
  std::optional<int64_t> kv_bits;
  std::optional<bool> correct;
  std::string reason;
  std::optional<Alone> alone;

  void Visit(auto& f) {
    FIELDS(name, version, shape, available);
    f("kv_bits", kv_bits, kOnlyWhereSet, "8 where it multiplies in 8 bits, else absent");
    FIELDS(correct, reason);
    Times::Visit(f);
    f("alone", alone, kOnlyWhereSet, "as of a cell");
  }
};

struct Floor : Times {
  std::string name;
  std::string shape;

  void Visit(auto& f) {
    FIELDS(name, shape);
    Times::Visit(f);
  }
};

// Instructions of the machine code by mnemonic, largest change first. An object in JSON.
struct Opcodes {
  struct Opcode {
    std::string name;
    Both<int64_t> count;
  };
  std::vector<Opcode> list;
};

nlohmann::ordered_json ToJson(const Opcodes& opcodes);
absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path, Opcodes& opcodes);

// What a toggle did to the kernel; instructions are those of the machine code, not as executed.
struct CodeChange {
  using Counts = Both<int64_t>;

  Counts registers;
  Counts smem_bytes;
  Counts spill_bytes;
  Counts warps_per_sm;
  std::optional<Counts> instructions;
  std::optional<Counts> evidence;
  std::optional<Opcodes> opcodes;

  void Visit(auto& f) {
    FIELDS(registers, smem_bytes, spill_bytes, warps_per_sm);
    f("instructions", instructions, "null without a disassembly, as the next two");
    f("evidence", evidence, "those whose opcode matches what the registry names as evidence");
    f("opcodes", opcodes, "the ten mnemonics whose number changed most, largest change first");
  }
};

// Errors on inputs of one kind; empty where there is no finite number. A share is the largest of an
// arm's checks as its part of the rule's limit.
struct ErrorChange {
  std::string inputs;
  Both<double> mean_err;
  Both<double> mean_share;
  Both<double> max_share;
  Both<double> lse_share;
  Both<bool> correct;

  DESCRIBE_FIELDS(inputs, mean_err, mean_share, max_share, lse_share, correct)
};

struct PowerCapped {
  int64_t base_pairs = 0;
  int64_t candidate_pairs = 0;
  std::optional<double> base_sm_mhz;
  std::optional<double> candidate_sm_mhz;

  DESCRIBE_FIELDS(base_pairs, candidate_pairs, base_sm_mhz, candidate_sm_mhz)
};

// Checks of both arms on the same inputs, and how many gave the same errors to the last digit.
struct SameErrors {
  int64_t checks = 0;
  int64_t same = 0;

  bool All() const { return same == checks; }
  std::string WhyInvalid() const { return same <= checks ? "" : "same is above checks"; }
  void Visit(auto& f) {
    f("checks", checks, kCount);
    f("same", same, kCount);
  }
};

struct Verdict {
  std::string toggle;
  std::string design;
  std::string base;
  std::string candidate;
  std::string shape;
  int64_t n_pairs = 0;
  int64_t n_processes = 0;
  std::string estimand = kTime;
  Estimate ratio;  // on boards of the kind
  std::optional<double> this_board_low;
  std::optional<double> this_board_high;
  std::optional<double> time_ratio;
  std::optional<double> standard_error;
  std::optional<double> error_df;
  std::optional<double> adjusted_confidence;
  double gate = 0;
  std::string verdict;
  std::string reason;
  std::optional<double> mde_ratio;
  std::optional<int64_t> boards_to_decide;
  std::optional<int64_t> processes_to_decide;
  Spread spread;
  std::optional<double> predicted_low;
  std::optional<double> predicted_high;
  std::optional<bool> prediction_held;
  std::optional<CodeChange> change;
  std::optional<PowerCapped> power_capped;
  std::optional<EnergyVerdict> energy;
  std::vector<ErrorChange> errors;
  std::optional<SameErrors> same_errors;

  void Visit(auto& f) {
    FIELDS(toggle, design, base, candidate, shape, n_pairs, n_processes);
    f("estimand", estimand, kOlderRecordsLack, kIsEstimand, "what is compared; decisions/0006");
    ratio.Visit(f);
    f("this_board_low", this_board_low, kOlderRecordsLack, Above{0},
      "ci_low and ci_high are of boards of the kind; these of the effect in this run's conditions");
    f("this_board_high", this_board_high, kOlderRecordsLack, Above{0});
    f("time_ratio", time_ratio, kOnlyWhereSet, Above{0},
      "of times, where cycles are compared: each arm's clock is set by its neighbours too");
    f("standard_error", standard_error, kOlderRecordsLack, "of the log-ratio, within the record");
    f("error_df", error_df, kOlderRecordsLack, "its degrees of freedom");
    f("adjusted_confidence", adjusted_confidence, "of both intervals, within the claim's family");
    FIELDS(gate);
    f("verdict", verdict, kIsVerdict, "by ci_low and ci_high");
    FIELDS(reason, mde_ratio);
    f("boards_to_decide", boards_to_decide, kOnlyWhereSet,
      "of an INCONCLUSIVE one: so many boards that repeat the ratio would decide");
    f("processes_to_decide", processes_to_decide, kOnlyWhereSet, "or so many on one board");
    spread.Visit(f);
    FIELDS(predicted_low, predicted_high);
    f("prediction_held", prediction_held,
      "all three null where the prediction does not speak of the verdict, as with a cold L2");
    f("change", change, kOnlyWhereSet, "each figure [base's, candidate's]");
    f("power_capped", power_capped, kOnlyWhereSet,
      "only where an arm ran under the board's power limit; decisions/0006");
    f("energy", energy, kOnlyWhereSet, "of joules per call, where each arm was timed alone");
    f("errors", errors, kOnlyWhereSet,
      "only where they differ, see below; each figure [base's, candidate's]");
    f("same_errors", same_errors, kOnlyWhereSet,
      "only of claims that leave every bit of the results: checks whose errors are the same");
  }
};

struct Control {
  std::string kind;
  std::string shape;
  std::string candidate;
  std::string estimand = kTime;
  Estimate ratio;  // on this board
  bool holds_one = false;
  std::string timing_verdict;
  std::string verdict;
  bool false_verdict = false;
  std::optional<double> mde_ratio;
  Spread spread;

  void Visit(auto& f) {
    f("kind", kind, OneOf(ablations::kRoleAa, ablations::kRoleNull));
    FIELDS(shape, candidate);
    f("estimand", estimand, kOlderRecordsLack, kIsEstimand);
    ratio.Visit(f);
    f("holds_one", holds_one, "whether the interval, of this board, contains 1");
    f("timing_verdict", timing_verdict, kIsVerdict, "as of a claim, on boards of the kind");
    f("verdict", verdict, kIsVerdict);
    f("false_verdict", false_verdict);
    f("mde_ratio", mde_ratio, kOlderRecordsLack);
    spread.Visit(f);
  }
};

struct ControlCounts {
  int64_t trials = 0;
  int64_t false_verdicts = 0;
  int64_t intervals_holding_one = 0;

  void Visit(auto& f) {
    f("trials", trials, kCount);
    f("false_verdicts", false_verdicts, kCount);
    f("intervals_holding_one", intervals_holding_one, kCount);
  }
};

// Where a run with a stopping rule ended on a shape.
struct Look {
  std::string shape;
  int64_t look = 0;  // from 1; 0: none reached yet
  int64_t processes = 0;
  double alpha_share = 0;
  std::optional<double> worst_half_width;
  bool stopped_early = false;

  DESCRIBE_FIELDS(shape, look, processes, alpha_share, worst_half_width, stopped_early)
};

struct Statistics {
  double confidence = 0;
  int64_t bootstrap_resamples = 0;
  uint64_t bootstrap_seed = 0;
  double neutral_delta = 0;
  std::optional<double> error_ratio;
  int64_t family_size = 0;
  std::string correction;
  std::string interval;
  std::vector<BoardSpread> spreads;
  std::vector<Look> looks;

  void Visit(auto& f) {
    f("confidence", confidence,
      Must{"a number between 0 and 1", [](double value) { return value > 0 && value < 1; }});
    FIELDS(bootstrap_resamples, bootstrap_seed, neutral_delta);
    f("error_ratio", error_ratio, kOlderRecordsLack, Above{1},
      "the factor from which on errors count as different");
    f("family_size", family_size, "verdicts in all families; a claim is one");
    FIELDS(correction);
    f("interval", interval, kOlderRecordsLack, "how intervals of times are made");
    f("spreads", spreads, kOlderRecordsLack,
      "how boards differ, by regime; empty where it is not known: decisions/0036");
    f("looks", looks, kOnlyWhereSet, "only of a run with a stopping rule");
  }
};

// Whose microbenchmarks are quoted.
struct MicroSource {
  std::string run_id;
  std::string started;
  std::string gpu_uuid;
  int processes = 0;
  int64_t n_samples = 0;

  void Visit(auto& f) {
    FIELDS(run_id, started, gpu_uuid, processes);
    f("n_samples", n_samples, kCount);
  }
};

// A case of a microbenchmark; figures carry six significant digits.
struct MicroValue {
  std::string name;
  std::string unit;
  double value = 0;
  std::optional<double> percent_of_limit;

  DESCRIBE_FIELDS(name, unit, value, percent_of_limit)
};

struct Provenance : ablations::RunInfo, Conditions {
  int64_t processes_found = 0;
  int64_t blocks_planned = 0;
  int64_t blocks_missing = 0;
  int64_t peer_blocks_planned = 0;
  int64_t peer_blocks_missing = 0;
  int64_t n_samples = 0;
  std::optional<int64_t> throttled_samples;
  int64_t unknown_throttle_samples = 0;
  std::optional<double> energy_over_power;
  std::optional<int64_t> starved_visits;
  std::optional<double> idle_share_p50;
  std::optional<double> idle_share_max;
  std::optional<MicroSource> micro;

  void Visit(auto& f) {
    AllBut all_but(f, {"shapes", "arms"});
    RunInfo::Visit(all_but);
    f("processes_found", processes_found, kCount);
    f("blocks_planned", blocks_planned, kCount, "a block counts once per process and shape");
    f("blocks_missing", blocks_missing, kCount);
    f("peer_blocks_planned", peer_blocks_planned, kCount);
    f("peer_blocks_missing", peer_blocks_missing, kCount);
    f("n_samples", n_samples, kCount);
    f("throttled_samples", throttled_samples, kCount, "null: no sample has a mask");
    f("unknown_throttle_samples", unknown_throttle_samples, kCount);
    Conditions::Visit(f);
    f("energy_over_power", energy_over_power, kOnlyWhereSet,
      "watts by the energy counter over NVML's reading of the power at a visit's end: the median");
    f("starved_visits", starved_visits, kOnlyWhereSet, kCount,
      "that count for nothing, because the GPU waited for the host; decisions/0045");
    f("idle_share_p50", idle_share_p50, kOnlyWhereSet, "of all visits");
    f("idle_share_max", idle_share_max, kOnlyWhereSet);
    f("micro", micro, kOnlyWhereSet, "whose values `micro` quotes");
  }
};

// 2: verdicts have an estimand and two intervals.
inline constexpr int kSummarySchemaVersion = 2;

struct Summary {
  std::string run_id;
  std::string gpu;  // slug
  std::string design;
  std::string family;
  Provenance provenance;
  Statistics statistics;
  std::vector<ablations::ShapeInfo> problems;
  std::vector<Cell> cells;
  std::vector<Peer> peers;
  std::vector<Floor> floors;
  std::vector<Verdict> verdicts;
  std::vector<Verdict> comparisons;  // of claims that no step of the design is
  ControlCounts controls_summary;
  std::vector<Control> controls;
  std::vector<MicroValue> micro;
  std::vector<MainEffect> effects;  // of a fractional factorial
  // Of a factorial.
  std::vector<Attribution> attribution;
  std::vector<Interaction> interactions;
  std::vector<InfeasibleCell> infeasible;  // of other designs too

  void Visit(auto& f) {
    ablations::VisitSchema(f, kSummarySchemaVersion);
    f("run_id", run_id);
    f("gpu", gpu, "its slug");
    FIELDS(design, family);
    f("provenance", provenance, "run.json but shapes and arms, then how much of it is there");
    f("statistics", statistics);
    f("shapes", problems, "as in run.json");
    FIELDS(cells, peers, floors, verdicts);
    f("comparisons", comparisons, kOnlyWhereSet,
      "as verdicts[], of claims that no step of the design is but two of its arms differ by; each "
      "claim is a family of its own");
    FIELDS(controls_summary, controls);
    f("micro", micro, "quoted from the newest micro-<time>/ of the same model of GPU");
    f("effects", effects, kOnlyWhereSet);
    f("attribution", attribution, kOnlyWhereSet);
    if (attribution.empty()) {
      f("infeasible", infeasible, kOnlyWhereSet);
    } else {
      FIELDS(interactions, infeasible);
    }
  }
};

}  // namespace warpledger::summary
