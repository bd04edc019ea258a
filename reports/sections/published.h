// SPDX-License-Identifier: Apache-2.0
// Ablations that others published of kernels like ours, to stand beside our own.
//
// Contract: figures and their source, and nothing of ours. An arm names the toggle that is the same
// change, and the design of ours that judges it.
//
//   const PublishedAblation& theirs = kFlashAttention3;
//   for (const PublishedArm& arm : theirs.arms) Add(theirs.whole_tflops / arm.tflops);

#pragma once

#include <string_view>

#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"

namespace warpledger::report {

struct PublishedArm {
  std::string_view without;            // what was left out, in the author's terms
  sdpa::ToggleField toggle = nullptr;  // ours
  bool leaves_out = false;             // the toggle is the leaving out, and not what is left out
  std::string_view design;             // whose pages judge it
  std::string_view remark = {};        // how ours differs
  double tflops = 0;                   // of the kernel without it
};

struct PublishedAblation {
  std::string_view whose;
  std::string_view source;
  std::string_view gpu;
  sdpa::Problem problem;
  double whole_tflops = 0;
  PublishedArm arms[2];
};

inline constexpr PublishedAblation kFlashAttention3 = {
    .whose = "FlashAttention-3",
    .source = "arXiv 2407.08608, its table of pipelining ablations",
    .gpu = "H100 SXM5",
    .problem = {4, 16, 16, 8448, 8448, 128, false},
    .whole_tflops = 661,
    .arms = {{.without = "overlap of GEMM and softmax within a warpgroup",
              .toggle = &sdpa::Config::softmax_overlap,
              .design = "hopper_leave_one_out",
              .tflops = 582},
             {.without = "warp specialisation",
              .toggle = &sdpa::Config::wgmma_inline_loads,
              .leaves_out = true,
              .design = "hopper_plus",
              .remark = "on our static schedule",
              .tflops = 570}}};

}  // namespace warpledger::report
