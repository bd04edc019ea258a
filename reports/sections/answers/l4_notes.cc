// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "absl/strings/str_join.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/problem/shapes.h"
#include "reports/model/derived/beside_peers.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/answers/answers.h"

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
  double target = 0;       // the ratio that the notes asked for, where records answer
};

constexpr Quoted kStages[] = {
    {"Minimal scalar, one CTA per query row",
     "2870 µs, their first correct kernel; every kernel before it was wrong (max_diff up to 5)",
     nullptr, 0, 0,
     "The ladder's first step. Here no kernel is ranked before it passes the FP64 "
     "rule."},
    {"Block tiling, serial reductions",
     "3652 µs (0.79×), negative: tiling needs parallel reductions", &Config::kv_tiling, 1, 0,
     "The effect has the opposite sign ([why](../decisions/0003-why-tiling-flips-sign.md))."},
    {"Better structure: 32 rows, 4 warps",
     "1634 µs (1.76×), positive; reductions serial, loads scalar", &Config::tile_m32_warps4, 1, 0,
     "Holds."},
    {"Warp shuffles", "not in the better structure: their version gave NaN", &Config::warp_shuffle,
     1, 0, "Right, and faster than the serial reductions that they replace."},
    {"Vector loads", "not tried: loads were scalar", &Config::vector_loads, 1, 0, "Pays."},
    {"WMMA for Q K^T", "1391 µs with 8-bit \"simulated FP8\", the baseline of their stage 1",
     &Config::wmma_qk, 1, 0, "Pays."},
    {"Stage 1: two stages of cp.async",
     "1199 µs (+13.8%), gate of +10% met; elsewhere 761 µs, and 84 or 96 registers: two accounts "
     "that contradict each other",
     &Config::cp_async_stages, 2, 0,
     "Holds at most problems. Their own code, built for the H200, gained 1.9%."},
    {"Stage 2: WMMA for P V", "656 µs (1.83×), gate of +15% met", &Config::wmma_pv, 1, 0, "Holds."},
    {"Stage 3A: P overwrites S",
     "656.4 µs (+0.2%), gate of +10% missed: it saved 2 KB that nobody needed", &Config::sp_reuse,
     1, 0, "", 1.10},
    {"Stage 3B: softmax in registers", "0 of 6 tests right, abandoned",
     &Config::softmax_in_registers, 3, 0,
     "Right here, and the largest gain of this kernel. Their fragment layout was never tested "
     "alone."},
    {"XOR swizzle", "696 µs (−6.1%), elsewhere ±0%", &Config::xor_swizzle, 1, 0,
     "Their code, built again, has the same machine code with and without the flag: they timed one "
     "kernel twice. WMMA can't read a swizzled tile, so our kernel for this claim uses the FP32 "
     "pipes."},
    {"XOR swizzle, where ldmatrix reads", "not tried", &Config::mma_smem_layout, 1, 0,
     "Pays over linear rows."},
    {"Stage 4: three stages of cp.async", "target +5 to +10%", &Config::cp_async_stages, 3, 2, "",
     1.05},
    {"Stage 5: one producer warp", "unfinished", &Config::producer_warps, 1, 0,
     "Pays while SMs are idle."},
    {"Stage 5: two producer warps", "unfinished; their code on an H200 was wrong (max_err 4.86)",
     &Config::producer_warps, 2, 0,
     "Pays while SMs are idle, and costs a CTA per SM where SMs are full."},
};

constexpr Quoted kPlanned[] = {
    {"Fast exponential by a polynomial", "planned; the flag did not change the machine code",
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

struct TwoCells {
  std::string_view left;
  std::string_view right;
};

// Told twice, and not alike.
constexpr TwoCells kHistories[] = {
    {"Time after stage 1", "761 µs"},
    {"Registers of that kernel", "84"},
};
constexpr std::string_view kOtherHistory[] = {"1199 µs", "96"};

// What may give NaN at 512 keys and not before, and what was found of it.
constexpr TwoCells kSuspects[] = {
    {"The range of FP8, as the notes say",
     "**Refuted.** No 8-bit format gives NaN at any of nine lengths up to 16,384 keys "
     "([data types](../cpu/dtypes.md)). Their format was uint8, which has no NaN."},
    {"Their data race",
     "**Not the cause by itself.** After a late copy the kernel reads codes of another tile, and "
     "every "
     "byte is a finite code: the result is wrong, but not NaN. Memory that was never written is "
     "read at the first tile, so that NaN would appear at every length. We planted the pattern as "
     "a bug that waits for one copy group too few (`wmma_one_copy_group_too_many` in "
     "`kernels/sdpa/smem/mutations.toml`): its copies landed in time on every run on an H200. A "
     "race does explain the error at `long`, which differs between builds."},
    {"Sums in fp16 of integer codes: the note of 256 to 384 steps",
     "**Fits.** The largest fp16 number is 65,504, which is 257 codes of 255 or 384 codes of 170. "
     "We rebuilt the pattern on the CPU (codes unchanged, their zero of 128 subtracted from the "
     "sum, no maximum subtracted): no row has NaN at 128 keys, every row has NaN at 384 and at 512 "
     "([test](../../tests/ablations/subjects/sdpa/dtypes/dtype_mistakes_test.cc))."},
    {"The true cause",
     "Not known: that version of their source is not at hand. Sums in fp16 are the only tested "
     "cause that begins at the length in their note."},
};

constexpr TwoCells kOpen[] = {
    {"Error at `long` between 0.003 and 0.022 over builds of the same arithmetic",
     "A data race in their code. Here two runs on equal inputs must have equal bits."},
    {"Tolerance of 0.06, absolute",
     "At 4096 keys the plain average of V passes this tolerance. The rule here is relative to a "
     "naive kernel of the same precision. A tolerance of 0.06 misses 16 of 85 planted bugs "
     "([trust](../TRUST.md))."},
    {"Guard: the row's maximum is at least −20",
     "Not a variant. It changes no bit of a row that has a score above −20, so on every timed "
     "input "
     "it is two instructions of thousands, less than a record can show. Where all scores of a row "
     "lie below −124, each exponential underflows to 0: the guard turns a right row into zeros, "
     "which the FP64 rule refuses."},
    {"Guard: 1e-10 is added to the denominator",
     "Not a variant. With the maximum subtracted the sum is at least 1, where adding 1e-10 changes "
     "no bit in fp32. A row that sees no key has the sum 0; it is tested here without the guard."},
    {"Spread of their samples",
     "The notes report a coefficient of variation below 1%, but neither clocks nor the number of "
     "processes."},
    {"Resources of stage 2 on sm_89: 84 to 96 registers, 37.1 KB shared, no spills, 2 CTAs per SM",
     "Resources of our kernels for sm_89 stand in each record's `resources.json`."},
};

// Verdicts against a target: their interval lies on one side of it, or holds it.
std::string AgainstTarget(const MeasuredClaim& claim, double target) {
  int64_t met = 0;
  int64_t missed = 0;
  for (const Judgement& judgement : claim.judged) {
    const Verdict& verdict = *judgement.verdict;
    if (!HasMeaning(verdict) || !verdict.ratio.value) continue;
    met += verdict.ratio.low.value_or(0) >= target;
    missed += verdict.ratio.high && *verdict.ratio.high < target;
  }
  const int64_t n = TallyOf(claim).n;
  if (n == 0) return "no sound measurement";
  if (met == 0 && missed == 0) {
    return Cat("**not decided**: the target lies in ",
               n == 1 ? "the one interval" : Cat("all ", n, " intervals"));
  }
  std::string out = met > 0 ? "**met** in " : "**missed** in ";
  const int64_t named = met > 0 ? met : missed;
  if (named == n) return Cat(out, n == 1 ? "the one verdict" : Cat("all ", n, " verdicts"));
  Append(&out, named, " of ", n, " verdicts");
  if (met > 0 && missed > 0) Append(&out, ", missed in ", missed);
  if (n > met + missed) Append(&out, ", not decided in ", n - met - missed);
  return out;
}

std::vector<MeasuredClaim> AtTheNotesProblem(const MeasuredClaim& claim) {
  return Restricted({claim}, [](const Judgement& judgement) {
    return judgement.verdict->shape == "b1_h8_s512_d64";
  });
}

std::string Found(const std::vector<MeasuredClaim>& claims, const Quoted& quoted) {
  for (const MeasuredClaim& claim : claims) {
    if (claim.row->field != quoted.toggle || claim.from != quoted.from || claim.to != quoted.to) {
      continue;
    }
    std::string out = ClaimLink(claim, "");
    const auto there = AtTheNotesProblem(claim);
    if (!there.empty() && TallyOf(there[0]).n > 0) {
      Append(&out, ": ", Outcome(there[0]), " at `b1_h8_s512_d64`; everywhere ", Outcome(claim));
    } else {
      Append(&out, ": ", Outcome(claim));
    }
    if (quoted.target > 0 && !there.empty()) {
      Append(&out, ". A gain of ", FormatPercent(quoted.target - 1),
             " there: ", AgainstTarget(there[0], quoted.target));
    }
    return out + ".";
  }
  return quoted.toggle == nullptr ? "" : "Not measured on this GPU.";
}

// Our fastest kernel over all records, and the best peer beside it.
std::string FastestAt(const std::vector<ReadRecord>& records, std::string_view name) {
  const ReadRecord* record = nullptr;
  const Cell* fastest = nullptr;
  for (const ReadRecord& each : records) {
    for (const Shape& shape : each.summary.shapes) {
      if (shape.name != name) continue;
      const Cell* cell = FastestArm(each.summary, shape);
      if (cell == nullptr ||
          (fastest != nullptr && *fastest->p50_us.value <= *cell->p50_us.value)) {
        continue;
      }
      record = &each;
      fastest = cell;
    }
  }
  if (fastest == nullptr) return "";
  const Peer* peer = record->summary.FastestPeer(name);
  return Cat("the fastest kernel takes ", FormatUs(fastest->p50_us.value), " µs at ", Code(name),
             " (", DesignLink(record->summary, ""), ")",
             peer == nullptr ? ""
                             : Cat(", and PyTorch's best backend, ", PeerName(peer->name),
                                   ", takes ", FormatUs(peer->p50_us.value), " µs"));
}

const Summary* LadderOf(const std::vector<ReadRecord>& records) {
  for (const ReadRecord& record : records) {
    if (record.summary.design == "ladder") return &record.summary;
  }
  return nullptr;
}

std::string PeersAt(const Summary& ladder, std::string_view shape) {
  std::vector<std::string> times;
  for (const Peer& peer : ladder.peers) {
    if (peer.shape != shape || !peer.p50_us.value) continue;
    times.push_back(Cat(PeerName(peer.name), " ", FormatUs(peer.p50_us.value), " µs"));
  }
  return JoinWords(times);
}

// What records say of a target at the problem of the notes.
std::string TargetOf(const std::vector<MeasuredClaim>& claims, sdpa::ToggleField toggle, int to,
                     int from, double target) {
  for (const MeasuredClaim& claim : claims) {
    if (claim.row->field != toggle || claim.to != to || claim.from != from) continue;
    const auto here = AtTheNotesProblem(claim);
    if (here.empty()) break;
    if (TallyOf(here[0]).n == 0) return Cat(ClaimLink(claim, ""), ": no sound measurement");
    return Cat(AgainstTarget(here[0], target), ": ", ClaimLink(claim, ""), ": ", Outcome(here[0]),
               " at `b1_h8_s512_d64`");
  }
  return "not measured on this GPU";
}

std::string Targets(const std::vector<ReadRecord>& records,
                    const std::vector<MeasuredClaim>& claims) {
  Table table("target of the notes | here");
  for (const std::string_view shape : {"b2_h8_s256_d64", "b1_h8_s512_d64"}) {
    const std::string fastest = FastestAt(records, shape);
    table.AddRow({Cat("less than 5 µs, ", Code(shape)),
                  fastest.empty() ? std::string("not measured on this GPU") : fastest});
  }
  const Summary* ladder = LadderOf(records);
  const Cell* end = ladder == nullptr ? nullptr : ladder->LastStep("b1_h8_s512_d64");
  if (end != nullptr && GainOf(*end).value) {
    table.AddRow({"15× over the first kernel",
                  Cat(*GainOf(*end).value >= 15 ? "**met**" : "**missed**",
                      ": the ladder's end is ", FormatRatio(GainOf(*end).value),
                      " over its first step at `b1_h8_s512_d64` (", DesignLink(*ladder, ""), ")")});
  }
  const std::string peers = ladder == nullptr ? "" : PeersAt(*ladder, "b2_h8_s256_d64");
  if (!peers.empty()) {
    table.AddRow({"faster than PyTorch's 47 µs on an L4; the notes don't name the backend",
                  Cat("on this GPU at `b2_h8_s256_d64`: ", peers)});
  }
  table.AddRow({"stage 1, two stages of cp.async: gate of +10%",
                TargetOf(claims, &Config::cp_async_stages, 2, 0, 1.10)});
  table.AddRow(
      {"stage 2, WMMA for P V: gate of +15%", TargetOf(claims, &Config::wmma_pv, 1, 0, 1.15)});
  table.AddRow(
      {"stage 3A, P overwrites S: gate of +10%", TargetOf(claims, &Config::sp_reuse, 1, 0, 1.10)});
  table.AddRow({"stage 4, a third stage: +5 to +10%",
                TargetOf(claims, &Config::cp_async_stages, 3, 2, 1.05)});
  table.AddRow({"fp16 accumulation: twice the rate on Ada",
                TargetOf(claims, &Config::mma_fp16_accumulate, 1, 0, 2.0)});
  return table.ToMarkdown();
}

// The same step of ours at both shapes: whether their two times may be of one kernel.
std::string Histories(const std::vector<ReadRecord>& records) {
  Table table("step 1 of theirs | one history | the other");
  for (size_t i = 0; i < std::size(kHistories); ++i) {
    table.AddRow({std::string(kHistories[i].left), std::string(kHistories[i].right),
                  std::string(kOtherHistory[i])});
  }
  std::string out = table.ToMarkdown();
  const Summary* ladder = LadderOf(records);
  const auto time = [&](std::string_view shape) -> std::optional<double> {
    for (const Cell& cell : ladder->cells) {
      if (cell.toggle == "cp_async_stages" && cell.shape == shape) return cell.p50_us.value;
    }
    return std::nullopt;
  };
  if (ladder == nullptr || !time("b2_h8_s256_d64") || !time("b1_h8_s512_d64")) return out;
  constexpr double kTheirs = 1199.0 / 761.0;
  Append(
      &out,
      "\nTheir harness timed batch 1, 8 heads, 512 keys (`b1_h8_s512_d64`). Their later tables "
      "are of batch 2, 8 heads, 256 keys (`b2_h8_s256_d64`), which is half the work. Our step "
      "takes ",
      FormatUs(time("b1_h8_s512_d64")), " µs and ", FormatUs(time("b2_h8_s256_d64")),
      " µs there, a factor of ", FormatRatio(*time("b1_h8_s512_d64") / *time("b2_h8_s256_d64")),
      "; their two times differ by ", FormatRatio(kTheirs),
      ". So the two shapes explain that the times differ, but not the factor. They don't explain "
      "the registers, which do not depend on the shape: the notes describe two kernels as one.\n");
  return out;
}

// Claims to leave every bit, over all records.
std::string SameBits(const std::vector<MeasuredClaim>& claims) {
  int64_t n = 0;
  int64_t checks = 0;
  std::vector<std::string> broken;
  for (const MeasuredClaim& claim : claims) {
    summary::SameErrors sum;
    for (const Judgement& judgement : claim.judged) {
      if (!judgement.verdict->same_errors) continue;
      sum.checks += judgement.verdict->same_errors->checks;
      sum.same += judgement.verdict->same_errors->same;
    }
    if (sum.checks == 0) continue;
    ++n;
    checks += sum.checks;
    if (!sum.All()) broken.push_back(ClaimLink(claim, ""));
  }
  if (n == 0) return "No record says whether variants have the same results.\n";
  return Cat(
      "A step that only moves work or data should not change any bit of the result. The "
      "records judge ",
      Count(n, "claim"), " of that kind. In ",
      broken.empty() ? Cat("all ", checks, " checks") : Cat(checks, " checks"),
      " on the same inputs, the errors of both variants against FP64 (largest, mean and of "
      "the log-sum-exp) ",
      broken.empty()
          ? "agreed to the last digit."
          : Cat("should agree to the last digit; they do not for ", JoinWords(broken), "."),
      " Two steps were wrongly expected to keep every bit: P through shared memory on "
      "Hopper, and the softmax beside the next tile's MMAs ([decision 0043](../decisions/"
      "0043-claims-and-pages.md)).\n");
}

template <typename Rows>
std::string Pairs(std::string_view titles, const Rows& rows) {
  Table table(titles);
  for (const TwoCells& row : rows) table.AddRow({std::string(row.left), std::string(row.right)});
  return table.ToMarkdown();
}

// Shapes of the notes: what of each is recorded.
std::string Shapes(const std::vector<ReadRecord>& records) {
  Table table("shape of the notes | here | recorded by");
  for (const sdpa::NamedShape& shape : sdpa::kShapes) {
    if (shape.why.find("L4 notes") == std::string_view::npos) continue;
    const std::string_view shown = sdpa::ShownName(shape.name);
    const std::string sizes = sdpa::ProblemName(shape.problem);
    std::vector<std::string> designs;
    for (const ReadRecord& record : records) {
      if (std::any_of(record.summary.shapes.begin(), record.summary.shapes.end(),
                      [&](const Shape& each) { return each.in_record == shape.name; })) {
        designs.push_back(DesignLink(record.summary, ""));
      }
    }
    table.AddRow(
        {std::string(shape.why), shown == sizes ? Code(shown) : Cat(Code(shown), ", ", Code(sizes)),
         designs.empty() ? Cat("no record of this GPU yet: `warpledger run --shapes=", shown, "`")
                         : JoinWords(designs)});
  }
  return table.ToMarkdown();
}

template <typename Rows>
std::string Quotations(const std::vector<MeasuredClaim>& claims, const Rows& rows) {
  Table table("step | the notes | found here");
  for (const Quoted& quoted : rows) {
    const std::string found = Found(claims, quoted);
    table.AddRow({std::string(quoted.step), std::string(quoted.said),
                  Cat(found, found.empty() || quoted.found.empty() ? "" : " ", quoted.found)});
  }
  return table.ToMarkdown();
}

}  // namespace

std::vector<std::string> L4NotesAnswer(const std::vector<ReadRecord>& records) {
  std::vector<std::string> lines;
  std::vector<std::string> fastest;
  for (const std::string_view shape : {"b2_h8_s256_d64", "b1_h8_s512_d64"}) {
    if (std::string text = FastestAt(records, shape); !text.empty()) fastest.push_back(text);
  }
  if (!fastest.empty()) {
    lines.push_back(
        Cat("Their target was less than 5 µs; PyTorch took 47 µs on an L4. On this GPU ",
            absl::StrJoin(fastest, "; "), "."));
  }
  const Summary* ladder = LadderOf(records);
  const Cell* end = ladder == nullptr ? nullptr : ladder->LastStep("b1_h8_s512_d64");
  if (end != nullptr && GainOf(*end).value) {
    lines.push_back(Cat("They aimed at 15× over their first kernel; here the ladder's end is ",
                        FormatRatio(GainOf(*end).value), " over it at `b1_h8_s512_d64` (",
                        DesignLink(*ladder, ""), ")."));
  }
  return lines;
}

std::string L4NotesText(const std::vector<ReadRecord>& records,
                        const std::vector<MeasuredClaim>& claims) {
  return Cat(
      "# The L4 notes, claim by claim, on ", records[0].summary.provenance.gpu.name,
      "\n\nThe L4 notes describe an earlier attempt on an NVIDIA L4. This page tests their claims "
      "on "
      "this GPU with our kernels. The notes' times are p50 at `b1_h8_s512_d64`, of another GPU and "
      "other code ([what is known of the notes](../decisions/0000-l4-notes.md)), so no ratio here "
      "uses them. `warpledger techniques` writes this page from the newest record of each "
      "design.\n\n## Targets\n\n",
      Targets(records, claims), "\n## Stages\n\n", Quotations(claims, kStages), "\n## Planned\n\n",
      Quotations(claims, kPlanned), "\n## Two histories of one step\n\n", Histories(records),
      "\n## NaN at 512 keys\n\n", Pairs("suspect | what was found", kSuspects),
      "\n## Equal bits between variants\n\n", SameBits(claims), "\n## Shapes\n\n", Shapes(records),
      "\n## Open questions and settings\n\n",
      Pairs("open question or setting | found here", kOpen));
}

}  // namespace warpledger::report
