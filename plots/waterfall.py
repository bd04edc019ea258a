# SPDX-License-Identifier: Apache-2.0
"""Who earned a factorial's gain at one shape: Shapley shares as a waterfall."""

import math

from matplotlib import ticker

from plots import style
from plots.summary import SummaryError, describe, spoken_times, times

_ROW_IN = 0.5
_AXIS_IN = 0.85
_TEXT_IN = 1.35  # room right of the longest bar for its factor and share
_STEPS = (1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def _finding(rows, total, shape):
    first = rows[0]
    return (f"{first['label']} earns {first['share']:.0%} of the {spoken_times(math.exp(total))} "
            f"at {shape}")


def _ticks(figure, low, high, width_in):
    """Round factors whose labels keep their distance, 1 among them."""
    inches = width_in / math.log(high / low)
    kept = []
    for tick in sorted((step for step in _STEPS if low <= step <= high), key=lambda t: t != 1):
        room = style.width_in(figure, f"{tick:g}×", style.TICK_PT) + 0.15
        if all(abs(math.log(tick / other)) * inches >= room for other in kept):
            kept.append(tick)
    return sorted(kept)


def draw(summary, shape):
    """The figure; SummaryError when the record has no shares at that shape."""
    described = summary.shape(shape)
    rows = sorted((row for row in summary.attribution
                   if row["shape"] == shape and row["log"] is not None and row["share"] is not None),
                  key=lambda row: -row["log"])
    if not rows:
        raise SummaryError(f"the record has no Shapley shares at {shape}, so there is no waterfall "
                           "to draw")
    total = rows[0]["total"]

    figure, axes = style.new_figure()
    heading = style.Heading(
        figure, _finding(rows, total, shape),
        f"{summary.gpu} · {shape}: {describe(described)} · each bar is what the toggle adds, "
        f"averaged over all orders of switching the toggles on; all bars together are the whole "
        f"gain · whiskers: {summary.confidence:.0%} interval of the bar's length · "
        f"{summary.cache} L2 · {summary.date}")
    labels, labels_in = style.label_rows(figure, [*(row["label"] for row in rows), "all together"],
                                         3.2)
    axes_in = len(labels) * _ROW_IN
    figure.set_size_inches(style.WIDTH_IN, heading.height_in + 0.25 + axes_in + _AXIS_IN)
    left = style.MARGIN_IN + labels_in + 0.2
    width = style.WIDTH_IN - style.MARGIN_IN - left - _TEXT_IN
    style.place(figure, axes, left, _AXIS_IN, width, axes_in)

    ends = [0.0, total]
    end = 0.0
    for row in rows:
        ends += [end, end + row["log"], end + (row["low"] or 0), end + (row["high"] or 0)]
        end += row["log"]
    pad = 0.02 * (max(ends) - min(ends)) or 0.01
    low, high = math.exp(min(ends) - pad), math.exp(max(ends) + pad)
    style.gain_rows(axes, len(labels), low, high)
    axes.xaxis.set_major_locator(ticker.FixedLocator(_ticks(figure, low, high, width)))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("gain over the background (log scale, further right is faster)")

    def annotate(x, y, text):
        axes.annotate(text, (x, y), xytext=(8, 0), textcoords="offset points", ha="left",
                      va="center", annotation_clip=False)

    end = 0.0
    for y, row in enumerate(rows):
        start, end = end, end + row["log"]
        colour = style.BLUE if row["log"] >= 0 else style.VERMILLION
        axes.barh(y, math.exp(end) - math.exp(start), left=math.exp(start), height=0.56,
                  color=colour, zorder=2, gid=f"bar:{row['toggle']}")
        tip = end
        if row["low"] is not None and row["high"] is not None:
            style.draw_interval(axes, math.exp(start + row["low"]), math.exp(start + row["high"]),
                                y, style.INK)
            tip = max(start, end, start + row["high"])
        axes.plot([math.exp(end)] * 2, [y + 0.28, y + 0.72], color=style.RULE, linewidth=1.2,
                  zorder=1)
        annotate(math.exp(tip), y, f"{times(math.exp(row['log']))}, {row['share']:.0%}")
    axes.barh(len(rows), math.exp(total) - 1, left=1, height=0.56, color=style.MUTED_INK, zorder=2)
    annotate(math.exp(max(total, 0)), len(rows), times(math.exp(total)))
    for y, lines in enumerate(labels):
        style.label_row(axes, -0.2 / width, y, lines, transform=axes.get_yaxis_transform())
    heading.draw(figure)
    return figure
