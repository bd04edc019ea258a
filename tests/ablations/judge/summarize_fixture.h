// SPDX-License-Identifier: Apache-2.0
// A record whose verdicts are known, and how tests look into its summary.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ablations/judge/summarize.h"
#include "ablations/stats/random.h"
#include "ablations/subjects/sdpa/subject.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {

using Json = nlohmann::ordered_json;

inline constexpr double kScalarUs = 100;
inline constexpr double kTilingUs = 125;   // 0.80x
inline constexpr double kWmmaUs = 78.125;  // 1.60x over tiling, 1.28x over scalar

inline double TimeOf(const std::string& arm) {
  if (arm == "minimal_scalar") return kScalarUs;
  if (arm == "ladder:kv_tiling") return kTilingUs;
  if (arm == "floor:empty_kernel") return 2.5;
  return kWmmaUs;
}

// Three processes of eight blocks, with 0.2% of noise and a drift over blocks.
inline Record ExampleRecord() {
  analysis::Random random(5);
  Record record = TimedRecord(ExampleRun(), [&](const Sample& sample) {
    const double drift = 1 + 0.01 * sample.block;
    return TimeOf(sample.arm) * drift * (1 + 0.004 * (random.Uniform() - 0.5));
  });
  record.codegen = Codegen{"",
                           {{"minimal_scalar", "sm_90", "hash0", "p0", {}},
                            {"kv_tiling", "sm_90", "hash1", "p1", {}},
                            {"kv_tiling+wmma_qk", "sm_90", "hash2", "p2", {}},
                            {"kv_tiling+wmma_qk+null_toggle", "sm_90", "hash2", "p3", {}},
                            {"kv_tiling", "sm_80", "hash9", "p9", {}}}};
  record.resources = std::vector<InstanceResources>{{"minimal_scalar", "sm_90", 30, 512, 0, 0, 0},
                                                    {"kv_tiling", "sm_90", 40, 1024, 16, 8, 4},
                                                    {"kv_tiling", "sm_80", 99, 9, 9, 9, 9}};
  record.launch = std::vector<InstanceLaunch>{{"kv_tiling", 2048, 1000, 42, 64, 12}};
  return record;
}

inline Json SummaryOf(const Record& record) {
  const absl::StatusOr<summary::Summary> summary = Summarize(record, SdpaSubject());
  EXPECT_TRUE(summary.ok()) << summary.status();
  return summary.ok() ? ToJson(*summary) : Json::object();
}

inline std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

// The item of a list whose fields have the given values.
inline Json Find(const Json& list, const Json& wanted) {
  for (const Json& item : list) {
    bool matches = true;
    for (const auto& [field, value] : wanted.items()) matches = matches && item[field] == value;
    if (matches) return item;
  }
  ADD_FAILURE() << "no item like " << wanted.dump();
  return Json::object();
}

inline Json VerdictOn(const Json& summary, const std::string& toggle, const std::string& shape) {
  return Find(summary["verdicts"], {{"toggle", toggle}, {"shape", shape}});
}

inline std::string VerdictOf(const Record& record, const std::string& toggle,
                             const std::string& shape = "mission_b") {
  return VerdictOn(SummaryOf(record), toggle, shape)["verdict"].get<std::string>();
}

inline void ForSamples(Record& record, const std::string& arm, const std::string& shape,
                       const std::function<void(Sample&)>& change) {
  for (Sample& sample : record.samples) {
    if (sample.arm == arm && sample.shape == shape) change(sample);
  }
}

}  // namespace warpledger::ablations
