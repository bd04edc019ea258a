// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/oracles.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/common/text.h"

namespace warpledger::fuzz {
namespace {

constexpr std::string_view kOurTags[] = {"<br>",       "<details>", "</details>", "<summary>",
                                         "</summary>", "<!-- ",     "<sub>",      "</sub>"};

std::string At(std::string_view what, std::string_view text, size_t at) {
  return absl::StrCat(Text(what), " at byte ", at, ": ", Text(text.substr(at, 60)));
}

size_t Cells(std::string_view row) {
  size_t cells = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '\\') {
      ++i;
    } else if (row[i] == '|') {
      ++cells;
    }
  }
  return cells;
}

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

// Reads XML from its beginning; `why` is what is wrong.
struct XmlReader {
  std::string_view xml;
  size_t at = 0;
  std::string why;

  bool Fail(std::string_view what) {
    if (why.empty()) why = At(what, xml, std::min(at, xml.size()));
    return false;
  }
  bool Take(std::string_view text) {
    if (xml.substr(at, text.size()) != text) return false;
    at += text.size();
    return true;
  }
  void TakeBlanks() {
    while (at < xml.size() && std::isspace(static_cast<unsigned char>(xml[at])) != 0) ++at;
  }
  std::string TakeName() {
    const size_t begin = at;
    while (at < xml.size() && IsNameCharacter(xml[at])) ++at;
    return std::string(xml.substr(begin, at - begin));
  }
  // Up to, and without, `end`.
  bool TakeText(char end) {
    for (; at < xml.size() && xml[at] != end; ++at) {
      const auto byte = static_cast<unsigned char>(xml[at]);
      if (byte < ' ' && byte != '\n' && byte != '\t') return Fail("a control character");
      if (xml[at] == '<') return Fail("a < in a text");
      if (xml[at] != '&') continue;
      const std::string_view rest = xml.substr(at);
      if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") &&
          !rest.starts_with("&quot;")) {
        return Fail("no entity of XML");
      }
    }
    return true;
  }
  // Behind '<'. `open`: the elements around it.
  bool TakeTag(std::vector<std::string>& open) {
    if (Take("/")) {
      const std::string name = TakeName();
      if (open.empty() || open.back() != name) return Fail("the end of another element");
      open.pop_back();
      return Take(">") || Fail("no >");
    }
    const std::string name = TakeName();
    if (name.empty()) return Fail("no name of an element");
    std::set<std::string> seen;
    while (true) {
      TakeBlanks();
      if (Take("/>")) return true;
      if (Take(">")) {
        open.push_back(name);
        return true;
      }
      const std::string attribute = TakeName();
      if (attribute.empty() || !seen.insert(attribute).second) return Fail("no new attribute");
      const char quote = xml.substr(at, 2) == "='" ? '\'' : '"';
      const std::string_view end(&quote, 1);
      if (!Take("=") || !Take(end) || !TakeText(quote) || !Take(end)) {
        return Fail("no quoted value");
      }
    }
  }
};

}  // namespace

std::string WhyNoTerminalText(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f) {
      return At("a control character", text, i);
    }
  }
  return "";
}

std::string WhyNoPage(std::string_view markdown) {
  if (std::string why = WhyNoTerminalText(markdown); !why.empty()) return why;
  for (size_t i = markdown.find('<'); i < markdown.size(); i = markdown.find('<', i + 1)) {
    const std::string_view rest = markdown.substr(i);
    const char next = rest.size() > 1 ? rest[1] : ' ';
    const bool is_tag = std::isalpha(static_cast<unsigned char>(next)) != 0 || next == '/' ||
                        next == '!' || next == '?';
    if (is_tag && std::none_of(std::begin(kOurTags), std::end(kOurTags),
                               [&](std::string_view tag) { return rest.starts_with(tag); })) {
      return At("a tag", markdown, i);
    }
  }
  size_t cells = 0;  // of the table's first row; 0: no table
  for (const absl::string_view each : absl::StrSplit(Text(markdown), '\n')) {
    const std::string_view line(each.data(), each.size());
    const size_t here = line.starts_with("|") ? Cells(line) : 0;
    if (here > 0 && cells > 0 && here != cells) {
      return absl::StrCat(here, " borders of cells in place of ", cells, ": ", Text(line));
    }
    cells = here;
  }
  return "";
}

std::string WhyNoXml(std::string_view xml) {
  XmlReader reader = {xml, 0, ""};
  if (reader.Take("<?xml")) {
    reader.at = std::min(xml.find("?>"), xml.size() - 2) + 2;
  }
  std::vector<std::string> open;
  int roots = 0;
  while (true) {
    if (!reader.TakeText('<')) {
      // TakeText stops at '<' itself; anything else that it refuses is wrong.
      return reader.why;
    }
    if (!reader.Take("<")) break;
    const bool is_root = open.empty() && xml.substr(reader.at, 1) != "/";
    if (!reader.TakeTag(open)) return reader.why;
    roots += is_root;
  }
  if (!open.empty()) return absl::StrCat("no end of ", open.back());
  return roots == 1 ? "" : absl::StrCat(roots, " roots");
}

}  // namespace warpledger::fuzz
