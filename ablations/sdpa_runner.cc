#include "ablations/sdpa_runner.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/cuda_status.h"

namespace warpledger::ablations {
namespace {

// Longer than a tile row block of any variant, so that a tile written past the
// last row lands in it.
constexpr size_t kGuardBytes = 32 * 1024;
constexpr unsigned char kPoison = 0xff;  // NaN in fp16 and in fp32
constexpr size_t kAlignment = 256;

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

absl::StatusOr<DeviceBuffer> Upload(const std::vector<sdpa::Fp16>& values) {
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Allocate(values.size() * sizeof(sdpa::Fp16));
  if (!buffer.ok()) return buffer.status();
  RETURN_IF_ERROR(buffer->CopyFromHost(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), buffer->bytes())));
  return buffer;
}

bool AllPoison(const std::vector<std::byte>& bytes, size_t begin, size_t end) {
  return std::all_of(bytes.begin() + static_cast<int64_t>(begin),
                     bytes.begin() + static_cast<int64_t>(end),
                     [](std::byte b) { return b == std::byte{kPoison}; });
}

}  // namespace

size_t SdpaRunner::OutOffset() const { return kGuardBytes; }
size_t SdpaRunner::LseOffset() const {
  return OutOffset() + RoundUp(sdpa::QueryElements(problem_) * sizeof(sdpa::Fp16)) + kGuardBytes;
}
size_t SdpaRunner::OutputBytes() const {
  return LseOffset() + RoundUp(sdpa::QueryRows(problem_) * sizeof(float)) + kGuardBytes;
}

absl::StatusOr<SdpaRunner> SdpaRunner::Create(const sdpa::Problem& problem,
                                              absl::Span<const sdpa::Inputs> sets) {
  RETURN_IF_ERROR(sdpa::CheckProblem(problem));
  absl::StatusOr<DeviceFacts> device = QueryDevice();
  if (!device.ok()) return device.status();
  SdpaRunner runner;
  runner.problem_ = problem;
  runner.device_ = *std::move(device);
  for (const sdpa::Inputs& inputs : sets) {
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

absl::Status SdpaRunner::Launch(const sdpa::KernelInstance& instance, int set,
                                cudaStream_t stream) const {
  const DeviceSet& device = sets_[set];
  sdpa::ForwardParams params = sdpa::MakeParams(instance.config, problem_);
  params.q = device.q.data();
  params.k = device.k.data();
  params.v = device.v.data();
  auto* out = static_cast<std::byte*>(device.out.data());
  params.o = out + OutOffset();
  params.lse = reinterpret_cast<float*>(out + LseOffset());
  return sdpa::Launch(instance, params, problem_, stream);
}

absl::StatusOr<RunOutput> SdpaRunner::Run(const sdpa::KernelInstance& instance, int set) {
  RETURN_IF_ERROR(sdpa::CheckLaunchable(instance.config, problem_, device_));
  RETURN_IF_ERROR(sdpa::PrepareInstance(instance));
  RETURN_IF_ERROR(sets_[set].out.Fill(kPoison));
  RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize(), "before a checked run");
  RETURN_IF_ERROR(Launch(instance, set, nullptr));
  RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize(), "running the kernel");

  std::vector<std::byte> bytes(OutputBytes());
  RETURN_IF_ERROR(sets_[set].out.CopyToHost(absl::MakeSpan(bytes)));
  RunOutput result;
  result.out.resize(sdpa::QueryElements(problem_));
  result.lse.resize(sdpa::QueryRows(problem_));
  const size_t out_bytes = result.out.size() * sizeof(sdpa::Fp16);
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
  outcome.bit_identical =
      first->out == second->out &&
      std::memcmp(first->lse.data(), second->lse.data(), first->lse.size() * sizeof(float)) == 0;
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

}  // namespace warpledger::ablations
