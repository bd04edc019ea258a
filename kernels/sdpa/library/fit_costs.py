#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits what the terms of the library's kernels cost, and shows the choices that follow.

    kernels/sdpa/library/fit_costs.py --program build/bin/warpledger --terms build/bin/print_costs \\
        --record RECORD --record RECORD --write kernels/sdpa/library/fitted_costs.h
    kernels/sdpa/library/fit_costs.py … --record RECORD            only the regret on the records

Records are of the designs `library_…`, and for E4M3 of any design that has an arm of the kernel's
configuration. A term costs at least 0; relative errors are what is made least, in the mean square.
Costs are of a kernel and a head_dim: both 16-bit dtypes share them. Regret is how much longer the
chosen kernel takes than the fastest of the record. E4M3 has none: strides alone say which kernel does a problem.

All problems in the records of E4M3 have the same number of query tiles and of bytes, and fill the GPU many
times. So those records can't tell apart what a call, a round and a megabyte cost, nor a chain from all work.
Only what a chain costs is fitted to them; the other costs are those of the 16-bit kernel of the same parts.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np


def times(program, record):
    """{problem: {kernel: p50 in microseconds}} of the arms that are right. An arm of another design has its
    configuration in place of a kernel's name."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "summary.json"
        subprocess.run([program, "judge", f"--record={record}", f"--out={out}"], check=True,
                       stdout=subprocess.DEVNULL)
        summary = json.loads(out.read_text(encoding="utf-8"))
    by_problem = collections.defaultdict(dict)
    for cell in summary["cells"]:
        found = re.fullmatch(r"library_\w+:(\w+)", cell["variant"])
        if cell["correct"] and cell["role"] not in ("aa", "null"):
            by_problem[cell["shape"]][found[1] if found else cell["config"]] = cell["p50_us"]
    return by_problem


def terms(printer, measured):
    """What the library says of each problem. Of `measured` goes what the library would not take, and a kernel of
    E4M3 takes the place of its configuration."""
    problems = list(measured)
    done = subprocess.run([printer], input="\n".join(problems) + "\n", check=True,
                          stdout=subprocess.PIPE, text=True)
    said = {line["problem"]: line for line in map(json.loads, done.stdout.splitlines())}
    for problem, by_kernel in measured.items():
        of_e4m3 = said[problem]["e4m3"]
        names = {it["config"]: name for name, it in of_e4m3.items()}
        names |= {name: name for name in said[problem]["kernels"] | of_e4m3}
        measured[problem] = {names[each]: us for each, us in by_kernel.items() if each in names}
    return said


def measure(program, printer, records):
    """What the records measured, and what the library says of it."""
    measured = collections.defaultdict(dict)
    for record in records:
        for problem, by_kernel in times(program, record).items():
            measured[problem].update(by_kernel)
    return measured, terms(printer, measured)


def least_squares(a, b, rounds=20000):
    """x >= 0 that makes |a x - b| least, by coordinate descent."""
    scale = np.maximum(np.linalg.norm(a, axis=0), 1e-12)
    a = a / scale
    gram, target = a.T @ a, a.T @ b
    x = np.zeros(a.shape[1])
    for _ in range(rounds):
        before = x.copy()
        for i in range(len(x)):
            if gram[i, i] > 0.5:
                x[i] = max(0.0, x[i] + (target[i] - gram[i] @ x) / gram[i, i])
        if np.max(np.abs(x - before)) < 1e-12:
            break
    return x / scale


def head_dim(problem):
    return int(re.search(r"_d(\d+)", problem)[1])


SIXTEEN_BITS = "pipelined"  # whose parts E4M3's have
OF_E4M3 = "chain"  # what is fitted there


def fit(measured, said):
    """{(kernel, head_dim): costs}"""
    rows = collections.defaultdict(list)
    counts, is_e4m3 = [], {}
    for problem, by_kernel in measured.items():
        kernels = said[problem]["kernels"] | said[problem]["e4m3"]
        counts = said[problem]["counts"]
        for kernel, us in by_kernel.items():
            is_e4m3[kernel, head_dim(problem)] = kernel in said[problem]["e4m3"]
            rows[kernel, head_dim(problem)].append(np.array(kernels[kernel]["terms"]) / us)
    costs = {}
    for key in sorted(rows, key=lambda key: is_e4m3[key]):  # those of 16 bits first
        a = np.array(rows[key])
        known = np.zeros(a.shape[1])
        is_free = np.ones(a.shape[1], dtype=bool)
        if is_e4m3[key]:
            is_free = np.array(counts) == OF_E4M3
            known = np.where(is_free, 0, costs[SIXTEEN_BITS, key[1]])
        costs[key] = known + least_squares(a * is_free, np.ones(len(a)) - a @ known)
    return costs


def regrets(measured, said, costs=None):
    """(regret, problem, chosen, best) of each problem; by `costs`, else by the library's own."""
    found = []
    for problem, all_kernels in measured.items():
        kernels = said[problem]["kernels"]
        by_kernel = {name: us for name, us in all_kernels.items() if name in kernels}
        if not by_kernel:
            continue
        chosen = said[problem]["choice"] if costs is None else min(
            kernels, key=lambda k: costs[k, head_dim(problem)] @ np.array(kernels[k]["terms"]))
        while chosen not in by_kernel and kernels[chosen]["form_of"]:  # the record is older than the form
            chosen = kernels[chosen]["form_of"]
        best = min(by_kernel, key=by_kernel.get)
        found.append((by_kernel[chosen] / by_kernel[best] - 1, problem, chosen, best))
    return found


def table(found, title):
    values = np.array([regret for regret, *_ in found])
    print(f"{title}: {len(values)} problems, regret {100 * values.mean():.2f}% on average, "
          f"{100 * np.quantile(values, 0.95):.1f}% at the 95th percentile, "
          f"{100 * values.max():.1f}% at most; the fastest kernel for {np.sum(values == 0)}")


HEADER = """// SPDX-License-Identifier: Apache-2.0
// Written by fit_costs.py; edit nothing here. Of these records:
%s
#ifndef WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_
#define WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_

#include <string_view>

#include "kernels/sdpa/library/costs.h"

namespace warpledger::sdpa {

struct FittedCosts {
  std::string_view name;
  int head_dim;
  CostTerms us;  // microseconds a unit of each of kCostTermNames
};

// clang-format off
inline constexpr FittedCosts kFittedCosts[] = {
%s};
// clang-format on

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_
"""


def write(header, records, measured, said):
    """Fits, writes the header, and gives the costs."""
    costs = fit(measured, said)
    lines = [f'    {{"{kernel}", {dim}, {{{", ".join(f"{us:.5g}" for us in values)}}}}},\n'
             for (kernel, dim), values in sorted(costs.items(), key=lambda item: item[0][::-1])]
    names = sorted(pathlib.Path(record).name.removesuffix(".tar.zst") for record in records)
    header.write_text(HEADER % ("".join(f"//   {name}\n" for name in names), "".join(lines)),
                      encoding="utf-8")
    return costs


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="warpledger, which judges the records")
    parser.add_argument("--terms", required=True, help="print_costs, which says the terms")
    parser.add_argument("--record", action="append", required=True, help="may be repeated")
    parser.add_argument("--write", type=pathlib.Path, help="fit, and write the header here")
    parser.add_argument("--show", type=float, default=6, metavar="PERCENT",
                        help="name the problems of more regret than this (default: 6)")
    arguments = parser.parse_args()
    measured, said = measure(arguments.program, arguments.terms, arguments.record)
    if not any(measured.values()):
        parser.error("the records hold no arm of the library")
    costs = write(arguments.write, arguments.record, measured, said) if arguments.write else None
    found = regrets(measured, said, costs)
    for dim in sorted({head_dim(problem) for problem in measured}):
        table([row for row in found if head_dim(row[1]) == dim], f"head_dim {dim}")
    table(found, "all")
    for regret, problem, chosen, best in sorted(found, reverse=True):
        if 100 * regret > arguments.show:
            by_kernel = measured[problem]
            print(f"  {100 * regret:5.1f}%  {problem}: {chosen} ({by_kernel[chosen]:.2f} us), "
                  f"the fastest is {best} ({by_kernel[best]:.2f} us)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
