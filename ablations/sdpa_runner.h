// One problem on the GPU: input sets, guarded outputs, launches, checks.
//
// O and LSE lie between guard bands. Before each checked run, outputs and bands
// are poisoned with NaN: an element that a kernel does not write fails, and so
// does a write outside.

#ifndef WARPLEDGER_ABLATIONS_SDPA_RUNNER_H_
#define WARPLEDGER_ABLATIONS_SDPA_RUNNER_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "ablations/correctness.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/common/device.h"
#include "kernels/sdpa/launch.h"
#include "kernels/sdpa/problem.h"
#include "kernels/sdpa/reference.h"

namespace warpledger::ablations {

struct RunOutput {
  std::vector<sdpa::Fp16> out;
  std::vector<float> lse;
  bool guards_intact = false;
};

struct CheckOutcome {
  Accuracy accuracy;
  bool guards_intact = false;
  bool bit_identical = false;
  bool correct = false;
  std::string reason;
};

class SdpaRunner {
 public:
  // Copies every input set to the GPU. InvalidArgument for a shape without a
  // kernel, ResourceExhausted for too little memory.
  static absl::StatusOr<SdpaRunner> Create(const sdpa::Problem& problem,
                                           absl::Span<const sdpa::Inputs> sets);

  // Launches on input set `set`, asynchronously; O and LSE go to its outputs.
  absl::Status Launch(const sdpa::KernelInstance& instance, int set, cudaStream_t stream) const;
  // Poisons, launches, waits and reads back.
  absl::StatusOr<RunOutput> Run(const sdpa::KernelInstance& instance, int set);
  // Runs twice and judges accuracy, guard bands and bit-equal repetition. An
  // error status means that the kernel could not be run at all.
  absl::StatusOr<CheckOutcome> Check(const sdpa::KernelInstance& instance, int set,
                                     const sdpa::Reference& reference);

  int sets() const { return static_cast<int>(sets_.size()); }
  const sdpa::Problem& problem() const { return problem_; }

 private:
  struct DeviceSet {
    DeviceBuffer q, k, v;
    DeviceBuffer out;  // guard, O, guard, LSE, guard
  };

  SdpaRunner() = default;
  size_t OutOffset() const;
  size_t LseOffset() const;
  size_t OutputBytes() const;

  sdpa::Problem problem_;
  DeviceFacts device_;
  std::vector<DeviceSet> sets_;
};

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SDPA_RUNNER_H_
