// SPDX-License-Identifier: Apache-2.0
// What two records say held against each other (judge/compare/compare.h), as
// `warpledger compare --format=json` writes it. As summary.h.
//
//   nlohmann::ordered_json json = ablations::ToJson(Compare(a, b));

#ifndef WARPLEDGER_ABLATIONS_SUMMARY_COMPARISON_H_
#define WARPLEDGER_ABLATIONS_SUMMARY_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablations/record/record.h"
#include "ablations/summary/parts.h"

namespace warpledger::summary {

struct ComparedRun {
  std::string run_id;
  std::string gpu;
  std::string created_utc;
  std::string git_sha;
  std::string kernel_source_sha256;

  template <typename F>
  void Visit(F& f) {
    f("run_id", run_id);
    f("gpu", gpu);
    f("created_utc", created_utc);
    f("git_sha", git_sha);
    f("kernel_source_sha256", kernel_source_sha256);
  }
};

// What else differs between the two runs: GPU, driver, compiler, sources, ….
struct Difference {
  std::string what;
  std::string a;
  std::string b;

  template <typename F>
  void Visit(F& f) {
    f("what", what);
    f("a", a);
    f("b", b);
  }
};

struct ComparisonStatistics {
  double confidence = 0;
  int64_t family_size = 0;
  std::string correction;
  double neutral_delta = 0;
  std::string interval;  // how intervals are made

  template <typename F>
  void Visit(F& f) {
    f("confidence", confidence);
    f("family_size", family_size);
    f("correction", correction);
    f("neutral_delta", neutral_delta);
    f("interval", interval);
  }
};

// Empty where a side does not know it.
struct BothSides {
  std::optional<int64_t> a;
  std::optional<int64_t> b;

  template <typename F>
  void Visit(F& f) {
    f("a", a);
    f("b", b);
  }
};

struct ComparedCell {
  std::string variant;  // A's name of the arm, or B's where A has no such cell
  std::optional<std::string> variant_b;
  std::string config;
  std::string shape;
  int64_t n_processes_a = 0;
  int64_t n_processes_b = 0;
  std::optional<double> p50_us_a;
  std::optional<double> p50_us_b;
  Estimate ratio;  // without bounds where a side has one process
  std::optional<double> adjusted_confidence;
  // FASTER, SLOWER, SAME (within neutral_delta, by two one-sided tests), CANNOT_TELL, or
  // NOT_COMPARED.
  std::string outcome;
  std::string reason;
  BothSides registers;
  BothSides smem_bytes;
  BothSides spill_bytes;
  BothSides stack_bytes;
  std::string code;  // same, changed or unknown

  bool Differs() const { return outcome == "FASTER" || outcome == "SLOWER"; }
  bool HasNoAnswer() const { return outcome == "NOT_COMPARED" || outcome == "CANNOT_TELL"; }

  template <typename F>
  void Visit(F& f) {
    f("variant", variant);
    f("variant_b", variant_b);
    f("config", config);
    f("shape", shape);
    f("n_processes_a", n_processes_a);
    f("n_processes_b", n_processes_b);
    f("p50_us_a", p50_us_a);
    f("p50_us_b", p50_us_b);
    ratio.Visit(f);
    f("adjusted_confidence", adjusted_confidence);
    f("outcome", outcome);
    f("reason", reason);
    f("registers", registers);
    f("smem_bytes", smem_bytes);
    f("spill_bytes", spill_bytes);
    f("stack_bytes", stack_bytes);
    f("code", code);
  }
};

// What neither side's kernels can change: the empty kernel, and peers of the same version.
struct ComparedReference {
  std::string name;
  std::string shape;
  Estimate ratio;      // time(A) / time(B)
  bool moved = false;  // surely by more than neutral_delta

  template <typename F>
  void Visit(F& f) {
    f("name", name);
    f("shape", shape);
    ratio.Visit(f);
    f("moved", moved);
  }
};

struct ChangedVerdict {
  std::string toggle;
  std::string shape;
  std::string base;
  std::string candidate;
  std::string verdict_a;
  std::optional<double> ratio_a;
  std::string verdict_b;
  std::optional<double> ratio_b;
  bool sign_flip = false;

  template <typename F>
  void Visit(F& f) {
    f("toggle", toggle);
    f("shape", shape);
    f("base", base);
    f("candidate", candidate);
    f("verdict_a", verdict_a);
    f("ratio_a", ratio_a);
    f("verdict_b", verdict_b);
    f("ratio_b", ratio_b);
    f("sign_flip", sign_flip);
  }
};

// Of the one-sided bound on the share of verdicts that agree.
inline constexpr double kAgreementConfidence = 0.95;

// Of the verdicts that are `compared`, those count as `decided` that both records answer with
// ADOPT, REAL_BELOW_GATE, NEUTRAL or REGRESSION; `unanswered` are those that one of them leaves
// INVALID, BROKEN or NOT_APPLICABLE.
struct VerdictsCompared {
  int64_t compared = 0;
  int64_t unanswered = 0;
  int64_t decided = 0;
  int64_t agreed = 0;
  std::optional<double> agreed_at_least;
  int64_t only_a = 0;
  int64_t only_b = 0;
  int64_t sign_flips = 0;
  std::vector<ChangedVerdict> changed;

  template <typename F>
  void Visit(F& f) {
    f("compared", compared);
    f("unanswered", unanswered);
    f("decided", decided);
    f("agreed", agreed);
    f("agreed_at_least", agreed_at_least);
    f("only_a", only_a);
    f("only_b", only_b);
    f("sign_flips", sign_flips);
    f("changed", changed);
  }
};

struct Comparison {
  ComparedRun a;
  ComparedRun b;
  std::vector<Difference> differences;
  ComparisonStatistics statistics;
  std::vector<ComparedCell> cells;
  std::vector<ComparedReference> references;
  VerdictsCompared verdicts;

  template <typename F>
  void Visit(F& f) {
    ablations::VisitSchema(f, ablations::kSchemaVersion);
    f("a", a);
    f("b", b);
    f("differences", differences);
    f("statistics", statistics);
    f("cells", cells);
    f("references", references);
    f("verdicts", verdicts);
  }
};

}  // namespace warpledger::summary

#endif  // WARPLEDGER_ABLATIONS_SUMMARY_COMPARISON_H_
