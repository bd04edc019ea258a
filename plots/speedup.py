# SPDX-License-Identifier: Apache-2.0
"""How the ladder's gain adds up at every shape: one line per shape, one row per step."""

import math

from matplotlib import ticker

from plots import style
from plots.summary import SummaryError, spoken_times

_ROW_IN = 0.55


def _lines(summary):
    """{shape: gain over the first step, by row}; NaN, a gap in the line, where it has no rank."""
    lines = {}
    for shape in summary.shape_names():
        ladder = summary.ladder(shape)
        if not ladder or not ladder[0]["ranked"]:
            continue
        # The paired estimate, as in the report's tables; the first step has none over itself.
        lines[shape] = [math.nan if not cell["ranked"] else 1.0 if cell is ladder[0]
                        else cell["gain"] or math.nan for cell in ladder]
    return lines


def _last(gains):
    return [gain for gain in gains if not math.isnan(gain)][-1]


def _finding(lines):
    gains = {shape: _last(points) for shape, points in lines.items()}
    most = max(gains, key=gains.get)
    least = min(gains, key=gains.get)
    if most == least:
        return f"The whole ladder gains {spoken_times(gains[most])} at {most}"
    return (f"The whole ladder gains {spoken_times(gains[most])} at {most}, "
            f"but {spoken_times(gains[least])} at {least}")


def draw(summary):
    """The figure; SummaryError when no shape has a first step to compare with."""
    lines = _lines(summary)
    if not lines:
        raise SummaryError("at no shape was the first step timed and correct, so no gain can be "
                           "drawn")
    # A record may leave steps out at a shape; the rows are those of the longest ladder.
    labels = max((([cell["label"] for cell in summary.ladder(shape)]) for shape in lines), key=len)

    figure, axes = style.new_figure()
    heading = style.Heading(
        figure, _finding(lines),
        f"{summary.gpu} · time of the first step / time after each step, mean of the processes' medians · "
        f"{summary.cache} L2 · {summary.date}")
    rows, labels_in = style.label_rows(figure, labels, 3.6)
    axis_in = 0.85
    axes_in = len(rows) * _ROW_IN
    figure.set_size_inches(style.WIDTH_IN, heading.height_in + 0.25 + axes_in + axis_in)
    left = style.MARGIN_IN + labels_in + 0.2
    legend = {shape: f"{shape}, {spoken_times(_last(points))}" for shape, points in lines.items()}
    legend_in = max(style.width_in(figure, text, style.ROW_PT) for text in legend.values()) + 0.7
    width = style.WIDTH_IN - style.MARGIN_IN - legend_in - left
    style.place(figure, axes, left, axis_in, width, axes_in)

    gains = [gain for points in lines.values() for gain in points if not math.isnan(gain)]
    low, high = min(gains + [1.0]) / 1.2, max(gains + [1.0]) * 1.2
    style.gain_rows(axes, len(rows), low, high)
    order = summary.shape_names()
    for shape in sorted(lines, key=lambda name: -_last(lines[name])):
        colour, marker = style.SERIES[order.index(shape) % len(style.SERIES)]
        axes.plot(lines[shape], range(len(lines[shape])), color=colour, marker=marker, markersize=9,
                  markeredgecolor="white", markeredgewidth=1, linewidth=2.2, label=legend[shape],
                  zorder=3)
    style.decade_ticks(axes.xaxis, low, high)
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.set_xlabel("gain over the first step (log scale, further right is faster)")
    for y, lines_of_label in enumerate(rows):
        style.label_row(axes, -0.2 / width, y, lines_of_label, gid=f"label:{labels[y]}",
                        transform=axes.get_yaxis_transform())
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=style.ROW_PT,
                borderaxespad=0.4)
    heading.draw(figure)
    return figure
