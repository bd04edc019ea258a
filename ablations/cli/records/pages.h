// SPDX-License-Identifier: Apache-2.0
// What the commands that write pages share: their options, pictures, and a README's section.

#pragma once

#include <string>
#include <vector>

#include "ablations/cli/flags.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "reports/pages/pages.h"

namespace warpledger::cli {

// A README whose generated section is renewed.
struct ReadmeFlags {
  FlagSet* set;
  Flag<std::string> readme{set, "readme", "", "also renew the generated section of this README"};
  Flag<std::string> pictures{set, "readme_pictures", "",
                             "the pictures' folder as the README names it; default: --out"};

  // What goes before names of pages and pictures in the README, for pages in `out`.
  std::string Prefix(const std::string& out) const {
    return absl::StrCat(pictures.given ? *pictures : out, "/");
  }
  // Puts the text into the README's section of that name.
  absl::Status Renew(const char* section, const std::string& body) const;
};

// What records are held against. A program without the file of its kernels' machine code goes by
// the hashes of its sources.
absl::StatusOr<report::RenderOptions> OptionsOfThisTree();

// Summaries of runs as pages see them.
absl::StatusOr<report::Summary> ViewOf(summary::Summary summary);
absl::StatusOr<std::vector<report::Summary>> ViewsOf(std::vector<summary::Summary> summaries);

// Makes the folder of the page, and writes it.
absl::Status WritePage(const std::string& file, const std::string& text);

// Draws every figure of one summary, or, `joined`, the one that joins records: from what was just
// computed, not from a summary.json that may be older than the record.
absl::Status DrawSummaries(const std::vector<nlohmann::ordered_json>& summaries,
                           const std::string& python, const std::string& out, bool joined = false);

}  // namespace warpledger::cli
