// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "reports/model/describe.h"
#include "reports/model/plain.h"
#include "reports/model/text.h"
#include "reports/pages/pages.h"

namespace warpledger::report {
namespace {

using summary::Rate;

std::string Percent(double percent, int decimals = 2) {
  return absl::StrFormat("%.*f%%", decimals, percent);
}

// "12 of 300 (4.0% [2.1%, 6.9%])"
std::string RateText(const Rate& rate) {
  if (!rate.rate) return std::string(kNone);
  return Cat(rate.count, " of ", rate.of, " (", Percent(100 * *rate.rate, 1), " [",
             Percent(100 * rate.low, 1), ", ", Percent(100 * rate.high, 1), "])");
}

std::string CountsText(const summary::VerdictCounts& counts) {
  std::vector<std::string> words;
  for (const auto& [verdict, count] : counts) {
    words.push_back(Cat(count, " ", verdict));
  }
  return JoinWords(words);
}

std::string TargetText(const std::string& name) {
  if (name == "aa_verdict") return "A/A: false verdicts, each judged alone";
  if (name == "aa_verdict_in_family") return "A/A: false verdicts, corrected for their family";
  if (name == "aa_family") return "A/A: families with any false verdict";
  if (name == "planted_found") return "the planted 2%: found, judged alone";
  if (name == "planted_found_in_family") {
    return "the planted 2%: found, at the strictest level of a run's family";
  }
  return name;
}

std::string TargetTable(const CalibrationSummary& summary) {
  Table table("target | limit: | seen: | one-sided 95% bound: | outcome");
  for (const summary::Target& target : summary.targets) {
    const bool at_most = target.at_most;
    const std::string outcome = target.outcome;
    table.AddRow({TargetText(target.name),
                  Cat(at_most ? "≤ " : "≥ ", Percent(100 * target.limit, 0)),
                  Cat(target.count, " of ", target.of),
                  Cat(at_most ? "≤ " : "≥ ", Percent(100 * target.bound, 2)),
                  outcome == "open" ? "not contradicted, but too few to show it"
                                    : Cat("**", outcome, "**")});
  }
  return table.ToMarkdown();
}

// What calibrations of this kind of GPU say together of A/A families, where there are several.
std::string PooledSentence(const CalibrationSummary& summary, const PooledFamilies& pooled) {
  if (pooled.runs.empty()) return "";
  std::string runs;
  for (const std::string& run : pooled.runs) Append(&runs, runs.empty() ? "" : ", ", Code(run));
  double limit = 0;
  for (const summary::Target& target : summary.targets) {
    if (target.name == "aa_family") limit = target.limit;
  }
  return Cat("\nTogether with ", runs, ": **", pooled.with_false_verdict, " of ", pooled.of,
             "** families of identical arms have a false verdict, at most ",
             Percent(100 * pooled.bound, 2), " at a one-sided 95%: the limit of ",
             Percent(100 * limit, 0), " is ",
             pooled.bound <= limit ? "**shown** by all of them" : "not shown by them either",
             ".\n");
}

std::string PowerTable(const CalibrationSummary& summary) {
  Table table(
      "slow-down, aimed at: | achieved: | by the delay alone: | trials: | interval excludes 1 | "
      "REGRESSION, alone | REGRESSION, strictest level | NEUTRAL | interval contains the achieved "
      "size");
  for (const summary::PlantedSize& plant : summary.plants) {
    table.AddRow({Percent(plant.aimed_percent, 1),
                  Cat(Percent(plant.achieved_percent, 3), " [", Percent(plant.achieved_low, 3),
                      ", ", Percent(plant.achieved_high, 3), "]"),
                  Percent(plant.by_delay_percent, 3), Cat(plant.trials),
                  RateText(plant.interval_below_one), RateText(plant.found),
                  RateText(plant.found_in_family), RateText(plant.neutral),
                  RateText(plant.intervals_holding_truth)});
  }
  return table.ToMarkdown();
}

std::string ProvenanceTable(const nlohmann::ordered_json& provenance) {
  Table table("field | value");
  for (const auto& [key, value] : provenance.items()) {
    if (value.is_object()) {
      for (const auto& [inner, inner_value] : value.items()) {
        const std::string text =
            inner_value.is_string() ? inner_value.get<std::string>() : inner_value.dump();
        table.AddRow({Code(Cat(key, ".", inner)), Code(text)});
      }
      continue;
    }
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_array()) {
      std::vector<std::string> words = value.get<std::vector<std::string>>();
      text.clear();
      for (const std::string& word : words) Append(&text, text.empty() ? "" : " ", word);
    }
    table.AddRow({Code(key), text.empty() ? std::string(kNone) : Code(text)});
  }
  return table.ToMarkdown();
}

}  // namespace

std::string RenderCalibration(const CalibrationSummary& read, const RenderOptions& options,
                              const OtherRuns& runs) {
  const CalibrationSummary summary = Plain(read);
  const summary::CalibrationProvenance& provenance = summary.provenance;
  const summary::CalibrationStatistics& statistics = summary.statistics;
  const summary::AaTrials& aa = summary.aa;
  const summary::CalibratedKernel& kernel = summary.kernel;
  const std::string shape = summary.problems[0].name;
  const int64_t trial_processes = statistics.trial_processes;
  const int64_t trial_blocks = statistics.trial_blocks;
  const int64_t groups = summary.groups.used;
  const std::string confidence = FormatPercent(statistics.confidence);
  const std::string delta = FormatPercent(statistics.neutral_delta);

  std::string out = Cat("# Calibration of the verdicts on ", provenance.run.gpu.name, ", ",
                        provenance.run.created_utc.substr(0, 10), "\n\nWritten from the record `",
                        summary.run_id, "` by `warpledger report`.\n\n");
  if (!options.kernel_source_sha256.empty() &&
      options.kernel_source_sha256 != provenance.run.kernel_source_sha256) {
    out +=
        "> **Warning: this record is older than the kernels.** Their sources changed since. This "
        "page calibrates the sampling and the verdicts, with a kernel as it was then.\n\n";
  }
  const int64_t missing = provenance.blocks_missing;
  const int64_t blocks = provenance.blocks_planned - missing;
  if (missing > 0) {
    Append(&out, "> **Warning: this record is unfinished:** ", missing, " of ",
           provenance.blocks_planned, " blocks are missing, and ", summary.groups.planned - groups,
           " groups of processes are left out.\n\n");
  }
  Append(&out,
         "How often is a verdict false, and which effects are overlooked? A calibration knows the "
         "true effects: it times the same kernel under many names, some of them slowed by a known "
         "delay, and judges the samples like any run. [What it does not cover](#",
         kRunToRunAnchor, ").\n\n", TargetTable(summary), PooledSentence(summary, runs.families),
         "\n![Power, A/A ratios and p-values](", options.picture_prefix, "calibration.svg)\n\n");

  Append(&out, "## Identical arms (A/A)\n\n", Count(aa.trials, "trial"), " of `", summary.variant,
         "` at `", shape, "` against itself (", FormatUs(kernel.p50_us),
         " µs; an empty kernel takes ", FormatUs(kernel.floor_us), " µs).\n\n");
  if (const int64_t invalid = aa.invalid_trials; invalid > 0) {
    Append(&out, "- INVALID: ", invalid, " of ", aa.trials,
           " trials. They count in no rate, nor do families that contain one.\n");
  }
  Append(&out, "- False verdicts (all except NEUTRAL and INCONCLUSIVE): **",
         RateText(aa.false_verdicts), "** judged alone, ", RateText(aa.false_verdicts_in_family),
         " at the false coverage rate of families of ", aa.family_size,
         "; families with a false verdict: ", RateText(aa.families_with_false_verdict), ".\n");
  Append(&out, "- The ", confidence, " interval contains 1 in ",
         RateText(aa.intervals_holding_truth), ": its coverage on this GPU.\n");
  Append(&out, "- Verdicts: ", CountsText(aa.verdicts), " alone; ",
         CountsText(aa.verdicts_in_family), " in families. The largest of all estimates is ",
         Percent(aa.largest_percent, 3), " off; NEUTRAL's band is ±", delta, ".\n");
  Append(&out, "- Median over trials: half-width of the interval ",
         Percent(aa.half_width_percent_p50, 3), ", detectable with 80% power ",
         Percent(aa.mde_percent_p50, 3), ", spread of a pair within a process ",
         Percent(aa.within_process_percent_p50, 3), ", of processes beyond that ",
         Percent(aa.between_process_percent_p50, 3), ".\n\n");

  Append(&out, "## Planted slow-downs\n\n", PowerTable(summary), "\n");
  int64_t planted = 0;
  int64_t invalid = 0;
  for (const summary::PlantedSize& plant : summary.plants) {
    planted += plant.trials;
    invalid += plant.invalid_trials;
  }
  if (invalid > 0) {
    Append(&out, invalid, " of ", planted, " trials are INVALID and count in no rate.\n\n");
  }
  Append(
      &out, "Below ", delta, " NEUTRAL is the right verdict. At ", delta,
      ", the border of the rule, chance decides between verdicts. If the level is too strict to "
      "show that a slow-down is below ",
      delta,
      ", the verdict is REGRESSION, which is also true. “Strictest level” is the level of a "
      "family of ",
      statistics.family_size,
      " verdicts in which no other verdict decides. Trials are judged for this board, whose true "
      "effect is known; verdicts of a run are for boards of its kind. Rates have 95% intervals "
      "(Clopper–Pearson).\n\n");

  if (const summary::PlantedIntervals& held = summary.planted_intervals; held.of > 0) {
    Append(&out, "Over all sizes together, the ", confidence,
           " interval contains the achieved size in ", RateText(held),
           ". If the true coverage were ", confidence,
           " and trials were independent, so few would be seen with probability ",
           FormatSignificant(held.chance_of_as_few, 2),
           ". Trials of one group are not fully independent.\n\n");
  }
  Append(&out,
         RunToRunSection({.shape = shape,
                          .config = summary.variant,
                          .arms = provenance.n_samples / std::max<int64_t>(1, blocks),
                          .trials = aa.trials,
                          .within_percent = aa.within_process_percent_p50,
                          .between_percent = aa.between_process_percent_p50,
                          .mde_percent = aa.mde_percent_p50},
                         runs),
         "\n");
  Append(&out,
         "## How it was done\n\n- A trial has as many samples as `warpledger run` takes for "
         "a verdict: ",
         trial_processes, " processes of ", trial_blocks,
         " blocks, with one sample of each arm per block, in random order. Each of ",
         Count(groups, "group"), " of ", trial_processes,
         " processes gave one trial of each pair.\n");
  Append(
      &out,
      "- All arms are one kernel instance, each with its own graph. So the rules on machine code "
      "are not applied; they would call such pairs INVALID.\n");
  Append(&out,
         "- No two A/A trials share a sample, nor do two trials of one planted size. Each planted "
         "arm is judged against its own null arm, which may also be part of an A/A trial or of a "
         "trial of another size. Trials of one group share their processes and blocks, so "
         "influences on all arms are common to them.\n");
  Append(&out, "- A slow-down is planted at the end of a replay, once per ", kernel.launches_low,
         kernel.launches_low == kernel.launches_high ? std::string()
                                                     : Cat(" to ", kernel.launches_high),
         " launches: one thread waits a fixed number of SM clock cycles, set before the first "
         "block. “Achieved” is the mean over "
         "processes of the median of their pairs of that size. “By the delay alone” is the "
         "time of the delay, from replays of only the delay in the same blocks, divided by the "
         "time of the replay. The two figures are independent.\n");
  Append(&out, "- Each process checked its arms against the FP64 reference: ", provenance.checks,
         " checks, none wrong (a wrong result ends a calibration).\n\n");
  Append(&out, "Every trial is in the record's `summary.json`.\n\n## Provenance\n\n",
         ProvenanceTable(ablations::ToJson(provenance)));
  return out;
}

}  // namespace warpledger::report
