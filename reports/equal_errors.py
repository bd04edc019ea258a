#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In how many checks two variants have the same errors: reports/decisions/0043.

    reports/equal_errors.py --program=build/bin/warpledger --record=reports/data/h200

Prints a Markdown table per GPU. A check is one of both variants against FP64 on the same inputs; what
a timed graph left, which is compared with the variant itself, is none. The first row counts the
claims that should leave every bit (kernels/sdpa/registry/claims.def), as the program does; then a row
for each toggle that left their list. Of a folder the newest record of each design counts.

Errors: RecordError, and what the program says where it can't judge a record; exit code 1.
"""

import argparse
import collections
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "reports"))
import record_files  # noqa: E402 (the path comes first)
import verdict_figures  # noqa: E402

# Once expected to leave every bit, and left the list.
TOGGLES = ("wgmma_p_smem", "mma_softmax_overlap")
OWN_GRAPH = "timed_graph"  # reports/RECORD.md
ERRORS = ("max_err", "mean_err", "lse_err")


def checks_of(lines):
    """{(arm, shape): {(process, inputs, seed): errors}}"""
    found = collections.defaultdict(dict)
    for line in lines:
        if line["inputs"] != OWN_GRAPH:
            # As text, so that NaN is NaN.
            found[line["arm"], line["shape"]][line["process"], line["inputs"], line["seed"]] = \
                [repr(line.get(error)) for error in ERRORS]
    return found


def same(checks, verdict):
    """(checks of both arms on the same inputs, those with the same errors)"""
    base, candidate = (checks[verdict[arm], verdict["shape"]] for arm in ("base", "candidate"))
    both = base.keys() & candidate.keys()
    return len(both), sum(base[key] == candidate[key] for key in both)


def count(judged, toggles=TOGGLES):
    """{row: [checks, same]} of pairs (summary, lines of correctness.jsonl)."""
    rows = {row: [0, 0] for row in ("claims that should leave every bit", *toggles)}
    for summary, lines in judged:
        checks = checks_of(lines)
        for verdict in summary["verdicts"] + summary.get("comparisons", []):
            if "same_errors" in verdict:
                of, found = rows["claims that should leave every bit"], verdict["same_errors"]
                of[0] += found["checks"]
                of[1] += found["same"]
            if verdict["toggle"] in toggles:
                of, found = rows[verdict["toggle"]], same(checks, verdict)
                of[0] += found[0]
                of[1] += found[1]
    return rows


def table(gpu, rows):
    return f"{gpu}:\n\n" + verdict_figures.table(
        ["claims", "checks", "same errors"],
        [[f"`{row}`" if row in TOGGLES else row, *counts] for row, counts in rows.items()
         if counts[0]])


def figures(program, paths, environment=None):
    of_gpu = collections.defaultdict(list)
    names = {}
    for path in paths:
        record = record_files.Record(path)
        summary = verdict_figures.judge(program, record.path, environment)
        of_gpu[summary["gpu"]].append((summary, record.lines("correctness.jsonl")))
        names[summary["gpu"]] = summary["provenance"]["gpu"]["name"]
    return "\n".join(table(names[gpu], count(judged)) for gpu, judged in sorted(of_gpu.items()))


def newest(names):
    """Of the runs of `names` the newest of each GPU and design with a warm L2."""
    found = {}
    for path in verdict_figures.paths_of(names):
        run = record_files.Record(path).json("run.json")
        question = record_files.question_of(run)
        if (run["cache"] != "warm" or run["design"] == "calibrate"
                or question.startswith(record_files.STUDY) or run.get("alone")):
            continue
        key = run["gpu"]["slug"], question
        if key not in found or found[key][0] < run["created_utc"]:
            found[key] = run["created_utc"], path
    return [path for _, path in found.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bin" / "warpledger")
    parser.add_argument("--record", action="append", required=True, help="a run, or a folder of runs")
    options = parser.parse_args()
    try:
        print(figures(options.program.resolve(), newest(options.record)), end="")
    except (OSError, record_files.RecordError) as error:
        print(f"equal_errors.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
