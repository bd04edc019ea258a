// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "absl/strings/str_cat.h"
#include "micro/harness/microbenchmark.h"

namespace warpledger::harness {
namespace {

constexpr int kMinLengths = 4;

// Made on first use: registrars of other files run in no order.
std::vector<MicroCase>& Registry() {
  static auto* const cases = new std::vector<MicroCase>;
  return *cases;
}

std::string FaultOf(const CaseInfo& about) {
  const bool three_parts = about.name.find('/') != about.name.rfind('/');
  if (about.name.empty() || !three_parts) {
    return "its name needs at least three parts, as in exp_cost/expf/latency";
  }
  if (about.measures.empty()) return "`measures` is empty: say what the value is";
  for (const Published& published : about.published) {
    if (published.source.empty()) return "a published figure has no source";
  }
  for (const Evidence& evidence : about.evidence) {
    if (evidence.sass.empty() && evidence.ptx.empty()) return "evidence without a pattern";
    if (evidence.at_least == 0 && evidence.at_most < 0) return "evidence that can't fail";
  }
  if (about.limit.own > 0 && about.limit.own_source.empty()) return "its own limit has no source";
  return "";
}

std::string FaultOf(const CycleCase& micro_case) {
  if (micro_case.kernel == nullptr) return "it has no kernel";
  if (micro_case.about.evidence.empty()) {
    return "a CycleCase must say by which machine code it is proved";
  }
  if (micro_case.units_per_iteration <= 0) return "units_per_iteration must be above 0";
  if (static_cast<int>(micro_case.lengths.size()) < kMinLengths) {
    return absl::StrCat("a slope needs at least ", kMinLengths, " lengths");
  }
  int previous = 0;
  for (const int length : micro_case.lengths) {
    if (length <= previous) return "lengths must rise, from 1 on";
    previous = length;
  }
  if (micro_case.threads < 0 || micro_case.threads > 1024 || micro_case.threads % 32 != 0) {
    return "threads must be a multiple of 32, at most 1024";
  }
  if (micro_case.ctas_per_sm < 1) return "ctas_per_sm must be at least 1";
  if (static_cast<int>(micro_case.args.size()) > kMaxCycleParams) {
    return absl::StrCat("at most ", kMaxCycleParams, " args");
  }
  return "";
}

std::string FaultOf(const TimeCase& micro_case) {
  if (!micro_case.setup) return "it has no setup";
  if (micro_case.units <= 0) return "units must be above 0";
  if (!micro_case.about.evidence.empty() && micro_case.kernels.empty()) {
    return "its evidence speaks of no kernel: fill `kernels`";
  }
  return "";
}

std::string FaultOf(const ValueCase& micro_case) {
  if (!micro_case.compute) return "it has no compute";
  if (!micro_case.about.evidence.empty() && micro_case.kernels.empty()) {
    return "its evidence speaks of no kernel: fill `kernels`";
  }
  return "";
}

}  // namespace

void Add(MicroCase micro_case) { Registry().push_back(std::move(micro_case)); }

const std::vector<MicroCase>& AllCases() { return Registry(); }

const CaseInfo& InfoOf(const MicroCase& micro_case) {
  return std::visit([](const auto& kind) -> const CaseInfo& { return kind.about; }, micro_case);
}

absl::Status CheckCases(const std::vector<MicroCase>& cases) {
  if (cases.empty()) {
    return absl::InvalidArgumentError(
        "no case is registered: link the objects of micro/*.cu into the program");
  }
  std::set<std::string> names;
  for (const MicroCase& micro_case : cases) names.insert(InfoOf(micro_case).name);
  std::set<std::string> seen;
  for (const MicroCase& micro_case : cases) {
    const CaseInfo& about = InfoOf(micro_case);
    std::string fault = FaultOf(about);
    if (fault.empty()) {
      fault = std::visit([](const auto& kind) { return FaultOf(kind); }, micro_case);
    }
    if (fault.empty() && !seen.insert(about.name).second) fault = "its name is taken";
    if (fault.empty() && !about.peak_case.empty() && !names.contains(about.peak_case)) {
      fault = absl::StrCat("there is no case '", about.peak_case, "' to be its peak");
    }
    if (!fault.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("microbenchmark case '", about.name, "': ", fault));
    }
  }
  return absl::OkStatus();
}

}  // namespace warpledger::harness
