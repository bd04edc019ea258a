// SPDX-License-Identifier: Apache-2.0
// Calls of the C interface up to the launch: the runtime is a stand-in that has one GPU of
// compute capability 9.0, and instances record what they were launched with. No GPU needed.

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/library/library_instances.h"
#include "kernels/sdpa/library/warpledger_sdpa.h"
#include "kernels/sdpa/rules/families.h"

namespace {

struct Runtime {
  cudaError_t load = cudaSuccess;
  int questions = 0;  // about the GPU: a call that is looked up asks none
  int launches = 0;
  std::vector<std::string> loaded;  // of what is launched beside an instance's kernel
};
Runtime runtime;

}  // namespace

extern "C" {
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  ++runtime.questions;
  *value = attribute == cudaDevAttrComputeCapabilityMajor   ? 9
           : attribute == cudaDevAttrComputeCapabilityMinor ? 0
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
                        [](const KernelInstance&, const ForwardParams&, unsigned,
                           const LaunchMemory*, cudaStream_t) {
                          ++runtime.launches;
                          return cudaSuccess;
                        }});
      }
    };
    for (const LibraryKernel& kernel : kLibraryKernels) {
      add(kernel, BuiltForLibrary(kernel));
      if (HasClusterForm(kernel)) add(kernel, ClusterForm(kernel));
    }
    return made;
  }();
  return instances;
}

namespace {

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

}  // namespace
}  // namespace warpledger::sdpa
