// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/counters.h"

#include <algorithm>

#include "kernels/sdpa/registry/registry.h"
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

// Warp-cycles lost to one reason in the whole launch.
std::optional<double> Stalled(const Profile& p, std::string_view reason) {
  const auto per_issue = Metric(p, Cat(kStallPrefix, reason, kStallSuffix));
  const auto issued = Metric(p, "smsp__inst_executed.sum");
  if (!per_issue || !issued) return std::nullopt;
  return *per_issue * *issued;
}

}  // namespace

std::optional<double> Ratio(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b;
}

std::optional<double> Tensor(const Profile& p) {
  const auto exact = Metric(p,
                            "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active.avg.pct_"
                            "of_peak_sustained_active");
  // GPUs before Hopper have the one that counts packed fp16 arithmetic too.
  return exact
             ? exact
             : Metric(p, "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active");
}
std::optional<double> Mufu(const Profile& p) {
  return Metric(p, "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active");
}
std::optional<double> Fma(const Profile& p) {
  return Metric(p, "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active");
}
std::optional<double> Issue(const Profile& p) {
  return Metric(p, "smsp__issue_active.avg.pct_of_peak_sustained_active");
}
std::optional<double> L1(const Profile& p) {
  return Metric(p, "l1tex__throughput.avg.pct_of_peak_sustained_active");
}
std::optional<double> L2(const Profile& p) {
  return Metric(p, "lts__throughput.avg.pct_of_peak_sustained_elapsed");
}
std::optional<double> Dram(const Profile& p) {
  return Metric(p, "dram__throughput.avg.pct_of_peak_sustained_elapsed");
}
std::optional<double> Occupancy(const Profile& p) {
  return Metric(p, "sm__warps_active.avg.pct_of_peak_sustained_active");
}
std::optional<double> L2Bytes(const Profile& p) { return Metric(p, "lts__t_bytes.sum"); }
std::optional<double> DramBytes(const Profile& p) {
  const auto read = Metric(p, "dram__bytes_read.sum");
  const auto write = Metric(p, "dram__bytes_write.sum");
  if (!read || !write) return std::nullopt;
  return *read + *write;
}
std::optional<double> Instructions(const Profile& p) {
  return Metric(p, "smsp__inst_executed.sum");
}
std::optional<double> LoadStore(const Profile& p) {
  return Metric(p, "sm__inst_executed_pipe_lsu.sum");
}
std::optional<double> SharedWavefronts(const Profile& p) {
  return Metric(p, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum");
}
std::optional<double> SharedLoadWavefronts(const Profile& p) {
  return Metric(p, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum");
}
std::optional<double> BankConflicts(const Profile& p) {
  return Metric(p, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum");
}
std::optional<double> ConflictShare(const Profile& p) {
  const auto share = Ratio(BankConflicts(p), SharedWavefronts(p));
  if (!share) return std::nullopt;
  return 100 * *share;
}
std::optional<double> MufuInstructions(const Profile& p) {
  return Metric(p, "sm__inst_executed_pipe_xu.sum");
}
std::optional<double> FmaInstructions(const Profile& p) {
  return Metric(p, "sm__inst_executed_pipe_fma.sum");
}
std::optional<double> Busy(const Profile& p) {
  const auto share = Ratio(Metric(p, "sm__cycles_active.avg"), Metric(p, "sm__cycles_elapsed.max"));
  if (!share) return std::nullopt;
  return 100 * *share;
}
std::optional<double> BarrierStalls(const Profile& p) { return Stalled(p, "barrier"); }
std::optional<double> LongScoreboardStalls(const Profile& p) {
  return Stalled(p, "long_scoreboard");
}

namespace {

constexpr Counter kCounters[] = {
    {"l2_traffic", "L2 traffic, bytes", "L2 traffic", &L2Bytes},
    {"shared_wavefronts", "loads' and stores' passes through shared memory",
     "shared-memory wavefronts", &SharedWavefronts},
    {"bank_conflicts", "bank conflicts", "bank conflicts", &BankConflicts},
    {"instructions", "all instructions", "all instructions", &Instructions},
    {"load_store_instructions", "load and store instructions", "load and store instructions",
     &LoadStore},
    {"fma_instructions", "FMA instructions", "FMA instructions", &FmaInstructions},
    {"mufu_instructions", "MUFU instructions", "MUFU instructions", &MufuInstructions},
    {"barrier_stalls", "waiting at barriers, warp-cycles", "barrier stalls", &BarrierStalls},
    {"l2_stalls", "waiting for L2, warp-cycles", "stalls on L2", &LongScoreboardStalls},
    {"sms_busy", "SMs' busy share, percent", "SMs' busy share", &Busy},
    {"tensor_busy", "tensor cores' busy share, percent", "", &Tensor},
};

constexpr const Counter* Find(std::string_view id) {
  for (const Counter& counter : kCounters) {
    if (counter.id == id) return &counter;
  }
  return nullptr;
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
