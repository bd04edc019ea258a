// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/sdpa/emulated/emulated_kernel.h"

// Device code, behind what it needs on the CPU.
// clang-format off
#include "tests/emulation/cuda_on_cpu.h"
#include "kernels/sdpa/shared/sequences/sequence_plan.cuh"
// clang-format on

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/correctness.h"
#include "absl/strings/str_cat.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/problem/kv_quantise.h"
#include "kernels/sdpa/problem/reference.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/shared/kernel_instance.h"
#include "kernels/sdpa/wgmma/join/join_kernel.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "tests/emulation/runtime_on_cpu.cuh"
#include "tests/kernels/sdpa/emulated/emulated_call.h"

namespace warpledger::sdpa {

// --- The kernels around a family's own, whose host code nvcc alone takes ------------------

template <int kHeadDim, bool kBf16, int kMost = kLeastJoinCapacity>
cudaError_t Join(const JoinParams& params) {
  if constexpr (kMost < kMaxJoinSplits) {
    if (JoinCapacity(params.splits) > kMost) return Join<kHeadDim, kBf16, 2 * kMost>(params);
  }
  emulation::RunCtas(
      {.ctas = static_cast<unsigned>(params.rows),
       .threads = JoinThreads(kHeadDim, kMost),
       .smem_bytes = JoinSmemBytes(kHeadDim, kMost)},
      [&] { JoinRow<kHeadDim, kBf16, kMost>(params, emulation::current->cta->smem); });
  return cudaSuccess;
}
cudaError_t LaunchJoin(const JoinParams& params, int head_dim, bool bf16, bool, cudaStream_t) {
  switch (head_dim) {
    case 64:
      return bf16 ? Join<64, true>(params) : Join<64, false>(params);
    case 128:
      return bf16 ? Join<128, true>(params) : Join<128, false>(params);
    default:
      return bf16 ? Join<256, true>(params) : Join<256, false>(params);
  }
}
cudaError_t LaunchSequencePlan(const SequencePlanParams& params, cudaStream_t) {
  SequencePlanSmem smem;
  emulation::RunCtas({.threads = kPlanThreads}, [&] { ListSequenceBlocks(params, smem); });
  return cudaSuccess;
}

namespace {

// --- One kernel with its memory --------------------------------------------------------

class Launcher {
 public:
  Launcher(const EmulatedKernel& kernel, const Order& order)
      : config_(kernel.config),
        kernel_{kernel.body, emulation::Memory(WorkspaceBytes())},
        partials_(emulation::Memory(WorkspaceBytes() + kPlanBytes)) {
    // Of floats NaN, of numbers of blocks too many.
    std::memset(partials_.data(), 0xff, partials_.size() * sizeof(partials_[0]));
    emulation::device.copies = order.copies;
    emulation::device.reversed = order.reversed;
    // Few, so that each has several tiles of queries; or enough to share a tile's keys.
    emulation::device.sm_count = config_.wgmma_split_kv || config_.mma_split_kv ? 16 : 3;
  }
  // memory: null for the instance's own; else its addresses are set.
  cudaError_t Run(LaunchParams call, LaunchMemory* memory) {
    const KernelInstance instance = {config_, &code_, LaunchOf(FamilyOf(config_))};
    call.query_tiles = (call.seq_q + GeometryOf(config_).tile_m - 1) / GeometryOf(config_).tile_m;
    const int ctas = call.query_tiles * call.heads_q * call.batch;
    if (memory != nullptr) {
      memory->counters = reinterpret_cast<std::byte*>(counters_.data());
      memory->partials = reinterpret_cast<std::byte*>(partials_.data());
    }
    return instance.launch(instance, call, static_cast<unsigned>(ctas), memory, nullptr);
  }
  bool CountersAreZero() const { return counters_ == std::vector<uint32_t>(counters_.size()); }

 private:
  static constexpr size_t kPlanBytes = 4096;
  size_t WorkspaceBytes() const {
    switch (FamilyOf(config_)) {
      case Family::kMma:
        return WorkspaceOf(MmaShapeOf(config_)).bytes;
      case Family::kWgmma:
        return WorkspaceOf(WgmmaShapeOf(config_)).bytes;
      default:
        return 0;
    }
  }
  static decltype(KernelInstance::launch) LaunchOf(Family family) {
    switch (family) {
      case Family::kSmem:
        return &LaunchSmem;
      case Family::kMma:
        return &LaunchMma;
      case Family::kWgmma:
        return &LaunchWgmma;
      default:
        return &LaunchResident;
    }
  }

  Config config_;
  emulation::OnCpu kernel_;
  KernelCode code_{"kernel", &kernel_};
  std::vector<uint32_t> counters_ = std::vector<uint32_t>(kCounterBytes / sizeof(uint32_t));
  std::vector<emulation::Memory16> partials_;
};

// 8-bit elements where 16-byte copies find them.
std::vector<emulation::Memory16> Aligned(const std::vector<uint8_t>& codes) {
  std::vector<emulation::Memory16> aligned = emulation::Memory(codes.size());
  std::memcpy(aligned.data(), codes.data(), codes.size());
  return aligned;
}

// O as codes of E4M3, between bands.
class CodesOut {
 public:
  CodesOut(const Problem& problem, const TensorStrides& strides)
      : problem_(problem), strides_(strides), memory_(emulation::Memory(AllBytes())) {
    Poison();
  }
  uint8_t* data() { return bytes() + kBand; }
  void Poison() { std::memset(bytes(), kNan, AllBytes()); }
  // Of what no row has, between rows too.
  bool IntactAround() {
    std::vector<bool> is_row(AllBytes());
    ForRows([&](size_t at) {
      std::fill_n(is_row.begin() + static_cast<ptrdiff_t>(kBand + at), problem_.head_dim, true);
    });
    for (size_t at = 0; at < is_row.size(); ++at) {
      if (!is_row[at] && bytes()[at] != kNan) return false;
    }
    return true;
  }
  // What the codes stand for, in fp16.
  std::vector<Bits16> Values(float scale) {
    std::vector<Bits16> values;
    ForRows([&](size_t at) {
      for (int d = 0; d < problem_.head_dim; ++d) {
        values.push_back(FromFloat(Dtype::kFp16,
                                   scale * Fp8ToFloat(kE4m3, data()[at + static_cast<size_t>(d)])));
      }
    });
    return values;
  }

 private:
  static constexpr size_t kBand = 4096;
  static constexpr uint8_t kNan = 0xff;

  template <typename Visit>
  void ForRows(const Visit& visit) const {
    for (int batch = 0; batch < problem_.batch; ++batch) {
      for (int head = 0; head < problem_.heads_q; ++head) {
        for (int row = 0; row < problem_.seq_q; ++row) {
          visit(static_cast<size_t>(batch * strides_.batch + head * strides_.head +
                                    row * strides_.row));
        }
      }
    }
  }
  size_t AllBytes() const {
    return 2 * kBand + static_cast<size_t>(problem_.batch * strides_.batch);
  }
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(memory_.data()); }

  Problem problem_;
  TensorStrides strides_;
  std::vector<emulation::Memory16> memory_;
};

// (batch, seq, heads + gap, head_dim): heads of nobody's are behind each row.
TensorStrides RowsWithGaps(int heads, int seq, int head_dim, int gap) {
  const int64_t row = int64_t{heads + gap} * head_dim;
  return {seq * row, head_dim, row};
}
TensorLayouts LayoutsOf(const Config& config, const Problem& p, LaunchedBy launched_by) {
  TensorLayouts layouts = ContiguousLayouts(p, p.head_dim);
  if (launched_by != LaunchedBy::kLibrary) return layouts;
  if (config.strided || KvStorageOf(config).output) {
    layouts.o = RowsWithGaps(p.heads_q, p.seq_q, p.head_dim, 1);
  }
  if (config.strided) {
    layouts.q = RowsWithGaps(p.heads_q, p.seq_q, p.head_dim, 2);
    layouts.k = RowsWithGaps(p.heads_kv, p.seq_kv, p.head_dim, 1);
    layouts.v = RowsWithGaps(p.heads_kv, p.seq_kv, p.head_dim, 3);
  }
  return layouts;
}

// A tensor's rows, which lie by their strides among NaN.
class Rows {
 public:
  Rows(int batch, int heads, int seq, int head_dim, const TensorStrides& strides)
      : tensor_(static_cast<size_t>(batch * strides.batch)), head_dim_(head_dim) {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t row = 0; row < seq; ++row) {
          begins_.push_back(b * strides.batch + h * strides.head + row * strides.row);
        }
      }
    }
    Clear();
  }
  // `values` are (batch, heads, seq, head_dim).
  Rows& operator=(const std::vector<Bits16>& values) {
    for (size_t i = 0; i < begins_.size(); ++i) {
      std::copy_n(values.data() + i * static_cast<size_t>(head_dim_), head_dim_,
                  tensor_.data() + begins_[i]);
    }
    return *this;
  }
  void Clear() { std::fill_n(tensor_.data(), tensor_.values().size(), kNan); }
  std::vector<Bits16> values() {
    std::vector<Bits16> values;
    for (const int64_t begin : begins_) {
      values.insert(values.end(), tensor_.data() + begin, tensor_.data() + begin + head_dim_);
    }
    return values;
  }
  // Of what no row has, between rows too.
  bool IntactAround() const {
    std::vector<Bits16> left = tensor_.values();
    for (const int64_t begin : begins_) std::fill_n(left.data() + begin, head_dim_, kNan);
    return tensor_.IntactAround() &&
           std::all_of(left.begin(), left.end(), [](Bits16 x) { return x == kNan; });
  }
  Tensor& tensor() { return tensor_; }

 private:
  static constexpr Bits16 kNan = 0x7fff;  // of both dtypes
  Tensor tensor_;
  int head_dim_;
  std::vector<int64_t> begins_;
};

std::string Judge(const Reference& reference, const std::vector<Bits16>& out,
                  const std::vector<float>& lse, double lse_allowance) {
  const ablations::Accuracy accuracy = ablations::JudgeAccuracy(reference, out, lse, lse_allowance);
  return accuracy.correct ? "" : accuracy.reason;
}

std::string WhyWrong(const EmulatedKernel& kernel, const Problem& problem, const Inputs& inputs,
                     const Reference& reference, LaunchedBy launched_by, const Order& order) {
  const KvStorage storage = KvStorageOf(kernel.config);
  Launcher launcher(kernel, order);
  LaunchMemory memory;
  memory.layouts = LayoutsOf(kernel.config, problem, launched_by);
  const auto rows_of = [&](int heads, int seq, const TensorStrides& strides) {
    return Rows(problem.batch, heads, seq, problem.head_dim, strides);
  };
  Rows q = rows_of(problem.heads_q, problem.seq_q, memory.layouts.q);
  Rows k = rows_of(problem.heads_kv, problem.seq_kv, memory.layouts.k);
  Rows v = rows_of(problem.heads_kv, problem.seq_kv, memory.layouts.v);
  Rows out = rows_of(problem.heads_q, problem.seq_q, memory.layouts.o);
  q = inputs.q;
  k = inputs.k;
  v = inputs.v;
  std::vector<float> lse(static_cast<size_t>(QueryRows(problem)), NAN);
  LaunchParams call = CallOf(problem, q.tensor(), k.tensor(), v.tensor(), out.tensor(), lse);
  std::vector<emulation::Memory16> codes[3];
  CodesOut codes_out(problem, memory.layouts.o);
  std::vector<float> scales[2];
  if (storage.quantised) {
    const QuantisedKv& in = *inputs.quantised;
    if (in.q) {
      codes[0] = Aligned(in.q->codes);
      call.q = codes[0].data();
      call.q_scales = in.q->scales.data();
    }
    codes[1] = Aligned(in.k.codes);
    codes[2] = Aligned(in.v.codes);
    call.k = codes[1].data();
    call.v = codes[2].data();
    const bool per_block = storage.scheme.scope == ScaleScope::kBlock;
    if (launched_by == LaunchedBy::kDesign) {
      scales[0] = LaunchScales(in.k, storage.scheme.scope);
      scales[1] = LaunchScales(in.v, storage.scheme.scope);
      call.kv_scale_stride = LaunchScaleStride(in.k, storage.scheme.scope);
    } else {
      scales[0] = in.k.scales;
      scales[1] = in.v.scales;
      const auto heads = static_cast<size_t>(problem.batch) * static_cast<size_t>(problem.heads_kv);
      memory.layouts.scales =
          ScaleStrides{1, static_cast<int>(in.k.scales.size() / heads), per_block};
    }
    if (in.out_scale != 0) {
      call.o = codes_out.data();
      call.o_scale = &in.out_scale;
    }
    call.k_scales = scales[0].data();
    call.v_scales = scales[1].data();
  }
  // The second launch finds what the first one left.
  for (int i = 0; i < 2; ++i) {
    out.Clear();
    codes_out.Poison();
    const cudaError_t error =
        launcher.Run(call, launched_by == LaunchedBy::kLibrary ? &memory : nullptr);
    if (error != cudaSuccess) return absl::StrCat("the launch failed with error ", error);
    if (launched_by == LaunchedBy::kLibrary) break;
  }
  if (!launcher.CountersAreZero()) return "a counter is not 0 behind the launch";
  if (!out.IntactAround() || !codes_out.IntactAround()) return "it wrote outside of O";
  const double lse_allowance = LseAllowance(kernel.config, problem.seq_kv);
  const float out_scale = reference.out_scale;
  return Judge(reference, out_scale != 0 ? codes_out.Values(out_scale) : out.values(), lse,
               lse_allowance);
}

}  // namespace

std::string WhyWrong(const EmulatedKernel& kernel, const Problem& problem, InputKind kind,
                     LaunchedBy launched_by) {
  const KvStorage storage = KvStorageOf(kernel.config);
  Inputs inputs = MakeInputs(problem, kind, 3);
  if (storage.quantised) {
    inputs = WithQuantisedKv(problem, std::move(inputs), storage);
  }
  const Reference reference = ComputeReference(problem, inputs);
  for (const Order& order : kOrders) {
    const std::string why = WhyWrong(kernel, problem, inputs, reference, launched_by, order);
    if (!why.empty()) return absl::StrCat(order.name, ": ", why);
  }
  return "";
}

std::string WhyWrongPacked(const EmulatedKernel& kernel) {
  const Config& config = kernel.config;
  const auto head_dim = static_cast<size_t>(config.head_dim);
  constexpr Bits16 kNan = 0x7fff;  // of both dtypes
  struct Sequence {
    Problem problem;
    Inputs inputs = {};
  };
  std::vector<Sequence> sequences;
  std::vector<int> cu_q = {0}, cu_kv = {0};
  std::vector<Bits16> all_q, all_k, all_v;
  for (const auto& [rows, keys] :
       {std::pair{70, 70}, {1, 201}, {0, 5}, {129, 66}, {3, 0}, {64, 190}}) {
    cu_q.push_back(cu_q.back() + rows);
    cu_kv.push_back(cu_kv.back() + keys);
    Sequence sequence = {{.seq_q = rows,
                          .seq_kv = keys,
                          .head_dim = config.head_dim,
                          .causal = config.mask == Mask::kCausal,
                          .dtype = config.dtype}};
    if (rows > 0 && keys > 0) {
      sequence.inputs = MakeInputs(sequence.problem, InputKind::kNormal, 5);
    } else {  // nobody's
      sequence.inputs.q.assign(static_cast<size_t>(rows) * head_dim, kNan);
      sequence.inputs.k.assign(static_cast<size_t>(keys) * head_dim, kNan);
      sequence.inputs.v = sequence.inputs.k;
    }
    const Inputs& in = sequence.inputs;
    all_q.insert(all_q.end(), in.q.begin(), in.q.end());
    all_k.insert(all_k.end(), in.k.begin(), in.k.end());
    all_v.insert(all_v.end(), in.v.begin(), in.v.end());
    sequences.push_back(std::move(sequence));
  }
  for (const Order& order : kOrders) {
    Launcher launcher(kernel, order);
    Tensor q(all_q), k(all_k), v(all_v), out(all_q.size());
    std::vector<float> lse(static_cast<size_t>(cu_q.back()), NAN);
    Problem longest = {.seq_q = 129, .seq_kv = 201, .head_dim = config.head_dim};
    longest.batch = static_cast<int>(sequences.size());
    longest.causal = config.mask == Mask::kCausal;
    const LaunchParams call = CallOf(longest, q, k, v, out, lse);
    LaunchMemory memory;
    const TensorStrides rows_of_one_head = {0, config.head_dim, config.head_dim};
    memory.layouts = {rows_of_one_head, rows_of_one_head, rows_of_one_head, rows_of_one_head};
    memory.layouts.total_q = cu_q.back();
    memory.layouts.total_kv = cu_kv.back();
    memory.cu_seqlens_q = cu_q.data();
    memory.cu_seqlens_kv = cu_kv.data();
    const cudaError_t error = launcher.Run(call, &memory);
    if (error != cudaSuccess) return absl::StrCat("the launch failed with error ", error);
    if (!launcher.CountersAreZero()) return "a counter is not 0 behind the launch";
    if (!out.IntactAround()) return "it wrote outside of O";
    const std::vector<Bits16> values = out.values();
    for (size_t i = 0; i < sequences.size(); ++i) {
      const Problem& problem = sequences[i].problem;
      const std::vector<float> its_lse(lse.begin() + cu_q[i], lse.begin() + cu_q[i + 1]);
      const std::vector<Bits16> its_out(values.begin() + cu_q[i] * config.head_dim,
                                        values.begin() + cu_q[i + 1] * config.head_dim);
      std::string why;
      if (problem.seq_kv == 0) {
        const bool empty =
            std::all_of(its_out.begin(), its_out.end(), [](auto x) { return x == 0; }) &&
            std::all_of(its_lse.begin(), its_lse.end(), [](float x) { return x == -INFINITY; });
        if (!empty) why = "a row without a key is not 0";
      } else if (problem.seq_q > 0) {
        why = Judge(ComputeReference(problem, sequences[i].inputs), its_out, its_lse, 0);
      }
      if (!why.empty()) return absl::StrCat(order.name, ", sequence ", i, ": ", why);
    }
  }
  return "";
}

}  // namespace warpledger::sdpa
