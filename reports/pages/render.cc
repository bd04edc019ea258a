// SPDX-License-Identifier: Apache-2.0
#include "absl/status/status.h"
#include "reports/model/describe.h"
#include "reports/model/staleness.h"
#include "reports/model/text.h"
#include "reports/pages/pages.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

constexpr std::string_view kLadder = "ladder";

std::string Date(const Summary& summary) { return summary.provenance.created_utc.substr(0, 10); }

std::string_view Trimmed(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = line.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return line.substr(first, line.find_last_not_of(kBlanks) - first + 1);
}

// A line that consists of the marker and nothing else but blanks.
struct MarkerLine {
  size_t begin = 0;
  size_t end = 0;  // past the line end
};

absl::StatusOr<MarkerLine> FindMarker(std::string_view text, const std::string& marker) {
  MarkerLine found;
  int count = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = text.find('\n', begin);
    const size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
    if (Trimmed(text.substr(begin, end - begin)) == marker) {
      found = {.begin = begin, .end = end};
      ++count;
    }
    begin = end;
  }
  if (count == 1) return found;
  return absl::InvalidArgumentError(
      Cat("the text has ", count == 0 ? "no" : Cat(count), " line `", marker,
          "`, but must have exactly one; write the marker once where the generated section "
          "belongs"));
}

// Of a study its name comes first.
std::string Title(const Summary& summary) {
  const nlohmann::ordered_json& definition = summary.provenance.definition.json;
  const std::string design =
      summary.design == kLadder ? "Optimisation ladder" : DesignTitle(summary);
  const auto study = definition.find("study");
  if (study == definition.end()) return design;
  return Cat("Study ", Code(ablations::TextOf(*study, "name")), ": ", design);
}

}  // namespace

std::string RenderReport(const Summary& summary, const RenderOptions& options) {
  const bool ladder = summary.design == kLadder;
  std::string out = Cat("# ", Title(summary), " on ", summary.provenance.gpu.name,
                        summary.IsCold() ? " with a cold L2" : "",
                        summary.provenance.alone ? ", each arm alone" : "", ", ", Date(summary),
                        "\n\nWritten from the record `", summary.run_id, "` (design `",
                        summary.design, "`) by `warpledger report`.\n\n");
  if (summary.IsCold()) {
    out +=
        "Launches rotate over so many input sets that no launch finds its inputs in the L2. So no "
        "time here can be compared with a time of a record with a warm L2.\n\n";
  }
  const Staleness staleness = StalenessOf(summary, options);
  const std::string warning = WarningSection(summary, staleness);
  if (!warning.empty()) Append(&out, warning, "\n");
  if (const std::string harmless = HarmlessChanges(staleness); !harmless.empty()) {
    Append(&out, harmless, "\n\n");
  }
  if (summary.provenance.alone) {
    for (const std::string& section :
         {AloneSection(summary), ThroughputSection(summary, options.picture_prefix),
          ControlSection(summary), UndecidedSection(summary)}) {
      if (!section.empty()) Append(&out, section, "\n");
    }
    return out + ProvenanceSection(summary);
  }
  if (!ladder) {
    // A study has no pages of its techniques, so that its one page says what they claim.
    const bool is_study = !summary.provenance.definition.json.is_null();
    for (const std::string& section :
         {DesignSummary(summary, options.picture_prefix),
          ThroughputSection(summary, options.picture_prefix), PublishedSection(summary),
          SmallShapesSection(summary, options.picture_prefix), BesidePeersSection(summary),
          PlainReadSection(summary), DesignTables(summary), ErrorSection(summary),
          IsolatedSection(summary), ControlSection(summary), is_study ? ToggleSection(summary) : "",
          UndecidedSection(summary), StatisticsSection(summary)}) {
      if (!section.empty()) Append(&out, section, "\n");
    }
    return out + ProvenanceSection(summary);
  }
  for (const std::string& section :
       {SummarySection(summary), HowToReadSection(summary),
        PictureSection(summary, options.picture_prefix), LadderSection(summary),
        ThroughputSection(summary, options.picture_prefix), ErrorSection(summary),
        IsolatedSection(summary), PeerSection(summary), FloorSection(summary),
        ControlSection(summary), ToggleSection(summary), UndecidedSection(summary),
        StatisticsSection(summary)}) {
    if (!section.empty()) Append(&out, section, "\n");
  }
  return out + ProvenanceSection(summary);
}

absl::StatusOr<std::string> RenderReadmeSection(const Summary& summary,
                                                const RenderOptions& options) {
  if (summary.design != kLadder) {
    return absl::InvalidArgumentError(
        Cat("the README shows a ladder, and this record is of design `", summary.design,
            "`; leave --readme out"));
  }
  if (summary.IsCold()) {
    return absl::InvalidArgumentError(
        "the README shows a ladder with a warm L2, and this record's was cold; leave --readme out");
  }
  const Shape& main = summary.MainShape();
  const std::string warning = WarningSection(summary, StalenessOf(summary, options));
  std::string out;
  if (!warning.empty()) Append(&out, warning, "\n");
  Append(&out, "![Ladder at ", main.name, " on ", summary.provenance.gpu.name, "](",
         PicturePath(summary, options.picture_prefix, Cat("ladder_", main.name)), ")\n\n",
         ProgressSentence(summary, main), " (", summary.provenance.gpu.name, ", ", Date(summary),
         ", ", main.attention ? Cat(main.attention->dtype, ", ") : "", "`",
         summary.provenance.cache, "` L2.)\n\n", CompactLadder(summary, main));
  const std::string verdicts = VerdictSentences(summary, main);
  if (!verdicts.empty()) Append(&out, "\n", verdicts);
  return out;
}

absl::StatusOr<std::string> ReplaceGeneratedSection(std::string_view text, std::string_view name,
                                                    std::string_view body) {
  const absl::StatusOr<MarkerLine> begin =
      FindMarker(text, Cat("<!-- generated:", name, " begin -->"));
  if (!begin.ok()) return begin.status();
  const absl::StatusOr<MarkerLine> end = FindMarker(text, Cat("<!-- generated:", name, " end -->"));
  if (!end.ok()) return end.status();
  if (end->begin < begin->end) {
    return absl::InvalidArgumentError(Cat("the end marker of the generated section `", name,
                                          "` stands before its begin marker; swap them"));
  }
  return Cat(text.substr(0, begin->end), body, body.empty() || body.back() == '\n' ? "" : "\n",
             text.substr(end->begin));
}

}  // namespace warpledger::report
