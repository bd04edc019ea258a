// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace warpledger::ablations {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  std::string In(const std::string& name) const { return dir_ / name; }
  std::string Said(const absl::Status& status) const { return std::string(status.message()); }

  const ScratchFolder folder_ = ScratchFolder::Make().value();
  const fs::path dir_ = folder_.path();
};

TEST_F(Files, AWriteReplacesAFileAndKeepsItsMode) {
  for (const mode_t mode : {0600, 0755, 0644}) {
    ASSERT_TRUE(WriteFileAtomically(In("file"), "old").ok());
    ASSERT_EQ(chmod(In("file").c_str(), mode), 0);
    ASSERT_TRUE(WriteFileAtomically(In("file"), "new").ok());
    struct stat info;
    ASSERT_EQ(stat(In("file").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, mode);
    EXPECT_EQ(*ReadFile(In("file")), "new");
  }
}

TEST_F(Files, AWriteGoesThroughLinksAlsoToAFileThatIsNotThereYet) {
  fs::create_directory(In("folder"));
  fs::create_symlink("folder/target", In("link"));
  fs::create_symlink("link", In("second"));
  for (const char* text : {"first", "again"}) {
    ASSERT_TRUE(WriteFileAtomically(In("second"), text).ok());
    EXPECT_TRUE(fs::is_symlink(In("second")) && fs::is_symlink(In("link")));
    EXPECT_EQ(*ReadFile(In("folder/target")), text);
  }
  fs::create_symlink("circle", In("circle"));
  EXPECT_FALSE(WriteFileAtomically(In("circle"), "x").ok());
}

TEST_F(Files, ADeviceOrAPipeIsWrittenToAndStays) {
  fs::create_symlink("/dev/null", In("null"));
  EXPECT_TRUE(WriteFileAtomically(In("null"), "text").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(Said(WriteFileAtomically("/dev/full", "text")), HasSubstr("No space left"));

  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(WriteFileAtomically(In("pipe"), "text").ok());  // nobody reads it
  const int reader = open(In("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(WriteFileAtomically(In("pipe"), "text").ok());
  char bytes[8] = {};
  EXPECT_EQ(read(reader, bytes, sizeof(bytes)), 4);
  EXPECT_STREQ(bytes, "text");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(In("pipe")));
}

TEST_F(Files, AWriteRemovesWhatAKilledWriterOfTheSameFileLeft) {
  const pid_t killed = fork();
  if (killed == 0) _exit(0);
  ASSERT_EQ(waitpid(killed, nullptr, 0), killed);
  const std::string ours = absl::StrCat("page.md.tmp.", getpid(), ".7");
  const std::vector<std::string> kept = {ours, absl::StrCat("other.md.tmp.", killed, ".0"),
                                         absl::StrCat("page.md.tmp.", killed, ".old"),
                                         "page.md.tmp.backup", absl::StrCat("page.md.", killed)};
  std::vector<std::string> names = kept;
  names.push_back(absl::StrCat("page.md.tmp.", killed, ".0"));
  for (const std::string& name : names) ASSERT_TRUE(WriteFileAtomically(In(name), "half").ok());
  // A folder may hold what a record was: it is for whoever made it.
  const std::string folder = absl::StrCat("page.md.tmp.", killed);
  fs::create_directory(In(folder));
  ASSERT_TRUE(WriteFileAtomically(In("page.md"), "whole").ok());
  std::vector<std::string> expected = kept;
  expected.insert(expected.end(), {"page.md", folder});
  std::vector<std::string> there;
  for (const auto& entry : fs::directory_iterator(dir_)) {
    there.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(there, ::testing::UnorderedElementsAreArray(expected));
}

TEST_F(Files, AFolderIsNoFile) {
  EXPECT_THAT(Said(WriteFileAtomically(dir_, "x")), HasSubstr("this is a folder; name a file"));
  EXPECT_TRUE(fs::is_empty(dir_));
}

TEST_F(Files, OnlyRegularFilesOfAStatedSizeAreRead) {
  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  for (const std::string& path : {In("pipe"), std::string("/dev/zero"), dir_.string()}) {
    EXPECT_THAT(Said(ReadFile(path).status()), HasSubstr("this is no regular file")) << path;
  }
  ASSERT_TRUE(WriteFileAtomically(In("sparse"), "").ok());
  ASSERT_EQ(truncate(In("sparse").c_str(), kLargestFile + 1), 0);
  EXPECT_THAT(Said(ReadFile(In("sparse")).status()), HasSubstr("4294967297 bytes; at most"));
}

}  // namespace
}  // namespace warpledger::ablations
