// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>

#include "ablations/subjects/study/rig/memory.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

constexpr size_t kHostAlignment = 256;

class HostBlock final : public MemoryBlock {
 public:
  explicit HostBlock(std::byte* data) : data_(data, &std::free) {}
  std::byte* data() const override { return data_.get(); }
  absl::Status CopyIn(absl::Span<const std::byte> from, size_t offset) override {
    if (!from.empty()) std::memcpy(data() + offset, from.data(), from.size());
    return absl::OkStatus();
  }
  absl::Status CopyOut(absl::Span<std::byte> to, size_t offset) const override {
    if (!to.empty()) std::memcpy(to.data(), data() + offset, to.size());
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<std::byte, decltype(&std::free)> data_;
};

class HostMemoryImpl final : public Memory {
 public:
  absl::StatusOr<std::unique_ptr<MemoryBlock>> Allocate(size_t bytes) const override {
    const size_t rounded = (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
    auto* data = static_cast<std::byte*>(std::aligned_alloc(kHostAlignment, rounded));
    if (data != nullptr) return std::make_unique<HostBlock>(data);
    return absl::ResourceExhaustedError(absl::StrCat("no ", bytes, " bytes of memory"));
  }
  absl::Status WaitForWork() const override { return absl::OkStatus(); }
};

}  // namespace

std::unique_ptr<Memory> HostMemory() { return std::make_unique<HostMemoryImpl>(); }

}  // namespace warpledger::ablations
