// SPDX-License-Identifier: Apache-2.0
#include "reports/sections/answers/l4_notes.h"

#include <string_view>

#include "reports/model/describe.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using sdpa::Config;

// What the notes said, and the claim of ours that tests it: a toggle's level over another.
struct Quoted {
  std::string_view step;
  std::string_view said;
  sdpa::ToggleField toggle = nullptr;  // null: no toggle tests it
  int to = 1;
  int from = 0;
  std::string_view found;  // in words, without figures
};

constexpr Quoted kStages[] = {
    {"Minimal scalar, one CTA per query row",
     "2870 µs, their first correct kernel; every kernel before it was wrong (max_diff up to 5)",
     nullptr, 0, 0,
     "The ladder's first step. Nothing here is timed into a ranking before it passes the FP64 "
     "rule."},
    {"Block tiling, serial reductions",
     "3652 µs (0.79×), negative: tiling needs parallel reductions", &Config::kv_tiling, 1, 0,
     "The sign is the opposite one ([why](../decisions/0003-why-tiling-flips-sign.md))."},
    {"Better structure: 32 rows, 4 warps",
     "1634 µs (1.76×), positive; reductions serial, loads scalar", &Config::tile_m32_warps4, 1, 0,
     "Holds."},
    {"Warp shuffles", "no part of the better structure: their version gave NaN",
     &Config::warp_shuffle, 1, 0, "Right and fast where serial reductions come before it."},
    {"Vector loads", "not tried: loads were scalar", &Config::vector_loads, 1, 0, "Pays."},
    {"WMMA for Q K^T", "1391 µs with 8-bit \"simulated FP8\", the baseline of their stage 1",
     &Config::wmma_qk, 1, 0, "Pays."},
    {"Stage 1: two stages of cp.async",
     "1199 µs (+13.8%), gate of +10% met; told elsewhere as 761 µs, and with 84 or 96 registers: "
     "two histories that contradict each other",
     &Config::cp_async_stages, 2, 0,
     "Holds at most problems. Their own code, built for the H200, gained 1.9%."},
    {"Stage 2: WMMA for P V", "656 µs (1.83×), gate of +15% met", &Config::wmma_pv, 1, 0, "Holds."},
    {"Stage 3A: P overwrites S",
     "656.4 µs (+0.2%), gate of +10% missed: it saved 2 KB that nobody needed", &Config::sp_reuse,
     1, 0, "Holds: nothing is gained."},
    {"Stage 3B: softmax in registers", "0 of 6 tests right, abandoned",
     &Config::softmax_in_registers, 3, 0,
     "Right here, and the largest gain of this kernel. Their layout of fragments was never tested "
     "alone."},
    {"XOR swizzle", "696 µs (−6.1%), elsewhere ±0%", &Config::xor_swizzle, 1, 0,
     "Built again, their flag reached no machine code: they timed one kernel twice. WMMA can't "
     "read a swizzled tile; this is on the FP32 pipes."},
    {"XOR swizzle, where ldmatrix reads", "not tried", &Config::mma_smem_layout, 1, 0,
     "Pays over linear rows."},
    {"Stage 4: three stages of cp.async", "target +5 to +10%", &Config::cp_async_stages, 3, 2,
     "Missed: the third stage gains nothing."},
    {"Stage 5: one producer warp", "unfinished", &Config::producer_warps, 1, 0,
     "Pays while SMs are idle."},
    {"Stage 5: two producer warps", "unfinished; their code on an H200 was wrong (max_err 4.86)",
     &Config::producer_warps, 2, 0, "As one warp, and it costs a CTA per SM where SMs are full."},
};

constexpr Quoted kPlanned[] = {
    {"Fast exponential by a polynomial", "planned; the flag reached no machine code",
     &Config::exp_method, 4, 0, ""},
    {"Persistent CTAs", "planned", &Config::persistent, 1, 0, ""},
    {"Split-K", "planned", &Config::mma_split_kv, 1, 0, ""},
    {"MQA and GQA", "planned", &Config::mma_pack_heads, 1, 0,
     "Correct in every family; packed heads are the optimisation."},
    {"Native FP8", "planned", &Config::wgmma_fp8, 1, 0, ""},
    {"8-bit K and V, widened by arithmetic", "their \"simulated FP8\"", &Config::mma_kv_dtype, 1, 0,
     ""},
    {"FP16 path", "planned", nullptr, 0, 0, "Every family computes in fp16."},
    {"FP16 accumulation", "expected to double the rate on Ada, not tried",
     &Config::mma_fp16_accumulate, 1, 0, "Hopper has one rate for both."},
    {"L2 persistence", "planned", &Config::l2_persisting_kv, 1, 0, ""},
    {"Layernorm fused", "planned", &Config::fuse_layernorm, 1, 0, ""},
    {"QKV projection fused", "planned", &Config::fuse_projection, 1, 0, ""},
    {"TILE_N 64", "theirs was 64; 32 and 128 were planned", &Config::tile_n, 64, 0,
     "Over 32 keys."},
    {"TILE_N 128", "planned", &Config::tile_n, 128, 0, "Over 32 keys."},
    {"Launch by stream", "every launch", &Config::stream_launch, 1, 0, ""},
};

struct Open {
  std::string_view question;
  std::string_view found;
};
constexpr Open kOpen[] = {
    {"NaN at S = 512, blamed on the range of FP8",
     "The range is refuted: no 8-bit scheme gives NaN there ([data types](../cpu/dtypes.md)). "
     "Their code has a data race, and a note speaks of 256 to 384 steps. Neither was rebuilt as a "
     "variant, so the cause is open."},
    {"Error at `long` between 0.003 and 0.022 over builds of the same arithmetic",
     "A data race in their code. Here equal inputs must give equal bits twice."},
    {"Tolerance of 0.06, absolute",
     "At 4096 keys plain averaging of V passes it. The rule here is relative to a naive kernel of "
     "the same precision."},
    {"Bit-equality between variants that claim it",
     "Not checked between variants here; each variant is checked against FP64."},
    {"Guards: a clamp at max(−20), 1e-10 in the denominator",
     "Not rebuilt as variants. Fully masked rows are tested here without them."},
    {"Shape 1×2×64×64", "Not recorded. `--shapes=b1_h2_s64x64_d64` runs it."},
    {"Spread of their samples",
     "Told: a coefficient of variation below 1%. Clocks and the number of processes are not told."},
    {"Resources of stage 2 on sm_89: 84 to 96 registers, 37.1 KB shared, no spills, 2 CTAs per SM",
     "Resources of our kernels for sm_89 stand in each record's `resources.json`."},
};

std::string Found(const std::vector<MeasuredClaim>& claims, const Quoted& quoted) {
  for (const MeasuredClaim& claim : claims) {
    if (claim.row->field != quoted.toggle || claim.from != quoted.from || claim.to != quoted.to) {
      continue;
    }
    std::string out = Cat("[", claim.row->label, "](", TechniquePath(*claim.row), ")");
    if (claim.row->levels.count > 2) Append(&out, ", ", LevelWords(claim));
    const auto there = Restricted({claim}, [](const Judgement& judgement) {
      return judgement.verdict->shape == "mission_b";
    });
    if (!there.empty() && TallyOf(there[0]).n > 0) {
      Append(&out, ": ", Outcome(there[0]), " at `mission_b`; everywhere ", Outcome(claim));
    } else {
      Append(&out, ": ", Outcome(claim));
    }
    return out + ". ";
  }
  return quoted.toggle == nullptr ? "" : "Not measured on this GPU. ";
}

template <typename Rows>
std::string Quotations(const std::vector<MeasuredClaim>& claims, const Rows& rows) {
  Table table("step | the notes | found here");
  for (const Quoted& quoted : rows) {
    table.AddRow({std::string(quoted.step), std::string(quoted.said),
                  Cat(Found(claims, quoted), quoted.found)});
  }
  return table.ToMarkdown();
}

}  // namespace

std::string L4NotesText(const std::vector<ReadRecord>& records,
                        const std::vector<MeasuredClaim>& claims) {
  Table open("open question or setting | found here");
  for (const Open& each : kOpen) {
    open.AddRow({std::string(each.question), std::string(each.found)});
  }
  return Cat(
      "# The L4 notes, claim by claim, on ", records[0].summary.provenance.gpu.name,
      "\n\nWhich claims of an earlier attempt on an NVIDIA L4 hold on this GPU, with kernels of "
      "ours. Their figures are p50 at `mission_b`, of another GPU and another code ([what is known "
      "of the notes](../decisions/0000-l4-notes.md)); no ratio here is computed from them. Written "
      "from the newest record of each design by `warpledger techniques`; edit those or the "
      "renderer, never this page.\n\nTheir targets were less than 5 µs, 15× over the first kernel, "
      "and PyTorch's 47 µs: [what holds](README.md#questions-and-answers).\n\n## Stages\n\n",
      Quotations(claims, kStages), "\n## Planned\n\n", Quotations(claims, kPlanned),
      "\n## Open questions and settings\n\n", open.ToMarkdown());
}

}  // namespace warpledger::report
