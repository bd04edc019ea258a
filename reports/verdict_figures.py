#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often verdicts are right and how many decide, on any records: reports/decisions/0002.

    reports/verdict_figures.py --program=build/bin/warpledger --record=reports/data/h200

Prints Markdown tables: how many verdicts decide, by regime and size of the effect; how often the
A/A and null controls are decided falsely; how many delays of 2% are found that are planted in the
samples of the controls; and how often the interval for another board contains what a left-out
board says (`warpledger pool --leave_one_out`). It knows nothing of the records but their files. An
older program gives the figures of its own rules; what its summaries lack is left out.

Errors: RecordError, and what the program says where it can't judge a record; exit code 1.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "reports"))
import record_files  # noqa: E402 (the path comes first)

SAYS_NOTHING = ("BROKEN", "INVALID", "NOT_APPLICABLE")
UNDECIDED = "INCONCLUSIVE"
CONTROL_ROLES = ("aa", "null")
SIZES = ((0.03, "3% and more"), (0.02, "2 to 3%"), (0.01, "1 to 2%"), (0, "under 1%"))
MANY_TRIALS, LEAST_SHARE, MISSES = 40, 0.9, 0.05
REGIMES = ("not_capped", "capped")
ALONE = ("own_power", "joules")  # what is compared of arms that were timed alone
ORDER = {"under 2%": 1, "2 to 8%": 2, "8 to 32%": 3, "32%+": 4}  # others by their names
_US = re.compile(r'("us":)([0-9.eE+-]+)')
_SUM = re.compile(r',"sum":"[0-9a-f]{8}"}$')


def size_of(ratio):
    effect = max(ratio, 1 / ratio) - 1
    return next(name for least, name in SIZES if effect >= least)


def is_capped(verdict):
    """Whether the power limit held most samples of both arms."""
    capped = verdict.get("power_capped") or {"base_pairs": 0, "candidate_pairs": 0}
    return capped["base_pairs"] + capped["candidate_pairs"] > verdict["n_pairs"]


def regime_of(verdict):
    if verdict.get("estimand") in ALONE:
        return "each arm alone"
    if not is_capped(verdict):
        return "not capped"
    return "capped" if verdict.get("estimand", "cycles") == "cycles" else "capped, without clocks"


def regime_by_shape(summary):
    """Of the verdicts on a shape the one that most have: a control has none of its own."""
    found = collections.defaultdict(collections.Counter)
    for verdict in summary["verdicts"]:
        found[verdict["shape"]][regime_of(verdict)] += 1
    return {shape: counts.most_common(1)[0][0] for shape, counts in found.items()}


def regime_of_control(control, by_shape):
    if control.get("estimand") in ALONE:
        return "each arm alone"
    return by_shape.get(control["shape"], "not capped")


def planted_line(line, arms, factor):
    """A line of samples.jsonl, in which a sample of these arms takes `factor` times as long."""
    if json.loads(line)["arm"] not in arms:
        return line
    body, has_sum = _SUM.subn("", line)
    if not has_sum:
        body = line
    body = _US.sub(lambda found: f"{found[1]}{float(found[2]) * factor!r}", body, count=1)
    if not has_sum:
        return body
    return f'{body},"sum":"{hashlib.sha256(body.encode()).hexdigest()[:8]}"}}'


def judge(program, record, environment=None):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "summary.json"
        done = subprocess.run([program, "judge", f"--record={record}", f"--out={out}"],
                              capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            raise record_files.RecordError(f"{record}: {done.stderr.strip()}")
        return json.loads(out.read_text(encoding="utf-8"))


def judge_planted(program, path, size):
    """The summary of the record with its controls slowed; None where it has none."""
    record = record_files.Record(path)
    arms = {arm["name"] for arm in record.json("run.json")["arms"]
            if arm["role"] in CONTROL_ROLES}
    if not arms:
        return None
    with tempfile.TemporaryDirectory() as scratch, record.folder() as folder:
        copy = pathlib.Path(scratch) / record.name
        copy.mkdir()
        for file in folder.iterdir():
            if file.name != "samples.jsonl":
                (copy / file.name).write_bytes(file.read_bytes())
        lines = (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
        factor = 1 + size / 100
        (copy / "samples.jsonl").write_text(
            "".join(planted_line(line, arms, factor) + "\n" for line in lines), encoding="utf-8")
        return judge(program, copy)


def percent(count, of):
    return f"{100 * count / of:.1f}%" if of else "–"


def table(header, rows):
    cells = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in cells)


def decided(summaries):
    verdicts = [verdict for summary in summaries for verdict in summary["verdicts"]
                if verdict["verdict"] not in SAYS_NOTHING and verdict["ratio"]]
    rows = []
    for regime in sorted({regime_of(verdict) for verdict in verdicts}):
        of_regime = [verdict for verdict in verdicts if regime_of(verdict) == regime]
        row = [regime, len(of_regime),
               percent(sum(v["verdict"] == UNDECIDED for v in of_regime), len(of_regime))]
        for _, name in SIZES:
            of_size = [v for v in of_regime if size_of(v["ratio"]) == name]
            told = sum(v["verdict"] != UNDECIDED for v in of_size)
            row.append(f"{percent(told, len(of_size))} of {len(of_size)}")
        rows.append(row)
    return ("Verdicts that decide, by the size of the effect:\n\n" + table(
        ["regime", "verdicts", UNDECIDED, *(name for _, name in SIZES)], rows))


def controls(summaries):
    counts = collections.defaultdict(collections.Counter)
    families = collections.defaultdict(bool)
    for number, summary in enumerate(summaries):
        regimes = regime_by_shape(summary)
        for control in summary["controls"]:
            regime = regime_of_control(control, regimes)
            counts[regime]["controls"] += 1
            counts[regime]["false"] += control["false_verdict"]
            counts[regime]["holds"] += control["holds_one"]
            # The joules of arms alone are another question than their time.
            family = number, control["kind"], control.get("estimand") == "joules"
            families[family] |= control["false_verdict"]
    rows = [[regime, of["controls"], of["false"], percent(of["holds"], of["controls"])]
            for regime, of in sorted(counts.items())]
    return ("Controls, whose true ratio is 1:\n\n"
            + table(["regime", "controls", "false verdicts", "intervals that contain 1"], rows)
            + f"\nFamilies of controls with a false verdict: {sum(families.values())} of "
            f"{len(families)}.\n")


def today(summaries):
    boards = {summary["provenance"]["gpu"]["uuid"] for summary in summaries}
    return "\n".join([f"{len(summaries)} records of {len(boards)} boards.\n", decided(summaries),
                      controls(summaries)])


def planted(summaries, size):
    found = collections.defaultdict(collections.Counter)
    for summary in summaries:
        regimes = regime_by_shape(summary)
        for control in summary["controls"]:
            found[regime_of_control(control, regimes)][control["timing_verdict"]] += 1
    rows = [[regime, sum(of.values()), percent(of["REGRESSION"], sum(of.values())),
             sum(of[verdict] for verdict in ("ADOPT", "REAL_BELOW_GATE", "NEUTRAL"))]
            for regime, of in sorted(found.items())]
    return (f"Delays of {size:g}% planted in the controls:\n\n"
            + table(["regime", "planted", "found", "called something else"], rows))


def correlation(records):
    """Of misses within a record: Williams' moments (Biometrika 62, 1975), p (1-p) n (1 + (n-1) r)."""
    trials = sum(of["trials"] for of in records)
    share = sum(of["trials"] - of["covered"] for of in records) / trials
    pairs = sum(of["trials"] * (of["trials"] - 1) for of in records)
    if not 0 < share < 1 or not pairs:
        return 0.0
    squares = math.fsum((of["trials"] - of["covered"] - of["trials"] * share) ** 2 for of in records)
    return max(0.0, (squares / (share * (1 - share)) - trials) / pairs)


def miss_chances(trials, together, most):
    """Of 0, 1, … `most` misses in a record, where the intervals are exact: a beta-binomial."""
    if together == 0:
        return [math.comb(trials, k) * MISSES**k * (1 - MISSES)**(trials - k)
                for k in range(min(trials, most) + 1)]
    size = 1 / min(together, 0.999) - 1
    a, b = MISSES * size, (1 - MISSES) * size

    def log_beta(x, y):
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    return [math.comb(trials, k) * math.exp(log_beta(k + a, trials - k + b) - log_beta(a, b))
            for k in range(min(trials, most) + 1)]


def together_chances(first, second, most):
    """Of the sum of two independent counts, up to `most`."""
    chances = [0.0] * (min(len(first) + len(second) - 2, most) + 1)
    for i, chance in enumerate(first):
        for k, other in enumerate(second[:most + 1 - i]):
            chances[i + k] += chance * other
    return chances


def chance_of_more(misses, records, together):
    """That exact intervals miss more often than that in records of so many trials."""
    chances = [1.0]
    for trials in records:
        chances = together_chances(chances, miss_chances(trials, together, misses), misses)
    return max(0.0, 1 - math.fsum(chances))


def allowed(trials):
    """So many misses, and the share that is covered is the least."""
    return int((1 - LEAST_SHARE) * trials + 1e-9)


def chance_below(records, together):
    """That a design of records of so many trials covers too seldom although its intervals are
    exact."""
    return chance_of_more(allowed(sum(records)), records, together)


def deciding_records(trials, together, most=99):
    """How many records of so many trials a design needs that exact intervals are below the least
    share in at most 5% of ledgers; None: more than `most`."""
    return next((count for count in range(1, most + 1)
                 if chance_below([trials] * count, together) <= 0.05), None)


def designs_below(records):
    """Which designs cover too seldom, and how many would if each interval were exact, but misses
    of a record came together as often as here."""
    designs = collections.defaultdict(list)
    for of in records:
        designs[of["design"]].append(of)
    designs = {name: of for name, of in designs.items()
               if sum(each["trials"] for each in of) >= MANY_TRIALS}
    together = correlation(records)
    below, counts = [], [1.0]
    for name, of in sorted(designs.items()):
        trials = [each["trials"] for each in of]
        misses = sum(trials) - sum(each["covered"] for each in of)
        chance = chance_below(trials, together)
        counts = together_chances(counts, [1 - chance, chance], len(designs))
        if misses > allowed(sum(trials)):
            below.append({"design": name, "records": len(of), "trials": sum(trials),
                          "misses": misses,
                          "most": max(each["trials"] - each["covered"] for each in of),
                          "chance": chance_of_more(misses - 1, trials, together),
                          "needed": deciding_records(round(sum(trials) / len(of)), together)})
    return {"designs": len(designs), "below": below, "correlation": together,
            "expected": math.fsum(count * chance for count, chance in enumerate(counts)),
            "none": counts[0], "as_many": math.fsum(counts[len(below):])}


def below_text(of):
    text = (f"Designs of {MANY_TRIALS} trials and more that cover in less than {LEAST_SHARE:.0%}: "
            f"{len(of['below'])} of {of['designs']}. Misses of a record come together (correlation "
            f"{of['correlation']:.3f}). If all intervals were exact, {of['expected']:.1f} designs "
            f"would be below, none in {of['none']:.0%} of such ledgers, and as many as here or more "
            f"in {of['as_many']:.0%}.\n")
    if not of["below"]:
        return text
    rows = [[f"`{each['design']}`", each["records"], each["trials"],
             percent(each["trials"] - each["misses"], each["trials"]), each["misses"],
             each["most"], f"{each['chance']:.1%}", each["needed"] or "more than 99"]
            for each in of["below"]]
    return text + "\n" + table(
        ["design", "records", "trials", "covered", "misses", "most of one record",
         "exact intervals miss as often in", "records that would decide"], rows)


def beside(said, name):
    """Rows of the coverage by what `name` says, the regimes side by side."""
    found = collections.defaultdict(dict)
    for row in said["rows"]:
        others = {"design", "boards", "effect"} - {name}
        if all(row[other] == "all" for other in others):
            found[row[name]][row["regime"]] = row
    rows = []
    for value, of in found.items():
        if name == "design" and value != "all" and of["all"]["trials"] < MANY_TRIALS:
            continue
        row = [f"`{value}`" if name == "design" and value != "all" else value, of["all"]["records"]]
        for regime in REGIMES:
            row += ([of[regime]["trials"], percent(of[regime]["covered"], of[regime]["trials"]),
                     f"{of[regime]['half_width_percent_p50']:.2f}%"] if regime in of
                    else ["–"] * 3)
        rows.append(row)
    rows.sort(key=lambda row: (row[0] == "all", ORDER.get(row[0], 0), row[0].strip("`")))
    columns = ["trials", "covered", "median half-width"]
    return table([name, "records", *(f"{regime.replace('_', ' ')}: {columns[0]}" if k == 0 else
                                     columns[k] for regime in REGIMES for k in range(3))], rows)


def few_text(said):
    """How many designs the table of designs leaves out, and how many trials they have."""
    few = [row["trials"] for row in said["rows"]
           if row["design"] != "all" and row["regime"] == "all" and row["trials"] < MANY_TRIALS]
    if not few:
        return ""
    return (f"The table of designs leaves out {len(few)} with fewer than {MANY_TRIALS} trials, "
            f"{sum(few)} trials together; the rows “all” count them.\n\n")


def left_out(program, records, environment=None):
    """What `warpledger pool --leave_one_out` says of them."""
    done = subprocess.run([program, "pool", f"--record={','.join(map(str, records))}",
                           "--leave_one_out", "--format=json"], capture_output=True, text=True,
                          check=False, env=environment)
    if done.returncode != 0:
        raise record_files.RecordError(done.stderr.strip())
    return json.loads(done.stdout)


def coverage(said):
    """How often the interval for another board contains what the left-out board says."""
    if not said["rows"]:
        return "No comparison was measured on two boards.\n"
    return (f"The interval for another board, with each of {said['n_boards']} boards left out in "
            f"turn ({said['n_records']} records). By the boards that it rests on, by the size of "
            "the effect, and by the design of the record that was left out:\n\n"
            + "\n".join(beside(said, name) for name in ("boards", "effect", "design"))
            + "\n" + few_text(said) + below_text(designs_below(said["records"])))


def paths_of(names):
    """The runs that are named, or that lie in a folder that is named."""
    paths = []
    for name in map(pathlib.Path, names):
        if name.is_dir() and not (name / "run.json").is_file():
            inside = sorted(path for path in name.iterdir()
                            if path.name.endswith(record_files.SUFFIX) or path.is_dir())
        else:
            inside = [name]
        paths += [path for path in inside if "samples.jsonl" in record_files.Record(path)
                  and "run.json" in record_files.Record(path)]
    if not paths:
        raise record_files.RecordError(f"{', '.join(names)}: there is no run")
    return paths


def figures(program, names, size):
    paths = paths_of(names)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        judged = list(workers.map(lambda path: judge(program, path), paths))
        slowed = list(workers.map(lambda path: judge_planted(program, path, size), paths))
    return "\n".join([today(judged), planted(list(filter(None, slowed)), size),
                      coverage(left_out(program, paths))])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bin" / "warpledger")
    parser.add_argument("--record", action="append", required=True, help="a run, or a folder of runs")
    parser.add_argument("--planted", type=float, default=2.0, help="per cent")
    options = parser.parse_args()
    try:
        print(figures(options.program.resolve(), options.record, options.planted), end="")
    except (OSError, record_files.RecordError) as error:
        print(f"verdict_figures.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
