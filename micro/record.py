#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a run of warpledger_micro into micro.json, and that into pages and figures.

  record.py collect --run DIR                 DIR as micro/record.sh leaves it
  record.py report --micro DIR/micro.json --out reports/h200

micro.json: {schema_version, gpu, provenance, micro, not_run}. An entry of `micro`
is {name, unit, value, percent_of_limit, ..}, where value is the median over
processes of the median over repetitions of the median over samples, and ci_low
and ci_high are Student's t at 95% on the processes' values, null for one process;
by_process holds each process's own medians.
`not_run` names each case without a value and says why. Google Benchmark's values
and the raw samples must agree, or nothing is written.

A report is OUT/micro.md, the index, and OUT/micro/, a page for each benchmark and
the figures. What else stands there stays.

Errors: exit status 1 and one line that says what, why and what to do. Same input,
same bytes out.
"""

import argparse
import collections
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

# The formulas that figures and pages share lie in plots/, in the tree as in an install tree.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import pages  # noqa: E402
from plots import json_text, micro_curves, micro_data, whole_file  # noqa: E402

SCHEMA_VERSION = 1
# Student's t, two-sided 95%, by degrees of freedom (any table of the distribution).
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
# NVML's reasons that don't slow the GPU: idle, and clocks that someone chose
# (kernels/common/nvml.h).
HARMLESS_THROTTLE = 0x001 | 0x002 | 0x100


class RecordError(Exception):
    """What went wrong, why, and what to do."""


# --- Reading -----------------------------------------------------------------


def read_json(path):
    try:
        return json_text.loads(pathlib.Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise RecordError(f"can't read {path}: {error}; run micro/record.sh again.") from error


def read_samples(folder):
    """The raw samples of a run, packed or not; a last line cut off by a kill is dropped."""
    path = pathlib.Path(folder) / "micro_raw.jsonl"
    lines = micro_data.raw_lines(folder)
    if not lines:
        raise RecordError(f"{path} is missing or empty; run micro/record.sh again.")
    cut = lines.pop()  # "" unless the file ends inside a line
    samples = []
    for number, line in enumerate(lines, 1):
        try:
            samples.append(json_text.loads(line))
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


def check_agreement(name, process, benchmarked, samples):
    """Google Benchmark's values must be the raw samples' medians, in any order."""
    mine = micro_data.process_values(
        [sample for sample in samples if sample["process"] == process])
    ours = sorted(mine[0]["repetitions"]) if mine else []
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
    processes = micro_data.process_values(samples)
    by_process = [process["value"] for process in processes]
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
        "by_process": processes,
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
    samples = [sample for sample in read_samples(run)
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
            check_agreement(name, process, found, by_case[name])

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


# --- Program -----------------------------------------------------------------


def rows_on_lines(value):
    """The object as JSON, each row of its lists on a line of its own: a diff names what changed."""
    def member(name, content):
        if isinstance(content, list) and content:
            rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in content)
            return f'"{name}": [\n  {rows}\n ]'
        return f'"{name}": {json.dumps(content, ensure_ascii=False)}'

    return "{\n " + ",\n ".join(member(*item) for item in value.items()) + "\n}\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    whole_file.replace(path, text)


def figure_names(micro):
    """The figures that plots/micro_render.py draws of this record, by the curves that they need."""
    has = {
        "bank_conflict_slope": micro_curves.conflict_slopes(micro),
        "cp_async_depth": any(micro_curves.cp_async_curves(micro, level)
                              for level, *_ in micro_curves.CP_ASYNC_LEVELS),
        "exp_pareto": all(micro_curves.exp_points(micro, error)
                          for error in micro_curves.EXP_ERRORS),
        "memory_hierarchy": (micro_curves.footprint_bandwidths(micro)
                             and micro_curves.footprint_latencies(micro)),
        "overlap_matrix": micro_curves.overlap_cells(micro)[0],
        "reduction_costs": any(micro_curves.reduction_ways(micro, operation)
                               for operation in micro_curves.REDUCTIONS),
        "swizzle_dilution": len(micro_curves.dilution_curves(micro)) > 1,
        "wgmma_widths": micro_curves.wgmma_sweeps(micro),
    }
    return {name for name, found in has.items() if found}


def report(micro_json, out, python, with_figures):
    """Writes the pages of a record below `out`, and the figures with them."""
    here = pathlib.Path(__file__).resolve().parent
    micro_json, out = pathlib.Path(micro_json), pathlib.Path(out)
    micro = micro_data.load(micro_json)
    listed = micro_json.parent / "cases.json"
    cases = json_text.markdown(read_json(listed)["cases"]) if listed.exists() else []
    drawn = figure_names(micro) if with_figures else set()
    texts = pages.render(micro.for_pages(), cases, pages.heads_in(here), drawn)
    for name, text in texts.items():
        write(out / name, text)
    if with_figures:
        done = subprocess.run([python, "-B", here.parent / "plots" / "micro_render.py", "--micro",
                               micro_json, "--out", out / "micro"], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RecordError(f"the figures can't be drawn: {done.stderr.strip()}; the pages are "
                              "written. Name a Python that has matplotlib (--python), or leave "
                              "the figures out (--noplots).")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect", help="write DIR/micro.json")
    collecting.add_argument("--run", required=True, type=pathlib.Path, metavar="DIR")
    reporting = commands.add_parser("report", help="write the pages and figures of a record")
    reporting.add_argument("--micro", required=True, type=pathlib.Path, metavar="MICRO_JSON")
    reporting.add_argument("--out", required=True, type=pathlib.Path, metavar="DIR",
                           help="gets micro.md and micro/")
    reporting.add_argument("--noplots", action="store_true", help="no figures")
    reporting.add_argument("--python", default=sys.executable,
                           help="interpreter with matplotlib (default: the one that runs this)")
    args = parser.parse_args(argv)
    try:
        if args.command == "collect":
            write(args.run / "micro.json", rows_on_lines(collect(args.run)))
        else:
            report(args.micro, args.out, args.python, not args.noplots)
    except (RecordError, micro_data.MicroError) as error:
        print(f"record.py: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"record.py: {error}", file=sys.stderr)
        return 1
    except json_text.DAMAGE as error:
        print(f"record.py: the input lacks or garbles something: {json_text.said(error)}; it is of "
              "another version. Run micro/record.sh again.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
