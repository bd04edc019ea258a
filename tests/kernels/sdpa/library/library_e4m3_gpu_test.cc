// SPDX-License-Identifier: Apache-2.0
// The library's E4M3 on a GPU: right for each scope of scales, mask, group, length and layout, by
// FP64 of the dequantised inputs and the rule of correctness.h.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include "ablations/subjects/sdpa/correctness.h"
#include "gmock/gmock.h"
#include "kernels/common/device.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "kernels/sdpa/library/warpledger_sdpa.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/kv_quantise.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/problem/reference.h"
#include "tests/kernels/sdpa/library/library_on_gpu.h"

namespace warpledger::sdpa {
namespace {

using ::testing::HasSubstr;

class ComputeCapability90 : public testing::Environment {
 public:
  void SetUp() override {
    if (!HasWgmma()) GTEST_SKIP() << "E4M3 is for compute capability 9.0";
  }
};
[[maybe_unused]] const auto* const kSkips =
    testing::AddGlobalTestEnvironment(new ComputeCapability90);

constexpr int kBlockKeys = 128;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Scopes {
  ScaleScope q = ScaleScope::kHead;
  ScaleScope kv = ScaleScope::kHead;

  friend bool operator==(const Scopes&, const Scopes&) = default;
};
constexpr Scopes kAllScopes[] = {
    {ScaleScope::kTensor, ScaleScope::kTensor}, {ScaleScope::kHead, ScaleScope::kTensor},
    {ScaleScope::kTensor, ScaleScope::kHead},   {ScaleScope::kHead, ScaleScope::kHead},
    {ScaleScope::kTensor, ScaleScope::kBlock},  {ScaleScope::kHead, ScaleScope::kBlock}};

int32_t ToC(ScaleScope scope) {
  return scope == ScaleScope::kTensor ? WARPLEDGER_SDPA_SCALE_TENSOR
         : scope == ScaleScope::kHead ? WARPLEDGER_SDPA_SCALE_HEAD
                                      : WARPLEDGER_SDPA_SCALE_BLOCK;
}

// How tensors lie: contiguous, (batch, seq, heads, head_dim), or that with a head of nobody's
// behind each row, or O so and the others contiguous.
enum class Layout { kContiguous, kRowsOutside, kRowsWithGaps, kOutputWithGaps };

warpledger_sdpa_strides StridesOf(Layout layout, int heads, int rows, int head_dim) {
  if (layout == Layout::kContiguous)
    return {int64_t{heads} * rows * head_dim, int64_t{rows} * head_dim, head_dim};
  const int64_t row = int64_t{heads + (layout == Layout::kRowsOutside ? 0 : 1)} * head_dim;
  return {rows * row, head_dim, row};
}

// Where the strides put the elements of a contiguous tensor.
template <typename Visit>
void ForRows(const warpledger_sdpa_strides& strides, int batch, int heads, int rows,
             const Visit& visit) {
  int64_t from = 0;
  for (int b = 0; b < batch; ++b) {
    for (int head = 0; head < heads; ++head) {
      for (int row = 0; row < rows; ++row) {
        visit(from++, b * strides.batch + head * strides.head + row * strides.row);
      }
    }
  }
}

// Gives K or V other magnitudes in each head and block of keys, so that another one's scale is far
// off.
void Vary(const Problem& p, int seed, std::vector<Bits16>* values) {
  for (int64_t at = 0; at < static_cast<int64_t>(values->size()); ++at) {
    const int64_t row = at / p.head_dim;
    const int64_t step = row / p.seq_kv * 5 + row % p.seq_kv / kBlockKeys * 3 + seed;
    Bits16& bits = (*values)[static_cast<size_t>(at)];
    bits = FromFloat(p.dtype, std::ldexp(ToFloat(p.dtype, bits), -static_cast<int>(step % 4)));
  }
}

// What the last caller asked for, for as long as the next one asks for the same: inputs and
// references take longer to make than a call.
template <typename Key, typename Value>
class Last {
 public:
  template <typename Make>
  const Value& Of(const Key& key, const Make& make) {
    if (!key_ || !(*key_ == key)) {
      value_ = make();
      key_ = key;
    }
    return value_;
  }

 private:
  std::optional<Key> key_;
  Value value_;
};

const Inputs& VariedInputs(const Problem& problem) {
  static Last<Problem, Inputs> last;
  return last.Of(problem, [&] {
    Inputs inputs = MakeInputs(problem, InputKind::kNormal, 17);
    Vary(problem, 1, &inputs.k);
    Vary(problem, 2, &inputs.v);
    return inputs;
  });
}

struct Quantised {
  Inputs inputs;
  Reference reference;
};

const Quantised& QuantisedInputs(const Problem& problem, const Scopes& scopes, bool in_e4m3) {
  struct Key {
    Problem problem;
    Scopes scopes;
    bool in_e4m3;
    bool operator==(const Key&) const = default;
  };
  static Last<Key, Quantised> last;
  return last.Of({problem, scopes, in_e4m3}, [&] {
    Quantised made;
    made.inputs = WithQuantisedKv(
        problem, VariedInputs(problem),
        {.scheme = {.format = KvFormat::kE4m3, .scope = scopes.kv, .block_keys = kBlockKeys}});
    Problem as_keys = problem;
    as_keys.heads_kv = problem.heads_q;
    as_keys.seq_kv = problem.seq_q;
    made.inputs.quantised->q =
        Quantise(as_keys, made.inputs.q, {.format = KvFormat::kE4m3, .scope = scopes.q});
    if (in_e4m3) made.inputs.quantised->out_scale = OutputScale(made.inputs.quantised->v);
    made.reference = ComputeReference(problem, made.inputs,
                                      SampleRows(problem, ablations::kMaxReferenceFlops / 30, 3));
    return made;
  });
}

// One problem's tensors in E4M3, and calls on them. Behind the scales that the library is told of
// lie NaNs.
class E4m3Call {
 public:
  //   in_e4m3: O is, too
  E4m3Call(const Problem& problem, const Scopes& scopes, Layout layout = Layout::kContiguous,
           bool in_e4m3 = false)
      : problem_(problem), in_e4m3_(in_e4m3), of_(QuantisedInputs(problem, scopes, in_e4m3)) {
    const Inputs& inputs = of_.inputs;
    given_ = Given(problem);
    given_.dtype = WARPLEDGER_SDPA_E4M3;
    given_.o_dtype = in_e4m3 ? WARPLEDGER_SDPA_E4M3 : WARPLEDGER_SDPA_FP16;
    given_.q_scale_scope = ToC(scopes.q);
    given_.kv_scale_scope = ToC(scopes.kv);
    const Layout of_inputs = layout == Layout::kOutputWithGaps ? Layout::kContiguous : layout;
    of_o_ = StridesOf(layout, problem.heads_q, problem.seq_q, problem.head_dim);
    if (layout != Layout::kContiguous) {
      given_.o = of_o_;
      given_.q = StridesOf(of_inputs, problem.heads_q, problem.seq_q, problem.head_dim);
      given_.k = given_.v =
          StridesOf(of_inputs, problem.heads_kv, problem.seq_kv, problem.head_dim);
    }
    const auto codes = [&](const QuantisedTensor& tensor, int heads, int rows) {
      return OnGpu(
          Spread(tensor.codes, StridesOf(of_inputs, heads, rows, problem.head_dim), heads, rows));
    };
    q_ = codes(*inputs.quantised->q, problem.heads_q, problem.seq_q);
    k_ = codes(inputs.quantised->k, problem.heads_kv, problem.seq_kv);
    v_ = codes(inputs.quantised->v, problem.heads_kv, problem.seq_kv);
    q_scale_ = OnGpu(Told(*inputs.quantised->q, scopes.q));
    k_scale_ = OnGpu(Told(inputs.quantised->k, scopes.kv));
    v_scale_ = OnGpu(Told(inputs.quantised->v, scopes.kv));
    o_scale_ = OnGpu(std::vector<float>{inputs.quantised->out_scale});
    o_ = in_e4m3 ? OnGpu(Spread(inputs.quantised->q->codes, of_o_, problem.heads_q, problem.seq_q))
                 : OnGpu(Spread(inputs.q, of_o_, problem.heads_q, problem.seq_q));
    lse_ = DeviceBuffer::Allocate(QueryRows(problem) * sizeof(float)).value();
    Poison();
  }

  const warpledger_sdpa_problem& given() const { return given_; }
  void Poison() {
    EXPECT_TRUE(o_.Fill(0xff).ok());
    EXPECT_TRUE(lse_.Fill(0xff).ok());
  }
  int Forward(const DeviceBuffer& workspace, cudaStream_t stream = nullptr,
              bool with_lse = true) const {
    const auto scale = [](const DeviceBuffer& of) { return static_cast<const float*>(of.data()); };
    auto* const lse = with_lse ? static_cast<float*>(lse_.data()) : nullptr;
    if (in_e4m3_) {
      return warpledger_sdpa_forward_e4m3_output(&given_, q_.data(), k_.data(), v_.data(),
                                                 scale(q_scale_), scale(k_scale_), scale(v_scale_),
                                                 scale(o_scale_), o_.data(), lse, workspace.data(),
                                                 workspace.bytes(), stream);
    }
    return warpledger_sdpa_forward_e4m3(&given_, q_.data(), k_.data(), v_.data(), scale(q_scale_),
                                        scale(k_scale_), scale(v_scale_), o_.data(), lse,
                                        workspace.data(), workspace.bytes(), stream);
  }
  // Multiplies V's scales, and so O.
  void ScaleV(float by) {
    std::vector<float> scales = OnHost<float>(v_scale_);
    for (float& scale : scales) scale *= by;
    v_scale_ = OnGpu(scales);
  }
  // (batch, heads_q, seq_q, head_dim), in fp16
  std::vector<Bits16> Out() const {
    const std::vector<Bits16> all = Outputs();
    std::vector<Bits16> mine(of_.inputs.q.size());
    const int dim = problem_.head_dim;
    ForRows(of_o_, problem_.batch, problem_.heads_q, problem_.seq_q, [&](int64_t row, int64_t at) {
      std::copy_n(all.begin() + at, dim, mine.begin() + row * dim);
    });
    return mine;
  }
  // Elements of o that were not written.
  int64_t Untouched() const {
    const std::vector<Bits16> all = Outputs();
    return std::count(all.begin(), all.end(), kUntouched);
  }
  int64_t Between() const {
    return static_cast<int64_t>(o_.bytes() / (in_e4m3_ ? 1 : sizeof(Bits16))) -
           QueryElements(problem_);
  }
  void ExpectRight() const {
    const ablations::Accuracy accuracy =
        ablations::JudgeAccuracy(of_.reference, Out(), OnHost<float>(lse_));
    EXPECT_TRUE(accuracy.correct) << ProblemName(problem_) << ", scopes " << given_.q_scale_scope
                                  << " and " << given_.kv_scale_scope << ": " << accuracy.reason;
    EXPECT_EQ(Untouched(), Between());
  }

 private:
  static constexpr Bits16 kUntouched = 0xffff;

  // All that lies in o, in fp16.
  std::vector<Bits16> Outputs() const {
    if (!in_e4m3_) return OnHost<Bits16>(o_);
    std::vector<Bits16> values;
    for (const uint8_t code : OnHost<uint8_t>(o_)) {
      values.push_back(code == 0xff ? kUntouched
                                    : FromFloat(Dtype::kFp16, of_.inputs.quantised->out_scale *
                                                                  Fp8ToFloat(kE4m3, code)));
    }
    return values;
  }
  // What lies between is NaN.
  template <typename T>
  std::vector<T> Spread(const std::vector<T>& from, const warpledger_sdpa_strides& strides,
                        int heads, int rows) const {
    const int dim = problem_.head_dim;
    int64_t end = 0;
    ForRows(strides, problem_.batch, heads, rows,
            [&](int64_t, int64_t at) { end = std::max(end, at + dim); });
    std::vector<T> to(static_cast<size_t>(end), static_cast<T>(sizeof(T) == 1 ? 0x7f : 0x7fff));
    ForRows(strides, problem_.batch, heads, rows, [&](int64_t row, int64_t at) {
      std::copy_n(from.begin() + row * dim, dim, to.begin() + at);
    });
    return to;
  }
  static std::vector<float> Told(const QuantisedTensor& tensor, ScaleScope scope) {
    std::vector<float> scales = tensor.scales;
    if (scope == ScaleScope::kTensor) scales.resize(1);
    scales.resize(scales.size() + 64, kNan);
    return scales;
  }

  Problem problem_;
  bool in_e4m3_;
  const Quantised& of_;  // until the next call of another problem or scopes
  warpledger_sdpa_problem given_ = {};
  warpledger_sdpa_strides of_o_ = {};
  DeviceBuffer q_, k_, v_, q_scale_, k_scale_, v_scale_, o_scale_, o_, lse_;
};

// Whole tiles, ragged ones, groups, one row, one key, more keys than queries. All have many rows
// over the heads: the rule compares two means of errors, which a few rows leave to chance.
std::vector<Problem> Problems() {
  std::vector<Problem> problems;
  for (const int head_dim : kHeadDims) {
    for (const bool causal : {false, true}) {
      for (const Problem& p :
           {Problem{1, 4, 4, 256, 256}, Problem{2, 8, 2, 300, 300}, Problem{3, 6, 2, 67, 900},
            Problem{1, 5, 1, 129, 2049}, Problem{16, 8, 4, 1, 777}, Problem{4, 30, 3, 1, 1},
            Problem{2, 40, 8, 640, 640}, Problem{1, 2, 1, 40, 127}}) {
        problems.push_back(p);
        problems.back().head_dim = head_dim;
        problems.back().causal = causal;
      }
    }
    // Rows that see no key.
    problems.push_back({2, 4, 2, 300, 100, head_dim, true});
  }
  return problems;
}

TEST(LibraryE4m3, IsRightForEachScope) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const Problem& problem : Problems()) {
    for (const Scopes& scopes : kAllScopes) {
      const E4m3Call call(problem, scopes);
      ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ProblemName(problem);
      call.ExpectRight();
    }
  }
}

// O in E4M3: with one scale or one of each head, and any strides.
TEST(LibraryE4m3, WritesE4m3) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const Problem& problem : Problems()) {
    for (const Scopes& scopes : {kAllScopes[0], kAllScopes[3]}) {
      for (const Layout layout : {Layout::kContiguous, Layout::kRowsOutside, Layout::kRowsWithGaps,
                                  Layout::kOutputWithGaps}) {
        const E4m3Call call(problem, scopes, layout, /*in_e4m3=*/true);
        if (layout == Layout::kContiguous || layout == Layout::kOutputWithGaps) {
          EXPECT_EQ(Described(call.given()).launches, 1);
        }
        ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ProblemName(problem);
        call.ExpectRight();
      }
    }
  }
}

// Small enough for compute-sanitizer.
TEST(LibraryE4m3, IsRightForAFewRows) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const int head_dim : kHeadDims) {
    for (const bool causal : {false, true}) {
      for (const Scopes& scopes : kAllScopes) {
        const E4m3Call call({1, 2, 1, 70, 200, head_dim, causal}, scopes, Layout::kRowsOutside);
        ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        call.ExpectRight();
      }
    }
  }
}

// Several batches are a launch each, with scales of their own. What lies between rows of O stays,
// and what lies between those of Q, K and V is NaN.
TEST(LibraryE4m3, IsRightWithStrides) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const Layout layout : {Layout::kRowsOutside, Layout::kRowsWithGaps}) {
    for (const Problem& shape : {Problem{1, 8, 2, 300, 300, 128}, Problem{3, 6, 2, 130, 500, 128},
                                 Problem{3, 6, 2, 130, 500, 64}, Problem{3, 6, 2, 130, 500, 256}}) {
      for (const bool causal : {false, true}) {
        for (const Scopes& scopes : kAllScopes) {
          Problem problem = shape;
          problem.causal = causal;
          const E4m3Call call(problem, scopes, layout);
          EXPECT_EQ(Described(call.given()).launches, problem.batch);
          ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
          ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ProblemName(problem);
          call.ExpectRight();
        }
      }
    }
  }
}

TEST(LibraryE4m3, LeavesTheSameBitsFromAGraphAndWithoutAnLse) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const int head_dim : kHeadDims) {
    for (const Scopes& scopes : kAllScopes) {
      E4m3Call call({2, 8, 2, 333, 700, head_dim, scopes.q == ScaleScope::kHead}, scopes);
      ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
      const std::vector<Bits16> once = call.Out();
      call.Poison();
      ASSERT_EQ(call.Forward(workspace, nullptr, false), WARPLEDGER_SDPA_OK);
      EXPECT_TRUE(call.Out() == once);
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
      EXPECT_TRUE(call.Out() == once);
      call.ExpectRight();
      EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    }
  }
}

// O is a number times V's scale. Twice the scale doubles O and rounds it as before.
TEST(LibraryE4m3, DoublesOutputsWithTheScaleOfV) {
  const DeviceBuffer workspace = Zeros(kAmple);
  for (const Scopes& scopes : kAllScopes) {
    E4m3Call call({1, 4, 2, 200, 400, 128, true}, scopes);
    ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    std::vector<Bits16> twice = call.Out();
    for (Bits16& bits : twice) {
      bits = FromFloat(Dtype::kFp16, 2 * ToFloat(Dtype::kFp16, bits));
    }
    call.ScaleV(2);
    ASSERT_EQ(call.Forward(workspace), WARPLEDGER_SDPA_OK);
    const std::vector<Bits16> doubled = call.Out();
    int64_t others = 0;
    for (size_t i = 0; i < twice.size(); ++i) {
      // Below fp16's normal numbers the step is the same at both sizes.
      const float expected = ToFloat(Dtype::kFp16, twice[i]);
      const float step = std::fabs(expected) < 0x1p-13f ? 0x1p-24f : 0.0f;
      others += std::fabs(ToFloat(Dtype::kFp16, doubled[i]) - expected) > step ? 1 : 0;
    }
    EXPECT_EQ(others, 0);
  }
}

// Scales of all heads that say the same say what one says.
TEST(LibraryE4m3, GivesTheSameBitsWhereverEqualScalesLie) {
  const DeviceBuffer workspace = Zeros(kAmple);
  const Problem problem = {2, 4, 2, 200, 300, 128, true};
  std::vector<std::vector<Bits16>> outs;
  for (const int32_t scope : {0, 1}) {
    warpledger_sdpa_problem given = Given(problem);
    given.dtype = WARPLEDGER_SDPA_E4M3;
    given.q_scale_scope = given.kv_scale_scope = scope;
    const Inputs inputs = WithQuantisedKv(problem, MakeInputs(problem, InputKind::kNormal, 5),
                                          {.scheme = {.format = KvFormat::kE4m3}, .queries = true});
    const std::vector<float> scales(64, 0.01f);
    const DeviceBuffer q = OnGpu(inputs.quantised->q->codes);
    const DeviceBuffer k = OnGpu(inputs.quantised->k.codes);
    const DeviceBuffer v = OnGpu(inputs.quantised->v.codes);
    const DeviceBuffer scale = OnGpu(scales);
    const DeviceBuffer o = Zeros(inputs.q.size() * sizeof(Bits16));
    const auto* const all = static_cast<const float*>(scale.data());
    ASSERT_EQ(
        warpledger_sdpa_forward_e4m3(&given, q.data(), k.data(), v.data(), all, all, all, o.data(),
                                     nullptr, workspace.data(), workspace.bytes(), nullptr),
        WARPLEDGER_SDPA_OK)
        << warpledger_sdpa_last_error();
    outs.push_back(OnHost<Bits16>(o));
  }
  EXPECT_TRUE(outs[0] == outs[1]);
}

// The workspace serves calls of other dtypes by turns.
TEST(LibraryE4m3, SharesAWorkspaceAndStaysInsideIt) {
  constexpr size_t kGuard = 1 << 20;
  for (const Scopes& scopes : kAllScopes) {
    const E4m3Call call({2, 8, 2, 500, 500, 128, true}, scopes);
    const warpledger_sdpa_choice choice = Described(call.given());
    EXPECT_THAT(choice.kernel, HasSubstr("e4m3"));
    EXPECT_GT(choice.expected_us, 0);
    const DeviceBuffer guarded = Zeros(choice.workspace_bytes + kGuard);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(call.Forward(guarded), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    call.ExpectRight();
    ExpectZeros(guarded, choice.workspace_bytes, kGuard);
    ExpectZeros(guarded, 0, choice.zeroed_bytes);
  }
}

}  // namespace
}  // namespace warpledger::sdpa
