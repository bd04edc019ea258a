// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/record/record_files.h"
#include "ablations/record/record_lines.h"
#include "ablations/record/store.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"
#include "kernels/common/text.h"

namespace warpledger::ablations {
namespace {

// Why a warp that could issue does not, one counter each: the average number of
// warps in that state per issued instruction.
constexpr std::string_view kStallReasons[] = {"barrier",
                                              "branch_resolving",
                                              "dispatch_stall",
                                              "drain",
                                              "gmma",
                                              "imc_miss",
                                              "lg_throttle",
                                              "long_scoreboard",
                                              "math_pipe_throttle",
                                              "membar",
                                              "mio_throttle",
                                              "misc",
                                              "no_instruction",
                                              "not_selected",
                                              "selected",
                                              "short_scoreboard",
                                              "sleeping",
                                              "tex_throttle",
                                              "wait"};

constexpr std::string_view kCounters[] = {
    // Who and how long.
    "device__attribute_display_name",
    "device__attribute_multiprocessor_count",
    "device__attribute_max_gpu_frequency_khz",
    "launch__registers_per_thread",
    "launch__waves_per_multiprocessor",
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.max",
    "sm__cycles_active.avg",
    // Warps and issue.
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "smsp__inst_executed.sum",
    // Pipes. The first tensor counter leaves out packed fp16 arithmetic, which runs on the same
    // pipe; GPUs before Hopper have the second alone.
    "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_tensor_op_gmma.sum",
    "sm__inst_executed_pipe_tensor_op_hmma.sum",
    "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum",
    "sm__inst_executed_pipe_xu.sum",
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_fma.sum",
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_lsu.sum",
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
    // Memory, from near to far.
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "lts__t_bytes.sum",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
};

constexpr std::string_view kGpuName = "device__attribute_display_name";

bool AlwaysThere(std::string_view metric) {
  return metric.starts_with("device__") || metric.starts_with("launch__");
}

// RFC 4180, one line: quoted fields, doubled quotes inside.
absl::StatusOr<std::vector<std::string>> CsvFields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return absl::InvalidArgumentError("a quotation mark is not closed");
  return fields;
}

// What ncu or the program said last, for an error.
std::string LastWords(const std::vector<std::string>& messages) {
  std::vector<std::string> kept;
  for (const std::string& message : messages) {
    if (absl::StrContains(message, "ERROR") || absl::StrContains(message, "warpledger:")) {
      kept.push_back(message);
    }
  }
  if (kept.empty() && !messages.empty()) kept.push_back(messages.back());
  return kept.empty() ? "it printed nothing" : absl::StrJoin(kept, "; ");
}

constexpr const char* kColumns[] = {"ID", "Kernel Name", "Block Size",  "Grid Size",
                                    "CC", "Metric Name", "Metric Unit", "Metric Value"};
enum Column { kId, kKernel, kBlock, kGrid, kCc, kMetric, kUnit, kValue };

absl::StatusOr<std::array<size_t, std::size(kColumns)>> ColumnPlaces(
    const std::vector<std::string>& header) {
  std::array<size_t, std::size(kColumns)> places{};
  for (size_t i = 0; i < places.size(); ++i) {
    const auto found = std::find(header.begin(), header.end(), kColumns[i]);
    if (found == header.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("ncu's CSV has no column \"", kColumns[i], "\""));
    }
    places[i] = static_cast<size_t>(found - header.begin());
  }
  return places;
}

}  // namespace

std::vector<std::string> ProfileMetrics() {
  std::vector<std::string> metrics(std::begin(kCounters), std::end(kCounters));
  for (const std::string_view reason : kStallReasons) {
    metrics.push_back(absl::StrCat("smsp__average_warps_issue_stalled_", Text(reason),
                                   "_per_issue_active.ratio"));
  }
  return metrics;
}

std::vector<std::string> KnownMetrics(const std::vector<std::string>& wanted,
                                      std::string_view query_output) {
  std::set<std::string> known;
  for (const absl::string_view line : absl::StrSplit(Text(query_output), '\n')) {
    known.insert(std::string(line.substr(0, line.find(' '))));
  }
  std::vector<std::string> out;
  for (const std::string& metric : wanted) {
    if (AlwaysThere(metric) || known.contains(metric.substr(0, metric.find('.')))) {
      out.push_back(metric);
    }
  }
  return out;
}

std::vector<std::string> NcuCall(const std::string& ncu, const std::vector<std::string>& metrics,
                                 const std::vector<std::string>& program) {
  // Clocks are left alone, and so are the caches: times are taken on a warm L2 too.
  // Base units, so that no figure is rounded to "1.60 Mbyte".
  std::vector<std::string> call = {ncu,
                                   "--clock-control",
                                   "none",
                                   "--cache-control",
                                   "none",
                                   "--csv",
                                   "--print-units",
                                   "base",
                                   "--profile-from-start",
                                   "off",
                                   "--metrics",
                                   absl::StrJoin(metrics, ",")};
  call.insert(call.end(), program.begin(), program.end());
  return call;
}

absl::StatusOr<std::vector<KernelProfile>> ParseNcuCsv(std::string_view output) {
  std::vector<KernelProfile> launches;
  std::vector<std::string> messages;
  std::array<size_t, std::size(kColumns)> places{};
  size_t columns = 0;  // 0: the header has not come yet
  std::set<std::string> ids;
  std::string id;
  for (const absl::string_view text : absl::StrSplit(Text(output), '\n', absl::SkipEmpty())) {
    const std::string line(absl::StripSuffix(text, "\r"));
    if (columns == 0 && !absl::StartsWith(line, "\"ID\",")) {
      messages.push_back(line);
      continue;
    }
    if (absl::StartsWith(line, "==")) {
      messages.push_back(line);
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> fields, CsvFields({line.data(), line.size()}));
    if (columns == 0) {
      ASSIGN_OR_RETURN(places, ColumnPlaces(fields));
      columns = fields.size();
      continue;
    }
    if (fields.size() != columns) {
      return absl::InvalidArgumentError(absl::StrCat("ncu's CSV has a line of ", fields.size(),
                                                     " columns under a header of ", columns));
    }
    const auto field = [&](Column column) -> const std::string& { return fields[places[column]]; };
    if (launches.empty() || field(kId) != id) {
      id = field(kId);
      if (!ids.insert(id).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("ncu's CSV has launch ", id, " in two places"));
      }
      KernelProfile& begun = launches.emplace_back();
      begun.kernel = field(kKernel);
      begun.block = field(kBlock);
      begun.grid = field(kGrid);
      begun.compute_capability = field(kCc);
    }
    KernelProfile& profile = launches.back();
    if (field(kMetric) == kGpuName) {
      profile.gpu = field(kValue);
      continue;
    }
    double value = 0;
    // Thousands are set apart by commas, whatever the locale of the page's reader.
    const std::string number = absl::StrReplaceAll(field(kValue), {{",", ""}});
    if (!absl::SimpleAtod(number, &value) || !std::isfinite(value)) continue;  // "n/a"
    if (!profile.metrics.emplace(field(kMetric), MetricValue{field(kUnit), value}).second) {
      return absl::InvalidArgumentError(absl::StrCat("ncu gave ", field(kMetric), " twice"));
    }
  }
  if (launches.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("ncu gave no counters: ", LastWords(messages)));
  }
  for (const KernelProfile& profile : launches) {
    if (!profile.metrics.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ncu profiled ", profile.kernel, " but gave no counter a value"));
  }
  return launches;
}

const KernelProfile& Longest(const std::vector<KernelProfile>& launches) {
  const auto time = [](const KernelProfile& launch) {
    const auto found = launch.metrics.find("gpu__time_duration.sum");
    return found == launch.metrics.end() ? 0 : found->second.value;
  };
  return *std::max_element(launches.begin(), launches.end(),
                           [&](const auto& a, const auto& b) { return time(a) < time(b); });
}

bool HasProfiles(const std::string& path) { return HasRecordFile(path, kProfileFile); }

absl::StatusOr<ProfileRecord> LoadProfiles(const std::string& path) {
  ProfileRecord record;
  ASSIGN_OR_RETURN(const RecordFiles files, RecordFiles::Open(path));
  ASSIGN_OR_RETURN(record.info, ReadJsonFile<ProfileInfo>(files, kProfileFile));

  const absl::StatusOr<std::string> text = files.Read(kProfilesFile);
  if (absl::IsNotFound(text.status())) return record;
  if (!text.ok()) return text.status();
  const std::string lines = files.PathOf(kProfilesFile);
  const auto visit = [&](std::string_view line, int64_t) -> absl::Status {
    ASSIGN_OR_RETURN(Profile profile, FromText<Profile>(line));
    const bool shape_known =
        std::any_of(record.info.shapes.begin(), record.info.shapes.end(),
                    [&](const ShapeInfo& shape) { return shape.name == profile.shape; });
    if (!shape_known) return absl::DataLossError("a shape that profile.json does not name");
    // A later line is a later try.
    std::erase_if(record.profiles, [&](const Profile& p) {
      return p.variant == profile.variant && p.shape == profile.shape;
    });
    record.profiles.push_back(std::move(profile));
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const size_t whole, ForEachLine(*text, lines, Tail::kRepair, visit));
  if (whole != text->size()) {
    return absl::DataLossError(absl::StrCat(lines, ": its last line does not end"));
  }
  return record;
}

absl::Status AppendProfile(const std::string& dir, const Profile& profile) {
  const std::string path = absl::StrCat(dir, "/", kProfilesFile);
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  return WriteFileAtomically(path,
                             absl::StrCat(text.ok() ? *text : "", SummedLine(ToJson(profile))));
}

}  // namespace warpledger::ablations
