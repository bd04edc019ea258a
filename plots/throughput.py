# SPDX-License-Identifier: Apache-2.0
"""TFLOP/s against sequence length, a panel per head dimension and mask, with the peers."""

import math

from matplotlib import ticker

from plots import style
from plots.summary import PEER_LABELS, SummaryError, spoken_times

# Fewer lengths make no curve. reports/sections/throughput.cc has the same rule.
FEWEST_LENGTHS = 3
OURS = "our fastest variant"
# Beside it no arm has a peer's clock, so it is compared with no peer.
OURS_8_BIT = "ours, K and V in 8 bits"
# A line's colour and mark by its name, the same in every figure, whatever else is drawn.
_LOOKS = dict(zip((OURS, PEER_LABELS["flash"], "cudnn", "efficient", OURS_8_BIT, "math"),
                  style.SERIES))
# These are timed alone, beside neither of those two.
_LOOKS |= {"fa3": _LOOKS["efficient"], "fa4": _LOOKS["math"]}
_OTHER_LOOK = style.SERIES[-1]
_ROW_IN = 3.1
_GAP_IN = 0.35


def series(summary):
    """{(head_dim, causal): shapes by rising length} of shapes that differ in their length alone.

    As many tokens and columns and of one type each; of several series of one panel the one with
    most lengths, of fp16 where they have as many.
    """
    found = {}
    for shape in summary.shapes:
        if "seq_q" in shape and shape["seq_q"] == shape["seq_kv"]:
            key = (shape["head_dim"], shape["causal"], shape["dtype"] != "fp16", shape["dtype"],
                   shape["batch"] * shape["seq_q"], shape["heads_q"], shape["heads_kv"])
            found.setdefault(key, []).append(shape)
    panels = {}
    for key, shapes in sorted(found.items()):
        if len(shapes) >= FEWEST_LENGTHS and len(shapes) > len(panels.get(key[:2], [])):
            panels[key[:2]] = sorted(shapes, key=lambda shape: shape["seq_q"])
    return panels


def _teraflops(shape, us):
    """(value, low, high) in TFLOP/s of a time and its interval; low and high may be None."""
    value, low, high = us
    rate = shape["flops"] / 1e6
    return (rate / value, None if high is None else rate / high, None if low is None else rate / low)


def _lines(summary, shapes):
    """{name: [(length, (value, low, high))]}: ours first, then the peers in the record's order."""
    lines = {}
    for name, kv_bits in ((OURS, 16), (OURS_8_BIT, 8)):
        for shape in shapes:
            ours = [cell["us"] for cell in summary.cells
                    if cell["shape"] == shape["name"] and cell["ranked"]
                    and cell["kv_bits"] == kv_bits and cell["role"] not in ("aa", "null")]
            if ours:
                lines.setdefault(name, []).append(
                    (shape["seq_q"], _teraflops(shape, min(ours, key=lambda us: us[0]))))
    for peer in summary.peers:
        for shape in shapes:
            if peer["shape"] == shape["name"] and peer["ranked"]:
                lines.setdefault(peer["name"], []).append(
                    (shape["seq_q"], _teraflops(shape, peer["us"])))
    return {name: sorted(points) for name, points in lines.items()}


def panels(*summaries):
    """{(head_dim, causal): lines} over all records, of which no two may hold the same one."""
    found = {}
    for summary in summaries:
        for key, shapes in series(summary).items():
            lines = _lines(summary, shapes)
            if not lines:
                continue
            if key in found:
                raise SummaryError(f"two records hold head_dim {key[0]}, "
                                   f"{'causal' if key[1] else 'full'}; give one of them")
            found[key] = lines
    return dict(sorted(found.items()))


def _spread(ratios, over):
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    return (f"{spoken_times(mean)} {over} over {len(ratios)} cells (geometric mean), "
            f"{spoken_times(min(ratios))} to {spoken_times(max(ratios))}")


def _ratios(curves, name, rivals_of):
    """Of the line `name` over the best of the rivals' lines, at each length that both have."""
    found = []
    for lines in curves.values():
        rivals = [dict(points) for other, points in lines.items() if rivals_of(other)]
        for length, rate in lines.get(name, []):
            best = [points[length][0] for points in rivals if length in points]
            if best:
                found.append(rate[0] / max(best))
    return found


def _finding(curves, unlike=()):
    """`unlike`: peers that multiply in 8 bits, whose times are of less work."""
    # Beside arms that draw less, those of 16 bits have clocks that no peer had: those two
    # are compared among themselves alone (reports/sections/throughput.cc does as much).
    if any(OURS_8_BIT in lines for lines in curves.values()):
        ratios = _ratios(curves, OURS_8_BIT, lambda name: name == OURS)
        if ratios:
            return "K and V in 8 bits: " + _spread(ratios, "our fastest variant of 16 bits")
        ratios = _ratios(curves, OURS_8_BIT, lambda name: name in unlike)
        if ratios:
            return "In 8 bits our fastest variant: " + _spread(ratios, "the best peer")
    else:
        ratios = _ratios(curves, OURS, lambda name: name != OURS and name not in unlike)
        if ratios:
            return "Our fastest variant: " + _spread(ratios, "the best peer")
    ours = [point[0] for lines in curves.values() for name in (OURS, OURS_8_BIT)
            for _, point in lines.get(name, [])]
    if not ours:
        return "No arm of ours passed correctness"
    return f"Our fastest variant reaches {max(ours):.0f} TFLOP/s"


def _length(value, _):
    """1024 as 1k."""
    return f"{value / 1024:g}k" if value >= 1024 and value % 1024 == 0 else f"{value:g}"


def _draw_panel(axes, lines, looks):
    lengths = sorted({length for points in lines.values() for length, _ in points})
    for name, points in lines.items():
        # A line has a gap where it lacks a length that others have.
        rates = {length: rate[0] for length, rate in points}
        span = [length for length in lengths if min(rates) <= length <= max(rates)]
        colour, marker = looks[name]
        ours = name == OURS
        axes.plot(span, [rates.get(length, math.nan) for length in span], color=colour,
                  marker=marker, markersize=9 if ours else 7.5, markeredgecolor="white",
                  markeredgewidth=0.8, linewidth=2.8 if ours else 1.6, zorder=4 if ours else 3,
                  label=name, clip_on=False)
        for length, (_, low, high) in points:
            if low is not None:
                axes.plot([length, length], [low, high], color=colour, linewidth=1.6, zorder=2)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(ticker.FixedLocator(lengths))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(_length))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.grid(axis="y", color=style.RULE, linewidth=0.6, alpha=0.6)
    axes.set_axisbelow(True)


def draw(*summaries):
    """The figure of one record, or of several of one GPU. SummaryError when nothing makes a curve."""
    curves = panels(*summaries)
    if not curves:
        raise SummaryError(f"no head dimension and mask has {FEWEST_LENGTHS} lengths that were "
                           "timed, so there is no curve to draw")
    gpus = list(dict.fromkeys(summary.gpu for summary in summaries))
    if len(gpus) > 1:
        raise SummaryError(f"the records are of several GPUs: {', '.join(gpus)}")
    names = list(dict.fromkeys(name for lines in curves.values() for name in lines))
    looks = {name: _LOOKS.get(name, _OTHER_LOOK)
             for name in sorted(names, key=lambda name: name != OURS)}
    dims = sorted({head_dim for head_dim, _ in curves})
    masks = sorted({causal for _, causal in curves})

    figure, grid = style.new_figure(len(masks), len(dims), squeeze=False)
    dates = " and ".join(sorted({summary.date for summary in summaries}))
    caches = " and ".join(dict.fromkeys(summary.cache for summary in summaries))
    dtypes = " and ".join(dict.fromkeys(shape["dtype"] for summary in summaries
                                        for shape in summary.shapes))
    timed = "each alone" if all(summary.alone for summary in summaries) else "variants in turn"
    unlike = {peer["name"] for summary in summaries for peer in summary.peers if peer["kv_bits"] != 16}
    heading = style.Heading(
        figure, _finding(curves, unlike),
        f"{gpus[0]} · {dtypes}, forward · {timed} · FLOP of the keys that the mask shows · tokens alike "
        f"at all lengths · {caches} L2 · {dates}")
    left, axis_in, legend_in, title_in = style.MARGIN_IN + 0.75, 0.65, 0.5, 0.35
    width = (style.WIDTH_IN - style.MARGIN_IN - left - _GAP_IN * (len(dims) - 1)) / len(dims)
    row_in = title_in + _ROW_IN + 0.4
    figure.set_size_inches(style.WIDTH_IN,
                           heading.height_in + row_in * len(masks) + axis_in - 0.4 + legend_in)
    top = max((rate[2] or rate[0]) for lines in curves.values() for points in lines.values()
              for _, rate in points)
    for row, causal in enumerate(masks):
        for column, head_dim in enumerate(dims):
            axes = grid[row][column]
            bottom = legend_in + axis_in + (len(masks) - 1 - row) * row_in
            style.place(figure, axes, left + column * (width + _GAP_IN), bottom, width, _ROW_IN)
            axes.set_ylim(0, top * 1.06)
            axes.set_title(f"head_dim {head_dim}, {'causal' if causal else 'full'}",
                           fontsize=style.ROW_PT, fontweight="bold", pad=8)
            lines = curves.get((head_dim, causal))
            if lines is None:
                axes.set_xticks([])
                axes.text(0.5, 0.5, "not in the record", ha="center", va="center",
                          transform=axes.transAxes, color=style.MUTED_INK)
            else:
                _draw_panel(axes, lines, looks)
            if column:
                axes.set_yticklabels([])
            else:
                axes.set_ylabel("TFLOP/s")
            if row == len(masks) - 1 and lines is not None:
                axes.set_xlabel("sequence length")
    _, height = figure.get_size_inches()
    handles = {}
    for axes in grid.flat:
        handles.update(dict(zip(*reversed(axes.get_legend_handles_labels()))))
    figure.legend([handles[name] for name in looks], list(looks), loc="lower center",
                  ncols=len(looks), frameon=False, fontsize=style.ROW_PT,
                  bbox_to_anchor=(0.5, 0.1 / height), borderaxespad=0, borderpad=0.2)
    heading.draw(figure)
    return figure
