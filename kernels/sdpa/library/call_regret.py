#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much longer the library's choice takes than the fastest kernel, by files of call_times.py.

    for kernels in mma mma:tiled_mma mma:split_mma; do
        WARPLEDGER_SDPA_KERNELS=$kernels kernels/sdpa/library/call_times.py random --contenders ours --energy 0 \\
            --out "${kernels/:/_}.json"
    done
    kernels/sdpa/library/call_regret.py mma_*.json

Each file has the times of one kernel. With --choice FILE, a file in which the library chose, its kernel is told
beside the fastest; else the files' own regret, each as if it were always taken.
"""

import argparse
import json
import pathlib
import sys


def times_of(path):
    """{problem: (kernel, microseconds)} of calls that were right"""
    found = {}
    for row in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["rows"]:
        ours = row.get("found", {}).get("ours", {})
        if "p50_us" in ours:
            found[row["problem"]] = ours["said"].split(",")[0], ours["p50_us"]
    return found


def regrets(chosen, kernels):
    """[(problem, chosen kernel, fastest kernel, regret)] of problems that all of `kernels` have, {problem: (kernel,
    us)} each. The regret is over the fastest by its own file: what one kernel differs by from file to file is noise."""
    rows = []
    for problem, (kernel, _) in chosen.items():
        times = dict(each[problem] for each in kernels if problem in each)
        if kernel not in times or len(times) < len(kernels):
            continue
        fastest = min(times, key=times.get)
        rows.append((problem, kernel, fastest, times[kernel] / times[fastest] - 1))
    return rows


def text_of(rows):
    if not rows:
        return "no problem has times of all kernels"
    each = [f"{problem:40} {kernel:20} {fastest:20} {regret:7.1%}"
            for problem, kernel, fastest, regret in sorted(rows, key=lambda row: -row[3]) if regret > 0]
    mean = sum(row[3] for row in rows) / len(rows)
    return "\n".join([*each, f"{len(rows)} problems: {mean:.2%} on average, {max(row[3] for row in rows):.1%} at most, "
                            f"the fastest for {sum(row[3] == 0 for row in rows)}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="+", metavar="FILE", help="of one kernel each")
    parser.add_argument("--choice", metavar="FILE", help="in which the library chose")
    args = parser.parse_args()
    kernels = [times_of(path) for path in args.kernels]
    if args.choice:
        print(text_of(regrets(times_of(args.choice), kernels)))
    else:
        for path, each in zip(args.kernels, kernels):
            print(f"{path}, always:\n{text_of(regrets(each, kernels))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
