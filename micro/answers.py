# SPDX-License-Identifier: Apache-2.0
"""What the record answers to each benchmark's question, and why figures differ or scatter.

Every figure is taken from the record: in a text, {case} stands for the case's value, {a / b} for a
ratio, {a - b} for a difference, {100 * a} for a multiple and {a %} for the percent of the limit. A
text that names a case which the record lacks is left out. A benchmark without an entry here gets a
sentence from general rules, so that adding one needs no change in this file.
"""

import re

from plots import micro_curves
from plots.micro_data import number, pareto_front, spread_percent

_TERM = re.compile(r"\{([^{}]+)\}")


class _Missing(Exception):
    """The record lacks a case that a text names."""


def _operand(micro, text):
    if re.fullmatch(r"[\d.]+", text):
        return float(text)
    value = micro.value(text)
    if value is None:
        raise _Missing(text)
    return value


def _term(micro, text):
    """The value of `case`, `a / b`, `a - b`, `a * b` (left to right) or `case %`, as text."""
    parts = text.split(" ")
    if parts[-1] == "%":
        entry = micro.entry(parts[0])
        if entry is None or entry["percent_of_limit"] is None:
            raise _Missing(text)
        return f"{entry['percent_of_limit']:.1f}%"
    value = _operand(micro, parts[0])
    for operation, operand in zip(parts[1::2], parts[2::2]):
        other = _operand(micro, operand)
        value = {"/": lambda a, b: a / b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
                 "+": lambda a, b: a + b}[operation](value, other)
    return number(value, 3)


def fill(micro, text):
    """The text with its figures, or "" where the record lacks one of them."""
    try:
        return _TERM.sub(lambda match: _term(micro, match[1]), text)
    except _Missing:
        return ""


def all_texts():
    """Every text with figures in it, for the tests."""
    texts = [text for found in ANSWERS.values() for text in found]
    return texts + [text for *_, text in EXPLANATIONS] + [target[-1] for target in TARGETS]


def cases_named(text):
    """The cases that a text needs, for the tests."""
    return [part for match in _TERM.finditer(text) for part in match[1].split(" ")
            if "/" in part and len(part) > 1]


# --- Answers -------------------------------------------------------------------

ANSWERS = {
    "barriers": [
        "__syncthreads takes {barriers/syncthreads_warps_1/latency} cycles with one warp, "
        "{barriers/syncthreads_warps_4/latency} with 4 and "
        "{barriers/syncthreads_warps_16/latency} with 16, which is "
        "{barriers/syncthreads_warps_16/latency / barriers/syncthreads_warps_4/latency} times "
        "as many as with 4; a named barrier of 4 warps takes "
        "{barriers/named_4_warps_groups_1/latency}.",
        "A round of all threads of 4 warps through an mbarrier takes "
        "{barriers/mbarrier_round_warps_4/latency} cycles. A barrier of a cluster of 2 CTAs takes "
        "{barriers/cluster_2_ctas/latency}, and without its memory fence "
        "{barriers/cluster_2_ctas_relaxed/latency}.",
    ],
    "block_reduction": [
        "A sum over 8 warps takes {block_reduction/two_level_shfl/sum/warps_8/latency} cycles by two "
        "levels of shuffles, {block_reduction/cub/sum/warps_8/latency} by CUB and, of integers, "
        "{block_reduction/two_level_redux_u32/sum/warps_8/latency} by redux.sync; over 32 warps "
        "{block_reduction/two_level_shfl/sum/warps_32/latency}, "
        "{block_reduction/cub/sum/warps_32/latency} and "
        "{block_reduction/two_level_redux_u32/sum/warps_32/latency}.",
    ],
    "conversions": [
        "A packed conversion of FP32 to FP16 gives {conversions/f32_to_f16x2/throughput} values "
        "per clock and SM, {conversions/f32_to_f16x2/throughput / conversions/f32_to_f16/throughput}"
        " times the rate of single conversions; e4m3 to FP16 gives "
        "{conversions/e4m3x2_to_f16x2/throughput}.",
        "The uint8 dequantisation gives {conversions/u8_magic_f16x2/throughput} values by PRMT in "
        "FP16x2, {conversions/u8_magic_f32/throughput} in FP32 and {conversions/u8_table/throughput}"
        " through a table.",
    ],
    "dsmem": [
        "A load from a neighbour's shared memory takes {dsmem/load_cluster_2/latency} cycles, from "
        "the CTA's own through the cluster's window {dsmem/load_cluster_2_own/latency}; loads of 16 "
        "bytes a lane move {dsmem/load_16B_cluster_2/throughput} B/clk/SM, bulk copies of 8 KiB "
        "{dsmem/bulk_8KiB/throughput}.",
    ],
    "exp_cost": [
        "ex2.approx gives {exp_cost/ex2_approx_ftz_f32/throughput} results per clock and SM, "
        "expf() {exp_cost/expf/throughput}; two halves at once give "
        "{exp_cost/ex2_approx_f16x2/throughput}, "
        "{exp_cost/ex2_approx_f16x2/throughput / exp_cost/ex2_approx_ftz_f32/throughput} times as "
        "many.",
    ],
    "fma_shfl": [
        "An SM finishes {fma_shfl/ffma/throughput} FP32 FMAs, {fma_shfl/hfma2/throughput} FP16 "
        "FMAs, {fma_shfl/iadd3/throughput} integer adds and {fma_shfl/shfl_bfly/throughput} "
        "shuffled lanes per clock. The latency of one dependent instruction is "
        "{fma_shfl/ffma/latency}, {fma_shfl/hfma2/latency}, {fma_shfl/iadd3/latency} and "
        "{fma_shfl/shfl_bfly/latency} cycles, in the same order.",
    ],
    "global_memory": [
        "L1 delivers {global_memory/l1_16B_64KiB/throughput} B/clk/SM at 16 bytes a load and "
        "{global_memory/l1_4B_64KiB/throughput} at 4; L2 {global_memory/read_16MiB/bandwidth} GB/s "
        "from 16 MiB, DRAM {global_memory/dram_16B/bandwidth} GB/s "
        "({global_memory/dram_16B/bandwidth %} of its pins' rate).",
        "A dependent load takes {global_memory/chase_64KiB/latency} cycles in L1, "
        "{global_memory/chase_past_l1_8MiB/latency} in L2 and "
        "{global_memory/chase_past_l1_1GiB/latency} from DRAM; 32 KiB in flight per SM give "
        "{100 * global_memory/dram_in_flight_32KiB/bandwidth / global_memory/dram_16B/bandwidth}% "
        "of DRAM's bandwidth.",
    ],
    "launch": [
        "An empty kernel costs {launch/empty_one_cta/graph} us as a node of a graph and "
        "{launch/empty_one_cta/stream} us on a stream, where the host takes "
        "{launch/empty_one_cta/host_call} us to submit it.",
        "A step that depends on the one before costs {launch/add_one_one_cta_per_sm/graph} us as a "
        "graph's node, {launch/add_one_one_cta_per_sm/programmatic} us by programmatic dependent "
        "launch and {launch/add_one_one_cta_per_sm/grid_sync} us behind a barrier of the grid.",
    ],
    "shared_memory": [
        "Loads of 4, 8 and 16 bytes a lane move {shared_memory/load_32/throughput}, "
        "{shared_memory/load_64/throughput} and {shared_memory/load_128/throughput} B/clk/SM; a "
        "dependent load takes {shared_memory/load_32/latency}, {shared_memory/load_64/latency} and "
        "{shared_memory/load_128/latency} cycles.",
        "A 32-way conflict makes it {shared_memory/conflict_32_stride_32/latency} cycles, and the "
        "full pipe serves {shared_memory/conflict_32_stride_32/throughput} predicted wavefronts per "
        "clock.",
    ],
    "tensor_core": [
        "mma.sync m16n8k16 reaches {tensor_core/mma_m16n8k16_f16_f32/throughput} FLOP/clk/SM, "
        "{tensor_core/mma_m16n8k16_f16_f32/throughput %} of the dense rate, with a latency of "
        "{tensor_core/mma_m16n8k16_f16_f32/latency} cycles; with fp16 sums "
        "{tensor_core/mma_m16n8k16_f16_f16/throughput}, in bf16 "
        "{tensor_core/mma_m16n8k16_bf16_f32/throughput}.",
        "Four warps with one chain each reach {tensor_core/mma_m16n8k16_f16_f32/throughput/"
        "warps_4_chains_1 %}, eight warps with four chains {tensor_core/mma_m16n8k16_f16_f32/"
        "throughput/warps_8_chains_4 %}.",
    ],
    "tma": [
        "A load of 1 KiB takes {tma/load_1d_1KiB/latency} cycles by address and "
        "{tma/load_2d_1KiB/latency} by tensor map; a store of 8 KiB "
        "{tma/store_1d_8KiB_until_read/latency} until shared memory is free and "
        "{tma/store_1d_8KiB_until_written/latency} until all is written.",
        "With 8 loads of 8 KiB under way on each SM, L2 gives "
        "{tma/l2_load_2d_8KiB_slots_8/bandwidth} GB/s and DRAM "
        "{tma/dram_load_2d_8KiB_slots_8/bandwidth}. Six loads of 32 KiB bring "
        "{tma/l2_load_2d_32KiB_slots_6/bandwidth} GB/s to the CTAs, multicast to 2 "
        "{tma/l2_load_multicast_2_32KiB_slots_6/bandwidth}, to 4 "
        "{tma/l2_load_multicast_4_32KiB_slots_6/bandwidth}.",
    ],
    "warp_reduction": [
        "A butterfly of shuffles takes {warp_reduction/shfl_xor/max/rows1/latency} cycles for the "
        "maximum of one row, against {warp_reduction/serial_shared/max/rows1/latency} serially "
        "through shared memory; with 8 rows at once {warp_reduction/shfl_xor/max/rows8/latency} "
        "and {warp_reduction/serial_shared/max/rows8/latency} per row, with 32 rows "
        "{warp_reduction/shfl_xor/max/rows32/latency} and "
        "{warp_reduction/serial_shared/max/rows32/latency}.",
        "redux.sync, integers only, takes {warp_reduction/redux_u32/max/rows8/latency} per row of 8.",
    ],
    "wgmma": [
        "m64n256k16 reaches {wgmma/m64n256k16_f16_ss/throughput/warpgroups_1 %} of the dense rate "
        "with one warpgroup and A from shared memory, m64n8k16 "
        "{wgmma/m64n8k16_f16_ss/throughput/warpgroups_1 %}. Their latencies are "
        "{wgmma/m64n256k16_f16_ss/latency} and {wgmma/m64n8k16_f16_ss/latency} cycles.",
    ],
    "wmma_fragment_loads": [
        "From shared memory a fragment comes at {wmma_fragment_loads/shared_a_row_ld72/throughput} "
        "B/clk/SM with a leading dimension of 72, at "
        "{wmma_fragment_loads/shared_a_row_ld64/throughput} with 64; ldmatrix.x4 on the swizzled "
        "tile at {wmma_fragment_loads/ldmatrix_x4_xor_ld64/throughput}, transposed "
        "{wmma_fragment_loads/ldmatrix_x4_trans_xor_ld64/throughput}.",
        "From L1 it comes at {wmma_fragment_loads/global_a_row_ld136/throughput} B/clk/SM at best "
        "where rows are 272 bytes apart, and at {wmma_fragment_loads/global_a_row_ld64/throughput} "
        "where they are 128.",
    ],
    "xor_swizzle": [
        "A further wavefront costs {xor_swizzle/lds32_ways/slope_saturated} cycles when the pipe is "
        "full and {xor_swizzle/lds32_ways/slope_latency} of one warp's latency; a column of a tile "
        "takes {xor_swizzle/column_none/saturated} cycles plainly, "
        "{xor_swizzle/column_padded/saturated} padded, {xor_swizzle/column_xor/saturated} swizzled.",
    ],
}


def _cp_async_depth(micro):
    sentences = []
    for level, name in (("dram", "DRAM"), ("l2", "L2")):
        found = micro_curves.cp_async_stages_for(micro, level)
        if found:
            sentences.append(
                f"From {name}, {found[0]} stages of 8 KiB come within 5% of the best that cp.async "
                f"reaches with one CTA per SM ({number(found[1])} GB/s); one stage moves as much as "
                "Little's law gives at a latency of "
                f"{number(micro_curves.cp_async_latency(micro, level), 3)} cycles.")
    return sentences + [
        fill(micro, "With all CTAs that fit an SM, one stage reaches "
             "{100 * cp_async_depth/dram_full_cg16_stages_1_fma_64/bandwidth / "
             "cp_async_depth/dram_full_cg16_stages_8_fma_64/bandwidth}% of eight stages' bandwidth, "
             "arithmetic included."),
        fill(micro, "Arithmetic of 64 FMAs per 16 bytes hides the L2 latency from two stages on: a "
             "tile's exposed wait falls from {cp_async_depth/cg16_stages_1_fma_64/exposed_wait} to "
             "{cp_async_depth/cg16_stages_2_fma_64/exposed_wait} cycles, the clock's floor.")]


def _exp_front(micro):
    front = pareto_front(micro_curves.exp_points(micro, "relative"))
    if not front:
        return []
    words = ", ".join(f"`{name}` ({value:.1f} per clock and SM, relative error {loss:.1e})"
                      for value, loss, name, _ in front)
    return [f"No other method is both faster and at least as accurate as one of these: {words}."]


def _dilution(micro):
    fmas = micro_curves.dilution_break_even(micro)
    curves = micro_curves.dilution_curves(micro)
    if fmas is None or len(curves) < 2:
        return []
    xs = [x for x, _ in curves[max(curves)]]
    below = max(x for x in xs if x <= fmas)
    above = min(x for x in xs if x >= fmas)
    return [f"An {max(curves)}-way conflict costs at most {100 * micro_curves.DILUTION_TOLERANCE:g}% from "
            f"{fmas:.1f} FMAs per load on, interpolated between {below:g} and {above:g}."]


def _reduction_best(micro):
    best = {}
    for operation in micro_curves.REDUCTIONS:
        for way, points in micro_curves.reduction_ways(micro, operation).items():
            if way.startswith("redux"):
                continue  # not for floats
            for rows, cycles in points:
                if rows not in best or cycles < best[rows][0]:
                    best[rows] = cycles, way, operation
    if not best:
        return []
    return ["Fewest cycles per row for floats: " + ", ".join(
        f"{number(cycles, 3)} by `{way}` ({operation}) with {rows:g} row{'' if rows == 1 else 's'} "
        "at once"
        for rows, (cycles, way, operation) in sorted(best.items())) + "."]


def _wgmma_least(micro):
    sweeps = micro_curves.wgmma_sweeps(micro)
    full = {what: min((n for n, percent in points if percent >= 95), default=None)
            for what, points in sweeps.items()}
    return ["At least 95% of the dense rate of its type: " + "; ".join(
        f"{what} from N = {n:g} on" for what, n in full.items() if n is not None) + "."
            ] if any(full.values()) else []


def _overlap(micro):
    cells, _, _ = micro_curves.overlap_cells(micro)
    if not cells:
        return []
    best, worst = max(cells, key=cells.get), min(cells, key=cells.get)
    return [f"The best overlap is {micro_curves.spoken_cell(best)}: it hides {cells[best]:.0f}% of the "
            f"shorter of the two. The worst is {micro_curves.spoken_cell(worst)}: {cells[worst]:.0f}%.",
            f"Nearly free (90% or more hidden) are "
            f"{sum(percent >= 90 for percent in cells.values())} of the {len(cells)} pairs; "
            f"{sum(percent < 50 for percent in cells.values())} hide less than half."]


COMPUTED = {"cp_async_depth": _cp_async_depth, "exp_cost": _exp_front, "overlap": _overlap,
            "warp_reduction": _reduction_best, "wgmma": _wgmma_least, "xor_swizzle": _dilution}


def _general(entries):
    limited = [entry for entry in entries if entry["percent_of_limit"] is not None]
    if limited:
        best = max(limited, key=lambda entry: entry["percent_of_limit"])
        return [f"`{best['name'].partition('/')[2]}` comes nearest to its limit, of {len(entries)} cases: "
                f"{number(best['value'])} {best['unit']}, {best['percent_of_limit']:.1f}%."]
    unit = max({entry["unit"] for entry in entries},
               key=lambda unit: sum(entry["unit"] == unit for entry in entries))
    rows = [entry for entry in entries if entry["unit"] == unit]
    low, high = (choose(rows, key=lambda entry: entry["value"]) for choose in (min, max))
    return [f"{len(entries)} cases, from {number(low['value'])} {unit} "
            f"(`{low['name'].partition('/')[2]}`) to {number(high['value'])} {unit} "
            f"(`{high['name'].partition('/')[2]}`)."]


def answer(micro, benchmark, entries):
    """The sentences that answer the benchmark's question."""
    sentences = [fill(micro, text) for text in ANSWERS.get(benchmark, ())]
    if benchmark in COMPUTED:
        sentences += COMPUTED[benchmark](micro)
    return [text for text in sentences if text] or _general(entries)


# --- Why ours differ from published figures -------------------------------------

# (case as a pattern, start of the source): why, with figures of the same record. Asked for where
# the two differ by more than is notable (pages.py); a case's own `why` stands where this has none.
# The first whose figures the record holds counts.
EXPLANATIONS = [
    (r"barriers/mbarrier_arrive/latency", "FlashGPU-Sim",
     "Ours is the slope of a loop of eight arrivals, whose counter and branch are in it: with theirs "
     "per arrival, {8 * barriers/mbarrier_arrive/latency - 48} cycles are left per iteration. The "
     "same loop around try_wait leaves {8 * barriers/mbarrier_try_wait/latency - 344} with their 43: "
     "one price of the loop explains both"),
    (r"conversions/e4m3x2_to_f16x2/throughput", "DeepSeek",
     "Theirs counts conversions, ours values: one instruction converts a pair, and of those an SM "
     "finishes {conversions/e4m3x2_to_f16x2/throughput / 2} per clock"),
    (r"fma_shfl/hfma2/throughput", "NVIDIA",
     "Two pipes do it, under two names, HFMA2 and HFMA2.MMA. With constants for factor and addend "
     "ptxas takes the first alone (the evidence); with values that it can't know it takes both in "
     "turn, and an SM finishes {fma_shfl/hfma2_registers/throughput}"),
    # Of records that lack that case.
    (r"fma_shfl/hfma2/throughput", "NVIDIA",
     "The loop holds HFMA2 and nothing else (its evidence), and FP32 FMAs of the same kernel reach "
     "{fma_shfl/ffma/throughput}, so neither issue nor loop limits it: it is the rate of one of two "
     "pipes. The other one's name for it is HFMA2.MMA, which ptxas doesn't take where factor and "
     "addend are constants"),
    (r"global_memory/chase_64KiB/latency", "Luo",
     "In our chain the loaded word is the next address; where it is an index, as in the usual "
     "pointer chase, the address computation is part of a link: one dependent integer operation "
     "takes {fma_shfl/iadd3/latency} cycles here, and a 64-bit address takes two. Not verified on "
     "their code. A larger footprint isn't the cause: {global_memory/chase_192KiB/latency} cycles "
     "at 192 KiB"),
    (r"global_memory/chase_past_l1_1GiB/latency", "Luo",
     "Theirs is an H100 PCIe, whose boost clock is 1755 MHz (NVIDIA's product brief PB-11133), ours "
     "runs at 1980: the same nanoseconds would be {478.8 * 1980 / 1755} cycles here. The rest isn't split up: our chain visits random lines of "
     "1 GiB, so that each load may open another DRAM page and miss the TLB, and how far theirs "
     "reaches we don't know; where a part still lies in L2 a load takes less, "
     "{global_memory/chase_past_l1_64MiB/latency} cycles at 64 MiB"),
    (r"launch/add_one_\w+/graph", "gpu-benches",
     "Theirs is the overhead in a fit of time over data volume, of a kernel that scales an array "
     "(readme of gpu-small-kernels); ours is one small kernel that adds 1 to a word per thread. How "
     "many CTAs it has matters by {launch/add_one_one_cta_per_sm/graph - "
     "launch/add_one_one_cta/graph} us between one and one on each SM. By a barrier of the grid, "
     "where no launch is involved, both agree ({launch/add_one_one_cta/grid_sync} us)"),
    (r"launch/empty_\w+/stream", "gpu-benches",
     "Theirs queues 10000 calls of a kernel that scales an array (readme of gpu-small-kernels), more "
     "than a stream holds, so the host's rate of submitting is in it: one call takes "
     "{launch/empty_one_cta/host_call} us of our host. All our launches are queued behind a busy "
     "kernel before the clock starts, and they are empty; that alone is "
     "{launch/add_one_one_cta/graph - launch/empty_one_cta/graph} us in a graph"),
    (r"shared_memory/load_32/latency", "Luo",
     "In our chain the loaded word is the next address; where it is an index, computing the address "
     "is part of a link: with one dependent integer operation, {fma_shfl/iadd3/latency} cycles here, "
     "a link would take {shared_memory/load_32/latency + fma_shfl/iadd3/latency}. Not verified on "
     "their code. Another kernel of ours agrees: {xor_swizzle/lds32_ways_1/latency} cycles"),
    (r"shared_memory/conflict_\d+_(pairs|broadcast)/throughput", "bank model",
     "For accesses of 8 and 16 bytes the model counts every phase, so it is an upper bound where "
     "lanes read the same words: the hardware serves two phases in one wavefront. Its latency shows "
     "the same: {shared_memory/conflict_64_broadcast/latency} cycles for 8 bytes, all lanes on one "
     "address, against {shared_memory/load_64/latency} without sharing"),
    (r"wgmma/m64n\d+k16_f16_ss/latency", "FlashGPU-Sim",
     "The difference is the same for both widths, {wgmma/m64n64k16_f16_ss/latency - 75} cycles at "
     "N = 64 and {wgmma/m64n128k16_f16_ss/latency - 107} at N = 128, so it isn't the product's: our "
     "link runs from one issue to the next and holds fence, commit and wait, and how much of that "
     "theirs holds isn't said"),
]


def explanation(micro, case, source):
    """Why the two differ, from EXPLANATIONS; "" where it has nothing to say."""
    filled = (fill(micro, text) for pattern, start, text in EXPLANATIONS
              if re.fullmatch(pattern, case) and source.startswith(start))
    return next(filter(None, filled), "")


# --- Why processes differ --------------------------------------------------------


def spread_cause(entry):
    """What the record itself says of a spread: the clock, the repetitions, or the process."""
    spread = spread_percent([process["value"] for process in entry["by_process"]])
    clocks = [process["sm_mhz"] for process in entry["by_process"] if process["sm_mhz"]]
    clock_spread = spread_percent(clocks) or 0.0
    inside = max((spread_percent(process["repetitions"]) or 0.0 for process in entry["by_process"]),
                 default=0.0)
    if entry["unit"] == "" and entry["limit"] == 1.0:
        values = [process["value"] for process in entry["by_process"]]
        return (f"The share differs by {number(max(values) - min(values), 2)}. It is a small difference "
                "of stable cycle counts, so a small change of these is a large part of it")
    wait = ""
    if entry["unit"] == "cycles" and abs(entry["value"]) * spread / 100 < 1:
        wait = f"It is {number(entry['value'] * spread / 100, 2)} cycles. "
    if clock_spread > spread / 2 and entry["kind"] == "cycles":
        return (f"{wait}The processes ran at {min(clocks):.0f} to {max(clocks):.0f} MHz: memory has "
                "its own clock, so the same wait for it is another number of SM cycles")
    if clock_spread > spread / 2:
        return f"The processes ran at {min(clocks):.0f} to {max(clocks):.0f} MHz"
    clock = "at the same clock" if clock_spread < 0.1 else f"at clocks {clock_spread:.1f}% apart"
    if inside > 0.75 * spread:
        return (f"{wait}Repetitions inside one process differ as much, up to {inside:.1f}%, {clock}: "
                "each repetition allocates anew, so its data have other addresses, and the load of the "
                "host differs")
    return (f"{wait}Repetitions inside one process agree within {inside:.1f}%, {clock}. Between "
            "processes the addresses of driver and data, and the host's core, differ; they stay the "
            "same within a process")


# --- Figures to reach --------------------------------------------------------------

# (what, pattern of the cases, the best of which counts, comparison, target, of what, why not).
# `of`: "value", or "percent_of_limit".
TARGETS = [
    ("shared memory, B/clk/SM", r"shared_memory/(load|store)_\d+/throughput", ">=", 126, "value",
     ""),
    ("ex2.approx, results/clk/SM", r"exp_cost/ex2_approx_ftz_f32/throughput", ">=", 15.8, "value",
     ""),
    ("FP32 FMA, FMAs/clk/SM", r"fma_shfl/ffma\w*/throughput", ">=", 126, "value",
     "FFMA is issued every cycle, so whatever else the loop issues is lost to it: its counter, its "
     "branch and the warps' turns take {128 - fma_shfl/ffma/throughput} of 128 slots"),
    ("shuffle, lanes/clk/SM", r"fma_shfl/shfl_bfly/throughput", ">=", 31, "value", ""),
    ("wgmma m64n256k16, % of 4096 FLOP/clk/SM", r"wgmma/m64n256k16_f16_[sr]s/throughput/\w+", ">=",
     95, "percent_of_limit", ""),
    ("mma.sync m16n8k16, % of 4096 FLOP/clk/SM", r"tensor_core/mma_m16n8k16_f16_f32/throughput",
     ">=", 60, "percent_of_limit", ""),
    ("DRAM read, GB/s", r"global_memory/dram_\d+B/bandwidth", ">=", 4200, "value", ""),
    ("L2 read of 16 MiB, GB/s", r"global_memory/(read_16MiB|l2_\d+B\w*)/bandwidth", ">=", 9500, "value",
     "Width and order of the loads aren't the cause ({global_memory/l2_4B/bandwidth} with 4-byte "
     "loads, {global_memory/l2_16B_cta_per_chunk/bandwidth} with one chunk per CTA), nor is the "
     "footprint ({global_memory/read_24MiB/bandwidth} at 24 MiB; what smaller ones give above it, "
     "{global_memory/read_4MiB/bandwidth} at 4 MiB, are lines that several SMs get at once). "
     "Counters of the L2's slices: reports/decisions/0010"),
    ("conflict, cycles per further wavefront", r"xor_swizzle/lds32_ways/slope_saturated", "=", 1,
     "value", ""),
    ("its R²", r"xor_swizzle/lds32_ways/r2_saturated", ">=", 0.999, "value", ""),
    ("empty kernel as a graph's node, us", r"launch/empty_one_cta/graph", "<=", 0.6, "value", ""),
]
# `=` holds within this, in percent.
EQUAL_WITHIN_PERCENT = 2.0


def judge_target(micro, target):
    """(the case that counts, its figure, whether it meets the target), or None if not measured."""
    _, pattern, comparison, goal, of, _ = target
    found = [(entry[of], entry["name"]) for _, entry in micro.matching(pattern)
             if entry[of] is not None]
    if not found:
        return None
    if comparison == ">=":
        value, name = max(found)
        return name, value, value >= goal
    if comparison == "<=":
        value, name = min(found)
        return name, value, value <= goal
    value, name = min(found, key=lambda pair: abs(pair[0] - goal))
    return name, value, 100 * abs(value / goal - 1) <= EQUAL_WITHIN_PERCENT
