// SPDX-License-Identifier: Apache-2.0
// One set of a study's inputs and outputs in a piece of memory, as a call gets them.
//
// Each tensor lies between guard bands of NaN. Outputs are poisoned before each checked call: an
// element that a kernel does not write fails, and so does a write outside, or into an input.
//
//   ASSIGN_OR_RETURN(const auto set, StudyBuffers::Create(memory, layout, parameters, inputs));
//   RETURN_IF_ERROR(set->Poison(0xff));

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ablations/plan/rig.h"
#include "ablations/subjects/study/data.h"
#include "ablations/subjects/study/expression.h"
#include "ablations/subjects/study/include/warpledger/study.h"
#include "ablations/subjects/study/rig/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// The tensors of a study on a problem.
struct StudyLayout {
  std::vector<SizedTensor> inputs;
  std::vector<SizedTensor> outputs;
  int64_t workspace_bytes = 0;
  Parameters parameters;
};

// What a call left.
struct StudyOutput {
  std::vector<std::vector<std::byte>> tensors;
  bool guards_intact = false;
  bool inputs_intact = false;
};

class StudyBuffers {
 public:
  static absl::StatusOr<std::unique_ptr<StudyBuffers>> Create(
      const Memory& memory, const StudyLayout& layout,
      const std::vector<std::vector<std::byte>>& inputs);

  // Fills outputs, and what lies around them, with a byte. Inputs are as they were made, whatever
  // was written into them.
  absl::Status Poison(unsigned char byte);
  absl::Status RestoreInputs();
  // Of a set that was poisoned with the byte.
  absl::StatusOr<StudyOutput> ReadBack(unsigned char byte) const;
  WarpledgerCall CallOn(Stream stream) const;

 private:
  struct Piece {
    size_t offset = 0;
    size_t bytes = 0;
  };

  StudyBuffers() = default;

  std::unique_ptr<MemoryBlock> block_;
  std::vector<std::byte> initial_;  // of the inputs and what lies around them
  std::vector<Piece> inputs_;
  std::vector<Piece> outputs_;
  Piece workspace_;
  size_t outputs_begin_ = 0;
  size_t outputs_end_ = 0;
  std::vector<const char*> names_;
  std::vector<long long> values_;
  std::vector<const void*> input_pointers_;
  std::vector<void*> output_pointers_;
};

}  // namespace warpledger::ablations
