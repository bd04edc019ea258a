# SPDX-License-Identifier: Apache-2.0
"""Accuracy against throughput of every way to compute an exponential, with the Pareto front."""

from matplotlib import ticker

from plots import micro_canvas, style
from plots.micro_curves import EXP_ERRORS, exp_points
from plots.micro_data import pareto_front


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


def draw(micro):
    """The figure, or None where the record has no such cases."""
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
