// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/counters.h"

#include <algorithm>

#include "kernels/sdpa/registry/registry.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

constexpr char kStallPrefix[] = "smsp__average_warps_issue_stalled_";
constexpr char kStallSuffix[] = "_per_issue_active.ratio";

std::optional<double> Metric(const Profile& profile, std::string_view name) {
  const auto found = profile.launch.metrics.find(std::string(name));
  if (found == profile.launch.metrics.end()) return std::nullopt;
  return found->second.value;
}

// Percent of a unit's peak while the SM has work, and over the whole launch.
std::optional<double> Active(const Profile& p, std::string_view unit) {
  return Metric(p, Cat(unit, ".avg.pct_of_peak_sustained_active"));
}
std::optional<double> Elapsed(const Profile& p, std::string_view unit) {
  return Metric(p, Cat(unit, ".avg.pct_of_peak_sustained_elapsed"));
}

constexpr char kInstructions[] = "smsp__inst_executed.sum";
constexpr char kSharedWavefronts[] = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
constexpr char kBankConflicts[] = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";

// Warp-cycles lost to one reason in the whole launch.
std::optional<double> Stalled(const Profile& p, std::string_view reason) {
  const auto per_issue = Metric(p, Cat(kStallPrefix, reason, kStallSuffix));
  const auto issued = Metric(p, kInstructions);
  if (!per_issue || !issued) return std::nullopt;
  return *per_issue * *issued;
}

std::optional<double> PercentOf(std::optional<double> part, std::optional<double> whole) {
  const auto share = Ratio(part, whole);
  if (!share) return std::nullopt;
  return 100 * *share;
}

}  // namespace

std::optional<double> Ratio(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b;
}

std::optional<double> Tensor(const Profile& p) {
  const auto exact = Active(p, "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active");
  // GPUs before Hopper have the one that counts packed fp16 arithmetic too.
  return exact ? exact : Active(p, "sm__pipe_tensor_op_hmma_cycles_active");
}
std::optional<double> Mufu(const Profile& p) { return Active(p, "sm__inst_executed_pipe_xu"); }
std::optional<double> Fma(const Profile& p) { return Active(p, "sm__inst_executed_pipe_fma"); }
std::optional<double> Issue(const Profile& p) { return Active(p, "smsp__issue_active"); }
std::optional<double> L1(const Profile& p) { return Active(p, "l1tex__throughput"); }
std::optional<double> Occupancy(const Profile& p) { return Active(p, "sm__warps_active"); }
std::optional<double> L2(const Profile& p) { return Elapsed(p, "lts__throughput"); }
std::optional<double> Dram(const Profile& p) { return Elapsed(p, "dram__throughput"); }
std::optional<double> Busy(const Profile& p) {
  return PercentOf(Metric(p, "sm__cycles_active.avg"), Metric(p, "sm__cycles_elapsed.max"));
}
std::optional<double> ConflictShare(const Profile& p) {
  return PercentOf(Metric(p, kBankConflicts), Metric(p, kSharedWavefronts));
}
std::optional<double> L2Bytes(const Profile& p) { return Metric(p, "lts__t_bytes.sum"); }
std::optional<double> DramBytes(const Profile& p) {
  const auto read = Metric(p, "dram__bytes_read.sum");
  const auto write = Metric(p, "dram__bytes_write.sum");
  if (!read || !write) return std::nullopt;
  return *read + *write;
}
std::optional<double> SharedLoadWavefronts(const Profile& p) {
  return Metric(p, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum");
}

namespace {

constexpr Counter kCounters[] = {
    {"l2_traffic", "L2 traffic, bytes", "L2 traffic", &L2Bytes},
    {"shared_wavefronts", "loads' and stores' passes through shared memory",
     "shared-memory wavefronts", [](const Profile& p) { return Metric(p, kSharedWavefronts); }},
    {"bank_conflicts", "bank conflicts", "bank conflicts",
     [](const Profile& p) { return Metric(p, kBankConflicts); }},
    {"instructions", "all instructions", "all instructions",
     [](const Profile& p) { return Metric(p, kInstructions); }},
    {"load_store_instructions", "load and store instructions", "load and store instructions",
     [](const Profile& p) { return Metric(p, "sm__inst_executed_pipe_lsu.sum"); }},
    {"fma_instructions", "FMA instructions", "FMA instructions",
     [](const Profile& p) { return Metric(p, "sm__inst_executed_pipe_fma.sum"); }},
    {"mufu_instructions", "MUFU instructions", "MUFU instructions",
     [](const Profile& p) { return Metric(p, "sm__inst_executed_pipe_xu.sum"); }},
    {"barrier_stalls", "waiting at barriers, warp-cycles", "barrier stalls",
     [](const Profile& p) { return Stalled(p, "barrier"); }},
    {"l2_stalls", "waiting for L2, warp-cycles", "stalls on L2",
     [](const Profile& p) { return Stalled(p, "long_scoreboard"); }},
    {"sms_busy", "SMs' busy share, percent", "SMs' busy share", &Busy},
    {"tensor_busy", "tensor cores' busy share, percent", "", &Tensor},
};

constexpr const Counter* Find(std::string_view id) {
  return FindIn(kCounters, [&](const Counter& counter) { return counter.id == id; });
}

constexpr bool EveryClaimNamesACounter() {
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!row.counter_claim.counter.empty() && !Find(row.counter_claim.counter)) return false;
  }
  return true;
}
static_assert(EveryClaimNamesACounter(), "toggles.def: a counter_claim names no counter of these");

// Calls `visit(reason, warp-cycles per instruction)` for each reason that was read.
template <typename Visit>
void ForEachReason(const Profile& profile, Visit visit) {
  for (const auto& [name, metric] : profile.launch.metrics) {
    std::string_view reason = name;
    if (!reason.starts_with(kStallPrefix)) continue;
    reason.remove_prefix(sizeof kStallPrefix - 1);
    if (!reason.ends_with(kStallSuffix)) continue;  // asked now: the two may not overlap
    reason.remove_suffix(sizeof kStallSuffix - 1);
    visit(reason, metric.value);
  }
}

}  // namespace

absl::Span<const Counter> Counters() { return kCounters; }

const Counter* FindCounter(std::string_view id) { return Find(id); }

std::optional<double> CyclesPerInstruction(const Profile& profile) {
  double all = 0;
  ForEachReason(profile, [&](std::string_view, double cycles) { all += cycles; });
  return all > 0 ? std::optional(all) : std::nullopt;
}

std::vector<Stall> Stalls(const Profile& profile) {
  const std::optional<double> all = CyclesPerInstruction(profile);
  std::vector<Stall> stalls;
  ForEachReason(profile, [&](std::string_view reason, double cycles) {
    if (reason == "selected") return;
    stalls.push_back({std::string(reason), all ? cycles / *all : 0});
  });
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const Stall& a, const Stall& b) { return a.share > b.share; });
  return stalls;
}

}  // namespace warpledger::report
