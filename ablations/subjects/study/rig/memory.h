// SPDX-License-Identifier: Apache-2.0
// The memory that a study's kernels work on: the GPU's, or the host's.
//
// Errors: ResourceExhausted where there is too little; Internal where work before failed.

#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

// Aligned to 256 bytes, freed with the object. Copies wait until they are done.
class MemoryBlock {
 public:
  virtual ~MemoryBlock() = default;
  virtual std::byte* data() const = 0;
  virtual absl::Status CopyIn(absl::Span<const std::byte> from, size_t offset) = 0;
  virtual absl::Status CopyOut(absl::Span<std::byte> to, size_t offset) const = 0;
};

class Memory {
 public:
  virtual ~Memory() = default;
  virtual absl::StatusOr<std::unique_ptr<MemoryBlock>> Allocate(size_t bytes) const = 0;
  virtual absl::Status WaitForWork() const = 0;
};

std::unique_ptr<Memory> HostMemory();

}  // namespace warpledger::ablations
