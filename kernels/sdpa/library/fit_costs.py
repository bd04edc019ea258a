#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits what the terms of the library's kernels cost, and shows the choices that follow.

    kernels/sdpa/library/fit_costs.py --program build/bin/warpledger --terms build/bin/print_costs \\
        --record RECORD --record RECORD --write kernels/sdpa/library/fitted_costs.h
    kernels/sdpa/library/fit_costs.py … --record RECORD            only the regret on the records
    kernels/sdpa/library/fit_costs.py … --record RECORD --folds 5  the regret on problems that a fit has not seen
    kernels/sdpa/library/fit_costs.py … --record RECORD --explain b1_h1_s192_d64   what was expected, and why
    kernels/sdpa/library/fit_costs.py … --record RECORD --worth    what would be lost without each kernel

Records are of the designs `library_…`, and of any design that has arms of kernels' configurations. A cost is at
least 0; relative errors are what is made least, in the mean square. Costs are of a kernel and a head_dim: both
16-bit dtypes share them. Regret is how much longer the chosen kernel takes than the fastest of the record. E4M3 has
none: strides alone say which kernel does a problem.

A form (`form_of`) is chosen for a percent or two, which is less than the errors of expected times. So it is fitted
to how much longer it takes than the kernel it is a form of, in the same record. For that, records of contenders that
ran alone, at the power limit, count too, and more. Expected times of 16-bit kernels are of the designs `library_…`
alone.

A time has about the larger of two, of tiles' work and of DRAM's, smoothly joined (UsOfBoth in costs.cc). How much of
each it has in a row follows from the costs, so that both are found by turns. What a megabyte from DRAM costs is no
kernel's affair: it is one figure for all.

All problems in the records of E4M3 have the same number of query tiles and of bytes, and fill the GPU many
times. So those records can't tell apart what a call, a round and a megabyte cost, nor a chain from all work.
Only what chains, starts and work under a causal mask cost beside DRAM is fitted to them; the other costs are those of
the 16-bit kernel of the same parts.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np


def summary_of(program, record):
    """What `warpledger judge` says of a record."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "summary.json"
        subprocess.run([program, "judge", f"--record={record}", f"--out={out}"], check=True,
                       stdout=subprocess.DEVNULL)
        return json.loads(out.read_text(encoding="utf-8"))


# Kernels that became others, and when: what earlier records have of them no longer counts.
CHANGED = {"split_mma": "2026-11-29T01:00:00Z"}  # its join (reports/decisions/0051-join-at-once.md)


def times(program, record):
    """(provenance, {problem: {kernel: p50 in microseconds}}), of the arms that are right. An arm of another design has
    its configuration in place of a kernel's name."""
    summary = summary_of(program, record)
    by_problem = collections.defaultdict(dict)
    for cell in summary["cells"]:
        found = re.fullmatch(r"library_\w+:(\w+)", cell["variant"])
        if cell["correct"] and cell["role"] not in ("aa", "null") and cell["p50_us"] is not None:
            by_problem[cell["shape"]][found[1] if found else cell["config"]] = cell["p50_us"]
    return summary["provenance"], by_problem


@dataclasses.dataclass
class Row:
    """What a record measured of a problem."""
    problem: str
    alone: bool
    us: dict  # of each kernel, by its name
    created: str = ""  # when the record was, in UTC


def said_of(printer, problems):
    """What the library says of each."""
    done = subprocess.run([printer], input="\n".join(problems) + "\n", check=True,
                          stdout=subprocess.PIPE, text=True)
    return {line["problem"]: line for line in map(json.loads, done.stdout.splitlines())}


def measure(program, printer, records):
    """What the records measured, and what the library says of it. Of what was measured goes what the library would not
    take, and a kernel takes the place of its configuration."""
    rows = [Row(problem, "alone" in provenance, us, provenance["created_utc"])
            for provenance, by_problem in (times(program, record) for record in records)
            for problem, us in by_problem.items()]
    said = said_of(printer, list(dict.fromkeys(row.problem for row in rows)))
    for row in rows:
        known = all_kernels(said[row.problem])
        names = {it["config"]: name for name, it in known.items()} | {name: name for name in known}
        row.us = {names[each]: us for each, us in row.us.items()
                  if each in names and row.created >= CHANGED.get(names[each], "")}
    return rows, said


def all_kernels(line):
    return line["kernels"] | line["e4m3"]


def least_squares(a, b):
    """x >= 0 that makes |a x - b| least, by the active set of Lawson and Hanson."""
    scale = np.maximum(np.linalg.norm(a, axis=0), 1e-12)
    a = a / scale
    x = np.zeros(a.shape[1])
    is_in = np.zeros(len(x), dtype=bool)
    for _ in range(30 * len(x)):
        gain = a.T @ (b - a @ x)
        gain[is_in] = 0
        if gain.max() < 1e-10:
            break
        is_in[np.argmax(gain > (1 - 1e-6) * gain.max())] = True  # of equal columns the first, however sums round
        while True:
            to = np.zeros(len(x))
            to[is_in] = np.linalg.lstsq(a[:, is_in], b, rcond=None)[0]
            stuck = is_in & (to <= 0)
            if not stuck.any():
                break
            x += np.min(x[stuck] / (x[stuck] - to[stuck])) * (to - x)
            is_in &= x > 1e-14
        x = to
    return x / scale


SHARPNESS = 8  # kSharpness of costs.cc


def sides(terms, costs, layout):
    """What tiles' work and DRAM take of the rows of terms, and both beside each other."""
    first, dram = layout
    tiles, memory = terms[..., first:dram] @ costs[first:dram], terms[..., dram] * costs[dram]
    longer = np.maximum(np.maximum(tiles, memory), 1e-9)
    return tiles, memory, longer * ((tiles / longer) ** SHARPNESS + (memory / longer) ** SHARPNESS) ** (1 / SHARPNESS)


def cost_of(terms, costs, layout):
    """What the rows of terms cost."""
    return terms[..., :layout[0]] @ costs[:layout[0]] + sides(terms, costs, layout)[2]


def least_costs(terms, us, weights, layout, known, is_free):
    """The costs that make the errors of times `us` least; those that are not free are known. What both sides take is of
    the first degree in them, so that it is the sum of each times its derivative. These are held, costs are found, and
    half of the way is gone there, until there is no way to go."""
    first, dram = layout
    of_tiles, of_dram = np.full(len(us), 0.8), np.full(len(us), 0.5)  # a guess at the derivatives
    costs = None
    for _ in range(200):
        counted = terms.copy()
        counted[:, first:dram] *= of_tiles[:, None]
        counted[:, dram] *= of_dram
        a = counted * (weights / us)[:, None]
        found = known + least_squares(a * is_free, weights - a @ known)
        if costs is not None and np.allclose(found, costs, rtol=1e-11, atol=1e-14):
            break
        costs = found if costs is None else (costs + found) / 2
        tiles, memory, both = sides(terms, costs, layout)
        of_tiles, of_dram = (tiles / both) ** (SHARPNESS - 1), (memory / both) ** (SHARPNESS - 1)
    return found


def head_dim(problem):
    return int(re.search(r"_d(\d+)", problem)[1])


# A megabyte from DRAM, in microseconds: 4.35 TB/s of the 4.6 that a plain read has on an H200 (reports/h200/micro.md).
DRAM_US = 0.23
SIXTEEN_BITS = "pipelined"  # whose parts E4M3's have
OF_E4M3 = ("chain", "causal work", "starts")  # what is fitted there, in place of all that tiles take
ALONE_WEIGHT = 4  # of a row of contenders that ran alone, where forms are fitted


def layout_of(said):
    line = next(iter(said.values()))
    return line["counts"].index("chain"), line["counts"].index("MB")


def fit(rows, said):
    """{(kernel, head_dim): costs}"""
    layout, counts = layout_of(said), next(iter(said.values()))["counts"]
    costs = {}

    def fitted(samples, free_of):
        for key, of_key in samples.items():
            terms, us, weights = (np.array(each, dtype=float) for each in zip(*of_key))
            free, known = free_of(key)
            costs[key] = least_costs(terms, us, weights, layout, known, free)

    of_dram = np.where(np.array(counts) == "MB", DRAM_US, 0)

    def everything(_):
        return of_dram == 0, of_dram

    def of_e4m3(key):
        of_tiles = np.arange(len(counts))
        of_tiles = (layout[0] <= of_tiles) & (of_tiles < layout[1])
        return np.array([count in OF_E4M3 for count in counts]), np.where(of_tiles, 0, costs[SIXTEEN_BITS, key[1]])

    def kernels_of(row, kind):
        return [(name, it) for name, it in said[row.problem][kind].items()
                if name in row.us and it["costs_of"] == name]

    samples = collections.defaultdict(list)
    for row in rows:
        for name, it in kernels_of(row, "kernels"):
            if not row.alone and not it["form_of"]:
                samples[name, head_dim(row.problem)].append((it["terms"], row.us[name], 1))
    fitted(samples, everything)
    samples = collections.defaultdict(list)
    for row in rows:
        kernels, dim = said[row.problem]["kernels"], head_dim(row.problem)
        for name, it in kernels_of(row, "kernels"):
            of = it["form_of"]
            while of and kernels[of]["form_of"]:
                of = kernels[of]["form_of"]
            if of in row.us and (of, dim) in costs:
                expected = cost_of(np.array(kernels[of]["terms"]), costs[of, dim], layout)
                samples[name, dim].append((it["terms"], row.us[name] * expected / row.us[of],
                                           ALONE_WEIGHT if row.alone else 1))
    fitted(samples, everything)
    samples = collections.defaultdict(list)
    for row in rows:
        for name, it in kernels_of(row, "e4m3"):
            samples[name, head_dim(row.problem)].append((it["terms"], row.us[name], 1))
    fitted(samples, of_e4m3)
    return costs


def expected_by(costs, line, layout):
    """{kernel: microseconds} of a library that has these costs, or of this one; `line` is what print_costs says of the
    problem."""
    if costs is None:
        return {name: it["us"] for name, it in line["kernels"].items()}
    dim = head_dim(line["problem"])
    return {name: cost_of(np.array(it["terms"]), costs[it["costs_of"], dim], layout)
            * it["us"] / it["us_by_costs"]  # some forms differ
            for name, it in line["kernels"].items() if (it["costs_of"], dim) in costs}


NEAR = 1.3  # times the shortest expected time


def is_whole(row, expected):
    """Whether the row has the time of each kernel that became another and may be the fastest."""
    near = NEAR * min(expected.values())
    return all(name in row.us or name not in CHANGED or us > near for name, us in expected.items())


def regrets(rows, said, costs=None):
    """(regret, problem, chosen, best) of each whole row, by `costs`, else by the library's own."""
    found = []
    for row in rows:
        line = said[row.problem]
        kernels = line["kernels"]
        by_kernel = {name: us for name, us in row.us.items() if name in kernels}
        expected = expected_by(costs, line, layout_of(said))
        if not by_kernel or not is_whole(row, expected):
            continue
        chosen = min(expected, key=expected.get) if costs else line["choice"]
        while chosen not in by_kernel and kernels[chosen]["form_of"]:  # the record is older than the form
            chosen = kernels[chosen]["form_of"]
        if chosen not in by_kernel:
            continue
        best = min(by_kernel, key=by_kernel.get)
        found.append((by_kernel[chosen] / by_kernel[best] - 1, row.problem, chosen, best))
    return found


def held_out(rows, said, folds):
    """regrets() of each row that did not run alone, by a fit to the rows of other problems: of each `folds` problems in
    turn, one is left out."""
    problems = list(dict.fromkeys(row.problem for row in rows if not row.alone))
    found = []
    for fold in range(folds):
        left_out = set(problems[fold::folds])
        costs = fit([row for row in rows if row.problem not in left_out], said)
        found += regrets([row for row in rows if row.problem in left_out and not row.alone], said, costs)
    return found


def table(found, title):
    values = np.array([regret for regret, *_ in found])
    print(f"{title}: {len(values)} problems, regret {100 * values.mean():.2f}% on average, "
          f"{100 * np.quantile(values, 0.95):.1f}% at the 95th percentile, "
          f"{100 * values.max():.1f}% at most; the fastest kernel for {np.sum(values == 0)}")


def explained(row, line):
    """The lines that say what each kernel took, what the library expects, and what the terms count."""
    yield f"{row.problem}{', each alone' if row.alone else ''}: the library takes {line['choice']}"
    for name, us in sorted(row.us.items(), key=lambda item: item[1]):
        it = all_kernels(line)[name]
        terms = ", ".join(f"{count} {term:.4g}" for count, term in zip(line["counts"], it["terms"]) if term)
        yield f"  {us:9.2f} us, expected {it['us']:9.2f} us ({100 * (it['us'] / us - 1):+.1f}%)  {name}: {terms}"


def worth(rows):
    """{(head_dim, kernel): [how much longer the fastest other kernel takes, 0 where another one is the fastest]}"""
    found = collections.defaultdict(list)
    for row in rows:
        for name in row.us:
            others = [us for other, us in row.us.items() if other != name]
            if others:
                found[head_dim(row.problem), name].append(min(others) / min(row.us.values()) - 1)
    return found


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


def write(header, records, rows, said):
    """Fits, and writes the header."""
    costs = fit(rows, said)
    lines = [f'    {{"{kernel}", {dim}, {{{", ".join(f"{us:.5g}" for us in values)}}}}},\n'
             for (kernel, dim), values in sorted(costs.items(), key=lambda item: item[0][::-1])]
    names = sorted(pathlib.Path(record).name.removesuffix(".tar.zst") for record in records)
    header.write_text(HEADER % ("".join(f"//   {name}\n" for name in names), "".join(lines)),
                      encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="warpledger, which judges the records")
    parser.add_argument("--terms", required=True, help="print_costs, which says the terms and the choices")
    parser.add_argument("--record", action="append", required=True, help="may be repeated")
    parser.add_argument("--write", type=pathlib.Path,
                        help="fit, and write the header here: choices change when print_costs is built anew")
    parser.add_argument("--folds", type=int, metavar="N",
                        help="fit N times, each time without one in N problems, and show the regret on these")
    parser.add_argument("--explain", action="append", default=[], metavar="PROBLEM",
                        help="show its times in the records, those that the library expects, and the terms")
    parser.add_argument("--worth", action="store_true",
                        help="show how much longer the fastest other kernel takes than each")
    parser.add_argument("--show", type=float, default=6, metavar="PERCENT",
                        help="name the problems of more regret than this (default: 6)")
    arguments = parser.parse_args()
    rows, said = measure(arguments.program, arguments.terms, arguments.record)
    if not any(row.us for row in rows):
        parser.error("the records hold no arm of the library")
    if arguments.write:
        write(arguments.write, arguments.record, rows, said)
        return 0
    if arguments.explain:
        unknown = set(arguments.explain) - {row.problem for row in rows}
        if unknown:
            parser.error(f"the records have no problem {', '.join(sorted(unknown))}")
        for row in rows:
            if row.problem in arguments.explain:
                print("\n".join(explained(row, said[row.problem])))
        return 0
    if arguments.worth:
        for (dim, name), losses in sorted(worth(rows).items()):
            print(f"head_dim {dim}, without {name}: {100 * np.mean(losses):.2f}% longer on average, "
                  f"{100 * max(losses):.1f}% at most; the fastest for {np.sum(np.array(losses) > 0)} of {len(losses)}")
        return 0
    found = held_out(rows, said, arguments.folds) if arguments.folds else regrets(rows, said)
    for dim in sorted({head_dim(problem) for _, problem, *_ in found}):
        table([each for each in found if head_dim(each[1]) == dim], f"head_dim {dim}")
    table(found, "all")
    by_problem = {row.problem: row.us for row in rows}
    for regret, problem, chosen, best in sorted(found, reverse=True):
        if 100 * regret > arguments.show:
            print(f"  {100 * regret:5.1f}%  {problem}: {chosen} ({by_problem[problem][chosen]:.2f} us), "
                  f"the fastest is {best} ({by_problem[problem][best]:.2f} us)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
