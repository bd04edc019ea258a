// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/npy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "ablations/base/files.h"
#include "gmock/gmock.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A file by hand: nothing here comes from the writer under test.
std::string FileBytes(int major, const std::string& header, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes.push_back(static_cast<char>(major));
  bytes.push_back(0);
  const int length_bytes = major == 1 ? 2 : 4;
  for (int i = 0; i < length_bytes; ++i) {
    bytes.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  }
  return bytes + header + data;
}

std::string HeaderText(const std::string& descr, const std::string& order,
                       const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::byte> Bytes(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

class NpyTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name = "q.npy") const { return dir_.path() + "/" + name; }

  absl::StatusOr<NpyArray> ReadBytes(const std::string& bytes) {
    std::ofstream(Path(), std::ios::binary) << bytes;
    return ReadNpy(Path());
  }
  // The message of a refused file.
  std::string Refusal(const std::string& bytes) {
    const absl::StatusOr<NpyArray> array = ReadBytes(bytes);
    EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument) << array.status();
    const std::string message(array.status().message());
    EXPECT_THAT(message, StartsWith(Path() + ": "));
    return message;
  }
  std::string HeaderRefusal(const std::string& header) { return Refusal(FileBytes(1, header, "")); }

  const ScratchFolder dir_ = ScratchFolder::Make().value();
};

TEST_F(NpyTest, ReadsEveryVersionOfTheFormat) {
  for (const int major : {1, 2, 3}) {
    const NpyArray array =
        ReadBytes(FileBytes(major, HeaderText("<f2", "False", "(2, 3)"), "abcdefghijkl")).value();
    EXPECT_EQ(array.type, NpyType::kFloat16);
    EXPECT_THAT(array.shape, ElementsAre(2, 3));
    EXPECT_EQ(array.data, Bytes("abcdefghijkl"));
  }
}

TEST_F(NpyTest, ReadsFp32AsItStands) {
  const float values[] = {1.5f, -2.0f};
  std::string data(sizeof(values), '\0');
  std::memcpy(data.data(), values, sizeof(values));
  const NpyArray array = ReadBytes(FileBytes(1, HeaderText("<f4", "False", "(2,)"), data)).value();
  EXPECT_EQ(array.type, NpyType::kFloat32);
  EXPECT_EQ(std::memcmp(array.data.data(), values, sizeof(values)), 0);
}

TEST_F(NpyTest, ReadsAScalarAsOneElement) {
  const NpyArray array = ReadBytes(FileBytes(1, HeaderText("<f2", "False", "()"), "ab")).value();
  EXPECT_THAT(array.shape, IsEmpty());
}

TEST_F(NpyTest, ReadsKeysInAnyOrderAndWithAnyQuotes) {
  const NpyArray array =
      ReadBytes(
          FileBytes(1, "{\"shape\":(1 ,2),\"descr\":\"=f2\",'fortran_order' : False}   \n", "abcd"))
          .value();
  EXPECT_THAT(array.shape, ElementsAre(1, 2));
}

TEST_F(NpyTest, RefusesATypeItCannotUseAndSaysHowToConvert) {
  EXPECT_THAT(HeaderRefusal(HeaderText("<f8", "False", "(1,)")),
              AllOf(HasSubstr("dtype '<f8' is not read, fp16 ('<f2') or fp32 ('<f4') is needed"),
                    EndsWith("', x.astype(numpy.float16))")));
  EXPECT_THAT(HeaderRefusal("{'descr': [('x', '<f2')], 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("is not read"));
}

TEST_F(NpyTest, RefusesBigEndianData) {
  EXPECT_THAT(HeaderRefusal(HeaderText(">f2", "False", "(1,)")),
              AllOf(HasSubstr("dtype '>f2' is big-endian"), HasSubstr("x.astype('<f2')")));
}

TEST_F(NpyTest, RefusesFortranOrder) {
  EXPECT_THAT(HeaderRefusal(HeaderText("<f2", "True", "(2, 3)")),
              AllOf(HasSubstr("fortran_order is True"), HasSubstr("numpy.ascontiguousarray(x)")));
}

TEST_F(NpyTest, RefusesTruncatedData) {
  EXPECT_THAT(
      Refusal(FileBytes(1, HeaderText("<f2", "False", "(2, 3)"), "abc")),
      AllOf(HasSubstr("3 bytes of data, shape (2, 3) of '<f2' needs 12"), HasSubstr("cut short")));
}

TEST_F(NpyTest, RefusesTrailingBytes) {
  EXPECT_THAT(Refusal(FileBytes(1, HeaderText("<f2", "False", "(1,)"), "abc")),
              HasSubstr("3 bytes of data, shape (1,) of '<f2' needs 2; the file holds more"));
}

TEST_F(NpyTest, RefusesAFileThatEndsAnywhereBeforeItsData) {
  const std::string whole = FileBytes(1, HeaderText("<f2", "False", "(1,)"), "ab");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Refusal(whole.substr(0, size));
  }
}

TEST_F(NpyTest, RefusesWhatIsNotNpy) {
  EXPECT_THAT(Refusal("PK\x03\x04 an npz file"), HasSubstr("is not a .npy file"));
  EXPECT_THAT(Refusal(""), HasSubstr("is not a .npy file"));
}

TEST_F(NpyTest, RefusesAVersionThatDoesNotExist) {
  EXPECT_THAT(Refusal(FileBytes(4, HeaderText("<f2", "False", "(1,)"), "ab")),
              HasSubstr("format version 4.0, 1.0, 2.0 or 3.0 is needed"));
}

TEST_F(NpyTest, RefusesADamagedHeaderAndSaysWhere) {
  const struct {
    std::string header;
    std::string why;
  } cases[] = {
      {"", "not JSON"},
      {"{'descr", "not JSON"},
      {"{'descr': '<f2'}", "key 'fortran_order' is missing"},
      {"{'fortran_order': False, 'shape': (1,)}", "key 'descr' is missing"},
      {"{'descr': '<f2', 'fortran_order': False}", "key 'shape' is missing"},
      {"{'descr': '<f2', 'descr': '<f2'}", "'descr' stands twice"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,), 'order': 'C'}", "more than three"},
      {"{'descr': '<f2' 'shape': (1,)}", "not JSON"},
      {"{'descr': [('x'}", "not JSON"},
      {HeaderText("<f2", "0", "(1,)"), "fortran_order: expected true or false, found 0"},
      {HeaderText("<f2", "False", "3"), "shape: expected a list, found 3"},
      {HeaderText("<f2", "False", "(3)"), "a number, not a tuple"},
      {HeaderText("<f2", "False", "(2 3)"), "not JSON"},
      {HeaderText("<f2", "False", "(99999999999999999999,)"), "shape[0]: expected an integer"},
      {HeaderText("<f2", "False", "(1,)") + "x", "not JSON"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(HeaderRefusal(c.header), AllOf(HasSubstr("damaged header"), HasSubstr(c.why)))
        << c.header;
  }
}

TEST_F(NpyTest, KeepsControlBytesOfADamagedHeaderOutOfTheMessage) {
  EXPECT_THAT(HeaderRefusal("{\x1b[2J"), HasSubstr("'{\\033[2J'"));
}

TEST_F(NpyTest, RefusesEmptyDimensions) {
  EXPECT_THAT(HeaderRefusal(HeaderText("<f2", "False", "(0, 64)")),
              HasSubstr("shape (0, 64) holds no elements"));
  EXPECT_THAT(HeaderRefusal(HeaderText("<f2", "False", "(-1,)")),
              HasSubstr("shape (-1,) holds no elements"));
}

TEST_F(NpyTest, RefusesAShapeWhoseBytesOverflow) {
  EXPECT_THAT(HeaderRefusal(HeaderText("<f2", "False", "(4611686018427387904, 1)")),
              HasSubstr("more bytes than 64 bits count"));
  EXPECT_THAT(HeaderRefusal(HeaderText("<f2", "False", "(4294967296, 4294967296)")),
              HasSubstr("more bytes than 64 bits count"));
}

TEST_F(NpyTest, AllocatesNothingForAShapeThatTheFileCannotHold) {
  // Two exabytes: an allocation would end the test.
  EXPECT_THAT(Refusal(FileBytes(1, HeaderText("<f2", "False", "(1000000000000000000,)"), "ab")),
              HasSubstr("needs 2000000000000000000"));
  std::string claims_4_gb = FileBytes(2, "", "");
  claims_4_gb.replace(8, 4, "\xff\xff\xff\xff");
  EXPECT_THAT(Refusal(claims_4_gb), HasSubstr("it claims 4294967295 bytes"));
}

TEST_F(NpyTest, SaysThatAFileIsMissing) {
  const absl::Status status = ReadNpy(Path("none.npy")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), StartsWith(Path("none.npy") + ": "));
}

TEST_F(NpyTest, RefusesFoldersAndPipes) {
  EXPECT_THAT(std::string(ReadNpy(dir_.path()).status().message()),
              HasSubstr("this is no regular file"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadNpy(Path("pipe")).status().message()),
              HasSubstr("this is no regular file"));
}

TEST_F(NpyTest, ReadsBackWhatItWrote) {
  const std::vector<std::vector<int64_t>> shapes = {{}, {6}, {2, 3}, {1, 2, 3, 1}};
  for (const auto& shape : shapes) {
    for (const NpyType type : {NpyType::kFloat16, NpyType::kFloat32}) {
      const int64_t elements = shape.empty() ? 1 : 6;
      const NpyArray written = {
          shape, type, std::vector<std::byte>(elements * NpyTypeBytes(type), std::byte{7})};
      ASSERT_TRUE(WriteNpy(Path(), written).ok());
      const NpyArray read = ReadNpy(Path()).value();
      EXPECT_EQ(read.shape, written.shape);
      EXPECT_EQ(read.type, written.type);
      EXPECT_EQ(read.data, written.data);
    }
  }
}

TEST_F(NpyTest, WritesTheBytesThatTheFormatAsksFor) {
  ASSERT_TRUE(WriteNpy(Path(), {3}, NpyType::kFloat16, Bytes("abcdef")).ok());
  // 10 bytes before the header, spaces up to a multiple of 64, a newline last.
  std::string header = "{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }";
  header.resize(128 - 10 - 1, ' ');
  EXPECT_EQ(ReadAll(Path()), FileBytes(1, header + "\n", "abcdef"));
}

TEST_F(NpyTest, WritesVersion2WhenTheHeaderIsTooLongForVersion1) {
  const NpyArray written = {std::vector<int64_t>(30000, 1), NpyType::kFloat16, Bytes("ab")};
  ASSERT_TRUE(WriteNpy(Path(), written).ok());
  EXPECT_EQ(ReadAll(Path()).at(6), 2);
  const NpyArray read = ReadNpy(Path()).value();
  EXPECT_EQ(read.shape, written.shape);
}

TEST_F(NpyTest, ReplacesAFileAndLeavesNothingBesideIt) {
  ASSERT_TRUE(WriteNpy(Path(), {2}, NpyType::kFloat16, Bytes("abcd")).ok());
  ASSERT_TRUE(WriteNpy(Path(), {1}, NpyType::kFloat16, Bytes("ef")).ok());
  EXPECT_EQ(ReadNpy(Path())->data, Bytes("ef"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 1);
}

TEST_F(NpyTest, KeepsTheOldFileWhenAWriteFails) {
  // A folder of the same name can't be replaced by a file.
  fs::create_directory(Path());
  EXPECT_THAT(WriteNpy(Path(), {1}, NpyType::kFloat16, Bytes("ab")),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("this is a folder")));
  EXPECT_TRUE(fs::is_directory(Path()));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 1);
}

TEST_F(NpyTest, RefusesAnArrayThatIsLargerThanAnyFileThatIsRead) {
  const int64_t values = int64_t{1} << 41;
  std::ofstream(Path(), std::ios::binary)
      << FileBytes(1, HeaderText("<f2", "False", "(" + std::to_string(values) + ",)"), "");
  fs::resize_file(Path(), fs::file_size(Path()) + 2 * values);  // it takes no room
  EXPECT_THAT(ReadNpy(Path()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("are read")));
}

TEST_F(NpyTest, SaysThatTheFolderOfAWriteIsMissing) {
  EXPECT_THAT(WriteNpy(Path("no/such/q.npy"), {1}, NpyType::kFloat16, Bytes("ab")),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("check that the folder exists")));
}

TEST_F(NpyTest, RefusesToWriteWhatItWouldNotRead) {
  EXPECT_THAT(std::string(WriteNpy(Path(), {2}, NpyType::kFloat16, Bytes("abc")).message()),
              HasSubstr("shape (2,) of '<f2' needs 4 bytes, 3 were given"));
  for (const int64_t extent : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_FALSE(WriteNpy(Path(), {extent}, NpyType::kFloat16, {}).ok());
  }
  EXPECT_FALSE(fs::exists(Path()));
}

TEST_F(NpyTest, ChecksTypeAndShapeAgainstWhatIsNeeded) {
  const NpyArray array = {{2, 3}, NpyType::kFloat32, std::vector<std::byte>(24)};
  EXPECT_TRUE(CheckNpy("q.npy", array, NpyType::kFloat32, {2, 3}).ok());
  EXPECT_EQ(CheckNpy("q.npy", array, NpyType::kFloat16, {2, 3}).message(),
            "q.npy: dtype '<f4', fp16 ('<f2') is needed; write it with "
            "numpy.save('q.npy', x.astype(numpy.float16))");
  EXPECT_EQ(CheckNpy("q.npy", array, NpyType::kFloat32, {3, 2}).message(),
            "q.npy: shape (2, 3), (3, 2) is needed; pass the problem's own sizes, or reshape the "
            "array");
}

}  // namespace
}  // namespace warpledger::ablations
