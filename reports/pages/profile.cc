// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/counters.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/plain.h"
#include "reports/model/staleness.h"
#include "reports/model/text.h"
#include "reports/pages/pages.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

using ablations::ShapeInfo;
using summary::ProfileSummary;
using summary::TimedProfile;

// Above this share of its peak a unit is what holds a kernel back; below it,
// while no unit is near its peak, warps wait for results.
constexpr double kBusyPercent = 60;
// Below this share of the time with work on the average SM the grid is too small.
constexpr double kIdlePercent = 50;
// A counter that moved by less did not move.
constexpr double kUnmoved = 0.05;

// Fewer events than these in a launch are left out of comparisons.
constexpr double kTooFew = 1e5;

std::string WholePercent(std::optional<double> percent) {
  return percent ? absl::StrFormat("%.0f%%", *percent) : std::string(kNone);
}

// 26225664 -> "26.2 M".
std::string Compact(std::optional<double> value) {
  if (!value) return std::string(kNone);
  if (*value == 0) return "0";
  static constexpr std::pair<double, const char*> kUnits[] = {
      {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  for (const auto& [unit, name] : kUnits) {
    if (std::fabs(*value) >= unit) return Cat(FormatSignificant(*value / unit, 3), name);
  }
  return FormatSignificant(*value, 3);
}

// What a stall reason means, for those that show up here.
std::string_view Meaning(std::string_view reason) {
  if (reason == "long_scoreboard") return "waits for L2, DRAM or a copy to arrive";
  if (reason == "short_scoreboard") return "waits for shared memory or MUFU";
  if (reason == "barrier") return "waits for the CTA's other warps";
  if (reason == "wait") return "fixed latency between dependent instructions";
  if (reason == "mio_throttle") return "the queue to shared memory and MUFU is full";
  if (reason == "lg_throttle") return "the queue to global memory is full";
  if (reason == "math_pipe_throttle") return "the arithmetic pipe is taken";
  if (reason == "not_selected") return "ready, but another warp issues";
  if (reason == "gmma") return "waits for wgmma";
  return "";
}

struct ProfilePage {
  const ProfileSummary& summary;
  std::vector<std::string> shapes;

  std::vector<const TimedProfile*> At(const std::string& shape) const {
    std::vector<const TimedProfile*> out;
    for (const TimedProfile& profile : summary.profiles) {
      if (profile.shape == shape && profile.reason.empty()) out.push_back(&profile);
    }
    return out;
  }
  const TimedProfile* Find(const std::string& variant, const std::string& shape) const {
    for (const TimedProfile* profile : At(shape)) {
      if (profile->variant == variant) return profile;
    }
    return nullptr;
  }
  // The records whose times stand there, in the order of the launches.
  std::vector<std::string> TimedIn(const std::string& shape) const {
    std::vector<std::string> out;
    for (const TimedProfile* profile : At(shape)) {
      if (profile->timed_in) AddOnce(*profile->timed_in, &out);
    }
    return out;
  }
  // Else there is nothing to draw under the roofs.
  bool AnyTimed() const {
    return std::any_of(shapes.begin(), shapes.end(), [this](const std::string& shape) {
      const std::vector<const TimedProfile*> profiles = At(shape);
      return std::any_of(profiles.begin(), profiles.end(),
                         [](const TimedProfile* p) { return p->p50_us.value.has_value(); });
    });
  }
  double Flops(const std::string& shape) const {
    for (const ShapeInfo& s : summary.provenance.shapes) {
      if (s.name == shape) return s.flops();
    }
    return 0;
  }
  std::optional<double> Ceiling(std::optional<std::string_view> name) const {
    for (const summary::Ceiling& c : summary.ceilings) {
      if (c.name == name) return c.per_s;
    }
    return std::nullopt;
  }
  std::optional<double> FlopPerS(const TimedProfile& profile) const {
    const std::optional<double> us = profile.p50_us.value;
    if (!us || *us <= 0) return std::nullopt;
    return Flops(profile.shape) / (*us * 1e-6);
  }
};

std::string BottleneckTable(const ProfilePage& page, const std::string& shape) {
  Table table(
      "variant | p50, µs: | TFLOP/s: | SMs busy: | warps: | issue: | tensor: | MUFU: | FMA: | "
      "L1/shared: | conflicts: | L2: | DRAM: | bound by");
  const bool several = page.TimedIn(shape).size() > 1;
  if (several) table.AddColumn("timed in");
  for (const TimedProfile* p : page.At(shape)) {
    const auto flop_per_s = page.FlopPerS(*p);
    std::vector<std::string> row = {
        Code(p->variant),
        FormatUs(p->p50_us.value),
        FormatTflops(flop_per_s ? std::optional<double>(*flop_per_s / 1e12) : std::nullopt),
        WholePercent(Busy(*p)),
        WholePercent(Occupancy(*p)),
        WholePercent(Issue(*p)),
        WholePercent(Tensor(*p)),
        WholePercent(Mufu(*p)),
        WholePercent(Fma(*p)),
        WholePercent(L1(*p)),
        WholePercent(ConflictShare(*p)),
        WholePercent(L2(*p)),
        WholePercent(Dram(*p)),
        BoundBy(*p)};
    if (several && p->timed_in) row.push_back(Code(*p->timed_in));
    table.AddRow(std::move(row));
  }
  return table.ToMarkdown();
}

std::string RooflineTable(const ProfilePage& page, const std::string& shape) {
  const auto l2 = page.Ceiling("L2");
  const auto dram = page.Ceiling("DRAM");
  Table table(
      "variant | L2 traffic, MB: | FLOP per L2 byte: | DRAM traffic, MB: | TFLOP/s: | roof there, "
      "TFLOP/s: | which is | of the roof:");
  const auto megabytes = [](std::optional<double> bytes) {
    return bytes ? absl::StrFormat("%.2f", *bytes / 1e6) : std::string(kNone);
  };
  for (const TimedProfile* p : page.At(shape)) {
    const auto intensity = Ratio(page.Flops(shape), L2Bytes(*p));
    const auto peak = page.Ceiling(p->roof);
    std::optional<double> roof;
    std::string which(kNone);
    if (peak && l2 && intensity) {
      const bool under_slope = *l2 * *intensity < *peak;
      roof = under_slope ? *l2 * *intensity : *peak;
      which = under_slope ? "L2" : *p->roof;
      const auto dram_intensity = Ratio(page.Flops(shape), DramBytes(*p));
      if (dram && dram_intensity && *dram * *dram_intensity < *roof) {
        roof = *dram * *dram_intensity;
        which = "DRAM";
      }
    }
    const auto rate = page.FlopPerS(*p);
    const auto share = Ratio(rate, roof);
    const auto tera = [](std::optional<double> value) {
      return FormatTflops(value ? std::optional<double>(*value / 1e12) : std::nullopt);
    };
    table.AddRow({Code(p->variant), megabytes(L2Bytes(*p)),
                  intensity ? FormatSignificant(*intensity, 3) : std::string(kNone),
                  megabytes(DramBytes(*p)), tera(rate), tera(roof), which,
                  share ? absl::StrFormat("%.1f%%", 100 * *share) : std::string(kNone)});
  }
  return table.ToMarkdown();
}

std::string CeilingTable(const ProfilePage& page) {
  Table table("roof | measured: | microbenchmark | record");
  for (const summary::Ceiling& c : page.summary.ceilings) {
    table.AddRow({c.name,
                  Cat(FormatSignificant(c.per_s / 1e12, 3), c.of == "flop" ? " TFLOP/s" : " TB/s"),
                  Code(c.micro), Code(c.run)});
  }
  return table.ToMarkdown();
}

std::string StallTable(const ProfilePage& page, const std::string& shape) {
  Table table("variant | warp-cycles per instruction: | first reason | second | third");
  for (const TimedProfile* p : page.At(shape)) {
    const std::vector<Stall> stalls = Stalls(*p);
    std::vector<std::string> row = {Code(p->variant), Compact(CyclesPerInstruction(*p))};
    for (size_t i = 0; i < 3 && i < stalls.size(); ++i) {
      row.push_back(Cat(Code(stalls[i].reason), " ", WholePercent(100 * stalls[i].share)));
    }
    table.AddRow(row);
  }
  return table.ToMarkdown();
}

// The reasons that lead anywhere, explained once.
std::string StallLegend(const ProfilePage& page) {
  std::map<std::string, bool> seen;
  for (const std::string& shape : page.shapes) {
    for (const TimedProfile* p : page.At(shape)) {
      const std::vector<Stall> stalls = Stalls(*p);
      for (size_t i = 0; i < 3 && i < stalls.size(); ++i) seen[stalls[i].reason] = true;
    }
  }
  std::string out;
  for (const auto& [reason, unused] : seen) {
    if (Meaning(reason).empty()) continue;
    Append(&out, out.empty() ? "" : "; ", Code(reason), " ", Meaning(reason));
  }
  return out.empty() ? "" : Cat("\n", out, ".\n");
}

enum class Moved { kUnread, kAsClaimed, kOpposite, kUnmoved };

Moved Compare(const sdpa::CounterClaim& claim, std::optional<double> before,
              std::optional<double> after) {
  if (!before || !after) return Moved::kUnread;
  const double base = std::max(std::fabs(*before), 1e-300);
  if (std::fabs(*after - *before) <= kUnmoved * base) return Moved::kUnmoved;
  return (*after > *before) == claim.rises ? Moved::kAsClaimed : Moved::kOpposite;
}

std::string_view Says(Moved moved) {
  switch (moved) {
    case Moved::kUnread:
      return "not read";
    case Moved::kAsClaimed:
      return "as claimed";
    case Moved::kOpposite:
      return "**the opposite**";
    case Moved::kUnmoved:
      return "**did not move**";
  }
  return "";
}

// "×3.04" and "÷1.95"; both counters are there and not 0. Near 1 a digit more, so that what
// moved by less than kUnmoved does not read as if it had moved by more.
std::string Factor(double before, double after) {
  const double factor = after >= before ? after / before : before / after;
  return Cat(after >= before ? "×" : "÷", FormatSignificant(factor, factor < 1.1 ? 4 : 3));
}

// Of the other counters, the one that moved most: a claim may come true at a price.
std::string MovedBesides(const Counter& claimed, const TimedProfile& base,
                         const TimedProfile& candidate) {
  std::string out(kNone);
  double most = std::log(1 + kUnmoved);
  for (const Counter& counter : Counters()) {
    if (counter.besides.empty() || counter.id == claimed.id) continue;
    const std::optional<double> before = counter.read(base);
    const std::optional<double> after = counter.read(candidate);
    // What hardly occurs is noise, whatever its factor.
    if (!before || !after || std::max(*before, *after) < kTooFew) continue;
    // What appears or vanishes moved by more than any factor, whose logarithm is below
    // kTooFew; of two such, the larger counts.
    const bool one_is_none = *before <= 0 || *after <= 0;
    const double moved =
        one_is_none ? std::max(*before, *after) : std::fabs(std::log(*after / *before));
    if (moved <= most) continue;
    most = moved;
    out = one_is_none ? Cat(counter.besides, " ", Compact(before), " → ", Compact(after))
                      : Cat(counter.besides, " ", Factor(*before, *after));
  }
  return out;
}

std::string ClaimSection(const ProfilePage& page) {
  Table table(
      "toggle | if the claim is true | shape | before: | after: | the counter says | moved most "
      "besides");
  int held = 0;
  int read = 0;
  std::string claims;
  for (const summary::ProfiledStep& step : page.summary.steps) {
    const sdpa::ToggleRow* row =
        FindIn(sdpa::kToggles, [&](const auto& each) { return each.id == step.toggle; });
    if (row == nullptr) continue;
    const sdpa::CounterClaim& claim = row->counter_claim;
    const Counter* counter = FindCounter(claim.counter);
    if (counter == nullptr) continue;
    Append(&claims, "- ", Code(step.toggle), ": ", row->claim,
           row->predicted.blind ? " Predicted before the first run: "
                                : " Predicted after prototypes: ",
           row->predicted.why, row->prior.text.empty() ? "" : Cat(" ", row->prior.text, "."), "\n");
    for (const std::string& shape : page.shapes) {
      const TimedProfile* base = page.Find(step.base, shape);
      const TimedProfile* candidate = page.Find(step.candidate, shape);
      if (base == nullptr || candidate == nullptr) continue;
      const auto before = counter->read(*base);
      const auto after = counter->read(*candidate);
      const Moved moved = Compare(claim, before, after);
      read += moved != Moved::kUnread;
      held += moved == Moved::kAsClaimed;
      table.AddRow({Code(step.toggle), Cat(claim.rises ? "more: " : "less: ", counter->claimed),
                    Code(shape), Compact(before), Compact(after),
                    moved == Moved::kUnread || *before <= 0 || *after <= 0
                        ? std::string(Says(moved))
                        : Cat(Says(moved), ", ", Factor(*before, *after)),
                    MovedBesides(*counter, *base, *candidate)});
    }
  }
  if (read == 0) return "";
  return Cat(
      "## Do the counters confirm the mechanisms?\n\nEach toggle names a mechanism; if it works, "
      "a certain counter must move. ",
      held, " of ", Count(read, "reading"), " moved as the claim says (by more than ",
      FormatPercent(kUnmoved),
      "). The last column names the other counter that moved most. A counter that moved as claimed "
      "shows that the mechanism works; only verdicts show whether it paid.\n\n",
      table.ToMarkdown(), "\n", claims);
}

std::string Findings(const ProfilePage& page, const std::string& shape) {
  const TimedProfile* fastest = nullptr;
  for (const TimedProfile* p : page.At(shape)) {
    if (!p->p50_us.value) continue;
    if (fastest == nullptr || *p->p50_us.value < *fastest->p50_us.value) fastest = p;
  }
  if (fastest == nullptr) return "";
  std::string out =
      Cat("The fastest of these at ", Code(shape), " is ", Code(fastest->variant), " at ",
          FormatUs(fastest->p50_us.value), " µs, bound by ", BoundBy(*fastest));
  if (const auto share = Ratio(page.FlopPerS(*fastest), page.Ceiling(fastest->roof))) {
    Append(&out, "; it reaches ", absl::StrFormat("%.1f%%", 100 * *share),
           " of the measured peak of ", *fastest->roof);
  }
  out += ".\n";
  const std::vector<std::string> records = page.TimedIn(shape);
  if (records.size() < 2) return out;
  std::vector<std::string> names;
  for (const std::string& run : records) names.push_back(Code(run));
  return Cat(out, "\n> Its times come from ", Count(static_cast<int64_t>(records.size()), "record"),
             " with different boards and clocks (column `timed in`), so times in one column don't "
             "show which kernel is faster: ",
             JoinWords(names), ".\n\n");
}

// What was profiled, on one kind of GPU.
Staleness StalenessOf(const ProfilePage& page, const RenderOptions& options) {
  const ablations::ProfileInfo& provenance = page.summary.provenance;
  MadeOf record = {.kernel_source_sha256 = provenance.kernel_source_sha256,
                   .registry_sha256 = provenance.registry_sha256,
                   .nvcc = "",
                   .compute_capability = "",
                   .kernels = {}};
  for (const ShapeInfo& shape : provenance.shapes) {
    for (const TimedProfile* profile : page.At(shape.name)) {
      record.compute_capability = profile->launch.compute_capability;
      record.kernels.push_back({.arm = profile->variant,
                                .config = profile->config,
                                .head_dim = shape.fields.value("head_dim", int64_t{64}),
                                .causal = shape.fields.value("causal", false),
                                .dtype = shape.fields.value("dtype", "fp16"),
                                .projected = shape.fields.contains("embed_dim"),
                                .code_sha256 = profile->code_sha256});
    }
  }
  return CompareWithTree(record, options);
}

}  // namespace

std::string RenderProfileReport(const ProfileSummary& read, const RenderOptions& options) {
  const ProfileSummary summary = Plain(read);
  ProfilePage page = {.summary = summary, .shapes = {}};
  for (const ShapeInfo& shape : summary.provenance.shapes) {
    if (!page.At(shape.name).empty()) page.shapes.push_back(shape.name);
  }
  const ablations::ProfileInfo& provenance = summary.provenance;
  const std::string prefix = options.picture_prefix;
  std::string out = Cat("# What bounds each kernel, on ", summary.gpu.name, ", ",
                        provenance.created_utc.substr(0, 10), "\n\nWritten from the record `",
                        provenance.run_id, "` by `warpledger report`.\n\n");
  const Staleness staleness = StalenessOf(page, options);
  if (staleness.IsStale()) {
    Append(&out, "> **Warning: this record is older than the kernels.** Since it was made, ",
           WhatChanged(staleness), ". Counters of these are of older code than this tree's.\n\n");
  }
  if (const std::string harmless = HarmlessChanges(staleness); !harmless.empty()) {
    Append(&out, harmless, "\n\n");
  }
  for (const std::string& shape : page.shapes) Append(&out, Findings(page, shape));
  Append(
      &out,
      "\nNsight Compute profiled one launch of each variant, without control of clocks and caches. "
      "A profiler changes times, so times come from other records: of the same machine code with "
      "the same launch toggles. If a second kernel combines partial results, the time is that of "
      "the whole call. “",
      kNone,
      "”: there is no such record.\n\n## Bottlenecks\n\n`SMs busy`: share of the launch in "
      "which the average SM had work. `warps`: resident warps, in percent of those that fit. "
      "`issue`, pipes and L1: percent of their peak while the SM had work. L2 and DRAM: percent of "
      "their peak over the whole launch. `conflicts`: share of the passes through shared memory "
      "that bank conflicts add. **Bound by**: idle SMs, if the average SM has work for less than ",
      FormatPercent(kIdlePercent / 100), " of the launch; else the busiest unit, if it reaches ",
      FormatPercent(kBusyPercent / 100),
      " of its peak; else latency, with the most frequent reason why warps stall.\n");
  for (const std::string& shape : page.shapes) {
    Append(&out, "\n", Code(shape), ":\n\n", BottleneckTable(page, shape));
  }
  out += "\n## Roofline\n\n";
  if (summary.ceilings.empty()) {
    out += "No microbenchmarks are recorded beside this record, so there are no roofs.\n";
  } else {
    if (page.AnyTimed()) Append(&out, "![Roofline](", prefix, "profile_roofline.svg)\n\n");
    Append(
        &out, "Roofs are measured; rates per clock are converted at the maximum clock, ",
        FormatSignificant(summary.gpu.max_sm_clock_mhz, 4), " MHz:\n\n", CeilingTable(page),
        "\nA kernel's roof is the lowest of the roofs of its arithmetic, of L2 and of DRAM. DRAM "
        "is no limit if inputs stay in L2 between launches. The picture has no roof of DRAM.\n");
  }
  for (const std::string& shape : page.shapes) {
    Append(&out, "\n", Code(shape), ":\n\n", RooflineTable(page, shape));
  }
  Append(&out, "\n## Why warps wait\n\n");
  for (const std::string& shape : page.shapes) {
    Append(&out, "![Stalls at ", shape, "](", prefix, "profile_stalls_", PlainName(shape),
           ".svg)\n\n");
  }
  Append(&out,
         "Shares are percentages of all cycles of resident warps, including cycles that issue.\n",
         StallLegend(page));
  for (const std::string& shape : page.shapes) {
    Append(&out, "\n", Code(shape), ":\n\n", StallTable(page, shape));
  }
  for (const std::string& section : {SharedReadsSection(summary), ClaimSection(page)}) {
    if (!section.empty()) Append(&out, "\n", section);
  }

  std::string failed;
  std::set<std::string> runs;
  for (const TimedProfile& p : summary.profiles) {
    if (p.timed_in) runs.insert(Code(*p.timed_in));
    if (p.reason.empty()) continue;
    Append(&failed, "- ", Code(p.variant), " at ", Code(p.shape), ": ", p.reason, "\n");
  }
  if (!failed.empty()) Append(&out, "\n## Not profiled\n\n", failed);

  Table table("what | value");
  table.AddRow({"run", provenance.run_id});
  table.AddRow({"made", provenance.created_utc});
  table.AddRow({"Nsight Compute", provenance.ncu});
  table.AddRow(
      {"GPU", Cat(summary.gpu.name, ", ", FormatSignificant(summary.gpu.sm_count, 3), " SMs")});
  table.AddRow({"kernels' sources", Code(provenance.kernel_source_sha256)});
  table.AddRow({"registry", Code(provenance.registry_sha256)});
  table.AddRow(
      {"times from", runs.empty() ? std::string(kNone) : JoinWords({runs.begin(), runs.end()})});
  std::vector<std::string> skipped;
  for (const std::string& name : summary.skipped) skipped.push_back(Code(name));
  if (!skipped.empty()) table.AddRow({"could not be read", JoinWords(skipped)});
  Append(&out, "\n## Provenance\n\n", table.ToMarkdown());
  return out;
}

std::string BoundBy(const ablations::Profile& profile) {
  const auto busy = Busy(profile);
  if (busy && *busy < kIdlePercent) {
    const std::string& grid = profile.launch.grid;
    std::string ctas;
    if (const size_t begin = grid.find_first_of("0123456789"); begin != std::string::npos) {
      ctas =
          Cat(grid.substr(begin, grid.find_first_not_of("0123456789", begin) - begin), " CTAs, ");
    }
    return Cat("idle SMs: ", ctas, WholePercent(busy), " busy");
  }
  const std::pair<const char*, std::optional<double>> units[] = {{"tensor cores", Tensor(profile)},
                                                                 {"MUFU", Mufu(profile)},
                                                                 {"FMA pipe", Fma(profile)},
                                                                 {"issue slots", Issue(profile)},
                                                                 {"L1/shared memory", L1(profile)},
                                                                 {"L2", L2(profile)},
                                                                 {"DRAM", Dram(profile)}};
  const auto* top = &units[0];
  for (const auto& unit : units) {
    if (unit.second.value_or(-1) > top->second.value_or(-1)) top = &unit;
  }
  if (top->second.value_or(-1) >= kBusyPercent)
    return Cat(top->first, " ", WholePercent(top->second));
  const std::vector<Stall> stalls = Stalls(profile);
  if (stalls.empty()) return std::string(kNone);
  return Cat("latency: ", stalls[0].reason, " ", WholePercent(100 * stalls[0].share));
}

}  // namespace warpledger::report
