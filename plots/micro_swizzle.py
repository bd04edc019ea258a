# SPDX-License-Identifier: Apache-2.0
"""What a bank conflict costs: by its ways, and under how much arithmetic it vanishes."""

from plots import micro_canvas, style
from plots.micro_curves import (DILUTION_TOLERANCE, conflict_slopes, dilution_break_even,
                                dilution_curves)
from plots.micro_data import number


def draw_dilution(micro):
    """The figure, or None where the record has no such curves."""
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


def draw_slope(micro):
    """The figure, or None where the record has no such curves."""
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
