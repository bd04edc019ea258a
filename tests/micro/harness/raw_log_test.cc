// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/raw_log.h"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace warpledger::harness {
namespace {

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(RawLog, AppendsOneLinePerSample) {
  // A name of its own: another user's test may have left one.
  std::string path = testing::TempDir() + "/raw_log_XXXXXX";
  close(mkstemp(path.data()));
  std::ofstream(path) << "{\"kept\":1}\n";
  RawLog log = RawLog::Open(path).value();
  ASSERT_TRUE(log.Append({{{"case", "a"}, {"value", 0.1}}, {{"case", "b"}}}).ok());
  // What was appended is on the disk before the log is closed.
  EXPECT_EQ(Contents(path), "{\"kept\":1}\n{\"case\":\"a\",\"value\":0.1}\n{\"case\":\"b\"}\n");
  unlink(path.c_str());
}

TEST(RawLog, DropsLinesWithoutAPath) {
  RawLog log = RawLog::Open("").value();
  EXPECT_TRUE(log.Append({{{"case", "a"}}}).ok());
}

TEST(RawLog, SaysWhichFileItCannotOpen) {
  const absl::StatusOr<RawLog> log = RawLog::Open("/nonexistent/raw.jsonl");
  ASSERT_FALSE(log.ok());
  EXPECT_NE(std::string(log.status().message()).find("/nonexistent/raw.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace warpledger::harness
