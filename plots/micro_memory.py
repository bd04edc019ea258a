# SPDX-License-Identifier: Apache-2.0
"""Bandwidth and latency of the memory hierarchy by footprint."""

from plots import micro_canvas, style
from plots.micro_curves import footprint_bandwidths, footprint_latencies
from plots.micro_data import size


def draw(micro):
    """The figure, or None where the record has no such curves."""
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
