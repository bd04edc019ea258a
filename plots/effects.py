# SPDX-License-Identifier: Apache-2.0
"""What each toggle did at each shape: ratios with their intervals, as a forest plot."""

import math

from matplotlib import pyplot as plt
from matplotlib import ticker, transforms
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from plots import style
from plots.summary import SummaryError, times

_ROW_IN = 0.4
_PANEL_GAP_IN = 0.22
_TICK_GAP_IN = 0.12
_MIN_PANEL_IN = 1.95  # where shapes would get less, they stand in several bands
_BAND_GAP_IN = 0.45  # below a band: the labels of its axes
_VALUE_PT = 11.5
# Values stand in a column right of their axis, which has all of its length for marks and intervals.
_VALUE_IN = 0.8
_MARK_SCALE = 0.75  # an interval as wide as a mark of full size would hide behind it
_INTERVAL_REACH = 0.25  # of the axis: as much of it on either side intervals may take for themselves
_EDGE_PT = 7  # a mark at the axis's end stands this far inside
_SEEN_PT = 3  # a narrower band is not told from the line in its middle
_LEFT, _RIGHT = "←", "→"
# An axis that reached a lone ratio of 13 would press all others onto the line at 1. What lies this
# many times the middle half's width outside of it is drawn at the axis's end, with an arrow; ratios
# from 1/2 to 2 always have their true place.
_FENCE = 3
_ALWAYS_SHOWN = (0.5, 2.0)


def _finding(summary, toggles):
    """How many steps pass their gate at every shape, at some, and at none."""
    shapes = summary.shape_names()
    counts = {"every": 0, "some": 0, "no": 0}
    for toggle in toggles:
        adopted = {v["shape"] for v in summary.verdicts
                   if v["toggle"] == toggle and v["verdict"] == "ADOPT"}
        counts["every" if len(adopted) == len(shapes) else "some" if adopted else "no"] += 1
    count = len(toggles)
    noun = summary.judged()[0]
    where = "at every shape" if len(shapes) > 1 else f"at {shapes[0]}"
    if count == 1 and not counts["some"]:
        return f"The one {noun} {'passes' if counts['every'] else 'misses'} its gate {where}"
    if counts["every"] == count:
        return f"All {count} {noun}s pass their gates {where}"
    if counts["no"] == count:
        return f"No {noun} passes its gate{'' if len(shapes) > 1 else ' ' + where}"
    passed = counts["every"]
    finding = (f"{passed} of {count} {noun}s pass{'es its gate' if passed == 1 else ' their gates'} "
               f"{where}" if passed else f"No {noun} passes its gate {where}")
    rest = [f"{number} {at}" for number, at in ((counts["some"], "only at some"),
                                                (counts["no"], "at none")) if number]
    return finding if len(shapes) == 1 else f"{finding}, {' and '.join(rest)}"


def _cut(verdicts):
    """The lowest and the highest ratio that are drawn at their place."""
    logs = sorted(math.log(v["ratio"][0]) for v in verdicts if v["ratio"][0] is not None)
    if not logs:
        return _ALWAYS_SHOWN
    lower, upper = (logs[round(share * (len(logs) - 1))] for share in (0.25, 0.75))
    reach = _FENCE * (upper - lower)
    return (min(_ALWAYS_SHOWN[0], math.exp(lower - reach)),
            max(_ALWAYS_SHOWN[1], math.exp(upper + reach)))


def _limits(verdicts, cut, neutral_delta):
    """A ratio range that contains 1, what is neutral, every gate and every ratio inside the cut, with
    what of its interval lies there or a little beyond."""
    values = [1.0, 1 - neutral_delta, 1 + neutral_delta]
    ends = []
    for verdict in verdicts:
        ratio = verdict["ratio"]
        if ratio[0] is not None and cut[0] <= ratio[0] <= cut[1]:
            values.append(ratio[0])
            ends += [min(max(value, cut[0]), cut[1]) for value in ratio[1:] if value is not None]
        if verdict["gate"]:
            values.append(verdict["gate"])
    low, high = min(values), max(values)
    reach = (high / low) ** _INTERVAL_REACH
    low, high = (max(min([low, *ends]), low / reach), min(max([high, *ends]), high * reach))
    pad = max((high / low) ** 0.06, 1.01)
    return low / pad, high * pad


def _tick_label(ratio):
    return f"{ratio:.3g}"


# Round ratios, finest first; each list reaches as far as it can be the one chosen.
_TICKS = (
    [0.9, 0.92, 0.94, 0.96, 0.98, 1, 1.02, 1.04, 1.06, 1.08, 1.1, 1.12, 1.14],
    [0.75, 0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3],
    [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2],
    [0.4, 0.5, 0.64, 0.8, 1, 1.25, 1.6, 2, 2.5],
    [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8],
)
# Where none of these fits: the roundest go first, and each takes a place that is still free.
_DECADES = [10.0 ** power for power in range(-9, 10)]
_COARSE_TICKS = ([1.0] + sorted(_DECADES, key=lambda tick: abs(math.log(tick)))
                 + [2 * tick for tick in _DECADES] + [5 * tick for tick in _DECADES] + [1.5])


def _ticks(figure, low, high, width_in):
    """The finest round ratios, 1 among them, whose labels keep their distance."""
    inches_per_log = width_in / math.log(high / low)

    def room_in(tick):
        return style.width_in(figure, _tick_label(tick), style.TICK_PT) / 2 + _TICK_GAP_IN / 2

    def apart(left, right):
        return abs(math.log(right / left)) * inches_per_log >= room_in(left) + room_in(right)

    for candidates in _TICKS:
        ticks = [tick for tick in candidates if low <= tick <= high]
        # A list that ends inside the range would leave a part of the axis without a label.
        reaches = candidates[0] <= low * 2 and candidates[-1] * 2 >= high
        if reaches and all(apart(left, right) for left, right in zip(ticks, ticks[1:])):
            return ticks
    ticks = []
    for tick in _COARSE_TICKS:
        if low <= tick <= high and all(apart(tick, other) for other in ticks):
            ticks.append(tick)
    return sorted(ticks)


def _unlabelled_ticks(low, high):
    """Every whole multiple of a power of ten in the range, where that tells a log scale apart."""
    if high / low < 4:
        return []
    return [digit * decade for decade in _DECADES for digit in range(1, 10)
            if low <= digit * decade <= high]


def _axis_title(verdicts, low, high):
    ratios = [v["ratio"][0] for v in verdicts if v["ratio"][0] is not None]
    arrows = [arrow for arrow, beyond in ((_LEFT, min(ratios, default=1) < low),
                                          (_RIGHT, max(ratios, default=1) > high)) if beyond]
    # An arrow's interval is not drawn at all.
    ends = [end for ratio, *ends in (v["ratio"] for v in verdicts)
            if ratio is not None and low <= ratio <= high for end in ends if end is not None]
    cut_off = any(end < low or end > high for end in ends)
    return ("ratio (log scale" + (f"; {' and '.join(arrows)}: beyond it" if arrows else "")
            + ("; some intervals go on beyond it)" if cut_off else ")"))


def _draw_verdict(axes, y, verdict, value_at, banded):
    """`y`: the row's middle; `value_at`: where the column of values ends, in widths of the axis;
    `banded`: whether the row has a ground of its own."""
    kind = verdict["verdict"]
    value, low, high = verdict["ratio"]
    in_row = axes.get_yaxis_transform()
    if value is None:
        # In the row's own colour, so that the line at 1 does not run through the words.
        axes.text(0.5, y, "not applicable" if kind == "NOT_APPLICABLE" else
                  style.spoken(kind).lower(), transform=in_row, ha="center", va="center",
                  fontsize=_VALUE_PT, color=style.MUTED_INK,
                  bbox={"facecolor": style.BAND if banded else "white", "edgecolor": "none",
                        "pad": 0.8})
        return
    arguments = style.mark(kind)
    arguments["markersize"] *= _MARK_SCALE
    if verdict["gate"]:
        axes.plot([verdict["gate"]] * 2, [y - 0.13, y + 0.13], color=style.MUTED_INK, linewidth=1.6,
                  zorder=2)
    first, last = axes.get_xlim()
    place, text, shift = value, times(value), 0
    if value < first:
        place, text, shift = first, f"{_LEFT} {text}", _EDGE_PT
    elif value > last:
        place, text, shift = last, f"{text} {_RIGHT}", -_EDGE_PT
    elif low is not None:
        style.draw_interval(axes, low, high, y, arguments["color"])
    offset = transforms.ScaledTranslation(shift / 72, 0, axes.figure.dpi_scale_trans)
    axes.plot([place], [y], zorder=4, transform=axes.transData + offset, clip_on=False,
              **arguments)
    meaningful = kind in style.RANKING_VERDICTS
    axes.text(value_at, y, text, ha="right", va="center", fontsize=_VALUE_PT, transform=in_row,
              color=style.INK if meaningful else style.MUTED_INK)


def draw(summary):
    """The figure; SummaryError when the record holds no verdict."""
    labels = summary.step_labels()
    toggles = list(dict.fromkeys(verdict["toggle"] for verdict in summary.verdicts))
    if not toggles:
        raise SummaryError("the record holds no verdict, so there is no effect to draw")
    shapes = summary.shape_names()

    style.apply()
    # As many panels as shapes, made once it is known how many fit beside the labels.
    figure = plt.figure(figsize=(style.WIDTH_IN, 5))
    heading = style.Heading(
        figure, _finding(summary, toggles),
        f"{summary.part}{summary.gpu} · {summary.judged()[1]}, so right of 1 is faster · "
        f"{summary.with_dependents()}intervals of {summary.boards} · "
        f"{summary.cache} L2 · {summary.date}")
    rows, labels_in = style.label_rows(figure, [labels.get(toggle, toggle) for toggle in toggles],
                                       2.7)

    legend_in, axis_in, header_in = 0.55, 0.75, 0.45
    heights, tops = style.stack_rows(rows, _ROW_IN, 0.14)
    axes_in = sum(heights)
    left = style.MARGIN_IN + labels_in + 0.2
    room_in = style.WIDTH_IN - style.MARGIN_IN - left
    bands = style.split_evenly(shapes, int((room_in + _PANEL_GAP_IN)
                                           // (_MIN_PANEL_IN + _PANEL_GAP_IN)))
    columns = len(bands[0])
    panel_in = (room_in - _PANEL_GAP_IN * (columns - 1)) / columns
    width = panel_in - _VALUE_IN
    titles = {shape: style.wrap_name(figure, shape, style.ROW_PT, panel_in, "bold")
              for shape in shapes}
    header_in += style.lines_height_in(max(map(len, titles.values())) - 1, style.ROW_PT)
    band_in = header_in + axes_in + _BAND_GAP_IN
    figure.set_size_inches(style.WIDTH_IN, heading.height_in + band_in * len(bands) - _BAND_GAP_IN
                           + axis_in + legend_in)
    cut = _cut(summary.verdicts)
    low, high = _limits(summary.verdicts, cut, summary.neutral_delta)
    ticks = _ticks(figure, low, high, width)
    for band, band_shapes in enumerate(bands):
        bottom = axis_in + legend_in + (len(bands) - 1 - band) * band_in
        for column, shape in enumerate(band_shapes):
            axes = figure.add_subplot()
            style.place(figure, axes, left + column * (panel_in + _PANEL_GAP_IN), bottom, width,
                        axes_in)
            axes.set_xscale("log")
            axes.set_xlim(low, high)
            axes.set_ylim(axes_in, 0)
            axes.xaxis.set_major_locator(ticker.FixedLocator(ticks))
            axes.xaxis.set_major_formatter(
                ticker.FuncFormatter(lambda value, _: _tick_label(value)))
            axes.xaxis.set_minor_locator(ticker.FixedLocator(_unlabelled_ticks(low, high)))
            axes.xaxis.set_minor_formatter(ticker.NullFormatter())
            axes.spines["left"].set_visible(False)
            axes.axvline(1, color=style.INK, linewidth=0.8, zorder=1)
            axes.axvspan(1 - summary.neutral_delta, 1 + summary.neutral_delta,
                         color=style.NEUTRAL_BAND, linewidth=0, zorder=0.5, gid="equivalence")
            for top, height in list(zip(tops, heights))[::2]:
                axes.add_patch(Rectangle((0, top), panel_in / width, height, color=style.BAND,
                                         linewidth=0, zorder=0, clip_on=False,
                                         transform=axes.get_yaxis_transform()))
            axes.set_title("\n".join(titles[shape]), fontsize=style.ROW_PT, fontweight="bold",
                           pad=8, x=panel_in / width / 2)
            axes.set_yticks([])
            for verdict in summary.verdicts:
                if verdict["shape"] == shape:
                    row = toggles.index(verdict["toggle"])
                    _draw_verdict(axes, tops[row] + heights[row] / 2, verdict,
                                  (panel_in - 0.06) / width, banded=row % 2 == 0)
            if column == 0:
                for row, lines in enumerate(rows):
                    style.label_row(axes, -0.2 / width, tops[row] + heights[row] / 2, lines,
                                    gid=f"label:{toggles[row]}",
                                    transform=axes.get_yaxis_transform())
    figure_width, figure_height = figure.get_size_inches()
    figure.text((left + room_in / 2) / figure_width,
                (legend_in + 0.16) / figure_height, _axis_title(summary.verdicts, low, high),
                ha="center", va="bottom")

    present = {verdict["verdict"] for verdict in summary.verdicts
               if verdict["ratio"][0] is not None}
    handles = style.verdict_handles(present)
    handles.append(Line2D([], [], color=style.MUTED_INK, marker="|", markersize=13,
                          markeredgewidth=1.6, linestyle="none", label="gate"))
    # Where the axis is long, the band shows no more than the line at 1 does.
    band_pt = 2 * summary.neutral_delta / math.log(high / low) * width * 72
    narrow = " (a hairline)" if band_pt < _SEEN_PT else ""
    handles.append(Patch(facecolor=style.NEUTRAL_BAND,
                         label=f"±{100 * summary.neutral_delta:g}%: neutral{narrow}"))
    style.legend_below(figure, handles, 0.1)
    heading.draw(figure)
    return figure
