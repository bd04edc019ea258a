// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

std::string Percent(double fraction) { return absl::StrFormat("%.2f%%", 100 * fraction); }

// "0.08% (2.01%)": the median and, where there are several, the largest.
std::string MedianAndLargest(std::vector<double> values) {
  if (values.empty()) return std::string(kNone);
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const double median = 0.5 * (values[(n - 1) / 2] + values[n / 2]);
  return n == 1 ? Percent(median) : Cat(Percent(median), " (", Percent(values.back()), ")");
}

// Pairs of one kind: how they scatter and what they can show.
struct Noise {
  std::vector<double> within;
  std::vector<double> between;
  std::vector<double> detectable;
  size_t pairs = 0;

  void Add(const Spread& spread, std::optional<double> mde_ratio) {
    ++pairs;
    if (spread.within) within.push_back(*spread.within);
    if (spread.between) between.push_back(*spread.between);
    if (mde_ratio) detectable.push_back(*mde_ratio - 1);
  }
};

// A record by its name; two that were made in the same second, by their boards too.
std::string NameOf(const Summary& run, const std::vector<Summary>& runs) {
  const auto has_its_name = [&](const Summary& other) { return other.run_id == run.run_id; };
  if (std::count_if(runs.begin(), runs.end(), has_its_name) == 1) return Code(run.run_id);
  constexpr size_t kDigits = 12;  // "GPU-" and eight of them
  return Cat(Code(run.run_id), " of ", run.provenance.gpu.uuid.substr(0, kDigits));
}

std::string NoiseTable(const CalibratedNoise& calibrated, const std::vector<Summary>& runs) {
  Table table(
      "record | pairs of variants | number: | spread of a pair within a process: | of processes "
      "beyond "
      "that: | detectable with 80% power:");
  table.AddRow({"this calibration", "identical", Cat(calibrated.trials),
                Percent(calibrated.within_percent / 100), Percent(calibrated.between_percent / 100),
                Percent(calibrated.mde_percent / 100)});
  for (const Summary& run : runs) {
    Noise controls;
    for (const Control& control : run.controls) {
      if (control.shape == calibrated.shape) controls.Add(control.spread, control.mde_ratio);
    }
    Noise with_it;
    Noise others;
    for (const Verdict& verdict : run.verdicts) {
      if (verdict.shape != calibrated.shape || !HasMeaning(verdict)) continue;
      bool is_of_it = false;
      for (const std::string& arm : {verdict.base, verdict.candidate}) {
        const Cell* cell = run.FindCell(arm, verdict.shape);
        is_of_it = is_of_it || (cell != nullptr && cell->config == calibrated.config);
      }
      (is_of_it ? with_it : others).Add(verdict.spread, verdict.mde_ratio);
    }
    for (const auto& [kind, noise] : {std::pair{"identical (controls)", &controls},
                                      {"judged, this kernel one of the two", &with_it},
                                      {"judged, other kernels", &others}}) {
      if (noise->within.empty()) continue;
      table.AddRow({NameOf(run, runs), kind, Cat(noise->pairs), MedianAndLargest(noise->within),
                    MedianAndLargest(noise->between), MedianAndLargest(noise->detectable)});
    }
  }
  return table.ToMarkdown();
}

// Of one record: what each machine code took on a shape, controls left out.
std::map<std::pair<std::string, std::string>, const Cell*> ByCode(const Summary& run) {
  std::map<std::pair<std::string, std::string>, const Cell*> out;
  for (const Cell& cell : run.cells) {
    const bool timed = cell.p50_us.value && cell.p50_us.low && cell.p50_us.high;
    if (cell.role == "aa" || cell.role == "null" || !cell.code_sha256 || !timed) continue;
    out.emplace(std::pair(*cell.code_sha256, cell.shape), &cell);
  }
  return out;
}

// The same machine code on the same shapes in two records.
struct Repeats {
  std::vector<double> differences;  // of p50, as fractions
  int64_t apart = 0;                // intervals that don't overlap

  void Add(const Cell& a, const Cell& b) {
    differences.push_back(std::fabs(*a.p50_us.value / *b.p50_us.value - 1));
    apart += *a.p50_us.high < *b.p50_us.low || *b.p50_us.high < *a.p50_us.low;
  }
  void Add(const Repeats& other) {
    differences.insert(differences.end(), other.differences.begin(), other.differences.end());
    apart += other.apart;
  }
  int64_t Beyond(double tolerance) const {
    return std::count_if(differences.begin(), differences.end(),
                         [&](double difference) { return difference > tolerance; });
  }
};

std::string RepeatSection(const CalibratedNoise& calibrated, const OtherRuns& others) {
  const std::vector<Summary>& runs = others.summaries;
  const std::string tolerance = FormatPercent(others.gate_tolerance);
  Table table(
      Cat("records | board | cells of the same code: | intervals that don't overlap: | p50s differ "
          "by: median (largest): | by more than ",
          tolerance, ":"));
  Repeats all;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto a = ByCode(runs[i]);
    for (size_t j = i + 1; j < runs.size(); ++j) {
      Repeats repeats;
      for (const auto& [key, cell] : ByCode(runs[j])) {
        if (const auto found = a.find(key); found != a.end()) repeats.Add(*found->second, *cell);
      }
      if (repeats.differences.empty()) continue;
      table.AddRow(
          {Cat(NameOf(runs[i], runs), ", ", NameOf(runs[j], runs)),
           runs[i].provenance.gpu.uuid == runs[j].provenance.gpu.uuid ? "the same" : "another",
           Cat(repeats.differences.size()), Cat(repeats.apart),
           MedianAndLargest(repeats.differences), Cat(repeats.Beyond(others.gate_tolerance))});
      all.Add(repeats);
    }
  }
  if (table.empty()) {
    return "No machine code was timed in two of the records, so the difference between runs is not "
           "known.\n";
  }
  std::vector<std::string> times;
  for (const Summary& run : runs) {
    for (const auto& [key, cell] : ByCode(run)) {
      if (key.second != calibrated.shape || cell->config != calibrated.config) continue;
      times.push_back(Cat(FormatUs(cell->p50_us.value), " µs ",
                          FormatUsInterval(cell->p50_us.low, cell->p50_us.high), " in ",
                          NameOf(run, runs)));
    }
  }
  return Cat(
      table.ToMarkdown(), "\n", all.apart, " of ", all.differences.size(),
      " such repeats have intervals of p50 that don't overlap: **an interval of p50 describes its "
      "own run, not the next one.** ",
      times.empty() ? ""
                    : Cat("The calibrated kernel took ", JoinWords(times), " at ",
                          Code(calibrated.shape), ". "),
      "Verdicts do not depend on this difference, because both variants of a pair are of one "
      "block. Comparisons of two records do (`warpledger gate` and `compare`), so this page does "
      "not calibrate their tolerance of ",
      tolerance, ": identical code differed by more in ", all.Beyond(others.gate_tolerance),
      " of the ", all.differences.size(), " repeats.\n");
}

}  // namespace

std::string RunToRunSection(const CalibratedNoise& calibrated, const OtherRuns& runs) {
  std::string out = Cat("## What it does not cover\n\nA block here has ", calibrated.arms,
                        " variants, nearly all of them one kernel. The rates above are those of "
                        "such quiet blocks. In a "
                        "run, other kernels stand between the two variants of a pair, and the "
                        "kernels that are compared "
                        "differ.");
  if (runs.summaries.empty())
    return out + " No other record is at hand to show how much that matters.\n";
  Append(&out, " How much that adds at ", Code(calibrated.shape),
         " (medians, in brackets the largest; detectable at the level of each verdict):\n\n",
         NoiseTable(calibrated, runs.summaries),
         "\nThe rates also leave out the difference between runs. This table compares the same "
         "machine code in two records, over all shapes of both:\n\n",
         RepeatSection(calibrated, runs));
  return out;
}

}  // namespace warpledger::report
