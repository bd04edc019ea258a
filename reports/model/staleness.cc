// SPDX-License-Identifier: Apache-2.0
#include "reports/model/staleness.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "kernels/sdpa/dtype/dtype_name.h"
#include "kernels/sdpa/registry/variant.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using State = Staleness::State;

// More names than these hide the sentence that they stand in.
constexpr size_t kMostNames = 8;

sdpa::Dtype DtypeOf(std::string_view name) {
  for (const sdpa::Dtype dtype : sdpa::kDtypes) {
    if (sdpa::DtypeName(dtype) == name) return dtype;
  }
  return sdpa::Dtype::kFp16;
}

std::vector<Staleness::Instance> CompareCode(const MadeOf& record, const TreeCode& tree) {
  std::vector<Staleness::Instance> out;
  const bool all_known =
      std::all_of(record.kernels.begin(), record.kernels.end(),
                  [](const TimedKernel& kernel) { return !kernel.code_sha256.empty(); });
  if (!all_known || !tree.Covers(record.compute_capability)) return out;
  // A record's arms may share an instance, at one shape or many.
  std::map<std::pair<std::string, std::string>, size_t> seen;
  for (const TimedKernel& kernel : record.kernels) {
    const std::array<std::string, 2> names =
        sdpa::InstanceNames(kernel.config, static_cast<int>(kernel.head_dim), kernel.causal,
                            DtypeOf(kernel.dtype), kernel.projected);
    const TreeCode::Instance* now = tree.Find(record.compute_capability, names);
    // Two kernels of the record may be one instance now, or the other way round.
    const std::string& name = now == nullptr ? names[0] : now->first;
    const auto [at, is_new] = seen.emplace(std::pair(name, kernel.code_sha256), out.size());
    if (is_new) {
      const size_t suffix = std::min(name.find('@'), name.size());
      out.push_back({.name = kernel.arm + name.substr(suffix),
                     .arms = {},
                     .state = now == nullptr                      ? State::kGone
                              : now->second == kernel.code_sha256 ? State::kSame
                                                                  : State::kChanged});
    }
    AddOnce(kernel.arm, &out[at->second].arms);
  }
  return out;
}

std::string WhichChanged(const std::vector<Staleness::Instance>& instances) {
  std::vector<std::string> names;
  int64_t changed = 0;
  for (const Staleness::Instance& instance : instances) {
    if (instance.state == State::kSame) continue;
    ++changed;
    if (names.size() == kMostNames) continue;
    names.push_back(Cat(Code(instance.name), instance.state == State::kGone ? " (gone)" : ""));
  }
  const auto all = static_cast<int64_t>(instances.size());
  if (changed == all && all > 1)
    return Cat("the machine code of all its ", all, " instances changed");
  if (changed > static_cast<int64_t>(names.size())) {
    names.push_back(Cat(changed - static_cast<int64_t>(names.size()), " more"));
  }
  return Cat("the machine code of ", changed, " of its ", Count(all, "instance"),
             " changed: ", JoinWords(names));
}

}  // namespace

bool Staleness::IsStale() const {
  if (instances.empty()) return sources_changed || registry_changed;
  return std::any_of(instances.begin(), instances.end(),
                     [](const Instance& instance) { return instance.state != State::kSame; });
}

bool Staleness::IsStaleFor(absl::Span<const std::string> arms) const {
  if (instances.empty()) return IsStale();
  return std::any_of(instances.begin(), instances.end(), [&](const Instance& instance) {
    return instance.state != State::kSame &&
           std::find_first_of(instance.arms.begin(), instance.arms.end(), arms.begin(),
                              arms.end()) != instance.arms.end();
  });
}

Staleness CompareWithTree(const MadeOf& record, const RenderOptions& options) {
  Staleness out;
  out.sources_changed = !options.kernel_source_sha256.empty() &&
                        options.kernel_source_sha256 != record.kernel_source_sha256;
  out.registry_changed =
      !options.registry_sha256.empty() && options.registry_sha256 != record.registry_sha256;
  out.instances = CompareCode(record, options.tree_code);
  if (!out.instances.empty() && !record.nvcc.empty() && record.nvcc != options.tree_code.nvcc()) {
    out.nvcc_then = record.nvcc;
    out.nvcc_now = options.tree_code.nvcc();
  }
  return out;
}

Staleness StalenessOf(const Summary& summary, const RenderOptions& options) {
  // Sources and kernels that it could be older than are attention's.
  if (summary.provenance.SubjectName() != ablations::kFirstSubject) return {};
  MadeOf record = {.kernel_source_sha256 = summary.provenance.kernel_source_sha256,
                   .registry_sha256 = summary.provenance.registry_sha256,
                   .nvcc = summary.provenance.toolchain.nvcc,
                   .compute_capability = summary.provenance.gpu.compute_capability,
                   .kernels = {}};
  for (const Cell& cell : summary.cells) {
    if (!cell.p50_us.value) continue;
    const Shape* shape =
        FindIn(summary.shapes, [&](const Shape& s) { return s.name == cell.shape; });
    if (shape == nullptr) continue;  // the judge makes none
    record.kernels.push_back({.arm = cell.variant,
                              .config = cell.config,
                              .head_dim = shape->attention->head_dim,
                              .causal = shape->attention->causal,
                              .dtype = shape->attention->dtype,
                              .projected = shape->attention->projected(),
                              .code_sha256 = cell.code_sha256.value_or("")});
  }
  return CompareWithTree(record, options);
}

std::string WhatChanged(const Staleness& staleness) {
  if (staleness.instances.empty()) {
    std::vector<std::string> changed;
    if (staleness.sources_changed) changed.emplace_back("the kernels' sources");
    if (staleness.registry_changed) changed.emplace_back("the registry of toggles");
    return Cat(JoinWords(changed), " changed");
  }
  std::string out = WhichChanged(staleness.instances);
  if (!staleness.nvcc_then.empty()) {
    Append(&out, " (compiled by nvcc ", staleness.nvcc_then, " then, by ", staleness.nvcc_now,
           " now)");
  }
  return out;
}

std::string HarmlessChanges(const Staleness& staleness) {
  if (staleness.instances.empty()) return "";
  std::string out;
  if (staleness.sources_changed && !staleness.IsStale()) {
    const auto all = static_cast<int64_t>(staleness.instances.size());
    Append(&out, "Sources changed after this record, but the machine code of ",
           all == 1 ? "its instance" : Cat("all its ", all, " instances"),
           " is the same; launches (grids, tensor maps) are not compared.");
  }
  if (staleness.registry_changed) {
    Append(&out, out.empty() ? "" : " ",
           "The registry of toggles changed after this record; claims, predictions and gates are "
           "today's.");
  }
  return out;
}

}  // namespace warpledger::report
