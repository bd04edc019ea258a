# SPDX-License-Identifier: Apache-2.0
"""Every verdict of a design at a glance: toggle against shape, coloured by verdict."""

from matplotlib import pyplot as plt
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
        f"{summary.with_dependents()}colour and mark: the verdict, on {summary.boards} "
        f"· {summary.cache} L2 · {summary.date}")
    rows, labels_in = style.label_rows(figure, [labels.get(toggle, toggle) for toggle in toggles],
                                       2.7)
    heights, tops = style.stack_rows(rows, _ROW_IN, 0.12)
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
            style.label_row(axes, -0.2 * len(band_shapes) / width, top + height / 2, lines)
    style.legend_below(figure, style.verdict_handles(present), 0.12)
    heading.draw(figure)
    return figure
