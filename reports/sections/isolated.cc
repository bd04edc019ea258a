// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

// Units in which less is better; all others are rates.
bool IsCost(const std::string& unit) { return unit == "cycles" || unit == "us" || unit == "ns"; }

std::string ValueOf(const MicroValue& row) {
  return Cat(FormatSignificant(row.value, 4), row.unit.empty() ? "" : " ", row.unit);
}

}  // namespace

Isolated IsolatedOf(const Summary& summary, const ablations::ClaimMicro& micro) {
  Isolated out;
  out.on = summary.FindMicro(micro.on);
  out.off = summary.FindMicro(micro.off);
  if (out.on == nullptr || out.off == nullptr || out.on->value <= 0 || out.off->value <= 0) {
    return out;
  }
  const double off = out.off->value * micro.off_factor;
  out.effect = IsCost(out.on->unit) ? off / out.on->value : out.on->value / off;
  return out;
}

std::string DescribeCases(const Isolated& isolated, const ablations::ClaimMicro& micro) {
  if (micro.on.empty()) return "no microbenchmark isolates it";
  if (isolated.on == nullptr) return Cat(Code(micro.on), ", not in this record");
  std::string out = Cat(Code(micro.on), ": ", ValueOf(*isolated.on));
  if (isolated.off == nullptr) return out;
  Append(&out, ", against ", Code(micro.off), ": ", ValueOf(*isolated.off));
  if (micro.off_factor != 1) {
    Append(&out, " × ", FormatSignificant(micro.off_factor, 1));
  }
  return out;
}

namespace {

// The ratios of a toggle that mean something, over shapes.
std::vector<double> KernelRatios(const Summary& summary, const std::string& toggle) {
  std::vector<double> ratios;
  for (const Shape& shape : summary.shapes) {
    const Verdict* verdict = FindToggleVerdict(summary, toggle, shape.name);
    if (verdict != nullptr && HasMeaning(*verdict) && verdict->ratio.value) {
      ratios.push_back(*verdict->ratio.value);
    }
  }
  return ratios;
}

// How much of the isolated gain the kernel keeps, on the logarithm: 1 is all.
std::optional<double> Kept(double isolated, double in_kernel) {
  constexpr double kNoEffect = 0.01;  // below this there is nothing to keep
  if (std::abs(std::log(isolated)) < kNoEffect) return std::nullopt;
  return std::log(in_kernel) / std::log(isolated);
}

struct Row {
  std::string toggle;
  double isolated = 0;
  double in_kernel = 0;  // at the main shape
};

std::string Sentences(const std::vector<Row>& rows) {
  std::vector<std::string> against;
  std::vector<std::string> more;
  std::vector<std::string> nothing_alone;
  const Row* most = nullptr;
  const Row* least = nullptr;
  for (const Row& row : rows) {
    const std::string words = Cat(Code(row.toggle), " (", FormatRatio(row.isolated), " alone, ",
                                  FormatRatio(row.in_kernel), " in the kernel)");
    const std::optional<double> kept = Kept(row.isolated, row.in_kernel);
    if (!kept) {
      nothing_alone.push_back(words);
      continue;
    }
    if (*kept < 0) against.push_back(words);
    if (*kept > 1) more.push_back(words);
    if (*kept < 0 || *kept > 1) continue;
    if (most == nullptr || *kept > *Kept(most->isolated, most->in_kernel)) most = &row;
    if (least == nullptr || *kept < *Kept(least->isolated, least->in_kernel)) least = &row;
  }
  std::string out;
  const auto share = [](const Row& row) {
    return Cat(
        Code(row.toggle), absl::StrFormat(" (%.0f%%: ", 100 * *Kept(row.isolated, row.in_kernel)),
        FormatRatio(row.isolated), " alone, ", FormatRatio(row.in_kernel), " in the kernel)");
  };
  if (most != nullptr) {
    Append(&out,
           "- Part of the microbenchmark's gain that the kernel keeps (ratio of logarithms): ",
           most == least ? "" : "most ", share(*most));
    if (most != least) Append(&out, ", least ", share(*least));
    out += ".\n";
  }
  if (!more.empty()) {
    Append(&out, "- The kernel gains more than the microbenchmark: ", JoinWords(more),
           ". There the toggle changes more than the microbenchmark isolates.\n");
  }
  if (!nothing_alone.empty()) {
    Append(&out, "- No effect in the microbenchmark: ", JoinWords(nothing_alone), ".\n");
  }
  if (!against.empty()) {
    Append(&out, "- Opposite signs: ", JoinWords(against), ".\n");
  }
  return out.empty() ? "" : Cat("\n", out);
}

}  // namespace

std::string IsolatedSection(const Summary& summary) {
  if (summary.micro.empty()) return "";
  const Shape& main = summary.MainShape();
  Table table(Cat("toggle | its microbenchmark | alone: | in the kernel, ", main.name,
                  ": | in the kernel, all shapes: | verdict, ", main.name));
  std::vector<Row> rows;
  for (const std::string& toggle : StepToggles(summary)) {
    const ablations::Claim* claim = summary.FindClaim(toggle);
    if (claim == nullptr || claim->control) continue;
    const Isolated isolated = IsolatedOf(summary, claim->micro);
    const Verdict* verdict = FindToggleVerdict(summary, toggle, main.name);
    const bool means = verdict != nullptr && HasMeaning(*verdict) && verdict->ratio.value;
    const std::vector<double> ratios = KernelRatios(summary, toggle);
    std::string range(kNone);
    if (!ratios.empty()) {
      const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
      range = Cat(FormatRatio(*low), " to ", FormatRatio(*high));
    }
    table.AddRow({Code(toggle), DescribeCases(isolated, claim->micro), FormatRatio(isolated.effect),
                  means ? FormatRatio(verdict->ratio.value) : std::string(kNone), range,
                  verdict != nullptr ? Cat("**", verdict->verdict, "**") : std::string(kNone)});
    if (isolated.effect && means) rows.push_back({toggle, *isolated.effect, *verdict->ratio.value});
  }
  if (table.empty()) return "";
  return Cat(
      "## In a microbenchmark and in the kernel\n\nThe gain of a technique alone, in its "
      "microbenchmark, and the gain that remains in the kernel. Microbenchmarks are of the record ",
      Code(summary.MicroRun()), ", on the same model of GPU. Ratios above 1 are faster.\n\n",
      table.ToMarkdown(), Sentences(rows));
}

}  // namespace warpledger::report
