# SPDX-License-Identifier: Apache-2.0
"""The one look of all figures: sizes, fonts, colours and verdict marks.

Colours are Okabe and Ito's, which stay apart under the common colour blindnesses; every verdict
also has a mark of its own, so that a figure reads in grey as well. Sizes suit a slide: a figure is
13.33 inches wide, as a 16:9 slide is, and no text is below 11 points.
"""

import math
import re

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  the backend must be chosen first
from matplotlib import ticker  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402

BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
BLUISH_GREEN = "#009E73"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
REDDISH_PURPLE = "#CC79A7"

INK = "#1A1A1A"
MUTED_INK = "#555555"
RULE = "#B5B5B5"
BAND = "#F4F4F4"
NEUTRAL_BAND = "#9CCBEB"  # where an effect counts as none

WIDTH_IN = 13.33
MARGIN_IN = 0.35
DPI = 150

TITLE_PT = 20
SUBTITLE_PT = 13
ROW_PT = 13
HEADER_PT = 11.5
TICK_PT = 12

# verdict: (marker, colour, whether the mark is filled)
VERDICT_MARKS = {
    "ADOPT": ("^", BLUISH_GREEN, True),
    "REAL_BELOW_GATE": ("D", BLUE, True),
    "NEUTRAL": ("s", "#8A8A8A", True),
    "REGRESSION": ("v", VERMILLION, True),
    "INCONCLUSIVE": ("o", ORANGE, False),
    "BROKEN": ("X", BLACK, True),
    "INVALID": ("P", REDDISH_PURPLE, True),
    "NOT_APPLICABLE": ("_", MUTED_INK, True),
}
FIRST_STEP_MARK = ("o", INK, True)
PEER_MARK = ("o", MUTED_INK, False)

# One per shape, in the record's order; marks differ for the same reason as above.
SERIES = [
    (BLUE, "o"),
    (ORANGE, "s"),
    (BLUISH_GREEN, "^"),
    (VERMILLION, "D"),
    (REDDISH_PURPLE, "v"),
    (SKY_BLUE, "P"),
    (BLACK, "X"),
]

# Verdicts under which a ratio says something about the toggle.
RANKING_VERDICTS = ("ADOPT", "REAL_BELOW_GATE", "NEUTRAL", "REGRESSION", "INCONCLUSIVE")


# Marks of equal size in points are not of equal weight to the eye.
_MARKER_SIZES = {"^": 13, "v": 13, "D": 10, "s": 10.5, "X": 12, "P": 12.5, "o": 10.5}


def apply():
    """Sets matplotlib's defaults: the same data, the same picture."""
    plt.rcdefaults()
    plt.rcParams.update({
        "font.family": "DejaVu Sans",  # ships with matplotlib, so every machine lays out the same
        "font.size": ROW_PT,
        "svg.fonttype": "none",  # texts as such: a third of the bytes of their outlines
        "figure.dpi": DPI,
        "axes.edgecolor": RULE,
        "axes.labelcolor": INK,
        "axes.labelsize": ROW_PT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.color": INK,
        "xtick.color": RULE,
        "ytick.color": RULE,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.labelsize": TICK_PT,
        "ytick.labelsize": TICK_PT,
        # A dollar sign or caret in a label is text, never a formula.
        "text.parse_math": False,
    })


def new_figure(rows=1, columns=1, **options):
    """A figure and its axes, as plt.subplots() gives them; its height is set when all is measured."""
    apply()
    return plt.subplots(rows, columns, figsize=(WIDTH_IN, 5), **options)


def draw_interval(axes, low, high, y, colour):
    # No caps: those of an interval about as wide as its mark look like a part of the mark.
    axes.plot([low, high], [y, y], color=colour, linewidth=3, solid_capstyle="butt", zorder=3)


def mark(verdict):
    """Keyword arguments of Axes.plot for a verdict's mark; None is the ladder's first step."""
    marker, colour, filled = FIRST_STEP_MARK if verdict is None else VERDICT_MARKS[verdict]
    return mark_arguments(marker, colour, filled)


def mark_arguments(marker, colour, filled):
    """The same for any mark. A white rim parts marks that touch; a hollow one has its own."""
    rim = "white" if filled and marker != "_" else colour
    return {
        "marker": marker, "markersize": _MARKER_SIZES.get(marker, 11), "linestyle": "none",
        "markeredgewidth": 0.8 if rim == "white" else 2.2, "color": colour,
        "markeredgecolor": rim, "markerfacecolor": colour if filled else "white",
    }


def spoken(verdict):
    """REAL_BELOW_GATE as it stands in a figure."""
    return verdict.replace("_", " ")


# Measuring a text costs a layout; the same labels come back in every figure, at one resolution.
_WIDTHS_IN = {}


def width_in(figure, text, size, weight="normal"):
    """The width of one line of text in inches."""
    key = (text, size, weight)
    if key not in _WIDTHS_IN:
        probe = figure.text(0, 0, text, fontsize=size, fontweight=weight)
        extent = probe.get_window_extent(figure.canvas.get_renderer())
        probe.remove()
        _WIDTHS_IN[key] = extent.width / figure.dpi
    return _WIDTHS_IN[key]


def wrap(figure, text, size, limit_in, weight="normal", break_names=False):
    """The text broken at blanks into lines no wider than the limit (a long word stands alone).

    break_names: the name of a variant that is wider is broken behind its plus signs.
    """
    lines = []
    for word in _words(text):
        too_wide = break_names and width_in(figure, word, size, weight) > limit_in
        between = " "
        for piece in re.split(r"(?<=\+)", word) if too_wide else [word]:
            candidate = f"{lines[-1]}{between}{piece}" if lines else piece
            if lines and width_in(figure, candidate, size, weight) <= limit_in:
                lines[-1] = candidate
            else:
                lines.append(piece)
            between = ""
    return lines


def _words(text):
    """Words, of which a product such as "P V" is one."""
    words = []
    for word in text.split():
        if words and len(word) == 1 and word.isupper() and re.fullmatch(r"[A-Z]", words[-1]):
            words[-1] = f"{words[-1]} {word}"
        else:
            words.append(word)
    return words


def wrap_evenly(figure, text, size, limit_in):
    """As few lines as wrap() gives, but of about equal width, so that no word is left alone."""
    lines = wrap(figure, text, size, limit_in)
    while len(lines) > 1:
        widest = max(width_in(figure, line, size) for line in lines)
        narrower = wrap(figure, text, size, widest - 0.01)
        if (len(narrower) > len(lines)
                or max(width_in(figure, line, size) for line in narrower) >= widest):
            break
        lines = narrower
    return lines


def wrap_name(figure, name, size, limit_in, weight="normal"):
    """A name such as fa3_d64_s512_full broken behind underscores into lines within the limit."""
    lines = []
    for piece in re.split(r"(?<=_)", name):
        if lines and width_in(figure, lines[-1] + piece, size, weight) <= limit_in:
            lines[-1] += piece
        else:
            lines.append(piece)
    return lines


LINE_SPACING = 1.25


def lines_height_in(count, size):
    return count * size / 72 * LINE_SPACING


def label_rows(figure, labels, limit_in):
    """(each label's lines, of about equal width; the width of the widest in inches)"""
    rows = [wrap_evenly(figure, label, ROW_PT, limit_in) for label in labels]
    return rows, max(width_in(figure, line, ROW_PT) for lines in rows for line in lines)


def stack_rows(rows, least_in, pad_in):
    """(the heights of rows of labels, where each begins), in inches as the axes are."""
    heights = [max(least_in, lines_height_in(len(lines), ROW_PT) + pad_in) for lines in rows]
    return heights, [math.fsum(heights[:row]) for row in range(len(heights))]


def label_row(axes, x, y, lines, **arguments):
    """A row's label at its left."""
    axes.text(x, y, "\n".join(lines), ha="right", va="center", linespacing=LINE_SPACING, **arguments)


def gain_rows(axes, count, low, high):
    """Axes of `count` rows of gains, every other one on a band, and the line of no gain."""
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.axvline(1, color=INK, linewidth=1.2, zorder=1)
    for y in range(0, count, 2):
        axes.axhspan(y - 0.5, y + 0.5, color=BAND, linewidth=0, zorder=0)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}×"))


def decade_ticks(axis, low, high):
    """Ticks at 1, 2 and 5, which crowd as soon as the range spans more than two decades."""
    axis.set_major_locator(ticker.LogLocator(base=10, subs=(1,) if high / low > 150 else (1, 2, 5)))


def legend_below(figure, handles, bottom_in, centre=0.5, **changes):
    figure.legend(handles=handles, loc="lower center", frameon=False, borderaxespad=0, borderpad=0.2,
                  bbox_to_anchor=(centre, bottom_in / figure.get_size_inches()[1]),
                  **{"ncols": len(handles), "fontsize": HEADER_PT, "handletextpad": 0.3,
                     "columnspacing": 1.4} | changes)


def verdict_handles(present):
    """A legend's, of these verdicts."""
    return [Line2D([], [], label=spoken(name), **mark(name)) for name in VERDICT_MARKS
            if name in present]


def split_evenly(items, most):
    """The items in as few lists as hold at most `most` each, of about equal length."""
    count = -(-len(items) // max(1, most))
    size = -(-len(items) // max(1, count))
    return [items[i:i + size] for i in range(0, len(items), size)]


class Heading:
    """Title and subtitle, broken to the figure's width, and the room they need at its top."""

    def __init__(self, figure, title, subtitle):
        limit = figure.get_size_inches()[0] - 2 * MARGIN_IN
        self._title = wrap(figure, title, TITLE_PT, limit, "bold", break_names=True)
        # A line that ends in the dot between two parts would look unfinished.
        self._subtitle = [line.removesuffix(" ·")
                          for line in wrap(figure, subtitle, SUBTITLE_PT, limit)]
        self._title_in = lines_height_in(len(self._title), TITLE_PT)
        self.height_in = (MARGIN_IN + self._title_in + 0.08
                          + lines_height_in(len(self._subtitle), SUBTITLE_PT))

    def draw(self, figure):
        """Call once the figure has its final height."""
        width, height = figure.get_size_inches()
        x = MARGIN_IN / width
        figure.text(x, 1 - MARGIN_IN / height, "\n".join(self._title), fontsize=TITLE_PT,
                    fontweight="bold", va="top", linespacing=LINE_SPACING)
        figure.text(x, 1 - (MARGIN_IN + self._title_in + 0.08) / height, "\n".join(self._subtitle),
                    fontsize=SUBTITLE_PT, color=MUTED_INK, va="top", linespacing=LINE_SPACING)


def place(figure, axes, left_in, bottom_in, width_in_, height_in):
    """Puts axes at a place given in inches from the lower left corner."""
    width, height = figure.get_size_inches()
    axes.set_position([left_in / width, bottom_in / height, width_in_ / width, height_in / height])
