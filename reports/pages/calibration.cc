// SPDX-License-Identifier: Apache-2.0
#include "reports/pages/calibration.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using Json = nlohmann::ordered_json;

std::string Percent(double percent, int decimals = 2) {
  return absl::StrFormat("%.*f%%", decimals, percent);
}

// A number of things. get<int>() alone takes any number, and cuts what does not fit.
int64_t CountOf(const Json& json) {
  constexpr int64_t kMost = int64_t{1} << 53;
  if (json.is_number_integer() && json >= 0 && json <= kMost) return json.get<int64_t>();
  throw Json::other_error::create(501, Cat("expected a count, found ", json.dump().substr(0, 60)),
                                  &json);
}

// "12 of 300 (4.0% [2.1%, 6.9%])"
std::string RateText(const Json& rate) {
  const int64_t of = CountOf(rate.at("of"));
  if (of == 0) return std::string(kNone);
  return Cat(CountOf(rate.at("count")), " of ", of, " (",
             Percent(100 * rate.at("rate").get<double>(), 1), " [",
             Percent(100 * rate.at("low").get<double>(), 1), ", ",
             Percent(100 * rate.at("high").get<double>(), 1), "])");
}

std::string VerdictCounts(const Json& counts) {
  std::vector<std::string> words;
  for (const auto& [verdict, count] : counts.items()) {
    words.push_back(Cat(CountOf(count), " ", verdict));
  }
  return JoinWords(words);
}

// Trials that stand in no rate; summaries with none, and older ones, lack the count.
int64_t InvalidTrials(const Json& json) {
  return json.contains("invalid_trials") ? CountOf(json.at("invalid_trials")) : 0;
}

std::string TargetText(const Json& target) {
  const std::string name = target.at("name").get<std::string>();
  if (name == "aa_verdict") return "A/A: false verdicts, each judged alone";
  if (name == "aa_verdict_in_family") return "A/A: false verdicts, corrected for their family";
  if (name == "aa_family") return "A/A: families with any false verdict";
  if (name == "planted_found") return "the planted 2%: found, judged alone";
  if (name == "planted_found_in_family") {
    return "the planted 2%: found, at the strictest level of a run's family";
  }
  return name;
}

std::string TargetTable(const Json& summary) {
  Table table({{"target"},
               {"limit", Table::Align::kRight},
               {"seen", Table::Align::kRight},
               {"one-sided 95% bound", Table::Align::kRight},
               {"outcome"}});
  for (const Json& target : summary.at("targets")) {
    const bool at_most = target.at("at_most").get<bool>();
    const std::string outcome = target.at("outcome").get<std::string>();
    table.AddRow({TargetText(target),
                  Cat(at_most ? "≤ " : "≥ ", Percent(100 * target.at("limit").get<double>(), 0)),
                  Cat(CountOf(target.at("count")), " of ", CountOf(target.at("of"))),
                  Cat(at_most ? "≤ " : "≥ ", Percent(100 * target.at("bound").get<double>(), 2)),
                  outcome == "open" ? "not contradicted, but too few to show it"
                                    : Cat("**", outcome, "**")});
  }
  return table.ToMarkdown();
}

// What calibrations of this kind of GPU say together of A/A families, where there are several.
std::string PooledSentence(const Json& summary, const PooledFamilies& pooled) {
  if (pooled.runs.empty()) return "";
  std::string runs;
  for (const std::string& run : pooled.runs) Append(&runs, runs.empty() ? "" : ", ", Code(run));
  double limit = 0;
  for (const Json& target : summary.at("targets")) {
    if (target.at("name") == "aa_family") limit = target.at("limit").get<double>();
  }
  return Cat("\nTogether with ", runs, ": **", pooled.with_false_verdict, " of ", pooled.of,
             "** families of identical arms have a false verdict, at most ",
             Percent(100 * pooled.bound, 2), " at a one-sided 95%: the limit of ",
             Percent(100 * limit, 0), " is ",
             pooled.bound <= limit ? "**shown** by all of them" : "not shown by them either",
             ".\n");
}

std::string PowerTable(const Json& summary) {
  Table table({{"slow-down, aimed at", Table::Align::kRight},
               {"achieved", Table::Align::kRight},
               {"by the delay alone", Table::Align::kRight},
               {"trials", Table::Align::kRight},
               {"interval excludes 1"},
               {"REGRESSION, alone"},
               {"REGRESSION, strictest level"},
               {"NEUTRAL"},
               {"interval holds the achieved size"}});
  for (const Json& plant : summary.at("plants")) {
    table.AddRow({Percent(plant.at("aimed_percent").get<double>(), 1),
                  Cat(Percent(plant.at("achieved_percent").get<double>(), 3), " [",
                      Percent(plant.at("achieved_low").get<double>(), 3), ", ",
                      Percent(plant.at("achieved_high").get<double>(), 3), "]"),
                  Percent(plant.at("by_delay_percent").get<double>(), 3),
                  Cat(CountOf(plant.at("trials"))), RateText(plant.at("interval_below_one")),
                  RateText(plant.at("found")), RateText(plant.at("found_in_family")),
                  RateText(plant.at("neutral")), RateText(plant.at("intervals_holding_truth"))});
  }
  return table.ToMarkdown();
}

std::string Provenance(const Json& provenance) {
  Table table({{"field"}, {"value"}});
  for (const auto& [key, value] : provenance.items()) {
    if (value.is_object()) {
      for (const auto& [inner, inner_value] : value.items()) {
        const std::string text =
            inner_value.is_string() ? inner_value.get<std::string>() : inner_value.dump();
        table.AddRow({Code(Cat(key, ".", inner)), Code(EscapeCell(text))});
      }
      continue;
    }
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_array()) {
      std::vector<std::string> words = value.get<std::vector<std::string>>();
      text.clear();
      for (const std::string& word : words) Append(&text, text.empty() ? "" : " ", word);
    }
    table.AddRow({Code(key), text.empty() ? std::string(kNone) : Code(EscapeCell(text))});
  }
  return table.ToMarkdown();
}

std::string Render(const Json& summary, const RenderOptions& options, const OtherRuns& runs) {
  const Json& provenance = summary.at("provenance");
  const Json& statistics = summary.at("statistics");
  const Json& aa = summary.at("aa");
  const Json& kernel = summary.at("kernel");
  const std::string shape = summary.at("shapes").at(0).at("name").get<std::string>();
  const int64_t trial_processes = CountOf(statistics.at("trial_processes"));
  const int64_t trial_blocks = CountOf(statistics.at("trial_blocks"));
  const int64_t groups = CountOf(summary.at("groups").at("used"));
  const std::string confidence = FormatPercent(statistics.at("confidence").get<double>());
  const std::string delta = FormatPercent(statistics.at("neutral_delta").get<double>());

  std::string out =
      Cat("# Calibration of the verdicts on ", provenance.at("gpu").at("name").get<std::string>(),
          ", ", provenance.at("created_utc").get<std::string>().substr(0, 10),
          "\n\nWritten from the record `", summary.at("run_id").get<std::string>(),
          "` by `warpledger report`; edit the record or the renderer, never this page.\n\n");
  if (!options.kernel_source_sha256.empty() &&
      options.kernel_source_sha256 != provenance.at("kernel_source_sha256").get<std::string>()) {
    out +=
        "> **Warning: this record is older than the kernels.** Their sources changed since. What "
        "is calibrated here is the sampling and the verdicts, on a kernel as it was then.\n\n";
  }
  const int64_t missing = CountOf(provenance.at("blocks_missing"));
  const int64_t blocks = CountOf(provenance.at("blocks_planned")) - missing;
  if (missing > 0) {
    Append(&out, "> **Warning: this record is unfinished:** ", missing, " of ",
           CountOf(provenance.at("blocks_planned")), " blocks are missing, and ",
           CountOf(summary.at("groups").at("planned")) - groups,
           " groups of processes are left out.\n\n");
  }
  Append(&out,
         "How often does the ledger say something false, and what does it overlook? Here the "
         "truth is known: the same kernel under many names, some of them slowed by a known "
         "delay, sampled and judged as any run is. What that leaves out: [below](#",
         kRunToRunAnchor, ").\n\n", TargetTable(summary), PooledSentence(summary, runs.families),
         "\n![Power, A/A ratios and p-values](", options.picture_prefix, "calibration.svg)\n\n");

  Append(&out, "## Identical arms (A/A)\n\n", Count(CountOf(aa.at("trials")), "trial"), " of `",
         summary.at("variant").get<std::string>(), "` at `", shape, "` against itself (",
         FormatUs(kernel.at("p50_us").get<double>()), " µs; an empty kernel takes ",
         FormatUs(kernel.at("floor_us").get<double>()), " µs).\n\n");
  if (const int64_t invalid = InvalidTrials(aa); invalid > 0) {
    Append(&out, "- INVALID: ", invalid, " of ", CountOf(aa.at("trials")),
           " trials, which stand in no rate, and neither do families that hold one.\n");
  }
  Append(&out, "- False verdicts, any but NEUTRAL and INCONCLUSIVE: **",
         RateText(aa.at("false_verdicts")), "** judged alone, ",
         RateText(aa.at("false_verdicts_in_family")), " after Holm's correction in families of ",
         CountOf(aa.at("family_size")),
         "; families with one: ", RateText(aa.at("families_with_false_verdict")), ".\n");
  Append(&out, "- The ", confidence, " interval holds 1 in ",
         RateText(aa.at("intervals_holding_truth")), ": its coverage on this GPU.\n");
  Append(&out, "- Verdicts: ", VerdictCounts(aa.at("verdicts")), " alone; ",
         VerdictCounts(aa.at("verdicts_in_family")),
         " in families. The largest of all estimates is ",
         Percent(aa.at("largest_percent").get<double>(), 3), " off; NEUTRAL's band is ±", delta,
         ".\n");
  Append(&out, "- Median over trials: half-width of the interval ",
         Percent(aa.at("half_width_percent_p50").get<double>(), 3), ", detectable with 80% power ",
         Percent(aa.at("mde_percent_p50").get<double>(), 3), ", spread of a pair within a process ",
         Percent(aa.at("within_process_percent_p50").get<double>(), 3),
         ", of processes beyond that ",
         Percent(aa.at("between_process_percent_p50").get<double>(), 3), ".\n\n");

  Append(&out, "## Planted slow-downs\n\n", PowerTable(summary), "\n");
  int64_t planted = 0;
  int64_t invalid = 0;
  for (const Json& plant : summary.at("plants")) {
    planted += CountOf(plant.at("trials"));
    invalid += InvalidTrials(plant);
  }
  if (invalid > 0) {
    Append(&out, invalid, " of ", planted, " trials are INVALID and stand in no rate.\n\n");
  }
  Append(
      &out, "Below ", delta, " NEUTRAL is the right answer, and at ", delta,
      " verdicts part by chance: that is the rule's border. Where the level is too strict to show "
      "that a slow-down is below ",
      delta, ", REGRESSION remains, which is true as well. \"Strictest level\" is ",
      "what Holm demands of the first of ", CountOf(statistics.at("family_size")),
      " verdicts, as many as `warpledger run` gives by default. Rates come with 95% intervals "
      "(Clopper–Pearson).\n\n");

  if (const Json& held = summary.at("planted_intervals"); CountOf(held.at("of")) > 0) {
    Append(&out, "Of all sizes together, the ", confidence, " interval holds the achieved size in ",
           RateText(held), ". If it did so in ", confidence,
           " of independent trials, so few would be seen with probability ",
           FormatSignificant(held.at("chance_of_as_few").get<double>(), 2),
           "; trials of one group are not quite independent.\n\n");
  }
  Append(
      &out,
      RunToRunSection({.shape = shape,
                       .config = summary.at("variant").get<std::string>(),
                       .arms = CountOf(provenance.at("n_samples")) / std::max<int64_t>(1, blocks),
                       .trials = CountOf(aa.at("trials")),
                       .within_percent = aa.at("within_process_percent_p50").get<double>(),
                       .between_percent = aa.at("between_process_percent_p50").get<double>(),
                       .mde_percent = aa.at("mde_percent_p50").get<double>()},
                      runs),
      "\n");
  Append(&out, "## How it was done\n\n- A trial is what `warpledger run` spends on a verdict: ",
         trial_processes, " processes of ", trial_blocks,
         " blocks, a sample of each arm per block, in random order. ", Count(groups, "group"),
         " of ", trial_processes, " processes gave one trial of each pair each.\n");
  Append(&out,
         "- All arms are one kernel instance, each with a graph of its own, so the rules on "
         "machine code are left out: they call such pairs INVALID before any timing counts.\n");
  Append(&out,
         "- No two A/A trials share a sample, nor do two trials of one planted size. A planted "
         "arm is judged against a null arm of its own, which may also stand in an A/A trial or "
         "in a trial of another size; trials of one group share their processes and blocks, "
         "so what moves all arms alike is common to them.\n");
  Append(&out, "- A slow-down is planted at the end of a replay, once per ",
         CountOf(kernel.at("launches_low")),
         kernel.at("launches_low") == kernel.at("launches_high")
             ? std::string()
             : Cat(" to ", CountOf(kernel.at("launches_high"))),
         " launches: one thread that waits a fixed number of SM clock cycles, set before the first "
         "block. \"Achieved\" is the median over all pairs of that size; \"by the delay alone\" is "
         "the "
         "delay's own time, from replays of nothing else in the same blocks, over the replay's. "
         "Neither uses the other.\n");
  Append(&out, "- Each process checked its arms against the FP64 reference: ",
         CountOf(provenance.at("checks")),
         " checks, none wrong (one that is ends a "
         "calibration).\n\n");
  Append(&out, "Every trial is in the record's `summary.json`.\n\n## Provenance\n\n",
         Provenance(provenance));
  return out;
}

}  // namespace

absl::StatusOr<std::string> RenderCalibration(const Json& summary, const RenderOptions& options,
                                              const OtherRuns& runs) {
  try {
    return Render(summary, options, runs);
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(
        Cat("summary.json of a calibration: ", std::string_view(error.what()),
            "; write it again with `warpledger judge`"));
  }
}

}  // namespace warpledger::report
