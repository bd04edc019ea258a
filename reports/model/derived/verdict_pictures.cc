// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/verdict_pictures.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>

#include "reports/model/describe.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

// With more a picture is more than twice as tall as wide.
constexpr size_t kMaxVerdicts = 115;

size_t CountVerdicts(const Summary& summary, const std::vector<const Shape*>& shapes) {
  return static_cast<size_t>(
      std::count_if(summary.verdicts.begin(), summary.verdicts.end(), [&](const Verdict& verdict) {
        return std::any_of(shapes.begin(), shapes.end(),
                           [&](const Shape* shape) { return shape->name == verdict.shape; });
      }));
}

// What tells shapes apart: behind a picture's name, and in words.
struct Key {
  std::string suffix;
  std::string words;
};
using KeyOf = std::function<Key(const Shape&)>;

// A part with too many verdicts by the keys of its shapes, in the order of their first shapes.
std::vector<PicturePart> CutByKey(const Summary& summary, const std::vector<PicturePart>& parts,
                                  const KeyOf& key_of) {
  std::vector<PicturePart> out;
  for (const PicturePart& part : parts) {
    std::vector<PicturePart> cut;
    for (const Shape* shape : part.shapes) {
      const Key key = key_of(*shape);
      const std::string suffix = part.suffix + key.suffix;
      auto at = std::find_if(cut.begin(), cut.end(),
                             [&](const PicturePart& other) { return other.suffix == suffix; });
      if (at == cut.end()) {
        const std::string begin = part.title.empty() ? "shapes with " : part.title + ", ";
        at = cut.insert(cut.end(), {.suffix = suffix, .title = begin + key.words, .shapes = {}});
      }
      at->shapes.push_back(shape);
    }
    if (cut.size() > 1 && CountVerdicts(summary, part.shapes) > kMaxVerdicts) {
      out.insert(out.end(), cut.begin(), cut.end());
    } else {
      out.push_back(part);
    }
  }
  return out;
}

// A part with too many verdicts as parts of about as many shapes each.
std::vector<PicturePart> CutEvenly(const Summary& summary, const std::vector<PicturePart>& parts) {
  std::vector<PicturePart> out;
  for (const PicturePart& part : parts) {
    const size_t count = part.shapes.size();
    const size_t verdicts = CountVerdicts(summary, part.shapes);
    const size_t room = std::max<size_t>(1, kMaxVerdicts * count / std::max<size_t>(1, verdicts));
    const size_t pieces = (count + room - 1) / room;
    if (pieces <= 1) {
      out.push_back(part);
      continue;
    }
    const size_t size = (count + pieces - 1) / pieces;
    for (size_t first = 0, number = 1; first < count; first += size, ++number) {
      const auto begin = part.shapes.begin() + static_cast<ptrdiff_t>(first);
      const auto end = part.shapes.begin() + static_cast<ptrdiff_t>(std::min(count, first + size));
      std::vector<std::string> names;
      std::transform(begin, end, std::back_inserter(names),
                     [](const Shape* shape) { return shape->name; });
      out.push_back(
          {.suffix = Cat(part.suffix, "_", number),
           .title = Cat(part.title.empty() ? "shapes" : part.title, ": ", JoinWords(names)),
           .shapes = {begin, end}});
    }
  }
  return out;
}

}  // namespace

std::vector<PicturePart> PictureParts(const Summary& summary) {
  PicturePart all;
  for (const Shape& shape : summary.shapes) all.shapes.push_back(&shape);
  std::vector<PicturePart> parts = CutByKey(summary, {all}, [](const Shape& shape) {
    if (!shape.attention) return Key();
    const int64_t head_dim = shape.attention->head_dim;
    return Key{Cat("_d", head_dim), Cat("head_dim ", head_dim)};
  });
  parts = CutByKey(summary, parts, [](const Shape& shape) {
    if (!shape.attention) return Key();
    return shape.attention->causal ? Key{"_causal", "causal attention"}
                                   : Key{"_full", "full attention"};
  });
  return CutEvenly(summary, parts);
}

std::string VerdictPictures(const Summary& summary, std::string_view prefix, std::string_view name,
                            std::string_view judged) {
  std::string out;
  for (const PicturePart& part : PictureParts(summary)) {
    const bool whole = part.title.empty();
    const std::string where = whole ? "each shape" : part.title;
    const auto picture = [&](std::string_view kind) {
      return PicturePath(summary, prefix, Cat(name, kind, part.suffix));
    };
    if (!whole) Append(&out, "### S", part.title.substr(1), "\n\n");
    Append(&out, "![Effect of each ", judged, " at ", where, "](", picture("effects"),
           ")\n\n![Verdict of each ", judged, " at ", where, "](", picture("matrix"), ")\n\n");
  }
  out.pop_back();  // one empty line between sections is put by the caller
  return out;
}

}  // namespace warpledger::report
