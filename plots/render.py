#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of a record: summary.json in, SVG out.

    python3 plots/render.py --summary reports/data/h200/RUN/summary.json --out reports/h200/plots

Of several summaries, each after a --summary of its own, the one figure that joins records is drawn:
the throughput by sequence length.

The same summary gives the same bytes with the pinned matplotlib on the same kind of CPU; on another
one compare_svg.py tells whether pictures show the same. Exit code 2, and one line on stderr, when
the summary can't be read or holds nothing to draw, and 3 when matplotlib is missing; then no file
is written.
"""

import argparse
import io
import os
import pathlib
import re
import signal
import sys

# A picture multiplies no large matrices. NumPy's threads for those would wait busily, for as long as
# it takes to draw a picture.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    from matplotlib import pyplot
except ModuleNotFoundError as error:
    print(f"plots: {sys.executable}: {error}", file=sys.stderr)
    sys.exit(3)

# As a script, Python looks for modules beside this file; the package's parent is needed.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from plots import calibration, dtypes, effects, interactions, json_text, ladder  # noqa: E402
from plots import matrix, parts, roofline, speedup, stalls, svg, throughput, waterfall  # noqa: E402
from plots import whole_file  # noqa: E402
from plots.profile import ProfileSummary  # noqa: E402
from plots.summary import Summary, SummaryError, load_json, with_shown_names  # noqa: E402


def figures(summary):
    """{name: function without arguments that returns the figure}, in drawing order."""
    if isinstance(summary, ProfileSummary):
        out = {}
        if summary.ceilings and any(launch["flop_per_s"] for launch in summary.launches):
            out["profile_roofline"] = lambda: roofline.draw(summary)
        for shape in summary.shape_names():
            out[f"profile_stalls_{shape}"] = lambda shape=shape: stalls.draw(summary, shape)
        return out
    # So that they stand beside those of the record with a warm L2; the reports link them so.
    suffix = ("_cold" if summary.cache == "cold" else "") + ("_alone" if summary.alone else "")
    return {name + suffix: draw for name, draw in design_figures(summary).items()}


def design_figures(summary):
    """As figures(), of a design, whatever the cache mode was."""
    out = {}
    if throughput.panels(summary):
        out[f"{summary.design}_throughput"] = lambda: throughput.draw(summary)
    if summary.alone:
        return out  # its page is made of tables
    if summary.attribution:
        # Where a cell is wrong there are no shares, and the report says so.
        for shape in summary.shape_names():
            if any(row["shape"] == shape and row["log"] is not None
                   for row in summary.attribution):
                out[f"factorial_{shape}"] = lambda shape=shape: waterfall.draw(summary, shape)
            if any(row["shape"] == shape and row["ratio"] is not None
                   for row in summary.interactions):
                out[f"factorial_interactions_{shape}"] = (
                    lambda shape=shape: interactions.draw(summary, shape))
        return out
    if summary.design == "hopper_small":
        for shape in summary.shape_names():
            out[f"hopper_small_ladder_{shape}"] = lambda shape=shape: ladder.draw(summary, shape)
    if summary.design != "ladder":
        if not summary.verdicts:  # controls alone, to stand beside peers
            return out
        return out | verdict_figures(summary, f"{summary.design}_")
    for shape in summary.shape_names():
        out[f"ladder_{shape}"] = lambda shape=shape: ladder.draw(summary, shape)
    out |= verdict_figures(summary, "")
    out["speedup_overview"] = lambda: speedup.draw(summary)
    return out


def verdict_figures(summary, name):
    """As figures(): effects and verdicts of each part, called after `name`."""
    out = {}
    for suffix, part in parts.parts(summary):
        out[f"{name}effects{suffix}"] = lambda part=part: effects.draw(part)
        out[f"{name}matrix{suffix}"] = lambda part=part: matrix.draw(part)
    return out


def encode(figure):
    """The figure as SVG, without dates, versions or program names in it."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    return svg.slim(buffer.getvalue())


def draw_all(draws):
    """{name: SVG} of {name: function without arguments that returns the figure}.

    All are drawn before any is written, so that an error leaves no half set behind.
    """
    pictures = {}
    for name, draw in draws.items():
        figure = draw()
        pictures[name] = encode(figure)
        pyplot.close(figure)
    return pictures


def plain_name(name):
    """What a file may be called that a record's names come into; pages link it by the same rule."""
    return re.sub("[^a-z0-9_]", "-", name)


def write(pictures, out):
    """Writes {name: SVG} into the folder `out`, which is made if missing, and prints the paths."""
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in pictures.items():
        path = out / f"{plain_name(name)}.svg"
        whole_file.replace(path, content)
        print(path)


def from_stdin():
    try:
        return [json_text.loads(line) for line in sys.stdin.buffer.read().splitlines()]
    except ValueError as error:
        raise SummaryError(f"standard input: not JSON ({error})") from error


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--summary", action="append", required=True, metavar="FILE",
                        help="the record's summary.json (may be repeated); -: one on each line "
                             "of standard input")
    parser.add_argument("--out", required=True, help="folder for the pictures; made if missing")
    parser.add_argument("--joined", action="store_true",
                        help="draw the figure that joins records, even of one alone")
    arguments = parser.parse_args(argv)
    try:
        summaries = (from_stdin() if arguments.summary == ["-"]
                     else [load_json(path) for path in arguments.summary])
        summaries = [with_shown_names(each) for each in summaries]
        data = summaries[0]
        if arguments.joined or len(summaries) > 1:
            several = [Summary(each) for each in summaries]
            known = {"throughput": lambda: throughput.draw(*several)}
        elif calibration.is_calibration(data):
            known = {"calibration": lambda: calibration.draw(data)}
        elif dtypes.is_dtypes(data):
            known = {"dtypes": lambda: dtypes.draw(data)}
        elif isinstance(data, dict) and data.get("kind") == "profile":
            known = figures(ProfileSummary(data))
        else:
            known = figures(Summary(data))
        write(draw_all(known), arguments.out)
    except (SummaryError, OSError) as error:
        print(f"plots: {error}", file=sys.stderr)
        return 2
    except json_text.DAMAGE as error:
        print(f"plots: {arguments.summary[0]} can't be drawn: {json_text.said(error)}; write it "
              "again with `warpledger judge`", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no half picture stays
    sys.exit(main())
