// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/listing.h"

#include "absl/strings/str_cat.h"
#include "micro/harness/kernel_names.h"

namespace warpledger::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr int kComputeCapabilities[] = {80, 89, 90};

std::vector<const void*> KernelsOf(const MicroCase& micro_case) {
  if (const auto* cycles = std::get_if<CycleCase>(&micro_case)) {
    return {reinterpret_cast<const void*>(cycles->kernel)};
  }
  if (const auto* time = std::get_if<TimeCase>(&micro_case)) return time->kernels;
  return std::get<ValueCase>(micro_case).kernels;
}

}  // namespace

absl::StatusOr<Json> ListCases(const std::vector<MicroCase>& cases) {
  constexpr const char* kKinds[] = {"cycles", "time", "value"};
  Json list = Json::array();
  for (const MicroCase& micro_case : cases) {
    const CaseInfo& about = InfoOf(micro_case);
    Json row;
    row["name"] = about.name;
    row["kind"] = kKinds[micro_case.index()];
    row["measures"] = about.measures;
    row["unit"] = about.unit;
    row["min_cc"] = about.min_cc;
    row["max_cc"] = about.max_cc;
    row["peak_case"] = about.peak_case;
    row["kernels"] = Json::array();
    for (const void* kernel : KernelsOf(micro_case)) {
      const absl::StatusOr<std::string> symbol = KernelName(kernel);
      if (!symbol.ok()) {
        return absl::NotFoundError(absl::StrCat(about.name, ": ", symbol.status().message()));
      }
      row["kernels"].push_back(*symbol);
    }
    row["evidence"] = Json::array();
    for (const Evidence& evidence : about.evidence) {
      row["evidence"].push_back({{"sass", evidence.sass},
                                 {"ptx", evidence.ptx},
                                 {"at_least", evidence.at_least},
                                 {"at_most", evidence.at_most},
                                 {"min_cc", evidence.min_cc},
                                 {"max_cc", evidence.max_cc}});
    }
    row["published"] = Json::array();
    for (const Published& published : about.published) {
      row["published"].push_back({{"cc", published.cc},
                                  {"value", published.value},
                                  {"source", published.source},
                                  {"why", published.why}});
    }
    row["parameters"] = Json::object();
    for (const Parameter& parameter : about.parameters) {
      row["parameters"][parameter.name] = parameter.value;
    }
    row["limits"] = Json::object();
    for (const int cc : kComputeCapabilities) {
      if (const std::optional<LimitFigure> limit = FindLimit(about.limit, cc)) {
        row["limits"][absl::StrCat(cc)] = {{"value", limit->value}, {"source", limit->source}};
      }
    }
    list.push_back(std::move(row));
  }
  return Json{{"schema_version", kSchemaVersion}, {"cases", std::move(list)}};
}

}  // namespace warpledger::harness
