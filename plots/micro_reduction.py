# SPDX-License-Identifier: Apache-2.0
"""Cycles per row against rows reduced together, by every way to reduce across a warp."""

from plots import micro_canvas, style
from plots.micro_curves import REDUCTIONS, reduction_ways
from plots.micro_data import number


def draw(micro):
    """The figure, or None where the record has no such curves."""
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
