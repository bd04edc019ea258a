#!/usr/bin/env python3
"""Runs compute-sanitizer's tools over every variant, keeps what they said, and makes a page of it.

  sanitizers.py run [WARPLEDGER] [--out DIR]   needs a GPU and the CUDA toolkit
  sanitizers.py report DIR --out FOLDER        FOLDER/sanitizers.md from DIR/sanitizers.json

A run is `warpledger check` under each tool on each small shape, in many processes at a time, on
all GPUs that CUDA_VISIBLE_DEVICES leaves. With --out it ends with DIR/sanitizers.json, whose
content reports/RECORD.md describes; after the same call was stopped, only what is left is run.
Copy DIR to reports/data/<gpu>/sanitizers-<time>, then run reports/regenerate.py.

Exit codes of `run`: 0 clean, 1 a tool found something, 2 wrong use, 3 no compute-sanitizer or no
GPU. Of `report`: 0 done, 2 the record can't be read.
"""

import argparse
import collections
import concurrent.futures
import datetime
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = "sanitizers.json"
PAGE = "sanitizers.md"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# Of Q K^T: the ragged shapes have less, and the least of those that are timed for their speed more.
SMALL = 2**25
LIMIT_S = 550  # for a process, which takes a few seconds
SHOWN_LINES = 20


class Refused(Exception):
    """Wrong use, or something is missing; the first argument is the exit code."""


# --- Running -----------------------------------------------------------------


def multiply_adds(shape):
    return (shape["batch"] * shape["heads_q"] * shape["seq_q"] * shape["seq_kv"]
            * shape["head_dim"])


def listed(program, section):
    call = [program, "list", section, "--format=json"]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)[section]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise Refused(2, f"{' '.join(call)} names none: {error}. Build it (./test), or name "
                         "another WARPLEDGER") from error


def visible_gpus():
    """[(what CUDA_VISIBLE_DEVICES calls it, its facts)]"""
    query = "index,uuid,name,compute_cap,driver_version"
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(3, f"nvidia-smi names no GPU: {error}") from error
    rows = [dict(zip(query.split(","), re.split(r", *", line)))
            for line in done.stdout.splitlines()]
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is not None:
        rows = [row for name in wanted.split(",") for row in rows
                if name in (row["index"], row["uuid"])]
    if not rows:
        raise Refused(3, "no GPU is visible")
    return [(row["uuid"],
             {"name": row["name"], "compute_capability": row["compute_cap"],
              "driver": row["driver_version"]}) for row in rows]


def find_sanitizer():
    found = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.access(found, os.X_OK):
        raise Refused(3, "compute-sanitizer is not here; it is part of the CUDA toolkit")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=60,
                          check=False).stdout
    version = re.search(r"[Vv]ersion (\S+)", said)
    return found, version.group(1) if version else "unknown"


def findings(returncode, log):
    """What a tool and the program under it complained of; empty where all is well.

    racecheck's warnings leave the exit code alone, so its summary is read too.
    """
    if returncode == 0 and re.search(r"SUMMARY: 0 (errors|hazards)", log):
        return []
    lines = [line for line in log.splitlines() if line.startswith("=========")]
    told = f"stopped after {LIMIT_S} s" if returncode == 124 else f"exit code {returncode}"
    return [told, *(lines or log.splitlines()[-5:])[:SHOWN_LINES]]


def replace(path, text):
    """A kill leaves the old file or the new."""
    scratch = path.with_name(path.name + ".new")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)


def examine(work, sanitizer, gpu, piece, options):
    """One process: a tool on a part of a shape's variants. What it gave goes to work/."""
    tool, shape, part = piece
    stem = work / f"{tool}-{shape}-{part}"
    # A run that was killed may have left a process that still writes to its own.
    checks = work / f"{stem.name}-{os.getpid()}.jsonl"
    started = time.monotonic()
    # timeout(1) ends the program under the tool too.
    call = ["timeout", "--kill-after=10", str(LIMIT_S), sanitizer, "--tool", tool,
            "--error-exitcode", "9", "--print-limit", "5", options.program, "check",
            f"--shapes={shape}", f"--variants={options.variants}", "--inputs=normal", "--seeds=1",
            f"--shard={part}/{options.parts}", f"--out={checks}"]
    done = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, errors="replace",
                          env=os.environ | {"CUDA_VISIBLE_DEVICES": gpu})
    found = findings(done.returncode, done.stdout)
    lines = checks.read_text(encoding="utf-8").splitlines() if checks.exists() else []
    result = {"tool": tool, "shape": shape, "seconds": round(time.monotonic() - started, 1),
              "instances": {row["instance"]: row["code_sha256"]
                            for row in map(json.loads, lines)},
              "findings": found}
    checks.unlink(missing_ok=True)
    replace(stem.with_suffix(".json"), json.dumps(result))
    return result


def read_pieces(work, request, pieces):
    """{piece: what it gave} of those that are clean already; what found something runs again.

    Refuses a folder that holds parts of another request.
    """
    path = work / "request.json"
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != request:
        raise Refused(2, f"{work.parent} holds the beginning of another run (other tools, shapes, "
                         "variants, parts or GPU); name another folder, or delete it")
    replace(path, json.dumps(request))
    known = {}
    for tool, shape, part in pieces:
        path = work / f"{tool}-{shape}-{part}.json"
        if path.exists():
            result = json.loads(path.read_text(encoding="utf-8"))
            if not result["findings"]:
                known[tool, shape, part] = result
    return known


def add_instances(result, instances):
    """Notes the machine code of a piece's instances, which every other piece must have run too."""
    for name, code in result["instances"].items():
        if instances.setdefault(name, code) != code:
            raise Refused(2, f"{name} was another kernel in an earlier call on this folder; name "
                             "another, or delete it")


def whole_record(facts, tools, shapes, instances, results):
    """The record of all pieces: instances once, and of each tool on each shape which of them."""
    names = sorted(instances)
    at = {name: i for i, name in enumerate(names)}
    runs = []
    for tool in tools:
        for shape in shapes:
            mine = [result for (of, on, _), result in sorted(results.items())
                    if (of, on) == (tool, shape)]
            runs.append({"tool": tool, "shape": shape, "processes": len(mine),
                         "seconds": round(sum(result["seconds"] for result in mine), 1),
                         "instances": sorted(at[name] for result in mine
                                             for name in result["instances"]),
                         "findings": [line for result in mine for line in result["findings"]]})
    return facts | {"instances": {name: instances[name] for name in names},
                    "runs": runs}


def dump(record):
    """A line per instance and per run."""
    rows = [f' "{key}": {json.dumps(value)}' for key, value in record.items()
            if key not in ("instances", "runs")]
    of_instances = ",\n".join(f"  {json.dumps(name)}: {json.dumps(code)}"
                              for name, code in record["instances"].items())
    of_runs = ",\n".join(f"  {json.dumps(run)}" for run in record["runs"])
    rows += [f' "instances": {{\n{of_instances}\n }}', f' "runs": [\n{of_runs}\n ]']
    return "{\n" + ",\n".join(rows) + "\n}\n"


def read_record(folder):
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(2, f"{folder / RECORD} can't be read: {error}") from error


def choose(given, known, what):
    if not given:
        return known
    for name in given.split(","):
        if name not in known:
            raise Refused(2, f"no {what} '{name}'; it is one of {', '.join(known)}")
    return given.split(",")


def on_all_gpus(pieces, gpus, jobs, work):
    """Yields (piece, work(piece, gpu)) as they end, `jobs` at a time, spread over the GPUs."""
    free = queue.Queue()
    for i in range(jobs):
        free.put(gpus[i % len(gpus)][0])

    def on_some_gpu(piece):
        gpu = free.get()
        try:
            return piece, work(piece, gpu)
        finally:
            free.put(gpu)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(on_some_gpu, piece) for piece in pieces]
        try:
            for done in concurrent.futures.as_completed(waiting):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def run(options):
    tools = choose(options.tools, list(TOOLS), "tool")
    shapes = listed(options.program, "shapes")
    small = [shape["name"] for shape in shapes if multiply_adds(shape) <= SMALL]
    shapes = choose(options.shapes, [shape["name"] for shape in shapes], "shape")
    if not options.shapes:
        shapes = small
    sanitizer, version = find_sanitizer()
    gpus = visible_gpus()
    now = datetime.datetime.now(datetime.timezone.utc)
    facts = {"schema_version": 1, "run_id": now.strftime("sanitizers-%Y%m%dT%H%M%SZ"),
             "created_utc": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "gpu": gpus[0][1],
             "compute_sanitizer": version, "variants": options.variants}
    temporary = None
    if options.out:
        if (options.out / RECORD).exists():
            found = any(run["findings"] for run in read_record(options.out)["runs"])
            print(f"{options.out / RECORD} is there already, "
                  + ("with findings" if found else "clean"))
            return 1 if found else 0
        work = options.out / "parts"
        work.mkdir(parents=True, exist_ok=True)
    else:
        temporary = tempfile.TemporaryDirectory()
        work = pathlib.Path(temporary.name)

    # The slowest tool first, and so that no GPU waits at the end.
    order = sorted(tools, key=lambda tool: tool != "racecheck")
    pieces = [(tool, shape, part) for tool in order for shape in shapes
              for part in range(1, options.parts + 1)]
    request = {"tools": tools, "shapes": shapes, "variants": options.variants,
               "parts": options.parts, "gpu": facts["gpu"], "compute_sanitizer": version}
    results = read_pieces(work, request, pieces)
    left = [piece for piece in pieces if piece not in results]
    instances = {}
    for result in results.values():
        add_instances(result, instances)
    if results:
        print(f"{len(results)} of {len(pieces)} processes were clean already")
    for piece, result in on_all_gpus(
            left, gpus, options.jobs,
            lambda piece, gpu: examine(work, sanitizer, gpu, piece, options)):
        add_instances(result, instances)
        results[piece] = result
        said = "FOUND" if result["findings"] else "clean"
        print(f"{len(results)}/{len(pieces)} {piece[0]} on {piece[1]}, part {piece[2]}: {said}, "
              f"{len(result['instances'])} instances, {result['seconds']:.0f} s", flush=True)
        for line in result["findings"]:
            print(f"    {line}", flush=True)

    record = whole_record(facts, tools, shapes, instances, results)
    if options.out:
        replace(options.out / RECORD, dump(record))
        shutil.rmtree(work)
        print(f"Record: {options.out / RECORD}")
    if temporary:
        temporary.cleanup()
    found = sum(bool(result["findings"]) for result in results.values())
    print(f"{len(record['instances'])} instances, {len(pieces)} processes: "
          + (f"{found} found something" if found else "clean: " + ", ".join(tools)))
    return 1 if found else 0


# --- Reporting ---------------------------------------------------------------


def coverage(record, tree):
    """Of each instance of the tree, the tools that ran clean on this very machine code."""
    names = list(record["instances"])
    clean = collections.defaultdict(set)
    for of in record["runs"]:
        for i in () if of["findings"] else of["instances"]:
            clean[names[i]].add(of["tool"])
    return {name: clean[name] if record["instances"].get(name) == code else set()
            for name, code in tree.items()}


def instances_of_tree(compute_capability):
    """{instance: hash} of what this tree compiles for such a GPU."""
    path = ROOT / "kernels" / "sdpa" / "machine_code.json"
    archs = json.loads(path.read_text(encoding="utf-8"))["archs"]
    arch = "sm_" + compute_capability.replace(".", "")
    return archs.get(arch + "a", {}) | archs.get(arch, {})


def code_list(names):
    return "".join(f"- `{name}`\n" for name in names)


def page_of(record, tree):
    tools = sorted({run["tool"] for run in record["runs"]}, key=TOOLS.index)
    shapes = list(dict.fromkeys(run["shape"] for run in record["runs"]))
    covered = coverage(record, tree)
    lacking = {name: [tool for tool in TOOLS if tool not in clean]
               for name, clean in covered.items() if len(clean) < len(TOOLS)}
    found = [run for run in record["runs"] if run["findings"]]
    gpu = record["gpu"]
    names = list(record["instances"])
    checks = sum(len(run["instances"]) for run in record["runs"])
    out = ["# compute-sanitizer on every variant\n\n",
           f"Run `{record['run_id']}` on an {gpu['name']} (driver {gpu['driver']}), "
           f"compute-sanitizer {record['compute_sanitizer']}: each instance is launched on each "
           "shape below that it is compiled for, twice, between guard bands and into poisoned "
           "memory, and its result is checked against the FP64 reference, all under the tool. "
           "Record: "
           f"`{RECORD}` (schema: [RECORD.md](../RECORD.md)); made by `tests/sanitizers.py`.\n\n"]
    out.append(f"**{len(covered) - len(lacking)} of the {len(covered)} instances that this tree "
               f"compiles for this GPU ran clean under {', '.join(TOOLS[:-1])} and {TOOLS[-1]}, "
               f"with the machine code that they have in this tree; "
               f"{len(found)} of {len(record['runs'])} pairs of a tool and a shape have "
               f"findings, in {checks} checks.**\n\n")
    out.append("An instance is a variant compiled for a head dimension, a mask and a dtype. "
               "A number below is how many instances ran clean there; bold, how many of a pair "
               "with findings.\n\n")
    out.append("| shape | " + " | ".join(tools) + " |\n|---" + "|--:" * len(tools) + "|\n")
    by = {(run["tool"], run["shape"]): run for run in record["runs"]}
    for shape in shapes:
        cells = []
        for tool in tools:
            run_of = by.get((tool, shape))
            count = "-" if run_of is None else str(len(run_of["instances"]))
            cells.append(f"**{count}**" if run_of and run_of["findings"] else count)
        out.append(f"| `{shape}` | " + " | ".join(cells) + " |\n")
    if found:
        out.append("\n## Findings\n")
        for run_of in found:
            out.append(f"\n{run_of['tool']} on `{run_of['shape']}`:\n\n```\n"
                       + "\n".join(run_of["findings"]) + "\n```\n")
    changed = [name for name in lacking if record["instances"].get(name) not in (None, tree[name])]
    never = [name for name in lacking if name not in record["instances"]]
    others = [name for name in lacking if name not in changed and name not in never]
    gone = [name for name in names if name not in tree]
    for title, which in (("Never run", never), ("Machine code changed since", changed),
                         ("Not clean under every tool", others),
                         ("Run, and no longer in this tree", gone)):
        if which:
            out.append(f"\n## {title}\n\n{code_list(which)}")
    out.append("\n## What the tools don't see\n\n"
               "memcheck sees accesses outside allocations and misaligned ones, initcheck reads of "
               "global memory that nobody wrote, synccheck barriers that not all threads reach, "
               "racecheck hazards in shared memory between accesses of threads. What the copy "
               "engine writes there by a tensor map, and what `wgmma` reads there, belongs to no "
               "thread, and racecheck says nothing of it (FlashAttention's "
               "AI/RACECHECK_TMA_HAZARD.md found so too): for these stand the repeats of every "
               "check, which must give the same bits, and the correctness tests.\n\n"
               "Small shapes have few tiles. None of the default ones has more than an H200 "
               "has SMs, so that a persistent kernel's second tile, and what it then "
               "uses again, ran under no tool; and rings of several stages turn over at the "
               "decoding shapes alone, where keys are many. The checks of recorded cells reach both, "
               "the correctness tests in part.\n")
    return "".join(out)


def report(options):
    record = read_record(options.record)
    try:
        page = page_of(record, instances_of_tree(record["gpu"]["compute_capability"]))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise Refused(2, f"{options.record / RECORD} can't be read: it lacks {error!r}") from error
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / PAGE).write_text(page, encoding="utf-8")
    return 0


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run the tools")
    running.add_argument("program", nargs="?", default=str(ROOT / "build" / "bin" / "warpledger"),
                         metavar="WARPLEDGER", help="the program (default: build/bin/warpledger)")
    running.add_argument("--out", type=pathlib.Path, metavar="DIR", help="where the record goes")
    running.add_argument("--tools", metavar="TOOL,…", help=f"some of {', '.join(TOOLS)}")
    running.add_argument("--shapes", metavar="SHAPE,…",
                         help=f"default: those of up to {SMALL} multiply-adds in Q K^T")
    running.add_argument("--variants", metavar="VARIANT,…", default="all", help="default: all")
    running.add_argument("--parts", type=positive, default=8,
                         help="processes for each tool and shape (default: 8)")
    running.add_argument("--jobs", type=positive,
                         default=max(1, min(8, (os.cpu_count() or 2) // 2)),
                         help="processes at a time (default: half of the CPU cores, at most 8)")
    reporting = commands.add_parser("report", help="make the page of a record")
    reporting.add_argument("record", type=pathlib.Path, metavar="DIR")
    reporting.add_argument("--out", required=True, type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    try:
        return run(options) if options.command == "run" else report(options)
    except Refused as refused:
        code, text = refused.args
        print(f"sanitizers.py: {text}", file=sys.stderr)
        return code


if __name__ == "__main__":
    sys.exit(main())
