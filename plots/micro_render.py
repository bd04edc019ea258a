#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of a record of microbenchmarks: micro.json in, SVG out.

    python3 plots/micro_render.py --micro reports/data/h200/RUN/micro.json --out reports/h200/micro

A figure whose cases the record lacks is left out by name. Bytes are the same as those of render.py
are. Exit code 2, and one line on stderr, when the record can't be read.
"""

import argparse
import pathlib
import sys

# As a script, Python looks for modules beside this file; the package's parent is needed.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from plots import json_text, micro_figures  # noqa: E402
from plots.micro_data import MicroError, load  # noqa: E402
from plots.render import draw_all, write  # noqa: E402

# {name: function of a record that returns the figure, or None where it lacks the cases}
FIGURES = {
    "bank_conflict_slope": micro_figures.draw_bank_conflict_slope,
    "cp_async_depth": micro_figures.draw_cp_async_depth,
    "exp_pareto": micro_figures.draw_exp_pareto,
    "memory_hierarchy": micro_figures.draw_memory_hierarchy,
    "overlap_matrix": micro_figures.draw_overlap_matrix,
    "reduction_costs": micro_figures.draw_reduction_costs,
    "swizzle_dilution": micro_figures.draw_swizzle_dilution,
    "wgmma_widths": micro_figures.draw_wgmma_widths,
}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--micro", required=True, help="the record's micro.json")
    parser.add_argument("--out", required=True, help="folder for the pictures; made if missing")
    arguments = parser.parse_args(argv)
    try:
        micro = load(arguments.micro)
        figures = {name: draw(micro) for name, draw in FIGURES.items()}
        for name in [name for name, figure in figures.items() if figure is None]:
            print(f"plots: {name} is left out: the record has none of its cases", file=sys.stderr)
            del figures[name]
        write(draw_all({name: lambda figure=figure: figure for name, figure in figures.items()}),
              arguments.out)
    except (MicroError, OSError) as error:
        print(f"plots: {error}", file=sys.stderr)
        return 2
    except json_text.DAMAGE as error:
        print(f"plots: {arguments.micro} can't be drawn: {json_text.said(error)}; write it again "
              "with micro/record.sh", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
