// SPDX-License-Identifier: Apache-2.0
// Calls of the C interface up to the launch: the runtime is a stand-in that has GPUs of compute
// capability 9.0 and others, and instances record what they were launched with. No GPU needed.

#include <cstring>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/library/library_instances.h"
#include "kernels/sdpa/library/warpledger_sdpa.h"
#include "kernels/sdpa/rules/families.h"

namespace {

using warpledger::sdpa::LaunchParams;
using warpledger::sdpa::ScaleStrides;

struct StandInGpu {
  int major;
  int minor;
  int smem_kb;
};
constexpr StandInGpu kGpus[] = {{9, 0, 227}, {8, 0, 163}, {8, 9, 99}, {10, 0, 227}, {7, 5, 64}};

struct Runtime {
  int device = 0;  // of kGpus
  cudaError_t load = cudaSuccess;
  int questions = 0;  // about the GPU: a call that is looked up asks none
  int launches = 0;
  bool strided = false;              // the last instance
  std::vector<LaunchParams> params;  // of each launch
  std::vector<std::optional<ScaleStrides>> scales;
  std::vector<std::string> loaded;  // of what is launched beside an instance's kernel
};
Runtime runtime;

}  // namespace

extern "C" {
cudaError_t cudaGetDevice(int* device) {
  *device = runtime.device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  ++runtime.questions;
  const StandInGpu& gpu = kGpus[device];
  *value = attribute == cudaDevAttrComputeCapabilityMajor         ? gpu.major
           : attribute == cudaDevAttrComputeCapabilityMinor       ? gpu.minor
           : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? gpu.smem_kb << 10
           : attribute == cudaDevAttrGlobalMemoryBusWidth         ? 5120
                                                                  : 132;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "the stand-in's error"; }
cudaError_t cudaLibraryLoadData(cudaLibrary_t*, const void*, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return runtime.load;
}
cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned, cudaLibrary_t) {
  *kernels = reinterpret_cast<cudaKernel_t>(&runtime);
  return cudaSuccess;
}
cudaError_t cudaLibraryGetGlobal(void**, size_t*, cudaLibrary_t, const char*) {
  return cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) { return cudaSuccess; }
}

namespace warpledger::sdpa {

cudaError_t LoadJoin(int head_dim, bool bf16) {
  runtime.loaded.push_back("join_d" + std::to_string(head_dim) + (bf16 ? "_bf16" : "_fp16"));
  return runtime.load;
}
cudaError_t LoadSequencePlan() {
  runtime.loaded.push_back("sequence_plan");
  return runtime.load;
}

std::span<const KernelInstance> LibraryInstances() {
  static std::deque<KernelCode> codes;
  static const std::vector<KernelInstance> instances = [] {
    std::vector<KernelInstance> made;
    const auto add = [&](const LibraryKernel& kernel, const Config& config) {
      for (const bool causal : {false, true}) {
        made.push_back({Specialise(config, kernel.head_dim, causal, kernel.dtype),
                        &codes.emplace_back("stand_in", nullptr),
                        [](const KernelInstance& instance, const LaunchParams& params, unsigned,
                           const LaunchMemory* memory, cudaStream_t) {
                          ++runtime.launches;
                          runtime.params.push_back(params);
                          runtime.strided = instance.config.strided;
                          runtime.scales.push_back(memory->layouts.scales);
                          return cudaSuccess;
                        }});
      }
    };
    for (const LibraryKernel& kernel : kLibraryKernels) {
      add(kernel, BuiltForLibrary(kernel));
      if (HasClusterForm(kernel)) add(kernel, ClusterForm(kernel));
      if (HasStridedForm(kernel)) add(kernel, StridedForm(kernel));
    }
    for (const LibraryKernel& kernel : kMmaKernels) add(kernel, BuiltForLibrary(kernel));
    return made;
  }();
  return instances;
}

namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// Zeroed first, as the bytes between its fields too.
warpledger_sdpa_problem ProblemOf(int seq_q, int seq_kv) {
  warpledger_sdpa_problem problem;
  std::memset(&problem, 0, sizeof problem);
  problem.size = sizeof problem;
  problem.batch = 1;
  problem.heads_q = problem.heads_kv = 8;
  problem.seq_q = seq_q;
  problem.seq_kv = seq_kv;
  problem.head_dim = 64;
  return problem;
}

warpledger_sdpa_problem E4m3Of(int batch, int seq_q, int seq_kv, int32_t q_scope,
                               int32_t kv_scope) {
  warpledger_sdpa_problem problem = ProblemOf(seq_q, seq_kv);
  problem.dtype = WARPLEDGER_SDPA_E4M3;
  problem.batch = batch;
  problem.heads_kv = 2;
  problem.head_dim = 128;
  problem.q_scale_scope = q_scope;
  problem.kv_scale_scope = kv_scope;
  return problem;
}

int Describe(const warpledger_sdpa_problem& problem, warpledger_sdpa_choice* choice) {
  choice->size = sizeof *choice;
  return warpledger_sdpa_describe(&problem, choice);
}

class Calls : public testing::Test {
 protected:
  // None is read: launches are stand-ins.
  template <typename T = std::byte>
  T* At(size_t offset) {
    return reinterpret_cast<T*>(memory_ + offset);
  }

  int Forward(const warpledger_sdpa_problem& problem, size_t lse_offset) {
    return warpledger_sdpa_forward(&problem, At(0), At(0), At(0), At(0), At<float>(lse_offset),
                                   At(0), 1 << 30, nullptr);
  }
  int ForwardVarlen(const warpledger_sdpa_problem& problem, size_t q_offset, size_t kv_offset) {
    return warpledger_sdpa_forward_varlen(&problem, At(0), At(0), At(0), At(0), nullptr,
                                          At<int32_t>(q_offset), At<int32_t>(kv_offset), At(0),
                                          1 << 30, nullptr);
  }
  int ForwardE4m3(const warpledger_sdpa_problem& problem, const float* q_scale,
                  const float* k_scale, const float* v_scale) {
    return warpledger_sdpa_forward_e4m3(&problem, At(0), At(0), At(0), q_scale, k_scale, v_scale,
                                        At(0), nullptr, At(0), 1 << 30, nullptr);
  }
  int ForwardE4m3Output(const warpledger_sdpa_problem& problem, const float* o_scale) {
    const float* const scale = At<float>(0);
    return warpledger_sdpa_forward_e4m3_output(&problem, At(0), At(0), At(0), scale, scale, scale,
                                               o_scale, At(0), nullptr, At(0), 1 << 30, nullptr);
  }
  void ExpectRefused(int got, int status, const char* said) {
    EXPECT_EQ(got, status) << warpledger_sdpa_last_error();
    EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr(said));
  }

  Runtime& runtime_ = runtime = {};

 private:
  alignas(16) std::byte memory_[64] = {};
};

TEST_F(Calls, AreLookedUpWhateverLiesBetweenTheCallersFields) {
  warpledger_sdpa_problem problem = ProblemOf(100, 100);
  warpledger_sdpa_choice choice;
  ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK);
  const int questions = runtime_.questions;
  EXPECT_GT(questions, 0);
  constexpr size_t kBehindScale = offsetof(warpledger_sdpa_problem, softmax_scale) + sizeof(float);
  constexpr size_t kGap = offsetof(warpledger_sdpa_problem, q) - kBehindScale;
  static_assert(kGap == 4);
  for (const int anything : {1, 77, 255}) {
    std::memset(reinterpret_cast<std::byte*>(&problem) + kBehindScale, anything, kGap);
    ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK);
  }
  EXPECT_EQ(runtime_.questions, questions);
}

TEST_F(Calls, RefuseAnLseBetweenTwoFloats) {
  const warpledger_sdpa_problem problem = ProblemOf(200, 200);
  for (const size_t offset : {1, 2, 3}) {
    EXPECT_EQ(Forward(problem, offset), WARPLEDGER_SDPA_INVALID);
    EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr("lse is not 4-byte aligned"));
  }
  EXPECT_EQ(runtime_.launches, 0);
  EXPECT_EQ(Forward(problem, 4), WARPLEDGER_SDPA_OK);
  EXPECT_EQ(runtime_.launches, 1);
}

TEST_F(Calls, RefuseCumulativeLengthsBetweenTwoIntegers) {
  warpledger_sdpa_problem problem = ProblemOf(50, 50);
  problem.total_q = problem.total_kv = 100;
  EXPECT_EQ(ForwardVarlen(problem, 2, 0), WARPLEDGER_SDPA_INVALID);
  EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr("cu_seqlens_q is not 4-byte aligned"));
  EXPECT_EQ(ForwardVarlen(problem, 4, 5), WARPLEDGER_SDPA_INVALID);
  EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr("cu_seqlens_kv is not 4-byte aligned"));
  EXPECT_EQ(runtime_.launches, 0);
  EXPECT_EQ(ForwardVarlen(problem, 4, 8), WARPLEDGER_SDPA_OK);
  EXPECT_EQ(runtime_.launches, 1);
}

// A caller that doesn't know the largest lengths may say any.
TEST_F(Calls, TakePackedSequencesWhateverTheirLargestLengthsAreSaidToBe) {
  for (const int batch : {1, 4096}) {
    for (const int most : {0, 1, 50, 1 << 20, (1 << 20) + 1, 0x7fffffff}) {
      warpledger_sdpa_problem problem = ProblemOf(most, most);
      problem.batch = batch;
      problem.heads_q = problem.heads_kv = 128;
      problem.total_q = problem.total_kv = 100000;
      warpledger_sdpa_choice choice;
      ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
      EXPECT_STREQ(choice.kernel, "pipelined_varlen");
      problem.seq_q = problem.seq_kv = 40;
      warpledger_sdpa_choice other;
      ASSERT_EQ(Describe(problem, &other), WARPLEDGER_SDPA_OK);
      EXPECT_EQ(choice.workspace_bytes, other.workspace_bytes);
      EXPECT_EQ(choice.expected_us, other.expected_us);
    }
  }
  warpledger_sdpa_problem problem = ProblemOf(-1, 50);
  problem.total_q = problem.total_kv = 100;
  warpledger_sdpa_choice choice;
  EXPECT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_INVALID);
}

TEST_F(Calls, LoadAKernelThatAnEarlierCallCouldNot) {
  const warpledger_sdpa_problem problem = ProblemOf(3000, 3000);
  warpledger_sdpa_choice choice;
  runtime_.load = cudaErrorStreamCaptureUnsupported;
  EXPECT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_CUDA_ERROR);
  EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr("loading a kernel"));
  runtime_.load = cudaSuccess;
  EXPECT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK);
}

// A launch that is captured can't load them. head_dim 256, which no test before this one takes.
TEST_F(Calls, LoadWhatIsLaunchedBesideAKernel) {
  using Loaded = std::vector<std::string>;
  warpledger_sdpa_choice choice;
  warpledger_sdpa_problem problem = ProblemOf(1, 8192);
  problem.head_dim = 256;
  problem.dtype = WARPLEDGER_SDPA_BF16;
  ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  EXPECT_EQ(runtime_.loaded, Loaded{"join_d256_bf16"});
  ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK);
  EXPECT_EQ(runtime_.loaded, Loaded{"join_d256_bf16"}) << "once for a kernel";

  problem = ProblemOf(2000, 2000);
  problem.head_dim = 256;
  ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  EXPECT_EQ(runtime_.loaded.size(), 1U);
  problem.total_q = problem.total_kv = 2000;
  ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  EXPECT_EQ(runtime_.loaded, (Loaded{"join_d256_bf16", "sequence_plan"}));
}

TEST_F(Calls, InE4m3SayWhichKernelAndItsTime) {
  warpledger_sdpa_choice choice;
  for (const auto& [scope, name] :
       {std::pair(WARPLEDGER_SDPA_SCALE_TENSOR, "pipelined_e4m3"),
        std::pair(WARPLEDGER_SDPA_SCALE_HEAD, "pipelined_e4m3"),
        std::pair(WARPLEDGER_SDPA_SCALE_BLOCK, "pipelined_e4m3_blocks")}) {
    ASSERT_EQ(Describe(E4m3Of(2, 1000, 1000, WARPLEDGER_SDPA_SCALE_HEAD, scope), &choice),
              WARPLEDGER_SDPA_OK)
        << warpledger_sdpa_last_error();
    EXPECT_STREQ(choice.kernel, name);
    EXPECT_GT(choice.expected_us, 0);
    EXPECT_EQ(choice.launches, 1);
    EXPECT_EQ(choice.zeroed_bytes, 4096U);
    EXPECT_THAT(choice.explanation, HasSubstr(std::string(name) + ": "));
    EXPECT_THAT(choice.explanation, HasSubstr(" us"));
  }
}

TEST_F(Calls, InE4m3TakeEachHeadDim) {
  warpledger_sdpa_choice choice;
  for (const int head_dim : {64, 128, 256}) {
    warpledger_sdpa_problem problem =
        E4m3Of(2, 1000, 1000, WARPLEDGER_SDPA_SCALE_HEAD, WARPLEDGER_SDPA_SCALE_BLOCK);
    problem.head_dim = head_dim;
    ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    EXPECT_STREQ(choice.kernel, "pipelined_e4m3_blocks");
    EXPECT_GT(choice.expected_us, 0);
  }
}

TEST_F(Calls, PassScalesAsTheyAre) {
  using Strides = std::optional<ScaleStrides>;
  const float* const scales[] = {At<float>(4), At<float>(8), At<float>(12)};
  for (const auto& [q_scope, kv_scope, strides] :
       {std::tuple(0, 0, Strides({0, 0, false})), std::tuple(1, 0, Strides({1, 0, false})),
        std::tuple(0, 1, Strides({0, 1, false})), std::tuple(0, 2, Strides({0, 3, true})),
        std::tuple(1, 2, Strides({1, 3, true}))}) {
    ASSERT_EQ(ForwardE4m3(E4m3Of(2, 70, 300, q_scope, kv_scope), scales[0], scales[1], scales[2]),
              WARPLEDGER_SDPA_OK)
        << warpledger_sdpa_last_error();
    EXPECT_EQ(runtime_.scales.back(), strides);
    const LaunchParams& params = runtime_.params.back();
    EXPECT_EQ(params.q_scales, scales[0]);
    EXPECT_EQ(params.k_scales, scales[1]);
    EXPECT_EQ(params.v_scales, scales[2]);
  }
  EXPECT_EQ(runtime_.launches, 5);
}

// (batch, seq, heads, head_dim): elements of Q, K and V have one byte and O's two, and each batch
// has scales of its own.
TEST_F(Calls, GoOnToTheNextBatchsScales) {
  for (const int scope : {0, 1, 2}) {
    warpledger_sdpa_problem problem = E4m3Of(3, 300, 300, scope == 0 ? 0 : 1, scope);
    problem.q = problem.o = {300 * 8 * 128, 128, 8 * 128};
    problem.k = problem.v = {300 * 2 * 128, 128, 2 * 128};
    const size_t first = runtime_.params.size();
    ASSERT_EQ(ForwardE4m3(problem, At<float>(0), At<float>(0), At<float>(0)), WARPLEDGER_SDPA_OK)
        << warpledger_sdpa_last_error();
    ASSERT_EQ(runtime_.params.size(), first + 3);
    for (size_t batch = 0; batch < 3; ++batch) {
      const LaunchParams& params = runtime_.params[first + batch];
      EXPECT_EQ(params.q, At(batch * 300 * 8 * 128));
      EXPECT_EQ(params.v, At(batch * 300 * 2 * 128));
      EXPECT_EQ(params.o, At(batch * 300 * 8 * 128 * 2));
      const size_t kv_scales = scope == 0 ? 0 : scope == 1 ? 2 : 2 * 3;
      EXPECT_EQ(params.q_scales, At<float>(scope == 0 ? 0 : batch * 8 * sizeof(float)));
      EXPECT_EQ(params.k_scales, At<float>(batch * kv_scales * sizeof(float)));
      EXPECT_EQ(params.v_scales, params.k_scales);
    }
  }
}

// By the form of split_mma that reads strides, and without them by the other.
TEST_F(Calls, DecodeAgainstRowsOutsideInOneLaunch) {
  warpledger_sdpa_problem problem = ProblemOf(1, 4000);
  problem.batch = 16;
  problem.heads_q = 32;
  ASSERT_EQ(Forward(problem, 0), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  problem.k = problem.v = {4000 * 8 * 64, 64, 8 * 64};
  warpledger_sdpa_choice choice;
  ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  EXPECT_STREQ(choice.kernel, "split_mma");
  ASSERT_EQ(Forward(problem, 0), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  EXPECT_EQ(runtime_.launches, 2);
  EXPECT_TRUE(runtime_.strided);
  problem.k = problem.v = {};
  setenv("WARPLEDGER_SDPA_KERNELS", "split_mma", 1);
  problem.seq_kv = 4001;
  EXPECT_EQ(Forward(problem, 0), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  unsetenv("WARPLEDGER_SDPA_KERNELS");
  EXPECT_FALSE(runtime_.strided);
}

// Codes of one byte, batch after batch, with one scale.
TEST_F(Calls, WriteOutputsInE4m3) {
  warpledger_sdpa_problem problem = E4m3Of(3, 300, 300, 1, 1);
  problem.o_dtype = WARPLEDGER_SDPA_E4M3;
  problem.q = problem.o = {300 * 8 * 128, 128, 8 * 128};
  const size_t first = runtime_.params.size();
  EXPECT_EQ(ForwardE4m3Output(problem, At<float>(4)), WARPLEDGER_SDPA_OK)
      << warpledger_sdpa_last_error();
  ASSERT_EQ(runtime_.params.size(), first + 3);
  for (size_t batch = 0; batch < 3; ++batch) {
    EXPECT_EQ(runtime_.params[first + batch].o, At(batch * 300 * 8 * 128));
    EXPECT_EQ(runtime_.params[first + batch].o_scale, At<float>(4));
  }
  const float* const scale = At<float>(0);
  ExpectRefused(ForwardE4m3Output(problem, nullptr), WARPLEDGER_SDPA_INVALID, "o_scale is null");
  ExpectRefused(ForwardE4m3(problem, scale, scale, scale), WARPLEDGER_SDPA_INVALID,
                "o_dtype is WARPLEDGER_SDPA_E4M3: it is forward_e4m3_output()'s");
  problem.o_dtype = WARPLEDGER_SDPA_FP16;
  ExpectRefused(ForwardE4m3Output(problem, scale), WARPLEDGER_SDPA_INVALID,
                "o_dtype is WARPLEDGER_SDPA_FP16: it has no scale, and is forward_e4m3()'s");
  ExpectRefused(ForwardE4m3Output(ProblemOf(256, 256), scale), WARPLEDGER_SDPA_INVALID,
                "dtype is WARPLEDGER_SDPA_FP16: it has no scales");
}

TEST_F(Calls, RefuseE4m3ThatNoKernelTakes) {
  const float* const scale = At<float>(0);
  const warpledger_sdpa_problem good = E4m3Of(1, 256, 256, 1, 1);
  ExpectRefused(ForwardE4m3(good, nullptr, scale, scale), WARPLEDGER_SDPA_INVALID,
                "q_scale is null");
  ExpectRefused(ForwardE4m3(good, scale, nullptr, scale), WARPLEDGER_SDPA_INVALID,
                "k_scale is null");
  ExpectRefused(ForwardE4m3(good, scale, scale, At<float>(2)), WARPLEDGER_SDPA_INVALID,
                "v_scale is not 4-byte aligned");
  ExpectRefused(Forward(good, 0), WARPLEDGER_SDPA_INVALID,
                "dtype is WARPLEDGER_SDPA_E4M3: it is forward_e4m3()'s, which takes scales");
  ExpectRefused(ForwardE4m3(ProblemOf(256, 256), scale, scale, scale), WARPLEDGER_SDPA_INVALID,
                "dtype is WARPLEDGER_SDPA_FP16: it has no scales");
  warpledger_sdpa_problem problem = good;
  problem.head_dim = 96;
  ExpectRefused(ForwardE4m3(problem, scale, scale, scale), WARPLEDGER_SDPA_UNSUPPORTED,
                "head_dim is 64, 128 or 256");
  problem = good;
  problem.total_q = problem.total_kv = 256;
  ExpectRefused(
      ForwardVarlen(problem, 0, 0), WARPLEDGER_SDPA_UNSUPPORTED,
      "total_q is 256 and dtype E4M3; the library takes packed sequences of fp16 and bf16");
  problem = good;
  problem.q_scale_scope = WARPLEDGER_SDPA_SCALE_BLOCK;
  ExpectRefused(ForwardE4m3(problem, scale, scale, scale), WARPLEDGER_SDPA_INVALID,
                "q_scale_scope is 2; it must be WARPLEDGER_SDPA_SCALE_TENSOR or _HEAD");
  problem = good;
  problem.k = {256 * 264, 128, 264};
  ExpectRefused(ForwardE4m3(problem, scale, scale, scale), WARPLEDGER_SDPA_INVALID,
                "the row stride of k is 264 elements; it must be a multiple of 16");
  // O without TMA, where rows see no key.
  problem = E4m3Of(1, 256, 100, 0, 0);
  problem.causal = 1;
  problem.o = {256 * 8 * 128, 128, 8 * 128};
  ExpectRefused(ForwardE4m3(problem, scale, scale, scale), WARPLEDGER_SDPA_UNSUPPORTED,
                "it stores contiguous tensors alone, and o has other strides");
  EXPECT_EQ(runtime_.launches, 0);
}

TEST_F(Calls, RefuseStridesOfOutputsWhoseRowsMayOverlap) {
  warpledger_sdpa_problem problem = ProblemOf(110, 110);
  problem.o = {0, 64, 64};
  ExpectRefused(Forward(problem, 0), WARPLEDGER_SDPA_INVALID,
                "the head stride of o is 64 elements, so that its rows may overlap");
}

// 2^31 rows of 2^38 elements. The sizes of all else that is not packed are below 2^61.
TEST_F(Calls, RefuseStridesWhoseTensorsHaveNoSizeIn64Bits) {
  for (const auto strides : {&warpledger_sdpa_problem::q, &warpledger_sdpa_problem::k,
                             &warpledger_sdpa_problem::v, &warpledger_sdpa_problem::o}) {
    warpledger_sdpa_problem problem = ProblemOf(50, 50);
    problem.total_q = problem.total_kv = 0x7fffffff;
    problem.*strides = {0, 64, int64_t{1} << 38};
    ExpectRefused(ForwardVarlen(problem, 0, 0), WARPLEDGER_SDPA_INVALID, "the row stride of ");
    EXPECT_THAT(warpledger_sdpa_last_error(), HasSubstr(" is 274877906944 elements, so that "));
  }
}

// It is ignored, and so is what it would be without gaps.
TEST_F(Calls, JudgeNoStrideOfADimensionOfSize1) {
  const int64_t far = int64_t{1} << 38;
  warpledger_sdpa_problem problem = ProblemOf(120, 120);
  for (const int64_t anything : {int64_t{-3}, int64_t{0}, std::numeric_limits<int64_t>::max()}) {
    problem.q = problem.k = problem.v = problem.o = {anything, far, 64};
    EXPECT_EQ(Forward(problem, 0), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    problem.q = problem.k = problem.v = problem.o = {anything, 120 * 64, 64};
    EXPECT_EQ(Forward(problem, 0), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  }
  problem.heads_q = problem.heads_kv = 1;
  problem.q = problem.k = problem.v = problem.o = {-3, 5, far};
  EXPECT_EQ(Forward(problem, 0), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
}

TEST_F(Calls, SayTheWholeSentenceWhereEachKernelHasAReason) {
  warpledger_sdpa_problem problem = ProblemOf(50, 50);
  problem.batch = problem.heads_q = problem.heads_kv = 1 << 20;
  problem.total_q = problem.total_kv = 0x7fffffff;
  ExpectRefused(ForwardVarlen(problem, 0, 0), WARPLEDGER_SDPA_UNSUPPORTED, "no kernel does ");
  EXPECT_THAT(warpledger_sdpa_last_error(),
              EndsWith("pipelined_varlen: not supported: the problem is beyond what it launches"));
}

// A caller of an earlier header has no scopes, and the rest of its calls.
TEST_F(Calls, ReadNoScopesOfAnEarlierProblem) {
  warpledger_sdpa_problem problem = ProblemOf(400, 400);
  problem.size = offsetof(warpledger_sdpa_problem, q_scale_scope);
  EXPECT_EQ(problem.size, 160U);
  problem.o_dtype = 77;
  problem.q_scale_scope = problem.kv_scale_scope = 77;
  EXPECT_EQ(Forward(problem, 0), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
  EXPECT_EQ(runtime_.scales.back(), std::nullopt);
}

// --- Other GPUs --------------------------------------------------------------------

TEST_F(Calls, TakeTheMmaFamilyOnOtherGpus) {
  for (const int device : {1, 2, 3}) {
    runtime_.device = device;
    SCOPED_TRACE(device);
    warpledger_sdpa_problem problem = ProblemOf(1000, 1000);
    // A slice of (batch, seq, 3, heads, head_dim).
    problem.batch = 2;
    problem.q = problem.k = problem.v = {1000 * 3 * 8 * 64, 64, 3 * 8 * 64};
    warpledger_sdpa_choice choice;
    for (const int head_dim : {64, 128, 256}) {
      problem.head_dim = head_dim;
      problem.q.head = problem.k.head = problem.v.head = head_dim;
      problem.q.row = problem.k.row = problem.v.row = 3 * 8 * head_dim;
      problem.q.batch = problem.k.batch = problem.v.batch = 1000 * problem.q.row;
      ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
      EXPECT_THAT(choice.kernel, HasSubstr("_mma"));
      EXPECT_EQ(choice.expected_us, 0);
      EXPECT_EQ(choice.launches, 1);
      EXPECT_THAT(choice.explanation, HasSubstr(" steps; "));
      const int launches = runtime_.launches;
      ASSERT_EQ(Forward(problem, 0), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
      EXPECT_EQ(runtime_.launches, launches + 1);
    }
    problem = ProblemOf(50, 50);
    problem.total_q = problem.total_kv = 100;
    ASSERT_EQ(Describe(problem, &choice), WARPLEDGER_SDPA_OK) << warpledger_sdpa_last_error();
    EXPECT_STREQ(choice.kernel, "tiled_mma_varlen");
  }
}

TEST_F(Calls, RefuseOnOtherGpusWhatTheyHaveNoKernelFor) {
  runtime_.device = 1;
  const float* const scale = At<float>(0);
  ExpectRefused(ForwardE4m3(E4m3Of(1, 256, 256, 1, 1), scale, scale, scale),
                WARPLEDGER_SDPA_UNSUPPORTED, "E4M3 is for compute capability 9.0");
  warpledger_sdpa_problem problem = ProblemOf(60, 60);
  problem.head_dim = 80;
  ExpectRefused(Forward(problem, 0), WARPLEDGER_SDPA_UNSUPPORTED, "head_dim is 64, 128 or 256");
  runtime_.device = 4;
  ExpectRefused(Forward(ProblemOf(60, 60), 0), WARPLEDGER_SDPA_UNSUPPORTED,
                "the current GPU has compute capability 7.5; these kernels are for 8.0 and newer");
}

class CallsOfAUser : public Calls {
 protected:
  // What describe() returns and says, where the environment has `kernels`.
  std::pair<int, std::string> Said(const char* kernels, const warpledger_sdpa_problem& problem) {
    setenv("WARPLEDGER_SDPA_KERNELS", kernels, 1);
    warpledger_sdpa_choice choice;
    const int status = Describe(problem, &choice);
    unsetenv("WARPLEDGER_SDPA_KERNELS");
    return {status, status == WARPLEDGER_SDPA_OK ? choice.kernel : warpledger_sdpa_last_error()};
  }
};

// Each with lengths of its own, since a call that was made before is looked up.
TEST_F(CallsOfAUser, TakeTheKernelsThatTheEnvironmentNames) {
  using Says = std::pair<int, std::string>;
  EXPECT_EQ(Said("mma", ProblemOf(2000, 2001)), Says(WARPLEDGER_SDPA_OK, "tiled_mma"));
  EXPECT_EQ(Said("mma:split_mma", ProblemOf(2000, 2002)), Says(WARPLEDGER_SDPA_OK, "split_mma"));
  EXPECT_EQ(Said("split_wgmma", ProblemOf(2000, 2003)), Says(WARPLEDGER_SDPA_OK, "split_wgmma"));
  EXPECT_EQ(Said("", ProblemOf(2000, 2004)),
            Says(WARPLEDGER_SDPA_OK, "pipelined_two_warpgroups_reread"));
  const auto [status, why] = Said("wgmma", ProblemOf(2000, 2005));
  EXPECT_EQ(status, WARPLEDGER_SDPA_INVALID);
  EXPECT_THAT(why, HasSubstr("WARPLEDGER_SDPA_KERNELS is 'wgmma'; it may be 'mma', or name one of "
                             "the kernels, pipelined, pipelined_two_warpgroups"));
  warpledger_sdpa_problem wide = ProblemOf(2000, 2006);
  wide.head_dim = 256;
  const auto [none, why_none] = Said("resident", wide);
  EXPECT_EQ(none, WARPLEDGER_SDPA_UNSUPPORTED);
  EXPECT_THAT(why_none, EndsWith("WARPLEDGER_SDPA_KERNELS allows resident alone"));
}

}  // namespace
}  // namespace warpledger::sdpa
