// A summary of invented figures, for tests to change.

#ifndef WARPLEDGER_TESTS_REPORTS_SYNTHETIC_SUMMARY_H_
#define WARPLEDGER_TESTS_REPORTS_SYNTHETIC_SUMMARY_H_

#include <fstream>
#include <string>

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

}  // namespace warpledger::report

#endif  // WARPLEDGER_TESTS_REPORTS_SYNTHETIC_SUMMARY_H_
