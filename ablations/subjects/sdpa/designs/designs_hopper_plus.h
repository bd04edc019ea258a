// SPDX-License-Identifier: Apache-2.0
// The designs of the pipelined Hopper kernel's techniques beyond the design `hopper`.
//
//   hopper_plus   each level of each of them alone on the end of `hopper`, or on the same
//                 without the dynamic schedule where that stands in the way; then a chain
//                 of those that don't exclude each other
//   hopper_tiles  the levels of its tile that not every head dimension has
//   hopper_d64, hopper_d128, hopper_d256  the end of `hopper`, what it gains from its schedule,
//                 the same chain, and what the ends of that chain gain without turns, with a
//                 later wait, with maxima of threads or with more registers, at head dimension
//                 64 also without lazy rescaling and with one, two and three stages of its four:
//                 few arms, to stand beside peers over many lengths
//   hopper_bf16   the chain, its ends without turns and with maxima of threads in fp16 and in
//                 bf16, at two head dimensions
//   hopper_fp8    the end of `hopper` in fp16 and in FP8, with either schedule; FP8's sums in
//                 two levels, and then a scale for each tile of keys; or O by TMA;
//                 or fewer exponentials by MUFU; or without turns, or without overlap, or with a
//                 later wait; on the last without turns, some of these again
//
// Included by designs.h, at its end.

#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/designs/design.h"
#include "ablations/subjects/sdpa/designs/designs_wmma.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::ablations {

inline ToggleRows HopperToggles() { return LadderToggles(sdpa::Family::kWgmma); }
// The end of the design `hopper`.
inline sdpa::Config HopperEverythingOn() { return AllOn(HopperToggles()); }
inline sdpa::Config HopperStaticEnd() {
  sdpa::Config config = HopperEverythingOn();
  config.dynamic_schedule = 0;
  return config;
}

// Whether problems of all these head dimensions have an instance of it.
inline bool IsLegalAt(const std::vector<int>& head_dims, const sdpa::Config& config) {
  return std::none_of(head_dims.begin(), head_dims.end(), [&](int head_dim) {
    return static_cast<bool>(sdpa::WhyInvalid(sdpa::Specialise(config, head_dim, false)));
  });
}

inline constexpr std::string_view kHopperEnd = "hopper_end";
inline constexpr std::string_view kHopperStaticEnd = "hopper_static_end";

// From the arm `base`: the techniques beyond `hopper` that don't exclude each other, each on
// top of those before it. Returns the last two arms, of which the last has another tile.
inline std::pair<std::string, std::string> AddHopperPlusChain(const std::string& base,
                                                              Design* design) {
  std::string last = base;
  const Level chain[] = {{&sdpa::Config::dynamic_schedule, 2},
                         {&sdpa::Config::tma_store, 1},
                         {&sdpa::Config::wgmma_lazy_rescale, 1},
                         {&sdpa::Config::wgmma_tile, 1}};
  std::string before = base;
  for (const Level& step : chain) {
    before = last;
    last = AddLevel(step, before, before == base ? ':' : '+', design);
  }
  return {before, last};
}

inline Design HopperPlusDesign() {
  const std::string base(kHopperEnd);
  const sdpa::Config end = HopperEverythingOn();
  Design design = {.name = "hopper_plus",
                   .label = "the Hopper kernel beyond its ladder: each technique alone on its end",
                   .arms = {{base, end}},
                   .head_dims = {64, 128, 256}};
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control || !Includes(row.families, sdpa::Family::kWgmma)) continue;
    // Nothing to pack in most of these problems: hopper_gqa.
    if (row.field == &sdpa::Config::wgmma_pack_heads) continue;
    if (row.field == &sdpa::Config::kv_multicast) continue;  // on the static schedule, below
    if (row.field == &sdpa::Config::wgmma_fp8) continue;  // with its sums in two levels: hopper_fp8
    for (const int level : OnLevels(row)) {
      sdpa::Config config = end;
      config.*row.field = level;
      if (config == end || !IsLegalAt(design.head_dims, config)) continue;
      AddLevel({row.field, level}, base, ':', &design);
    }
  }
  // What a pass after the scores is held against: without one.
  AddLevel({&sdpa::Config::ping_pong, 0}, base, ':', &design);
  const std::string static_base(kHopperStaticEnd);
  design.arms.push_back({static_base, HopperStaticEnd()});
  AddLevel({&sdpa::Config::kv_multicast, 2}, static_base, ':', &design);
  AddLevel({&sdpa::Config::wgmma_cp_async, 1}, static_base, ':', &design);
  AddLevel({&sdpa::Config::wgmma_tile_per_cta, 1}, static_base, ':', &design);
  AddLevel({&sdpa::Config::wgmma_inline_loads, 1}, static_base, ':', &design);

  AddLevel({&sdpa::Config::wgmma_thread_max, 1}, base + ":wgmma_lazy_rescale", '+', &design);

  AddHopperPlusChain(base, &design);
  design.predicted_on = {base, static_base};
  PlantControls(base, base, &design);
  return design;
}

// The end of `hopper` as a step from the same with the static schedule; without controls.
inline Design HopperEndsDesign(std::string name, std::string label, std::vector<int> head_dims) {
  const std::string static_base(kHopperStaticEnd);
  Design design = {.name = std::move(name),
                   .label = std::move(label),
                   .arms = {{static_base, HopperStaticEnd()}},
                   .head_dims = std::move(head_dims)};
  AddStep(std::string(kHopperEnd), {&sdpa::Config::dynamic_schedule, 1}, static_base, &design);
  return design;
}

inline Design HopperLengthsDesign(int head_dim) {
  const std::string end(kHopperEnd);
  const std::string dim = std::to_string(head_dim);
  Design design =
      HopperEndsDesign("hopper_d" + dim,
                       "the whole Hopper kernel over lengths at head dimension " + dim, {head_dim});
  const auto& [own_tile, power_of_two] = AddHopperPlusChain(end, &design);
  const std::string own_alone = AddLevel({&sdpa::Config::ping_pong, 0}, own_tile, '+', &design);
  const std::string no_turns = AddLevel({&sdpa::Config::ping_pong, 0}, power_of_two, '+', &design);
  // What the wait's place is worth with turns, and where no turn brings another warpgroup's
  // products beside exponentials; on `end`, both levels are in hopper_plus.
  for (const std::string& base : {own_tile, own_alone}) {
    AddLevel({&sdpa::Config::wgmma_late_wait, 2}, base, '+', &design);
    AddLevel({&sdpa::Config::wgmma_thread_max, 1}, base, '+', &design);
  }
  if (head_dim == 64) {
    // A row of O is short there: rescaling it costs less than asking whether to.
    AddLevel({&sdpa::Config::wgmma_lazy_rescale, 0}, power_of_two, '+', &design);
    AddLevel({&sdpa::Config::wgmma_lazy_rescale, 0}, no_turns, '+', &design);
    AddLevel({&sdpa::Config::wgmma_thread_max, 1}, no_turns, '+', &design);
    AddLevel({&sdpa::Config::wgmma_equal_registers, 1}, power_of_two, '+', &design);
    // How deep the ring must be; elsewhere it has two stages, or none.
    const std::string one_stage = AddLevel({&sdpa::Config::kv_ring_stages, 0}, end, ':', &design);
    for (const int stages : {2, 3}) {
      AddLevel({&sdpa::Config::kv_ring_stages, stages}, one_stage, '+', &design);
    }
  }
  if (head_dim == 256) {
    // Shared memory has no place for O: it leaves through Q's, and the next Q waits for it.
    for (const std::string& base : {own_tile, power_of_two}) {
      AddLevel({&sdpa::Config::tma_store, 0}, base, '+', &design);
    }
  }
  AddLevel({&sdpa::Config::wgmma_more_registers, 1}, power_of_two, '+', &design);
  design.predicted_on = {own_alone, power_of_two};
  PlantControls(end, end, &design);
  return design;
}

inline Design HopperTilesDesign() {
  const std::string base(kHopperEnd);
  Design design = {.name = "hopper_tiles",
                   .label = "tiles of the Hopper kernel at head dimensions 64 and 128",
                   .arms = {{base, HopperEverythingOn()}},
                   .head_dims = {64, 128}};
  for (const int level : {1, 2, 3, 4}) {
    AddLevel({&sdpa::Config::wgmma_tile, level}, base, ':', &design);
  }
  design.predicted_on = {base};
  PlantControls(base, base, &design);
  return design;
}

// No toggle: another dtype is another problem.
inline Design HopperBf16Design() {
  const std::string end(kHopperEnd);
  Design design =
      HopperEndsDesign("hopper_bf16", "the Hopper kernel in fp16 and in bf16", {64, 128});
  design.dtypes = {sdpa::Dtype::kFp16, sdpa::Dtype::kBf16};
  const auto& [own_tile, power_of_two] = AddHopperPlusChain(end, &design);
  const std::string own_alone = AddLevel({&sdpa::Config::ping_pong, 0}, own_tile, '+', &design);
  for (const std::string& base : {own_tile, own_alone}) {
    AddLevel({&sdpa::Config::wgmma_thread_max, 1}, base, '+', &design);
  }
  AddLevel({&sdpa::Config::ping_pong, 0}, power_of_two, '+', &design);
  design.predicted_on = {own_alone};
  PlantControls(end, end, &design);
  return design;
}

// FP8 as a step from the arm `base`, its sums in two levels, and the same without those: with
// one level long sums break the accuracy rule, and what breaks is nobody's base. Returns the
// first one's name.
inline std::string AddFp8(const std::string& base, Design* design) {
  sdpa::Config config = ConfigOf(*design, base);
  config.wgmma_fp8 = 1;
  const std::string fp8(sdpa::ToggleId(&sdpa::Config::wgmma_fp8));
  const std::string two_levels(sdpa::ToggleId(&sdpa::Config::wgmma_fp8_two_level));
  const std::string one_level = base + ":" + fp8;
  const std::string name = one_level + "+" + two_levels;
  sdpa::Config exact = config;
  exact.wgmma_fp8_two_level = 1;
  design->arms.push_back({name, exact, "step", fp8, base});
  design->arms.push_back({one_level, config, "without", two_levels, name});
  return name;
}

inline Design HopperFp8Design() {
  const std::string base(kHopperEnd);
  const std::string static_base(kHopperStaticEnd);
  Design design = {.name = "hopper_fp8",
                   .label = "the Hopper kernel with its operands in FP8",
                   .arms = {{base, HopperEverythingOn()}},
                   .head_dims = {128}};
  const std::string exact = AddFp8(base, &design);
  AddLevel({&sdpa::Config::wgmma_fp8_block_scale, 1}, exact, '+', &design);
  AddLevel({&sdpa::Config::tma_store, 1}, exact, '+', &design);
  AddLevel({&sdpa::Config::wgmma_exp, 1}, exact, '+', &design);  // MUFU binds there
  // What shorter products leave of what was made to hide softmax behind long ones.
  const std::string no_turns = AddLevel({&sdpa::Config::ping_pong, 0}, exact, '+', &design);
  AddLevel({&sdpa::Config::wgmma_late_wait, 1}, exact, '+', &design);
  AddLevel({&sdpa::Config::wgmma_late_wait, 2}, exact, '+', &design);
  const std::string late = AddLevel({&sdpa::Config::wgmma_late_wait, 2}, no_turns, '+', &design);
  AddLevel({&sdpa::Config::tma_store, 1}, late, '+', &design);
  AddLevel({&sdpa::Config::dynamic_schedule, 2}, late, '+', &design);
  AddLevel({&sdpa::Config::wgmma_exp, 1}, late, '+', &design);
  AddLevel({&sdpa::Config::softmax_overlap, 0}, exact, '+', &design);
  design.arms.push_back({static_base, HopperStaticEnd()});
  AddFp8(static_base, &design);
  // FP8 itself with its sums in two levels, as it is right with these alone.
  design.predicted_on = {base, static_base, base + ":wgmma_fp8", exact};
  PlantControls(base, base, &design);
  return design;
}

}  // namespace warpledger::ablations
