// SPDX-License-Identifier: Apache-2.0
// Pictures of all verdicts of a record, cut where one would be too tall to read.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/model/summary.h"

namespace warpledger::report {

// The verdicts at some of the shapes, which stand in pictures of their own.
struct PicturePart {
  std::string suffix;  // behind a picture's name: "_d64_causal"; "" where nothing is cut
  std::string title;   // "shapes with head_dim 64, causal attention"; "" where nothing is cut
  std::vector<const Shape*> shapes;
};

// What one picture can show together: shapes of one head_dim where the record has too many
// verdicts, of one mask where these are still too many, and so many shapes in a row as there is
// room for. plots/parts.py cuts the pictures by the same rule.
std::vector<PicturePart> PictureParts(const Summary& summary);

// Links to the pictures of effects and of verdicts of each part, which are called
// `prefix``name`effects and so on. `judged`: what a verdict is on, as "toggle".
std::string VerdictPictures(const Summary& summary, std::string_view prefix, std::string_view name,
                            std::string_view judged);

}  // namespace warpledger::report
