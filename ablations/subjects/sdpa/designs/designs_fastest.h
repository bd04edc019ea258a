// SPDX-License-Identifier: Apache-2.0
// The designs that standings rest on, one for each head_dim in fp16 and in FP8, and for bf16 at
// 128: the library's kernels for many rows of queries, and what else was the fastest variant in
// records, or may be. Few arms, to be timed alone (`run --alone`) beside peers that are timed so
// too.
//
// Included by designs.h, at its end.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/designs/design.h"
#include "kernels/sdpa/library/kernels.h"

namespace warpledger::ablations {

// In FP8: the library's kernel, and what may be faster.
inline Design FastestFp8Design(int head_dim) {
  const std::string name = "fastest_fp8_d" + std::to_string(head_dim);
  const std::string late = name + ":late_wait";
  sdpa::Config first = sdpa::kPipelinedE4m3;
  // O by plain stores, then the library's kernel, whose O leaves by TMA.
  if (head_dim == 128) first.tma_store = 0;
  Design design = {.name = name,
                   .label = "the fastest kernels in FP8 for head_dim " + std::to_string(head_dim),
                   .arms = {{late, first}},
                   .head_dims = {head_dim}};
  if (head_dim == 128) AddStep(late + "+tma_store", {&sdpa::Config::tma_store, 1}, late, &design);
  if (head_dim == 64) {
    // Three warpgroups of rows and 96 keys a tile; two and 192. The exponentials bound both.
    const std::string wide = name + ":keys_192";
    sdpa::Config keys_192 = first;
    keys_192.wgmma_tile = 2;
    design.arms.push_back({wide, keys_192});
    for (const std::string& of : {late, wide}) {
      AddStep(of + "+wgmma_exp", {&sdpa::Config::wgmma_exp, 1}, of, &design);
    }
    AddStep(late + "+ping_pong", {&sdpa::Config::ping_pong, 1}, late, &design);
  }
  if (head_dim == 256) {
    // 128 keys a tile, of which one warpgroup's P V runs beside the other's softmax alone; 64, with
    // P V beside its own softmax too. O through Q's place by TMA, or by plain stores.
    const std::string wide = name + ":keys_128";
    design.arms = {{wide, sdpa::WithoutOverlap(first)}, {late, first}};
    for (const std::string& of : {wide, late}) {
      AddStep(of + "+ping_pong", {&sdpa::Config::ping_pong, 1}, of, &design);
    }
    sdpa::Config from_registers = design.arms.front().config;
    from_registers.tma_store = 0;
    design.arms.push_back({wide + "+tma_store=0", from_registers});
  }
  const DesignArm base = design.arms.front();
  design.arms.push_back({name + ":aa", base.config, "aa", "", base.name});
  return design;
}

// The kernel; one that is another form of a kernel before it, by the one toggle in which they
// differ, as a step from that one, or as that one without the toggle.
inline void AddForm(const std::string& prefix, const sdpa::LibraryKernel& kernel, Design* design) {
  const std::string name = prefix + std::string(kernel.name);
  if (kernel.form_of.empty()) {
    design->arms.push_back({name, kernel.config});
    return;
  }
  const std::string base = prefix + std::string(kernel.form_of);
  const sdpa::Config of = ConfigOf(*design, base);
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (of.*row.field == kernel.config.*row.field) continue;
    const char* role = kernel.config.*row.field == row.levels.values[0] ? "without" : "step";
    design->arms.push_back({name, kernel.config, role, std::string(row.id), base});
  }
}

// In FP8: the library's kernels for scales per head, each without its own tiles first, and what may
// be faster than they are.
inline Design FormsFp8Design(int head_dim) {
  const std::string name = "forms_fp8_d" + std::to_string(head_dim);
  Design design = {.name = name,
                   .label = "forms of the FP8 kernel for head_dim " + std::to_string(head_dim),
                   .head_dims = {head_dim}};
  for (const sdpa::LibraryKernel& kernel : sdpa::kLibraryKernels) {
    if (!sdpa::TakesE4m3(kernel) || kernel.config.wgmma_fp8_block_scale) continue;
    if (kernel.head_dim != head_dim || sdpa::WritesE4m3(kernel)) continue;
    sdpa::LibraryKernel without = kernel;
    without.config.wgmma_own_tiles = 0;
    AddForm(name + ":", without, &design);
  }
  const std::string last = design.arms.back().name;
  if (ConfigOf(design, last).softmax_overlap) {
    AddStep(last + "+wgmma_own_tiles", {&sdpa::Config::wgmma_own_tiles, 1}, last, &design);
  }
  if (head_dim > 64) {  // there it spills
    AddStep(last + "+kv_multicast", {&sdpa::Config::kv_multicast, 2}, last, &design);
  }
  const DesignArm base = design.arms.front();
  design.arms.push_back({name + ":aa", base.config, "aa", "", base.name});
  return design;
}

// The library's kernel that writes O in E4M3, and the same with O in fp16.
inline Design OutputFp8Design(int head_dim) {
  const std::string name = "output_fp8_d" + std::to_string(head_dim);
  const std::string base = name + ":fp16_output";
  Design design = {.name = name,
                   .label = "O in FP8 for head_dim " + std::to_string(head_dim),
                   .head_dims = {head_dim}};
  for (const sdpa::LibraryKernel& kernel : sdpa::kLibraryKernels) {
    if (kernel.head_dim != head_dim || !sdpa::WritesE4m3(kernel)) continue;
    sdpa::Config without = kernel.config;
    without.wgmma_fp8_output = 0;
    design.arms.push_back({base, without});
  }
  AddStep(base + "+wgmma_fp8_output", {&sdpa::Config::wgmma_fp8_output, 1}, base, &design);
  design.arms.push_back({name + ":aa", design.arms.front().config, "aa", "", base});
  return design;
}

inline std::vector<Design> FastestDesigns() {
  std::vector<Design> designs;
  for (const sdpa::LibraryKernel& kernel : sdpa::kLibraryKernels) {
    if (kernel.config.varlen) continue;     // problems here have one length for all
    if (sdpa::TakesE4m3(kernel)) continue;  // below
    // Those for many rows of queries.
    if (kernel.config.wgmma_split_kv || sdpa::FamilyOf(kernel.config) != sdpa::Family::kWgmma) {
      continue;
    }
    const bool bf16 = kernel.dtype == sdpa::Dtype::kBf16;
    if (bf16 && kernel.head_dim != 128) continue;
    const std::string sizes = std::to_string(kernel.head_dim) + (bf16 ? "_bf16" : "");
    const std::string name = "fastest_d" + sizes;
    if (designs.empty() || designs.back().name != name) {
      designs.push_back({.name = name,
                         .label = "the fastest kernels for head_dim " +
                                  std::to_string(kernel.head_dim) + (bf16 ? ", bf16" : ""),
                         .head_dims = {kernel.head_dim},
                         .dtypes = {kernel.dtype}});
    }
    const std::string prefix = name + ":";
    AddForm(prefix, kernel, &designs.back());
  }
  for (Design& design : designs) {
    const std::string base = design.arms.front().name;
    design.arms.push_back({design.name + ":aa", design.arms.front().config, "aa", "", base});
  }
  for (const int head_dim : {64, 128, 256}) {
    designs.push_back(FastestFp8Design(head_dim));
    designs.push_back(FormsFp8Design(head_dim));
    designs.push_back(OutputFp8Design(head_dim));
  }
  return designs;
}

// What the newest techniques are worth in those kernels, in fp16: each taken off.
inline std::vector<Design> WithoutDesigns() {
  std::vector<Design> designs;
  for (const Design& fastest : FastestDesigns()) {
    const int head_dim = fastest.head_dims.front();
    if (fastest.dtypes.front() != sdpa::Dtype::kFp16 || fastest.arms.front().config.wgmma_fp8) {
      continue;
    }
    const std::string dim = std::to_string(head_dim);
    Design design = {.name = "without_d" + dim,
                     .label = "the fastest kernels for head_dim " + dim + ", less a technique each",
                     .head_dims = {head_dim}};
    for (const DesignArm& arm : fastest.arms) {
      if (arm.role != "base") continue;
      const std::string name = design.name + arm.name.substr(fastest.name.size());
      design.arms.push_back({name, arm.config});
      for (const sdpa::ToggleField field :
           {&sdpa::Config::wgmma_skip_maxima, &sdpa::Config::wgmma_q_registers,
            &sdpa::Config::wgmma_keep_kv, &sdpa::Config::wgmma_own_tiles,
            &sdpa::Config::ping_pong}) {
        if (arm.config.*field == 0) continue;
        const std::string id(sdpa::ToggleId(field));
        sdpa::Config less = arm.config;
        less.*field = 0;
        design.arms.push_back({name + "+" + id + "=0", less, "without", id, name});
      }
    }
    const DesignArm base = design.arms.front();
    if (head_dim == 64) {
      // Pairs of CTAs, where keys are too many to be kept. With three warpgroups they spill.
      for (const DesignArm& arm : fastest.arms) {
        if (arm.toggle != "wgmma_keep_kv") continue;
        const std::string reread = design.name + arm.name.substr(fastest.name.size());
        design.arms.push_back({reread, arm.config});
        AddStep(reread + "+kv_multicast", {&sdpa::Config::kv_multicast, 2}, reread, &design);
      }
    }
    if (head_dim == 128) {
      // Beside more tiles of K there is no place for O's way out.
      const std::string stores = base.name + "+tma_store=0";
      sdpa::Config from_registers = base.config;
      from_registers.tma_store = 0;
      design.arms.push_back({stores, from_registers});
      AddStep(stores + "+keep_kv", {&sdpa::Config::wgmma_keep_kv, 1}, stores, &design);
    }
    design.arms.push_back({design.name + ":aa", base.config, "aa", "", base.name});
    designs.push_back(std::move(design));
  }
  return designs;
}

// The designs of the library's kernels (kernels/sdpa/library), one for each head_dim and dtype:
// which kernel is fastest for which problem. Each arm is judged against the first.
inline std::vector<Design> LibraryDesigns() {
  std::vector<Design> designs;
  for (const sdpa::LibraryKernel& kernel : sdpa::kLibraryKernels) {
    if (kernel.config.varlen) continue;  // problems here have one length for all
    const std::string sizes = "d" + std::to_string(kernel.head_dim) +
                              (sdpa::TakesE4m3(kernel)              ? "_e4m3"
                               : kernel.dtype == sdpa::Dtype::kBf16 ? "_bf16"
                                                                    : "");
    const std::string name = "library_" + sizes;
    const std::string arm = name + ":" + std::string(kernel.name);
    if (designs.empty() || designs.back().name != name) {
      designs.push_back({.name = name,
                         .label = "the library's kernels for " + sizes,
                         .arms = {{arm, kernel.config}},
                         .head_dims = {kernel.head_dim},
                         .dtypes = {kernel.dtype},
                         .span = Span::kWholeKernels});
      PlantControls(name, arm, &designs.back());
      continue;
    }
    std::vector<DesignArm>& arms = designs.back().arms;
    arms.insert(arms.end() - 2, {arm, kernel.config});
  }
  return designs;
}

}  // namespace warpledger::ablations
