// SPDX-License-Identifier: Apache-2.0
// What each technique is worth alone, by its microbenchmark.
//
// Contract: pure functions of their arguments. Units in which less is
// better ("cycles", "us", "ns") are told from rates, so that an effect above 1 is
// always the faster one. No errors.
//
//   Isolated isolated = IsolatedOf(summary, claim.micro);
//   if (isolated.effect) text += FormatRatio(isolated.effect);

#pragma once

#include <optional>
#include <string>

#include "reports/model/summary.h"

namespace warpledger::report {

// What the microbenchmarks that a summary quotes say of one toggle.
struct Isolated {
  const MicroValue* off = nullptr;  // null where the summary doesn't quote the case
  const MicroValue* on = nullptr;
  std::optional<double> effect;  // above 1: the technique is faster
};

Isolated IsolatedOf(const Summary& summary, const ablations::ClaimMicro& micro);

// The cases and their values in words: "`a/b`: 16.0 B/clk/SM, against `a/c`: 128 B/clk/SM".
std::string DescribeCases(const Isolated& isolated, const ablations::ClaimMicro& micro);

}  // namespace warpledger::report
