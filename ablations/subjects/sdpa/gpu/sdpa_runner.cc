// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/gpu/sdpa_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "ablations/subjects/sdpa/gpu/compare_kernels.h"
#include "ablations/subjects/sdpa/gpu/planted_fault_kernels.h"
#include "ablations/subjects/sdpa/gpu/read_kernel.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "kernels/sdpa/launch/cublaslt.h"
#include "kernels/sdpa/mma/projection/projection_kernels.h"
#include "kernels/sdpa/problem/kv_quantise.h"

namespace warpledger::ablations {
namespace {

// Longer than a tile row block of any variant, so that a tile written past the
// last row lands in it.
constexpr size_t kGuardBytes = 32 * 1024;
constexpr unsigned char kPoison = 0xff;  // NaN in fp16, bf16 and fp32
constexpr size_t kAlignment = 256;

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

static_assert(kGuardBytes % kAlignment == 0, "values behind a guard must stay aligned");

// Inputs between bands of NaN: what a kernel reads outside of one poisons the output,
// unless the kernel masks it.
template <typename T>
absl::StatusOr<DeviceBuffer> Upload(std::initializer_list<const std::vector<T>*> tensors) {
  size_t bytes = kGuardBytes;
  for (const auto* tensor : tensors) {
    bytes += RoundUp(tensor->size() * sizeof(T)) + kGuardBytes;
  }
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Allocate(bytes);
  if (!buffer.ok()) return buffer.status();
  RETURN_IF_ERROR(buffer->Fill(kPoison));
  size_t at = kGuardBytes;
  for (const auto* tensor : tensors) {
    const size_t size = tensor->size() * sizeof(T);
    RETURN_IF_ERROR(buffer->CopyFromHost(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(tensor->data()), size), at));
    at += RoundUp(size) + kGuardBytes;
  }
  return buffer;
}

// What kernels read is the same whatever O is: an arm that writes codes has no inputs of its own,
// which L2 would have at other times.
sdpa::KvStorage InputStorageOf(const sdpa::Config& config) {
  sdpa::KvStorage storage = sdpa::KvStorageOf(config);
  storage.output = false;
  return storage;
}

const std::byte* FirstTensor(const DeviceBuffer& guarded) {
  return static_cast<const std::byte*>(guarded.data()) + kGuardBytes;
}

// Where the tensor behind `before` elements-long ones lies in such a buffer.
const std::byte* TensorBehind(const DeviceBuffer& guarded, std::initializer_list<int64_t> before,
                              size_t element_bytes = sizeof(sdpa::Bits16)) {
  const std::byte* at = FirstTensor(guarded);
  for (const int64_t elements : before) {
    at += RoundUp(elements * element_bytes) + kGuardBytes;
  }
  return at;
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

bool AllPoison(const std::vector<std::byte>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
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

size_t SdpaRunner::OutEnd(const sdpa::Config& config) const {
  const size_t bytes = sdpa::KvStorageOf(config).output ? sizeof(uint8_t) : sizeof(sdpa::Bits16);
  return OutOffset() + sdpa::QueryElements(problem_) * bytes;
}

std::array<std::pair<size_t, size_t>, 3> SdpaRunner::Bands(const sdpa::Config& config) const {
  const size_t lse_end = LseOffset() + sdpa::QueryRows(problem_) * sizeof(float);
  return {{{0, OutOffset()}, {OutEnd(config), LseOffset()}, {lse_end, OutputBytes()}}};
}

absl::StatusOr<SdpaRunner> SdpaRunner::Create(const sdpa::Problem& problem,
                                              absl::Span<const sdpa::Inputs> sets, int rotation) {
  RETURN_IF_ERROR(sdpa::CheckProblem(problem));
  ASSIGN_OR_RETURN(DeviceFacts device, QueryDevice());
  SdpaRunner runner;
  runner.problem_ = problem;
  runner.device_ = std::move(device);
  const size_t count = std::max(sets.size(), static_cast<size_t>(std::max(0, rotation)));
  for (size_t i = 0; i < count; ++i) {
    const sdpa::Inputs& inputs = sets[i % sets.size()];
    DeviceSet set;
    if (problem.embed_dim > 0) {
      ASSIGN_OR_RETURN(set.source,
                       Upload<sdpa::Fp16>({&inputs.x, &inputs.gamma, &inputs.beta, &inputs.w}));
      const size_t bytes =
          sdpa::EmbeddedElements(problem) * sizeof(sdpa::Fp16) +
          sdpa::EmbeddedRows(problem) * sdpa::ProjectionRows(problem) * sizeof(sdpa::Fp16) +
          3 * kGuardBytes + 2 * kAlignment;
      ASSIGN_OR_RETURN(set.projected, DeviceBuffer::Allocate(bytes));
    } else {
      ASSIGN_OR_RETURN(set.q, Upload<sdpa::Bits16>({&inputs.q}));
      ASSIGN_OR_RETURN(set.kv, Upload<sdpa::Bits16>({&inputs.k, &inputs.v}));
    }
    ASSIGN_OR_RETURN(set.out, DeviceBuffer::Allocate(runner.OutputBytes()));
    RETURN_IF_ERROR(set.out.Fill(kPoison));
    runner.sets_.push_back(std::move(set));
  }
  return runner;
}

absl::Status SdpaRunner::AddStorage(const sdpa::Config& config) {
  const sdpa::KvStorage storage = InputStorageOf(config);
  if (!storage.quantised) return absl::OkStatus();
  for (DeviceSet& set : sets_) {
    const auto known = [&](const auto& entry) { return entry.first == storage; };
    if (std::any_of(set.quantised.begin(), set.quantised.end(), known)) continue;
    const auto read = [](const DeviceBuffer& buffer, const std::byte* from,
                         int64_t elements) -> absl::StatusOr<std::vector<sdpa::Bits16>> {
      std::vector<sdpa::Bits16> values(elements);
      const auto at = static_cast<size_t>(from - static_cast<const std::byte*>(buffer.data()));
      RETURN_IF_ERROR(buffer.CopyToHost(absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                                                       values.size() * sizeof(sdpa::Bits16)),
                                        at));
      return values;
    };
    const auto quantise = [&](const std::byte* from) -> absl::StatusOr<sdpa::QuantisedTensor> {
      ASSIGN_OR_RETURN(const auto values, read(set.kv, from, sdpa::KeyElements(problem_)));
      return sdpa::Quantise(problem_, values, storage.scheme);
    };
    ASSIGN_OR_RETURN(const sdpa::QuantisedTensor k, quantise(Keys(set)));
    ASSIGN_OR_RETURN(const sdpa::QuantisedTensor v, quantise(Values(set)));
    QuantisedKv made;
    ASSIGN_OR_RETURN(made.kv, Upload<uint8_t>({&k.codes, &v.codes}));
    const std::vector<float> k_scales = sdpa::LaunchScales(k, storage.scheme.scope);
    const std::vector<float> v_scales = sdpa::LaunchScales(v, storage.scheme.scope);
    ASSIGN_OR_RETURN(made.scales, Upload<float>({&k_scales, &v_scales}));
    made.scales_of_k = static_cast<int64_t>(k_scales.size());
    made.scale_stride = sdpa::LaunchScaleStride(k, storage.scheme.scope);
    if (storage.queries) {
      ASSIGN_OR_RETURN(const auto values,
                       read(set.q, FirstTensor(set.q), sdpa::QueryElements(problem_)));
      const sdpa::QuantisedTensor q =
          sdpa::QuantiseQueries(problem_, values, storage.scheme.format);
      ASSIGN_OR_RETURN(made.q, Upload<uint8_t>({&q.codes}));
      ASSIGN_OR_RETURN(made.q_scales, Upload<float>({&q.scales}));
      made.out_scale = sdpa::OutputScale(v);
      const std::vector<float> one = {made.out_scale};
      ASSIGN_OR_RETURN(made.o_scale, Upload<float>({&one}));
    }
    set.quantised.emplace_back(storage, std::move(made));
  }
  return absl::OkStatus();
}

absl::StatusOr<const SdpaRunner::QuantisedKv*> SdpaRunner::StorageOf(
    const DeviceSet& set, const sdpa::Config& config) const {
  for (const auto& [storage, kv] : set.quantised) {
    if (storage == InputStorageOf(config)) return &kv;
  }
  return absl::FailedPreconditionError("K and V were not quantised; AddStorage does that");
}

const std::byte* SdpaRunner::Keys(const DeviceSet& set) const { return FirstTensor(set.kv); }
const std::byte* SdpaRunner::Values(const DeviceSet& set) const {
  return TensorBehind(set.kv, {sdpa::KeyElements(problem_)});
}

absl::Status SdpaRunner::LaunchInWindow(const void* begin, const std::byte* end,
                                        cudaStream_t stream,
                                        absl::FunctionRef<absl::Status()> launch) {
  const auto* first = static_cast<const std::byte*>(begin);
  int device = 0;
  int most = 0;
  size_t set_aside = 0;
  RETURN_IF_CUDA_ERROR(cudaGetDevice(&device), "asking for the device");
  RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&most, cudaDevAttrMaxAccessPolicyWindowSize, device),
                       "asking for the largest window of L2");
  RETURN_IF_CUDA_ERROR(cudaDeviceGetLimit(&set_aside, cudaLimitPersistingL2CacheSize),
                       "asking for the persisting part of L2");
  const size_t bytes = std::min(static_cast<size_t>(end - first), static_cast<size_t>(most));
  cudaStreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = const_cast<std::byte*>(first);
  value.accessPolicyWindow.num_bytes = bytes;
  value.accessPolicyWindow.hitRatio = static_cast<float>(
      std::min(1.0, static_cast<double>(set_aside) / std::max<size_t>(bytes, 1)));
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  RETURN_IF_CUDA_ERROR(
      cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value),
      "opening a window of L2");
  const absl::Status status = launch();
  value = {};
  RETURN_IF_CUDA_ERROR(
      cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value),
      "closing a window of L2");
  return status;
}

absl::Status SdpaRunner::LaunchInFront(const DeviceSet& set, const sdpa::Config& compiled,
                                       const sdpa::Config* arm, cudaStream_t stream,
                                       sdpa::ProjectionParams* params) const {
  const int64_t elements = sdpa::EmbeddedElements(problem_);
  const int embed_dim = problem_.embed_dim;
  params->x = FirstTensor(set.source);
  params->gamma = TensorBehind(set.source, {elements});
  params->beta = TensorBehind(set.source, {elements, embed_dim});
  params->w = TensorBehind(set.source, {elements, embed_dim, embed_dim});
  params->qkv = const_cast<std::byte*>(TensorBehind(set.projected, {elements}));
  const bool in_attention = compiled.fuse_projection != 0;
  const bool own = arm == nullptr || arm->project_mma != 0;
  const bool normalises =
      in_attention ? compiled.fuse_layernorm != 0 : arm != nullptr && arm->fuse_layernorm != 0;
  const auto rows = static_cast<int>(sdpa::EmbeddedRows(problem_));
  if (!normalises) {
    auto* normalised = const_cast<std::byte*>(FirstTensor(set.projected));
    RETURN_IF_CUDA_ERROR(sdpa::LaunchLayernorm(*params, rows, normalised, stream),
                         "launching the layernorm");
    params->x = normalised;
  }
  if (in_attention) return absl::OkStatus();
  if (own) {
    RETURN_IF_CUDA_ERROR(sdpa::LaunchProjection(*params, rows, normalises, stream),
                         "launching the projection");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const sdpa::CublasLt* library, sdpa::CublasLt::Get());
  return library->Project(*params, rows, stream);
}

absl::Status SdpaRunner::Launch(const sdpa::KernelInstance& instance, int set, cudaStream_t stream,
                                const sdpa::Config* arm) const {
  const DeviceSet& device = sets_[set];
  sdpa::LaunchParams params = sdpa::MakeParams(instance.config, problem_);
  const std::byte* kv_end = nullptr;
  if (problem_.embed_dim > 0) {
    RETURN_IF_ERROR(LaunchInFront(device, instance.config, arm, stream, &params.projection));
  } else {
    params.q = FirstTensor(device.q);
    params.k = Keys(device);
    params.v = Values(device);
    kv_end = Values(device) + sdpa::KeyElements(problem_) * sizeof(sdpa::Bits16);
  }
  if (const sdpa::KvStorage storage = sdpa::KvStorageOf(instance.config); storage.quantised) {
    ASSIGN_OR_RETURN(const QuantisedKv* found, StorageOf(device, instance.config));
    const QuantisedKv& kv = *found;
    const int64_t elements = sdpa::KeyElements(problem_);
    const std::byte* values = TensorBehind(kv.kv, {elements}, sizeof(uint8_t));
    params.k = FirstTensor(kv.kv);
    params.v = values;
    params.k_scales = reinterpret_cast<const float*>(FirstTensor(kv.scales));
    params.v_scales =
        reinterpret_cast<const float*>(TensorBehind(kv.scales, {kv.scales_of_k}, sizeof(float)));
    params.kv_scale_stride = kv.scale_stride;
    if (storage.queries) {
      params.q = FirstTensor(kv.q);
      params.q_scales = reinterpret_cast<const float*>(FirstTensor(kv.q_scales));
    }
    if (storage.output) {
      params.o_scale = reinterpret_cast<const float*>(FirstTensor(kv.o_scale));
    }
    kv_end = values + elements;
  }
  auto* out = static_cast<std::byte*>(device.out.data());
  params.o = out + OutOffset();
  params.lse = reinterpret_cast<float*>(out + LseOffset());
  if (arm != nullptr) params.l2_promotion = arm->wgmma_l2_promotion;
  const auto launch = [&] { return sdpa::Launch(instance, params, problem_, stream); };
  // Behind a projection K and V lie in no piece of memory of their own.
  const bool in_window = arm != nullptr && arm->l2_persisting_kv != 0 && problem_.embed_dim == 0;
  RETURN_IF_ERROR(in_window ? LaunchInWindow(params.k, kv_end, stream, launch) : launch());
  if (fault_ == Fault::kNone) return absl::OkStatus();
  return CudaStatus(LaunchPlantedFault(fault_, out + OutEnd(instance.config), stream),
                    "planting a fault");
}

absl::Status SdpaRunner::LaunchReadOfKv(int set, cudaStream_t stream) const {
  const DeviceSet& device = sets_[set];
  const std::byte* k = Keys(device);
  const std::byte* end = Values(device) + sdpa::KeyElements(problem_) * sizeof(sdpa::Bits16);
  auto* unused = static_cast<unsigned*>(device.kv.data());  // the guard band in front of K
  return CudaStatus(LaunchRead(k, static_cast<size_t>(end - k), device_.sm_count, unused, stream),
                    "launching a plain read");
}

absl::Status SdpaRunner::Compute(const sdpa::KernelInstance& instance, int set,
                                 const sdpa::Config* arm) {
  RETURN_IF_ERROR(sdpa::CheckLaunchable(instance.config, problem_, device_));
  RETURN_IF_ERROR(sdpa::PrepareInstance(instance));
  RETURN_IF_ERROR(AddStorage(instance.config));
  RETURN_IF_ERROR(Poison(set));
  RETURN_IF_ERROR(Launch(instance, set, nullptr, arm));
  return CudaStatus(cudaDeviceSynchronize(), "running the kernel");
}

absl::StatusOr<RunOutput> SdpaRunner::Run(const sdpa::KernelInstance& instance, int set,
                                          const sdpa::Config* arm) {
  RETURN_IF_ERROR(Compute(instance, set, arm));
  return ReadBack(set, instance.config);
}

absl::Status SdpaRunner::Poison(int set) {
  RETURN_IF_ERROR(sets_[set].out.Fill(kPoison));
  if (problem_.embed_dim > 0) RETURN_IF_ERROR(sets_[set].projected.Fill(kPoison));
  RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize(), "before a checked run");
  return absl::OkStatus();
}

absl::Status SdpaRunner::ReadCodes(const DeviceBuffer& out, float scale,
                                   std::vector<sdpa::Bits16>* values) const {
  std::vector<uint8_t> codes(values->size());
  RETURN_IF_ERROR(out.CopyToHost(
      absl::MakeSpan(reinterpret_cast<std::byte*>(codes.data()), codes.size()), OutOffset()));
  std::array<sdpa::Bits16, 256> value_of;
  for (size_t code = 0; code < value_of.size(); ++code) {
    value_of[code] = sdpa::FromFloat(
        problem_.dtype, scale * sdpa::Fp8ToFloat(sdpa::kE4m3, static_cast<uint8_t>(code)));
  }
  std::transform(codes.begin(), codes.end(), values->begin(),
                 [&](uint8_t code) { return value_of[code]; });
  return absl::OkStatus();
}

absl::Status SdpaRunner::ReadOutputs(const DeviceBuffer& out, int set, const sdpa::Config& config,
                                     RunOutput* result) const {
  result->out.resize(sdpa::QueryElements(problem_));
  result->lse.resize(sdpa::QueryRows(problem_));
  const size_t lse_end = LseOffset() + result->lse.size() * sizeof(float);
  const auto read = [&](void* to, size_t begin, size_t end) {
    return out.CopyToHost(absl::MakeSpan(static_cast<std::byte*>(to), end - begin), begin);
  };
  if (sdpa::KvStorageOf(config).output) {
    ASSIGN_OR_RETURN(const QuantisedKv* storage, StorageOf(sets_[set], config));
    RETURN_IF_ERROR(ReadCodes(out, storage->out_scale, &result->out));
  } else {
    RETURN_IF_ERROR(read(result->out.data(), OutOffset(), OutEnd(config)));
  }
  RETURN_IF_ERROR(read(result->lse.data(), LseOffset(), lse_end));
  result->guards_intact = true;
  for (const auto& [begin, end] : Bands(config)) {
    std::vector<std::byte> band(end - begin);
    RETURN_IF_ERROR(read(band.data(), begin, end));
    result->guards_intact = result->guards_intact && AllPoison(band);
  }
  return absl::OkStatus();
}

absl::StatusOr<RunOutput> SdpaRunner::ReadBack(int set, const sdpa::Config& config) const {
  RunOutput result;
  RETURN_IF_ERROR(ReadOutputs(sets_[set].out, set, config, &result));
  return result;
}

absl::StatusOr<bool> SdpaRunner::Repeats(const sdpa::KernelInstance& instance, int set,
                                         const sdpa::Config* arm, const DeviceBuffer& kept) {
  const DeviceBuffer& out = sets_[set].out;
  RETURN_IF_CUDA_ERROR(cudaMemcpy(kept.data(), out.data(), OutputBytes(), cudaMemcpyDeviceToDevice),
                       "keeping an output");
  RETURN_IF_ERROR(Compute(instance, set, arm));
  ASSIGN_OR_RETURN(DeviceBuffer counts, DeviceBuffer::Allocate(2 * sizeof(unsigned long long)));
  RETURN_IF_ERROR(counts.Fill(0));
  auto* count = static_cast<unsigned long long*>(counts.data());
  RETURN_IF_CUDA_ERROR(
      LaunchCountDifferences(kept.data(), out.data(), OutputBytes(), count, nullptr),
      "comparing outputs");
  const auto* from = static_cast<const std::byte*>(kept.data());
  for (const auto& [begin, end] : Bands(instance.config)) {
    RETURN_IF_CUDA_ERROR(LaunchCountOthers(from + begin, end - begin, kPoison, count + 1, nullptr),
                         "reading guard bands");
  }
  unsigned long long found[2] = {1, 1};
  RETURN_IF_ERROR(
      counts.CopyToHost(absl::MakeSpan(reinterpret_cast<std::byte*>(found), sizeof(found))));
  return found[0] == 0 && found[1] == 0;
}

absl::StatusOr<CheckOutcome> SdpaRunner::Check(const sdpa::KernelInstance& instance, int set,
                                               const sdpa::Reference& reference,
                                               const sdpa::Config* arm) {
  RETURN_IF_ERROR(Compute(instance, set, arm));
  ASSIGN_OR_RETURN(const DeviceBuffer kept, DeviceBuffer::Allocate(OutputBytes()));
  ASSIGN_OR_RETURN(const bool repeats, Repeats(instance, set, arm, kept));
  RETURN_IF_ERROR(ReadOutputs(kept, set, instance.config, &checked_));

  CheckOutcome outcome;
  outcome.accuracy = JudgeAccuracy(reference, checked_.out, checked_.lse,
                                   LseAllowance(instance.config, problem_.seq_kv));
  outcome.guards_intact = checked_.guards_intact;
  outcome.bit_identical = repeats;
  if (!repeats) {
    ASSIGN_OR_RETURN(const RunOutput second, ReadBack(set, instance.config));
    outcome.guards_intact = checked_.guards_intact && second.guards_intact;
    outcome.bit_identical = SameBits(checked_, second);
  }
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
                                                     absl::FunctionRef<absl::Status()> replay,
                                                     const sdpa::Config* arm) {
  for (int set = 0; set < sets(); ++set) RETURN_IF_ERROR(Poison(set));
  RETURN_IF_ERROR(replay());
  CheckOutcome outcome;
  outcome.guards_intact = true;
  outcome.bit_identical = true;
  ASSIGN_OR_RETURN(const DeviceBuffer kept, DeviceBuffer::Allocate(OutputBytes()));
  for (int set = 0; set < sets(); ++set) {
    const absl::StatusOr<bool> same = Repeats(instance, set, arm, kept);
    if (!same.ok()) return same.status();
    if (*same) continue;
    // By how much, the host says.
    RETURN_IF_ERROR(ReadOutputs(kept, set, instance.config, &checked_));
    absl::StatusOr<RunOutput> eager = ReadBack(set, instance.config);
    if (!eager.ok()) return eager.status();
    outcome.guards_intact = outcome.guards_intact && checked_.guards_intact;
    if (SameBits(checked_, *eager)) continue;
    if (outcome.bit_identical) {
      outcome.reason = absl::StrCat("what the timed graph leaves of input set ", set,
                                    " differs from an eager run of the same kernel");
    }
    outcome.bit_identical = false;
    AddDifferences(problem_.dtype, checked_, *eager, &outcome.accuracy);
  }
  if (outcome.bit_identical && !outcome.guards_intact) {
    outcome.reason = "the timed graph wrote outside its output";
  }
  outcome.correct = outcome.reason.empty();
  return outcome;
}

}  // namespace warpledger::ablations
