// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/npy.h"

#include <limits>
#include <optional>
#include <string_view>

#include "ablations/base/files.h"
#include "ablations/base/json_fields.h"
#include "ablations/base/json_text.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

static_assert(std::endian::native == std::endian::little,
              "data is passed on as the file holds it, which is little-endian");

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;  // magic, major, minor
// NumPy pads headers so that the data starts at a multiple of this.
constexpr std::size_t kAlignment = 64;
// More text than this in a message helps no one.
constexpr std::size_t kMaxQuoted = 80;

// Quotes are no danger to a terminal.
std::string Printable(absl::string_view text) {
  return absl::StrReplaceAll(absl::Utf8SafeCEscape(text), {{"\\'", "'"}, {"\\\"", "\""}});
}

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

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;

  DESCRIBE_FIELDS(descr, fortran_order, shape)
};

// A header is a Python dictionary of literals, which JSON writes otherwise.
absl::StatusOr<Header> ParseHeader(absl::string_view text) {
  ASSIGN_OR_RETURN(nlohmann::ordered_json json,
                   ParseJson(absl::StrReplaceAll(text, {{"'", "\""},
                                                        {"(", "["},
                                                        {",)", "]"},
                                                        {")", "]"},
                                                        {",}", "}"},
                                                        {", }", "}"},
                                                        {"False", "false"},
                                                        {"True", "true"}})));
  for (const char* key : {"descr", "fortran_order", "shape"}) {
    if (!json.contains(key)) {
      return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is missing"));
    }
  }
  if (json.size() > 3) return absl::InvalidArgumentError("it has more than three keys");
  // A record type, which is refused by name later on.
  if (json["descr"].is_array()) json["descr"] = json["descr"].dump();
  ASSIGN_OR_RETURN(Header header, FromJson<Header>(json));
  // In Python (3) is a number; only (3,) is a tuple.
  if (header.shape.size() == 1 && !absl::StrContains(text, ",)")) {
    return absl::InvalidArgumentError("'shape' is a number, not a tuple");
  }
  return header;
}

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

absl::Status Truncated(absl::string_view path, absl::string_view what) {
  return Bad(path, what, "the file is cut short: copy or write it again");
}

}  // namespace

std::string NpyShapeString(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

absl::StatusOr<NpyArray> ReadNpy(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  if (!absl::StartsWith(bytes, kMagic)) {
    return Bad(path, "is not a .npy file: it doesn't begin with '\\x93NUMPY'", SaveAs(path, "x"));
  }
  if (bytes.size() < kVersionEnd) return Truncated(path, "ends within the version");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const int major = byte(6);
  const int minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    return Bad(path,
               absl::StrCat("format version ", major, ".", minor, ", 1.0, 2.0 or 3.0 is needed"),
               SaveAs(path, "x"));
  }
  // The header's length: 2 bytes in version 1, 4 in versions 2 and 3 (numpy.lib.format).
  const std::size_t header_begin = kVersionEnd + (major == 1 ? 2 : 4);
  if (bytes.size() < header_begin) return Truncated(path, "ends within the header's length");
  std::size_t header_bytes = 0;
  for (std::size_t i = header_begin; i > kVersionEnd; --i) {
    header_bytes = header_bytes << 8 | byte(i - 1);
  }
  if (bytes.size() - header_begin < header_bytes) {
    return Truncated(path,
                     absl::StrCat("ends within the header: it claims ", header_bytes, " bytes"));
  }
  const std::string text = bytes.substr(header_begin, header_bytes);
  const absl::StatusOr<Header> header = ParseHeader(text);
  if (!header.ok()) {
    return Bad(path,
               absl::StrCat("damaged header: ", Printable(header.status().message()), " in ",
                            Quoted(text)),
               SaveAs(path, "x"));
  }
  NpyArray array;
  array.shape = header->shape;
  ASSIGN_OR_RETURN(array.type, TypeOf(path, header->descr));
  if (header->fortran_order) {
    return Bad(path, "fortran_order is True, C order is needed",
               SaveAs(path, "numpy.ascontiguousarray(x)"));
  }
  ASSIGN_OR_RETURN(const int64_t needed, CheckShape(path, array.shape, array.type));
  const std::string_view data = std::string_view(bytes).substr(header_begin + header_bytes);
  const auto present = static_cast<int64_t>(data.size());
  const std::string sizes =
      absl::StrCat(present, " bytes of data, shape ", NpyShapeString(array.shape), " of '",
                   NpyDescr(array.type), "' needs ", needed);
  if (present < needed) return Truncated(path, sizes);
  if (present > needed) {
    return Bad(path, sizes, "the file holds more than one array: save one array alone");
  }
  const auto* begin = reinterpret_cast<const std::byte*>(data.data());
  array.data.assign(begin, begin + data.size());
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
