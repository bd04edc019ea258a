#include "ablations/record.h"
#include "ablations/worker.h"

namespace warpledger::ablations {

std::string WorkerJob::ToJson() const {
  nlohmann::ordered_json done_json = nlohmann::ordered_json::array();
  for (const auto& [shape, block] : done) done_json.push_back({shape, block});
  return DumpLine({{"design", design},
                   {"shapes", shapes},
                   {"process", process},
                   {"seed", seed},
                   {"blocks", blocks},
                   {"replay_us", replay_us},
                   {"max_launches", max_launches},
                   {"done", done_json}});
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
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(std::string("malformed worker job: ") + error.what());
  }
  return job;
}

}  // namespace warpledger::ablations
