# SPDX-License-Identifier: Apache-2.0
"""How much of each instruction a tensor-core product hides, as a matrix."""

from matplotlib import colors
from matplotlib.patches import Rectangle

from plots import micro_canvas, style
from plots.micro_curves import OVERLAP_PLACES, overlap_cells, spoken_cell


def draw(micro):
    """The figure, or None where the record has no such cases."""
    cells, operations, columns = overlap_cells(micro)
    if not cells:
        return None
    best, worst = max(cells, key=cells.get), min(cells, key=cells.get)
    title = f"{cells[best]:.0f}% of {spoken_cell(best)} is hidden, {cells[worst]:.0f}% of {spoken_cell(worst)}"
    figure, (axes,) = micro_canvas.panels(
        title, micro_canvas.subtitle(micro, "share of the shorter of the two that the pair hides",
                                     "100%: as if it weren't there; 0%: one after the other"),
        height_in=0.62 * len(operations), left_in=2.4, under_in=0.35, top_in=0.7)
    axes.grid(False)
    shade = colors.LinearSegmentedColormap.from_list("hidden", ["#FFFFFF", style.BLUISH_GREEN])
    grid = [[cells.get((operation, column), float("nan")) for column in columns]
            for operation in operations]
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(operations) - 0.5, -0.5)
    for y, row in enumerate(grid):
        for x, percent in enumerate(row):
            known = percent == percent  # not NaN
            # No imshow(), which would put a PNG into the SVG.
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, linewidth=0, zorder=0,
                                     facecolor=shade(percent / 100) if known else style.BAND))
            axes.text(x, y, f"{percent:.0f}%" if known else "–", ha="center", va="center",
                      fontsize=style.ROW_PT, fontweight="bold" if known else "normal",
                      color="white" if known and percent > 70 else style.INK)
    axes.set_yticks(range(len(operations)), operations)
    axes.set_xticks(range(len(columns)), [f"{column[0]}, {OVERLAP_PLACES[column]}" for column in columns])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([x - 0.5 for x in range(1, len(columns))], minor=True)
    axes.set_yticks([y - 0.5 for y in range(1, len(operations))], minor=True)
    axes.grid(which="minor", color="white", linewidth=3)
    axes.tick_params(which="minor", length=0)
    return figure
