# SPDX-License-Identifier: Apache-2.0
"""The figures of a record of microbenchmarks, a function each.

Each takes the record and returns its figure, or None where the record has none of its cases.
"""

from matplotlib import colors, ticker
from matplotlib.patches import Rectangle

from plots import micro_canvas, style
from plots.micro_curves import (CP_ASYNC_LEVELS, CP_ASYNC_WAYS, DILUTION_TOLERANCE, EXP_ERRORS,
                                OVERLAP_PLACES, REDUCTIONS, WGMMA_KINDS, conflict_slopes,
                                cp_async_curves, cp_async_latency, cp_async_stages_for,
                                dilution_break_even, dilution_curves, exp_points,
                                footprint_bandwidths, footprint_latencies, overlap_cells,
                                reduction_ways, spoken_cell, wgmma_operand_limit, wgmma_sweeps)
from plots.micro_data import bytes_for_bandwidth, littles_law_gb_per_s, number, pareto_front, size


def draw_cp_async_depth(micro):
    """Bandwidth against bytes in flight, by cp.async, TMA and loads through registers."""
    levels = [level for level in CP_ASYNC_LEVELS if cp_async_curves(micro, level[0])]
    if not levels:
        return None
    needs = []
    for level, name, *_ in levels:
        if found := cp_async_stages_for(micro, level):
            needs.append(f"{found[0]} {'stages ' if not needs else ''}for {name}")
    figure, all_axes = micro_canvas.panels(
        "cp.async is within 5% of its best with " + " and ".join(needs),
        micro_canvas.subtitle(micro, "tiles of 8 KiB, one CTA on each SM, no arithmetic",
                              "both scales logarithmic"), len(levels), height_in=5.2)
    for axes, (level, name, latency_case, peak_case) in zip(all_axes, levels):
        found = cp_async_curves(micro, level)
        for i, (_, what) in enumerate(CP_ASYNC_WAYS):
            if what in found:
                points = found[what]
                micro_canvas.series(axes, points, i, what,
                                    **({} if len(points) > 1 else {"linestyle": "none"}))
        xs = sorted({x for points in found.values() for x, _ in points})
        top = max(y for points in found.values() for _, y in points)
        clock = next(entry["sm_mhz_p50"] for _, entry in micro.matching(
            rf"cp_async_depth/{level}_.*/bandwidth") if entry["sm_mhz_p50"])
        latency, peak = micro.value(latency_case), micro.value(peak_case)
        if latency:
            sms = micro.gpu["sm_count"]
            loaded = cp_async_latency(micro, level)
            for cycles, why, dashes in ((latency, "idle", (0, (1, 1.5))),
                                        (loaded, "one stage's", (0, (5, 3)))):
                if cycles is None:
                    continue
                # Drawn as far as the level's own rate; past it the law isn't the limit.
                ends = (xs[0] / 2, bytes_for_bandwidth(peak or top, cycles, sms, clock))
                axes.plot(ends, [littles_law_gb_per_s(x, cycles, sms, clock) for x in ends],
                          **(micro_canvas.THEORY | {"linestyle": dashes}),
                          label=f"Little's law at {cycles:.0f} cycles, {why}")
        if peak:
            axes.axhline(peak, color=style.RULE, linewidth=1.4, zorder=1)
            axes.text(xs[-1] * 1.06, peak, "plain reads", fontsize=style.HEADER_PT,
                      color=style.MUTED_INK, va="bottom", ha="right")
        micro_canvas.bytes_axis(axes, [2 ** k for k in range(13, 17)],
                                "bytes in flight per SM (log scale)")
        axes.set_xlim(xs[0] / 2, xs[-1] * 1.15)
        axes.set_yscale("log", base=2)
        micro_canvas.plain_ticks(axes.yaxis, [500, 1000, 2000, 4000, 8000])
        axes.set_ylim(min(y for points in found.values() for _, y in points) / 2.5,
                      1.15 * max(top, peak or 0))
        axes.set_ylabel("GB/s")
        micro_canvas.panel_title(axes, f"from {name}")
        micro_canvas.legend(axes, loc="lower right")
    return figure


def _groups(found):
    """The points whose marks nearly cover each other, together: they share a label."""
    groups = []
    for point in sorted(found, key=lambda p: (p[1], -p[0])):
        for group in groups:
            if abs(point[0] / group[0][0] - 1) < 0.03 and abs(point[1] / group[0][1] - 1) < 0.2:
                group.append(point)
                break
        else:
            groups.append([point])
    return groups


def draw_exp_pareto(micro):
    """Accuracy against throughput of every way to compute an exponential, with the Pareto front."""
    found = {error: exp_points(micro, error) for error in EXP_ERRORS}
    if not all(found.values()):
        return None
    front = pareto_front(found["relative"])
    figure, all_axes = micro_canvas.panels(
        f"{front[-1][2]} is fastest with {front[-1][0]:.1f} per clock and SM; "
        f"{front[0][2]} most accurate with {front[0][0]:.1f}",
        micro_canvas.subtitle(micro, "largest error over every representable argument ≤ 0",
                              "right and down is better, the line is the Pareto front",
                              "hollow: the larger error of its parts"),
        len(EXP_ERRORS), height_in=5.4, left_in=1.05, gap_in=1.35)
    for axes, error in zip(all_axes, EXP_ERRORS):
        front = pareto_front(found[error])
        # A staircase: between two of the front nothing is both faster and as accurate.
        axes.step([p[0] for p in front], [p[1] for p in front], where="pre",
                  color=style.BLUISH_GREEN, alpha=0.45, linewidth=2.5, zorder=1)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(base=10))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:.0e}"))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        on_front = {p[2] for p in front}
        for value, loss, name, measured in sorted(found[error], key=lambda p: p[2] in on_front):
            colour = style.BLUISH_GREEN if name in on_front else style.MUTED_INK
            axes.plot([value], [loss], **style.mark_arguments("o", colour, measured), zorder=3)
        axes.set_ylim(min(p[1] for p in found[error]) / 4, max(p[1] for p in found[error]) * 4)
        axes.set_xlim(min(p[0] for p in found[error]) - 1.8, max(p[0] for p in found[error]) + 3.2)
        for group in _groups(found[error]):
            names = [point[2] for point in group]
            value = max(point[0] for point in group)
            x, y, where = value, group[0][1], {"ha": "left", "va": "center"}
            offset = (10, 0)
            if not 0.7 < value / max(p[0] for p in found[error]) < 0.85:
                # Beside the mark it would leave the panel on the right, or meet the next on the left.
                offset, where = (0, 12), {"ha": "center", "va": "bottom"}
            axes.annotate("\n".join(names), (x, y), xytext=offset, textcoords="offset points",
                          fontsize=style.HEADER_PT, linespacing=style.LINE_SPACING, zorder=4,
                          color=style.INK if on_front & set(names) else style.MUTED_INK,
                          bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75,
                                "pad": 1}, **where)
        axes.set_xlabel("results per clock and SM")
        axes.set_ylabel(f"largest {error} error (log scale)")
        micro_canvas.panel_title(axes, f"{error} error")
    return figure


def draw_memory_hierarchy(micro):
    """Bandwidth and latency of the memory hierarchy by footprint."""
    rates, waits = footprint_bandwidths(micro), footprint_latencies(micro)
    if not rates or not waits:
        return None
    last = max(point for points in waits.values() for point in points)
    first = min(point for points in waits.values() for point in points)
    figure, all_axes = micro_canvas.panels(
        f"A dependent load takes {first[1]:.0f} cycles in L1 and {last[1]:.0f} from DRAM",
        micro_canvas.subtitle(micro, "16-byte loads for bandwidth, 8-byte chains for latency"), 2)
    for axes, curves, label, title in ((all_axes[0], rates, "GB/s", "bandwidth"),
                                       (all_axes[1], waits, "cycles per load", "latency")):
        for i, (what, points) in enumerate(curves.items()):
            micro_canvas.series(axes, points, i, what)
        xs = [x for points in curves.values() for x, _ in points]
        micro_canvas.bytes_axis(axes, [2 ** k for k in range(16, 33, 4)], "footprint (log scale)")
        axes.set_xlim(min(xs) / 1.6, max(xs) * 1.8)
        axes.set_ylim(0, 1.15 * max(y for points in curves.values() for _, y in points))
        axes.set_ylabel(label)
        micro_canvas.panel_title(axes, title)
        for what, points in curves.items():
            # The end that stands for a level: L1's is the smallest, DRAM's the largest.
            last = "through" not in what
            x, y = points[-1 if last else 0]
            axes.annotate(f"{y:.0f} at {size(x)}", (x, y), xytext=(0, 10) if last else (-2, 24),
                          textcoords="offset points", ha="right" if last else "left",
                          fontsize=style.HEADER_PT, color=style.MUTED_INK)
        micro_canvas.legend(axes, loc="upper right" if title == "bandwidth" else "center left")
    return figure


def draw_overlap_matrix(micro):
    """How much of each instruction a tensor-core product hides, as a matrix."""
    cells, operations, columns = overlap_cells(micro)
    if not cells:
        return None
    best, worst = max(cells, key=cells.get), min(cells, key=cells.get)
    title = f"{cells[best]:.0f}% of {spoken_cell(best)} is hidden, {cells[worst]:.0f}% of {spoken_cell(worst)}"
    figure, (axes,) = micro_canvas.panels(
        title, micro_canvas.subtitle(micro, "share of the shorter of the two that the pair hides",
                                     "100%: as if it weren't there; 0%: one after the other"),
        height_in=0.62 * len(operations), left_in=2.4, under_in=0.35, top_in=0.7)
    axes.grid(False)
    shade = colors.LinearSegmentedColormap.from_list("hidden", ["#FFFFFF", style.BLUISH_GREEN])
    grid = [[cells.get((operation, column), float("nan")) for column in columns]
            for operation in operations]
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(operations) - 0.5, -0.5)
    for y, row in enumerate(grid):
        for x, percent in enumerate(row):
            known = percent == percent  # not NaN
            # No imshow(), which would put a PNG into the SVG.
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, linewidth=0, zorder=0,
                                     facecolor=shade(percent / 100) if known else style.BAND))
            axes.text(x, y, f"{percent:.0f}%" if known else "–", ha="center", va="center",
                      fontsize=style.ROW_PT, fontweight="bold" if known else "normal",
                      color="white" if known and percent > 70 else style.INK)
    axes.set_yticks(range(len(operations)), operations)
    axes.set_xticks(range(len(columns)), [f"{column[0]}, {OVERLAP_PLACES[column]}" for column in columns])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([x - 0.5 for x in range(1, len(columns))], minor=True)
    axes.set_yticks([y - 0.5 for y in range(1, len(operations))], minor=True)
    axes.grid(which="minor", color="white", linewidth=3)
    axes.tick_params(which="minor", length=0)
    return figure


def draw_reduction_costs(micro):
    """Cycles per row against rows reduced together, by every way to reduce across a warp."""
    found = {operation: reduction_ways(micro, operation) for operation in REDUCTIONS}
    found = {operation: curves for operation, curves in found.items() if curves}
    if not found:
        return None
    order = list(dict.fromkeys(name for curves in found.values() for name in curves))
    title = "Reductions across a warp get cheaper with rows in flight"
    butterfly = dict(found.get("max", {}).get("shfl_xor", ()))
    if 1 in butterfly and len(butterfly) > 1:
        rows = min(butterfly, key=butterfly.get)
        title = (f"A shuffle butterfly takes {butterfly[1]:.0f} cycles for one row, "
                 f"{butterfly[rows]:.0f} a row for {rows:g} at once")
    figure, all_axes = micro_canvas.panels(
        title, micro_canvas.subtitle(micro, "one warp reduces that many rows of 32 values together",
                                     "both scales logarithmic"), len(found), height_in=5)
    for axes, (operation, curves) in zip(all_axes, found.items()):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        for name, points in curves.items():
            micro_canvas.series(axes, points, order.index(name), name)
        micro_canvas.plain_ticks(axes.xaxis, sorted({x for c in curves.values() for x, _ in c}))
        micro_canvas.plain_ticks(axes.yaxis, [10, 20, 50, 100, 200])
        axes.set_ylim(8, 330)
        axes.set_xlabel("rows at once")
        axes.set_ylabel("cycles per row")
        micro_canvas.panel_title(axes, f"{operation} of a row of 32 values")
        # In the order of the curves' right ends, so that eye and list go the same way.
        handles, labels = axes.get_legend_handles_labels()
        ends = sorted(zip(handles, labels), key=lambda pair: -curves[pair[1]][-1][1])
        axes.legend([h for h, _ in ends],
                    [f"{name}: {number(curves[name][-1][1], 3)}" for _, name in ends],
                    frameon=False, fontsize=style.HEADER_PT, loc="upper right",
                    title=f"cycles per row with {curves[ends[0][1]][-1][0]:g} rows",
                    title_fontsize=style.HEADER_PT)
    return figure


def draw_swizzle_dilution(micro):
    """What a bank conflict costs under arithmetic: from how many FMAs on it vanishes."""
    curves = dilution_curves(micro)
    if len(curves) < 2:
        return None
    worst = max(curves)
    fmas = dilution_break_even(micro)
    title = (f"An {worst}-way conflict costs nothing from {fmas:.0f} FMAs per load on"
             if fmas is not None else
             f"An {worst}-way conflict still costs under {curves[worst][-1][0]:g} FMAs per load")
    figure, (axes,) = micro_canvas.panels(title, micro_canvas.subtitle(
        micro, "16 warps, each load of 4 bytes a lane followed by FMAs"))
    for i, (way, points) in enumerate(curves.items()):
        micro_canvas.series(axes, points, i,
                            "no conflict" if way == 1 else f"{way}-way conflict")
    xs = [x for x, _ in curves[worst]]
    axes.plot(xs, [max(worst, x / 4) for x in xs], **micro_canvas.THEORY,
              label=f"the model: max({worst} wavefronts, FMAs / 4 schedulers)")
    axes.fill_between(xs, [y for _, y in curves[min(curves)]], [y for _, y in curves[worst]],
                      color=style.ORANGE, alpha=0.12, linewidth=0, zorder=1)
    if fmas is not None:
        axes.axvline(fmas, color=style.INK, linewidth=1.2, zorder=2)
        axes.text(fmas, axes.get_ylim()[1] * 0.94,
                  f"  break-even: {fmas:.1f} FMAs, interpolated (cost at most "
                  f"{100 * DILUTION_TOLERANCE:g}%)",
                  va="top", fontsize=style.ROW_PT)
    axes.set_ylim(0, None)
    axes.set_xlim(0, xs[-1])
    axes.set_xlabel("FMAs per load")
    axes.set_ylabel("SM cycles per load")
    micro_canvas.legend(axes, loc="lower right")
    return figure


def draw_bank_conflict_slope(micro):
    """What a bank conflict costs by its ways."""
    found = conflict_slopes(micro)
    if not found:
        return None
    words = {"saturated": "saturated, 16 warps", "latency": "one warp alone, latency"}
    title = "A further wavefront costs " + " and ".join(
        f"{fit[0]:.2f} cycles {'saturated' if measure == 'saturated' else 'of latency'}"
        for measure, (_, fit) in found.items())
    figure, (axes,) = micro_canvas.panels(title, micro_canvas.subtitle(
        micro, "4-byte loads whose lanes meet in one bank, 1 to 32 ways"))
    for i, (measure, (points, (slope, intercept, r2))) in enumerate(found.items()):
        micro_canvas.series(axes, points, i, f"{words[measure]}: {intercept:.2f} + "
                            f"{number(slope)} per wavefront, R² {r2:.5f}", linestyle="none")
        ends = [points[0][0], points[-1][0]]
        axes.plot(ends, [intercept + slope * x for x in ends], **(
            micro_canvas.THEORY | {"color": style.SERIES[i][0]}))
    axes.set_xticks([x for x, _ in next(iter(found.values()))[0]])
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
    axes.set_xlabel("wavefronts per load")
    axes.set_ylabel("cycles per load")
    micro_canvas.legend(axes, loc="upper left")
    return figure


_MMA_SYNC = "tensor_core/mma_m16n8k16_f16_f32/throughput"


def draw_wgmma_widths(micro):
    """FLOP per clock of wgmma by its width N, beside the operands' limit and mma.sync."""
    found = wgmma_sweeps(micro)
    if not found:
        return None
    least = {what: min((n for n, percent in points if percent >= 95), default=None)
             for what, points in found.items()}
    ends = [f"N = {least[what]:g} on with {what}" for _, what in WGMMA_KINDS[:2]
            if least.get(what)]
    figure, (axes,) = micro_canvas.panels(
        "wgmma fills the tensor cores from " + ", from ".join(ends) if ends else
        "wgmma doesn't fill the tensor cores",
        micro_canvas.subtitle(micro, "m64nN, back to back, the better of one and two warpgroups",
                              "percent of the dense rate of its type"))
    mma_sync = micro.entry(_MMA_SYNC)
    if mma_sync and mma_sync["percent_of_limit"] is not None:
        axes.axhline(mma_sync["percent_of_limit"], **micro_canvas.THEORY)
        axes.text(0.99, mma_sync["percent_of_limit"] + 1.5,
                  f"mma.sync m16n8k16: {mma_sync['percent_of_limit']:.1f}%", ha="right",
                  transform=axes.get_yaxis_transform(), fontsize=style.HEADER_PT,
                  color=style.MUTED_INK)
    limit = wgmma_operand_limit(micro)
    if limit:
        axes.plot(*zip(*limit), color=style.RULE, linewidth=5, solid_capstyle="round", zorder=1,
                  label="limit by operands: A and B at 128 B/clk, fp16")
    for i, (_, what) in enumerate(WGMMA_KINDS):
        if what in found:
            micro_canvas.series(axes, found[what], i, what,
                                # Marks that fall on each other show as rings.
                                markersize=14 - 3 * i,
                                **({} if len(found[what]) > 1 else {"linestyle": "none"}))
    ns = sorted({n for points in found.values() for n, _ in points})
    axes.set_xscale("log", base=2)
    micro_canvas.plain_ticks(axes.xaxis, ns)
    axes.set_ylim(0, 108)
    axes.set_xlabel("N (log scale)")
    axes.set_ylabel("% of the limit")
    micro_canvas.legend(axes, loc="lower right")
    return figure
