// SPDX-License-Identifier: Apache-2.0
// A summary of invented figures, for tests to change.

#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace warpledger::report {

// testdata/make_summary.py writes them.
inline nlohmann::ordered_json Synthetic() {
  std::ifstream file("tests/reports/testdata/summary.json");
  EXPECT_TRUE(file) << "run the test from the repository's root";
  return nlohmann::ordered_json::parse(file);
}

// The element of an array that has this value and shape.
inline nlohmann::ordered_json& Find(nlohmann::ordered_json& array, const std::string& key,
                                    const std::string& value, const std::string& shape) {
  for (nlohmann::ordered_json& element : array) {
    if (element[key] == value && element["shape"] == shape) return element;
  }
  ADD_FAILURE() << "no " << value << " at " << shape;
  return array[0];
}

// The synthetic record as if its shapes were of S = 512 to 8192 at one size, for which the last
// step takes 100 us and the only peer as many times as `ratios` say.
inline nlohmann::ordered_json Grid(const std::vector<double>& ratios) {
  nlohmann::ordered_json json = Synthetic();
  nlohmann::ordered_json peers = nlohmann::ordered_json::array();
  for (size_t i = 0; i < json["shapes"].size(); ++i) {
    nlohmann::ordered_json& shape = json["shapes"][i];
    const int64_t seq = 512 << i;
    shape["batch"] = 16384 / seq;
    shape["heads_q"] = shape["heads_kv"] = 32;
    shape["seq_q"] = shape["seq_kv"] = seq;
    shape["flops"] = 1e10;
    for (nlohmann::ordered_json& cell : json["cells"]) {
      if (cell["shape"] != shape["name"]) continue;
      cell["p50_us"] = cell["variant"] == "ladder:wmma_pv" ? 100.0 : 200.0;
    }
    nlohmann::ordered_json peer = json["peers"][0];
    peer["name"] = "peer:cudnn";
    peer["shape"] = shape["name"];
    peer["p50_us"] = 100.0 * ratios[i];
    peers.push_back(peer);
  }
  json["peers"] = peers;
  return json;
}

}  // namespace warpledger::report
