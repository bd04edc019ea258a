# SPDX-License-Identifier: Apache-2.0
"""The ladder at one shape: where each step takes the time, and where the peers are."""

from matplotlib import ticker
from matplotlib.patches import Rectangle
from matplotlib.transforms import blended_transform_factory

from plots import style
from plots.summary import SummaryError, describe, significant, spoken_times, times

_ROW_IN = 0.36
_GROUP_IN = 0.34  # the line above a group of rows that names it
_COLUMN_GAP_IN = 0.26
_LABEL_GAP_IN = 0.15
_AXES_IN = 4.7  # labels wrap rather than take more than the rest
_AXIS_IN = 0.8
_HEADER_IN = 0.34
_MARK_IN = 0.3


def _finding(steps, beside, peers):
    ranked = [cell for cell in steps if cell["ranked"]]
    if not ranked:
        return "No step passed correctness"
    fastest = min(ranked, key=lambda cell: cell["us"][0])
    ours = fastest["us"][0]
    if not steps[0]["ranked"]:
        finding = f"Fastest step: {fastest['label']}"
    elif fastest is steps[0]:
        finding = "No step beats the first one"
    else:
        after = steps.index(fastest)
        finding = (f"{spoken_times(steps[0]['us'][0] / ours)} faster after "
                   f"{after} step{'' if after == 1 else 's'}")
    rivals = [peer for peer in peers if peer["ranked"] and peer["kv_bits"] == 16]
    if rivals:
        best = min(rivals, key=lambda peer: peer["us"][0])
        theirs = best["us"][0]
        finding += (f"; {best['name']} is still {spoken_times(ours / theirs)} ahead"
                    if ours >= theirs else
                    f", and {spoken_times(theirs / ours)} ahead of the best peer, {best['name']}")
        # Else the title would hide the fastest row of the picture.
        without = [cell for cell in beside if cell["ranked"] and cell["role"] == "without"]
        faster = min(without, key=lambda cell: cell["us"][0], default=fastest)
        if faster["us"][0] < min(ours, theirs):
            finding += f"; {spoken_times(theirs / faster['us'][0])} by “{faster['label']}”"
    return finding


def _step_row(cell):
    verdict = cell["verdict"]
    row = {"kind": "step", "cell": cell, "label": cell["label"], "us": cell["us"],
           "verdict": verdict["verdict"] if verdict else None, "ranked": cell["ranked"]}
    if cell["correct"] is False:
        row["verdict"] = "BROKEN"
    if row["verdict"] is not None:
        row["remark"] = style.spoken(row["verdict"])
    elif cell["role"] == "base":
        row["remark"] = "first step" if cell["ranked"] else "first step, not ranked"
    else:
        row["remark"] = "no verdict"
    row["comparable"] = (verdict is not None and cell["ranked"] and verdict["ratio"][0] is not None
                         and verdict["verdict"] in style.RANKING_VERDICTS)
    row["gain"] = times(verdict["ratio"][0]) if row["comparable"] else ""
    return row


def _peer_row(peer, ours):
    row = {"kind": "peer", "label": peer["name"], "us": peer["us"], "gain": "", "verdict": None,
           "ranked": peer["ranked"], "remark": ""}
    if peer["us"][0] is None or not peer["available"]:
        row["us"] = (None, None, None)
        row["remark"] = "not available"
    elif not peer["ranked"]:
        row["remark"] = ("not checked" if peer["correct"] is None else "wrong") + ", not ranked"
    elif peer["kv_bits"] != 16:
        row["remark"] = f"{peer['kv_bits']} bits, not compared"
    elif ours is not None:
        ratio = ours / peer["us"][0]
        row["remark"] = (f"{spoken_times(ratio)} faster" if ratio >= 1
                         else f"{spoken_times(1 / ratio)} slower")
    return row


def _groups(summary, shape):
    """[(heading, rows)] from top to bottom."""
    ladder = summary.ladder(shape)
    ranked = [cell["us"][0] for cell in ladder if cell["ranked"]]
    beside = [dict(_step_row(cell), remark="" if cell["ranked"] else "not ranked")
              for cell in summary.beside_ladder(shape)]
    peers = [_peer_row(peer, min(ranked, default=None))
             for peer in summary.peers if peer["shape"] == shape]
    floors = [{"kind": "floor", "label": floor["name"].replace("_", " "), "us": floor["us"],
               "gain": "", "verdict": None, "remark": "", "ranked": True}
              for floor in summary.floors if floor["shape"] == shape and floor["us"][0] is not None
              and floor["name"] == "empty_kernel"]
    groups = [("", [_step_row(cell) for cell in ladder]),
              ("beside the ladder", beside),
              ("peers, against our fastest step" if ranked else "peers", peers),
              ("floor: a launch alone", floors)]
    return [(heading, rows) for heading, rows in groups if rows]


def _time_cell(row):
    return "–" if row["us"][0] is None else significant(row["us"][0], 3)


def _interval_cell(row):
    """The interval as the larger of its two sides; the report has both ends."""
    value, low, high = row["us"]
    if low is None:
        return ""
    percent = max(value - low, high - value) / value * 100
    if percent < 0.05:  # would read as no error at all
        return "<0.05%"
    return f"±{percent:.1f}%" if percent < 9.95 else f"±{percent:.0f}%"


def _format_time_axis(axes, low, high):
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    style.decade_ticks(axes.xaxis, low, high)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(ticker.LogLocator(base=10, subs=range(2, 10)))
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.set_xlabel("time per call, µs (log scale; left is faster)")


def _draw_row(axes, row, rows):
    value, low, high = row["us"]
    if value is None:
        return
    y = row["y"]
    if row["kind"] != "step":
        axes.plot([value, value], [y, 0], color=style.RULE, linewidth=1.3, zorder=1,
                  linestyle=(0, (1, 2)) if row["kind"] == "floor" else (0, (5, 3)))
        arguments = style.mark_arguments(*style.PEER_MARK)
    else:
        arguments = style.mark(row["verdict"])
        if row["comparable"]:
            before = next((other["us"][0] for other in rows if other["kind"] == "step"
                           and other["cell"]["variant"] == row["cell"]["verdict"]["base"]), None)
            if before is not None:
                axes.plot([before, value], [y, y], color=arguments["color"], alpha=0.35,
                          linewidth=7, solid_capstyle="butt", zorder=2)
    if low is not None:
        style.draw_interval(axes, low, high, y, arguments["color"])
    axes.plot([value], [y], zorder=4, **arguments)


def _lay_out(groups, labels):
    """Gives every row its middle `y` and `height`, in inches below the axes' top; the total."""
    y = 0.0
    for heading, rows in groups:
        y += _GROUP_IN if heading else 0
        for row in rows:
            lines = len(labels[id(row)])
            row["height"] = _ROW_IN + style.lines_height_in(lines - 1, style.ROW_PT)
            row["y"] = y + row["height"] / 2
            y += row["height"]
    return y


def draw(summary, shape):
    """A figure of the ladder at a shape. SummaryError when nothing was timed there."""
    described = summary.shape(shape)
    groups = _groups(summary, shape)
    rows = [row for _, group in groups for row in group]
    steps = summary.ladder(shape)
    if not any(cell["us"][0] is not None for cell in steps):
        raise SummaryError(f"no step was timed at {shape}, so there is no ladder to draw")

    figure, axes = style.new_figure()
    heading = style.Heading(
        figure, _finding(steps, summary.beside_ladder(shape),
                         [peer for peer in summary.peers if peer["shape"] == shape]),
        f"{summary.gpu} · {shape}: {describe(described)} · {summary.cache} L2 · {summary.date}")

    def widest(texts, size=style.ROW_PT):
        return max((style.width_in(figure, text, size) for text in texts if text), default=0)

    # Columns right of the axes: title, text of a row, horizontal alignment.
    columns = [("p50, µs", _time_cell, "right"),
               (f"{summary.confidence * 100:g}% CI", _interval_cell, "right"),
               ("step gain", lambda row: row["gain"], "right"),
               ("verdict", lambda row: row["remark"], "left")]
    widths = [max(widest(text(row) for row in rows), widest([title], style.HEADER_PT))
              for title, text, _ in columns]
    widths[-1] += _MARK_IN
    columns_in = sum(widths) + _COLUMN_GAP_IN * len(widths)
    label_limit = (style.WIDTH_IN - 2 * style.MARGIN_IN - columns_in - _AXES_IN - _LABEL_GAP_IN)
    labels = {id(row): style.wrap_evenly(figure, row["label"], style.ROW_PT, label_limit)
              for row in rows}
    labels_in = max(widest(lines) for lines in labels.values())

    axes_in = _lay_out(groups, labels)
    figure.set_size_inches(style.WIDTH_IN, heading.height_in + _HEADER_IN + axes_in + _AXIS_IN)
    left = style.MARGIN_IN + labels_in + _LABEL_GAP_IN
    width = style.WIDTH_IN - style.MARGIN_IN - columns_in - left
    style.place(figure, axes, left, _AXIS_IN, width, axes_in)
    axes.set_ylim(axes_in, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    drawn = [row["us"] for row in rows if row["us"][0] is not None]
    _format_time_axis(axes, min(us[1] or us[0] for us in drawn) / 1.25,
                      max(us[2] or us[0] for us in drawn) * 1.25)

    inches = blended_transform_factory(figure.dpi_scale_trans, axes.transData)
    # The bands lie below the axes, whose background would hide them.
    axes.patch.set_visible(False)
    for index, row in enumerate(rows):
        if index % 2 == 0:
            figure.add_artist(Rectangle(
                (style.MARGIN_IN - 0.1, row["y"] - row["height"] / 2),
                style.WIDTH_IN - 2 * style.MARGIN_IN + 0.2, row["height"], transform=inches,
                color=style.BAND, linewidth=0, zorder=0, clip_on=False))
        _draw_row(axes, row, rows)
        axes.text(left - _LABEL_GAP_IN, row["y"], "\n".join(labels[id(row)]), transform=inches,
                  ha="right", va="center", linespacing=style.LINE_SPACING,
                  color=style.INK if row["kind"] == "step" else style.MUTED_INK,
                  gid=f"label:{row['label']}")
    for title, group in groups:
        top = group[0]["y"] - group[0]["height"] / 2
        axes.text(left - _LABEL_GAP_IN, top - 0.05, title, transform=inches, ha="right",
                  va="bottom", fontsize=style.HEADER_PT, color=style.MUTED_INK, style="italic")

    x = left + width
    for (title, text, align), column in zip(columns, widths):
        x += _COLUMN_GAP_IN
        anchor = x + column if align == "right" else x
        axes.text(anchor, -0.08, title, transform=inches, ha=align, va="bottom",
                  fontsize=style.HEADER_PT, color=style.MUTED_INK)
        for row in rows:
            shift = 0.0
            if align == "left" and row["kind"] == "step" and row["remark"]:
                shift = _MARK_IN
                axes.plot([anchor + 0.09], [row["y"]], transform=inches, clip_on=False,
                          **style.mark(row["verdict"]))
            axes.text(anchor + shift, row["y"], text(row), transform=inches, ha=align, va="center",
                      color=style.INK if row["ranked"] else style.MUTED_INK)
        x += column
    heading.draw(figure)
    return figure
