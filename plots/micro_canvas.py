# SPDX-License-Identifier: Apache-2.0
"""What the figures of microbenchmarks share: heading, panels in a row, legends, axes in bytes."""

from matplotlib import ticker

from plots import style
from plots.micro_data import size

PANEL_IN = 4.6
AXIS_IN = 0.85
LINE = {"linewidth": 2.2, "markersize": 8, "markeredgecolor": "white", "markeredgewidth": 1,
        "zorder": 3}
THEORY = {"color": style.MUTED_INK, "linewidth": 1.4, "linestyle": (0, (5, 3)), "zorder": 2}


def panels(title, subtitle, count=1, height_in=PANEL_IN, left_in=0.95, gap_in=1.25, right_in=None,
           under_in=AXIS_IN, top_in=None):
    """(figure, [axes]): panels side by side under a heading that states the finding."""
    figure, axes = style.new_figure(1, count, squeeze=False)
    heading = style.Heading(figure, title, subtitle)
    top_in = top_in or (0.45 if count > 1 else 0.25)
    figure.set_size_inches(style.WIDTH_IN, heading.height_in + top_in + height_in + under_in)
    right_in = style.MARGIN_IN if right_in is None else right_in
    width = (style.WIDTH_IN - left_in - right_in - (count - 1) * gap_in) / count
    for i, axis in enumerate(axes[0]):
        style.place(figure, axis, left_in + i * (width + gap_in), under_in, width, height_in)
        axis.grid(color=style.BAND, linewidth=1, zorder=0)
        axis.set_axisbelow(True)
    heading.draw(figure)
    return figure, list(axes[0])


def subtitle(micro, *parts):
    """What was measured, on what, and when; the same end for every figure."""
    return " · ".join([*parts, micro.gpu["name"], micro.provenance["started"][:10]])


def series(axes, points, index, label, **changes):
    """A measured curve in the colour and mark of that index."""
    colour, marker = style.SERIES[index % len(style.SERIES)]
    xs, ys = zip(*points)
    return axes.plot(xs, ys, **(LINE | {"color": colour, "marker": marker, "label": label}
                                | changes))


def bytes_axis(axes, values=None, label=None):
    """A logarithmic axis of sizes with powers of two written as such."""
    axes.set_xscale("log", base=2)
    if values:
        axes.xaxis.set_major_locator(ticker.FixedLocator(values))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: size(value)))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    if label:
        axes.set_xlabel(label)


def plain_ticks(axis, values=None):
    """Numbers as such on a logarithmic axis."""
    if values:
        axis.set_major_locator(ticker.FixedLocator(values))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def panel_title(axes, text):
    axes.set_title(text, loc="left", fontsize=style.ROW_PT, fontweight="bold", pad=8)


def legend(axes, **where):
    axes.legend(frameon=False, fontsize=style.HEADER_PT, **where)
