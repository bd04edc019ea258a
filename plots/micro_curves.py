# SPDX-License-Identifier: Apache-2.0
"""The curves of a record that figures draw and pages speak of; no package is needed for them.

Each function takes plots.micro_data.Micro and gives nothing where the record lacks its cases.
"""

from plots.micro_data import break_even, effective_latency_cycles, line_fit, parameter

# --- cp.async depth -----------------------------------------------------------

# Series, in drawing order: the part of the case's name, and what the figure calls it.
CP_ASYNC_WAYS = (("cg16_stages_\\d+", "cp.async, 16 bytes"), ("bulk_stages_\\d+", "TMA (cp.async.bulk)"),
         ("registers", "loads through registers"),
         ("registers_prefetch", "the same, one tile ahead"))
CP_ASYNC_LEVELS = (("dram", "DRAM", "global_memory/chase_past_l1_1GiB/latency",
            "global_memory/dram_16B/bandwidth"),
           ("l2", "L2", "global_memory/chase_past_l1_16MiB/latency",
            "global_memory/read_16MiB/bandwidth"))


def cp_async_curves(micro, level):
    """{what: [(bytes in flight per SM, GB/s)]} of copies without arithmetic, one CTA per SM."""
    return {what: curve for way, what in CP_ASYNC_WAYS
            if (curve := micro.curve(rf"cp_async_depth/{level}_{way}_fma_0/bandwidth",
                                     "bytes_in_flight_per_cta"))}


def cp_async_stages_for(micro, level, share=0.95):
    """(stages, GB/s) of the shallowest cp.async pipeline that reaches `share` of its best."""
    found = micro.curve(rf"cp_async_depth/{level}_cg16_stages_\d+_fma_0/bandwidth", "stages")
    if not found:
        return None
    best = max(value for _, value in found)
    return next((int(stages), value) for stages, value in found if value >= share * best)


def cp_async_latency(micro, level):
    """Cycles at which Little's law explains one stage, the fewest bytes in flight."""
    found = cp_async_curves(micro, level).get(CP_ASYNC_WAYS[0][1])
    entry = micro.entry(f"cp_async_depth/{level}_cg16_stages_1_fma_0/bandwidth")
    if not found or entry is None:
        return None
    return effective_latency_cycles(*found[0], micro.gpu["sm_count"], entry["sm_mhz_p50"])


# --- XOR swizzle --------------------------------------------------------------

DILUTION_TOLERANCE = 0.01


def dilution_curves(micro):
    """{ways: [(FMAs per load, cycles per load)]}, over the amounts that all ways were measured at."""
    ways = sorted({int(match[1]) for match, _ in
                   micro.matching(r"xor_swizzle/dilution_ways_(\d+)/fma_\d+")})
    curves = {way: micro.curve(rf"xor_swizzle/dilution_ways_{way}/fma_\d+", "fmas_per_load")
              for way in ways}
    # Only where all were measured can they be compared.
    shared = None
    for points in curves.values():
        xs = {x for x, _ in points}
        shared = xs if shared is None else shared & xs
    return {way: [point for point in points if point[0] in shared]
            for way, points in curves.items() if shared}


def dilution_break_even(micro):
    """FMAs per load from which on the conflict costs at most DILUTION_TOLERANCE, or None."""
    curves = dilution_curves(micro)
    if len(curves) < 2:
        return None
    return break_even(curves[max(curves)], curves[min(curves)], DILUTION_TOLERANCE)


def conflict_slopes(micro):
    """{measure: ([(wavefronts, cycles)], (slope, intercept, r2))} of 4-byte loads."""
    out = {}
    for measure in ("saturated", "latency"):
        points = micro.curve(rf"xor_swizzle/lds32_ways_\d+/{measure}", "wavefronts")
        if len(points) > 2:
            out[measure] = points, line_fit(points)
    return out


# --- exp cost -----------------------------------------------------------------

EXP_ERRORS = ("absolute", "relative")


# A mix does some of its results one way and the rest another: its error is the larger one's.
_PARTS_OF_MIX = ("mix_mufu100", "polynomial3_f32")


def exp_points(micro, error):
    """[(results per clock and SM, largest error, name, whether measured itself)]."""
    found = []
    for match, entry in micro.matching(r"exp_cost/([^/]+)/throughput"):
        name = match[1]
        loss = micro.value(f"exp_cost/{name}/max_{error}_error")
        measured = loss is not None
        if not measured and name.startswith("mix_"):
            losses = [micro.value(f"exp_cost/{part}/max_{error}_error") for part in _PARTS_OF_MIX]
            loss = None if None in losses else max(losses)
        if loss:
            found.append((entry["value"], loss, name, measured))
    return found


# --- reductions ---------------------------------------------------------------

REDUCTIONS = ("max", "sum")


def reduction_ways(micro, operation):
    """{way: [(rows at once, cycles per row)]} of one warp, in the record's order."""
    names = dict.fromkeys(match[1] for match, _ in
                          micro.matching(rf"warp_reduction/([^/]+)/{operation}/rows\d+/latency"))
    return {name: micro.curve(rf"warp_reduction/{name}/{operation}/rows\d+/latency",
                              "rows_at_once") for name in names}


# --- wgmma --------------------------------------------------------------------

WGMMA_KINDS = (("k16_f16_ss", "fp16, A from shared memory"), ("k16_f16_rs", "fp16, A from registers"),
          ("k32_e4m3_ss", "e4m3, A from shared memory"), ("k32_e4m3_rs", "e4m3, A from registers"))


def wgmma_sweeps(micro):
    """{kind: [(N, percent of that type's limit)]}, the better of one and two warpgroups."""
    out = {}
    for kind, what in WGMMA_KINDS:
        best = {}
        for _, entry in micro.matching(rf"wgmma/m64n\d+{kind}/throughput/warpgroups_\d+"):
            n = parameter(entry, "n")
            if entry["percent_of_limit"] is not None:
                best[n] = max(best.get(n, 0), entry["percent_of_limit"])
        if best:
            out[what] = sorted(best.items())
    return out


def wgmma_operand_limit(micro):
    """[(N, percent)]: tensor cycles / max(tensor, operand cycles) of fp16 with A from shared memory."""
    found = {}
    for _, entry in micro.matching(r"wgmma/m64n\d+k16_f16_ss/throughput/warpgroups_\d+"):
        operands = entry["parameters"].get("operand_cycles")
        if operands is not None:
            tensor = parameter(entry, "tensor_cycles")
            found[parameter(entry, "n")] = 100 * tensor / max(tensor, operands)
    return sorted(found.items())


# --- memory -------------------------------------------------------------------

def footprint_bandwidths(micro):
    """{what: [(footprint, GB/s)]}: L1 in GB/s of all SMs at the case's clock, L2 and DRAM as read."""
    clocked = [(parameter(entry, "footprint_bytes"),
                entry["value"] * micro.gpu["sm_count"] * entry["sm_mhz_p50"] / 1e3)
               for _, entry in micro.matching(r"global_memory/l1_16B_\d+KiB/throughput")
               if entry["sm_mhz_p50"]]
    past = micro.curve(r"global_memory/read_\d+MiB/bandwidth", "footprint_bytes")
    dram = micro.curve(r"global_memory/dram_16B/bandwidth", "footprint_bytes")
    found = {"each SM reads all of it, through L1": sorted(clocked),
             "the SMs share it out, not kept in L1": past + dram}
    return {what: points for what, points in found.items() if points}


def footprint_latencies(micro):
    found = {"through L1": micro.curve(r"global_memory/chase_\d+KiB/latency", "footprint_bytes"),
             "not kept in L1": micro.curve(r"global_memory/chase_past_l1_\w+/latency",
                                           "footprint_bytes")}
    return {what: points for what, points in found.items() if points}


# --- overlap ------------------------------------------------------------------

# A case's value is the hidden share of the shorter of the two, from 0 to 1; `%` counts in hundred.
_OVERLAP_CASE = r"overlap/(mma_sync|wgmma)/([^/]+)/(within|across)(?:/hidden)?"


# wgmma is issued by four warps together.
OVERLAP_PLACES = {("mma_sync", "within"): "in one warp", ("wgmma", "within"): "in one warpgroup",
           ("mma_sync", "across"): "across warps", ("wgmma", "across"): "across warpgroups"}


def overlap_cells(micro):
    """({(operation, (partner, place)): percent hidden}, operations, columns), as recorded."""
    cells = {}
    for match, entry in micro.matching(_OVERLAP_CASE):
        if entry["unit"] not in ("", "%"):
            continue
        percent = entry["value"] * (1 if entry["unit"] == "%" else 100)
        cells[match[2], (match[1], match[3])] = percent
    operations = list(dict.fromkeys(operation for operation, _ in cells))
    columns = sorted({column for _, column in cells}, key=lambda c: (c[0], c[1] != "within"))
    return cells, operations, columns


def spoken_cell(cell):
    """A cell in words: ex2 beside wgmma in one warpgroup."""
    operation, column = cell
    return f"{operation} beside {column[0]} {OVERLAP_PLACES[column]}"

