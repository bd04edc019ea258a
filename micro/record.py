#!/usr/bin/env python3
"""Turns a run of warpledger_micro into micro.json, and that into a report.

  record.py collect --run DIR                       DIR as micro/record.sh leaves it
  record.py report --micro DIR/micro.json --out reports/h200/micro.md

micro.json: {schema_version, gpu, provenance, micro, not_run}. An entry of `micro`
is {name, unit, value, percent_of_limit, ..}, where value is the median over
processes of the median over repetitions of the median over samples, and ci_low
and ci_high are Student's t at 95% on the processes' values, null for one process.
`not_run` names each case without a value and says why. Google Benchmark's values
and the raw samples must agree, or nothing is written.

Errors: exit status 1 and one line that says what, why and what to do. Same input,
same bytes out.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import re
import statistics
import sys

SCHEMA_VERSION = 1
# Student's t, two-sided 95%, by degrees of freedom (any table of the distribution).
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
# Above this, a difference from a published figure is spoken of.
NOTABLE_DIFFERENCE_PERCENT = 10.0
# NVML's reasons that don't slow the GPU: idle, and clocks that someone chose
# (kernels/common/nvml.h).
HARMLESS_THROTTLE = 0x001 | 0x002 | 0x100


class RecordError(Exception):
    """What went wrong, why, and what to do."""


# --- Reading -----------------------------------------------------------------


def read_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"can't read {path}: {error}; run micro/record.sh again.") from error


def read_samples(path):
    """The lines of a raw file; a last line cut off by a kill is dropped."""
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise RecordError(f"can't read {path}: {error}; run micro/record.sh again.") from error
    cut = lines.pop()  # "" unless the file ends inside a line
    samples = []
    for number, line in enumerate(lines, 1):
        try:
            samples.append(json.loads(line))
        except ValueError as error:
            raise RecordError(f"{path}:{number} is no JSON: {error}.") from error
    if cut:
        print(f"record.py: {path} ends inside a line; that sample is dropped", file=sys.stderr)
    return samples


def case_of(run_name):
    """Google Benchmark's name of a benchmark without what it appends."""
    return re.sub(r"(/(iterations:\d+|repeats:\d+|manual_time))+$", "", run_name)


# --- Collecting --------------------------------------------------------------


def interval(values):
    """Student's 95% interval of the mean of the processes' values, or (None, None)."""
    if len(values) < 2:
        return None, None
    t = T_95[min(len(values) - 1, max(T_95))]
    half = t * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.fmean(values)
    return mean - half, mean + half


def medians_by_repetition(samples):
    """{process: {repetition: median}} of one case's samples."""
    values = collections.defaultdict(lambda: collections.defaultdict(list))
    for sample in samples:
        values[sample["process"]][sample["repetition"]].append(sample["value"])
    return {process: {repetition: statistics.median(found)
                      for repetition, found in sorted(repetitions.items())}
            for process, repetitions in sorted(values.items())}


def check_agreement(name, process, benchmarked, medians):
    """Google Benchmark's values must be the raw samples' medians, in any order."""
    ours = sorted(medians.get(process, {}).values())
    theirs = sorted(benchmarked)
    if len(ours) != len(theirs) or any(
            not math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-30) for a, b in zip(ours, theirs)):
        raise RecordError(f"{name}, process {process}: Google Benchmark says {theirs}, the raw "
                          f"samples say {ours}; the files are of different runs. Run "
                          "micro/record.sh into a new folder.")


def median_of(samples, key):
    values = [sample[key] for sample in samples if sample.get(key) is not None]
    return statistics.median(values) if values else None


def difference_percent(ours, theirs):
    return 100.0 * (ours - theirs) / theirs if theirs else None


def entry_of(case, samples, cc):
    medians = medians_by_repetition(samples)
    by_process = [statistics.median(repetitions.values()) for repetitions in medians.values()]
    value = statistics.median(by_process)
    low, high = interval(by_process)
    limit = samples[-1].get("limit")
    return {
        "name": case["name"],
        "unit": case["unit"],
        "value": value,
        "percent_of_limit": 100.0 * value / limit if limit else None,
        "ci_low": low,
        "ci_high": high,
        "n_processes": len(by_process),
        "n_samples": len(samples),
        "kind": case["kind"],
        "measures": case["measures"],
        "limit": limit,
        "limit_source": case["limits"].get(str(cc), {}).get("source"),
        "peak_case": case["peak_case"] or None,
        "percent_of_peak": None,
        "r2": median_of(samples, "r2"),
        "intercept_cycles": median_of(samples, "intercept"),
        "sm_mhz_p50": median_of(samples, "sm_mhz"),
        "throttled_samples": sum(
            1 for sample in samples if (sample.get("throttle") or 0) & ~HARMLESS_THROTTLE),
        "parameters": case["parameters"],
        "published": [
            {"value": row["value"], "source": row["source"], "why": row["why"],
             "difference_percent": difference_percent(value, row["value"])}
            for row in case["published"] if row["cc"] in (0, cc)],
    }


def why_not_run(case, cc, errors):
    if case["name"] in errors:
        return errors[case["name"]]
    if cc < case["min_cc"] or 0 < case["max_cc"] < cc:
        bound = f"{case['min_cc'] // 10}.{case['min_cc'] % 10}"
        if case["max_cc"]:
            bound += f" to {case['max_cc'] // 10}.{case['max_cc'] % 10}"
        return f"needs compute capability {bound}"
    return "not run: filtered out, or its process was stopped"


def finished_processes(run):
    """Google Benchmark's JSON of each process that ran to its end; of others it is cut off."""
    finished = []
    for path in sorted(run.glob("micro_process*.json")):
        try:
            finished.append(read_json(path))
        except RecordError as error:
            print(f"record.py: {error} Its samples are left out.", file=sys.stderr)
    if not finished:
        raise RecordError(f"{run} holds no whole micro_process*.json; no process ran to its end.")
    return finished


def collect(run):
    """micro.json of a folder as micro/record.sh leaves it."""
    run = pathlib.Path(run)
    cases = read_json(run / "cases.json")["cases"]
    benchmarks = finished_processes(run)
    finished = {int(benchmark["context"]["warpledger_process"]) for benchmark in benchmarks}
    samples = [sample for sample in read_samples(run / "micro_raw.jsonl")
               if sample["process"] in finished]
    by_case = collections.defaultdict(list)
    for sample in samples:
        by_case[sample["case"]].append(sample)
    unknown = sorted(set(by_case) - {case["name"] for case in cases})
    if unknown:
        raise RecordError(f"the raw samples speak of {unknown[0]}, which cases.json doesn't list; "
                          "the files are of different programs.")
    contexts = [benchmark["context"] for benchmark in benchmarks]
    gpus = {context["gpu_uuid"] for context in contexts}
    if len(gpus) != 1:
        raise RecordError(f"the processes ran on different GPUs ({', '.join(sorted(gpus))}); run "
                          "them all on one (CUDA_VISIBLE_DEVICES).")
    context = contexts[0]
    cc = int(context["compute_capability"])

    errors = {}
    for benchmark in benchmarks:
        process = int(benchmark["context"]["warpledger_process"])
        values = collections.defaultdict(list)
        for row in benchmark["benchmarks"]:
            if row.get("run_type") != "iteration":
                continue
            name = case_of(row["run_name"])
            if row.get("error_occurred"):
                errors[name] = row["error_message"]
            else:
                values[name].append(row["value"])
        for name, found in values.items():
            check_agreement(name, process, found, medians_by_repetition(by_case[name]))

    entries, not_run = [], []
    for case in cases:
        found = by_case.get(case["name"])
        # One repetition that failed taints the case.
        if found and case["name"] not in errors:
            entries.append(entry_of(case, found, cc))
        else:
            not_run.append({"name": case["name"], "reason": why_not_run(case, cc, errors)})
    values = {entry["name"]: entry["value"] for entry in entries}
    for entry in entries:
        peak = values.get(entry["peak_case"])
        if peak:
            entry["percent_of_peak"] = 100.0 * entry["value"] / peak
    return {
        "schema_version": SCHEMA_VERSION,
        "gpu": {"name": context["gpu"], "slug": context["gpu_slug"], "uuid": context["gpu_uuid"],
                "compute_capability": f"{cc // 10}.{cc % 10}",
                "sm_count": int(context["sm_count"]),
                "max_sm_clock_mhz": float(context["max_sm_clock_mhz"]),
                "dram_gb_per_s": float(context["dram_gb_per_s"])},
        "provenance": {"started": context["date"], "nvcc": context["nvcc"],
                       "processes": len(benchmarks), "n_samples": len(samples),
                       "interval": "Student's t at 95% on the processes' medians"},
        "micro": entries,
        "not_run": not_run,
    }


# --- Report ------------------------------------------------------------------


def number(value, digits=4):
    """Four significant digits, without an exponent where that is short."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude < -4 or magnitude > 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - magnitude)}f}"


def percent(value):
    return "–" if value is None else f"{value:.1f}%"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return lines


def results_section(benchmark, entries):
    lines = [f"## {benchmark}", ""]
    peaks = any(entry["percent_of_peak"] is not None for entry in entries)
    header = ["case", "value", "95% interval", "unit", "of the limit"]
    header += ["of the measured peak"] if peaks else []
    rows = []
    for entry in entries:
        bounds = "–"
        if entry["ci_low"] is not None:
            bounds = f"{number(entry['ci_low'])} … {number(entry['ci_high'])}"
        row = [entry["name"].partition("/")[2], number(entry["value"]), bounds,
               entry["unit"] or "–", percent(entry["percent_of_limit"])]
        row += [percent(entry["percent_of_peak"])] if peaks else []
        row.append("–" if entry["r2"] is None else f"{entry['r2']:.5f}")
        rows.append(row)
    lines += table(header + ["R²"], rows)
    sources = sorted({(entry["limit_source"]) for entry in entries if entry["limit_source"]})
    if sources:
        lines += ["", "Limits: " + "; ".join(sources) + "."]
    return lines + [""]


def published_section(entries):
    rows, sentences = [], []
    for entry in entries:
        for published in entry["published"]:
            difference = published["difference_percent"]
            rows.append([entry["name"], number(entry["value"]), number(published["value"]),
                         entry["unit"] or "–",
                         "–" if difference is None else f"{difference:+.1f}%",
                         published["source"]])
            if difference is not None and abs(difference) > NOTABLE_DIFFERENCE_PERCENT:
                side = "above" if difference > 0 else "below"
                why = published["why"] or "Not explained yet"
                sentences.append(f"- `{entry['name']}` is {abs(difference):.0f}% {side} "
                                 f"{published['source']}. {why.rstrip('.')}.")
    if not rows:
        return []
    lines = ["## Against published figures", ""]
    lines += table(["case", "ours", "theirs", "unit", "difference", "source"], rows)
    if sentences:
        lines += ["", f"Where the two differ by more than {NOTABLE_DIFFERENCE_PERCENT:.0f}%:", ""]
        lines += sentences
    return lines + [""]


def report(micro):
    gpu, provenance, entries = micro["gpu"], micro["provenance"], micro["micro"]
    clocks = [entry["sm_mhz_p50"] for entry in entries if entry["sm_mhz_p50"] is not None]
    throttled = sum(entry["throttled_samples"] for entry in entries)
    lines = [
        f"# Microbenchmarks on {gpu['name']}", "",
        "<!-- Written by micro/record.py; edit the benchmarks, not this file. -->", "",
        f"{len(entries)} cases, {provenance['n_samples']} samples from {provenance['processes']} "
        f"processes, started {provenance['started']}; {gpu['sm_count']} SMs, compute capability "
        f"{gpu['compute_capability']}, nvcc {provenance['nvcc']}. "
        + (f"SM clock {min(clocks):.0f} to {max(clocks):.0f} MHz by case; " if clocks else
           "The SM clock is unknown; ")
        + f"{throttled} samples were taken while the GPU was held back.", "",
        "A latency and a throughput are slopes of in-kernel cycles over several lengths of the "
        "timed loop; R² is that of the fit. An interval is Student's t at 95% on the processes' "
        "medians. What each benchmark asks, and what would refute it, stands at the head of its "
        "micro/*.cu.", ""]
    groups = collections.defaultdict(list)
    for entry in entries:
        groups[entry["name"].partition("/")[0]].append(entry)
    for benchmark, group in groups.items():
        lines += results_section(benchmark, group)
    lines += published_section(entries)
    if micro["not_run"]:
        lines += ["## Not measured", ""]
        lines += table(["case", "reason"],
                       [[row["name"], row["reason"]] for row in micro["not_run"]])
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


# --- Program -----------------------------------------------------------------


def write(path, text):
    """Replaces `path` in one step, so that a kill leaves the old file or the new."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect", help="write DIR/micro.json")
    collecting.add_argument("--run", required=True, type=pathlib.Path, metavar="DIR")
    reporting = commands.add_parser("report", help="write a report in Markdown")
    reporting.add_argument("--micro", required=True, type=pathlib.Path)
    reporting.add_argument("--out", required=True, type=pathlib.Path)
    args = parser.parse_args(argv)
    try:
        if args.command == "collect":
            write(args.run / "micro.json",
                  json.dumps(collect(args.run), indent=1, ensure_ascii=False) + "\n")
        else:
            write(args.out, report(read_json(args.micro)))
    except RecordError as error:
        print(f"record.py: {error}", file=sys.stderr)
        return 1
    except (KeyError, TypeError) as error:
        print(f"record.py: the input lacks or garbles {error}; it is of another version. Run "
              "micro/record.sh again.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
