// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/rig/buffers.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

// As wide as those of attention (sdpa_runner.cc).
constexpr size_t kGuardBytes = 32 * 1024;
constexpr unsigned char kInputGuard = 0xff;  // NaN in every float type
constexpr size_t kAlignment = 256;

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

absl::StatusOr<std::unique_ptr<StudyBuffers>> StudyBuffers::Create(
    const Memory& memory, const StudyLayout& layout,
    const std::vector<std::vector<std::byte>>& inputs) {
  auto made = std::unique_ptr<StudyBuffers>(new StudyBuffers());
  size_t end = kGuardBytes;
  const auto place = [&](int64_t bytes) {
    const Piece piece = {end, static_cast<size_t>(bytes)};
    end += RoundUp(piece.bytes) + kGuardBytes;
    return piece;
  };
  for (const SizedTensor& tensor : layout.inputs) made->inputs_.push_back(place(tensor.bytes()));
  made->outputs_begin_ = end;
  end += kGuardBytes;
  for (const SizedTensor& tensor : layout.outputs) made->outputs_.push_back(place(tensor.bytes()));
  made->outputs_end_ = end;
  made->workspace_ = place(layout.workspace_bytes);
  ASSIGN_OR_RETURN(made->block_, memory.Allocate(end));
  made->initial_.assign(made->outputs_begin_, std::byte{kInputGuard});
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::copy(inputs[i].begin(), inputs[i].end(),
              made->initial_.begin() + static_cast<std::ptrdiff_t>(made->inputs_[i].offset));
  }
  RETURN_IF_ERROR(made->Poison(kInputGuard));
  for (const auto& [name, value] : layout.parameters) {
    made->names_.push_back(name.c_str());
    made->values_.push_back(value);
  }
  std::byte* data = made->block_->data();
  for (const Piece& piece : made->inputs_) made->input_pointers_.push_back(data + piece.offset);
  for (const Piece& piece : made->outputs_) made->output_pointers_.push_back(data + piece.offset);
  return made;
}

absl::Status StudyBuffers::RestoreInputs() { return block_->CopyIn(initial_, 0); }

absl::Status StudyBuffers::Poison(unsigned char byte) {
  RETURN_IF_ERROR(RestoreInputs());
  const std::vector<std::byte> poison(outputs_end_ - outputs_begin_, std::byte{byte});
  return block_->CopyIn(poison, outputs_begin_);
}

absl::StatusOr<StudyOutput> StudyBuffers::ReadBack(unsigned char byte) const {
  std::vector<std::byte> all(outputs_end_);
  RETURN_IF_ERROR(block_->CopyOut(absl::MakeSpan(all), 0));
  StudyOutput out;
  out.inputs_intact = std::memcmp(all.data(), initial_.data(), initial_.size()) == 0;
  out.guards_intact = true;
  size_t band = outputs_begin_;
  const auto check_band = [&](size_t end) {
    out.guards_intact =
        out.guards_intact && std::all_of(all.data() + band, all.data() + end,
                                         [&](std::byte each) { return each == std::byte{byte}; });
  };
  for (const Piece& piece : outputs_) {
    check_band(piece.offset);
    band = piece.offset + piece.bytes;
    out.tensors.emplace_back(all.data() + piece.offset, all.data() + band);
  }
  check_band(outputs_end_);
  return out;
}

WarpledgerCall StudyBuffers::CallOn(Stream stream) const {
  return {.version = WARPLEDGER_STUDY_VERSION,
          .parameter_count = static_cast<int>(names_.size()),
          .parameter_names = names_.data(),
          .parameter_values = values_.data(),
          .inputs = input_pointers_.data(),
          .outputs = output_pointers_.data(),
          .workspace = workspace_.bytes == 0 ? nullptr : block_->data() + workspace_.offset,
          .workspace_bytes = workspace_.bytes,
          .stream = stream};
}

}  // namespace warpledger::ablations
