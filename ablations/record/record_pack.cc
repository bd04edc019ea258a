// SPDX-License-Identifier: Apache-2.0
#include <sys/types.h>

#include "ablations/record/record_files.h"
// After it: libmd's header needs its types.
#include <sha2.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ablations/record/columns.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

constexpr size_t kBlockBytes = 512;
constexpr size_t kNameBytes = 100;
constexpr char kRegularFile = '0';
constexpr char kOldRegularFile = '\0';  // of the tar before POSIX

// The header of POSIX.1-1988.
struct TarHeader {
  char name[kNameBytes];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char mtime[12];
  char checksum[8];
  char type;
  char link_name[100];
  char magic[6];
  char version[2];
  char user[32];
  char group[32];
  char device_major[8];
  char device_minor[8];
  char prefix[155];
  char padding[12];
};
static_assert(sizeof(TarHeader) == kBlockBytes);

// The sum of the header's bytes, its own field taken for blanks.
uint32_t ChecksumOf(TarHeader header) {
  std::memset(header.checksum, ' ', sizeof header.checksum);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  uint32_t sum = 0;
  for (size_t i = 0; i < sizeof header; ++i) sum += bytes[i];
  return sum;
}

size_t Padded(size_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

void AppendMember(const std::string& name, std::string_view contents, std::string* tar) {
  TarHeader header = {};
  std::memcpy(header.name, name.data(), name.size());
  const auto number = [](char* field, size_t bytes, size_t value) {
    std::snprintf(field, bytes, "%0*zo", static_cast<int>(bytes) - 1, value);
  };
  number(header.mode, sizeof header.mode, 0644);
  number(header.uid, sizeof header.uid, 0);
  number(header.gid, sizeof header.gid, 0);
  number(header.size, sizeof header.size, contents.size());
  number(header.mtime, sizeof header.mtime, 0);
  header.type = kRegularFile;
  std::memcpy(header.magic, "ustar", sizeof header.magic);
  std::memcpy(header.version, "00", sizeof header.version);
  std::snprintf(header.checksum, sizeof header.checksum, "%06o", ChecksumOf(header));
  header.checksum[7] = ' ';
  tar->append(reinterpret_cast<const char*>(&header), sizeof header);
  tar->append(contents);
  tar->append(Padded(contents.size()) - contents.size(), '\0');
}

std::string SumsOf(const std::map<std::string, std::string>& files) {
  std::string sums;
  for (const auto& [name, contents] : files) {
    absl::StrAppend(&sums, Sha256(contents), "  ", name, "\n");
  }
  return sums;
}

// libzstd's defaults of level 22 in 1.5, named so that another version does not choose others; it
// takes less of each for a smaller record. The window holds any record (decisions/0029).
absl::StatusOr<std::string> Compress(const std::string& tar) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                   &ZSTD_freeCCtx);
  if (context == nullptr) return absl::InternalError("libzstd has no memory");
  for (const auto& [parameter, value] : {std::pair{ZSTD_c_compressionLevel, 22},
                                         {ZSTD_c_windowLog, 27},
                                         {ZSTD_c_chainLog, 27},
                                         {ZSTD_c_hashLog, 25},
                                         {ZSTD_c_searchLog, 9},
                                         {ZSTD_c_minMatch, 3},
                                         {ZSTD_c_targetLength, 999},
                                         {ZSTD_c_strategy, static_cast<int>(ZSTD_btultra2)},
                                         {ZSTD_c_contentSizeFlag, 1},
                                         {ZSTD_c_checksumFlag, 1},
                                         {ZSTD_c_dictIDFlag, 0}}) {
    const size_t set = ZSTD_CCtx_setParameter(context.get(), parameter, value);
    if (ZSTD_isError(set)) {
      return absl::InternalError(absl::StrCat("libzstd: ", ZSTD_getErrorName(set)));
    }
  }
  std::string bytes(ZSTD_compressBound(tar.size()), '\0');
  const size_t size =
      ZSTD_compress2(context.get(), bytes.data(), bytes.size(), tar.data(), tar.size());
  if (ZSTD_isError(size)) {
    return absl::InternalError(absl::StrCat("libzstd: ", ZSTD_getErrorName(size)));
  }
  bytes.resize(size);
  return bytes;
}

absl::Status Damaged(const std::string& path, std::string_view why) {
  return absl::DataLossError(absl::StrCat(path, ": ", std::string(why)));
}

// What the frame claims of its size is not trusted: that much address space is set aside, up to the
// limit, and memory is used with what comes out.
absl::StatusOr<std::string> Decompress(std::string_view bytes, const std::string& path) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   &ZSTD_freeDCtx);
  if (context == nullptr) return absl::InternalError("libzstd has no memory");
  std::string tar;
  const unsigned long long claimed = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (claimed <= kMaxPackBytes) tar.reserve(claimed);
  std::vector<char> buffer(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
  while (true) {
    ZSTD_outBuffer out = {buffer.data(), buffer.size(), 0};
    const size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left)) {
      return Damaged(path, absl::StrCat("zstd: ", ZSTD_getErrorName(left)));
    }
    if (tar.size() + out.pos > kMaxPackBytes) {
      return Damaged(path, absl::StrCat("more than ", kMaxPackBytes,
                                        " bytes come out, the most that a pack may hold"));
    }
    tar.append(buffer.data(), out.pos);
    if (left == 0) break;
    if (in.pos == in.size && out.pos < out.size) {
      return Damaged(path, "it is cut off in the middle");
    }
  }
  if (in.pos != in.size) return Damaged(path, "something follows its end");
  return tar;
}

// A field of octal digits that ends in a NUL or a blank.
std::optional<size_t> ReadOctal(const char* field, size_t bytes) {
  size_t value = 0;
  size_t digits = 0;
  for (; digits < bytes && field[digits] >= '0' && field[digits] <= '7'; ++digits) {
    value = value * 8 + static_cast<size_t>(field[digits] - '0');
  }
  const bool ends = digits == bytes || field[digits] == '\0' || field[digits] == ' ';
  if (digits == 0 || digits > 11 || !ends) return std::nullopt;
  return value;
}

struct Member {
  std::string name;
  std::string_view contents;
};

// The members in their order; of what is not ours the first thing is named.
absl::StatusOr<std::vector<Member>> ReadTar(std::string_view tar, const std::string& path) {
  std::vector<Member> members;
  size_t at = 0;
  const auto is_zero = [](std::string_view text) {
    return text.find_first_not_of('\0') == std::string_view::npos;
  };
  while (true) {
    if (tar.size() - at < kBlockBytes) return Damaged(path, "its tar is cut off");
    if (is_zero(tar.substr(at, kBlockBytes))) break;
    TarHeader header;
    std::memcpy(&header, tar.data() + at, sizeof header);
    at += kBlockBytes;
    const std::optional<size_t> checksum = ReadOctal(header.checksum, sizeof header.checksum);
    if (checksum != ChecksumOf(header)) {
      return Damaged(path, absl::StrCat("the tar header after ", members.size(),
                                        " members does not fit its checksum"));
    }
    const std::string name(header.name, strnlen(header.name, sizeof header.name));
    const auto refuse = [&](std::string_view why) {
      return Damaged(path,
                     absl::StrCat("member '", absl::CHexEscape(name), "': ", std::string(why)));
    };
    if (std::memcmp(header.magic, "ustar", sizeof header.magic) != 0) {
      return refuse("it is of no POSIX ustar archive");
    }
    if (header.type != kRegularFile && header.type != kOldRegularFile) {
      return refuse("it is no regular file; a pack holds nothing else");
    }
    if (header.prefix[0] != '\0') return refuse("its name is too long");
    const std::optional<size_t> size = ReadOctal(header.size, sizeof header.size);
    if (!size) return refuse("its size is no number");
    if (*size > tar.size() - at || Padded(*size) > tar.size() - at) {
      return refuse("it is cut off");
    }
    members.push_back({name, tar.substr(at, *size)});
    at += Padded(*size);
  }
  if (!is_zero(tar.substr(at))) return Damaged(path, "something follows the end of its tar");
  return members;
}

// {file: sum} of the lines of sha256sum.
absl::StatusOr<std::map<std::string, std::string>> ReadSums(std::string_view text,
                                                            const std::string& path) {
  std::map<std::string, std::string> sums;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    if (line.empty()) continue;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits("  ", 1));
    if (parts.first.size() != 64 || parts.second.empty() ||
        !sums.emplace(parts.second, parts.first).second) {
      return Damaged(path, absl::StrCat(kSumsFile, ": the line '", absl::CHexEscape(line),
                                        "' is no sum, or its file has one already"));
    }
  }
  return sums;
}

}  // namespace

bool IsPackName(std::string_view name) {
  return !name.empty() && name.size() < kNameBytes && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  std::string_view("._+-").find(c) != std::string_view::npos;
         });
}

std::string Sha256(std::string_view bytes) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> digits = {};
  SHA256Data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digits.data());
  return digits.data();
}

absl::StatusOr<std::string> EncodePack(const RecordPack& pack) {
  std::map<std::string, std::string> by_columns;  // of the files that have this form
  const std::string sums = SumsOf(pack.files);
  size_t bytes = 3 * kBlockBytes + Padded(sums.size());
  for (const auto& [file, contents] : pack.files) {
    std::string member = absl::StrCat(pack.run, "/", file);
    std::optional<std::string> columns;
    if (absl::EndsWith(file, kLinesSuffix)) columns = ToColumns(contents);
    if (columns) absl::StrAppend(&member, kColumnsSuffix);
    if (!IsPackName(pack.run) || !IsPackName(file) || member.size() > kNameBytes ||
        file == kSumsFile || absl::EndsWith(file, kColumnsSuffix)) {
      return absl::InvalidArgumentError(absl::StrCat(
          member, ": no pack can hold this name; letters, digits and \"._+-\" make one, up to ",
          kNameBytes, " characters, and ", kSumsFile, " and ", kColumnsSuffix,
          " are the pack's own"));
    }
    bytes += kBlockBytes + Padded(columns ? columns->size() : contents.size());
    if (columns) by_columns[file] = *std::move(columns);
  }
  if (pack.files.empty() || bytes > kMaxPackBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(pack.run, ": no pack can hold ", pack.files.size(), " files of ", bytes,
                     " bytes; it has at least one, and at most ", kMaxPackBytes, " bytes"));
  }
  std::string tar;
  tar.reserve(bytes);
  AppendMember(absl::StrCat(pack.run, "/", kSumsFile), sums, &tar);
  for (const auto& [file, contents] : pack.files) {
    const auto columns = by_columns.find(file);
    if (columns == by_columns.end()) {
      AppendMember(absl::StrCat(pack.run, "/", file), contents, &tar);
    } else {
      AppendMember(absl::StrCat(pack.run, "/", file, kColumnsSuffix), columns->second, &tar);
    }
  }
  tar.append(2 * kBlockBytes, '\0');
  return Compress(tar);
}

absl::StatusOr<RecordPack> DecodePack(std::string_view bytes, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string tar, Decompress(bytes, path));
  ASSIGN_OR_RETURN(const std::vector<Member> members, ReadTar(tar, path));
  RecordPack pack;
  std::map<std::string, std::string> sums;
  for (const Member& member : members) {
    const std::vector<std::string> parts = absl::StrSplit(member.name, '/');
    if (parts.size() != 2 || !IsPackName(parts[0]) || !IsPackName(parts[1]) ||
        (!pack.run.empty() && parts[0] != pack.run)) {
      return Damaged(path, absl::StrCat("member '", absl::CHexEscape(member.name),
                                        "': its name is not of the form RUN/FILE, or of another "
                                        "run than the first member's"));
    }
    if (pack.run.empty()) {
      pack.run = parts[0];
      if (parts[1] != kSumsFile) {
        return Damaged(path,
                       absl::StrCat("its first member is '", member.name, "', not ", kSumsFile));
      }
      ASSIGN_OR_RETURN(sums, ReadSums(member.contents, path));
      continue;
    }
    std::string file = parts[1];
    std::string contents(member.contents);
    if (absl::EndsWith(file, kColumnsSuffix)) {
      file.resize(file.size() - std::string_view(kColumnsSuffix).size());
      absl::StatusOr<std::string> lines = FromColumns(member.contents);
      if (!lines.ok() || !IsPackName(file) || absl::EndsWith(file, kColumnsSuffix)) {
        return Damaged(path, absl::StrCat("member '", member.name, "': ",
                                          lines.ok() ? "no file of a record is called so"
                                                     : lines.status().message()));
      }
      contents = *std::move(lines);
    }
    if (file == kSumsFile || !pack.files.emplace(file, std::move(contents)).second) {
      return Damaged(path, absl::StrCat("member '", member.name, "' is there twice"));
    }
  }
  std::vector<std::string> misfits;
  for (const auto& [file, contents] : pack.files) {
    const auto promised = sums.find(file);
    if (promised == sums.end()) {
      misfits.push_back(absl::StrCat(file, " has no line in ", kSumsFile));
    } else if (promised->second != Sha256(contents)) {
      misfits.push_back(absl::StrCat(file, " is not what ", kSumsFile, " says: it was changed"));
    }
  }
  for (const auto& [file, sum] : sums) {
    if (!pack.files.contains(file)) misfits.push_back(absl::StrCat(file, " is missing"));
  }
  if (pack.files.empty()) misfits.push_back("it holds no file");
  if (!misfits.empty()) return Damaged(path, absl::StrJoin(misfits, "; "));
  return pack;
}

}  // namespace warpledger::ablations
