# SPDX-License-Identifier: Apache-2.0
"""Every verdict of a design at a glance: toggle against shape, coloured by verdict."""

from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from plots import style
from plots.summary import SummaryError, times

_ROW_IN = 0.5
_HEADER_IN = 0.4
_MIN_COLUMN_IN = 1.6  # "not applicable" beside its mark; with more shapes there are several bands
_BAND_GAP_IN = 0.2
_LEGEND_IN = 0.6
_TINT = 0.22  # of the verdict's colour; the ink on it must stay readable


def _finding(summary, toggles):
    """Whether the sign of an effect depends on the shape."""
    if len(summary.shape_names()) == 1:
        return f"{len(toggles)} toggles at {summary.shape_names()[0]}: verdict and ratio"
    flips, agree, undecided = 0, 0, 0
    for toggle in toggles:
        kinds = {v["verdict"] for v in summary.verdicts if v["toggle"] == toggle}
        agree += len(kinds) == 1 and "INCONCLUSIVE" not in kinds
        undecided += kinds == {"INCONCLUSIVE"}
        flips += "REGRESSION" in kinds and bool(kinds & {"ADOPT", "REAL_BELOW_GATE"})
    if undecided == len(toggles):
        return "No toggle is decided at any shape"
    counted = f"{agree} of {len(toggles)} toggles get one verdict at every shape"
    if flips == 0:
        return f"{counted}; none changes sign"
    return f"{counted}; {flips} change{'s' if flips == 1 else ''} sign"


def _draw_cell(axes, x, top, height, verdict):
    kind = verdict["verdict"]
    arguments = style.mark(kind)
    axes.add_patch(Rectangle((x, top), 1, height, facecolor=arguments["color"], alpha=_TINT,
                             edgecolor="none", zorder=1))
    axes.add_patch(Rectangle((x, top), 1, height, facecolor="none", edgecolor="white", linewidth=2.5,
                             zorder=2, gid=f"cell:{verdict['toggle']}:{verdict['shape']}"))
    axes.plot([x + 0.18], [top + height / 2], zorder=3, clip_on=False, **arguments)
    ratio = verdict["ratio"][0]
    text = ("not applicable" if kind == "NOT_APPLICABLE" else "–" if ratio is None
            else times(ratio))
    axes.text(x + 0.56, top + height / 2, text, ha="center", va="center", fontsize=style.ROW_PT,
              color=style.INK if kind in style.RANKING_VERDICTS else style.MUTED_INK)


def draw(summary):
    """The figure; SummaryError when the record holds no verdict."""
    toggles = list(dict.fromkeys(verdict["toggle"] for verdict in summary.verdicts))
    if not toggles:
        raise SummaryError("the record holds no verdict, so there is no matrix to draw")
    shapes = summary.shape_names()
    labels = summary.step_labels()

    style.apply()
    figure = plt.figure(figsize=(style.WIDTH_IN, 5))
    heading = style.Heading(
        figure, _finding(summary, toggles),
        f"{summary.part}{summary.gpu} · {summary.judged()[1]}, so above 1 is faster · "
        f"{summary.with_dependents()}colour and mark: the verdict, on boards of the kind "
        f"· {summary.cache} L2 · {summary.date}")
    rows = [style.wrap_evenly(figure, labels.get(toggle, toggle), style.ROW_PT, 2.7)
            for toggle in toggles]
    labels_in = max(style.width_in(figure, line, style.ROW_PT) for lines in rows for line in lines)
    heights = [max(_ROW_IN, style.lines_height_in(len(lines), style.ROW_PT) + 0.12)
               for lines in rows]
    tops = [sum(heights[:row]) for row in range(len(heights))]  # of rows, in inches as the axes are
    axes_in = sum(heights)
    left = style.MARGIN_IN + labels_in + 0.2
    room_in = style.WIDTH_IN - style.MARGIN_IN - left
    bands = style.split_evenly(shapes, int(room_in // _MIN_COLUMN_IN))
    column_in = room_in / len(bands[0])
    titles = {shape: style.wrap_name(figure, shape, style.ROW_PT, column_in - 0.1, "bold")
              for shape in shapes}
    header_in = _HEADER_IN + style.lines_height_in(max(map(len, titles.values())) - 1, style.ROW_PT)
    band_in = header_in + axes_in + _BAND_GAP_IN
    figure.set_size_inches(style.WIDTH_IN, heading.height_in + header_in + axes_in + _LEGEND_IN
                           + band_in * (len(bands) - 1))
    present = set()
    for band, band_shapes in enumerate(bands):
        axes = figure.add_subplot()
        width = room_in * (len(band_shapes) / len(bands[0]))
        style.place(figure, axes, left, _LEGEND_IN + (len(bands) - 1 - band) * band_in, width,
                    axes_in)
        axes.set_xlim(0, len(band_shapes))
        axes.set_ylim(axes_in, 0)
        axes.set_axis_off()
        for verdict in summary.verdicts:
            if verdict["shape"] in band_shapes:
                present.add(verdict["verdict"])
                row = toggles.index(verdict["toggle"])
                _draw_cell(axes, band_shapes.index(verdict["shape"]), tops[row], heights[row],
                           verdict)
        for x, shape in enumerate(band_shapes):
            axes.text(x + 0.5, -0.12 * _ROW_IN, "\n".join(titles[shape]), ha="center",
                      va="bottom", fontweight="bold", fontsize=style.ROW_PT,
                      linespacing=style.LINE_SPACING)
        for top, height, lines in zip(tops, heights, rows):
            axes.text(-0.2 * len(band_shapes) / width, top + height / 2, "\n".join(lines), ha="right",
                      va="center", linespacing=style.LINE_SPACING)
    handles = [Line2D([], [], label=style.spoken(name), **style.mark(name))
               for name in style.VERDICT_MARKS if name in present]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), frameon=False,
                  fontsize=style.HEADER_PT,
                  bbox_to_anchor=(0.5, 0.12 / figure.get_size_inches()[1]), handletextpad=0.3,
                  columnspacing=1.4, borderaxespad=0, borderpad=0.2)
    heading.draw(figure)
    return figure
