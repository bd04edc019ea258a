// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/job.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace warpledger::ablations {

absl::StatusOr<int> RotationSets(double bytes, std::string_view cache, int64_t l2_bytes) {
  if (cache != kCacheCold) return kInputSets;
  const double wanted = kColdL2Multiple * static_cast<double>(l2_bytes) / bytes;
  if (wanted > kMaxRotation) {
    return absl::InvalidArgumentError(
        absl::StrCat("one launch touches ", bytes, " bytes, so a cold L2 of ", l2_bytes,
                     " bytes would take ", std::ceil(wanted), " input sets, more than ",
                     kMaxRotation, "; measure this shape with --cache=warm"));
  }
  const int sets = static_cast<int>(std::ceil(wanted));
  return std::max(kInputSets, (sets + kInputSets - 1) / kInputSets * kInputSets);
}

std::string WorkerJob::ToJson() const {
  nlohmann::ordered_json done_json = nlohmann::ordered_json::array();
  for (const auto& [shape, block] : done) done_json.push_back({shape, block});
  nlohmann::ordered_json excluded_json = nlohmann::ordered_json::array();
  for (const auto& [arm, shape] : excluded) {
    excluded_json.push_back({{"arm", arm}, {"shape", shape}});
  }
  nlohmann::ordered_json planted_json = nlohmann::ordered_json::array();
  for (const PlantedFault& fault : planted) planted_json.push_back(ablations::ToJson(fault));
  return DumpLine({{"design", design},
                   {"shapes", shapes},
                   {"process", process},
                   {"seed", seed},
                   {"blocks", blocks},
                   {"replay_us", replay_us},
                   {"max_launches", max_launches},
                   {"cache", cache},
                   {"done", done_json},
                   {"excluded", excluded_json},
                   {"planted", planted_json}});
}

absl::StatusOr<WorkerJob> WorkerJob::FromJson(std::string_view text) {
  absl::StatusOr<nlohmann::ordered_json> json = ParseJson(text);
  if (!json.ok()) return json.status();
  WorkerJob job;
  try {
    job.design = json->at("design").get<std::string>();
    job.shapes = json->at("shapes").get<std::vector<std::string>>();
    job.process = json->at("process").get<int>();
    job.seed = json->at("seed").get<uint64_t>();
    job.blocks = json->at("blocks").get<int>();
    job.replay_us = json->at("replay_us").get<double>();
    job.max_launches = json->at("max_launches").get<int>();
    for (const auto& entry : json->at("done")) {
      job.done.emplace(entry.at(0).get<std::string>(), entry.at(1).get<int>());
    }
    job.cache = json->at("cache").get<std::string>();
    for (const auto& entry : json->at("excluded")) {
      job.excluded.emplace(entry.at("arm").get<std::string>(),
                           entry.at("shape").get<std::string>());
    }
    for (const auto& entry : json->at("planted")) {
      absl::StatusOr<PlantedFault> fault = PlantedFaultFromJson(entry);
      if (!fault.ok()) return fault.status();
      job.planted.push_back(*std::move(fault));
    }
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(std::string("malformed worker job: ") + error.what());
  }
  if (job.process < 0 || job.blocks < 1 || job.blocks > kMostBlocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed worker job: process ", job.process, ", ", job.blocks, " blocks"));
  }
  return job;
}

}  // namespace warpledger::ablations
