// SPDX-License-Identifier: Apache-2.0
// What a launch promises beside right results on small inputs: it reads what the launch before
// it wrote, needs no LSE, takes any softmax scale and tensors of more than 2^31 elements, and
// leaves no error behind.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/correctness.h"
#include "ablations/subjects/sdpa/gpu/compare_kernels.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/common/device.h"
#include "kernels/sdpa/launch/launch.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/reference.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/families.h"

namespace warpledger::sdpa {
namespace {

constexpr uint64_t kSeed = 7;

// The instances that take 16-bit Q, K and V and run here, which is all that a launch's pointers
// differ in.
std::vector<const KernelInstance*> PlainInstances() {
  std::vector<const KernelInstance*> plain;
  const DeviceFacts device = QueryDevice().value();
  for (const KernelInstance* instance : AllInstances()) {
    if (instance->config.projected || KvStorageOf(instance->config).quantised) continue;
    const absl::Status prepared = PrepareInstance(*instance);
    if (device.compute_major != 9 && absl::IsFailedPrecondition(prepared)) continue;
    EXPECT_TRUE(prepared.ok()) << prepared;
    plain.push_back(instance);
  }
  EXPECT_GE(plain.size(), 9u) << "the smem family runs everywhere";
  return plain;
}

// `shape` with what `instance` was compiled for.
Problem For(const KernelInstance& instance, Problem shape) {
  shape.head_dim = instance.config.head_dim;
  shape.causal = instance.config.mask == Mask::kCausal;
  shape.dtype = instance.config.dtype;
  return shape;
}

bool Runs(const KernelInstance& instance, const Problem& problem) {
  const absl::StatusOr<DeviceFacts> device = QueryDevice();
  return device.ok() && CheckLaunchable(instance.config, problem, *device).ok();
}

DeviceBuffer Allocated(size_t bytes) { return DeviceBuffer::Allocate(bytes).value(); }

void CopyToStart(const std::vector<Bits16>& values, DeviceBuffer* buffer) {
  EXPECT_EQ(buffer->CopyFromHost(absl::MakeConstSpan(
                reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(Bits16))),
            absl::OkStatus());
}

DeviceBuffer OnGpu(const std::vector<Bits16>& values) {
  DeviceBuffer buffer = Allocated(values.size() * sizeof(Bits16));
  CopyToStart(values, &buffer);
  return buffer;
}

// The first `count` elements.
template <typename T>
std::vector<T> OnHost(const DeviceBuffer& buffer, size_t count) {
  std::vector<T> values(count);
  EXPECT_EQ(buffer.CopyToHost(
                absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), count * sizeof(T))),
            absl::OkStatus());
  return values;
}

struct Output {
  std::vector<Bits16> out;
  std::vector<float> lse;  // empty where none was asked for

  bool operator==(const Output& other) const {
    return out == other.out && lse.size() == other.lse.size() &&
           std::memcmp(lse.data(), other.lse.data(), lse.size() * sizeof(float)) == 0;
  }
};

Output Compute(const KernelInstance& instance, const Problem& problem, const Inputs& inputs,
               bool with_lse = true, float scale_factor = 1.0f) {
  const DeviceBuffer q = OnGpu(inputs.q);
  const DeviceBuffer k = OnGpu(inputs.k);
  const DeviceBuffer v = OnGpu(inputs.v);
  const size_t rows = inputs.q.size() / static_cast<size_t>(problem.head_dim);
  DeviceBuffer o = Allocated(inputs.q.size() * sizeof(Bits16));
  DeviceBuffer lse = Allocated(rows * sizeof(float));
  EXPECT_TRUE(o.Fill(0xff).ok());
  EXPECT_TRUE(lse.Fill(0xff).ok());
  LaunchParams params = MakeParams(instance.config, problem);
  params.q = q.data();
  params.k = k.data();
  params.v = v.data();
  params.o = o.data();
  params.lse = with_lse ? static_cast<float*>(lse.data()) : nullptr;
  params.softmax_scale *= scale_factor;
  EXPECT_EQ(Launch(instance, params, problem, nullptr), absl::OkStatus());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {OnHost<Bits16>(o, inputs.q.size()),
          with_lse ? OnHost<float>(lse, rows) : std::vector<float>()};
}

// --- The launch's arguments ---------------------------------------------------

const Problem kRagged = {2, 6, 2, 67, 300, 64, false};

TEST(EveryInstance, LeavesTheSameOutputWhereNoLseIsAskedFor) {
  int checks = 0;
  for (const KernelInstance* instance : PlainInstances()) {
    const Problem problem = For(*instance, kRagged);
    if (!Runs(*instance, problem)) continue;
    const Inputs inputs = MakeInputs(problem, InputKind::kNormal, kSeed);
    EXPECT_TRUE(Compute(*instance, problem, inputs, false).out ==
                Compute(*instance, problem, inputs).out)
        << InstanceName(instance->config);
    ++checks;
  }
  EXPECT_GE(checks, 9);
}

// Twice Q under half the scale is the same problem, and powers of two round nothing.
TEST(EveryInstance, TakesItsSoftmaxScaleFromTheLaunch) {
  int checks = 0;
  for (const KernelInstance* instance : PlainInstances()) {
    const Problem problem = For(*instance, kRagged);
    if (!Runs(*instance, problem)) continue;
    const Inputs inputs = MakeInputs(problem, InputKind::kNormal, kSeed);
    Inputs twice = inputs;
    for (Bits16& x : twice.q) x = FromFloat(problem.dtype, 2.0f * ToFloat(problem.dtype, x));
    const Output usual = Compute(*instance, problem, inputs);
    EXPECT_TRUE(Compute(*instance, problem, twice, true, 0.5f) == usual)
        << InstanceName(instance->config);
    EXPECT_FALSE(Compute(*instance, problem, inputs, true, 0.5f) == usual)
        << InstanceName(instance->config) << " ignores the scale";
    ++checks;
  }
  EXPECT_GE(checks, 9);
}

// --- One launch behind another ------------------------------------------------

constexpr int kLinks = 6;

// O of each launch is Q, K and V of the next, `outputs` of them in turn; what the last one leaves.
// NaN lies in each before the chain begins.
std::vector<Bits16> Chain(const KernelInstance& instance, const Problem& problem,
                          const std::vector<Bits16>& first, bool wait_between, size_t outputs) {
  const DeviceBuffer start = OnGpu(first);
  std::vector<DeviceBuffer> o(outputs);
  for (DeviceBuffer& buffer : o) {
    buffer = Allocated(first.size() * sizeof(Bits16));
    EXPECT_TRUE(buffer.Fill(0xff).ok());
  }
  // Holds the GPU up until all launches wait in the stream: then each may begin as early as it
  // is ever allowed to.
  const DeviceBuffer delay = Allocated(size_t{1} << 30);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(delay.data(), 0, delay.bytes(), nullptr), cudaSuccess);
  const void* from = start.data();
  void* to = nullptr;
  for (size_t link = 0; link < kLinks; ++link) {
    to = o[link % outputs].data();
    LaunchParams params = MakeParams(instance.config, problem);
    params.q = from;
    params.k = from;
    params.v = from;
    params.o = to;
    EXPECT_EQ(Launch(instance, params, problem, nullptr), absl::OkStatus());
    if (wait_between) {
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    from = to;
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return OnHost<Bits16>(o[(kLinks - 1) % outputs], first.size());
}

// A kernel that starts beside the end of the one before (programmatic dependent launch) must
// neither read what that one has not written yet nor write what it still reads.
TEST(EveryInstance, ReadsWhatTheLaunchBeforeItWrote) {
  int checks = 0;
  for (const KernelInstance* instance : PlainInstances()) {
    const Problem problem = For(*instance, {2, 3, 3, 130, 130, 64, false});
    if (!Runs(*instance, problem)) continue;
    const std::vector<Bits16> first = MakeInputs(problem, InputKind::kNormal, kSeed).q;
    const std::vector<Bits16> wanted = Chain(*instance, problem, first, true, kLinks);
    for (const Bits16 x : wanted) ASSERT_NE(x, 0xffff) << InstanceName(instance->config);
    EXPECT_TRUE(Chain(*instance, problem, first, false, kLinks) == wanted)
        << InstanceName(instance->config) << " reads too early";
    EXPECT_TRUE(Chain(*instance, problem, first, false, 2) == wanted)
        << InstanceName(instance->config) << " writes too early";
    ++checks;
  }
  EXPECT_GE(checks, 9);
}

// --- Large tensors ------------------------------------------------------------

constexpr int kPattern = 3;  // heads, of which a large tensor is made
constexpr int kSeq = 128;

// Fills `buffer` with `pattern` again and again.
void Repeat(const std::vector<Bits16>& pattern, DeviceBuffer* buffer) {
  CopyToStart(pattern, buffer);
  size_t filled = pattern.size() * sizeof(Bits16);
  auto* data = static_cast<std::byte*>(buffer->data());
  while (filled < buffer->bytes()) {
    const size_t more = std::min(filled, buffer->bytes() - filled);
    ASSERT_EQ(cudaMemcpy(data + filled, data, more, cudaMemcpyDeviceToDevice), cudaSuccess);
    filled += more;
  }
}

class LargeTensors : public testing::TestWithParam<std::pair<int, Dtype>> {};

// Every head repeats one of three, so the first three are judged and the others compared.
TEST_P(LargeTensors, OfMoreThan2To31ElementsAreIndexedInFull) {
  const auto [head_dim, dtype] = GetParam();
  const auto heads = static_cast<int>((int64_t{1} << 31) / (kSeq * head_dim)) + kPattern;
  const size_t head_bytes = size_t{kSeq} * static_cast<size_t>(head_dim) * sizeof(Bits16);
  const size_t bytes = static_cast<size_t>(heads) * head_bytes;
  const size_t lse_bytes = size_t{kSeq} * static_cast<size_t>(heads) * sizeof(float);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  if (free_bytes < 4 * bytes + lse_bytes + (size_t{2} << 30)) {
    GTEST_SKIP() << "needs " << (4 * bytes >> 30) + 3 << " GB of GPU memory, " << (free_bytes >> 30)
                 << " are free";
  }
  std::array<DeviceBuffer, 4> tensors;  // Q, K, V, O
  for (DeviceBuffer& tensor : tensors) tensor = Allocated(bytes);
  DeviceBuffer lse = Allocated(lse_bytes);
  DeviceBuffer differences = Allocated(sizeof(unsigned long long));
  int checks = 0;
  for (const bool causal : {false, true}) {
    const Problem pattern = {1, kPattern, kPattern, kSeq, kSeq, head_dim, causal, dtype};
    const Inputs inputs = MakeInputs(pattern, InputKind::kNormal, kSeed);
    const Reference reference = ComputeReference(pattern, inputs);
    Repeat(inputs.q, &tensors[0]);
    Repeat(inputs.k, &tensors[1]);
    Repeat(inputs.v, &tensors[2]);
    Problem problem = pattern;
    problem.heads_q = heads;
    problem.heads_kv = heads;
    for (const KernelInstance* instance : PlainInstances()) {
      if (!(For(*instance, problem) == problem) || !Runs(*instance, problem)) continue;
      ASSERT_TRUE(tensors[3].Fill(0xff).ok());
      ASSERT_TRUE(lse.Fill(0xff).ok());
      ASSERT_TRUE(differences.Fill(0).ok());
      LaunchParams params = MakeParams(instance->config, problem);
      params.q = tensors[0].data();
      params.k = tensors[1].data();
      params.v = tensors[2].data();
      params.o = tensors[3].data();
      params.lse = static_cast<float*>(lse.data());
      ASSERT_EQ(Launch(*instance, params, problem, nullptr), absl::OkStatus());
      auto* count = static_cast<unsigned long long*>(differences.data());
      const auto compare = [&](const DeviceBuffer& buffer, size_t period) {
        const auto* data = static_cast<const std::byte*>(buffer.data());
        return ablations::LaunchCountDifferences(data, data + period, buffer.bytes() - period,
                                                 count, nullptr);
      };
      ASSERT_EQ(compare(tensors[3], kPattern * head_bytes), cudaSuccess);
      ASSERT_EQ(compare(lse, kPattern * kSeq * sizeof(float)), cudaSuccess);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << InstanceName(instance->config);
      EXPECT_EQ(OnHost<unsigned long long>(differences, 1)[0], 0u)
          << InstanceName(instance->config) << ": heads with equal inputs differ";
      const ablations::Accuracy accuracy = ablations::JudgeAccuracy(
          reference, OnHost<Bits16>(tensors[3], inputs.q.size()),
          OnHost<float>(lse, size_t{kPattern} * kSeq), LseAllowance(instance->config, kSeq));
      EXPECT_TRUE(accuracy.correct || MayBreak(instance->config))
          << InstanceName(instance->config) << ": " << accuracy.reason;
      ++checks;
    }
  }
  EXPECT_GE(checks, 1);
}

INSTANTIATE_TEST_SUITE_P(HeadDims, LargeTensors,
                         testing::Values(std::pair(64, Dtype::kFp16), std::pair(128, Dtype::kFp16),
                                         std::pair(256, Dtype::kFp16), std::pair(64, Dtype::kBf16),
                                         std::pair(128, Dtype::kBf16)),
                         [](const auto& info) {
                           return (info.param.second == Dtype::kBf16 ? "bf16_d" : "fp16_d") +
                                  std::to_string(info.param.first);
                         });

// --- A launch that fails ------------------------------------------------------

TEST(Launch, ThatFailsLeavesNoErrorForTheNextCall) {
  const std::vector<const KernelInstance*> instances = PlainInstances();
  ASSERT_FALSE(instances.empty());
  const KernelInstance& instance = *instances.front();
  const Problem problem = For(instance, kRagged);
  const Inputs inputs = MakeInputs(problem, InputKind::kNormal, kSeed);
  const Output wanted = Compute(instance, problem, inputs);
  // No query at all: a grid without a CTA.
  Problem empty = problem;
  empty.seq_q = 0;
  const absl::Status status = Launch(instance, MakeParams(instance.config, empty), empty, nullptr);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_TRUE(Compute(instance, problem, inputs) == wanted);
}

TEST(Launch, RefusesALevelOfL2PromotionThatThereIsNot) {
  int checks = 0;
  for (const KernelInstance* instance : PlainInstances()) {
    if (FamilyOf(instance->config) != Family::kWgmma) continue;
    const Problem problem = For(*instance, kRagged);
    const DeviceBuffer memory = Allocated(size_t{1} << 20);
    LaunchParams params = MakeParams(instance->config, problem);
    params.q = params.k = params.v = memory.data();
    params.o = memory.data();
    for (const int level : {-1, 3}) {
      params.l2_promotion = level;
      EXPECT_FALSE(Launch(*instance, params, problem, nullptr).ok()) << level;
      ++checks;
    }
    break;
  }
  if (checks == 0) GTEST_SKIP() << "this GPU runs no kernel of the wgmma family";
}

// --- What a launch costs the host -----------------------------------------------

// Below what a launch on a stream takes the GPU, so that a chain of launches is bound by the GPU.
constexpr double kMostHostUs = 15.0;

TEST(EveryFamily, CostsTheHostLittlePerLaunch) {
  constexpr int kLaunches = 100;
  constexpr int kBatches = 21;
  std::set<Family> families;
  for (const KernelInstance* instance : PlainInstances()) {
    if (families.contains(FamilyOf(instance->config))) continue;
    const Problem problem = For(*instance, {1, 1, 1, 32, 32, 64, false});
    if (!Runs(*instance, problem)) continue;
    families.insert(FamilyOf(instance->config));
    const Inputs inputs = MakeInputs(problem, InputKind::kNormal, kSeed);
    const DeviceBuffer q = OnGpu(inputs.q);
    const DeviceBuffer k = OnGpu(inputs.k);
    const DeviceBuffer v = OnGpu(inputs.v);
    DeviceBuffer o = Allocated(inputs.q.size() * sizeof(Bits16));
    LaunchParams params = MakeParams(instance->config, problem);
    params.q = q.data();
    params.k = k.data();
    params.v = v.data();
    params.o = o.data();
    std::vector<double> us;
    for (int batch = 0; batch < kBatches; ++batch) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kLaunches; ++i) {
        ASSERT_TRUE(Launch(*instance, params, problem, nullptr).ok());
      }
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      us.push_back(took.count() / kLaunches);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    std::sort(us.begin(), us.end());
    const double median = us[us.size() / 2];
    std::cout << InstanceName(instance->config) << ": " << median << " us of host time a launch\n";
    EXPECT_LT(median, kMostHostUs) << InstanceName(instance->config);
  }
  EXPECT_FALSE(families.empty());
}

}  // namespace
}  // namespace warpledger::sdpa
