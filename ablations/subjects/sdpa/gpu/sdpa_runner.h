// SPDX-License-Identifier: Apache-2.0
// One problem on the GPU: input sets, guarded outputs, launches, checks.
//
// O and LSE lie between guard bands, and so does each of Q, K and V. Before each
// checked run, outputs and their bands are poisoned with NaN: an element that a
// kernel does not write fails, and so does a write outside. The inputs' bands are
// NaN throughout: a value read outside of them poisons what is computed from it.

#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/correctness.h"
#include "ablations/subjects/sdpa/planted_faults.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/common/device.h"
#include "kernels/sdpa/launch/launch.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/reference.h"
#include "kernels/sdpa/rules/families.h"

namespace warpledger::ablations {

struct RunOutput {
  std::vector<sdpa::Bits16> out;  // of the problem's dtype; where O is codes, what they stand for
  std::vector<float> lse;
  bool guards_intact = false;
};

// Whether O and LSE are equal bit by bit.
bool SameBits(const RunOutput& a, const RunOutput& b);

struct CheckOutcome {
  Accuracy accuracy;
  bool guards_intact = false;
  bool bit_identical = false;
  bool correct = false;
  std::string reason;
};

class SdpaRunner {
 public:
  // Copies every input set to the GPU; beyond them, up to `rotation` sets in all,
  // copies of the same data at other addresses. InvalidArgument for a shape
  // without a kernel, ResourceExhausted for too little memory.
  static absl::StatusOr<SdpaRunner> Create(const sdpa::Problem& problem,
                                           absl::Span<const sdpa::Inputs> sets, int rotation = 0);

  // From now on each launch is followed by one that commits this fault.
  void PlantFault(Fault fault) { fault_ = fault; }

  // Makes what kernels of this configuration read K and V as, in every set, unless it is
  // there. Takes seconds for large shapes; Run does it too.
  absl::Status AddStorage(const sdpa::Config& config);

  // Launches on input set `set`, asynchronously; O and LSE go to its outputs. How, the
  // launch-side toggles of `arm` say. Where there is none, all of them are off, but that
  // what stands in front of attention is our own and needs no library.
  // FailedPrecondition where AddStorage was not called for such a configuration.
  absl::Status Launch(const sdpa::KernelInstance& instance, int set, cudaStream_t stream,
                      const sdpa::Config* arm = nullptr) const;
  // A plain read of the K and V of input set `set`, in place of a kernel that needs them.
  absl::Status LaunchReadOfKv(int set, cudaStream_t stream) const;
  // Poisons, launches, waits and reads back.
  absl::StatusOr<RunOutput> Run(const sdpa::KernelInstance& instance, int set,
                                const sdpa::Config* arm = nullptr);
  // The parts of Run, for work that another launches: Poison waits until the
  // GPU is idle; ReadBack takes what a kernel of this configuration left in the outputs.
  absl::Status Poison(int set);
  absl::StatusOr<RunOutput> ReadBack(int set, const sdpa::Config& config) const;
  // Runs twice and judges accuracy, guard bands and bit-equal repetition. An
  // error status means that the kernel could not be run at all.
  absl::StatusOr<CheckOutcome> Check(const sdpa::KernelInstance& instance, int set,
                                     const sdpa::Reference& reference,
                                     const sdpa::Config* arm = nullptr);

  // Holds what `replay` leaves in every set's outputs against an eager run of the
  // same kernel, bit by bit; outputs are poisoned before. `replay` must wait until
  // its work is done. The outcome's errors are the largest differences from the
  // eager run, their limits 0.
  absl::StatusOr<CheckOutcome> CheckReplay(const sdpa::KernelInstance& instance,
                                           absl::FunctionRef<absl::Status()> replay,
                                           const sdpa::Config* arm = nullptr);

  int sets() const { return static_cast<int>(sets_.size()); }
  const sdpa::Problem& problem() const { return problem_; }

 private:
  // K and V in 8 bits, perhaps Q, and their scales.
  struct QuantisedKv {
    DeviceBuffer kv;        // guard, K, guard, V, guard
    DeviceBuffer scales;    // guard, K's, guard, V's, guard
    DeviceBuffer q;         // guard, Q, guard; empty where it is not quantised
    DeviceBuffer q_scales;  // guard, Q's, guard; the same
    DeviceBuffer o_scale;   // guard, the scale of O where it is codes, guard; the same
    int64_t scales_of_k = 0;
    int scale_stride = 1;
    float out_scale = 0;  // what o_scale holds
  };
  struct DeviceSet {
    DeviceBuffer q;    // guard, values, guard
    DeviceBuffer kv;   // guard, K, guard, V, guard: one window of L2 spans both
    DeviceBuffer out;  // guard, O, guard, LSE, guard
    std::vector<std::pair<sdpa::KvStorage, QuantisedKv>> quantised;
    // Of a problem that begins with x, in place of Q, K and V.
    DeviceBuffer source;     // guard, x, guard, gamma, guard, beta, guard, W, guard
    DeviceBuffer projected;  // what goes between kernels: guard, layernorm(x), guard, Q K V, guard
  };

  SdpaRunner() = default;
  // Launches what stands in front of attention in kernels of its own, and points `params`
  // to what it leaves.
  absl::Status LaunchInFront(const DeviceSet& set, const sdpa::Config& compiled,
                             const sdpa::Config* arm, cudaStream_t stream,
                             sdpa::ProjectionParams* params) const;
  const std::byte* Keys(const DeviceSet& set) const;
  const std::byte* Values(const DeviceSet& set) const;
  // Launches with K and V, which lie in [begin, end), in a persisting window of L2.
  static absl::Status LaunchInWindow(const void* begin, const std::byte* end, cudaStream_t stream,
                                     absl::FunctionRef<absl::Status()> launch);
  // Run without its last part.
  absl::Status Compute(const sdpa::KernelInstance& instance, int set, const sdpa::Config* arm);
  // Of the outputs of set `set`, or a copy of them.
  absl::Status ReadOutputs(const DeviceBuffer& out, int set, const sdpa::Config& config,
                           RunOutput* result) const;
  absl::Status ReadCodes(const DeviceBuffer& out, float scale,
                         std::vector<sdpa::Bits16>* values) const;
  absl::StatusOr<const QuantisedKv*> StorageOf(const DeviceSet& set,
                                               const sdpa::Config& config) const;
  // Keeps what set `set` holds, computes it once more, and says whether the two are equal bit
  // by bit, bands too, and those untouched; found out on the GPU, for an output may be large.
  absl::StatusOr<bool> Repeats(const sdpa::KernelInstance& instance, int set,
                               const sdpa::Config* arm, const DeviceBuffer& kept);
  size_t OutOffset() const;
  size_t LseOffset() const;
  size_t OutputBytes() const;
  size_t OutEnd(const sdpa::Config& config) const;
  // Of the outputs' guards: first byte, and the one behind the last.
  std::array<std::pair<size_t, size_t>, 3> Bands(const sdpa::Config& config) const;

  sdpa::Problem problem_;
  DeviceFacts device_;
  std::vector<DeviceSet> sets_;
  RunOutput checked_;  // of the last check; kept, for new pages of 64 MiB take longer than a copy
  Fault fault_ = Fault::kNone;
};

}  // namespace warpledger::ablations
