// SPDX-License-Identifier: Apache-2.0
#include "reports/pages/profile.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/counters.h"
#include "reports/model/describe.h"
#include "reports/model/staleness.h"
#include "reports/model/text.h"
#include "reports/sections/shared_reads.h"

namespace warpledger::report {
namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

// Above this share of its peak a unit is what holds a kernel back; below it,
// while no unit is near its peak, warps wait for results.
constexpr double kBusyPercent = 60;
// Below this share of the time with work on the average SM the grid is too small.
constexpr double kIdlePercent = 50;
// A counter that moved by less did not move.
constexpr double kUnmoved = 0.05;

// Fewer events than these in a launch are left out of comparisons.
constexpr double kTooFew = 1e5;

std::optional<double> Number(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

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
  const Json& json;
  double sm_count = 0;
  std::vector<std::string> shapes;

  std::vector<const Json*> At(const std::string& shape) const {
    std::vector<const Json*> out;
    for (const Json& profile : json.at("profiles")) {
      if (profile.at("shape") == shape && profile.at("reason").get<std::string>().empty()) {
        out.push_back(&profile);
      }
    }
    return out;
  }
  const Json* Find(const std::string& variant, const std::string& shape) const {
    for (const Json* profile : At(shape)) {
      if (profile->at("variant") == variant) return profile;
    }
    return nullptr;
  }
  // The records whose times stand there, in the order of the launches.
  std::vector<std::string> TimedIn(const std::string& shape) const {
    std::vector<std::string> out;
    for (const Json* profile : At(shape)) {
      if (!profile->at("timed_in").is_string()) continue;
      std::string run = profile->at("timed_in").get<std::string>();
      if (std::find(out.begin(), out.end(), run) == out.end()) out.push_back(std::move(run));
    }
    return out;
  }
  // Else there is nothing to draw under the roofs.
  bool AnyTimed() const {
    return std::any_of(shapes.begin(), shapes.end(), [this](const std::string& shape) {
      const std::vector<const Json*> profiles = At(shape);
      return std::any_of(profiles.begin(), profiles.end(),
                         [](const Json* p) { return p->at("p50_us").is_number(); });
    });
  }
  double Flops(const std::string& shape) const {
    for (const Json& s : json.at("shapes")) {
      if (s.at("name") == shape) return s.at("flops").get<double>();
    }
    return 0;
  }
  std::optional<double> Ceiling(std::string_view name) const {
    for (const Json& c : json.at("ceilings")) {
      if (c.at("name") == name) return c.at("per_s").get<double>();
    }
    return std::nullopt;
  }
  std::optional<double> FlopPerS(const Json& profile) const {
    const auto us = Number(profile, "p50_us");
    if (!us || *us <= 0) return std::nullopt;
    return Flops(profile.at("shape").get<std::string>()) / (*us * 1e-6);
  }
};

std::string BottleneckTable(const ProfilePage& page, const std::string& shape) {
  std::vector<Table::Column> columns = {{"variant"},
                                        {"p50, µs", Align::kRight},
                                        {"TFLOP/s", Align::kRight},
                                        {"SMs busy", Align::kRight},
                                        {"warps", Align::kRight},
                                        {"issue", Align::kRight},
                                        {"tensor", Align::kRight},
                                        {"MUFU", Align::kRight},
                                        {"FMA", Align::kRight},
                                        {"L1/shared", Align::kRight},
                                        {"conflicts", Align::kRight},
                                        {"L2", Align::kRight},
                                        {"DRAM", Align::kRight},
                                        {"bound by"}};
  const bool several = page.TimedIn(shape).size() > 1;
  if (several) columns.push_back({"timed in"});
  Table table(columns);
  for (const Json* p : page.At(shape)) {
    const auto flop_per_s = page.FlopPerS(*p);
    std::vector<std::string> row = {
        Code(p->at("variant").get<std::string>()),
        FormatUs(Number(*p, "p50_us")),
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
    if (several && p->at("timed_in").is_string()) {
      row.push_back(Code(p->at("timed_in").get<std::string>()));
    }
    table.AddRow(std::move(row));
  }
  return table.ToMarkdown();
}

// The arithmetic roof that a kernel stands under, by its ceiling's name; "" where its configuration
// is none of today's.
std::string ArithmeticRoof(const Json& profile) {
  const Json& roof = profile.at("roof");
  return roof.is_string() ? roof.get<std::string>() : "";
}

std::string RooflineTable(const ProfilePage& page, const std::string& shape) {
  const auto l2 = page.Ceiling("L2");
  const auto dram = page.Ceiling("DRAM");
  Table table({{"variant"},
               {"L2 traffic, MB", Align::kRight},
               {"FLOP per L2 byte", Align::kRight},
               {"DRAM traffic, MB", Align::kRight},
               {"TFLOP/s", Align::kRight},
               {"roof there, TFLOP/s", Align::kRight},
               {"which is"},
               {"of the roof", Align::kRight}});
  const auto megabytes = [](std::optional<double> bytes) {
    return bytes ? absl::StrFormat("%.2f", *bytes / 1e6) : std::string(kNone);
  };
  for (const Json* p : page.At(shape)) {
    const auto intensity = Ratio(page.Flops(shape), L2Bytes(*p));
    const std::string unit = ArithmeticRoof(*p);
    const auto peak = page.Ceiling(unit);
    std::optional<double> roof;
    std::string which(kNone);
    if (peak && l2 && intensity) {
      const bool under_slope = *l2 * *intensity < *peak;
      roof = under_slope ? *l2 * *intensity : *peak;
      which = under_slope ? "L2" : unit;
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
    table.AddRow({Code(p->at("variant").get<std::string>()), megabytes(L2Bytes(*p)),
                  intensity ? FormatSignificant(*intensity, 3) : std::string(kNone),
                  megabytes(DramBytes(*p)), tera(rate), tera(roof), which,
                  share ? absl::StrFormat("%.1f%%", 100 * *share) : std::string(kNone)});
  }
  return table.ToMarkdown();
}

std::string CeilingTable(const ProfilePage& page) {
  Table table({{"roof"}, {"measured", Align::kRight}, {"microbenchmark"}, {"record"}});
  for (const Json& c : page.json.at("ceilings")) {
    const double per_s = c.at("per_s").get<double>();
    table.AddRow({c.at("name").get<std::string>(),
                  c.at("of") == "flop" ? Cat(FormatSignificant(per_s / 1e12, 3), " TFLOP/s")
                                       : Cat(FormatSignificant(per_s / 1e12, 3), " TB/s"),
                  Code(c.at("micro").get<std::string>()), Code(c.at("run").get<std::string>())});
  }
  return table.ToMarkdown();
}

std::string StallTable(const ProfilePage& page, const std::string& shape) {
  Table table({{"variant"},
               {"warp-cycles per instruction", Align::kRight},
               {"first reason"},
               {"second"},
               {"third"}});
  for (const Json* p : page.At(shape)) {
    const std::vector<Stall> stalls = Stalls(*p);
    std::vector<std::string> row = {Code(p->at("variant").get<std::string>()),
                                    Compact(CyclesPerInstruction(*p))};
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
    for (const Json* p : page.At(shape)) {
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
std::string MovedBesides(const Counter& claimed, const Json& base, const Json& candidate) {
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
  Table table({{"toggle"},
               {"if the claim is true"},
               {"shape"},
               {"before", Align::kRight},
               {"after", Align::kRight},
               {"the counter says"},
               {"moved most besides"}});
  int held = 0;
  int read = 0;
  std::string claims;
  for (const Json& step : page.json.at("steps")) {
    const std::string toggle = step.at("toggle").get<std::string>();
    const auto row = std::find_if(std::begin(sdpa::kToggles), std::end(sdpa::kToggles),
                                  [&](const sdpa::ToggleRow& each) { return each.id == toggle; });
    if (row == std::end(sdpa::kToggles)) continue;
    const sdpa::CounterClaim& claim = row->counter_claim;
    const Counter* counter = FindCounter(claim.counter);
    if (counter == nullptr) continue;
    Append(&claims, "- ", Code(toggle), ": ", row->claim, " Guessed before: ", row->predicted.why,
           row->prior.text.empty() ? "" : Cat(" ", row->prior.text, "."), "\n");
    for (const std::string& shape : page.shapes) {
      const Json* base = page.Find(step.at("base").get<std::string>(), shape);
      const Json* candidate = page.Find(step.at("candidate").get<std::string>(), shape);
      if (base == nullptr || candidate == nullptr) continue;
      const auto before = counter->read(*base);
      const auto after = counter->read(*candidate);
      const Moved moved = Compare(claim, before, after);
      read += moved != Moved::kUnread;
      held += moved == Moved::kAsClaimed;
      table.AddRow({Code(toggle), Cat(claim.rises ? "more: " : "less: ", counter->claimed),
                    Code(shape), Compact(before), Compact(after),
                    moved == Moved::kUnread || *before <= 0 || *after <= 0
                        ? std::string(Says(moved))
                        : Cat(Says(moved), ", ", Factor(*before, *after)),
                    MovedBesides(*counter, *base, *candidate)});
    }
  }
  if (read == 0) return "";
  return Cat(
      "## What was guessed, and what the counters say\n\nEach toggle names a mechanism; if it is "
      "at work, a counter must move. ",
      held, " of ", Count(read, "reading"), " moved as the claim says (by more than ",
      FormatPercent(kUnmoved),
      "); the last column names the other counter that moved most. A counter that moved as claimed "
      "shows the mechanism, not that it paid: that is what "
      "verdicts are for.\n\n",
      table.ToMarkdown(), "\n", claims);
}

std::string Findings(const ProfilePage& page, const std::string& shape) {
  const Json* fastest = nullptr;
  for (const Json* p : page.At(shape)) {
    const auto us = Number(*p, "p50_us");
    if (us && (fastest == nullptr || *us < *Number(*fastest, "p50_us"))) fastest = p;
  }
  if (fastest == nullptr) return "";
  std::string out = Cat("The fastest of these at ", Code(shape), " is ",
                        Code(fastest->at("variant").get<std::string>()), " at ",
                        FormatUs(Number(*fastest, "p50_us")), " µs, bound by ", BoundBy(*fastest));
  const auto rate = page.FlopPerS(*fastest);
  const std::string unit = ArithmeticRoof(*fastest);
  if (const auto share = Ratio(rate, page.Ceiling(unit))) {
    Append(&out, "; it reaches ", absl::StrFormat("%.1f%%", 100 * *share),
           " of the measured peak of ", unit);
  }
  out += ".\n";
  const std::vector<std::string> records = page.TimedIn(shape);
  if (records.size() < 2) return out;
  std::vector<std::string> names;
  for (const std::string& run : records) names.push_back(Code(run));
  return Cat(out, "\n> Its times are of ", Count(static_cast<int64_t>(records.size()), "record"),
             ", of boards and clocks of their own, so that two of them in one column say little of "
             "which kernel is faster: ",
             JoinWords(names), ", as `timed in` says.\n\n");
}

// What was profiled, on one kind of GPU.
Staleness StalenessOf(const ProfilePage& page, const RenderOptions& options) {
  const Json& provenance = page.json.at("provenance");
  MadeOf record = {.kernel_source_sha256 = provenance.at("kernel_source_sha256").get<std::string>(),
                   .registry_sha256 = provenance.at("registry_sha256").get<std::string>(),
                   .nvcc = "",
                   .compute_capability = "",
                   .kernels = {}};
  for (const Json& shape : page.json.at("shapes")) {
    for (const Json* profile : page.At(shape.at("name").get<std::string>())) {
      record.compute_capability = profile->value("compute_capability", "");
      record.kernels.push_back({.arm = profile->at("variant").get<std::string>(),
                                .config = profile->at("config").get<std::string>(),
                                .head_dim = shape.value("head_dim", int64_t{64}),
                                .causal = shape.value("causal", false),
                                .dtype = shape.value("dtype", "fp16"),
                                .projected = shape.contains("embed_dim"),
                                .code_sha256 = profile->at("code_sha256").get<std::string>()});
    }
  }
  return CompareWithTree(record, options);
}

std::string Render(const Json& summary, const RenderOptions& options) {
  ProfilePage page = {.json = summary, .shapes = {}};
  for (const Json& shape : summary.at("shapes")) {
    const std::string name = shape.at("name").get<std::string>();
    if (!page.At(name).empty()) page.shapes.push_back(name);
  }
  const Json& provenance = summary.at("provenance");
  const Json& gpu = summary.at("gpu");
  const std::string prefix = options.picture_prefix;
  std::string out =
      Cat("# What bounds each kernel, on ", gpu.at("name").get<std::string>(), ", ",
          provenance.at("created_utc").get<std::string>().substr(0, 10),
          "\n\nWritten from the record `", provenance.at("run_id").get<std::string>(),
          "` by `warpledger report`; edit the record or the renderer, never this page.\n\n");
  const Staleness staleness = StalenessOf(page, options);
  if (staleness.IsStale()) {
    Append(&out, "> **Warning: this record is older than the kernels.** Since it was made, ",
           WhatChanged(staleness),
           ". Counters of what changed speak of other code than this tree's.\n\n");
  }
  if (const std::string harmless = HarmlessChanges(staleness); !harmless.empty()) {
    Append(&out, harmless, "\n\n");
  }
  for (const std::string& shape : page.shapes) Append(&out, Findings(page, shape));
  Append(
      &out,
      "\nOne launch of each variant under Nsight Compute, clocks and caches left alone. A "
      "profiler changes times, so times are those of records of samples of the very same "
      "machine code under the same toggles of its launch, of the whole call where a second kernel "
      "joins parts; “",
      kNone,
      "” where there is none.\n\n## Bottlenecks\n\n`SMs busy`: share of the launch in "
      "which the average SM had work. `warps`: resident warps of those that fit. `issue`, pipes "
      "and L1: percent of their peak while the SM had work; L2 and DRAM: of the whole launch. "
      "`conflicts`: share of the passes through shared memory that bank conflicts add. "
      "**Bound by**: the SMs without work, where the average one has some for less than ",
      FormatPercent(kIdlePercent / 100), " of the launch; else the busiest unit, from ",
      FormatPercent(kBusyPercent / 100),
      " of its peak; else latency, with the first reason why warps stall.\n");
  for (const std::string& shape : page.shapes) {
    Append(&out, "\n", Code(shape), ":\n\n", BottleneckTable(page, shape));
  }
  out += "\n## Roofline\n\n";
  if (page.AnyTimed()) Append(&out, "![Roofline](", prefix, "profile_roofline.svg)\n\n");
  if (summary.at("ceilings").empty()) {
    out += "No microbenchmarks are recorded beside this record, so there are no roofs.\n";
  } else {
    Append(&out, "Roofs are measured, not quoted; rates per clock are taken at the maximum clock, ",
           FormatSignificant(gpu.at("max_sm_clock_mhz").get<double>(), 4), " MHz:\n\n",
           CeilingTable(page),
           "\nA kernel's roof is the lowest of its arithmetic's, L2's and DRAM's, which binds "
           "nothing where inputs stay in L2 between launches. The picture has no roof of DRAM.\n");
  }
  for (const std::string& shape : page.shapes) {
    Append(&out, "\n", Code(shape), ":\n\n", RooflineTable(page, shape));
  }
  Append(&out, "\n## Why warps wait\n\n");
  for (const std::string& shape : page.shapes) {
    Append(&out, "![Stalls at ", shape, "](", prefix, "profile_stalls_", PlainName(shape),
           ".svg)\n\n");
  }
  Append(&out, "Shares are of all cycles of resident warps, those that issue included.\n",
         StallLegend(page));
  for (const std::string& shape : page.shapes) {
    Append(&out, "\n", Code(shape), ":\n\n", StallTable(page, shape));
  }
  for (const std::string& section : {SharedReadsSection(summary), ClaimSection(page)}) {
    if (!section.empty()) Append(&out, "\n", section);
  }

  std::string failed;
  for (const Json& p : summary.at("profiles")) {
    const std::string reason = p.at("reason").get<std::string>();
    if (reason.empty()) continue;
    Append(&failed, "- ", Code(p.at("variant").get<std::string>()), " at ",
           Code(p.at("shape").get<std::string>()), ": ", EscapeCell(reason), "\n");
  }
  if (!failed.empty()) Append(&out, "\n## Not profiled\n\n", failed);

  Table table({{"what"}, {"value"}});
  const auto text = [&](const char* key) { return provenance.at(key).get<std::string>(); };
  table.AddRow({"run", text("run_id")});
  table.AddRow({"made", text("created_utc")});
  table.AddRow({"Nsight Compute", text("ncu")});
  table.AddRow({"GPU", Cat(gpu.at("name").get<std::string>(), ", ",
                           FormatSignificant(gpu.at("sm_count").get<double>(), 3), " SMs")});
  table.AddRow({"kernels' sources", Code(text("kernel_source_sha256"))});
  table.AddRow({"registry", Code(text("registry_sha256"))});
  std::map<std::string, bool> timed;
  for (const Json& p : summary.at("profiles")) {
    if (p.at("timed_in").is_string()) timed[p.at("timed_in").get<std::string>()] = true;
  }
  std::vector<std::string> runs;
  for (const auto& [run, unused] : timed) runs.push_back(Code(run));
  table.AddRow({"times from", runs.empty() ? std::string(kNone) : JoinWords(runs)});
  std::vector<std::string> skipped;
  for (const Json& name : summary.at("skipped")) skipped.push_back(Code(name.get<std::string>()));
  if (!skipped.empty()) table.AddRow({"could not be read", JoinWords(skipped)});
  Append(&out, "\n## Provenance\n\n", table.ToMarkdown());
  return out;
}

}  // namespace

std::string BoundBy(const ProfileJson& profile) {
  const auto busy = Busy(profile);
  if (busy && *busy < kIdlePercent) {
    const auto grid = profile.find("grid");
    std::string ctas;
    if (grid != profile.end() && grid->is_string()) {
      const std::string text = grid->get<std::string>();
      const size_t begin = text.find_first_of("0123456789");
      if (begin != std::string::npos) {
        ctas =
            Cat(text.substr(begin, text.find_first_not_of("0123456789", begin) - begin), " CTAs, ");
      }
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

absl::StatusOr<std::string> RenderProfileReport(const Json& summary, const RenderOptions& options) {
  try {
    return Render(summary, options);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        Cat("the profiles' summary is not what this program writes: ", error.what()));
  }
}

}  // namespace warpledger::report
