#include "ablations/sdpa_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "ablations/planted_fault_kernels.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/cuda_status.h"
#include "kernels/sdpa/kv_quantise.h"

namespace warpledger::ablations {
namespace {

// Longer than a tile row block of any variant, so that a tile written past the
// last row lands in it.
constexpr size_t kGuardBytes = 32 * 1024;
constexpr unsigned char kPoison = 0xff;  // NaN in fp16, bf16 and fp32
constexpr size_t kAlignment = 256;

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

static_assert(kGuardBytes % kAlignment == 0, "values behind a guard must stay aligned");

// An input between two bands of NaN: what a kernel reads outside of it poisons
// the output, unless the kernel masks it.
template <typename T>
absl::StatusOr<DeviceBuffer> Upload(const std::vector<T>& values) {
  const size_t bytes = values.size() * sizeof(T);
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Allocate(kGuardBytes + bytes + kGuardBytes);
  if (!buffer.ok()) return buffer.status();
  RETURN_IF_ERROR(buffer->Fill(kPoison));
  RETURN_IF_ERROR(buffer->CopyFromHost(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), bytes), kGuardBytes));
  return buffer;
}

const std::byte* Values(const DeviceBuffer& guarded) {
  return static_cast<const std::byte*>(guarded.data()) + kGuardBytes;
}

// Raises the errors to the largest differences; NaN, as of an output that nobody
// wrote, stays.
void AddDifferences(sdpa::Dtype dtype, const RunOutput& a, const RunOutput& b, Accuracy* accuracy) {
  const auto raise = [](double difference, double* error) {
    if (!std::isnan(*error) && !(difference <= *error)) *error = difference;
  };
  for (size_t i = 0; i < a.out.size(); ++i) {
    if (a.out[i] == b.out[i]) continue;
    raise(std::fabs(sdpa::ToFloat(dtype, a.out[i]) - sdpa::ToFloat(dtype, b.out[i])),
          &accuracy->max_err);
  }
  for (size_t i = 0; i < a.lse.size(); ++i) {
    if (a.lse[i] == b.lse[i]) continue;  // also where both are -infinity
    raise(std::fabs(double{a.lse[i]} - b.lse[i]), &accuracy->lse_err);
  }
}

bool AllPoison(const std::vector<std::byte>& bytes, size_t begin, size_t end) {
  return std::all_of(bytes.begin() + static_cast<int64_t>(begin),
                     bytes.begin() + static_cast<int64_t>(end),
                     [](std::byte b) { return b == std::byte{kPoison}; });
}

}  // namespace

bool SameBits(const RunOutput& a, const RunOutput& b) {
  return a.out == b.out && a.lse.size() == b.lse.size() &&
         std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0;
}

size_t SdpaRunner::OutOffset() const { return kGuardBytes; }
size_t SdpaRunner::LseOffset() const {
  return OutOffset() + RoundUp(sdpa::QueryElements(problem_) * sizeof(sdpa::Bits16)) + kGuardBytes;
}
size_t SdpaRunner::OutputBytes() const {
  return LseOffset() + RoundUp(sdpa::QueryRows(problem_) * sizeof(float)) + kGuardBytes;
}

absl::StatusOr<SdpaRunner> SdpaRunner::Create(const sdpa::Problem& problem,
                                              absl::Span<const sdpa::Inputs> sets, int rotation) {
  RETURN_IF_ERROR(sdpa::CheckProblem(problem));
  absl::StatusOr<DeviceFacts> device = QueryDevice();
  if (!device.ok()) return device.status();
  SdpaRunner runner;
  runner.problem_ = problem;
  runner.device_ = *std::move(device);
  const size_t count = std::max(sets.size(), static_cast<size_t>(std::max(0, rotation)));
  for (size_t i = 0; i < count; ++i) {
    const sdpa::Inputs& inputs = sets[i % sets.size()];
    DeviceSet set;
    for (auto [buffer, values] : {std::pair{&set.q, &inputs.q}, std::pair{&set.k, &inputs.k},
                                  std::pair{&set.v, &inputs.v}}) {
      absl::StatusOr<DeviceBuffer> uploaded = Upload(*values);
      if (!uploaded.ok()) return uploaded.status();
      *buffer = *std::move(uploaded);
    }
    absl::StatusOr<DeviceBuffer> out = DeviceBuffer::Allocate(runner.OutputBytes());
    if (!out.ok()) return out.status();
    set.out = *std::move(out);
    RETURN_IF_ERROR(set.out.Fill(kPoison));
    runner.sets_.push_back(std::move(set));
  }
  return runner;
}

absl::Status SdpaRunner::AddStorage(const sdpa::Config& config) {
  const sdpa::KvStorage storage = sdpa::KvStorageOf(config);
  if (!storage.quantised) return absl::OkStatus();
  for (DeviceSet& set : sets_) {
    const auto known = [&](const auto& entry) { return entry.first == storage.scheme; };
    if (std::any_of(set.quantised.begin(), set.quantised.end(), known)) continue;
    QuantisedKv made;
    for (auto [from, codes, scales] : {std::tuple{&set.k, &made.k, &made.k_scales},
                                       std::tuple{&set.v, &made.v, &made.v_scales}}) {
      std::vector<sdpa::Bits16> values(sdpa::KeyElements(problem_));
      RETURN_IF_ERROR(from->CopyToHost(absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                                                      values.size() * sizeof(sdpa::Bits16)),
                                       kGuardBytes));
      const sdpa::QuantisedTensor tensor = sdpa::Quantise(problem_, values, storage.scheme);
      absl::StatusOr<DeviceBuffer> uploaded = Upload(tensor.codes);
      if (!uploaded.ok()) return uploaded.status();
      *codes = *std::move(uploaded);
      uploaded = Upload(sdpa::LaunchScales(tensor, storage.scheme.scope));
      if (!uploaded.ok()) return uploaded.status();
      *scales = *std::move(uploaded);
      made.scale_stride = sdpa::LaunchScaleStride(tensor, storage.scheme.scope);
    }
    set.quantised.emplace_back(storage.scheme, std::move(made));
  }
  return absl::OkStatus();
}

absl::Status SdpaRunner::Launch(const sdpa::KernelInstance& instance, int set,
                                cudaStream_t stream) const {
  const DeviceSet& device = sets_[set];
  sdpa::ForwardParams params = sdpa::MakeParams(instance.config, problem_);
  params.q = Values(device.q);
  params.k = Values(device.k);
  params.v = Values(device.v);
  if (const sdpa::KvStorage storage = sdpa::KvStorageOf(instance.config); storage.quantised) {
    const auto found =
        std::find_if(device.quantised.begin(), device.quantised.end(),
                     [&](const auto& entry) { return entry.first == storage.scheme; });
    if (found == device.quantised.end()) {
      return absl::FailedPreconditionError("K and V were not quantised; AddStorage does that");
    }
    const QuantisedKv& kv = found->second;
    params.k = Values(kv.k);
    params.v = Values(kv.v);
    params.k_scales = reinterpret_cast<const float*>(Values(kv.k_scales));
    params.v_scales = reinterpret_cast<const float*>(Values(kv.v_scales));
    params.kv_scale_stride = kv.scale_stride;
  }
  auto* out = static_cast<std::byte*>(device.out.data());
  params.o = out + OutOffset();
  params.lse = reinterpret_cast<float*>(out + LseOffset());
  RETURN_IF_ERROR(sdpa::Launch(instance, params, problem_, stream));
  if (fault_ == Fault::kNone) return absl::OkStatus();
  std::byte* behind = out + OutOffset() + sdpa::QueryElements(problem_) * sizeof(sdpa::Bits16);
  return CudaStatus(LaunchPlantedFault(fault_, behind, stream), "planting a fault");
}

absl::StatusOr<RunOutput> SdpaRunner::Run(const sdpa::KernelInstance& instance, int set) {
  RETURN_IF_ERROR(sdpa::CheckLaunchable(instance.config, problem_, device_));
  RETURN_IF_ERROR(sdpa::PrepareInstance(instance));
  RETURN_IF_ERROR(AddStorage(instance.config));
  RETURN_IF_ERROR(Poison(set));
  RETURN_IF_ERROR(Launch(instance, set, nullptr));
  RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize(), "running the kernel");
  return ReadBack(set);
}

absl::Status SdpaRunner::Poison(int set) {
  RETURN_IF_ERROR(sets_[set].out.Fill(kPoison));
  RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize(), "before a checked run");
  return absl::OkStatus();
}

absl::StatusOr<RunOutput> SdpaRunner::ReadBack(int set) const {
  std::vector<std::byte> bytes(OutputBytes());
  RETURN_IF_ERROR(sets_[set].out.CopyToHost(absl::MakeSpan(bytes)));
  RunOutput result;
  result.out.resize(sdpa::QueryElements(problem_));
  result.lse.resize(sdpa::QueryRows(problem_));
  const size_t out_bytes = result.out.size() * sizeof(sdpa::Bits16);
  const size_t lse_bytes = result.lse.size() * sizeof(float);
  std::memcpy(result.out.data(), &bytes[OutOffset()], out_bytes);
  std::memcpy(result.lse.data(), &bytes[LseOffset()], lse_bytes);
  result.guards_intact = AllPoison(bytes, 0, OutOffset()) &&
                         AllPoison(bytes, OutOffset() + out_bytes, LseOffset()) &&
                         AllPoison(bytes, LseOffset() + lse_bytes, bytes.size());
  return result;
}

absl::StatusOr<CheckOutcome> SdpaRunner::Check(const sdpa::KernelInstance& instance, int set,
                                               const sdpa::Reference& reference) {
  absl::StatusOr<RunOutput> first = Run(instance, set);
  if (!first.ok()) return first.status();
  absl::StatusOr<RunOutput> second = Run(instance, set);
  if (!second.ok()) return second.status();

  CheckOutcome outcome;
  outcome.accuracy = JudgeAccuracy(reference, first->out, first->lse);
  outcome.guards_intact = first->guards_intact && second->guards_intact;
  outcome.bit_identical = SameBits(*first, *second);
  if (!outcome.accuracy.correct) {
    outcome.reason = outcome.accuracy.reason;
  } else if (!outcome.guards_intact) {
    outcome.reason = "it wrote outside its output";
  } else if (!outcome.bit_identical) {
    outcome.reason = "two runs on the same inputs differ";
  }
  outcome.correct = outcome.reason.empty();
  return outcome;
}

absl::StatusOr<CheckOutcome> SdpaRunner::CheckReplay(const sdpa::KernelInstance& instance,
                                                     absl::FunctionRef<absl::Status()> replay) {
  for (int set = 0; set < sets(); ++set) RETURN_IF_ERROR(Poison(set));
  RETURN_IF_ERROR(replay());
  CheckOutcome outcome;
  outcome.guards_intact = true;
  outcome.bit_identical = true;
  for (int set = 0; set < sets(); ++set) {
    absl::StatusOr<RunOutput> replayed = ReadBack(set);
    if (!replayed.ok()) return replayed.status();
    absl::StatusOr<RunOutput> eager = Run(instance, set);
    if (!eager.ok()) return eager.status();
    outcome.guards_intact = outcome.guards_intact && replayed->guards_intact;
    if (SameBits(*replayed, *eager)) continue;
    if (outcome.bit_identical) {
      outcome.reason = absl::StrCat("what the timed graph leaves of input set ", set,
                                    " differs from an eager run of the same kernel");
    }
    outcome.bit_identical = false;
    AddDifferences(problem_.dtype, *replayed, *eager, &outcome.accuracy);
  }
  if (outcome.bit_identical && !outcome.guards_intact) {
    outcome.reason = "the timed graph wrote outside its output";
  }
  outcome.correct = outcome.reason.empty();
  return outcome;
}

}  // namespace warpledger::ablations
