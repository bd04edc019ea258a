// SPDX-License-Identifier: Apache-2.0
// main() of the CPU tests: as gtest_main, and with --source=PATH the tests of one source alone.
//
// A program holds the tests of many sources, so that they share what they compile, and ctest
// names each source. PATH is how the file's path ends, from a folder's name on
// ("ablations/store_test.cc"). Exit code 2 where no test is of that file: a test that does not
// run has not passed.

#include <cstdio>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace {

// A filter of exactly the tests whose file's path ends with "/" + source; empty: there is none.
std::string FilterOf(std::string_view source) {
  const std::string end = std::string("/").append(source);
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (!std::string_view(test.file()).ends_with(end)) continue;
      filter.append(suite.name()).append(".").append(test.name()).append(":");
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kSource = "--source=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(kSource)) {
    const std::string source(std::string_view(argv[1]).substr(kSource.size()));
    const std::string filter = FilterOf(source);
    if (filter.empty()) {
      std::fprintf(stderr, "%s: no test is of %s\n", argv[0], source.c_str());
      return 2;
    }
    GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}
