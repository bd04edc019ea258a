# SPDX-License-Identifier: Apache-2.0
"""Where each profiled kernel stands under the measured roofs: FLOP/s against FLOP per L2 byte."""

import math

from matplotlib import ticker
from matplotlib.lines import Line2D

from plots import profile, style
from plots.summary import SummaryError, significant

_AXES_IN = 5.6
_AXIS_IN = 1.2
_TABLE_IN = 3.1  # the numbers' names, right of the axes
_NUMBER_PT = 11


def _finding(points, compute, bandwidth):
    def roof(point):
        return min([compute.get(point["roof"], math.inf),
                    *(rate * point["flop_per_l2_byte"] for rate in bandwidth.values())])

    best = max(points, key=lambda point: point["flop_per_s"] / roof(point) if
               math.isfinite(roof(point)) else point["flop_per_s"])
    text = (f"{profile.short(best['variant'])} comes closest to the roof: "
            f"{significant(best['flop_per_s'] / 1e12, 3)} TFLOP/s at {best['shape']}")
    if not math.isfinite(roof(best)):
        return text
    return f"{text}, {best['flop_per_s'] / roof(best):.0%} of what it allows there"


# Where a number may stand around its mark, in points, nearest first.
_AROUND = [(distance * math.cos(turn * math.pi / 8), distance * math.sin(turn * math.pi / 8))
           for distance in range(11, 90, 3) for turn in range(16)]
_MARK_PT = 9
_LED_FROM_PT = 16  # a number farther off is led to its mark by a line


def _overlap(one, other):
    """How deep two boxes (x, y of the middle, width, height) lie in each other; 0 when apart."""
    return min(max(0.0, (one[i + 2] + other[i + 2]) / 2 - abs(one[i] - other[i])) for i in (0, 1))


def _spread(points, texts, points_per_decade):
    """(point, its text, the text's offset in points), off every mark and every other text."""
    marks = [tuple(math.log10(point[key]) * scale for key, scale in
                   zip(("flop_per_l2_byte", "flop_per_s"), points_per_decade)) for point in points]
    taken = [(x, y, _MARK_PT, _MARK_PT) for x, y in marks]
    for point, text, (x, y) in zip(points, texts, marks):
        size = (3 + 0.7 * _NUMBER_PT * len(text), 3 + 1.2 * _NUMBER_PT)

        def hidden(offset, x=x, y=y, size=size):
            box = (x + offset[0], y + offset[1], *size)
            return sum(_overlap(box, other) for other in taken)

        offset = next((offset for offset in _AROUND if hidden(offset) == 0),
                      min(_AROUND, key=hidden))
        taken.append((x + offset[0], y + offset[1], *size))
        yield point, text, *offset


def draw(summary):
    """The figure; SummaryError when no profiled code was also timed."""
    points = [launch for launch in summary.launches
              if launch["flop_per_s"] and launch["flop_per_l2_byte"]]
    if not points:
        raise SummaryError("no profiled kernel was timed, so there is no roofline to draw")
    if not summary.ceilings:
        raise SummaryError("no microbenchmarks are recorded beside this record, so there are no roofs to draw")
    compute = {name: rate for name, (rate, of) in summary.ceilings.items() if of == "flop"}
    bandwidth = {name: rate for name, (rate, of) in summary.ceilings.items()
                 if of == "bytes" and name == "L2"}

    figure, axes = style.new_figure()
    heading = style.Heading(
        figure, _finding(points, compute, bandwidth),
        f"{summary.gpu} · L2 traffic: Nsight Compute {summary.ncu}, one launch · times: records of "
        f"samples of the same machine code · roofs: microbenchmarks · {summary.date}")
    left = style.MARGIN_IN + 0.85
    width = style.WIDTH_IN - style.MARGIN_IN - left - _TABLE_IN
    figure.set_size_inches(style.WIDTH_IN, heading.height_in + 0.3 + _AXES_IN + _AXIS_IN)
    style.place(figure, axes, left, _AXIS_IN, width, _AXES_IN)
    axes.set_xscale("log")
    axes.set_yscale("log")
    xs = [point["flop_per_l2_byte"] for point in points]
    ys = [point["flop_per_s"] for point in points]
    # So far that every roof of computing shows behind the ridge where it begins.
    ridges = [rate / bandwidth["L2"] for rate in compute.values()] if bandwidth else []
    low_x, high_x = min(xs) / 1.6, max([max(xs) * 2.2, *(1.6 * ridge for ridge in ridges)])
    axes.set_xlim(low_x, high_x)
    axes.set_ylim(min(ys) / 2, max([*ys, *compute.values()]) * 1.8)
    for name, rate in compute.items():
        ridge = rate / bandwidth["L2"] if bandwidth else low_x
        start = max(low_x, min(ridge, high_x))
        axes.plot([start, high_x], [rate, rate], color=style.MUTED_INK, linewidth=1.5, zorder=1)
        axes.annotate(f"{name} {significant(rate / 1e12, 3)} TFLOP/s", (high_x, rate),
                      xytext=(-2, 4), textcoords="offset points", ha="right", va="bottom",
                      fontsize=style.HEADER_PT, color=style.MUTED_INK)
    for name, rate in bandwidth.items():
        top = max(compute.values(), default=high_x * rate)
        end = min(high_x, top / rate)
        axes.plot([low_x, end], [low_x * rate, end * rate], color=style.MUTED_INK, linewidth=1.5,
                  zorder=1)
        angle = math.degrees(math.atan2(
            math.log(axes.get_ylim()[1] / axes.get_ylim()[0]) ** -1 * _AXES_IN,
            math.log(high_x / low_x) ** -1 * width))
        axes.annotate(f"{name} {significant(rate / 1e12, 3)} TB/s",
                      (low_x * 1.15, low_x * 1.15 * rate), xytext=(0, 6),
                      textcoords="offset points", ha="left", va="bottom", rotation=angle,
                      rotation_mode="anchor", fontsize=style.HEADER_PT, color=style.MUTED_INK)
    variants = list(dict.fromkeys(point["variant"] for point in points))
    shapes = summary.shape_names()
    points_per_decade = (width * 72 / math.log10(high_x / low_x),
                         _AXES_IN * 72 / math.log10(axes.get_ylim()[1] / axes.get_ylim()[0]))
    numbers = [str(variants.index(point["variant"]) + 1) for point in points]
    for point, number, dx, dy in _spread(points, numbers, points_per_decade):
        colour, marker = style.SERIES[shapes.index(point["shape"]) % len(style.SERIES)]
        place = (point["flop_per_l2_byte"], point["flop_per_s"])
        axes.plot(*([value] for value in place), zorder=3,
                  gid=f"point:{point['variant']}:{point['shape']}",
                  **dict(style.mark_arguments(marker, colour, True), markersize=8))
        led = math.hypot(dx, dy) >= _LED_FROM_PT
        axes.annotate(number, place, xytext=(dx, dy), textcoords="offset points", ha="center",
                      va="center", fontsize=_NUMBER_PT, zorder=4,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4})
        if led:
            axes.annotate("", place, xytext=(dx, dy), textcoords="offset points", zorder=2,
                          arrowprops={"arrowstyle": "-", "color": style.RULE, "linewidth": 0.8,
                                      "shrinkA": 5, "shrinkB": 3})
    axes.set_xlabel("FLOP per byte of L2 traffic (log scale)")
    axes.set_ylabel("FLOP/s (log scale)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(ticker.NullFormatter())
    axes.xaxis.set_major_locator(ticker.LogLocator(base=10, subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value / 1e12:g} T"))
    height = figure.get_size_inches()[1]
    y = _AXIS_IN + _AXES_IN - 0.1
    for i, variant in enumerate(variants):
        lines = style.wrap_name(figure, profile.short(variant), style.TICK_PT, _TABLE_IN - 0.65)
        figure.text((left + width + 0.3) / style.WIDTH_IN, y / height,
                    f"{i + 1}", ha="left", va="top", fontsize=style.TICK_PT, fontweight="bold")
        figure.text((left + width + 0.65) / style.WIDTH_IN, y / height, "\n".join(lines),
                    ha="left", va="top", fontsize=style.TICK_PT, linespacing=1.2)
        y -= 0.31 + 0.22 * (len(lines) - 1)
    handles = [Line2D([], [], label=shape,
                      **style.mark_arguments(style.SERIES[i % len(style.SERIES)][1],
                                             style.SERIES[i % len(style.SERIES)][0], True))
               for i, shape in enumerate(shapes) if any(point["shape"] == shape for point in points)]
    style.legend_below(figure, handles, 0.15, (left + width / 2) / style.WIDTH_IN,
                       fontsize=style.ROW_PT)
    heading.draw(figure)
    return figure
