// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"

namespace warpledger::fuzz {
namespace {

using Json = nlohmann::ordered_json;

// Where parsers and arithmetic have their borders.
const std::vector<std::string>& Tokens() {
  static const std::vector<std::string> tokens = absl::StrSplit(
      "null true -1 0 -0.0 1e-320 1e308 1e999 -1e999 NaN Infinity 2147483647 2147483648 "
      "9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616 "
      "99999999999999999999999999999999 \"\" \"\\u0000\" \"\\ud800\" \xff\xfe [] {} [[[[[[[[ } "
      "\" , \r\n ../../../etc/passwd",
      ' ');
  return tokens;
}
constexpr int kDeepest = 20000;
constexpr size_t kLongest = 100000;

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

std::string Join(const std::vector<std::string_view>& lines) {
  std::string text;
  for (const std::string_view line : lines) text += line;
  return text;
}

// Every value below `json`, itself included.
void Collect(Json& json, std::vector<Json*>& out) {
  out.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& child : json) Collect(child, out);
}

Json Nested(int depth) {
  Json json = 1;
  for (int i = 0; i < depth; ++i) {
    Json outer = Json::array();
    outer.push_back(std::move(json));
    json = std::move(outer);
  }
  return json;
}

Json OddValue(SplitMix64& random) {
  static const Json odd = [] {
    Json values = Json::parse(
        R"([null, true, "", [], {}, 0, -1, -0.0, 5e-324, 1.7976931348623157e308,
            -9223372036854775808, 9223372036854775807, 18446744073709551615])");
    values.push_back(std::string("\xff\xc0\x80\x00|", 5));
    return values;
  }();
  const size_t which = random.Below(odd.size() + 4);
  if (which < odd.size()) return odd[which];
  switch (which - odd.size()) {
    case 0:
      return std::string(random.Below(kLongest), 'a');
    case 1:
      return static_cast<int64_t>(random.Below(1u << 31));
    case 2:
      return random.Normal() * 1e6;
    default:
      return Nested(static_cast<int>(random.Below(200)));
  }
}

void MutateValue(Json& root, SplitMix64& random) {
  std::vector<Json*> values;
  Collect(root, values);
  Json& target = *values[random.Below(values.size())];
  switch (random.Below(6)) {
    case 0:
    case 1:
      target = OddValue(random);
      break;
    case 2: {  // another value of the same text
      Json other = *values[random.Below(values.size())];
      target = std::move(other);
      break;
    }
    case 3:  // one member less
      if (target.is_structured() && !target.empty()) {
        target.erase(std::next(target.begin(), static_cast<int64_t>(random.Below(target.size()))));
      } else {
        target = OddValue(random);
      }
      break;
    case 4:  // one member more
      if (target.is_array() && !target.empty()) {
        Json copy = target[random.Below(target.size())];
        target.push_back(std::move(copy));
      } else if (target.is_object()) {
        target["unknown_field"] = OddValue(random);
      } else {
        target = OddValue(random);
      }
      break;
    default:  // nearby numbers, which pass most checks of type and range
      if (target.is_number_integer()) {
        // At the ends of the range it wraps around.
        target = static_cast<int64_t>(static_cast<uint64_t>(target.get<int64_t>()) +
                                      random.Below(5) - 2);
      } else if (target.is_number_float()) {
        target = target.get<double>() * random.Normal();
      } else {
        target = OddValue(random);
      }
  }
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string DeepText(SplitMix64& random) {
  const auto depth = static_cast<size_t>(random.Below(kDeepest));
  std::string text(depth, '[');
  if (random.Below(2) == 0) text.append(depth, ']');
  return text;
}

}  // namespace

std::string MutateBytes(std::string_view text, SplitMix64& random) {
  std::string out(text);
  const auto at = [&] { return out.empty() ? 0 : random.Below(out.size()); };
  for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
    const size_t place = at();
    const size_t length = std::min<size_t>(1 + random.Below(64), out.size() - place);
    switch (random.Below(7)) {
      case 0:
        if (!out.empty()) out[place] = static_cast<char>(out[place] ^ (1u << random.Below(8)));
        break;
      case 1:
        if (!out.empty()) out[place] = static_cast<char>(random.Below(256));
        break;
      case 2:
        out.erase(place, length);
        break;
      case 3:
        out.insert(place, out.substr(place, length));
        break;
      case 4:
        out.insert(place, Tokens()[random.Below(Tokens().size())]);
        break;
      case 5:
        out.insert(place, DeepText(random));
        break;
      default:
        if (random.Below(4) == 0) out.resize(place);  // cut off, as by a full disk
    }
  }
  return out;
}

std::string MutateLines(std::string_view text, std::string_view donor, SplitMix64& random) {
  std::vector<std::string_view> lines = Lines(text);
  if (lines.empty()) return std::string(donor);
  const auto any = [&] { return static_cast<ptrdiff_t>(random.Below(lines.size())); };
  switch (random.Below(6)) {
    case 0:
      lines.erase(lines.begin() + any());
      break;
    case 1:
      lines.insert(lines.begin() + any(), lines[static_cast<size_t>(any())]);
      break;
    case 2:
      std::swap(lines[static_cast<size_t>(any())], lines[static_cast<size_t>(any())]);
      break;
    case 3: {  // the head of one line and the tail of another
      std::string_view& line = lines[static_cast<size_t>(any())];
      line = line.substr(0, random.Below(line.size() + 1));
      break;
    }
    case 4: {
      const std::vector<std::string_view> other = Lines(donor);
      if (!other.empty()) lines.insert(lines.begin() + any(), other[random.Below(other.size())]);
      break;
    }
    default:
      lines.resize(static_cast<size_t>(any()));
  }
  return Join(lines);
}

std::string MutateJson(std::string_view text, SplitMix64& random) {
  Json whole = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!whole.is_discarded()) {
    for (uint64_t n = 1 + random.Below(2); n > 0; --n) MutateValue(whole, random);
    return Dump(whole, 1) + "\n";
  }
  const std::vector<std::string_view> lines = Lines(text);
  if (lines.empty()) return std::string(text);
  std::string out(text);
  const std::string_view line = lines[random.Below(lines.size())];
  Json json = Json::parse(line.begin(), line.end(), nullptr, false);
  if (json.is_discarded()) return out;
  MutateValue(json, random);
  const auto place = static_cast<size_t>(line.data() - text.data());
  return out.replace(place, line.size(), Dump(json, -1) + "\n");
}

std::string Mutate(std::string_view text, std::string_view donor, SplitMix64& random) {
  switch (random.Below(5)) {
    case 0:
      return MutateBytes(text, random);
    case 1:
      return MutateLines(text, donor, random);
    default:
      return MutateJson(text, random);
  }
}

}  // namespace warpledger::fuzz
