// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "ablations/base/files.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace warpledger::ablations {
namespace {

static_assert(std::endian::native == std::endian::little,
              "data is passed on as the file holds it, which is little-endian");

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;  // magic, major, minor
// NumPy pads headers so that the data starts at a multiple of this.
constexpr std::size_t kAlignment = 64;
// A header of these arrays has some hundred bytes. A length beyond this comes
// from a damaged file, and would be allocated before anything is checked.
constexpr std::size_t kMaxHeaderBytes = 1 << 20;
// More text than this in a message helps no one.
constexpr std::size_t kMaxQuoted = 80;

std::string Quoted(absl::string_view text) {
  const bool cut = text.size() > kMaxQuoted;
  return absl::StrCat("'", absl::Utf8SafeCEscape(text.substr(0, kMaxQuoted)), cut ? "…'" : "'");
}

absl::Status Bad(absl::string_view path, absl::string_view what, absl::string_view todo) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what, "; ", todo));
}

std::string SaveAs(absl::string_view path, absl::string_view expression) {
  return absl::StrCat("write it with numpy.save('", path, "', ", expression, ")");
}

// Closes the descriptor when it goes out of scope.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Reads until `size` bytes or the end of the file. Returns the bytes read, or
// -1 with errno set.
int64_t ReadUpTo(int fd, void* out, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = read(fd, static_cast<char*>(out) + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<int64_t>(done);
}

// Bytes of an array, or nullopt when they don't fit into an int64_t.
std::optional<int64_t> ArrayBytes(absl::Span<const int64_t> shape, NpyType type) {
  int64_t bytes = NpyTypeBytes(type);
  for (int64_t extent : shape) {
    if (extent > 0 && bytes > std::numeric_limits<int64_t>::max() / extent) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

// What both directions ask of a shape. Returns the array's bytes.
absl::StatusOr<int64_t> CheckShape(absl::string_view path, absl::Span<const int64_t> shape,
                                   NpyType type) {
  for (int64_t extent : shape) {
    if (extent <= 0) {
      return Bad(path, absl::StrCat("shape ", NpyShapeString(shape), " holds no elements"),
                 "every dimension must be at least 1");
    }
  }
  const std::optional<int64_t> bytes = ArrayBytes(shape, type);
  if (!bytes.has_value()) {
    return Bad(path,
               absl::StrCat("shape ", NpyShapeString(shape), " is more bytes than 64 bits count"),
               "check the shape, or write the file again");
  }
  return *bytes;
}

// --- The header: a Python dictionary of three keys ---------------------------

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Parses just the literals that NumPy writes. Methods return false, with `why`
// set, when the text is anything else.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text) {}

  bool Parse(Header* header) {
    bool has_descr = false, has_order = false, has_shape = false;
    if (!Expect('{')) return false;
    while (!Accept('}')) {
      std::string key;
      if (!ParseString(&key) || !Expect(':')) return false;
      bool* const has = key == "descr"           ? &has_descr
                        : key == "fortran_order" ? &has_order
                        : key == "shape"         ? &has_shape
                                                 : nullptr;
      if (has == nullptr) return Fail(absl::StrCat("unknown key ", Quoted(key)));
      if (*has) return Fail(absl::StrCat("key '", key, "' stands twice"));
      *has = true;
      const bool parsed = has == &has_descr   ? ParseDescr(&header->descr)
                          : has == &has_order ? ParseBool(&header->fortran_order)
                                              : ParseShape(&header->shape);
      if (!parsed) return false;
      if (!Accept(',') && !Peek('}')) return Fail("',' or '}' is missing after a value");
    }
    SkipSpace();
    if (at_ != text_.size()) return Fail("text follows the closing '}'");
    if (!has_descr) return Fail("key 'descr' is missing");
    if (!has_order) return Fail("key 'fortran_order' is missing");
    if (!has_shape) return Fail("key 'shape' is missing");
    return true;
  }

  const std::string& why() const { return why_; }

 private:
  bool Fail(std::string why) {
    why_ = std::move(why);
    return false;
  }
  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Peek(char c) {
    SkipSpace();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool Accept(char c) {
    if (!Peek(c)) return false;
    ++at_;
    return true;
  }
  bool Expect(char c) {
    if (Accept(c)) return true;
    return Fail(absl::StrCat("'", std::string(1, c), "' is missing at byte ", at_));
  }
  bool ParseString(std::string* out) {
    SkipSpace();
    if (!Peek('\'') && !Peek('"')) return Fail(absl::StrCat("no string at byte ", at_));
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == absl::string_view::npos) return Fail("a string doesn't end");
    *out = std::string(text_.substr(at_, end - at_));
    at_ = end + 1;
    return true;
  }
  bool ParseDescr(std::string* out) {
    // A list of fields: a record type, which is refused by name later on.
    if (Peek('[')) {
      const std::size_t end = text_.rfind(']');
      if (end == absl::string_view::npos || end < at_) return Fail("a list doesn't end");
      *out = std::string(text_.substr(at_, end + 1 - at_));
      at_ = end + 1;
      return true;
    }
    return ParseString(out);
  }
  bool ParseBool(bool* out) {
    SkipSpace();
    for (const bool value : {false, true}) {
      const absl::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        *out = value;
        return true;
      }
    }
    return Fail("'fortran_order' is neither True nor False");
  }
  bool ParseShape(std::vector<int64_t>* shape) {
    if (!Expect('(')) return false;
    bool comma = true;  // before the first extent there is nothing to part
    while (!Accept(')')) {
      if (!comma) return Fail("',' is missing in 'shape'");
      SkipSpace();
      const std::size_t begin = at_;
      while (at_ < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      }
      int64_t extent = 0;
      if (!absl::SimpleAtoi(text_.substr(begin, at_ - begin), &extent)) {
        return Fail("'shape' holds something other than numbers that fit into 64 bits");
      }
      shape->push_back(extent);
      comma = Accept(',');
    }
    // In Python (3) is a number; only (3,) is a tuple.
    if (shape->size() == 1 && !comma) return Fail("'shape' is a number, not a tuple");
    return true;
  }

  absl::string_view text_;
  std::size_t at_ = 0;
  std::string why_;
};

absl::StatusOr<NpyType> TypeOf(absl::string_view path, absl::string_view descr) {
  for (const NpyType type : {NpyType::kFloat16, NpyType::kFloat32}) {
    // '=' is the writer's own order; numpy.save never leaves it in a file, but
    // other writers do, and they run on little-endian machines.
    const std::string native = absl::StrCat("=", NpyDescr(type) + 1);
    if (descr == NpyDescr(type) || descr == native) return type;
  }
  std::string what = absl::StrCat("dtype ", Quoted(descr));
  if (descr == ">f2" || descr == ">f4") {
    return Bad(path, absl::StrCat(what, " is big-endian, '<", descr.substr(1), "' is needed"),
               SaveAs(path, absl::StrCat("x.astype('<", descr.substr(1), "')")));
  }
  return Bad(path, absl::StrCat(what, " is not read, fp16 ('<f2') or fp32 ('<f4') is needed"),
             SaveAs(path, "x.astype(numpy.float16)"));
}

// What the header says once everything in it has been checked.
struct Layout {
  std::vector<int64_t> shape;
  NpyType type = NpyType::kFloat16;
  int64_t data_bytes = 0;
};

absl::StatusOr<Layout> ParseHeader(absl::string_view path, absl::string_view text) {
  Header header;
  HeaderParser parser(text);
  if (!parser.Parse(&header)) {
    return Bad(path, absl::StrCat("damaged header: ", parser.why(), " in ", Quoted(text)),
               SaveAs(path, "x"));
  }
  Layout layout;
  absl::StatusOr<NpyType> type = TypeOf(path, header.descr);
  if (!type.ok()) return type.status();
  layout.type = *type;
  if (header.fortran_order) {
    return Bad(path, "fortran_order is True, C order is needed",
               SaveAs(path, "numpy.ascontiguousarray(x)"));
  }
  absl::StatusOr<int64_t> bytes = CheckShape(path, header.shape, *type);
  if (!bytes.ok()) return bytes.status();
  layout.data_bytes = *bytes;
  layout.shape = std::move(header.shape);
  return layout;
}

absl::Status ReadFailed(absl::string_view path, absl::string_view what) {
  const std::string message = absl::StrCat(path, ": ", what, ": ", std::strerror(errno));
  if (errno == ENOENT || errno == ENOTDIR) {
    return absl::NotFoundError(absl::StrCat(message, "; check the path"));
  }
  return absl::UnavailableError(absl::StrCat(message, "; check the path and its permissions"));
}

absl::Status Truncated(absl::string_view path, absl::string_view what) {
  return Bad(path, what, "the file is cut short: copy or write it again");
}

}  // namespace

std::string NpyShapeString(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

absl::StatusOr<NpyArray> ReadNpy(const std::string& path) {
  // O_NONBLOCK: a named pipe without a writer must be refused, not waited for.
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (file.fd() < 0 || fstat(file.fd(), &info) != 0) return ReadFailed(path, "cannot be opened");
  if (!S_ISREG(info.st_mode)) return Bad(path, "is not a regular file", "name a .npy file");

  // Magic and version, then the header's length: 2 bytes in version 1, 4 in
  // versions 2 and 3 (numpy.lib.format).
  std::string head(kVersionEnd, '\0');
  int64_t got = ReadUpTo(file.fd(), head.data(), head.size());
  if (got < 0) return ReadFailed(path, "cannot be read");
  if (!absl::StartsWith(head, kMagic)) {
    return Bad(path, "is not a .npy file: it doesn't begin with '\\x93NUMPY'", SaveAs(path, "x"));
  }
  if (got < static_cast<int64_t>(kVersionEnd)) return Truncated(path, "ends within the version");
  const int major = static_cast<unsigned char>(head[6]);
  const int minor = static_cast<unsigned char>(head[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return Bad(path,
               absl::StrCat("format version ", major, ".", minor, ", 1.0, 2.0 or 3.0 is needed"),
               SaveAs(path, "x"));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  unsigned char length_field[4] = {};
  got = ReadUpTo(file.fd(), length_field, length_bytes);
  if (got < 0) return ReadFailed(path, "cannot be read");
  if (got < static_cast<int64_t>(length_bytes)) {
    return Truncated(path, "ends within the header's length");
  }
  const std::size_t header_bytes = length_field[0] | length_field[1] << 8 | length_field[2] << 16 |
                                   static_cast<std::size_t>(length_field[3]) << 24;
  if (header_bytes > kMaxHeaderBytes) {
    return Bad(path,
               absl::StrCat("damaged header: it claims ", header_bytes, " bytes, at most ",
                            kMaxHeaderBytes, " are sensible"),
               SaveAs(path, "x"));
  }
  std::string text(header_bytes, '\0');
  got = ReadUpTo(file.fd(), text.data(), text.size());
  if (got < 0) return ReadFailed(path, "cannot be read");
  if (got < static_cast<int64_t>(header_bytes)) return Truncated(path, "ends within the header");

  absl::StatusOr<Layout> layout = ParseHeader(path, text);
  if (!layout.ok()) return layout.status();

  // Compared before anything is allocated: a header can claim any size.
  const int64_t present =
      info.st_size - static_cast<int64_t>(kVersionEnd + length_bytes + header_bytes);
  const std::string sizes =
      absl::StrCat(present, " bytes of data, shape ", NpyShapeString(layout->shape), " of '",
                   NpyDescr(layout->type), "' needs ", layout->data_bytes);
  if (present < layout->data_bytes) return Truncated(path, sizes);
  if (present > layout->data_bytes) {
    return Bad(path, sizes, "the file holds more than one array: save one array alone");
  }
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (layout->data_bytes > memory) {
    return Bad(path, absl::StrCat(sizes, ", and this machine has ", memory, " of memory"),
               "save a smaller array");
  }
  NpyArray array = {.shape = std::move(layout->shape), .type = layout->type, .data = {}};
  array.data.resize(static_cast<std::size_t>(layout->data_bytes));
  got = ReadUpTo(file.fd(), array.data.data(), array.data.size());
  if (got < 0) return ReadFailed(path, "cannot be read");
  if (got < layout->data_bytes) return Truncated(path, "shrank while it was read");
  return array;
}

absl::Status CheckNpy(const std::string& path, const NpyArray& array, NpyType type,
                      absl::Span<const int64_t> shape) {
  if (array.type != type) {
    const bool half = type == NpyType::kFloat16;
    return Bad(path,
               absl::StrCat("dtype '", NpyDescr(array.type), "', ", half ? "fp16" : "fp32", " ('",
                            NpyDescr(type), "') is needed"),
               SaveAs(path, half ? "x.astype(numpy.float16)" : "x.astype(numpy.float32)"));
  }
  if (absl::MakeConstSpan(array.shape) != shape) {
    return Bad(path,
               absl::StrCat("shape ", NpyShapeString(array.shape), ", ", NpyShapeString(shape),
                            " is needed"),
               "pass the problem's own sizes, or reshape the array");
  }
  return absl::OkStatus();
}

absl::Status WriteNpy(const std::string& path, absl::Span<const int64_t> shape, NpyType type,
                      absl::Span<const std::byte> data) {
  absl::StatusOr<int64_t> bytes = CheckShape(path, shape, type);
  if (!bytes.ok()) return bytes.status();
  if (*bytes != static_cast<int64_t>(data.size())) {
    return Bad(path,
               absl::StrCat("shape ", NpyShapeString(shape), " of '", NpyDescr(type), "' needs ",
                            *bytes, " bytes, ", data.size(), " were given"),
               "pass the whole array");
  }

  std::string text =
      absl::StrCat("{'descr': '", NpyDescr(type),
                   "', 'fortran_order': False, 'shape': ", NpyShapeString(shape), ", }");
  // Version 1 counts the header in 16 bits, which only absurd ranks exceed.
  const bool version_1 = kVersionEnd + 2 + text.size() + kAlignment <= 0xffff;
  const std::size_t preamble = kVersionEnd + (version_1 ? 2 : 4);
  const std::size_t used = preamble + text.size() + 1;
  text.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  text.push_back('\n');
  std::string head(kMagic);
  head.push_back(version_1 ? 1 : 2);
  head.push_back(0);
  for (std::size_t i = kVersionEnd; i < preamble; ++i) {
    head.push_back(static_cast<char>(text.size() >> 8 * (i - kVersionEnd) & 0xff));
  }
  head += text;

  const std::string_view values(reinterpret_cast<const char*>(data.data()), data.size());
  if (absl::Status status = WriteFileAtomically(path, {head, values}); !status.ok()) {
    return absl::UnavailableError(absl::StrCat(
        status.message(),
        "; check that the folder exists, may be written to and has room. Nothing was changed"));
  }
  return absl::OkStatus();
}

absl::Status WriteNpy(const std::string& path, const NpyArray& array) {
  return WriteNpy(path, array.shape, array.type, array.data);
}

}  // namespace warpledger::ablations
