// SPDX-License-Identifier: Apache-2.0
// The library on a GPU: right for many problems, with one workspace for all of them, in graphs, on
// several streams and threads at once.

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "ablations/subjects/sdpa/correctness.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "kernels/common/device.h"
#include "kernels/common/random.h"
#include "kernels/sdpa/library/warpledger_sdpa.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/problem/reference.h"

namespace warpledger::sdpa {
namespace {

using ::testing::HasSubstr;

constexpr size_t kAmple = size_t{64} << 20;  // more than any workspace

warpledger_sdpa_problem Given(const Problem& p) {
  return {sizeof(warpledger_sdpa_problem),
          p.dtype == Dtype::kBf16 ? WARPLEDGER_SDPA_BF16 : WARPLEDGER_SDPA_FP16,
          p.batch,
          p.heads_q,
          p.heads_kv,
          p.seq_q,
          p.seq_kv,
          p.head_dim,
          p.causal ? 1 : 0,
          0,
          {},
          {},
          {},
          {}};
}

// Device memory of zeros, which is what a workspace begins as.
DeviceBuffer Zeros(size_t bytes) {
  DeviceBuffer buffer = DeviceBuffer::Allocate(bytes).value();
  EXPECT_TRUE(buffer.Fill(0).ok());
  return buffer;
}

DeviceBuffer OnGpu(const std::vector<Bits16>& values) {
  DeviceBuffer buffer = DeviceBuffer::Allocate(values.size() * sizeof(Bits16)).value();
  EXPECT_TRUE(buffer
                  .CopyFromHost(absl::MakeConstSpan(
                      reinterpret_cast<const std::byte*>(values.data()), buffer.bytes()))
                  .ok());
  return buffer;
}

// One problem's tensors, and calls on them.
class Call {
 public:
  explicit Call(const Problem& problem)
      : problem_(problem),
        inputs_(MakeInputs(problem, InputKind::kNormal, 11)),
        q_(OnGpu(inputs_.q)),
        k_(OnGpu(inputs_.k)),
        v_(OnGpu(inputs_.v)),
        o_(DeviceBuffer::Allocate(inputs_.q.size() * sizeof(Bits16)).value()),
        lse_(DeviceBuffer::Allocate(QueryRows(problem) * sizeof(float)).value()) {
    Poison();
  }

  void Poison() {
    EXPECT_TRUE(o_.Fill(0xff).ok());
    EXPECT_TRUE(lse_.Fill(0xff).ok());
  }
  int Forward(const DeviceBuffer& workspace, cudaStream_t stream = nullptr) const {
    const warpledger_sdpa_problem given = Given(problem_);
    return warpledger_sdpa_forward(&given, q_.data(), k_.data(), v_.data(), o_.data(),
                                   static_cast<float*>(lse_.data()), workspace.data(),
                                   workspace.bytes(), stream);
  }
  std::vector<Bits16> Out() const { return OnHost<Bits16>(o_); }
  void ExpectRight() const {
    const Reference reference = ComputeReference(
        problem_, inputs_, SampleRows(problem_, ablations::kMaxReferenceFlops / 10, 3));
    const ablations::Accuracy accuracy =
        ablations::JudgeAccuracy(reference, Out(), OnHost<float>(lse_));
    EXPECT_TRUE(accuracy.correct) << ProblemName(problem_) << ": " << accuracy.reason;
  }

 private:
  template <typename T>
  static std::vector<T> OnHost(const DeviceBuffer& buffer) {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    EXPECT_TRUE(
        buffer
            .CopyToHost(absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), buffer.bytes()))
            .ok());
    return values;
  }

  Problem problem_;
  Inputs inputs_;
  DeviceBuffer q_, k_, v_, o_, lse_;
};

// Of every head_dim and dtype: prompts, decoding, few queries, small problems, longer caches, with
// groups that divide no tile, by turns.
std::vector<Problem> RandomProblems(int count) {
  SplitMix64 random(5);
  const auto one_of = [&](std::initializer_list<int> values) {
    return *(values.begin() + static_cast<ptrdiff_t>(random.Next() % values.size()));
  };
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.Next() % static_cast<uint64_t>(high - low + 1));
  };
  std::vector<Problem> problems;
  for (int i = 0; i < count; ++i) {
    Problem p;
    p.batch = between(1, 4);
    p.heads_kv = one_of({1, 2, 3, 8});
    p.heads_q = p.heads_kv * one_of({1, 1, 2, 3, 4, 5, 8, 16});
    p.head_dim = one_of({64, 128, 256});
    p.dtype = i % 2 == 0 ? Dtype::kFp16 : Dtype::kBf16;
    p.causal = random.Next() % 2 == 0;
    p.seq_kv = i % 5 == 3 ? between(1, 300) : between(1, 3000);
    p.seq_q = i % 5 == 0   ? 1
              : i % 5 == 1 ? between(2, 16)
              : i % 5 == 2 ? between(1, 400)
                           : p.seq_kv;
    problems.push_back(p);
  }
  return problems;
}

TEST(Library, IsRightForManyProblemsWithOneWorkspace) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const Problem& problem : RandomProblems(90)) {
    const Call call(problem);
    ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ProblemName(problem);
    call.ExpectRight();
  }
}

// What describe() says that it needs is enough, which the guard behind it shows.
TEST(Library, StaysInsideTheWorkspaceThatItAsksFor) {
  constexpr size_t kGuard = 1 << 20;
  for (const Problem& problem : RandomProblems(30)) {
    const warpledger_sdpa_problem given = Given(problem);
    warpledger_sdpa_choice choice = {};
    choice.size = sizeof choice;
    ASSERT_EQ(warpledger_sdpa_describe(&given, &choice), WARPLEDGER_SDPA_OK)
        << warpledger_sdpa_last_error();
    EXPECT_GT(choice.expected_us, 0) << choice.kernel;
    const DeviceBuffer guarded = Zeros(choice.workspace_bytes + kGuard);
    const Call call(problem);
    ASSERT_EQ(call.Forward(guarded), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    std::vector<std::byte> behind(kGuard);
    ASSERT_TRUE(guarded.CopyToHost(absl::MakeSpan(behind), choice.workspace_bytes).ok());
    EXPECT_THAT(behind, ::testing::Each(std::byte{0})) << choice.kernel;
  }
}

TEST(Library, LeavesTheSameBitsFromAGraph) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const Problem& problem : RandomProblems(20)) {
    Call call(problem);
    ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    const std::vector<Bits16> once = call.Out();
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(call.Forward(workspace, stream), WARPLEDGER_SDPA_OK);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    call.Poison();
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_TRUE(call.Out() == once) << ProblemName(problem);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
}

// Each thread has a stream, a workspace and outputs of its own; all call the same kernels.
TEST(Library, ServesThreadsAndStreamsAtOnce) {
  const std::vector<Problem> problems = RandomProblems(10);
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      cudaStream_t stream = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      const DeviceBuffer workspace = Zeros(kAmple);
      for (const Problem& problem : problems) {
        Call call(problem);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        ASSERT_EQ(call.Forward(workspace, stream), WARPLEDGER_SDPA_OK);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        const std::vector<Bits16> once = call.Out();
        call.Poison();
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        for (int j = 0; j < 50; ++j) {
          ASSERT_EQ(call.Forward(workspace, stream), WARPLEDGER_SDPA_OK);
        }
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        EXPECT_TRUE(call.Out() == once) << ProblemName(problem);
      }
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Library, TakesAnyScaleAndNeedsNoLse) {
  const Problem problem = {2, 6, 2, 67, 300, 128, true};
  const Call call(problem);
  const DeviceBuffer workspace = Zeros(kAmple);
  ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK);
  const std::vector<Bits16> usual = call.Out();
  warpledger_sdpa_problem given = Given(problem);
  const Inputs inputs = MakeInputs(problem, InputKind::kNormal, 11);
  const DeviceBuffer q = OnGpu(inputs.q);
  const DeviceBuffer k = OnGpu(inputs.k);
  const DeviceBuffer v = OnGpu(inputs.v);
  const DeviceBuffer o = Zeros(inputs.q.size() * sizeof(Bits16));
  const auto out = [&] {
    EXPECT_EQ(warpledger_sdpa_forward(&given, q.data(), k.data(), v.data(), o.data(), nullptr,
                                      workspace.data(), workspace.bytes(), nullptr),
              WARPLEDGER_SDPA_OK)
        << warpledger_sdpa_last_error();
    std::vector<Bits16> values(inputs.q.size());
    EXPECT_TRUE(
        o.CopyToHost(absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), o.bytes())).ok());
    return values;
  };
  given.softmax_scale = 1 / std::sqrt(128.0f);
  EXPECT_TRUE(out() == usual);
  given.softmax_scale = 0.25f;
  EXPECT_FALSE(out() == usual);
}

TEST(Library, RefusesWithOneSentenceAndLeavesNoError) {
  const Problem problem = {1, 1, 1, 64, 64, 64, false};
  const warpledger_sdpa_problem given = Given(problem);
  const DeviceBuffer tensor = Zeros(64 * 64 * 2 + 16);
  const DeviceBuffer workspace = Zeros(kAmple);
  void* const good = tensor.data();
  const auto forward = [&](void* q, size_t workspace_bytes) {
    return warpledger_sdpa_forward(&given, q, good, good, good, nullptr, workspace.data(),
                                   workspace_bytes, nullptr);
  };
  EXPECT_EQ(forward(nullptr, kAmple), WARPLEDGER_SDPA_INVALID);
  EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr("q is null"));
  EXPECT_EQ(forward(static_cast<char*>(good) + 2, kAmple), WARPLEDGER_SDPA_INVALID);
  EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr("q is not 16-byte aligned"));
  EXPECT_EQ(forward(good, 16), WARPLEDGER_SDPA_INVALID);
  EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr("workspace_bytes is 16"));
  warpledger_sdpa_problem odd = given;
  odd.head_dim = 80;
  warpledger_sdpa_choice choice = {};
  choice.size = sizeof choice;
  EXPECT_EQ(warpledger_sdpa_describe(&odd, &choice), WARPLEDGER_SDPA_UNSUPPORTED);
  EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr("head_dim is 64, 128 or 256"));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace warpledger::sdpa
