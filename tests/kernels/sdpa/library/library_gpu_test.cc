// SPDX-License-Identifier: Apache-2.0
// The library on a GPU: right for many problems, with one workspace for all of them, in graphs, on
// several streams and threads at once. With WARPLEDGER_WITHOUT_WGMMA by its kernels for other GPUs
// than those of compute capability 9.0, whichever GPU this is.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
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
#include "tests/kernels/sdpa/library/library_on_gpu.h"

namespace warpledger::sdpa {
namespace {

using ::testing::HasSubstr;

#ifdef WARPLEDGER_WITHOUT_WGMMA
[[maybe_unused]] const int kSet = setenv(kKernelsVariable, "mma", 1);
#endif

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
    const warpledger_sdpa_choice choice = Described(Given(problem));
    SCOPED_TRACE(choice.kernel);
    EXPECT_EQ(choice.expected_us > 0, HasWgmma()) << "no times of other GPUs' kernels are known";
    const DeviceBuffer guarded = Zeros(choice.workspace_bytes + kGuard);
    const Call call(problem);
    ASSERT_EQ(call.Forward(guarded), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    ExpectZeros(guarded, choice.workspace_bytes, kGuard);
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

// Calls one behind another, with nothing between: what joins parts begins before these are there,
// and the next call's parts lie in the same memory.
TEST(Library, LeavesTheSameBitsFromCallsThatFollowAtOnce) {
  const DeviceBuffer workspace = Zeros(kAmple);
  std::vector<Problem> problems;
  for (const int head_dim : {64, 128, 256}) {
    for (const Dtype dtype : {Dtype::kFp16, Dtype::kBf16}) {
      for (const bool causal : {false, true}) {
        problems.push_back({1, 64, 8, 2 + head_dim / 32, 2048, head_dim, causal, dtype});
        problems.push_back({1, 8, 1, 5, 3000, head_dim, causal, dtype});
        problems.push_back({1, 16, 4, 3, 3000, head_dim, causal, dtype});
        if (head_dim != 128) continue;
        // On an H100 clusters, of eight CTAs with a tile of keys each and of four.
        problems.push_back({1, 64, 8, 4, 500, head_dim, causal, dtype});
        problems.push_back({2, 64, 8, 3, 1000, head_dim, causal, dtype});
      }
    }
  }
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::vector<Bits16>> once;
  for (const Problem& problem : problems) {
    const warpledger_sdpa_problem given = Given(problem);
    warpledger_sdpa_choice choice = {};
    choice.size = sizeof choice;
    ASSERT_EQ(warpledger_sdpa_describe(&given, &choice), WARPLEDGER_SDPA_OK);
    if (HasWgmma()) {
      EXPECT_STREQ(choice.kernel, "split_wgmma") << ProblemName(problem);
    }
    calls.push_back(std::make_unique<Call>(problem));
    ASSERT_EQ(calls.back()->Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    calls.back()->ExpectRight();
    once.push_back(calls.back()->Out());
    calls.back()->Poison();
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int round = 0; round < 20; ++round) {
    for (const auto& call : calls) ASSERT_EQ(call->Forward(workspace), WARPLEDGER_SDPA_OK);
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_TRUE(calls[i]->Out() == once[i]) << ProblemName(problems[i]);
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

// Packed sequences of random inputs, and calls on them. Rows of no sequence, behind the last one,
// are NaN in K and V, and O's must stay as they were.
class PackedCall {
 public:
  static constexpr int kRowsBehind = 70;
  static constexpr int kForeign = 2;  // the sequence whose inputs are NaN, where there are so many

  PackedCall(const Problem& problem, std::vector<std::pair<int, int>> lengths)
      : problem_(problem), lengths_(std::move(lengths)) {
    std::vector<int32_t> cu_q = {0};
    std::vector<int32_t> cu_kv = {0};
    for (const auto& [q, kv] : lengths_) {
      cu_q.push_back(cu_q.back() + q);
      cu_kv.push_back(cu_kv.back() + kv);
      problem_.seq_q = std::max(problem_.seq_q, q);
      problem_.seq_kv = std::max(problem_.seq_kv, kv);
    }
    problem_.batch = static_cast<int>(lengths_.size());
    rows_q_ = cu_q.back() + kRowsBehind;
    rows_kv_ = cu_kv.back() + kRowsBehind;
    constexpr Bits16 kNan = 0x7fff;  // in both dtypes
    std::vector<Bits16> q(Elements(rows_q_, problem_.heads_q), kNan);
    std::vector<Bits16> k(Elements(rows_kv_, problem_.heads_kv), kNan);
    std::vector<Bits16> v = k;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      inputs_.push_back(MakeInputs(ProblemOf(i), InputKind::kNormal, 100 + i));
      if (IsForeign(i)) continue;
      Scatter(inputs_[i].q, problem_.heads_q, cu_q[i], lengths_[i].first, &q);
      Scatter(inputs_[i].k, problem_.heads_kv, cu_kv[i], lengths_[i].second, &k);
      Scatter(inputs_[i].v, problem_.heads_kv, cu_kv[i], lengths_[i].second, &v);
    }
    cu_q_ = cu_q;
    q_ = OnGpu(q);
    k_ = OnGpu(k);
    v_ = OnGpu(v);
    o_ = OnGpu(std::vector<Bits16>(q.size()));
    lse_ = DeviceBuffer::Allocate(static_cast<size_t>(rows_q_ * problem_.heads_q) * sizeof(float))
               .value();
    device_cu_q_ = OnGpu(cu_q);
    device_cu_kv_ = OnGpu(cu_kv);
    EXPECT_TRUE(o_.Fill(0xff).ok());
    EXPECT_TRUE(lse_.Fill(0xff).ok());
  }

  warpledger_sdpa_problem given() const {
    warpledger_sdpa_problem given = Given(problem_);
    given.total_q = rows_q_;
    given.total_kv = rows_kv_;
    return given;
  }
  int Forward(const DeviceBuffer& workspace, cudaStream_t stream = nullptr) const {
    const warpledger_sdpa_problem problem = given();
    return warpledger_sdpa_forward_varlen(&problem, q_.data(), k_.data(), v_.data(), o_.data(),
                                          static_cast<float*>(lse_.data()),
                                          static_cast<const int32_t*>(device_cu_q_.data()),
                                          static_cast<const int32_t*>(device_cu_kv_.data()),
                                          workspace.data(), workspace.bytes(), stream);
  }
  void ExpectRight() const {
    const std::vector<Bits16> out = OnHost<Bits16>(o_);
    const std::vector<float> lse = OnHost<float>(lse_);
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const Problem p = ProblemOf(i);
      if (lengths_[i].first == 0 || IsForeign(i)) continue;
      std::vector<Bits16> mine(static_cast<size_t>(QueryElements(p)));
      std::vector<float> mine_lse(static_cast<size_t>(QueryRows(p)));
      const auto rows = static_cast<size_t>(p.seq_q);
      const auto dim = static_cast<size_t>(p.head_dim);
      for (size_t head = 0; head < static_cast<size_t>(p.heads_q); ++head) {
        for (size_t row = 0; row < rows; ++row) {
          const size_t at = static_cast<size_t>(cu_q_[i]) + row;
          std::copy_n(out.begin() + static_cast<ptrdiff_t>(
                                        (at * static_cast<size_t>(p.heads_q) + head) * dim),
                      dim, mine.begin() + static_cast<ptrdiff_t>((head * rows + row) * dim));
          mine_lse[head * rows + row] = lse[head * static_cast<size_t>(rows_q_) + at];
        }
      }
      if (lengths_[i].second == 0) {
        EXPECT_THAT(mine, ::testing::Each(Bits16{0}));
        EXPECT_THAT(mine_lse, ::testing::Each(-INFINITY));
        continue;
      }
      const Reference reference =
          ComputeReference(p, inputs_[i], SampleRows(p, ablations::kMaxReferenceFlops / 100, 3));
      const ablations::Accuracy accuracy = ablations::JudgeAccuracy(reference, mine, mine_lse);
      EXPECT_TRUE(accuracy.correct)
          << "sequence " << i << ", " << ProblemName(p) << ": " << accuracy.reason;
    }
    const size_t behind = Elements(cu_q_.back(), problem_.heads_q);
    EXPECT_TRUE(std::all_of(out.begin() + static_cast<ptrdiff_t>(behind), out.end(),
                            [](Bits16 bits) { return bits == 0xffff; }));
  }

 private:
  static bool IsForeign(size_t i) { return i == kForeign; }
  size_t Elements(int rows, int heads) const {
    return static_cast<size_t>(rows) * static_cast<size_t>(heads * problem_.head_dim);
  }
  // Of lengths of at least 1, for inputs.
  Problem ProblemOf(size_t i) const {
    Problem p = problem_;
    p.batch = 1;
    p.seq_q = std::max(lengths_[i].first, 1);
    p.seq_kv = std::max(lengths_[i].second, 1);
    return p;
  }
  // (heads, rows, head_dim) to (rows, heads, head_dim) from `first` on.
  void Scatter(const std::vector<Bits16>& from, int heads, int first, int rows,
               std::vector<Bits16>* to) const {
    const int dim = problem_.head_dim;
    for (int head = 0; head < heads; ++head) {
      for (int row = 0; row < rows; ++row) {
        std::copy_n(from.begin() + (int64_t{head} * rows + row) * dim, dim,
                    to->begin() + (int64_t{first + row} * heads + head) * dim);
      }
    }
  }

  Problem problem_;
  std::vector<std::pair<int, int>> lengths_;  // of queries and keys
  std::vector<int32_t> cu_q_;
  int rows_q_ = 0;
  int rows_kv_ = 0;
  std::vector<Inputs> inputs_;
  DeviceBuffer q_, k_, v_, o_, lse_, device_cu_q_, device_cu_kv_;
};

// Ragged ones, none, one row, none of queries, none of keys, and one whose inputs are NaN, which is
// between others: nothing of it may reach them.
TEST(Library, IsRightForPackedSequencesAndKeepsThemApart) {
  const DeviceBuffer workspace = Zeros(kAmple);
  SplitMix64 random(9);
  const auto up_to = [&](int most) { return static_cast<int>(random.Next() % (most + 1)); };
  for (const int head_dim : {64, 128, 256}) {
    for (const Dtype dtype : {Dtype::kFp16, Dtype::kBf16}) {
      for (const bool causal : {false, true}) {
        for (const auto& [heads_q, heads_kv] : {std::pair(4, 4), std::pair(6, 2)}) {
          const Problem problem = {1, heads_q, heads_kv, 1, 1, head_dim, causal, dtype};
          std::vector<std::pair<int, int>> lengths = {{333, 333}, {1, 1},  {77, 77},  {1, 200},
                                                      {0, 40},    {50, 0}, {300, 90}, {128, 128}};
          for (int i = 0; i < 6; ++i) lengths.emplace_back(up_to(400), up_to(700));
          for (const auto& each : {lengths, {{40, 70}}, {{500, 500}, {3, 1000}}}) {
            const PackedCall call(problem, each);
            ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
            ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ProblemName(problem);
            call.ExpectRight();
          }
        }
      }
    }
  }
}

// Small enough for compute-sanitizer.
TEST(Library, IsRightForAFewPackedRows) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const int head_dim : {64, 128, 256}) {
    for (const Dtype dtype : {Dtype::kFp16, Dtype::kBf16}) {
      for (const bool causal : {false, true}) {
        const PackedCall call({1, 2, 1, 1, 1, head_dim, causal, dtype},
                              {{5, 9}, {70, 130}, {3, 3}, {0, 3}, {2, 0}, {200, 200}});
        ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        call.ExpectRight();
      }
    }
  }
}

// Batches whose rows fold into those of packed sequences, in one launch: (batch, seq, heads,
// head_dim) with some rows and heads of others between.
TEST(Library, TakesBatchesOfRowsInOneLaunchAndLeavesWhatLiesBetween) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const int head_dim : {64, 128, 256}) {
    for (const auto& [seq_q, seq_kv] :
         {std::pair(200, 200), std::pair(130, 70), std::pair(1, 333)}) {
      const Problem p = {3, 6, 2, seq_q, seq_kv, head_dim, true, Dtype::kBf16};
      const Inputs inputs = MakeInputs(p, InputKind::kNormal, 5);
      constexpr int kRowsBetween = 5;
      // (batch, rows, heads + 1, head_dim): the last head is nobody's.
      const auto spread = [&](const std::vector<Bits16>& from, int heads, int rows) {
        std::vector<Bits16> to(
            static_cast<size_t>(p.batch) *
                static_cast<size_t>((rows + kRowsBetween) * (heads + 1) * head_dim),
            0x7fff);
        for (int b = 0; b < p.batch; ++b) {
          for (int head = 0; head < heads; ++head) {
            for (int row = 0; row < rows; ++row) {
              std::copy_n(
                  from.begin() + ((int64_t{b} * heads + head) * rows + row) * head_dim, head_dim,
                  to.begin() +
                      ((int64_t{b} * (rows + kRowsBetween) + row) * (heads + 1) + head) * head_dim);
            }
          }
        }
        return to;
      };
      const auto strides = [&](int heads, int rows) {
        const int64_t row = int64_t{heads + 1} * head_dim;
        return warpledger_sdpa_strides{(rows + kRowsBetween) * row, head_dim, row};
      };
      const std::vector<Bits16> poisoned(inputs.q.size(), 0x7ff1);
      const DeviceBuffer q = OnGpu(spread(inputs.q, p.heads_q, seq_q));
      const DeviceBuffer k = OnGpu(spread(inputs.k, p.heads_kv, seq_kv));
      const DeviceBuffer v = OnGpu(spread(inputs.v, p.heads_kv, seq_kv));
      const DeviceBuffer o = OnGpu(spread(poisoned, p.heads_q, seq_q));
      DeviceBuffer lse = DeviceBuffer::Allocate(QueryRows(p) * sizeof(float)).value();
      EXPECT_TRUE(lse.Fill(0xff).ok());
      warpledger_sdpa_problem given = Given(p);
      given.q = given.o = strides(p.heads_q, seq_q);
      given.k = given.v = strides(p.heads_kv, seq_kv);
      const warpledger_sdpa_choice choice = Described(given);
      EXPECT_EQ(choice.launches, 1) << choice.explanation;
      ASSERT_EQ(warpledger_sdpa_forward(&given, q.data(), k.data(), v.data(), o.data(),
                                        static_cast<float*>(lse.data()), workspace.data(),
                                        workspace.bytes(), nullptr),
                WARPLEDGER_SDPA_OK)
          << warpledger_sdpa_last_error();
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      const std::vector<Bits16> all = OnHost<Bits16>(o);
      std::vector<Bits16> mine(inputs.q.size());
      for (int b = 0; b < p.batch; ++b) {
        for (int head = 0; head < p.heads_q; ++head) {
          for (int row = 0; row < seq_q; ++row) {
            std::copy_n(all.begin() +
                            ((int64_t{b} * (seq_q + kRowsBetween) + row) * (p.heads_q + 1) + head) *
                                head_dim,
                        head_dim,
                        mine.begin() + ((int64_t{b} * p.heads_q + head) * seq_q + row) * head_dim);
          }
        }
      }
      const ablations::Accuracy accuracy =
          ablations::JudgeAccuracy(ComputeReference(p, inputs), mine, OnHost<float>(lse));
      EXPECT_TRUE(accuracy.correct) << ProblemName(p) << ": " << accuracy.reason;
      EXPECT_EQ(std::count(all.begin(), all.end(), 0x7fff),
                static_cast<ptrdiff_t>(all.size() - mine.size()));
    }
  }
}

// The counters and the list lie in what describe() asks for.
TEST(Library, PlansPackedSequencesInsideTheWorkspaceThatItAsksFor) {
  constexpr size_t kGuard = 1 << 16;
  std::vector<std::pair<int, int>> lengths(700, {1, 3});
  lengths.emplace_back(1000, 1000);
  const PackedCall call({1, 2, 2, 1, 1, 64, true}, lengths);
  const warpledger_sdpa_choice choice = Described(call.given());
  EXPECT_STREQ(choice.kernel, HasWgmma() ? "pipelined_varlen" : "tiled_mma_varlen");
  const DeviceBuffer guarded = Zeros(choice.workspace_bytes + kGuard);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(call.Forward(guarded), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  }
  call.ExpectRight();
  ExpectZeros(guarded, choice.workspace_bytes, kGuard);
  ExpectZeros(guarded, 0, choice.zeroed_bytes);
}

// Captures the first call of this process, behind a describe(), and ends it.
template <typename SomeCall>
[[noreturn]] void CaptureFirst(const SomeCall& call, const warpledger_sdpa_problem& given) {
  const DeviceBuffer workspace = Zeros(kAmple);
  Described(given);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(call.Forward(workspace, stream), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  call.ExpectRight();
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

// Kernels that join parts and that plan packed sequences are launched beside the one that
// describe() names: the process that captures them has launched none before.
TEST(LibraryDeathTest, MayBeCapturedFirstBehindADescription) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int head_dim : {64, 128, 256}) {
    const Problem decode = {1, 8, 2, 1, 3000, head_dim, true, Dtype::kBf16};
    EXPECT_EXIT(CaptureFirst(Call(decode), Given(decode)), testing::ExitedWithCode(0), "");
    const auto capture_packed = [head_dim] {
      const PackedCall call({1, 2, 1, 1, 1, head_dim, true}, {{5, 9}, {200, 200}});
      CaptureFirst(call, call.given());
    };
    EXPECT_EXIT(capture_packed(), testing::ExitedWithCode(0), "");
  }
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
