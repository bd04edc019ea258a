// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/record_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "ablations/base/files.h"
#include "ablations/plan/calibration.h"
#include "ablations/record/micro_record.h"
#include "ablations/record/store.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class RecordFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = fs::path(::testing::TempDir()) / (std::string("record_files_") + test->name());
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string Path(const std::string& name) const { return (dir_ / name).string(); }

  void WritePack(const std::string& path, const RecordPack& pack) const {
    const std::string bytes = EncodePack(pack).value();
    ASSERT_TRUE(WriteFileAtomically(Path(path), bytes).ok());
  }
  void WriteFolder(const std::string& name, const std::string& file,
                   const std::string& text) const {
    fs::create_directories(dir_ / name);
    ASSERT_TRUE(WriteFileAtomically(Path(name + "/" + file), text).ok());
  }

  fs::path dir_;
};

TEST(Sha256, IsTheStandards) {
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Pack, IsDecodedToWhatWasEncoded) {
  const RecordPack pack = {"mine",
                           {{"a.json", "{}\n"},
                            {"b.gz", std::string("\0\xff", 2)},
                            {"c", ""},
                            {"d.jsonl", "1,2\n3,4\n"},
                            {"e.jsonl", "cut off"}}};
  const std::string bytes = EncodePack(pack).value();
  EXPECT_EQ(bytes, *EncodePack(pack));
  const RecordPack again = DecodePack(bytes, "mine.tar.zst").value();
  EXPECT_EQ(again.run, pack.run);
  EXPECT_EQ(again.files, pack.files);
}

TEST(Pack, RefusesNamesThatNoPackHolds) {
  for (const char* name : {"", ".", "..", ".hidden", "-x", "a/b", "a b", "a\nb", "a\\b", "ä"}) {
    EXPECT_FALSE(IsPackName(name)) << name;
    EXPECT_EQ(EncodePack({name, {{"a", ""}}}).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(EncodePack({"a", {{name, ""}}}).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(EncodePack({"a", {{kSumsFile, ""}}}).ok());
  EXPECT_FALSE(EncodePack({"a", {{"samples.jsonl.columns", ""}}}).ok());
  EXPECT_FALSE(EncodePack({"a", {}}).ok());
  const std::string half(60, 'a');
  EXPECT_FALSE(EncodePack({half, {{half, ""}}}).ok());
  EXPECT_FALSE(EncodePack({"a", {{"a", std::string(kMaxPackBytes, '\0')}}}).ok());
}

TEST_F(RecordFilesTest, AFolderAndItsPackAnswerAlike) {
  WriteFolder("mine", "run.json", "text");
  WritePack("packed.tar.zst", {"mine", {{"run.json", "text"}}});
  for (const std::string& path : {Path("mine"), Path("mine") + "/", Path("mine.tar.zst"),
                                  Path("packed"), Path("packed") + "/", Path("packed.tar.zst")}) {
    const RecordFiles files = RecordFiles::Open(path).value();
    EXPECT_EQ(files.packed(), path.find("packed") != std::string::npos) << path;
    EXPECT_EQ(files.name(), "mine") << path;
    EXPECT_THAT(files.Names(), ElementsAre("run.json"));
    EXPECT_EQ(*files.Read("run.json"), "text");
    EXPECT_TRUE(files.Has("run.json"));
    EXPECT_FALSE(files.Has("peers.json"));
    EXPECT_EQ(files.Read("peers.json").status().code(), absl::StatusCode::kNotFound);
  }
}

TEST_F(RecordFilesTest, ThePathThatIsThereGoesFirst) {
  WriteFolder("mine", "run.json", "of the folder");
  WritePack("mine.tar.zst", {"mine", {{"run.json", "of the pack"}}});
  EXPECT_EQ(*ReadRecordFile(Path("mine"), "run.json"), "of the folder");
  EXPECT_EQ(*ReadRecordFile(Path("mine.tar.zst"), "run.json"), "of the pack");
  EXPECT_THAT(RecordsIn(dir_.string()), ElementsAre(Path("mine")));
}

TEST_F(RecordFilesTest, APackThatWasReplacedIsReadAgain) {
  WritePack("mine.tar.zst", {"mine", {{"run.json", "one"}}});
  EXPECT_EQ(*ReadRecordFile(Path("mine"), "run.json"), "one");
  WritePack("mine.tar.zst", {"mine", {{"run.json", "two"}}});
  EXPECT_EQ(*ReadRecordFile(Path("mine"), "run.json"), "two");
}

TEST_F(RecordFilesTest, WhatIsNoRecordIsNamed) {
  EXPECT_EQ(RecordFiles::Open(Path("mine")).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(Path("run.json"), "{}").ok());
  EXPECT_EQ(RecordFiles::Open(Path("run.json")).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(WriteFileAtomically(Path("mine.tar.zst"), "no pack").ok());
  EXPECT_THAT(RecordFiles::Open(Path("mine")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("mine.tar.zst")));
}

TEST_F(RecordFilesTest, RecordsAreFoldersAndPacksInTheOrderOfTheirNames) {
  WriteFolder("b", "run.json", "");
  WritePack("a.tar.zst", {"a", {{"run.json", ""}}});
  WritePack("c.tar.zst", {"c", {{"run.json", ""}}});
  ASSERT_TRUE(WriteFileAtomically(Path("summaries.sha256"), "").ok());
  EXPECT_THAT(RecordsIn(dir_.string()),
              ElementsAre(Path("a.tar.zst"), Path("b"), Path("c.tar.zst")));
  EXPECT_THAT(RecordsIn(Path("nowhere")), IsEmpty());
}

TEST_F(RecordFilesTest, WritersRefuseAPackedRecord) {
  WritePack("mine.tar.zst", {"mine", {{"run.json", "{}"}}});
  for (const std::string& path : {Path("mine"), Path("mine") + "/", Path("mine.tar.zst")}) {
    for (const absl::Status& status :
         {RecordWriter::Open(path, RunInfo()).status(), RecordWriter::Create(path, {}).status(),
          RecordWriter::Resume(path, {}).status(), CalibrationWriter::Open(path, {}).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("`warpledger unpack "));
    }
  }
  EXPECT_FALSE(fs::exists(dir_ / "mine"));
  EXPECT_TRUE(RefusePacked(Path("other")).ok());
  WriteFolder("mine", "run.json", "{}");
  EXPECT_TRUE(RefusePacked(Path("mine")).ok());
}

TEST_F(RecordFilesTest, TheNewestMicrobenchmarksMayBePacked) {
  const std::string micro = R"({"gpu": {"slug": "h200", "uuid": "GPU-1"},
    "provenance": {"started": "now", "processes": 1, "n_samples": 2}, "micro": []})";
  WriteFolder("micro-1", kMicroFile, micro);
  WritePack("micro-2.tar.zst", {"micro-2", {{kMicroFile, micro}}});
  const auto newest = NewestMicroRecord(dir_.string(), "h200");
  ASSERT_TRUE(newest.ok() && newest->has_value()) << newest.status();
  EXPECT_EQ((*newest)->provenance["run_id"], "micro-2");
  EXPECT_EQ((*newest)->dir, Path("micro-2.tar.zst"));
}

}  // namespace
}  // namespace warpledger::ablations
