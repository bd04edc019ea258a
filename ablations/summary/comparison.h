// SPDX-License-Identifier: Apache-2.0
// What two records say held against each other (judge/compare/compare.h), as
// `warpledger compare --format=json` writes it. As summary.h.
//
//   nlohmann::ordered_json json = ablations::ToJson(Compare(a, b));

#pragma once

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

  DESCRIBE_FIELDS(run_id, gpu, created_utc, git_sha, kernel_source_sha256)
};

// What else differs between the two runs: GPU, driver, compiler, sources, ….
struct Difference {
  std::string what;
  std::string a;
  std::string b;

  DESCRIBE_FIELDS(what, a, b)
};

struct ComparisonStatistics {
  double confidence = 0;
  int64_t family_size = 0;
  std::string correction;
  double neutral_delta = 0;
  std::string interval;  // how intervals are made

  DESCRIBE_FIELDS(confidence, family_size, correction, neutral_delta, interval)
};

// Empty where a side does not know it.
struct BothSides {
  std::optional<int64_t> a;
  std::optional<int64_t> b;

  DESCRIBE_FIELDS(a, b)
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

  void Visit(auto& f) {
    FIELDS(variant, variant_b, config, shape, n_processes_a, n_processes_b, p50_us_a, p50_us_b);
    ratio.Visit(f);
    FIELDS(adjusted_confidence, outcome, reason, registers, smem_bytes, spill_bytes, stack_bytes,
           code);
  }
};

// What neither side's kernels can change: the empty kernel, and peers of the same version.
struct ComparedReference {
  std::string name;
  std::string shape;
  Estimate ratio;      // time(A) / time(B)
  bool moved = false;  // surely by more than neutral_delta

  void Visit(auto& f) {
    FIELDS(name, shape);
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

  DESCRIBE_FIELDS(toggle, shape, base, candidate, verdict_a, ratio_a, verdict_b, ratio_b, sign_flip)
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

  DESCRIBE_FIELDS(compared, unanswered, decided, agreed, agreed_at_least, only_a, only_b,
                  sign_flips, changed)
};

struct Comparison {
  ComparedRun a;
  ComparedRun b;
  std::vector<Difference> differences;
  ComparisonStatistics statistics;
  std::vector<ComparedCell> cells;
  std::vector<ComparedReference> references;
  VerdictsCompared verdicts;

  void Visit(auto& f) {
    ablations::VisitSchema(f, ablations::kSchemaVersion);
    FIELDS(a, b, differences, statistics, cells, references, verdicts);
  }
};

}  // namespace warpledger::summary
