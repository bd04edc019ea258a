# SPDX-License-Identifier: Apache-2.0
"""How the toggles of a factorial change each other's effects at one shape, as a heat map."""

import math

from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from plots import style
from plots.summary import SummaryError, describe, ratio_number, spoken_times, times

_CELL_IN = 0.95
_KEY_IN = 0.85
_COLOURS = LinearSegmentedColormap.from_list("interaction",
                                             [style.VERMILLION, "#FFFFFF", style.BLUE])
_FULL = 0.62  # of the colours' full strength: the text on them must stay readable


def _finding(rows, shape):
    sure = [row for row in rows if row["low"] is not None and (row["low"] > 1 or row["high"] < 1)]
    if not sure:
        return f"No pair of toggles surely interacts at {shape}"
    first = max(sure, key=lambda row: abs(math.log(row["ratio"])))
    how = "help each other most" if first["ratio"] > 1 else "share one gain most"
    return (f"{first['a_label']} and {first['b_label']} {how} at {shape}: "
            f"{spoken_times(first['ratio'])}")


def draw(summary, shape):
    """The figure; SummaryError when the record has no interactions at that shape."""
    described = summary.shape(shape)
    rows = [row for row in summary.interactions
            if row["shape"] == shape and row["ratio"] is not None]
    if not rows:
        raise SummaryError(f"the record has no interactions at {shape}, so there is no heat map to "
                           "draw")
    known = list(summary.step_labels())
    pairs = [row for row in summary.interactions if row["shape"] == shape]
    toggles = sorted({toggle for row in pairs for toggle in (row["a"], row["b"])},
                     key=lambda toggle: known.index(toggle) if toggle in known else len(known))
    strongest = max(abs(math.log(row["ratio"])) for row in rows) or 1

    figure, axes = style.new_figure()
    heading = style.Heading(
        figure, _finding(rows, shape),
        f"{summary.gpu} · {shape}: {describe(described)} · effect of one toggle with the other on, "
        f"over the same with it off: above 1 they help each other, below 1 they share one gain · "
        f"in brackets: the {summary.confidence:.0%} interval · {summary.cache} L2 · {summary.date}")
    names = {toggle: summary.step_labels().get(toggle, toggle) for toggle in toggles}
    labels, labels_in = style.label_rows(figure, names.values(), 2.6)
    labels = dict(zip(toggles, labels))
    across, down = toggles[:-1], toggles[1:]
    lines = max(len(labels[toggle]) for toggle in across)
    header_in = style.lines_height_in(lines, style.HEADER_PT) + 0.2
    left = style.MARGIN_IN + labels_in + 0.2
    width = style.WIDTH_IN - style.MARGIN_IN - left
    axes_in = len(down) * _CELL_IN
    figure.set_size_inches(style.WIDTH_IN, heading.height_in + header_in + axes_in + _KEY_IN)
    style.place(figure, axes, left, _KEY_IN, width, axes_in)
    axes.set_xlim(0, len(across))
    axes.set_ylim(len(down), 0)
    axes.set_axis_off()

    def colour(ratio):
        share = math.log(ratio) / strongest
        return _COLOURS(0.5 + 0.5 * _FULL * max(-1, min(1, share)))

    by_pair = {frozenset((row["a"], row["b"])): row for row in pairs}
    for y, one in enumerate(down):
        for x, other in enumerate(across):
            row = by_pair.get(frozenset((one, other)))
            if one == other or toggles.index(other) > toggles.index(one) or row is None:
                continue
            has = row["ratio"] is not None
            axes.add_patch(Rectangle((x, y), 1, 1, zorder=1, edgecolor="white", linewidth=2.5,
                                     facecolor=colour(row["ratio"]) if has else style.BAND,
                                     gid=f"pair:{one}:{other}"))
            sure = has and row["low"] is not None and (row["low"] > 1 or row["high"] < 1)
            axes.text(x + 0.5, y + 0.42, times(row["ratio"]) if has else "one needs the other",
                      ha="center", va="center", fontsize=style.ROW_PT if has else style.HEADER_PT,
                      fontweight="bold" if sure else "normal",
                      color=style.INK if sure else style.MUTED_INK)
            if has and row["low"] is not None:
                axes.text(x + 0.5, y + 0.72, f"[{ratio_number(row['low'])}, {ratio_number(row['high'])}]",
                          ha="center", va="center", fontsize=style.HEADER_PT,
                          color=style.INK if sure else style.MUTED_INK)
    for x, toggle in enumerate(across):
        text = style.wrap_evenly(figure, names[toggle], style.HEADER_PT, width / len(across) - 0.1)
        axes.text(x + 0.5, -0.08 / _CELL_IN, "\n".join(text), ha="center", va="bottom",
                  fontsize=style.HEADER_PT, fontweight="bold", linespacing=style.LINE_SPACING)
    for y, toggle in enumerate(down):
        style.label_row(axes, -0.2 * len(across) / width, y + 0.5, labels[toggle])

    # The colours' key, in the middle below.
    key = figure.add_axes((0, 0, 1, 1))
    style.place(figure, key, left + width / 2 - 2.2, 0.42, 4.4, 0.18)
    steps = 60
    for i in range(steps):
        ratio = math.exp(strongest * (2 * (i + 0.5) / steps - 1))
        key.add_patch(Rectangle((i / steps, 0), 1.02 / steps, 1, facecolor=colour(ratio),
                                edgecolor="none"))
    key.set_axis_off()
    for at, ratio in ((0, math.exp(-strongest)), (0.5, 1.0), (1, math.exp(strongest))):
        key.text(at, -0.35, times(ratio), ha="center", va="top", fontsize=style.HEADER_PT)
    key.text(-0.1, 0.5, "share one gain", ha="right", va="center", fontsize=style.HEADER_PT)
    key.text(1.1, 0.5, "help each other", ha="left", va="center", fontsize=style.HEADER_PT)
    heading.draw(figure)
    return figure
