// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/cycle_runner.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "kernels/common/cuda_status.h"

namespace warpledger::harness {
namespace {

constexpr int kLatencyThreads = 32;
constexpr int kThroughputThreads = 512;
constexpr int kDefaultSmemBytes = 48 * 1024;
// An idle GPU needs some milliseconds to raise its clocks.
constexpr std::chrono::milliseconds kWarmUp(20);

}  // namespace

absl::StatusOr<std::vector<double>> CyclesBySm(const std::vector<WarpStamp>& stamps,
                                               int ctas_per_sm) {
  struct Span {
    int64_t first_start;
    int64_t last_stop;
    std::set<uint32_t> ctas;
  };
  std::map<uint32_t, Span> sms;
  for (const WarpStamp& stamp : stamps) {
    if (stamp.stop_clock <= stamp.start_clock) {
      return absl::InternalError(
          absl::StrCat("a warp of SM ", stamp.smid, " started at clock ", stamp.start_clock,
                       " and stopped at ", stamp.stop_clock, "; does the kernel call StopCycles?"));
    }
    const auto [entry, added] =
        sms.try_emplace(stamp.smid, Span{stamp.start_clock, stamp.stop_clock, {}});
    Span& span = entry->second;
    span.first_start = std::min(span.first_start, stamp.start_clock);
    span.last_stop = std::max(span.last_stop, stamp.stop_clock);
    span.ctas.insert(stamp.cta);
  }
  std::vector<double> cycles;
  for (const auto& [smid, span] : sms) {
    if (ctas_per_sm > 0 && static_cast<int>(span.ctas.size()) != ctas_per_sm) continue;
    cycles.push_back(static_cast<double>(span.last_stop - span.first_start));
  }
  if (cycles.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no SM held ", ctas_per_sm,
                     " CTAs of the launch, so nothing can be said per SM; is the GPU busy?"));
  }
  return cycles;
}

int ThreadsOf(const CycleCase& micro_case) {
  if (micro_case.threads > 0) return micro_case.threads;
  return micro_case.measure == Measure::kLatency ? kLatencyThreads : kThroughputThreads;
}

int CtasOf(const CycleCase& micro_case, int sm_count) {
  if (micro_case.ctas > 0) return micro_case.ctas;
  return micro_case.measure == Measure::kLatency ? 1 : sm_count * micro_case.ctas_per_sm;
}

double UnitsOf(const CycleCase& micro_case, int iterations) {
  const double units = micro_case.units_per_iteration * iterations;
  if (micro_case.measure == Measure::kLatency) return units;
  return units * ThreadsOf(micro_case) * micro_case.ctas_per_sm;
}

double ValueOf(Measure measure, double slope) {
  return measure == Measure::kLatency ? slope : 1 / slope;
}

absl::StatusOr<CycleRunner> CycleRunner::Create(const CycleCase& micro_case,
                                                const MicroDevice& device) {
  CycleRunner runner;
  runner.case_ = &micro_case;
  runner.threads_ = ThreadsOf(micro_case);
  runner.ctas_ = CtasOf(micro_case, device.facts.sm_count);
  const auto* kernel = reinterpret_cast<const void*>(micro_case.kernel);
  if (micro_case.dynamic_smem_bytes > kDefaultSmemBytes) {
    RETURN_IF_CUDA_ERROR(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              micro_case.dynamic_smem_bytes),
                         absl::StrCat(micro_case.about.name, ": asking for ",
                                      micro_case.dynamic_smem_bytes, " B of shared memory"));
  }
  int fits = 0;
  RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fits, kernel, runner.threads_,
                                                                     micro_case.dynamic_smem_bytes),
                       absl::StrCat(micro_case.about.name, ": asking for the occupancy"));
  if (fits < micro_case.ctas_per_sm) {
    return absl::FailedPreconditionError(
        absl::StrCat(micro_case.about.name, ": ", fits, " CTAs of ", runner.threads_,
                     " threads fit an SM of ", device.facts.name, ", not ", micro_case.ctas_per_sm,
                     "; ask for fewer threads or less shared memory"));
  }
  if (micro_case.make_data) {
    absl::StatusOr<DeviceBuffer> data = micro_case.make_data(device);
    if (!data.ok()) return data.status();
    runner.data_ = *std::move(data);
  }
  const size_t warps = static_cast<size_t>(runner.ctas_) * runner.threads_ / 32;
  absl::StatusOr<DeviceBuffer> stamps = DeviceBuffer::Allocate(warps * sizeof(WarpStamp));
  if (!stamps.ok()) return stamps.status();
  runner.stamps_ = *std::move(stamps);
  absl::StatusOr<DeviceBuffer> sink = DeviceBuffer::Allocate(sizeof(uint32_t));
  if (!sink.ok()) return sink.status();
  runner.sink_ = *std::move(sink);

  runner.args_.stamps = static_cast<WarpStamp*>(runner.stamps_.data());
  runner.args_.sink = static_cast<uint32_t*>(runner.sink_.data());
  runner.args_.data = runner.data_.data();
  runner.args_.data_bytes = static_cast<int64_t>(runner.data_.bytes());
  std::copy(micro_case.args.begin(), micro_case.args.end(), runner.args_.params);

  SplitMix64 random(HashName(micro_case.about.name));
  const auto end = std::chrono::steady_clock::now() + kWarmUp;
  do {
    const auto cycles = runner.Launch(micro_case.lengths.back(), random);
    if (!cycles.ok()) return cycles.status();
  } while (std::chrono::steady_clock::now() < end);
  return runner;
}

absl::StatusOr<std::vector<double>> CycleRunner::Launch(int iterations, SplitMix64& random) {
  const std::string& name = case_->about.name;
  args_.iterations = iterations;
  args_.seed = static_cast<uint32_t>(random.Next());
  args_.sink_key = static_cast<uint32_t>(random.Next());
  // A kernel that stamps nothing must not pass with the stamps of the run before.
  absl::Status status = stamps_.Fill(0);
  if (!status.ok()) return status;
  void* arguments[] = {&args_};
  RETURN_IF_CUDA_ERROR(
      cudaLaunchKernel(reinterpret_cast<const void*>(case_->kernel), dim3(ctas_), dim3(threads_),
                       arguments, case_->dynamic_smem_bytes, nullptr),
      absl::StrCat(name, ": launching"));
  RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize(), absl::StrCat(name, ": running"));
  std::vector<WarpStamp> stamps(stamps_.bytes() / sizeof(WarpStamp));
  status = stamps_.CopyToHost(
      absl::MakeSpan(reinterpret_cast<std::byte*>(stamps.data()), stamps_.bytes()));
  if (!status.ok()) return status;
  // A throughput over fewer CTAs than SMs is the case's own wish.
  const int expected = case_->measure == Measure::kThroughput ? case_->ctas_per_sm : 0;
  absl::StatusOr<std::vector<double>> cycles = CyclesBySm(stamps, expected);
  if (!cycles.ok()) {
    return absl::Status(cycles.status().code(),
                        absl::StrCat(name, ": ", cycles.status().message()));
  }
  return cycles;
}

absl::StatusOr<CycleSample> CycleRunner::Run(SplitMix64& random) {
  CycleSample sample;
  const std::vector<int>& lengths = case_->lengths;
  sample.units.resize(lengths.size());
  sample.cycles.resize(lengths.size());
  for (const int i : RandomOrder(static_cast<int>(lengths.size()), random)) {
    const absl::StatusOr<std::vector<double>> cycles = Launch(lengths[i], random);
    if (!cycles.ok()) return cycles.status();
    sample.units[i] = UnitsOf(*case_, lengths[i]);
    sample.cycles[i] = Median(*cycles);
    const int sms = static_cast<int>(cycles->size());
    sample.sms = sample.sms == 0 ? sms : std::min(sample.sms, sms);
  }
  const absl::StatusOr<LineFit> fit = FitLine(sample.units, sample.cycles);
  if (!fit.ok()) return fit.status();
  sample.fit = *fit;
  if (fit->slope <= 0) {
    return absl::InternalError(absl::StrCat(
        case_->about.name, ": cycles don't grow with the length of the loop (slope ", fit->slope,
        "), so the loop holds nothing that takes time; look at its machine code"));
  }
  sample.value = ValueOf(case_->measure, fit->slope);
  return sample;
}

}  // namespace warpledger::harness
